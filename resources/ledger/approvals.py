"""Approvals: what somebody decided about one version of a document's bytes.

Belongs here: the rows of `approvals` (the newest of a source version counts), and how present
documents stand by them. Does not belong here: which sources demand approval, which only their
declaration says (`resources/sources/declared.py`), and who may decide what
(`pipeline_assets/approval`).

A decision is about bytes, never about a name: a corrected document waits again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import polars as pl
from sqlalchemy import Connection, text

from resources.batched import batched
from resources.ledger.engine import Ledger
from resources.ledger.frames import PolarsType

Decision = Literal["approved", "refused"]

DECISION_SCHEMA: dict[str, PolarsType] = {
    "source_version_no": pl.Int64,
    "decision": pl.String,
    "reason": pl.String,
    "actor": pl.String,
    "decided_at": pl.String,
}
"""The decision that counts for a version of a document."""

STANDING_SCHEMA: dict[str, PolarsType] = {
    "document_no": pl.Int64,
    "document_id": pl.String,
    "source": pl.String,
    "source_version_no": pl.Int64,
    "checksum": pl.String,
    "bytes": pl.Int64,
    "since": pl.String,
    "excluded": pl.String,
    "decision": pl.String,
    "records": pl.Int64,
}
"""A present document: `since` is when its source was first seen to hold these bytes, without a
break; `decision` is null where nobody decided; `records` counts the records of these bytes."""

_DOCUMENTS_A_QUERY = 500

# Of an open entry `e`: its document was not erased, and these bytes were not decided on.
_WAITS = (
    "e.to_snapshot IS NULL AND e.source_version_no IS NOT NULL AND e.excluded IS NULL "
    "AND NOT EXISTS (SELECT 1 FROM erasures x WHERE x.document_no = e.document_no) "
    "AND NOT EXISTS (SELECT 1 FROM approvals a WHERE a.source_version_no = e.source_version_no)"
)
_STANDING = (
    "SELECT e.document_no, d.document_id, s.name, e.source_version_no, v.checksum, e.size, "
    "n.taken_at, e.excluded, (SELECT a.decision FROM approvals a "
    "WHERE a.source_version_no = e.source_version_no ORDER BY a.approval_no DESC LIMIT 1), "
    "(SELECT COUNT(*) FROM records r WHERE r.document_no = e.document_no "
    "AND r.source_version_no = e.source_version_no) "
    "FROM source_entries e JOIN documents d ON d.document_no = e.document_no "
    "JOIN sources s ON s.source_no = d.source_no "
    "JOIN snapshots n ON n.snapshot_no = e.from_snapshot "
    "LEFT JOIN source_versions v ON v.source_version_no = e.source_version_no "
)


def decisions(ledger: Ledger, workload: str) -> pl.DataFrame:
    """The decisions that count (`DECISION_SCHEMA`) for documents of a workload's sources.

    Sorted by source version; versions that nobody decided on have no row.
    """
    with ledger.read() as connection:
        return ledger.dialect.fetch(
            connection,
            "SELECT a.source_version_no, a.decision, a.reason, a.actor, a.decided_at "
            "FROM (SELECT MAX(approval_no) AS approval_no FROM approvals "
            "GROUP BY source_version_no) n "
            "JOIN approvals a ON a.approval_no = n.approval_no "
            "JOIN source_versions v ON v.source_version_no = a.source_version_no "
            "JOIN documents d ON d.document_no = v.document_no "
            "JOIN sources s ON s.source_no = d.source_no WHERE s.workload = ?",
            DECISION_SCHEMA,
            (workload,),
        ).sort("source_version_no")


def decided_sources(ledger: Ledger) -> set[str]:
    """Names of the sources of whose documents somebody decided about one at least."""
    with ledger.read() as connection:
        return set(
            ledger.dialect.fetch(
                connection,
                "SELECT DISTINCT s.name FROM approvals a "
                "JOIN source_versions v ON v.source_version_no = a.source_version_no "
                "JOIN documents d ON d.document_no = v.document_no "
                "JOIN sources s ON s.source_no = d.source_no",
                {"source": pl.String},
            )["source"]
        )


def record(
    connection: Connection,
    ledger: Ledger,
    source_versions: pl.Series,
    decision: Decision,
    reason: str,
    actor: str,
) -> int:
    """Write the same decision on a set of source versions; returns how many there are.

    Args:
        connection: a write transaction.
        ledger: the ledger.
        source_versions: source_version_no, no repeats.
        decision: approved or refused.
        reason: why.
        actor: who decided.
    """
    if source_versions.is_empty():
        return 0
    _stage(connection, ledger, source_versions)
    return connection.execute(
        text(
            "INSERT INTO approvals (source_version_no, decision, reason, actor, decided_at) "
            "SELECT source_version_no, CAST(:decision AS TEXT), CAST(:reason AS TEXT), "
            "CAST(:actor AS TEXT), CAST(:at AS TEXT) FROM stage_approval "
            "ORDER BY source_version_no"
        ),
        {"decision": decision, "reason": reason, "actor": actor, "at": ledger.now()},
    ).rowcount


def out_of_date(connection: Connection, ledger: Ledger, source_versions: pl.Series) -> pl.Series:
    """Of source versions, the ids of the documents whose present bytes are others, sorted.

    Args:
        connection: the write transaction that writes the decision.
        ledger: the ledger.
        source_versions: source_version_no, no repeats.
    """
    _stage(connection, ledger, source_versions)
    return ledger.dialect.fetch(
        connection,
        "SELECT d.document_id FROM stage_approval t "
        "JOIN source_versions v ON v.source_version_no = t.source_version_no "
        "JOIN documents d ON d.document_no = v.document_no "
        "WHERE NOT EXISTS (SELECT 1 FROM source_entries e WHERE e.document_no = v.document_no "
        "AND e.source_version_no = t.source_version_no AND e.to_snapshot IS NULL)",
        {"document_id": pl.String},
    )["document_id"].sort()


def count_waiting(connection: Connection, ledger: Ledger, sources: Sequence[str]) -> dict[str, int]:
    """How many present documents of each source nobody decided on; 0 where there is none.

    Args:
        connection: inside a transaction.
        ledger: the ledger.
        sources: names of the sources that demand approval.
    """
    if not sources:
        return {}
    found = ledger.dialect.fetch(
        connection,
        "SELECT s.name, COUNT(*) FROM source_entries e "  # noqa: S608 - our own conditions
        "JOIN documents d ON d.document_no = e.document_no "
        f"JOIN sources s ON s.source_no = d.source_no WHERE {_WAITS} "
        f"AND s.name IN ({_marks(sources)}) GROUP BY s.name",
        {"source": pl.String, "waiting": pl.Int64},
        tuple(sources),
    )
    return dict.fromkeys(sources, 0) | dict(found.iter_rows())


def waiting(
    connection: Connection, ledger: Ledger, sources: Sequence[str], limit: int | None = None
) -> pl.DataFrame:
    """Present documents that nobody decided on (`STANDING_SCHEMA`), the longest waiting first.

    Args:
        connection: inside a transaction.
        ledger: the ledger.
        sources: names of the sources that demand approval.
        limit: at most so many.
    """
    if not sources:
        return pl.DataFrame(schema=STANDING_SCHEMA)
    return ledger.dialect.fetch(
        connection,
        f"{_STANDING}WHERE {_WAITS} AND s.name IN ({_marks(sources)}) "
        "ORDER BY n.taken_at, d.document_id" + ("" if limit is None else f" LIMIT {int(limit)}"),
        STANDING_SCHEMA,
        tuple(sources),
    )


def standing_of(
    connection: Connection, ledger: Ledger, document_ids: Sequence[str]
) -> pl.DataFrame:
    """How documents stand that sources hold now (`STANDING_SCHEMA`), by id; others are left out."""
    parts = [
        ledger.dialect.fetch(
            connection,
            f"{_STANDING}WHERE e.to_snapshot IS NULL AND d.document_id IN ({_marks(few)})",
            STANDING_SCHEMA,
            few,
        )
        for few in batched(dict.fromkeys(document_ids), _DOCUMENTS_A_QUERY)
    ]
    return pl.concat([pl.DataFrame(schema=STANDING_SCHEMA), *parts]).sort("document_id")


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" for _ in values)


def _stage(connection: Connection, ledger: Ledger, source_versions: pl.Series) -> None:
    ledger.dialect.stage(
        connection,
        "stage_approval",
        pl.DataFrame({"source_version_no": source_versions.cast(pl.Int64)}),
    )
