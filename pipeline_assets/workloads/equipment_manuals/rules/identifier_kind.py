"""Rule `identifier_kind`: an identifier is a model or part number, not another printed code.

Dates, versions, standards, ratings and addresses mix letters and digits as models do. A name
without a digit may be a product's, if it is written as one and the title has it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import polars as pl

from pipeline_assets.workloads.text_folding import fold
from pipeline_assets.workloads.workload import Rule, Shard
from resources.identifiers import fold_identifier

_FIELD = "product_identifiers"
_SCHEMA = {"row": pl.Int64, "field": pl.String, "note": pl.String}

_MONTHS = (
    r"jan(?:uary|uar|vier)?|feb(?:ruary|ruar)?|février|mar(?:ch|s)?|märz|apr(?:il)?|avril|ma[iy]"
    r"|june?|juni|juin|july?|juli|juillet|aug(?:ust)?|août|sept?(?:ember)?|septembre"
    r"|o[ck]t(?:ober|obre)?|nov(?:ember|embre)?|de[cz](?:ember)?|décembre"
)
# As folded: the micro sign is a Greek mu, the ohm sign an omega.
_UNIT = (
    r"(?:[kmgtμun]?(?:v|a|w|va|hz|f|ω|ohms?|h|pa|bar|j|n|nm|wh|ah|bps|bits?|bytes?|b|bit/s)"
    r"(?:\s?(?:ac|dc|pp|rms))?|vac|vdc|volts?|watts?|amps?|hertz|dbm?|psi|rpm|lux|lm"
    r"|[cmkμn]?m[23]?|m?l|[kmμ]?g|lbs?|oz|ft|inch(?:es)?|in|s|sec|ms|min|hours?|days?"
    r"|°\s?[cf]?|%|pcs|pages?|pins?|ports?|channels?"
    r"|в|вт|квт|гц|кгц|мгц|мм|см|м|кг|г|мин|сек|шт|ом|ком|бар|л)"
)
_NUMBER = r"\d+(?:[.,]\d+)*"
_RATING = rf"{_NUMBER}(?:\s?(?:-|/|\.\.\.|to|bis|x|×|\*)\s?{_NUMBER})*\s?{_UNIT}"
_KINDS: Mapping[str, str] = {
    "a date": (
        r"\d{4}[-./]\d{1,2}(?:[-./]\d{1,2})?|\d{1,2}[-./]\d{1,2}[-./](?:\d{2}|\d{4})"
        r"|\d{1,2}[-./](?:19|20)\d\d|(?:19|20)\d\d(?:\s?[-/]\s?(?:19|20)?\d\d)?"
        rf"|(?:\d{{1,2}}[.\s-]*)?(?:{_MONTHS})\.?[\s-]*(?:\d{{1,2}},?[\s-]+)?(?:19|20)\d\d"
        rf"|\d{{1,2}}[.\s-]+(?:{_MONTHS})(?:[.\s-]+'?\d\d)?"
        r"|\d{4}年(?:\d{1,2}月)?(?:\d{1,2}日)?|q\d[\s/-]?(?:19|20)\d\d|(?:19|20)\d\d[\s/-]?q\d"
        r"|(?:19|20)\d\d\s?(?:г\.?|р\.?|m\.?|year)|[©(]c?\)?\s?(?:19|20)\d\d"
    ),
    "a phone number": (
        r"(?:(?:tel|phone|fax|mobile|тел)[.:\s]*)?\+\d[\d\s()./-]{6,}"
        r"|\(\d{2,5}\)\s?\d[\d\s/-]{4,}|0\d{2,4}[\s/]\d[\d\s/-]{4,}"
        r"|00\d{2}[\s/-]?\d[\d\s/-]{5,}|(?:1[\s-])?\(?\d{3}\)?[\s.-]\d{3}[\s.-]\d{4}"
        r"|\d{1,4}(?:[\s-]\d{2,4}){2,4}|0\d{2,4}-\d{5,}"
        r"|(?:tel|phone|fax|mobile|тел)[.:\s]+[\d\s()/-]{5,}"
    ),
    "an address of the web or of mail": (
        r".*(?:https?:|www\.|@).*|(?:[\w-]+\.)+(?:com|net|org|de|eu|co|uk|ru|ua|lt|jp|cn|info|io"
        r"|fr|it|es|html?|pdf|docx?|txt|exe|zip|bin)(?:/.*)?"
    ),
    "a page, chapter or figure": (
        r"(?:(?:p|pp|pg|с|стр|s)[.\s]+|(?:pages?|chapter|section|figures?|fig|tab|table|step|part"
        r"|vol(?:ume)?|appendix|annex|seite|kapitel|abb(?:ildung)?|página|pág|pagina|стр|страница"
        r"|рис|рисунок|глава|puslapis|psl|pav|ページ|页)[.\s]*)"
        r"\d+(?:\s?(?:of|/|-|von|de|из)\s?\d+|\.\d+)*"
        r"|\d+\s(?:of|von|из|de|sur)\s\d+|第\d+[页章頁]"
    ),
    "a standard or a mark": (
        r"(?:(?:iso|iec|din|ieee|ansi|itu|etsi|astm|eia|jis|rfc|ecma|smpte|cispr|fips|nema|atex"
        r"|gost|гост|дсту|ccitt|mil-std|as/nzs)(?:[\s/:-]*(?:iso|iec|en|ieee|tia|std))*[\s/:-]*"
        r"|(?:bs|din|ul|nf|gb|un|ieee)[\s-]?(?:en|iso|iec)[\s-]?(?:iso|iec)?[\s-]?"
        r"|(?:en|bs|nf|ul|vde|csa|tia|ту|gb(?:/t)?)(?:\s(?=\d\d)|-(?=\d{4})|(?=\d{3}))|ul[\s-]?(?=94)|fcc\s(?:part\s)?|ce\s"
        r"|(?:fda|cfr)\s?)"
        r"[a-z]?\d[\w./:-]*(?:[\s(+]+[a-z]*\d[\w./:-]*\)?)*"
        r"|\d+/\d+/(?:ec|eu|ce|eg|eec)|(?:ec|eu|eec)[\s-]?(?:no\.?\s?)?\d+/\d+"
        r"|\d+\scfr\s.*|(?:ip|ipx|ik)[\s-]?[0-6x]?[0-9x]k?|802\.\d+[\w/]*|x\.\d{2,3}"
        r"|rs[\s-]?(?:232|422|423|485)\w?|usb[\s-]?\d(?:\.\d)?|hdmi[\s-]?\d(?:\.\d)?"
        r"|cat[\s-]?[5-8]\w?|mp[34]|h\.26\d|wpa\d|ipv[46]|utf-?\d+|rohs\s?\d?"
    ),
    "a version": (
        r"(?:(?:firmware|software|hardware|fw|sw|hw|driver|document|manual|doc)[\s.:-]*)?"
        r"(?:v[\s.]?|(?:ver|vers|version|rev|revision|release|issue|edition|rel|версия|вер|ред"
        r"|ревизия|ausgabe|stand|バージョン|版本)[\s.:_-]*)"
        r"\d{1,2}(?:[._]\d+)*[a-z]?|(?:firmware|software|fw|sw)[\s:.-]*v?\d+(?:\.\d+)*\w*"
        r"|(?:rev|revision)[\s.:-]*(?:[a-z]\d?|\d+)|\d+(?:\.\d+){1,3}(?:[-\s]?(?:alpha|beta|rc)\d*)?"
        r"|\d+(?:st|nd|rd|th)\s(?:edition|ed)"
    ),
    "a price": (
        r"(?:[$€£¥₽₴]|(?:usd|eur|gbp|jpy|chf|rub|uah|us\$))\s?\d[\d.,\s]*-?"
        r"|\d[\d.,\s]*(?:[$€£¥₽₴]|usd|eur|euros?|gbp|jpy|chf|rub|uah|dollars?|руб\.?|грн\.?|円|元)"
    ),
    "a size or a rating": (
        rf"[±~<>≤≥+-]?{_RATING}(?:(?:\s*[/x×,;-]\s*|\s+){_RATING})*\s?[~=⎓]?"
        rf"|{_NUMBER}(?:\s?[x×*]\s?{_NUMBER})+\s?(?:{_UNIT})?"
        r"|pt1000?|m(?:\d|1\d|2[0-4])(?:[x×][\d.]+)?|[ab][0-6]"
        r"|(?:ac|dc)\s?\d+(?:[-/]\d+)?\s?v|\d+(?:[.,]\d+)?/\d+(?:[.,]\d+)?"
    ),
    "a serial number or another label": (
        r"(?:s/?n|serial(?: (?:no|number))?|ser\.?\s?no|order|invoice|isbn|ean|upc|gtin"
        r"|p\.?o\.?\s?box|doc(?:ument)? ?(?:no|number|id)?|no|nr|item|qty|copyright|©)"
        r"[.:#\s]+[\w-]*\d[\w\s-]*"
    ),
}
_PATTERNS = {kind: re.compile(rf"(?:{pattern})", re.IGNORECASE) for kind, pattern in _KINDS.items()}
_TWICE = "named twice, but for case, hyphens and spaces"
_LONGEST = 80
"""Characters that are looked at; what is longer has no shape of an identifier anyway."""
# Most of a shard's identifiers are plainly models; only what may be another kind is looked at.
_PLAIN = r"^(?:\p{L}{2,}[-‐‑]\d{2,}\p{L}{0,2}|\p{Lu}{2,8}\d{2,5})$"
_MAY_BE_OTHER = (
    r"^(?i:iso|iec|din|ieee|ansi|itu|etsi|astm|eia|jis|rfc|ecma|smpte|cispr|fips|nema|atex|gost"
    r"|гост|дсту|ccitt|mil|en|bs|nf|ul|vde|csa|tia|ту|gb|fda|cfr|ip|ik|rs|usb|cat|mp|utf|wpa|pt|rohs"
    r"|ver|rev|rel|issue|edition|вер|ред|рев|ausgabe|stand|firmware|software|hardware|fw|sw|hw"
    r"|driver|doc|manual|page|chap|sect|fig|tab|step|part|vol|app|annex|seite|kap|abb|pág|pag|стр"
    r"|рис|глава|psl|pav|jan|feb|f\x{e9}v|mar|m\x{e4}r|apr|avr|ma[iy]|jui?[nl]|aug|ao\x{fb}|sep"
    r"|o[ck]t|nov|d[e\x{e9}][cz]|usd|eur|gbp|jpy|chf|rub|uah|tel|fax|phone|mob|тел|ac|dc)"
)


def make_rule(thresholds: Mapping[str, Any]) -> Rule:
    """The rule for the workload's thresholds."""
    names = thresholds["product_names"]
    generic = frozenset(names["generic_words"])

    def check(shard: Shard) -> pl.DataFrame:
        items = shard.items.filter(pl.col("value").is_not_null()).select("row", "value")
        doubtful = items.filter(
            ~pl.col("value").str.contains(_PLAIN) | pl.col("value").str.contains(_MAY_BE_OTHER)
        )
        kinds = {value: kind_of(value) for value in doubtful["value"].unique()}
        wrong = [
            (row, f"looks like {kind}")
            for row, value in doubtful.iter_rows()
            if (kind := kinds[value]) is not None
        ]
        bare = doubtful.filter(~pl.col("value").str.contains(r"\p{N}"))
        wrong += [
            (row, "a word without a digit that is no product's name")
            for row in _no_names(shard, bare, generic, names["least_printed"])
        ]
        wrong += [(row, _TWICE) for row in _twice(items)]
        return (
            pl.DataFrame(wrong, schema={"row": pl.Int64, "note": pl.String}, orient="row")
            .unique(maintain_order=True)
            .select("row", field=pl.lit(_FIELD), note="note")
        )

    return Rule(
        id="identifier_kind", version=1, severity="review", check=check, family="identifiers"
    )


