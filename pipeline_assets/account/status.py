"""Where the work stands: what is open, how old it is, and what waits for a person.

Belongs here: putting the figures of `tallybook status` together, and the one decision that the
exit status of `run`, `status` and `report` follows. Does not belong here: whether the account
adds up (`report.py`), what holds a version or may (`hold_facts.py`), ages (`ages.py`), who is
waited for (`waits.py`), whether a collection is ready (`readiness.py`) and the disk (`disk.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import msgspec
import polars as pl
from sqlalchemy import Connection

from pipeline_assets.account.ages import (
    ENDED_STATES,
    NO_AGES,
    OUT_STATES,
    Ages,
    ages_of,
    moved,
    open_batches,
    open_reviews,
)
from pipeline_assets.account.hold_facts import BreakerFacts, HoldFacts, QueueFacts, hold_facts
from pipeline_assets.account.readiness import Readiness, readiness
from pipeline_assets.account.standing import Standings, count_standings
from pipeline_assets.account.waits import (
    Wait,
    WaitFacts,
    Waiting,
    dead_letters_by_owner,
    name_waits,
)
from pipeline_assets.known_version import KnownVersion, known_version
from pipeline_assets.operating import operating
from pipeline_assets.quality.error_rates import SampleSummary, sample_summary
from resources.clock import from_text, to_text
from resources.context import Context
from resources.ledger.canaries import count_failed
from resources.ledger.engine import Ledger
from resources.ledger.retries import first_retry
from resources.ledger.versions import list_versions

OPEN_STATES = ("queued", "prepared", "submitted", "collected", "accepted", "retry_wait")
"""Record states that the pipeline itself moves on."""
PERSON_STATES = ("awaiting_review", "dead_letter")
"""Record states that only a person moves on."""
PERSON_BATCHES = ("quarantined", "incident")
POLLED_STATES = ("submitting", "submitted", "running")
"""Batch states in which `next_poll_at` is a time to look, as the monitor sees it."""
POLL_GRACE = timedelta(minutes=2)
"""The monitor looks every half a minute, and for most of a minute at a time: a job that is due is
not yet one that nobody looks at."""
AWAITING_APPROVAL = "awaiting_approval"
"""The exclusion that ends when somebody approves the document, or does not."""
_BEFORE = {
    "recorded": (),
    "submitted": ("queued", "prepared"),
    "collected": ("queued", "prepared", "submitted", "retry_wait"),
    "judged": ("queued", "prepared", "submitted", "retry_wait", "collected"),
}
"""Stage → states of records that have not passed it; `published` is a state of its own."""


@dataclass(frozen=True)
class Publication:
    """How far publishing is.

    Attributes:
        published: present documents whose record is published.
        accepted: those whose record is accepted and not published yet.
        shown: documents that the archive shows with this version's values.
        shown_former: those of them that changed or went away since, so that no published record
            of the present is behind them.
        share: published of published and accepted, 0 to 1; None where there is neither.
        shown_again: those of them whose record is being processed again: they show its earlier
            values until it is published.
    """

    published: int
    accepted: int
    shown: int
    shown_former: int
    share: float | None
    shown_again: int = 0


@dataclass(frozen=True)
class NextPoll:
    """The next look at a provider.

    Attributes:
        batch_id: the batch that is looked at.
        at: when, UTC.
        overdue: that time has been over for longer than `POLL_GRACE`: nobody looks.
    """

    batch_id: str
    at: str
    overdue: bool


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
        open_records: records of present documents that the pipeline itself moves on.
        oldest_open_at: when the longest waiting of them last moved, UTC, or one of a document that
            changed or went away since; None if there is none.
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
            published where another version is shown, or this one was rolled back; more where
            documents changed or went away since.
        ages: how old what is open is.
        active_attempts: attempts in batches that the provider has, or may have.
        accepted: records that are accepted and not published yet.
        review_backlog: open reviews that a finding asked for.
        sample_backlog: open reviews of quality samples.
        dead_letters: records that were given up and wait for their owner.
        publication: how far publishing is.
        next_poll: the next look at a provider; None where nothing is there.
        retries_due: records whose time for another attempt has come.
        waits: what waits for whom; `waiting` in more words, and the quality samples.
        ready: the newest closed report; None where none was closed.
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
    ages: Ages = NO_AGES
    active_attempts: int = 0
    accepted: int = 0
    review_backlog: int = 0
    sample_backlog: int = 0
    dead_letters: int = 0
    publication: Publication = Publication(0, 0, 0, 0, None)
    next_poll: NextPoll | None = None
    retries_due: int = 0
    waits: tuple[Wait, ...] = ()
    ready: Readiness | None = None

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
    ledger, number = context.ledger, version.version_no
    settings = operating(ledger, number)
    now = context.clock()
    with ledger.read() as connection:
        held, breaker, backlog = hold_facts(connection, ledger, number, settings)
        standings = count_standings(connection, ledger, version)
        parsed = _parsed(connection, ledger, version)
        by_state = _batches(connection, ledger, version)
        facts = WaitFacts(
            key=version.key,
            held=held,
            failed_canaries=count_failed(connection, number),
            moved=moved(connection, ledger, number, (*OPEN_STATES, *PERSON_STATES)),
            batches=open_batches(connection, ledger, number),
            reviews=open_reviews(connection, ledger, number),
            letters=dead_letters_by_owner(connection, ledger, number),
        )
        sample = sample_summary(connection, ledger, number)
        shown = _shown(connection, ledger, version)
        retries_due = _retries_due(connection, ledger, number, to_text(now))
        ready = readiness(connection, ledger, version)
    open_moves = facts.moved.filter(pl.col("state").is_in(OPEN_STATES))
    oldest = open_moves["moved_at"].min()
    waiting = what_waits(
        standings,
        by_state,
        version.state,
        goes_on=held is not None and held.ends_by_itself,
        failed_canaries=facts.failed_canaries,
        promoted_by_hand=settings.promote == "manual",
    )
    return Status(
        processing_version=version.key,
        state=version.state,
        state_reason=version.state_reason,
        documents=standings.documents,
        excluded=sum(standings.excluded.values()),
        stages=_stages(standings, parsed),
        states=standings.states,
        batches=by_state,
        open_records=sum(standings.states.get(state, 0) for state in OPEN_STATES),
        oldest_open_at=None if oldest is None else str(oldest),
        oldest_open_seconds=_age(oldest, now),
        waiting=waiting,
        held=held,
        breaker=breaker,
        backlog=backlog,
        retries_due_at=first_retry(ledger, number),
        sample=sample,
        shown=shown.all,
        ages=ages_of(now, open_moves, facts.batches, facts.reviews),
        active_attempts=_sum(facts.batches.filter(pl.col("state").is_in(OUT_STATES)), "records"),
        accepted=standings.states.get("accepted", 0),
        review_backlog=_open(facts, "findings"),
        sample_backlog=_open(facts, "quality_sample"),
        dead_letters=_sum(facts.letters, "records"),
        publication=_publication(standings, shown),
        next_poll=next_poll(facts.batches, now),
        retries_due=retries_due,
        waits=name_waits(waiting, facts),
        ready=ready,
    )


@dataclass(frozen=True)
class VersionLine:
    """Where a version stands, in one line.

    Attributes:
        processing_version: its key.
        state: active, held or retired.
        reason: why it is in that state.
        held_for: the kind of its hold; None where it is not held.
        since: since when it is held, UTC.
        ends: how the hold ends.
        documents: what its workload's sources hold now.
        open_records: records that the pipeline itself moves on.
        accepted: records that are accepted and not published yet.
        published: published records of present documents.
        shown: documents that the archive shows with its values.
        awaiting_review: records that wait for a reviewer.
        dead_letters: records that wait for their owner.
        batches_open: batches that are neither complete nor cancelled.
        waiting: things that wait: record states, batch states and the like.
        done: nothing waits.
    """

    processing_version: str
    state: str
    reason: str
    held_for: str | None
    since: str | None
    ends: str | None
    documents: int
    open_records: int
    accepted: int
    published: int
    shown: int
    awaiting_review: int
    dead_letters: int
    batches_open: int
    waiting: int
    done: bool


def all_versions(context: Context) -> tuple[VersionLine, ...]:
    """Every version that was used here, in the order of first use, a line each."""
    return tuple(_line(context, frozen.key) for frozen in list_versions(context.ledger))


def _line(context: Context, key: str) -> VersionLine:
    """Counts alone: of many versions nobody waits for the ages."""
    version = known_version(context, key)
    ledger, number = context.ledger, version.version_no
    settings = operating(ledger, number)
    with ledger.read() as connection:
        held, _, _ = hold_facts(connection, ledger, number, settings)
        standings = count_standings(connection, ledger, version)
        batches = _batches(connection, ledger, version)
        failed = count_failed(connection, number)
        shown = _shown(connection, ledger, version)
    states = standings.states
    waiting = what_waits(
        standings,
        batches,
        version.state,
        goes_on=held is not None and held.ends_by_itself,
        failed_canaries=failed,
        promoted_by_hand=settings.promote == "manual",
    )
    return VersionLine(
        processing_version=version.key,
        state=version.state,
        reason=version.state_reason,
        held_for=None if held is None else held.kind,
        since=None if held is None else held.since,
        ends=None if held is None else held.ends,
        documents=standings.documents,
        open_records=sum(states.get(state, 0) for state in OPEN_STATES),
        accepted=states.get("accepted", 0),
        published=states.get("published", 0),
        shown=shown.all,
        awaiting_review=states.get("awaiting_review", 0),
        dead_letters=states.get("dead_letter", 0),
        batches_open=sum(n for state, n in batches.items() if state not in ENDED_STATES),
        waiting=len(waiting),
        done=not waiting,
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
        if state not in ENDED_STATES and state not in PERSON_BATCHES
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


class _Shown(NamedTuple):
    """Documents that the archive shows with a version's values, as in `Publication`."""

    all: int
    former: int
    again: int


