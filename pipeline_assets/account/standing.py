"""Where every document that a workload's sources hold now stands under a version.

Belongs here: the one statement that says so, and its counts. Everything else of this stage that
speaks of present documents builds on it, so that no two answers can differ.

A document has one of three standings: a record for its present bytes, an exclusion with a
reason, or neither, which is `pending`: the source changed after the last freeze.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl
from sqlalchemy import Connection

from pipeline_assets.known_version import KnownVersion
from resources.ledger.engine import Ledger
from resources.ledger.numbers import is_one_of

EXCLUDED = "excluded"
PENDING = "pending"
UNKNOWN = "unknown"
"""A record without a state row; only a damaged ledger has one."""

# An exclusion counts only for the bytes that it was decided on.
_FROM = """
FROM source_entries e
JOIN documents d ON d.document_no = e.document_no
JOIN sources c ON c.source_no = d.source_no AND c.workload = ?
LEFT JOIN source_versions v ON v.source_version_no = e.source_version_no
LEFT JOIN records r ON r.version_no = ? AND r.source_version_no = e.source_version_no
LEFT JOIN record_state s ON s.record_no = r.record_no
LEFT JOIN exclusions x ON x.version_no = ? AND x.document_no = e.document_no
    AND COALESCE(x.source_version_no, -1) = COALESCE(e.source_version_no, -1)
"""
_STATE = """
CASE WHEN r.record_no IS NOT NULL THEN COALESCE(s.state, 'unknown')
     WHEN e.excluded IS NOT NULL OR x.reason IS NOT NULL THEN 'excluded'
     ELSE 'pending' END
"""
_REASON = "CASE WHEN r.record_no IS NULL THEN COALESCE(e.excluded, x.reason) END"
_DETAIL = (
    "CASE WHEN r.record_no IS NOT NULL THEN NULL "
    "WHEN e.excluded IS NOT NULL THEN e.detail ELSE x.detail END"
)
_OPEN = "WHERE e.to_snapshot IS NULL"

STANDING_SCHEMA = {
    "document_no": pl.Int64,
    "document_id": pl.String,
    "checksum": pl.String,
    "size": pl.Int64,
    "record_no": pl.Int64,
    "record_id": pl.String,
    "state": pl.String,
    "reason": pl.String,
    "detail": pl.String,
    "media_type": pl.String,
    "pages": pl.Int64,
}


@dataclass(frozen=True)
class Standings:
    """Counts of present documents.

    Attributes:
        documents: how many the source holds.
        states: record state → documents.
        excluded: reason → documents.
        pending: documents without a record or an exclusion for their present bytes.
        doubled: documents that have both.
    """

    documents: int
    states: dict[str, int]
    excluded: dict[str, int]
    pending: int
    doubled: int

    @property
    def expected(self) -> int:
        """Documents with a record for their present bytes."""
        return sum(self.states.values())


def count_standings(connection: Connection, ledger: Ledger, version: KnownVersion) -> Standings:
    """Count the present documents of the workload's sources by where they stand."""
    counted = ledger.dialect.fetch(
        connection,
        f"SELECT {_STATE} AS state, {_REASON} AS reason, COUNT(*), "
        "COUNT(CASE WHEN r.record_no IS NOT NULL AND x.reason IS NOT NULL THEN 1 END) "
        f"{_FROM} {_OPEN} GROUP BY 1, 2",
        {"state": pl.String, "reason": pl.String, "documents": pl.Int64, "doubled": pl.Int64},
        (version.workload, version.version_no, version.version_no),
    ).sort("state", "reason")
    states: dict[str, int] = {}
    excluded: dict[str, int] = {}
    pending = 0
    for state, reason, documents, _ in counted.iter_rows():
        if state == PENDING:
            pending += documents
        elif state == EXCLUDED:
            excluded[reason] = documents
        else:
            states[state] = documents
    return Standings(
        documents=int(counted["documents"].sum()),
        states=states,
        excluded=excluded,
        pending=pending,
        doubled=int(counted["doubled"].sum()),
    )


def present_keys(connection: Connection, ledger: Ledger, workload: str) -> pl.DataFrame:
    """document_no and document_id of every present document of a workload's sources."""
    return ledger.dialect.fetch(
        connection,
        "SELECT d.document_no, d.document_id FROM source_entries e "
        "JOIN documents d ON d.document_no = e.document_no "
        "JOIN sources c ON c.source_no = d.source_no AND c.workload = ? "
        "WHERE e.to_snapshot IS NULL",
        {"document_no": pl.Int64, "document_id": pl.String},
        (workload,),
    )


def standings_of(
    connection: Connection, ledger: Ledger, version: KnownVersion, numbers: pl.Series
) -> pl.DataFrame:
    """Where the present documents with these numbers stand (`STANDING_SCHEMA`), sorted by id."""
    return ledger.dialect.fetch(
        connection,
        f"SELECT d.document_no, d.document_id, v.checksum, e.size, r.record_no, "
        f"r.record_id, {_STATE}, {_REASON}, {_DETAIL}, p.media_type, p.page_count "
        f"{_FROM} LEFT JOIN parses p ON p.checksum = v.checksum AND p.parser_key = ? "
        f"{_OPEN} AND {is_one_of('e.document_no', numbers)}",
        STANDING_SCHEMA,
        (version.workload, version.version_no, version.version_no, version.parser_key),
    ).sort("document_id")