def kind_of(value: str) -> str | None:
    """What else than a model a printed code is, or None."""
    text = fold(value[:_LONGEST]).strip(" .,;:")
    for kind, pattern in _PATTERNS.items():
        if pattern.fullmatch(text):
            return kind
    return None


def in_title(value: str, title: str, generic: frozenset[str]) -> bool:
    """Does the title have the words of a name, more of them than a document's kind has?"""
    words, known = _words(value), _words(title)
    stands = any(known[at : at + len(words)] == words for at in range(len(known)))
    return stands and not all(word in generic for word in words)


def is_coined(value: str) -> bool:
    """Is a word written as no word of a language is: a capital after a small letter?"""
    return re.search(r"[^\W\d_A-ZÀ-ÞА-Я][A-ZÀ-ÞА-Я]", value) is not None


def printed_as_name(value: str, text: str, least: int) -> bool:
    """Does a text print the words `least` times or more, and always with capitals?"""
    words = re.findall(r"[^\W_]+", value)
    pattern = r"(?<!\w)" + r"[\W_]+".join(map(re.escape, words)) + r"(?!\w)"
    printed = [found.group() for found in re.finditer(pattern, text, re.IGNORECASE)]
    return len(printed) >= least and all(
        word[:1].isupper() for name in printed for word in re.findall(r"[^\W_]+", name)
    )


