"""A schedule as data: drawn from a seed, edited by shrinking, and nothing else decides a run.

Belongs here: the plan, drawing it, and the smaller plans next to it. Does not belong here:
carrying it out.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

Place = Literal["read", "begin", "commit", "committed", "call", "answered", "artifact"]
"""Where a worker can be disturbed: before a read, before a write transaction, inside it before
its commit, after its commit, before a provider hears a call, after it acted, and at an artifact."""

What = Literal["switch", "stall", "kill", "fails", "full", "lost"]

WHATS: dict[Place, tuple[What, ...]] = {
    "read": ("switch", "kill", "fails"),
    "begin": ("switch", "stall", "stall", "kill", "fails"),
    "commit": ("fails", "full", "kill"),
    "committed": ("switch", "stall", "stall", "kill", "lost"),
    "call": ("switch", "stall", "kill"),
    "answered": ("switch", "stall", "kill", "lost"),
    "artifact": ("full", "kill", "stall"),
}
PLACES: tuple[Place, ...] = tuple(WHATS)
_WEIGHTS = (1, 5, 3, 5, 2, 3, 2)
_REACH = 26
"""About how many write transactions a batch passes in its life, and a quarter as many calls and
artifacts; a disturbance beyond the end simply never happens."""

_LEFT = {
    "nothing": 4,
    "frozen": 4,
    "submitted": 3,
    "ended": 3,
    "retried": 3,
    "collected": 2,
    "judged": 2,
}
"""Quarters of a life that are left."""

CreateFault = Literal[
    "none",
    "accepted_then_lost",
    "lost_before",
    "unreachable",
    "unavailable",
    "busy",
    "input_gone",
]
JobFault = Literal["none", "expired", "failed", "cancelled", "slow", "short_file", "no_job_seen"]
RowFault = Literal[
    "good",
    "uncertain",
    "missing",
    "same_twice",
    "two_bodies",
    "malformed_line",
    "overloaded",
    "invalid",
    "not_json",
    "misrouted",
    "alien",
    "late",
]
CREATE_FAULTS: tuple[CreateFault, ...] = (
    "accepted_then_lost",
    "lost_before",
    "unreachable",
    "unavailable",
    "busy",
    "input_gone",
)
JOB_FAULTS: tuple[JobFault, ...] = (
    "expired",
    "failed",
    "cancelled",
    "slow",
    "short_file",
    "no_job_seen",
)
ROW_FAULTS: tuple[RowFault, ...] = (
    "uncertain",
    "missing",
    "same_twice",
    "two_bodies",
    "malformed_line",
    "overloaded",
    "invalid",
    "not_json",
    "misrouted",
    "alien",
    "late",
)
OPERATOR_WISHES = ("cancel", "discard", "attach")
Start = Literal["nothing", "frozen", "submitted", "ended", "collected", "retried", "judged"]
Until = Literal[
    "submitted", "ended", "collected", "judged", "refrozen", "published", "settled", "archived"
]
SMALL_PARTS: tuple[tuple[Start, Until], ...] = (
    ("frozen", "submitted"),
    ("submitted", "ended"),
    ("ended", "collected"),
    ("collected", "judged"),
    ("collected", "refrozen"),
    ("retried", "collected"),
    ("retried", "judged"),
    ("judged", "published"),
)
"""One stage each, raced and disturbed; what is before it was the same in thousands of others."""
_SMALL_WEIGHTS = (28, 15, 13, 12, 9, 4, 2, 17)
_SMALL_OF_HUNDRED = 86
_SMALL_REACH: dict[Until, int] = {
    "submitted": 12,
    "ended": 7,
    "collected": 11,
    "judged": 7,
    "refrozen": 6,
    "published": 7,
}
"""How many write transactions a batch passes in a small part, and some more for those who race."""
PARTS: tuple[tuple[Start, Until], ...] = (
    ("nothing", "submitted"),
    ("nothing", "settled"),
    ("nothing", "archived"),
    ("frozen", "settled"),
    ("frozen", "archived"),
    ("submitted", "settled"),
    ("submitted", "archived"),
    ("collected", "archived"),
    ("retried", "archived"),
)
_PART_WEIGHTS = (10, 5, 6, 12, 10, 18, 11, 20, 8)
"""From how far an undisturbed worker has come until where the schedule goes on."""
_FIRST_ROWS: tuple[tuple[tuple[int, int, RowFault], ...], ...] = (
    (),
    ((0, 0, "uncertain"),),
    ((0, 0, "missing"),),
    ((0, 1, "two_bodies"),),
)
"""Rows of jobs that are collected before the schedule begins."""
_BEFORE: dict[Start, Until] = {"ended": "ended", "judged": "judged"}
"""What is worked at before a schedule begins, so that no batch is further than the others."""
_UNANSWERED: tuple[tuple[tuple[int, int, RowFault], ...], ...] = (
    ((0, 0, "missing"),),
    ((0, 0, "overloaded"), (0, 1, "missing")),
)
"""The same, where something has to be asked again."""
_ENDED_JOBS: tuple[JobFault, ...] = ("none", "short_file", "expired", "failed", "cancelled")
_ENDED_WEIGHTS = (76, 8, 8, 4, 4)
"""What became of the first of jobs that have ended before the schedule begins."""
_RETRY_ROWS: tuple[RowFault, ...] = ("late", "late", "good", "missing")
"""What becomes of the first row that was asked again."""
_ARCHIVING: tuple[Start, ...] = ("nothing", "frozen", "submitted", "collected", "judged")
"""Beginnings of schedules in which an older entry of a document can be of interest."""


@dataclass(frozen=True)
class Disturbance:
    """The `nth` time that any worker passes `place`, `what` happens to the one that does.

    Attributes:
        patience: how many further steps of others a stalled worker sleeps.
        seconds: how far the clock goes on while it stalls.
    """

    place: Place
    nth: int
    what: What
    patience: int = 0
    seconds: int = 0


@dataclass(frozen=True)
class Plan:
    """Everything that a run depends on.

    Attributes:
        seed: for jitter inside the product's code.
        documents: how many.
        batch_records: at most so many in one batch.
        workers: how many at once.
        start: how far everything has come before.
        until: which part of the pipeline is worked at; the schedule ends when it has nothing
            left to do.
        published_before: documents that have an entry of an older version in the archive.
        uploads: the provider takes its input as a file first.
        creates: what becomes of the first, second, ... create call.
        jobs: what becomes of the first, second, ... job.
        rows: (job, row) → what becomes of the row; rows that are not named are good.
        wishes: what an operator does, at the first moment when it can be done.
        disturbances: what happens to workers.
    """

    seed: int
    documents: int
    batch_records: int
    workers: int
    start: Start
    until: Until
    published_before: int
    uploads: bool
    creates: tuple[CreateFault, ...]
    jobs: tuple[JobFault, ...]
    rows: tuple[tuple[int, int, RowFault], ...]
    wishes: tuple[str, ...]
    disturbances: tuple[Disturbance, ...]

    @property
    def prefix(self) -> Plan:
        """What happened before, undisturbed."""
        return replace(
            self,
            seed=0,
            workers=1,
            start="nothing",
            until=_BEFORE.get(self.start, "settled"),
            uploads=False,
            creates=(),
            jobs=self.jobs if self.start == "ended" else (),
            rows=tuple(row for row in self.rows if row[0] < self.jobs_before),
            wishes=(),
            disturbances=(),
        )

    @property
    def jobs_before(self) -> int:
        """How many jobs have answered before the schedule begins."""
        batches = -(-self.documents // self.batch_records)
        return {"collected": batches, "judged": batches, "ended": batches, "retried": 9}.get(
            self.start, 0
        )

    @property
    def size(self) -> int:
        """How much there is in it; shrinking makes it smaller."""
        return (
            self.documents
            + self.workers
            + self.published_before
            + sum(fault != "none" for fault in (*self.creates, *self.jobs))
            + len(self.rows)
            + len(self.wishes)
            + len(self.disturbances)
        )


def draw(seed: int) -> Plan:
    """The plan of a seed; the same one for ever."""
    rng = random.Random(seed)
    small = rng.randrange(100) < _SMALL_OF_HUNDRED
    start, until = (
        rng.choices(SMALL_PARTS, _SMALL_WEIGHTS) if small else rng.choices(PARTS, _PART_WEIGHTS)
    )[0]
    documents = rng.choices((2, 3, 4), (65, 25, 10) if small else (50, 35, 15))[0]
    batches = rng.choices((1, 2), (85, 15) if small else (80, 20))[0]
    batch_records = -(-documents // batches)
    jobs = _draw_jobs(rng, start)
    reach = _SMALL_REACH[until] if small else _REACH * _LEFT[start] // 4
    return Plan(
        seed=seed,
        documents=documents,
        batch_records=batch_records,
        workers=rng.choices((1, 2, 3), (15, 60, 25) if small else (20, 50, 30))[0],
        start=start,
        until=until,
        published_before=rng.choice((0, 1) if start in _ARCHIVING else (0,)),
        uploads=rng.random() < 0.6,
        creates=tuple(
            rng.choice(CREATE_FAULTS) if rng.random() < 0.25 else "none" for _ in range(4)
        ),
        jobs=jobs,
        rows=()
        if start == "ended" and jobs[0] != "none"
        else _draw_rows(rng, start, until, batches),
        wishes=(rng.choice(OPERATOR_WISHES),) if rng.random() < 0.1 else (),
        disturbances=tuple(
            _draw_disturbance(rng, reach * batches)
            for _ in range(rng.randrange(0, 5 if small else 7))
        ),
    )


def _draw_jobs(rng: random.Random, start: Start) -> tuple[JobFault, ...]:
    if start == "ended":
        return (rng.choices(_ENDED_JOBS, _ENDED_WEIGHTS)[0],)
    return tuple(rng.choice(JOB_FAULTS) if rng.random() < 0.15 else "none" for _ in range(6))


def _draw_rows(
    rng: random.Random, start: Start, until: Until, batches: int
) -> tuple[tuple[int, int, RowFault], ...]:
    if start == "ended":
        return rng.choice(_ended_rows())
    if start == "retried":
        return (*rng.choice(_UNANSWERED), (batches, 0, rng.choice(_RETRY_ROWS)))
    # Only a job after the first can bring a line of an earlier attempt.
    late: list[RowFault] = ["late"] * 8
    later: list[RowFault] = [*ROW_FAULTS, *late]
    begun = start in ("collected", "judged")
    known = _UNANSWERED if until == "refrozen" else _FIRST_ROWS
    drawn: list[tuple[int, int, RowFault]] = list(rng.choice(known)) if begun else []
    for job in range(batches if begun else 0, 4):
        for row in range(6):
            if rng.random() < 0.12:
                fault: RowFault = rng.choice(later) if job else rng.choice(ROW_FAULTS)
                drawn.append((job, row, fault))
    return tuple(drawn)


def _ended_rows() -> list[tuple[tuple[int, int, RowFault], ...]]:
    """Each fault of a row, alone: few enough to keep what comes before each."""
    return [(), *(((0, row, fault),) for fault in ROW_FAULTS[:-1] for row in (0, 1))]


def _draw_disturbance(rng: random.Random, commits: int) -> Disturbance:
    place = rng.choices(PLACES, _WEIGHTS)[0]
    reach = commits if place in ("read", "begin", "commit", "committed") else commits // 4
    return Disturbance(
        place=place,
        nth=rng.randrange(1, max(3, reach + 1)),
        what=rng.choice(WHATS[place]),
        patience=rng.randrange(3, 60),
        seconds=rng.choice((1, 100, 290, 310, 400, 1000)),
    )


def smaller(plan: Plan) -> Iterator[Plan]:
    """Plans with one thing less, the largest cuts first."""
    for cut in _fewer(len(plan.disturbances)):
        kept = tuple(d for i, d in enumerate(plan.disturbances) if i not in cut)
        yield replace(plan, disturbances=kept)
    if plan.wishes:
        yield replace(plan, wishes=())
    for cut in _fewer(len(plan.rows)):
        yield replace(plan, rows=tuple(row for i, row in enumerate(plan.rows) if i not in cut))
    for i, fault in enumerate(plan.creates):
        if fault != "none":
            yield replace(plan, creates=(*plan.creates[:i], "none", *plan.creates[i + 1 :]))
    for i, fault in enumerate(plan.jobs):
        if fault != "none":
            yield replace(plan, jobs=(*plan.jobs[:i], "none", *plan.jobs[i + 1 :]))
    yield from _less_work(plan)


def _less_work(plan: Plan) -> Iterator[Plan]:
    if plan.until == "archived" and plan.start != "collected":
        yield replace(plan, until="settled")
    if plan.published_before:
        yield replace(plan, published_before=plan.published_before - 1)
    if plan.workers > 1:
        yield replace(plan, workers=plan.workers - 1)
    if plan.documents > 1:
        yield replace(plan, documents=plan.documents - 1)


def _fewer(count: int) -> Iterator[frozenset[int]]:
    """Positions to leave out: all, halves, then one by one."""
    if count > 3:
        yield frozenset(range(count))
        yield frozenset(range(count // 2))
        yield frozenset(range(count // 2, count))
    for position in range(count):
        yield frozenset((position,))
