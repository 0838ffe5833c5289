"""Rule `language_quoted`: the quotes of the language are written in it.

Most sentences hold small words that only their language has together; only a quote without them
is given to the detector. What is too short to tell is not held against the answer.
"""

from __future__ import annotations

import re

import polars as pl

from pipeline_assets.workloads.workload import Rule, Shard
from resources import language as detector

_ENOUGH = 60
"""Letters below which the detector is too often wrong on one printed line: 3 in 100 at 40."""
_ENOUGH_SCRIPT = 12
"""Letters from which the alphabet alone tells."""
_SCHEMA = {"row": pl.Int64, "field": pl.String, "note": pl.String}
_NOTE = "the quotes are in another language"

_SMALL_WORDS = {
    "en": "the|of|and|is|are|this|for|with|to|that|be|must|when",
    "de": "der|die|und|ist|das|nicht|mit|für|den|ein|eine|werden|sie|auf",
    "fr": "le|les|est|des|une|pour|dans|du|vous|avec|et|sont|cette",
    "es": "el|los|es|las|una|para|por|con|del|y|que|esta",
    "it": "il|di|è|della|per|che|con|del|una|gli|sono|questo",
    "nl": "het|een|van|de|en|voor|met|niet|zijn|dit|wordt",
    "pt": "os|uma|para|não|com|do|da|em|é|esta|são",
    "pl": "jest|się|nie|na|do|oraz|dla|przez|są|lub",
    "ru": "и|в|на|не|для|с|по|от|при|это|или",
    "uk": "і|та|в|на|не|для|з|що|від|або|це",
    "lt": "ir|yra|su|kad|arba|nuo|iki|būti|šis",
}
"""Of languages, words of two of which make a sentence theirs."""
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f]")
_CYRILLIC = re.compile(r"[\u0400-\u04ff]")
_SCRIPTS = {
    **dict.fromkeys(("be", "bg", "mk", "ru", "uk"), _CYRILLIC),
    "ar": re.compile(r"[\u0600-\u06ff]"),
    "el": re.compile(r"[\u0370-\u03ff]"),
    "he": re.compile(r"[\u0590-\u05ff]"),
    "hi": re.compile(r"[\u0900-\u097f]"),
    "ja": re.compile(r"[\u3040-\u30ff\u3400-\u9fff]"),
    "ko": re.compile(r"[\uac00-\ud7af]"),
    "sr": re.compile(r"[A-Za-z\u0400-\u04ff]"),
    "th": re.compile(r"[\u0e00-\u0e7f]"),
    "zh": re.compile(r"[\u3400-\u9fff]"),
}
"""Languages of an alphabet of their own; any other is taken for one in Latin letters."""
_SAME = {"no": "nb", "nn": "nb"}
"""Codes that the detector has one model for."""


def check(shard: Shard) -> pl.DataFrame:
    """A finding for every record none of whose longer quotes is in the language it gives."""
    quotes = (
        shard.evidence.filter(pl.col("field") == "language")
        .join(
            shard.values.filter(pl.col("language_status") == "found").select("row", "language"),
            on="row",
        )
        .filter(pl.col("quote").str.len_chars() >= 2)
        .group_by("row", "language", maintain_order=True)
        .agg(quotes=pl.col("quote").str.join("\n"))
    )
    doubtful = pl.concat(
        [_without_small_words(part, str(code)) for (code,), part in quotes.group_by("language")]
        or [quotes]
    )
    wrong = [
        row
        for row, code, text in doubtful.select("row", "language", "quotes").iter_rows()
        if _is_other(text, code)
    ]
    return pl.DataFrame({"row": pl.Series(sorted(wrong), dtype=pl.Int64)}).select(
        "row", field=pl.lit("language"), note=pl.lit(_NOTE)
    )


def _without_small_words(quotes: pl.DataFrame, code: str) -> pl.DataFrame:
    words = _SMALL_WORDS.get(code)
    if words is None:
        return quotes
    return quotes.filter(
        pl.col("quotes").str.to_lowercase().str.count_matches(rf"\b(?:{words})\b") < 2
    )


def _is_other(text: str, code: str) -> bool:
    weight = detector.weight(text)
    if weight >= _ENOUGH_SCRIPT and _SCRIPTS.get(code, _LATIN).search(text) is None:
        return True
    if weight < _ENOUGH:
        return False
    detected = detector.detect_piece(text)
    return detected is not None and detected != _SAME.get(code, code)


RULE = Rule(id="language_quoted", version=1, severity="review", check=check, family="language")
