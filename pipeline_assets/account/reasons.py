"""Why each record and each attempt of a version exists, counted so that it adds up.

Belongs here: the figures of `tallybook report --by reason`. Does not belong here: the words
(`pipeline_assets/replay/reasons.py`), and where records stand otherwise (`report.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
import polars as pl
from sqlalchemy import Connection

from pipeline_assets.known_version import KnownVersion, known_version
from resources.context import Context
from resources.ledger.engine import Ledger
from resources.ledger.replays import list_replays

# The manifest says why an attempt was made, but for one whose records each have their own reason.
_WHY = "CASE WHEN m.replay_reason = 'by document' THEN r.replay_reason ELSE m.replay_reason END"


@dataclass(frozen=True)
class ReasonCount:
    """Records that exist for one reason.

    Attributes:
        reason: one of the closed list.
        records: how many.
        states: state → how many of them.
        attempts: attempts that were made for this reason, at these or other records.
    """

    reason: str
    records: int
    states: dict[str, int]
    attempts: int


@dataclass(frozen=True)
class ReplayCount:
    """A replay into the version.

    Attributes:
        replay_id: its name.
        from_version: whose records were selected.
        reason: one of the closed list.
        note: why, in the operator's words.
        actor: who asked.
        expression: the filter; None without one.
        created_at: UTC.
        manifest_id: what carries it out.
        selected: records that were selected.
        attempts: attempts that it made; fewer where documents could not be sent.
        states: state → records that it processed.
    """

    replay_id: str
    from_version: str
    reason: str
    note: str
    actor: str
    expression: str | None
    created_at: str
    manifest_id: str | None
    selected: int
    attempts: int
    states: dict[str, int]


@dataclass(frozen=True)
class ReasonReport:
    """Every record and attempt of a version by why it exists.

    Attributes:
        processing_version: its key.
        records: of the version, by what it has.
        attempts: of the version, by what it has.
        reasons: the most records first.
        replays: oldest first.
        adds_up: records and attempts are the sums over the reasons.
    """

    processing_version: str
    records: int
    attempts: int
    reasons: tuple[ReasonCount, ...]
    replays: tuple[ReplayCount, ...]
    adds_up: bool

    def as_json(self) -> dict[str, Any]:
        """The account as plain JSON values, in this order."""
        return msgspec.to_builtins(self)


def account_by_reason(context: Context, key: str) -> ReasonReport:
    """Count every record and attempt of a version by why it exists.

    Raises:
        MalformedVersionKey, VersionNeverUsed: there is no such version here.
    """
    version = known_version(context, key)
    ledger = context.ledger
    replays = [
        replay
        for replay in list_replays(ledger, version.version_no)
        if replay.to_version == version.key
    ]
    with ledger.read() as connection:
        records = _records(connection, ledger, version)
        attempts = _attempts(connection, ledger, version)
        of_replays = _of_replays(connection, ledger, version)
        in_records, in_attempts = _totals(connection, ledger, version)
    reasons = _reasons(records, attempts)
    return ReasonReport(
        processing_version=version.key,
        records=in_records,
        attempts=in_attempts,
        reasons=reasons,
        replays=tuple(
            ReplayCount(
                replay_id=replay.replay_id,
                from_version=replay.from_version,
                reason=replay.reason,
                note=replay.note,
                actor=replay.actor,
                expression=replay.expression,
                created_at=replay.created_at,
                manifest_id=replay.manifest_id,
                selected=replay.selected,
                attempts=sum(states.values()),
                states=states,
            )
            for replay in replays
            for states in [_states(of_replays.filter(pl.col("replay_no") == replay.replay_no))]
        ),
        adds_up=in_records == sum(reason.records for reason in reasons)
        and in_attempts == sum(reason.attempts for reason in reasons),
    )


def _reasons(records: pl.DataFrame, attempts: pl.DataFrame) -> tuple[ReasonCount, ...]:
    made = dict(attempts.iter_rows())
    names = pl.concat([records["reason"], attempts["reason"]]).unique()
    found = [
        ReasonCount(
            reason=name,
            records=int(own["records"].sum()),
            states=_states(own),
            attempts=made.get(name, 0),
        )
        for name in names.sort()
        for own in [records.filter(pl.col("reason") == name)]
    ]
    return tuple(sorted(found, key=lambda each: (-each.records, each.reason)))


def _states(counted: pl.DataFrame) -> dict[str, int]:
    return dict(counted.sort("state").select("state", "records").iter_rows())


def _records(connection: Connection, ledger: Ledger, version: KnownVersion) -> pl.DataFrame:
    return ledger.dialect.fetch(
        connection,
        "SELECT r.replay_reason, s.state, COUNT(*) FROM records r "
        "JOIN record_state s ON s.record_no = r.record_no "
        "WHERE r.version_no = ? GROUP BY r.replay_reason, s.state",
        {"reason": pl.String, "state": pl.String, "records": pl.Int64},
        (version.version_no,),
    )


def _attempts(connection: Connection, ledger: Ledger, version: KnownVersion) -> pl.DataFrame:
    return ledger.dialect.fetch(
        connection,
        f"SELECT {_WHY} AS reason, COUNT(*) FROM batches b "  # noqa: S608 - own words
        "JOIN manifests m ON m.manifest_no = b.manifest_no "
        "JOIN attempts a ON a.attempt_no BETWEEN b.first_attempt_no AND b.last_attempt_no "
        "JOIN records r ON r.record_no = a.record_no WHERE b.version_no = ? GROUP BY 1",
        {"reason": pl.String, "attempts": pl.Int64},
        (version.version_no,),
    )


def _of_replays(connection: Connection, ledger: Ledger, version: KnownVersion) -> pl.DataFrame:
    return ledger.dialect.fetch(
        connection,
        "SELECT m.replay_no, s.state, COUNT(*) FROM manifests m "
        "JOIN batches b ON b.manifest_no = m.manifest_no "
        "JOIN attempts a ON a.attempt_no BETWEEN b.first_attempt_no AND b.last_attempt_no "
        "JOIN record_state s ON s.record_no = a.record_no "
        "WHERE m.version_no = ? AND m.replay_no IS NOT NULL GROUP BY m.replay_no, s.state",
        {"replay_no": pl.Int64, "state": pl.String, "records": pl.Int64},
        (version.version_no,),
    )


def _totals(connection: Connection, ledger: Ledger, version: KnownVersion) -> tuple[int, int]:
    """Records and attempts, counted without a look at any reason."""
    row = ledger.dialect.fetch(
        connection,
        "SELECT (SELECT COUNT(*) FROM records WHERE version_no = ?), "
        "(SELECT COALESCE(SUM(expected_records), 0) FROM batches WHERE version_no = ?)",
        {"records": pl.Int64, "attempts": pl.Int64},
        (version.version_no, version.version_no),
    ).row(0)
    return int(row[0]), int(row[1])
