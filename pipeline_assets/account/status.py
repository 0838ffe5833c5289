"""Where the work stands: what is open, how old it is, and what waits for a person.

Belongs here: the figures of `tallybook status`, and the one decision that the exit status of
`run`, `status` and `report` follows. Does not belong here: whether the account adds up
(`report.py`), and what holds a version or may (`hold_facts.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
import polars as pl
from sqlalchemy import Connection

from pipeline_assets.account.hold_facts import BreakerFacts, HoldFacts, QueueFacts, hold_facts
from pipeline_assets.account.standing import Standings, count_standings
from pipeline_assets.known_version import KnownVersion, known_version
from pipeline_assets.operating import operating
from pipeline_assets.quality.error_rates import SampleSummary, sample_summary
from resources.clock import from_text
from resources.context import Context
from resources.ledger.batches import COMPLETE
from resources.ledger.canaries import count_failed
from resources.ledger.engine import Ledger
from resources.ledger.numbers import is_one_of
from resources.ledger.retries import first_retry

OPEN_STATES = ("queued", "prepared", "submitted", "collected", "accepted", "retry_wait")
"""Record states that the pipeline itself moves on."""
PERSON_STATES = ("awaiting_review", "dead_letter")
"""Record states that only a person moves on."""
PERSON_BATCHES = ("quarantined", "incident")
AWAITING_APPROVAL = "awaiting_approval"
"""The exclusion that ends when somebody approves the document, or does not."""
_ENDED_BATCHES = (*COMPLETE, "cancelled")
_BEFORE = {
    "recorded": (),
    "submitted": ("queued", "prepared"),
    "collected": ("queued", "prepared", "submitted", "retry_wait"),
    "judged": ("queued", "prepared", "submitted", "retry_wait", "collected"),
}
"""Stage → states of records that have not passed it; `published` is a state of its own."""


@dataclass(frozen=True)
class Waiting:
    """Something that does not go on by itself, or not yet.

    Attributes:
        what: a record or batch state, `pending` or `held`.
        count: how many.
        by_person: a person has to act; else running again is enough.
    """

    what: str
    count: int
    by_person: bool


@dataclass(frozen=True)
class Status:
    """Where a version stands.

    Attributes:
        processing_version: its key.
        state: active, held or retired.
        state_reason: why.
        documents: what the sources hold now.
        excluded: documents without a record.
        stages: stage → present documents that have passed it: scanned, parsed (gave text),
            recorded (have a record), submitted, collected, judged, published.
        states: state → current records.
        batches: state → batches.
        open_records: records that the pipeline itself moves on.
        oldest_open_at: when the longest waiting of them last moved, UTC; None if there is none.
        oldest_open_seconds: its age in seconds.
        waiting: what keeps the version from being done.
        held: the hold that it is under; None where it is not held.
        breaker: what its circuit breaker sees.
        backlog: what waits in front of the later stages.
        retries_due_at: when the first waiting record is due for another attempt, UTC; None if no
            record waits for one.
        sample: its quality samples; None where none was drawn. What waits of them keeps nothing
            from being done: the records are accepted.
        shown: documents that the archive shows with this version's values. Fewer than are
            published where another version is shown, or this one was rolled back.
    """

    processing_version: str
    state: str
    state_reason: str
    documents: int
    excluded: int
    stages: dict[str, int]
    states: dict[str, int]
    batches: dict[str, int]
    open_records: int
    oldest_open_at: str | None
    oldest_open_seconds: float | None
    waiting: tuple[Waiting, ...]
    held: HoldFacts | None = None
    breaker: BreakerFacts | None = None
    backlog: tuple[QueueFacts, ...] = ()
    retries_due_at: str | None = None
    sample: SampleSummary | None = None
    shown: int = 0

    @property
    def done(self) -> bool:
        """Every document has a known terminal outcome and nothing needs a person."""
        return not self.waiting

    def as_json(self) -> dict[str, Any]:
        """The status as plain JSON values, in this order."""
        return {**msgspec.to_builtins(self), "done": self.done}


def status(context: Context, key: str) -> Status:
    """Where a version stands now.

    Raises:
        MalformedVersionKey, VersionNeverUsed: there is no such version here.
    """
    version = known_version(context, key)
    ledger = context.ledger
    settings = operating(ledger, version.version_no)
    with ledger.read() as connection:
        held, breaker, backlog = hold_facts(connection, ledger, version.version_no, settings)
        standings = count_standings(connection, ledger, version)
        parsed = _parsed(connection, ledger, version)
        batches = _batches(connection, ledger, version)
        oldest = _oldest_open(connection, ledger, version)
        failed_canaries = count_failed(connection, version.version_no)
        sample = sample_summary(connection, ledger, version.version_no)
        shown = _shown(connection, ledger, version)
    age = None
    if oldest is not None:
        age = round((context.clock() - from_text(oldest)).total_seconds(), 1)
    return Status(
        processing_version=version.key,
        state=version.state,
        state_reason=version.state_reason,
        documents=standings.documents,
        excluded=sum(standings.excluded.values()),
        stages=_stages(standings, parsed),
        states=standings.states,
        batches=batches,
        open_records=sum(standings.states.get(state, 0) for state in OPEN_STATES),
        oldest_open_at=oldest,
        oldest_open_seconds=age,
        waiting=what_waits(
            standings,
            batches,
            version.state,
            goes_on=held is not None and held.ends_by_itself,
            failed_canaries=failed_canaries,
            promoted_by_hand=settings.promote == "manual",
        ),
        held=held,
        breaker=breaker,
        backlog=backlog,
        retries_due_at=first_retry(ledger, version.version_no),
        sample=sample,
        shown=shown,
    )


def work_mark(context: Context) -> tuple[int, int]:
    """Two numbers that stay the same exactly as long as nothing is scanned anew or moved."""
    with context.ledger.read() as connection:
        return context.ledger.dialect.fetch(
            connection,
            "SELECT COALESCE((SELECT MAX(snapshot_no) FROM snapshots), 0), "
            "COALESCE((SELECT MAX(move_no) FROM moves), 0)",
            {"snapshot_no": pl.Int64, "move_no": pl.Int64},
        ).row(0)


def what_waits(
    standings: Standings,
    batches: dict[str, int],
    version_state: str,
    *,
    goes_on: bool = False,
    failed_canaries: int = 0,
    promoted_by_hand: bool = False,
) -> tuple[Waiting, ...]:
    """What keeps a version from being done: first what needs a person, then what needs a run.

    Args:
        standings: where its documents stand.
        batches: state → batches.
        version_state: active, held or retired.
        goes_on: a held version is released by itself.
        failed_canaries: canaries that did not come back right; while there is one no batch of its
            combination is handed over.
        promoted_by_hand: accepted records are published by command alone.
    """
    found = [
        Waiting(state, standings.states[state], by_person=True)
        for state in PERSON_STATES
        if standings.states.get(state)
    ]
    found += [
        Waiting(f"batch {state}", batches[state], by_person=True)
        for state in PERSON_BATCHES
        if batches.get(state)
    ]
    if standings.excluded.get(AWAITING_APPROVAL):
        found.append(
            Waiting(AWAITING_APPROVAL, standings.excluded[AWAITING_APPROVAL], by_person=True)
        )
    if failed_canaries and batches.get("prepared"):
        found.append(Waiting("canary failed", failed_canaries, by_person=True))
    if version_state == "held":
        found.append(Waiting("held", 1, by_person=not goes_on))
    found += [
        Waiting(state, standings.states[state], state == "accepted" and promoted_by_hand)
        for state in OPEN_STATES
        if standings.states.get(state)
    ]
    found += [
        Waiting(f"batch {state}", count, by_person=False)
        for state, count in batches.items()
        if state not in _ENDED_BATCHES and state not in PERSON_BATCHES
    ]
    if standings.pending:
        found.append(Waiting("pending", standings.pending, by_person=False))
    return tuple(found)


def _stages(standings: Standings, parsed: int) -> dict[str, int]:
    passed = {
        stage: standings.expected - sum(standings.states.get(state, 0) for state in before)
        for stage, before in _BEFORE.items()
    }
    return {
        "scanned": standings.documents,
        "parsed": parsed,
        **passed,
        "published": standings.states.get("published", 0),
    }


def _parsed(connection: Connection, ledger: Ledger, version: KnownVersion) -> int:
    return ledger.dialect.fetch(
        connection,
        "SELECT COUNT(*) FROM source_entries e "
        "JOIN documents d ON d.document_no = e.document_no "
        "JOIN sources c ON c.source_no = d.source_no AND c.workload = ? "
        "JOIN source_versions v ON v.source_version_no = e.source_version_no "
        "JOIN parses p ON p.checksum = v.checksum AND p.parser_key = ? "
        "WHERE e.to_snapshot IS NULL AND p.excluded IS NULL",
        {"n": pl.Int64},
        (version.workload, version.parser_key),
    ).item()


def _shown(connection: Connection, ledger: Ledger, version: KnownVersion) -> int:
    return ledger.dialect.fetch(
        connection,
        "SELECT COUNT(*) FROM archive_heads h "
        "JOIN archive_entries e ON e.entry_no = h.entry_no WHERE e.version_no = ?",
        {"n": pl.Int64},
        (version.version_no,),
    ).item()


def _batches(connection: Connection, ledger: Ledger, version: KnownVersion) -> dict[str, int]:
    rows = ledger.dialect.fetch(
        connection,
        "SELECT state, COUNT(*) FROM batches WHERE version_no = ? GROUP BY state",
        {"state": pl.String, "batches": pl.Int64},
        (version.version_no,),
    )
    return dict(rows.sort("state").iter_rows())


def _oldest_open(connection: Connection, ledger: Ledger, version: KnownVersion) -> str | None:
    """When the open record that waits longest was last moved."""
    states = ",".join(f"'{state}'" for state in OPEN_STATES)
    newest_moves = ledger.dialect.fetch(
        connection,
        "SELECT DISTINCT n.move_no FROM (SELECT w.record_no, MAX(w.move_no) AS move_no "  # noqa: S608
        "FROM records r JOIN record_state s ON s.record_no = r.record_no "
        f"JOIN move_members w ON w.record_no = r.record_no "
        f"WHERE r.version_no = ? AND s.state IN ({states}) GROUP BY w.record_no) n",
        {"move_no": pl.Int64},
        (version.version_no,),
    )["move_no"]
    return ledger.dialect.fetch(
        connection,
        f"SELECT MIN(moved_at) FROM moves WHERE {is_one_of('move_no', newest_moves)}",  # noqa: S608
        {"moved_at": pl.String},
    ).item()