def _twice(items: pl.DataFrame) -> list[int]:
    """Rows with two identifiers that search holds for one."""
    several = items.filter(pl.len().over("row") > 1)
    if several.is_empty():
        return []
    folded = several.with_columns(
        folded=pl.Series([fold_identifier(value) for value in several["value"]], dtype=pl.String)
    )
    return folded.filter(pl.struct("row", "folded").is_duplicated())["row"].unique().to_list()


def _no_names(shard: Shard, bare: pl.DataFrame, generic: frozenset[str], least: int) -> list[int]:
    """Rows with a word for an identifier that no product is called by."""
    titled = bare.join(shard.values.select("row", "title"), on="row", maintain_order="left")
    wrong: list[int] = []
    doubtful: dict[int, list[str]] = {}
    for row, value, title in titled.iter_rows():
        if not in_title(value, title or "", generic):
            wrong.append(row)
        elif not is_coined(value):
            doubtful.setdefault(row, []).append(value)
    if doubtful:
        wrong += _seldom_printed(shard, doubtful, least)
    return wrong


def _seldom_printed(shard: Shard, doubtful: Mapping[int, list[str]], least: int) -> set[int]:
    """Of rows with words in capitals, those whose documents print one of them otherwise."""
    unproven = set(doubtful)
    for texts in shard.document_texts(pl.Series(sorted(doubtful), dtype=pl.Int64)):
        for (key,), pages in texts.group_by("row"):
            row = int(str(key))
            text = "\n".join(pages["text"])
            if all(printed_as_name(value, text, least) for value in doubtful[row]):
                unproven.discard(row)
    return unproven


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", fold(text))
