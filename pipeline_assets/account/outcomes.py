"""What became of every file that the source holds now: one row each, sorted by id.

Belongs here: the rows of `tallybook outcomes`. Does not belong here: counting them (`report.py`)
and the whole story of one of them (`explain.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl
from sqlalchemy import Connection

from pipeline_assets.account.shards import shards
from pipeline_assets.account.standing import PENDING, present_keys, standings_of
from pipeline_assets.known_version import KnownVersion, known_version
from resources.context import Context
from resources.ledger.engine import Ledger
from resources.ledger.numbers import is_one_of

PENDING_REASON = "not looked at under this version yet: run again"
_DONE = ("accepted", "published")


def outcomes(context: Context, key: str) -> Iterator[dict[str, Any]]:
    """One row a present document: document_id, source_checksum, media_type, pages, record_id,
    state, reason, findings (rule, severity, field, note).

    `state` is the record's, or `excluded`, or `pending`. `reason` is the exclusion's, or that of
    the record's last move; null for what went right. Memory holds one shard.

    Raises:
        MalformedVersionKey, VersionNeverUsed: there is no such version here.
    """  # noqa: D205 - the names of the columns are the summary
    version = known_version(context, key)
    ledger = context.ledger
    with ledger.read() as connection:
        for part in shards(
            context, present_keys(connection, ledger, version.workload), "document_id"
        ):
            yield from _rows(connection, ledger, version, part["document_no"])


def _rows(
    connection: Connection, ledger: Ledger, version: KnownVersion, numbers: pl.Series
) -> Iterator[dict[str, Any]]:
    standings = standings_of(connection, ledger, version, numbers)
    records = standings["record_no"].drop_nulls()
    reasons = dict(last_reasons(connection, ledger, records).iter_rows())
    findings = current_findings(connection, ledger, records)
    for row in standings.iter_rows(named=True):
        reason, record = row["reason"], row["record_no"]
        if record is not None and row["state"] not in _DONE:
            reason = reasons.get(record)
        elif row["state"] == PENDING:
            reason = PENDING_REASON
        yield {
            "document_id": row["document_id"],
            "source_checksum": row["checksum"],
            "media_type": row["media_type"],
            "pages": row["pages"],
            "record_id": row["record_id"],
            "state": row["state"],
            "reason": reason,
            "findings": [] if record is None else findings.get(record, []),
        }


def last_reasons(connection: Connection, ledger: Ledger, records: pl.Series) -> pl.DataFrame:
    """record_no and the reason of its newest move."""
    return ledger.dialect.fetch(
        connection,
        "SELECT n.record_no, m.reason FROM (SELECT record_no, MAX(move_no) AS move_no "  # noqa: S608
        f"FROM move_members WHERE {is_one_of('record_no', records)} GROUP BY record_no) n "
        "JOIN moves m ON m.move_no = n.move_no",
        {"record_no": pl.Int64, "reason": pl.String},
    )


def current_findings(
    connection: Connection, ledger: Ledger, records: pl.Series
) -> dict[int, list[dict[str, Any]]]:
    """record_no → findings of its newest attempt; those of earlier attempts are out of date."""
    every = ledger.dialect.fetch(
        connection,
        "SELECT finding_no, record_no, attempt_no, rule, severity, field, note "  # noqa: S608
        f"FROM findings WHERE {is_one_of('record_no', records)}",
        {
            "finding_no": pl.Int64,
            "record_no": pl.Int64,
            "attempt_no": pl.Int64,
            "rule": pl.String,
            "severity": pl.String,
            "field": pl.String,
            "note": pl.String,
        },
    )
    # Grouped, not one look a record: PostgreSQL answers MAX(key) by walking the key from its end.
    newest = ledger.dialect.fetch(
        connection,
        "SELECT record_no, MAX(attempt_no) FROM attempts "  # noqa: S608
        f"WHERE {is_one_of('record_no', every['record_no'])} GROUP BY record_no",
        {"record_no": pl.Int64, "attempt_no": pl.Int64},
    )
    current = every.join(newest, on=["record_no", "attempt_no"], how="semi").sort("finding_no")
    found: dict[int, list[dict[str, Any]]] = {}
    for row in current.drop("finding_no", "attempt_no").iter_rows(named=True):
        found.setdefault(row.pop("record_no"), []).append(row)
    return found
