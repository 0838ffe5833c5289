"""Rule `description_supported`: a description says what its document says, in its language.

A description is a summary, so its words need not stand in one place; but its numbers must all stand
in the document, most of its words too, some of them in its own quotes. A description that is a
printed sentence is supported as it is. Most answers are settled by the pages that they quote; the
whole document is read only for the doubtful.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from pipeline_assets.workloads.foreign_matter import foreign_matter
from pipeline_assets.workloads.siblings import names_a_sibling
from pipeline_assets.workloads.text_folding import fold
from pipeline_assets.workloads.text_support import (
    Statement,
    has_short_words,
    has_stem,
    missing_numbers,
    out_of_context,
    read_statement,
    share_of_stems,
    stems,
)
from pipeline_assets.workloads.workload import Rule, Shard
from resources.language import detect_piece

MOST_DOCUMENTS = 1_000
"""Documents of a slice that are read whole: more of them doubtful is a fault of the model."""
_FIELD = "description"
_SCHEMA = {"row": pl.Int64, "note": pl.String}
_SENTENCES = re.compile(r"[.!?]\s+|[。！？]")
_CUT = r"^\s*[.,]?\p{N}|\p{N}[.,]?\s*$"
_LONG = 10  # signs of a sentence that nobody writes twice
_NO_LANGUAGE = frozenset({None, ""})
# Sentences that say that there is nothing to say.
_SAYS_NOTHING = (
    r"(?i)\bno (?:\w+ )?(?:description|information|text|content|details?)\b.{0,40}"
    r"|\b(?:not|never) (?:specified|provided|given|available|stated|described|mentioned)\b"
    r"|\b(?:document|text|manual|page)s? (?:does|do|did) not (?:\w+ )?(?:contain|provide|say"
    r"|specify|describe|state|give|include|mention)|\b(?:cannot|can ?not|could not|can't|unable to)"
    r" (?:be )?(?:determined?|read|extract(?:ed)?|access|summari[sz]ed?|provide)"
    r"|\bkeine (?:beschreibung|angaben?|information)|\bnicht (?:angegeben|vorhanden|verfügbar)"
    r"|\baucune (?:description|information)|\bpas de description|\bnon (?:spécifié|disponible)"
    r"|\bsin descripción|\bno (?:disponible|especificad[oa])|\bnessuna descrizione"
    r"|\bнет описания|\bописание отсутствует|\bне указан[оа]?\b|\bнемає опису|\bопис відсутній"
    r"|\bnėra aprašymo|\bbrak opisu|説明(?:は)?(?:なし|ありません)|无描述|没有描述|暂无"
)


@dataclass(frozen=True)
class _Asked:
    """A description that has to be compared with its document."""

    row: int
    text: str
    statement: Statement
    language: str | None
    languages: str


@dataclass(frozen=True)
class _Open:
    """What the quoted pages did not settle."""

    asked: _Asked
    on_pages: float
    missing: bool


def make_rule(thresholds: Mapping[str, Any]) -> Rule:
    """The rule for the workload's thresholds.

    Args:
        thresholds: `description_supported`: `least_words`; `least_quoted_words`, for quotes
            that share no word with it; of the words, `on_quoted_pages` that is
            enough by itself, or else `in_document` with `least_on_quoted_pages`.
    """
    limits = thresholds["description_supported"]

    def check(shard: Shard) -> pl.DataFrame:
        given = shard.values.filter(
            (pl.col("description_status") == "found") & pl.col("description").is_not_null()
        ).select("row", text=pl.col("description"))
        found = [
            foreign_matter(given.with_columns(pl.col("text").str.replace_all(r"[\r\n\t]", " "))),
            given.filter(pl.col("text").str.contains(_SAYS_NOTHING)).select(
                "row", note=pl.lit("says that there is no description")
            ),
            _repeating(given),
            _of_siblings(shard, given),
            _compared(shard, given, limits),
        ]
        return (
            pl.concat([part.cast({"row": pl.Int64}) for part in found])
            .unique()
            .sort("row", "note")
            .select("row", field=pl.lit(_FIELD), note="note")
        )

    return Rule(
        id="description_supported",
        version=1,
        severity="review",
        check=check,
        family="description",
    )


def _of_siblings(shard: Shard, given: pl.DataFrame) -> pl.DataFrame:
    """Those that name a sibling of the answer's own products, and none of these."""
    numbered = given.filter(pl.col("text").str.contains(r"\d")).join(
        shard.items.filter(pl.col("value").str.contains(r"\d")), on="row"
    )
    named = numbered.filter(pl.col("text").str.contains(pl.col("value"), literal=True))
    doubtful = (
        numbered.join(named, on="row", how="anti")
        .group_by("row", maintain_order=True)
        .agg(pl.col("text").first(), "value")
    )
    notes = [
        (row, "names another model of the family than the answer does")
        for row, text, names in doubtful.iter_rows()
        if names_a_sibling(text, names)
    ]
    return pl.DataFrame(notes, schema=_SCHEMA, orient="row")


def _repeating(given: pl.DataFrame) -> pl.DataFrame:
    several = given.filter(pl.col("text").str.contains(r"[.!?]\s+\S|[。！？]\s*\S"))
    notes = [(row, "says the same twice") for row, text in several.iter_rows() if _repeats(text)]
    return pl.DataFrame(notes, schema=_SCHEMA, orient="row")


def _repeats(text: str) -> bool:
    parts = (part.strip(" .!?") for part in _SENTENCES.split(text))
    sentences = [part for part in parts if len(part) > _LONG]
    return len(set(sentences)) < len(sentences)


