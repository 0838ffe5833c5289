"""The slice of a document: the few groups that quality and comparisons are told by.

Belongs here: the classes, the one function that names them, and reading its facts. Does not
belong here: what is counted by slice (`quality`, `publish`).

A slice is named from what the parser told of the document, so it is the same under every prompt
and model. There are at most 37 of them: more would leave each with too few documents to say
anything of.
"""

from __future__ import annotations

import polars as pl
from sqlalchemy import Connection

from resources.ledger.engine import Ledger

SLICE_FACTS = {
    "language": pl.String,
    "page_count": pl.Int64,
    "notes": pl.String,
    "partial": pl.Int64,
}
"""Columns of `parses` that a slice is named from; all null where there is no parse."""
LANGUAGES = ("de", "en", "es", "fr", "it", "ja", "pt", "zh")
"""Languages with slices of their own; the rest are `other`, or `unknown`."""
SHORT_PAGES, MEDIUM_PAGES = 5, 40
"""Most pages of a short and of a medium document: a leaflet, a usual manual, a book."""
UNPARSED = "unparsed"
"""The slice of a document that has no parse under the version's parser."""


def slices(facts: pl.DataFrame) -> pl.Series:
    """The slice of each row of a frame with the columns `SLICE_FACTS`.

    `<language>/<length>/text`, such as `de/short/text`; `any/<length>/ocr` where a page was read
    by OCR and `any/<length>/partial` where text is known to be missing: what is wrong with those
    is seldom a matter of their language.
    """
    language = (
        pl.when(pl.col("language").is_null() | (pl.col("language") == ""))
        .then(pl.lit("unknown"))
        .when(pl.col("language").is_in(LANGUAGES))
        .then("language")
        .otherwise(pl.lit("other"))
    )
    length = (
        pl.when(pl.col("page_count") <= SHORT_PAGES)
        .then(pl.lit("short"))
        .when(pl.col("page_count") <= MEDIUM_PAGES)
        .then(pl.lit("medium"))
        .otherwise(pl.lit("long"))
    )
    origin = (
        pl.when(pl.col("partial") == 1)
        .then(pl.lit("partial"))
        .when(pl.col("notes").str.split(" ").list.contains("ocr"))
        .then(pl.lit("ocr"))
        .otherwise(pl.lit("text"))
    )
    named = pl.concat_str(
        pl.when(origin == "text").then(language).otherwise(pl.lit("any")),
        length,
        origin,
        separator="/",
    )
    unparsed = pl.col("page_count").is_null()
    return facts.select(
        slice=pl.when(unparsed).then(pl.lit(UNPARSED)).otherwise(named).cast(pl.String)
    )["slice"]


def slices_of_version(
    connection: Connection, ledger: Ledger, version_no: int, parser_key: str
) -> pl.DataFrame:
    """The slice of every record of a version: record_no, document_no, slice; by record."""
    found = ledger.dialect.fetch(
        connection,
        "SELECT r.record_no, r.document_no, p.language, p.page_count, p.notes, p.partial "
        "FROM records r LEFT JOIN parses p ON p.checksum = r.checksum AND p.parser_key = ? "
        "WHERE r.version_no = ? ORDER BY r.record_no",
        {"record_no": pl.Int64, "document_no": pl.Int64, **SLICE_FACTS},
        (parser_key, version_no),
    )
    return found.select("record_no", "document_no", slice=slices(found))


def slices_of_records(
    connection: Connection, ledger: Ledger, records: pl.Series, parser_key: str
) -> pl.DataFrame:
    """The slice of some records: record_no, slice.

    Args:
        connection: a write transaction, which may stage the records.
        ledger: the ledger.
        records: their numbers.
        parser_key: whose parses they are named from.
    """
    ledger.dialect.stage(
        connection, "stage_sliced", pl.DataFrame({"record_no": records.cast(pl.Int64)})
    )
    found = ledger.dialect.fetch(
        connection,
        "SELECT r.record_no, p.language, p.page_count, p.notes, p.partial "
        "FROM stage_sliced s JOIN records r ON r.record_no = s.record_no "
        "LEFT JOIN parses p ON p.checksum = r.checksum AND p.parser_key = ?",
        {"record_no": pl.Int64, **SLICE_FACTS},
        (parser_key,),
    )
    return found.select("record_no", slice=slices(found))
