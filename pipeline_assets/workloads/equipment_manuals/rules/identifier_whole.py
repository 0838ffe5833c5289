"""Rule `identifier_whole`: an identifier is not a piece of a longer one on the page.

A quote may be cut as short as the value, so what is compared is the quote with what the page
prints right before and after it.
"""

from __future__ import annotations

import re
import unicodedata

import polars as pl

from pipeline_assets.workloads.workload import Rule, Shard

_FIELD = "product_identifiers"
_AROUND = 24
"""Code points of the page beside a quote: no joint of a part number is further away."""
_NOTE = "is a piece of a longer number on the page"
_SCHEMA = {"row": pl.Int64, "field": pl.String, "note": pl.String}
# Chinese, Japanese and Korean signs set no space, and so end a number.
_SIGN = r"(?![\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af])[^\W_]"
_BEFORE = re.compile(rf"{_SIGN}\Z|[^\W_][-_.+]\Z")
# "-B2" and "-XL" go on with the number; "-Series" and a slash before another model do not.
_AFTER = re.compile(
    rf"{_SIGN}|[-_.]\d|[-_][A-Z0-9]{{1,4}}(?![^\W_])|\+(?!\s?[^\W_])|/\d{{1,2}}(?!\d)"
)
_DASHES = str.maketrans(dict.fromkeys("\u2010\u2011\u2212\ufe63\uff0d\u00ad", "-"))


def check(shard: Shard) -> pl.DataFrame:
    """A finding for every record with an identifier that no quote's surroundings have whole."""
    items = shard.items.filter(pl.col("value").is_not_null()).select("row", "item", "value")
    quoted = shard.places.filter((pl.col("field") == _FIELD) & pl.col("start").is_not_null())
    if items.is_empty() or quoted.is_empty():
        return pl.DataFrame(schema=_SCHEMA)
    seen = _surroundings(shard, quoted).join(items, on=["row", "item"])
    doubtful = (
        seen.with_columns(
            whole=pl.format(" {} ", "around").str.contains(pl.format(" {} ", "value"), literal=True)
        )
        .group_by("row", "item")
        .agg(pl.col("whole").any(), pl.col("value").first(), pl.col("around"))
        .filter(~pl.col("whole"))
    )
    cut = {
        row
        for row, value, texts in doubtful.select("row", "value", "around").iter_rows()
        if is_cut(value, texts)
    }
    return pl.DataFrame({"row": pl.Series(sorted(cut), dtype=pl.Int64)}).select(
        "row", field=pl.lit(_FIELD), note=pl.lit(_NOTE)
    )


def is_cut(value: str, texts: list[str]) -> bool:
    """Does the value stand in the texts, and nowhere as a whole?"""
    wanted = re.compile(
        r"\s*".join(map(re.escape, _plain(value).split())).replace(r"\-", "-"), re.IGNORECASE
    )
    stands = False
    for text in map(_plain, texts):
        for match in wanted.finditer(text):
            stands = True
            before, after = text[: match.start()], text[match.end() :]
            if not (_BEFORE.search(before) or _AFTER.match(after)):
                return False
    return stands


def _plain(text: str) -> str:
    """As printed but for compatibility forms and the kinds of hyphens; letter case stays."""
    return unicodedata.normalize("NFKC", text.translate(_DASHES))


def _surroundings(shard: Shard, quoted: pl.DataFrame) -> pl.DataFrame:
    """row, item, around: each quote with what its page prints beside it."""
    texts = shard.page_texts(quoted.select("row", "page").unique())
    first = (pl.col("start") - _AROUND).clip(lower_bound=0)
    return quoted.join(texts, on=["row", "page"]).select(
        "row", "item", around=pl.col("text").str.slice(first, pl.col("end") - first + _AROUND)
    )


RULE = Rule(id="identifier_whole", version=1, severity="review", check=check, family="identifiers")