def _shown(connection: Connection, ledger: Ledger, version: KnownVersion) -> _Shown:
    shown, present, published = ledger.dialect.fetch(
        connection,
        "SELECT COUNT(*), COUNT(s.entry_no), "
        "COUNT(CASE WHEN s.entry_no IS NOT NULL AND t.state = 'published' THEN 1 END) "
        "FROM archive_heads h "
        "JOIN archive_entries e ON e.entry_no = h.entry_no "
        "JOIN records r ON r.record_no = e.record_no "
        "JOIN record_state t ON t.record_no = e.record_no "
        "LEFT JOIN source_entries s ON s.document_no = e.document_no AND s.to_snapshot IS NULL "
        "AND s.source_version_no = r.source_version_no WHERE e.version_no = ?",
        {"shown": pl.Int64, "present": pl.Int64, "published": pl.Int64},
        (version.version_no,),
    ).row(0)
    return _Shown(shown, shown - present, present - published)


def _batches(connection: Connection, ledger: Ledger, version: KnownVersion) -> dict[str, int]:
    rows = ledger.dialect.fetch(
        connection,
        "SELECT state, COUNT(*) FROM batches WHERE version_no = ? GROUP BY state",
        {"state": pl.String, "batches": pl.Int64},
        (version.version_no,),
    )
    return dict(rows.sort("state").iter_rows())


