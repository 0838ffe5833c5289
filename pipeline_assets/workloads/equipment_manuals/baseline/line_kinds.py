"""What sort of line a printed line is, judged by its own words alone.

Covers carry much that is no title: addresses, links, dates, revisions, numbers of the paper itself.
Rules about several lines together belong to the modules that find fields.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal

from pipeline_assets.workloads.equipment_manuals.baseline import vocabulary

Kind = Literal[
    "heading",  # short, title-like
    "prose",  # a sentence or a piece of one
    "item",  # numbered or bulleted
    "contents_heading",
    "contents_entry",
    "section_heading",  # "Introduction", "Safety instructions"
    "link",
    "stamp",
    "file_name",
    "phone",
    "address",
    "company",
    "copyright",
    "date",
    "revision",
    "byline",
    "page_number",
    "document_number",
    "language_name",  # "English", on a cover
    "marks",  # no letters or digits to speak of
]

_LINK = re.compile(r"https?://|www\.|[\w.+-]+@[\w-]+\.\w|\b[\w-]+\.(?:com|org|net|info)\b", re.I)
_STAMP = re.compile(
    r"^(?:downloaded|printed|provided|scanned|hosted|distributed|heruntergeladen|téléchargé"
    r"|descargado|скачано)(?!\w)|copyrighted by",
    re.I,
)
_FILE_NAME = re.compile(r"^\S+\.(?:pdf|docx?|indd|qxd|fm|odt|html?|dwg|cdr|p65|book|xml)$", re.I)
_PHONE = re.compile(
    r"^(?:(?:tel|fax|phone|telephone|telefon|telefono|teléfono|téléphone|mobile|hotline|тел|факс"
    r"|телефон|twx|telex|faks|faksas|電話|电话|传真)\b.{0,12}\d"
    r"|(?=[+(]|(?:\D*\d){9})[+(]?\d[\d ()/.+-]{7,}$)",
    re.I,
)
_ADDRESS = re.compile(
    r"^(?=.*\d).*?(?:\bP\.? ?O\.? ?Box\b"
    r"|\b(?:[A-Z]{1,3}-\d{5}|(?:A|B|CH|DK|H|L|LV|N|NL|SI)-\d{4}) [^\W\d_]{3,}"
    r"|\b[A-Z]{2} \d{5}(?:-\d{4})?$"
    r"|\b\d+\w? (?:[\w.]+ ){0,3}(?:street|st\.|avenue|ave\.?|road|rd\.?|drive|dr\.|lane|blvd\.?"
    r"|boulevard|way|court|parkway|highway)(?!\w)"
    r"|\w*(?:str\.|straße|strasse|gasse) ?\d+|\b(?:rue|via|calle|avenida|rua|plaza|ul\.|ulica) .*\d"
    r"|(?:^|\s)(?:ул|вул|просп?|пр)\. .*\d|\b(?:g\.|gatvė|pr\.) \d+|\d+号)",
    re.I,
)
_COMPANY = re.compile(
    r"(?<!\w)(?:co\.?,? ?ltd|ltd|limited|gmbh|inc|incorporated|corp|corporation|llc|plc|s\.?a\.?s?"
    r"|s\.? ?r\.? ?l|s\.?p\.?a|ag|kg|uab|ооо|оао|зао|ао|тов|oy|oyj|a/s|b\.?v|n\.?v|kft|s\.?r\.?o"
    r"|sp\. z o\.? ?o|pty|company|laboratories|gesellschaft)\.?[”\"»]?$"
    r"|^(?:uab|ооо|оао|зао|тов|пао) ?[„“\"«]|株式会社|有限公司|주식회사",
    re.I,
)
_COPYRIGHT = re.compile(
    r"©|\(c\) ?\d{4}|\bcopyright\b|all rights reserved|alle rechte|tous droits|reservados"
    r"|diritti riservati|все права|усі права|版权所有|著作権",
    re.I,
)
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?|januar|februar|märz|mai|juni|juli"
    r"|okt(?:ober)?|dez(?:ember)?|janvier|février|mars|avril|juin|juillet|août|septembre|octobre"
    r"|novembre|décembre|enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre"
    r"|noviembre|diciembre|gennaio|febbraio|aprile|maggio|giugno|luglio|settembre|ottobre|dicembre"
    r"|janeiro|fevereiro|março|maio|junho|julho|setembro|outubro|novembro|dezembro|januari|maart"
    r"|mei|augustus|styczeń|luty|marzec|kwiecień|maj|czerwiec|lipiec|sierpień|wrzesień|październik"
    r"|listopad|grudzień|sausio|vasario|kovo|balandžio|gegužės|birželio|liepos|rugpjūčio|rugsėjo"
    r"|spalio|lapkričio|gruodžio|январ[ья]|феврал[ья]|марта?|апрел[ья]|ма[йя]|июн[ья]|июл[ья]"
    r"|августа?|сентябр[ья]|октябр[ья]|ноябр[ья]|декабр[ья]|січ(?:ень|ня)|лют(?:ий|ого)"
    r"|берез(?:ень|ня)|квіт(?:ень|ня)|трав(?:ень|ня)|черв(?:ень|ня)|лип(?:ень|ня)|серп(?:ень|ня)"
    r"|верес(?:ень|ня)|жовт(?:ень|ня)|листопада?|груд(?:ень|ня))"
)
_DATE_TOKENS = re.compile(
    rf"(?<!\w)(?:{_MONTH}\.?|\d{{1,4}}(?:st|nd|rd|th)?|date|datum|fecha|data|дата|as of|de|del|of"
    r"|printed in \w+(?: \w+)?|год|года|року|г|р|m|d)(?!\w)|\d{1,4}[年月日]|[.,/:;()\s–-]",
    re.I,
)
_YEAR_OR_DAY = re.compile(
    r"(?<!\d)(?:19|20)\d\d(?!\d)|(?<!\d)\d{1,2}[./-]\d{1,2}[./-]\d{2,4}(?!\d)"
)
_REVISION = re.compile(
    r"^(?:(?:document |doc\.? |manual |firmware |software |fw |sw )?(?:rev|revision|version|ver"
    r"|vers"
    r"|issue|edition|release|stand|ausgabe|auflage|édition|edición|versión|versione|edizione|wersja"
    r"|wydanie|verze|versija|leidimas|версия|версія|редакция|редакція|издание|видання|ред|päivitys"
    r"|last (?:updated?|modified)|updated|modified|preliminary|draft)(?!\w)\W{0,3}"
    r"(?=.{0,40}$)(?:.*\d|[A-Z]\b|$)|v\.? ?\d+(?:\.\d+)*[a-z]?$|[\w-]+ edition(?!\w).*)"
    r"|^(?:第[\d一二三四五六七八九十]+版|版本|バージョン|改訂)",
    re.I,
)
_BYLINE = re.compile(
    r"^(?:by(?! the )|von|par|por|di|authors?|autor|auteur|автор|written by|prepared by|edited by"
    r"|translated by|the .{1,30} team)(?!\w)",
    re.I,
)
_LANGUAGE_NAME = re.compile(
    r"^(?:english|deutsch|german|français|francais|french|español|espanol|spanish|italiano|italian"
    r"|português|nederlands|dutch|svenska|dansk|norsk|suomi|polski|česky|čeština|magyar|română"
    r"|русский|українська|lietuvių|latviešu|eesti|türkçe|ελληνικά|日本語|中文|한국어|简体中文)$",
    re.I,
)
_PAGE_NUMBER = re.compile(
    r"^\W*(?:(?:page|seite|pagina|página|стр|puslapis|pag|p)\.? ?)?(?:\d{1,4}|[ivxl]{1,6})"
    r"(?: ?(?:of|/|von|de|sur|из|з) ?\d{1,4})?\W*$",
    re.I,
)
_DOCUMENT_NUMBER = re.compile(
    r"^(?:(?:document|doc|part|order|ordering|manual|publication|pub|catalog(?:ue)?|item|art"
    r"|artikel"
    r"|bestell|dokument|sach|form|literature|lit|drawing|print|stock|code|réf(?:érence)?|ref|pn|p/n"
    r"|isbn|issn|s/n|fcc id|ic)(?:[- ]?(?:no|nr|number|num|nummer|n°|#|code|id))?\s*[.:#№]+"
    r"|(?:no|nr|n°|№|#)\.? ?\d)|^\d[\d ./()-]{4,}[A-Z]?$"
    r"|^[A-ZА-Я]{2,4}\d?\.\d{3,6}\.\d{3}(?:\D.{0,12})?$",
    re.I,
)
_ITEM = re.compile(
    r"^(?:\d{1,2}(?:\.\d{1,2})*\s*[.)、）．](?!\d)|\d{1,2}(?:\.\d{1,2}){1,3}\s|[ⅠⅡⅢⅣIVX]{1,4}[.)]\s"
    r"|[A-Za-zА-Я][.)]\s|[(（](?:\d{1,2}|[a-zア-ンа-я])[)）]|[•▪■●◦○◆►▶✓✔\uf000-\uf0ff*·–—-]\s"
    r"|[①-⑳]|[一二三四五六七八九十]{1,2}、|第[\d一二三四五六七八九十]+[章节])"
)
_NUMBERED = re.compile(r"^\d{1,2}\s[^\W\d_]")
_ENTRY = re.compile(r"(?:[.·…_]\s?){4,}\s*\S{0,8}$|[-–_]{5,}\s*\d*$|\S\s+\d+(?:[.-]\d+)*\s*\.{2,}")
_SENTENCE_END = re.compile(r"[.!?;,:。！？；，、]$")
_TWO_SENTENCES = re.compile(r"[^\W\d_]{2}[.!?] [^\Wa-z\d_]")
_LETTER_RUN = re.compile(r"[^\W\d_]+")
_DENSE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")

# Code points; some questions take time that grows with the square of the length.
_LONGEST_HEADING = 300
# Words that make a line running text: of any kind, of a line nearly all in lower case, of a line
# that ends in some punctuation, of one that ends in a full stop, of one among running text.
_PROSE_WORDS = 12
_LONG_WORDS = 8
_CLAUSE_WORDS = 7
_SENTENCE_WORDS = 5
_CONTEXT_WORDS = 4
_DENSE_PROSE = 24  # signs; headings in Chinese and Japanese are shorter
_DENSE_MIXED = 12  # of a line of at least this length, the rest being Latin names and figures:
_MIXED_LENGTH = 32


def kind_of(text: str) -> Kind:
    """The sort of a line without outer white space; the first question that fits decides."""
    if len(text) > _LONGEST_HEADING:
        return "prose"
    for kind, fits in _QUESTIONS:
        if fits(text):
            return kind
    return "heading"


def is_prose(text: str) -> bool:
    """Whether a line reads like running text by itself: a sentence, or long and in lower case."""
    if not text.isascii():
        dense = len(_DENSE.findall(text))
        if dense >= _DENSE_PROSE or (dense and text.endswith("。")):
            return True
        if dense >= _DENSE_MIXED and len(text) >= _MIXED_LENGTH:
            return True
    words = _LETTER_RUN.findall(text)
    if len(words) < _SENTENCE_WORDS:
        return False
    lower = sum(word[0].islower() for word in words) / len(words)
    if lower < 0.4:  # German writes its nouns with a capital
        return False
    if len(words) >= _CLAUSE_WORDS and (text[-1] in ".!?" or _TWO_SENTENCES.search(text)):
        return True
    if lower < 0.5:
        return False
    if len(words) >= _PROSE_WORDS or (len(words) >= _CLAUSE_WORDS and _SENTENCE_END.search(text)):
        return True
    if text[-1] in ".!?" and lower >= 0.6:
        return True
    return len(words) >= _LONG_WORDS and lower >= 0.75 and not vocabulary.names_kind(text)


def may_be_prose(text: str) -> bool:
    """Whether a line could belong to running text, if the lines around it do."""
    words = len(_LETTER_RUN.findall(text))
    return words >= _CONTEXT_WORDS and lower_case_share(text) >= 0.5


def lower_case_share(text: str) -> float:
    """The share of the words of `text` that begin in lower case; 0 when it has no words."""
    words = _LETTER_RUN.findall(text)
    return sum(word[0].islower() for word in words) / len(words) if words else 0.0


def _is_marks(text: str) -> bool:
    alphanumeric = sum(map(str.isalnum, text))
    return alphanumeric == 0 or (alphanumeric == 1 and text.isascii())


def _is_item(text: str) -> bool:
    # "(c) 1999 ..." looks like an item of a list.
    return _ITEM.match(text) is not None and _COPYRIGHT.match(text) is None


def _is_date(text: str) -> bool:
    return _YEAR_OR_DAY.search(text) is not None and not _DATE_TOKENS.sub("", text)


def _matching(pattern: re.Pattern[str]) -> Callable[[str], bool]:
    return lambda text: pattern.search(text) is not None


# Running text comes early: a sentence may well have a link, a date or a company in it.
_QUESTIONS: tuple[tuple[Kind, Callable[[str], bool]], ...] = (
    ("page_number", _matching(_PAGE_NUMBER)),
    ("marks", _is_marks),
    ("item", _is_item),
    ("contents_entry", _matching(_ENTRY)),
    ("prose", is_prose),
    ("contents_heading", vocabulary.is_contents_heading),
    ("section_heading", vocabulary.is_section_heading),
    ("stamp", _matching(_STAMP)),
    ("link", _matching(_LINK)),
    ("file_name", _matching(_FILE_NAME)),
    ("copyright", _matching(_COPYRIGHT)),
    ("date", _is_date),
    ("phone", _matching(_PHONE)),
    ("document_number", _matching(_DOCUMENT_NUMBER)),
    ("revision", _matching(_REVISION)),
    ("company", _matching(_COMPANY)),
    ("address", _matching(_ADDRESS)),
    ("byline", _matching(_BYLINE)),
    ("language_name", _matching(_LANGUAGE_NAME)),
    ("item", _matching(_NUMBERED)),
)
