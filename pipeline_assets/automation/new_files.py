"""Which sources have something for a run, from what a tick found; a pure decision.

Belongs here: the decision and the memory that it needs from one tick to the next. Does not belong
here: looking at sources and asking the ledger (`source_work.py`), Dagster (`source_sensor.py`).

A document is taken when two looks running found it the same, and it is older than its source
declares: whatever changed since the look before is younger than the time between the two, so one
age stands for both. A table is one file for all of its documents and holds still as a whole.

A run scans one source. If it scanned several, one that cannot be listed would end the run, and
the documents of the others would wait with it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pipeline_assets.ingest.look import Look

Why = Literal["new", "changed", "removed", "event", "pending", "withdrawal"]

FIRST_SETTLE_SECONDS = 30
"""Where there was no look before, documents younger than the time between two looks wait."""
LONGEST_SETTLE_SECONDS = 86_400


@dataclass(frozen=True)
class Waiting:
    """Documents that the ledger knows and a version has not dealt with.

    Attributes:
        documents: how many.
        mark: the same as long as they are the same.
    """

    documents: int = 0
    mark: str = ""


@dataclass(frozen=True)
class Found:
    """What a tick found of one source.

    Attributes:
        source: its name.
        version: the version that processes it.
        look: what its listing told.
        settle_seconds: how young a document may be at most to be left alone.
        events: events of a queue that wait.
        pending: documents of it that are not dealt with, by the ledger.
        withdrawal: removed documents that are still shown and are to leave, by the ledger.
        stamp: of what the ledger's two answers were made from.
    """

    source: str
    version: str
    look: Look
    settle_seconds: int
    events: int = 0
    pending: Waiting = Waiting()
    withdrawal: Waiting = Waiting()
    stamp: str = ""


@dataclass(frozen=True)
class Remembered:
    """What a tick tells the next one of a source; times are seconds since 1970.

    Attributes:
        looked_at: when it was last looked at.
        listed_at: when it could last be listed.
        mark: of what its listing would have changed then.
        since: since when the mark is that.
        asked_at: when a run was last asked for.
        stamp: as in `Found`, kept only where the ledger had nothing for a run.
    """

    looked_at: float = 0.0
    listed_at: float = 0.0
    mark: str = ""
    since: float = 0.0
    asked_at: float = 0.0
    stamp: str = ""


@dataclass(frozen=True)
class SourceRun:
    """A run to ask for.

    Attributes:
        version: the partition.
        source: the source that it scans.
        settle_seconds: younger documents are left alone by its scan, too.
        why: what it is for, sorted.
        mark: the same as long as the work is the same.
    """

    version: str
    source: str
    settle_seconds: int
    why: tuple[Why, ...]
    mark: str


@dataclass(frozen=True)
class SourceDecision:
    """What a tick comes to.

    Attributes:
        runs: at most one a version.
        memory: of every source, for the next tick.
        later: sources with work whose version a run is at, or has another source's turn.
    """

    runs: tuple[SourceRun, ...]
    memory: dict[str, Remembered]
    later: tuple[str, ...]


def settle_seconds(declared: int, before: Remembered | None, now: float) -> int:
    """How old a document has to be: what it declares, and at least since the look before."""
    since = FIRST_SETTLE_SECONDS if not before or not before.listed_at else now - before.listed_at
    return min(max(declared, math.ceil(since)), LONGEST_SETTLE_SECONDS)


def decide_sources(
    found: Sequence[Found],
    memory: Mapping[str, Remembered],
    now: float,
    busy: Collection[str],
    unreadable: Collection[str] = (),
) -> SourceDecision:
    """Decide for every source that was looked at.

    Args:
        found: what the tick found, a source once.
        memory: what the tick before remembered; sources without an entry are new.
        now: the time, seconds since 1970.
        busy: versions that a run is at.
        unreadable: sources that could not be listed; nothing is concluded but that they had
            their turn.
    """
    after = {
        name: replace(memory.get(name, Remembered()), looked_at=now) for name in unreadable
    } | {each.source: _remember(each, memory.get(each.source), now) for each in found}
    work = [(each, why) for each in found if (why := _why(each))]
    # The source that waits longest for its turn; of equals the first by name.
    work.sort(key=lambda pair: (after[pair[0].source].asked_at, pair[0].source))
    runs: dict[str, SourceRun] = {}
    later: list[str] = []
    for each, why in work:
        if each.version in busy or each.version in runs:
            later.append(each.source)
            continue
        runs[each.version] = SourceRun(
            each.version, each.source, each.settle_seconds, why, _mark(each)
        )
        after[each.source] = replace(after[each.source], asked_at=now)
    return SourceDecision(tuple(runs.values()), {**memory, **after}, tuple(sorted(later)))


def _why(each: Found) -> tuple[Why, ...]:
    look = each.look
    words: set[Why] = set()
    if look.new:
        words.add("new")
    if look.changed:
        words.add("changed")
    if look.removed and look.finished:
        words.add("removed")
    # An event of a document that is still being written waits with it.
    if each.events > look.unsettled:
        words.add("event")
    if each.pending.documents:
        words.add("pending")
    if each.withdrawal.documents:
        words.add("withdrawal")
    return tuple(sorted(words))


def _mark(each: Found) -> str:
    parts = [
        each.source,
        each.look.mark,
        f"e{each.events}" if each.events else "",
        each.pending.mark,
        each.withdrawal.mark,
    ]
    return "-".join(part[:16] for part in parts if part)


def _remember(each: Found, before: Remembered | None, now: float) -> Remembered:
    before = before or Remembered()
    mark = each.look.mark
    nothing = not each.pending.documents and not each.withdrawal.documents
    return replace(
        before,
        looked_at=now,
        listed_at=now,
        mark=mark,
        since=before.since if mark == before.mark and before.since else now,
        stamp=each.stamp if nothing else "",
    )
