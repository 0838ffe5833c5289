"""The values of fields that stand for a record: published, corrected, or judged and staged.

Belongs here: where they are read from, in that order. Does not belong here: which entry and which
attempt stand for a record (`load.py`), and how content is laid out (`workloads/fields.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

import polars as pl

from pipeline_assets.workloads.fields import value_columns
from pipeline_assets.workloads.workload import PublishedField
from resources.context import Context
from resources.contracts import STAGING, scan_frame
from resources.ledger.frames import PolarsType

_CONTENT_SCHEMA = {"judged_no": pl.Int64, "content": pl.String}


class Rows(Protocol):
    """What contents are read with; `load.Book` is one."""

    @property
    def context(self) -> Context:
        """The open resources."""
        ...

    def rows(
        self,
        sql: str,
        schema: Mapping[str, PolarsType],
        column: str,
        numbers: pl.Series,
        *,
        parameters: Sequence[object] = (),
        after: str = "",
    ) -> pl.DataFrame:
        """The rows of a statement that ends in WHERE, for rows whose `column` is one of these."""
        ...


def field_values(
    book: Rows, records: pl.DataFrame, fields: Mapping[str, PublishedField]
) -> pl.DataFrame:
    """record_no and the values of some fields, each in the column that `fields` names.

    Args:
        book: what is read from.
        records: record_no, entry_no (null: never published), judged_no (null: never judged).
        fields: column → field.

    Returns:
        Text, or a list of texts; null where a single value is absent, and where a record has no
        answer yet, or none any more since it was erased. No row for a record without content.

    Raises:
        ArtifactMissing, ContractRefused: staged values cannot be read.
    """
    contents = _contents(book, records).filter(pl.col("content").str.len_bytes() > 0)
    values = value_columns(contents["content"], list(fields.values()))
    named = values.select(pl.col(field.name).alias(column) for column, field in fields.items())
    return pl.concat([contents.select("record_no"), named], how="horizontal")


def _contents(book: Rows, records: pl.DataFrame) -> pl.DataFrame:
    """record_no, content; no row for a record without an answer."""
    published = book.rows(
        "SELECT entry_no, content FROM archive_entries WHERE ",
        {"entry_no": pl.Int64, "content": pl.String},
        "entry_no",
        records["entry_no"],
    )
    of_entries = records.join(published, on="entry_no").select("record_no", "content")
    rest = records.filter(pl.col("entry_no").is_null() & pl.col("judged_no").is_not_null())
    if rest.is_empty():
        return of_entries
    corrected = book.rows(
        "SELECT attempt_no, corrected_content FROM reviews WHERE decision = 'correct' AND ",
        _CONTENT_SCHEMA,
        "record_no",
        rest["record_no"],
        after=" ORDER BY decided_at, review_no",
    ).unique("judged_no", keep="last")
    staged = _staged(book, rest.join(corrected, on="judged_no", how="anti")["judged_no"])
    judged = pl.concat([corrected, staged])
    return pl.concat([of_entries, rest.join(judged, on="judged_no").select("record_no", "content")])


def _staged(book: Rows, attempts: pl.Series) -> pl.DataFrame:
    """judged_no, content of judged attempts as their batch, or a set of late answers, has them."""
    parts = [pl.DataFrame(schema=_CONTENT_SCHEMA)]
    for artifact in _artifacts(book, attempts) if attempts.len() else ():
        parts.append(
            scan_frame(STAGING, book.context.artifacts.require("frame", artifact))
            .filter(pl.col("attempt_no").is_in(attempts.implode()))
            .select(judged_no="attempt_no", content="content")
            .collect()
        )
    # What came late is staged once more, with its set; the set is looked at first.
    return pl.concat(parts).unique("judged_no", keep="first", maintain_order=True)


def _artifacts(book: Rows, attempts: pl.Series) -> Iterator[str]:
    """Staging frames that may hold these attempts: those of late answers, then their batches."""
    late = book.rows(
        "SELECT DISTINCT w.late_no, w.staging_artifact FROM late_answers w "
        "JOIN late_results l ON l.batch_no = w.batch_no AND l.used = 1 "
        "WHERE w.staging_artifact IS NOT NULL AND ",
        {"late_no": pl.Int64, "artifact": pl.String},
        "l.attempt_no",
        attempts,
    )
    # The newest set first: a late answer that came twice is judged as it came last.
    yield from late.unique("late_no").sort("late_no", descending=True)["artifact"]
    batch = book.rows(
        "SELECT DISTINCT b.batch_no, b.staging_artifact FROM attempts a "
        "JOIN batches b ON b.batch_no = a.batch_no WHERE b.staging_artifact IS NOT NULL AND ",
        {"batch_no": pl.Int64, "artifact": pl.String},
        "a.attempt_no",
        attempts,
    )
    yield from batch.unique("batch_no").sort("batch_no")["artifact"]
