"""Reviews in numbers, without any pipeline: the rows that they stand on, loaded at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import polars as pl
from sqlalchemy import event, select
from sqlalchemy.sql.schema import Table

from resources.ledger.engine import Ledger
from resources.ledger.reviews import FINDINGS, open_reviews
from resources.ledger.schema import (
    attempts,
    documents,
    findings,
    judgements,
    record_state,
    records,
    reviews,
    sources,
)
from tests.integration.ledger.support import AT, DIGEST, make_batch, make_version


def fill(ledger: Ledger, count: int, *, batches: int = 1, kind: str = FINDINGS) -> None:
    """Store `count` judged records that wait for a reviewer, over some batches of version 1."""
    numbers = pl.DataFrame({"n": range(1, count + 1)}, schema={"n": pl.Int64})
    n = pl.col("n")
    state = "awaiting_review" if kind == FINDINGS else "accepted"
    with ledger.write() as connection:
        make_version(connection, ledger, 1)
        for number in range(1, batches + 1):
            make_batch(connection, ledger, number, 1)
        connection.execute(
            sources.insert().values(
                source_no=1, name="shop", kind="directory", location="", registered_at=AT
            )
        )
        rows = {
            documents: numbers.select(
                document_no=n,
                document_id=pl.format("shop/{}.txt", n),
                source_no=pl.lit(1),
                first_seen_at=pl.lit(AT),
            ),
            records: numbers.select(
                record_no=n,
                record_id=pl.format("w:shop/{}.txt@c:v1", n),
                version_no=pl.lit(1),
                document_no=n,
                source_version_no=n,
                checksum=pl.lit(DIGEST),
                operation=pl.lit("extract"),
                replay_reason=pl.lit("new_source"),
                manifest_no=pl.lit(1),
            ),
            record_state: numbers.select(
                record_no=n, state=pl.lit(state), version=pl.lit(0), shard=pl.lit(0)
            ),
            attempts: numbers.select(
                attempt_no=n,
                batch_no=(n - 1) % batches + 1,
                record_no=n,
                ordinal=pl.lit(1),
                recovery_path=pl.lit("first"),
                request_digest=pl.lit(DIGEST),
                request_offset=pl.lit(0),
                request_length=pl.lit(1),
            ),
            judgements: numbers.select(
                attempt_no=n, record_no=n, outcome=pl.lit(state), values_digest=pl.lit(DIGEST)
            ),
            findings: numbers.select(
                finding_no=n,
                record_no=n,
                attempt_no=n,
                rule=pl.when(n % 2 == 0).then(pl.lit("even")).otherwise(pl.lit("odd")),
                rule_version=pl.lit(1),
                severity=pl.lit("review"),
                field=pl.lit("title"),
                note=pl.lit("a note"),
            ),
        }
        for table, frame in rows.items():
            ledger.dialect.load(connection, table, frame)
        opening = numbers.select(
            record_no=n,
            attempt_no=n,
            version_no=pl.lit(1, dtype=pl.Int64),
            values_digest=pl.lit(DIGEST),
            slice=pl.format("slice {}", n % 3),
        )
        open_reviews(
            connection, ledger, opening, kind=kind, at=AT, sample_no=0 if kind == FINDINGS else 1
        )


def rows(ledger: Ledger, table: Table) -> list[dict[str, Any]]:
    """Every row of a table, by its key."""
    with ledger.read() as connection:
        found = connection.execute(select(table).order_by(*table.primary_key.columns))
        return [dict(row._mapping) for row in found]


def review(ledger: Ledger, number: int) -> dict[str, Any]:
    """One review's row."""
    (row,) = [row for row in rows(ledger, reviews) if row["review_no"] == number]
    return row


@contextmanager
def counted_statements(ledger: Ledger) -> Iterator[list[str]]:
    """The statements that go through SQLAlchemy in the block."""
    seen: list[str] = []

    def note(_c: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        seen.append(statement)

    event.listen(ledger.engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        event.remove(ledger.engine, "before_cursor_execute", note)