def _retries_due(connection: Connection, ledger: Ledger, version_no: int, now: str) -> int:
    return ledger.dialect.fetch(
        connection,
        "SELECT COUNT(*) FROM record_state s CROSS JOIN records r "
        "WHERE r.record_no = s.record_no AND r.version_no = ? AND s.state = 'retry_wait' "
        "AND (s.not_before IS NULL OR s.not_before <= ?)",
        {"n": pl.Int64},
        (version_no, now),
    ).item()


def next_poll(batches: pl.DataFrame, now: datetime) -> NextPoll | None:
    """The earliest look at a job (of `ages.BATCH_SCHEMA`); what a run answers itself has none."""
    asked = batches.filter(
        (pl.col("mode") == "batch")
        & pl.col("state").is_in(POLLED_STATES)
        & pl.col("next_poll_at").is_not_null()
    ).sort("next_poll_at", "batch_id")
    if asked.is_empty():
        return None
    batch_id, at = asked.select("batch_id", "next_poll_at").row(0)
    return NextPoll(batch_id, at, overdue=from_text(at) < now - POLL_GRACE)


def _publication(standings: Standings, shown: _Shown) -> Publication:
    published = standings.states.get("published", 0)
    accepted = standings.states.get("accepted", 0)
    both = published + accepted
    return Publication(
        published=published,
        accepted=accepted,
        shown=shown.all,
        shown_former=shown.former,
        share=round(published / both, 4) if both else None,
        shown_again=shown.again,
    )


def _open(facts: WaitFacts, kind: str) -> int:
    return _sum(facts.reviews.filter(pl.col("kind") == kind), "reviews")


def _sum(frame: pl.DataFrame, column: str) -> int:
    return int(frame[column].sum())


def _age(moment: object, now: datetime) -> float | None:
    return None if moment is None else round((now - from_text(str(moment))).total_seconds(), 1)
