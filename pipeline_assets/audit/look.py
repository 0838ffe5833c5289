"""What every check is given: the stored evidence at one moment, and where findings go.

Belongs here: the scope, what erasures took away, and names of numbers. Does not belong here: any
check.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import polars as pl
from sqlalchemy import Connection, text

from pipeline_assets.audit.findings import Findings
from resources.artifacts import Kind
from resources.context import Context
from resources.ledger.erasures import redactions_now
from resources.ledger.frames import PolarsType
from resources.ledger.numbers import is_one_of, parts_of
from resources.one_moment import at_one_moment


@dataclass(frozen=True)
class Look:
    """The evidence, as it stands at one moment.

    Attributes:
        context: its ledger stands still for as long as the audit looks.
        connection: the read transaction.
        findings: where findings go.
        version_no: the version that is audited; None for all of them.
        sample: percent of the bulky artifacts whose bytes are read.
        seed: decides which of them.
        erased: document_no of documents that were erased, those still being purged included.
        redacted: (kind, digest) → the digest that an erasure left of an artifact; "" for nothing.
    """

    context: Context
    connection: Connection
    findings: Findings
    version_no: int | None
    sample: float
    seed: int
    erased: pl.Series
    redacted: Mapping[tuple[str, str], str]

    def of_version(self, column: str) -> str:
        """The condition that a row is of the audited version, to follow a WHERE and an AND."""
        return "1 = 1" if self.version_no is None else f"{column} = {int(self.version_no)}"

    def rows(self, sql: str, schema: Mapping[str, PolarsType], *parameters: object) -> pl.DataFrame:
        """The rows of a query."""
        return self.context.ledger.dialect.fetch(self.connection, sql, schema, parameters)

    def stream(
        self, sql: str, schema: Mapping[str, PolarsType], *parameters: object
    ) -> Iterator[pl.DataFrame]:
        """The rows of a query, a chunk at a time."""
        return self.context.ledger.dialect.stream(self.connection, sql, schema, parameters)

    def names_of_records(self, numbers: pl.Series) -> dict[int, str]:
        """record_no → record_id; a record that does not exist has none."""
        names: dict[int, str] = {}
        for part in parts_of(numbers):
            names |= dict(
                self.rows(
                    "SELECT record_no, record_id FROM records "  # noqa: S608 - our own numbers
                    f"WHERE {is_one_of('record_no', part)}",
                    {"record_no": pl.Int64, "record_id": pl.String},
                ).iter_rows()
            )
        return names

    def was_redacted(self, kind: Kind, digest: str) -> bool:
        """Did an erasure take something out of an artifact?"""
        return (kind, digest) in self.redacted


def removals(connection: Connection) -> tuple[int, ...]:
    """Counts that change whenever an erasure or a pruning takes another step."""
    return tuple(
        connection.execute(
            text(
                "SELECT (SELECT COUNT(*) FROM erasures), "
                "(SELECT COUNT(*) FROM erasures WHERE finished_at IS NOT NULL), "
                "(SELECT COUNT(*) FROM redactions), (SELECT COUNT(*) FROM prunes)"
            )
        ).one()
    )


@contextmanager
def looking(
    context: Context, findings: Findings, version_no: int | None, sample: float, seed: int
) -> Iterator[Look]:
    """The evidence for the length of a block."""
    with at_one_moment(context) as still, still.ledger.read() as connection:
        dialect = still.ledger.dialect
        erased = dialect.fetch(
            connection,
            "SELECT DISTINCT document_no FROM erasures ORDER BY document_no",
            {"document_no": pl.Int64},
        )["document_no"]
        left = redactions_now(connection, still.ledger)
        yield Look(
            context=still,
            connection=connection,
            findings=findings,
            version_no=version_no,
            sample=sample,
            seed=seed,
            erased=erased,
            redacted={(kind, digest): present for kind, digest, present in left.iter_rows()},
        )
