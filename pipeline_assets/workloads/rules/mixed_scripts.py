"""Rule `mixed_scripts`: no word of a value passes for another by letters of another alphabet.

A Cyrillic or Greek letter that looks like a Latin one makes a value that reads right and is never
found again. A word that the document itself prints so is only noted, unless it is an identifier:
whoever searches for one types it in one alphabet.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

import polars as pl

from pipeline_assets.workloads.workload import Rule, Shard

# What reads as a Latin letter; µ and Ω beside Latin letters are units.
_LOOK_ALIKES = frozenset("АВЕЅІЈКМНОРСТУХаеѕіјкмнорстухԁԛԝһӀүѴѵЗԌΑΒΕΖΗΙΚΜΝΟΡΤΥΧαιοκνρυχγη")
_OTHER = r"[\p{Cyrillic}\p{Greek}]"
_MAY_MIX = rf"\p{{Latin}}[\p{{N}}\p{{P}}]*{_OTHER}|{_OTHER}[\p{{N}}\p{{P}}]*\p{{Latin}}"
_WORD = re.compile(r"[^\W_]+")
_JOINED = re.compile(r"\S+")
_SCHEMA = {"row": pl.Int64, "field": pl.String, "note": pl.String, "severity": pl.String}
_NOTE = "mixes letters that look alike, of different alphabets, in one word"


def make_rule(fields: Sequence[str], list_field: str) -> Rule:
    """The rule for a workload.

    Args:
        fields: columns of its values' frame that hold printed words.
        list_field: the field whose members are `Shard.items`; they are identifiers.
    """

    def check(shard: Shard) -> pl.DataFrame:
        values = pl.concat(
            [shard.values.select("row", field=pl.lit(name), value=name) for name in fields]
        )
        quotes = shard.places.filter(pl.col("start").is_null())
        items = shard.items.select("row", field=pl.lit(list_field), value="value")
        mixed = [
            *((row, field, _printed(shard, row, value)) for row, field, value in _mixed(values)),
            *((row, field, "review") for row, field, _ in _mixed(items, whole=True)),
            *((row, field, "review") for row, field, _ in _mixed(_as_values(quotes))),
        ]
        return (
            pl.DataFrame(
                [(row, field, _NOTE, severity) for row, field, severity in mixed],
                schema=_SCHEMA,
                orient="row",
            )
            .sort("row", "field", "severity", descending=[False, False, True])
            .unique(["row", "field"], keep="first", maintain_order=True)
        )

    return Rule(id="mixed_scripts", version=1, severity="review", check=check, family="evidence")


def mixes(text: str, *, whole: bool = False) -> list[str]:
    """The words of a text that mix look-alikes of different alphabets.

    Args:
        text: any text.
        whole: are parts that a hyphen, dot or stroke joins one word?
    """
    words = (_JOINED if whole else _WORD).findall(text)
    return [word for word in words if _is_mixed(word)]


def _is_mixed(word: str) -> bool:
    latin = any(
        character.isalpha() and unicodedata.name(character, "").startswith("LATIN")
        for character in word
    )
    return latin and not _LOOK_ALIKES.isdisjoint(word)


def _mixed(values: pl.DataFrame, *, whole: bool = False) -> list[tuple[int, str, str]]:
    doubtful = values.filter(pl.col("value").str.contains(_MAY_MIX))
    return [row for row in doubtful.iter_rows() if mixes(row[2], whole=whole)]


def _as_values(quotes: pl.DataFrame) -> pl.DataFrame:
    return quotes.select("row", "field", value="quote")


def _printed(shard: Shard, row: int, value: str) -> str:
    """The severity: is every mixed word printed just so in a quote that stands?"""
    quotes = shard.places.filter((pl.col("row") == row) & pl.col("start").is_not_null())["quote"]
    cited = "\n".join(quotes)
    return "note" if all(word in cited for word in mixes(value)) else "review"
