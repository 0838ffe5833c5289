"""What stands still although nothing has to wait for it; a pure decision over facts.

Belongs here: the facts' shape, the decision and its words. Does not belong here: reading the
ledger (`stuck_facts.py`), the job that tells it (`schedules.py`).

A held version is no news here: its hold has an alert of its own. Records at a provider may wait
until the internal deadline of their batch; after it, somebody has to have asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

STUCK, REVIEWS, SILENT = "stuck_work", "reviews_aging", "source_silent"
"""Kinds of the alerts; their subject is a version's key, for `SILENT` a source's name."""

UNASKED = timedelta(minutes=30)
"""A batch past its deadline is asked about every few minutes; nobody did for so long."""
SOURCE_SILENCE = timedelta(hours=1)
"""Automation looks at a source every half a minute; it did not for so long."""
_NAMED = 3


@dataclass(frozen=True)
class Limits:
    """How long things of a version may stand (operating settings)."""

    stuck: timedelta
    review: timedelta


@dataclass(frozen=True)
class Group:
    """Records, or reviews, of a version that have stood the same since the same moment.

    Attributes:
        version: its key.
        what: the record state; empty for reviews.
        since: when they came to it; for `retry_wait` when they were due.
        count: how many.
    """

    version: str
    what: str
    since: datetime
    count: int


@dataclass(frozen=True)
class BatchFact:
    """A batch that is not complete.

    Attributes:
        version: its version's key.
        batch: its id.
        state: its state.
        since: when it came to that state.
        deadline: its internal deadline; None where it has none.
        next_poll: when it was to be asked about next; None where nobody is to ask.
    """

    version: str
    batch: str
    state: str
    since: datetime
    deadline: datetime | None = None
    next_poll: datetime | None = None


@dataclass(frozen=True)
class Facts:
    """What the ledger and the sensors say; versions that are not active are left out.

    Attributes:
        records: by version, state and moment.
        reviews: open ones, by version and moment.
        batches: those that are not complete.
        canaries: versions with batches that wait for a canary which did not pass: key → why.
        sources: source → how long automation has not looked at it; only while it is on.
    """

    records: tuple[Group, ...] = ()
    reviews: tuple[Group, ...] = ()
    batches: tuple[BatchFact, ...] = ()
    canaries: Mapping[str, str] = field(default_factory=dict)
    sources: Mapping[str, timedelta] = field(default_factory=dict)


def find_stuck(
    facts: Facts, now: datetime, limits: Mapping[str, Limits]
) -> dict[str, dict[str, str]]:
    """What has to be told: kind of alert → subject → message.

    The words name moments, not ages, so that they stay the same while nothing changes.

    Args:
        facts: how things stand.
        now: the ledger's time.
        limits: by version's key; every version of the facts has some.
    """
    told: dict[str, list[str]] = {}
    for each in facts.batches:
        problem = _of_batch(each, now, limits[each.version].stuck)
        if problem is not None:
            told.setdefault(each.version, []).append(problem)
    stuck = {key: _named(problems) for key, problems in told.items()}
    for key, groups in _aged(facts.records, now, {k: v.stuck for k, v in limits.items()}).items():
        stuck.setdefault(key, []).append(_of_records(groups))
    for key, canary in facts.canaries.items():
        stuck.setdefault(key, []).append(f"batches wait for a canary: {canary}")
    aged = _aged(facts.reviews, now, {key: given.review for key, given in limits.items()})
    return {
        STUCK: {key: "; ".join(problems) for key, problems in sorted(stuck.items())},
        REVIEWS: {key: _of_reviews(groups) for key, groups in sorted(aged.items())},
        SILENT: {
            name: "no look for more than an hour, although automation is on"
            for name, silence in sorted(facts.sources.items())
            if silence > SOURCE_SILENCE
        },
    }


def _of_batch(each: BatchFact, now: datetime, limit: timedelta) -> str | None:
    since = _minute(each.since)
    if each.state in ("quarantined", "incident"):
        return f"batch {each.batch} has been {each.state} since {since} and waits for a person"
    if each.state in ("submitted", "running"):
        late = each.deadline is not None and each.deadline < now
        unasked = each.next_poll is not None and each.next_poll < now - UNASKED
        if late and unasked:
            assert each.deadline is not None  # noqa: S101 - it is late
            return f"batch {each.batch} passed its deadline at {_minute(each.deadline)} unasked"
        return None
    # Of prepared ones the records are counted: they stand still with them.
    if each.state != "prepared" and each.since < now - limit:
        return f"batch {each.batch} has been {each.state} since {since}"
    return None


def _aged(
    groups: tuple[Group, ...], now: datetime, limits: Mapping[str, timedelta]
) -> dict[str, list[Group]]:
    found: dict[str, list[Group]] = {}
    for group in groups:
        if group.since < now - limits[group.version]:
            found.setdefault(group.version, []).append(group)
    return found


def _of_records(groups: list[Group]) -> str:
    counts: Counter[str] = Counter()
    for group in groups:
        counts[group.what] += group.count
    told = ", ".join(f"{count} {state}" for state, count in sorted(counts.items()))
    oldest = min(group.since for group in groups)
    return f"records that do not move: {told}; the oldest since {_minute(oldest)}"


def _of_reviews(groups: list[Group]) -> str:
    count = sum(group.count for group in groups)
    oldest = min(group.since for group in groups)
    plural = "s have" if count != 1 else " has"
    return f"{count} review{plural} been open for too long, the oldest since {_minute(oldest)}"


def _named(problems: list[str]) -> list[str]:
    left = len(problems) - _NAMED
    return problems[:_NAMED] + ([f"and {left} more batches"] if left > 0 else [])


def _minute(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M UTC")