def _compared(shard: Shard, given: pl.DataFrame, limits: Mapping[str, Any]) -> pl.DataFrame:
    # Where no quote stands, the rule about evidence has spoken.
    standing = shard.places.filter((pl.col("field") == _FIELD) & pl.col("start").is_not_null())
    doubtful = given.join(standing, on="row", how="semi").join(
        _printed(standing, given), on="row", how="anti"
    )
    if doubtful.is_empty():
        return pl.DataFrame(schema=_SCHEMA)
    notes: list[tuple[int, str]] = []
    still_open: list[_Open] = []
    quotes = _joined(shard.places.filter(pl.col("field") == _FIELD), pl.col("quote"))
    pages = _quoted_pages(shard, doubtful)
    for asked in _asked(shard, doubtful):
        folded = pages.get(asked.row, "")
        note = _own_note(asked, fold(quotes.get(asked.row, "")), limits)
        if note is not None:
            notes.append((asked.row, note))
            continue
        on_pages = share_of_stems(asked.statement.stems, folded)
        missing = missing_numbers(asked.statement, folded)
        if _seems_foreign(asked.statement, folded, limits) and (note := _language_note(asked)):
            notes.append((asked.row, note))
        elif missing or on_pages < limits["on_quoted_pages"]:
            still_open.append(_Open(asked, on_pages, missing))
    notes += _whole_documents(shard, still_open, limits)
    return pl.DataFrame(notes, schema=_SCHEMA, orient="row")


def _printed(standing: pl.DataFrame, given: pl.DataFrame) -> pl.DataFrame:
    """The rows whose description stands in one of its own quotes as it is.

    But those that begin or end with a number, which the page may print longer than the quote.
    """
    whole = given.filter(~pl.col("text").str.contains(_CUT))
    return (
        standing.join(whole, on="row")
        .filter(_flat("quote").str.contains(_flat("text"), literal=True))
        .select("row")
        .unique()
    )


def _flat(column: str) -> pl.Expr:
    return pl.col(column).str.to_lowercase().str.replace_all(r"\s+", " ").str.strip_chars()


def _asked(shard: Shard, doubtful: pl.DataFrame) -> Iterator[_Asked]:
    known = shard.records.select("row", "language", "languages")
    for row, text, language, languages in (
        doubtful.join(known, on="row", how="left", maintain_order="left")
        .select("row", "text", "language", "languages")
        .iter_rows()
    ):
        yield _Asked(row, text, read_statement(text), language, languages or "")


def _quoted_pages(shard: Shard, rows: pl.DataFrame) -> dict[int, str]:
    """The folded text of every page that the answer quotes, by row."""
    wanted = shard.places.filter("has_page").join(rows, on="row", how="semi").select("row", "page")
    texts = _joined(shard.page_texts(wanted.unique()), pl.col("text"))
    return {row: fold(text) for row, text in texts.items()}


def _joined(frame: pl.DataFrame, column: pl.Expr) -> dict[int, str]:
    texts = frame.group_by("row").agg(column.str.join("\n"))
    return dict(texts.iter_rows())


def _own_note(asked: _Asked, quoted: str, limits: Mapping[str, Any]) -> str | None:
    wanted = asked.statement.stems
    if len(wanted) < limits["least_words"]:
        return "says too little to be checked"
    if any(has_stem(stem, quoted) for stem in wanted):
        return None
    if len(stems(quoted)) >= limits["least_quoted_words"]:
        return None
    return _language_note(asked) or "its quotes share no word with it"


def _seems_foreign(statement: Statement, folded: str, limits: Mapping[str, Any]) -> bool:
    """Do most little words of the description not occur on the pages?"""
    return not has_short_words(statement.short, folded, limits["little_words"])


def _language_note(asked: _Asked) -> str | None:
    spoken = detect_piece(asked.text)
    allowed = {asked.language, *asked.languages.split()} - _NO_LANGUAGE
    if spoken is None or not allowed or spoken in allowed:
        return None
    return "is in another language than the document"


def _whole_documents(
    shard: Shard, still_open: list[_Open], limits: Mapping[str, Any]
) -> Iterator[tuple[int, str]]:
    by_row = {each.asked.row: each for each in still_open}
    if not by_row:
        return
    rows = pl.Series(sorted(by_row)[:MOST_DOCUMENTS], dtype=pl.Int64)
    seen: set[int] = set()
    for frame in shard.document_texts(rows):
        for row, text in _joined(frame, pl.col("text")).items():
            seen.add(row)
            yield from _document_notes(by_row[row], text, limits)
    for row in sorted(set(rows) - seen):
        yield row, "there is no text to compare it with"
    for row in sorted(set(by_row) - set(rows)):
        yield row, "says what the pages that it quotes do not say"


def _document_notes(each: _Open, text: str, limits: Mapping[str, Any]) -> Iterator[tuple[int, str]]:
    row, folded = each.asked.row, fold(text)
    if each.missing and (
        missing_numbers(each.asked.statement, folded) or out_of_context(each.asked.text, folded)
    ):
        yield row, "names a number or a model that the document does not have"
    if each.on_pages >= limits["on_quoted_pages"]:
        return
    in_document = share_of_stems(each.asked.statement.stems, folded)
    if in_document < limits["in_document"] or each.on_pages < limits["least_on_quoted_pages"]:
        yield row, _language_note(each.asked) or "says what the document does not say"
