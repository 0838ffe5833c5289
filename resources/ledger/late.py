"""Late results in the ledger: lines that came back after their attempt's disposition was written.

Belongs here: storing them, and the answers of those that are used. Does not belong here: the
decision which of them are (`collect/late.py` of the pipeline).
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl
from sqlalchemy import Connection, insert, select, update

from resources.ledger.engine import Ledger
from resources.ledger.schema import batches, late_answers, late_results


@dataclass(frozen=True)
class LateAnswers:
    """Answers of late results that are used, as they are judged and published together."""

    late_no: int
    batch_no: int
    records: int
    collected_artifact: str
    staging_artifact: str | None


def store_late_results(
    connection: Connection, ledger: Ledger, batch_no: int, late: pl.DataFrame, at: str
) -> None:
    """Add late results; `used` is a boolean column, the others are the table's."""
    rows = late.select(
        "result_file_no",
        "line",
        "attempt_no",
        "record_no",
        "disposition",
        "failure_class",
        "diagnostics",
        "model_revision",
        "input_tokens",
        "output_tokens",
        "cached_tokens",
        batch_no=pl.lit(batch_no, dtype=pl.Int64),
        used=pl.col("used").cast(pl.Int64),
        recorded_at=pl.lit(at),
    )
    ledger.dialect.load(connection, late_results, rows)


def store_late_answers(
    connection: Connection, batch_no: int, records: int, artifact: str, at: str
) -> None:
    """Add a set of late answers that is to be judged."""
    connection.execute(
        insert(late_answers).values(
            batch_no=batch_no, records=records, collected_artifact=artifact, collected_at=at
        )
    )


def find_late_answers(ledger: Ledger, version_no: int, *, judged: bool) -> list[LateAnswers]:
    """Sets of late answers of a version, judged or not, oldest first."""
    table = late_answers.c
    staged = table.staging_artifact
    with ledger.read() as connection:
        rows = connection.execute(
            select(late_answers)
            .join(batches, batches.c.batch_no == table.batch_no)
            .where(
                batches.c.version_no == version_no,
                staged.is_not(None) if judged else staged.is_(None),
            )
            .order_by(table.late_no)
        )
        return [
            LateAnswers(*(getattr(row, name) for name in LateAnswers.__dataclass_fields__))
            for row in rows
        ]


def staged_of(connection: Connection, late_no: int) -> str | None:
    """The staging artifact of a set of late answers now; None while it is not judged."""
    return connection.execute(
        select(late_answers.c.staging_artifact).where(late_answers.c.late_no == late_no)
    ).scalar_one()


def set_staged(connection: Connection, late_no: int, **artifacts: str | None) -> None:
    """A set of late answers is judged: its columns staging_artifact, places_artifact, ..."""
    connection.execute(
        update(late_answers).where(late_answers.c.late_no == late_no).values(**artifacts)
    )
