"""The facts behind `find_stuck` and `decide_reports`, read from the ledger set by set.

Belongs here: the queries. Does not belong here: what the facts mean (`stuck_work.py`,
`reports.py`), and what the sensors remember (`schedules.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

import polars as pl
from sqlalchemy import Connection

from pipeline_assets.automation.reports import ReportFact
from pipeline_assets.automation.stuck_work import BatchFact, Facts, Group, Limits
from pipeline_assets.canary.run import gate_of
from pipeline_assets.expected_errors import EXPECTED_ERRORS
from pipeline_assets.operating import operating
from pipeline_assets.versions import open_version
from resources.clock import from_text
from resources.context import Context
from resources.ledger.engine import Ledger
from resources.ledger.versions import list_versions

_DONE = "('completed', 'completed_with_errors', 'retry_required', 'cancelled')"
# Few records are in these states at a time, and a move is of many of them at once: the groups are
# as many as the moves that brought them there.
_RECORDS = (
    "SELECT w.version_no, w.state, m.moved_at, COUNT(*) FROM ("
    "SELECT r.version_no AS version_no, s.state AS state, (SELECT MAX(k.move_no) "
    "FROM move_members k WHERE k.record_no = s.record_no) AS move_no FROM record_state s "
    "JOIN records r ON r.record_no = s.record_no "
    "WHERE s.state IN ('queued', 'prepared', 'collected')) w "
    "JOIN moves m ON m.move_no = w.move_no GROUP BY w.version_no, w.state, m.moved_at"
)
_RETRIES = (
    "SELECT r.version_no, s.state, s.not_before, COUNT(*) FROM record_state s "
    "JOIN records r ON r.record_no = s.record_no "
    "WHERE s.state = 'retry_wait' AND s.not_before IS NOT NULL "
    "GROUP BY r.version_no, s.state, s.not_before"
)
_REVIEWS = (
    "SELECT version_no, '', opened_at, COUNT(*) FROM reviews WHERE decision IS NULL "
    "GROUP BY version_no, opened_at"
)
_GROUP = {"version_no": pl.Int64, "what": pl.String, "since": pl.String, "count": pl.Int64}
_BATCHES = (
    "SELECT b.version_no, b.batch_id, b.state, (SELECT MAX(m.moved_at) FROM moves m "  # noqa: S608 - own states
    "WHERE m.machine = 'batch' AND m.chain = 'batch:' || b.batch_no), b.prepared_at, "
    f"b.internal_deadline_at, b.next_poll_at FROM batches b WHERE b.state NOT IN {_DONE} "
    "ORDER BY b.batch_no"
)
_BATCH = dict.fromkeys(
    ("batch", "state", "moved_at", "prepared_at", "deadline", "next_poll"), pl.String
)
# Of a version: is any batch not complete, and when did anything of it move last? Records move on
# the chain of their batch.
_LAST_MOVES = (
    "SELECT v.key, (SELECT COUNT(*) FROM batches o WHERE o.version_no = v.version_no "  # noqa: S608 - own states
    f"AND o.state NOT IN {_DONE}), (SELECT MAX(m.moved_at) FROM batches b "
    "JOIN moves m ON m.chain = 'batch:' || b.batch_no WHERE b.version_no = v.version_no), "
    "(SELECT MAX(m.moved_at) FROM moves m WHERE m.chain = 'version:' || v.version_no) "
    "FROM processing_versions v WHERE v.state = 'active' ORDER BY v.version_no"
)


def limits_of_versions(ledger: Ledger) -> dict[str, Limits]:
    """The limits of every active version."""
    found = {}
    for version in list_versions(ledger):
        if version.state == "active":
            settings = operating(ledger, version.version_no)
            found[version.key] = Limits(settings.stuck_age, settings.review_age)
    return found


def stuck_facts(context: Context) -> Facts:
    """How records, reviews, batches and canaries of active versions stand."""
    ledger = context.ledger
    keys = {each.version_no: each.key for each in list_versions(ledger) if each.state == "active"}
    with ledger.read() as connection:
        facts = Facts(
            records=_groups(connection, ledger, _RECORDS, keys)
            + _groups(connection, ledger, _RETRIES, keys),
            reviews=_groups(connection, ledger, _REVIEWS, keys),
            batches=_batches(connection, ledger, keys),
        )
    waiting = {each.version for each in facts.batches if each.state == "prepared"}
    failed = {key: name for key in sorted(waiting) if (name := _failed_canary(context, key))}
    return replace(facts, canaries=failed)


def report_facts(ledger: Ledger) -> list[ReportFact]:
    """Every active version with what its newest report has to be as new as."""
    with ledger.read() as connection:
        rows = ledger.dialect.fetch(
            connection,
            _LAST_MOVES,
            {"key": pl.String, "open": pl.Int64, "of_batches": pl.String, "own": pl.String},
        )
    return [
        ReportFact(key, open_batches=count, moved_at=_moment(max(batches or "", own or "") or None))
        for key, count, batches, own in rows.iter_rows()
    ]


def _groups(
    connection: Connection, ledger: Ledger, sql: str, keys: Mapping[int, str]
) -> tuple[Group, ...]:
    rows = ledger.dialect.fetch(connection, sql, _GROUP)
    return tuple(
        Group(keys[version_no], what, from_text(since), count)
        for version_no, what, since, count in rows.sort("version_no", "what", "since").iter_rows()
        if version_no in keys
    )


def _batches(
    connection: Connection, ledger: Ledger, keys: Mapping[int, str]
) -> tuple[BatchFact, ...]:
    rows = ledger.dialect.fetch(connection, _BATCHES, {"version_no": pl.Int64, **_BATCH})
    return tuple(
        BatchFact(
            keys[row["version_no"]],
            row["batch"],
            row["state"],
            from_text(row["moved_at"] or row["prepared_at"]),
            _moment(row["deadline"]),
            _moment(row["next_poll"]),
        )
        for row in rows.iter_rows(named=True)
        if row["version_no"] in keys
    )


def _failed_canary(context: Context, key: str) -> str | None:
    """The canary that a version's batches wait for in vain; None where there is none.

    A version that cannot be opened now is told of by the sensor that runs it.
    """
    try:
        version = open_version(context, key)
        if version.spec.mode == "embedded":
            return None
        decision = gate_of(context, version)
    except EXPECTED_ERRORS:
        return None
    return decision.reason if decision.gate == "closed" else None


def _moment(text: str | None) -> datetime | None:
    return None if text is None else from_text(text)
