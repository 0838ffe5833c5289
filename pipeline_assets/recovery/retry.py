"""Whether, when and how a failed record is tried again: a pure decision.

Belongs here: the limits of each failure class, the recovery paths, and the decision over one
history or over a whole batch of them. Does not belong here: giving a result its class
(`pipeline_assets/failures.py`), reading histories (`resources/ledger/retries.py`), and making the
next attempt (`prepare/retries.py`).

An identical call is repeated only where the failure was not the answer's own. Where it was, a
named path changes the request, once; where the version allows no such path, an owner decides.
Limits of a record end in a dead letter. Limits of a whole version hold the version, and its
records keep waiting: nothing is buried because the money ran out.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from types import MappingProxyType
from typing import Literal

import polars as pl

from partitions.processing_version import Spec
from pipeline_assets.recovery.budget import BudgetLimit, Work, decide_budget
from resources.clock import from_text, to_text

REPEAT = "repeat"
"""The next attempt sends the same bytes as the last one."""
LARGER_OUTPUT = "larger_output"
REPAIR_PROMPT = "repair_prompt"
FEWER_PAGES = "fewer_pages"
SMALLER_BATCH = "smaller_batch"
"""The same requests in batches of half the size."""
REQUEUE = "requeue"
"""An operator asked for it."""
REPLAY = "replay"
"""A replay of the same version asked for it."""
CHANGED_PATHS = (LARGER_OUTPUT, REPAIR_PROMPT, FEWER_PAGES)
"""Paths whose request is another one; each is gone once."""

LONGEST_DELAY = timedelta(hours=2)
DOUBLINGS = 12

Kind = Literal["retry", "hold", "dead_letter"]


@dataclass(frozen=True)
class ClassLimits:
    """What a failure class allows.

    Attributes:
        retries: how often an attempt that failed so is followed by another.
        first_delay: the longest first delay; it doubles with each failure of the class.
        path: what the next attempt does differently.
        free: such an attempt uses none of the record's limit; it is counted by itself.
        hold: no further attempt helps before somebody acts: the version is held.
    """

    retries: int
    first_delay: timedelta = timedelta(minutes=1)
    path: str = REPEAT
    free: bool = False
    hold: bool = False


CLASS_LIMITS: Mapping[str, ClassLimits] = MappingProxyType(
    {
        "transport": ClassLimits(3),
        "rate_limited": ClassLimits(5, timedelta(minutes=2)),
        "overloaded": ClassLimits(5, timedelta(minutes=2)),
        "server_error": ClassLimits(3),
        "missing_result": ClassLimits(2),
        "misrouted": ClassLimits(1),
        "expired": ClassLimits(0, timedelta(minutes=5), free=True),
        "cancelled": ClassLimits(0, timedelta(minutes=5), free=True),
        "capacity": ClassLimits(0, timedelta(minutes=15), path=SMALLER_BATCH, free=True),
        "truncated": ClassLimits(1, path=LARGER_OUTPUT),
        "malformed_json": ClassLimits(1, path=REPAIR_PROMPT),
        "schema_violation": ClassLimits(1, path=REPAIR_PROMPT),
        "too_large": ClassLimits(1, path=FEWER_PAGES),
        "auth": ClassLimits(0, hold=True, free=True),
        "quota": ClassLimits(0, hold=True, free=True),
    }
)
"""Failure classes that may be followed by another attempt. What is not here is an owner's."""


@dataclass(frozen=True)
class History:
    """What was tried for a record, the failed attempt included.

    Attributes:
        attempts: attempts that used the record's limit.
        of_class: failures of the present class, this one included.
        free: attempts that used none of it.
        paths: recovery paths that were gone.
        first_submitted_at: when the first of them was handed over; None if none was.
    """

    attempts: int
    of_class: int
    free: int
    paths: frozenset[str]
    first_submitted_at: datetime | None


@dataclass(frozen=True)
class RecordLimits:
    """Limits of one record: attempts that count, free ones, and time since the first."""

    attempts: int
    free: int
    time: timedelta


@dataclass(frozen=True)
class Budget:
    """The work budget of a version.

    Attributes:
        attempts: retries that the version may make in all; None for no limit.
        retries_made: how many it has made.
        money: US dollars that it may cost; None for no limit.
        spent: what it has cost, as far as tokens are known; None if a price is not.
        unsized: what answers and attempts of unknown tokens may have cost at most.
        time: how long it may take from its first submission; None for no limit.
        elapsed: since its first submission; None before it.
    """

    attempts: int | None = None
    retries_made: int = 0
    money: Decimal | None = None
    spent: Decimal | None = Decimal(0)
    unsized: Decimal | None = Decimal(0)
    time: timedelta | None = None
    elapsed: timedelta | None = None


@dataclass(frozen=True)
class RetryDecision:
    """What becomes of a failed record.

    Attributes:
        kind: `retry`; `hold`: it waits until the version is released; `dead_letter`.
        path: what the next attempt does differently.
        counted: did the failed attempt use the record's limit?
        not_before: the next attempt is not made before; None for a dead letter.
        reason: closed wording.
        hold: which kind of hold the version is put under, None for none.
    """

    kind: Kind
    path: str
    counted: bool
    not_before: datetime | None
    reason: str
    hold: str | None = None


def allowed_paths(spec: Spec) -> frozenset[str]:
    """The recovery paths that a version's spec allows."""
    recovery = None if spec.request is None else spec.request.recovery
    if recovery is None:
        return frozenset()
    named = {
        LARGER_OUTPUT: recovery.output_tokens,
        REPAIR_PROMPT: recovery.repair_prompt,
        FEWER_PAGES: recovery.document_tokens,
    }
    return frozenset(path for path, value in named.items() if value is not None)


def decide_retry(
    failure: str,
    history: History,
    limits: RecordLimits,
    budget: Budget,
    paths: frozenset[str],
    now: datetime,
    rng: random.Random,
) -> RetryDecision:
    """Decide about one failed attempt.

    Args:
        failure: its failure class.
        history: what was tried.
        limits: of the record.
        budget: of the version.
        paths: recovery paths that the version allows.
        now: the time.
        rng: draws the jitter.
    """
    rule = CLASS_LIMITS.get(failure)
    if rule is None:
        return _buried(REPEAT, True, f"{failure} is not mended by another attempt")
    counted = not rule.free
    if rule.hold:
        return RetryDecision(
            "hold", REPEAT, False, now, f"{failure}: nothing succeeds before it is settled", failure
        )
    if rule.path in CHANGED_PATHS:
        if rule.path not in paths:
            return _buried(rule.path, counted, f"the version allows no {rule.path}")
        if rule.path in history.paths:
            return _buried(rule.path, counted, f"{rule.path} was tried and did not help")
    used_up = _used_up(failure, rule, history, limits, now)
    delay = backoff(rule.first_delay, history.of_class, rng)
    if rule.free and history.free > limits.free:
        used_up = f"{history.free - 1} free retries of a record are used up ({failure})"
    if used_up is not None and rule.free:
        # A provider that runs nothing says nothing of the record: it is never buried for that.
        return RetryDecision("hold", rule.path, False, now + delay, used_up, "free_retries")
    if used_up is not None:
        return _buried(rule.path, counted, used_up)
    over = _over_budget(budget)
    if over is not None:
        return RetryDecision("hold", rule.path, counted, now + delay, over, "budget")
    return RetryDecision("retry", rule.path, counted, now + delay, f"after {failure}")


def backoff(first: timedelta, failures: int, rng: random.Random) -> timedelta:
    """How long to wait: full jitter under a bound that doubles with each failure."""
    bound = min(LONGEST_DELAY, first * 2 ** min(DOUBLINGS, max(0, failures - 1)))
    return bound * rng.random()


def _used_up(
    failure: str, rule: ClassLimits, history: History, limits: RecordLimits, now: datetime
) -> str | None:
    if not rule.free and history.of_class > rule.retries:
        return f"{failure} came {history.of_class} times, at most {rule.retries} retries"
    if not rule.free and history.attempts >= limits.attempts:
        return f"all {limits.attempts} attempts are used up"
    first = history.first_submitted_at
    if first is not None and now - first > limits.time:
        hours = int(limits.time.total_seconds() // 3600)
        return f"its first attempt is more than {hours} hours ago"
    return None


def _over_budget(budget: Budget) -> str | None:
    over = decide_budget(
        BudgetLimit(budget.money, budget.attempts, budget.time),
        Work(budget.spent, budget.retries_made, budget.elapsed),
        Work(budget.unsized),
        Work(attempts=1),
    )
    return None if over is None else over.told


def _buried(path: str, counted: bool, reason: str) -> RetryDecision:
    return RetryDecision("dead_letter", path, counted, None, reason)


FAILED_SCHEMA = {
    "attempt_no": pl.Int64,
    "record_no": pl.Int64,
    "failure_class": pl.String,
    "attempts": pl.Int64,
    "of_class": pl.Int64,
    "free": pl.Int64,
    "paths": pl.String,
    "first_submitted_at": pl.String,
}
"""A failed attempt with its history before it: counts without this attempt; `paths` are names
with blanks between, sorted."""

DECIDED_SCHEMA = {
    "attempt_no": pl.Int64,
    "record_no": pl.Int64,
    "decision": pl.String,
    "recovery_path": pl.String,
    "counted": pl.Int64,
    "failure_class": pl.String,
    "reason": pl.String,
    "not_before": pl.String,
}


@dataclass(frozen=True)
class Decided:
    """Decisions about a batch's failed attempts.

    Attributes:
        rows: `DECIDED_SCHEMA`.
        holds: kind of hold → reason, for the version.
    """

    rows: pl.DataFrame
    holds: dict[str, str]


def decide_retries(
    failed: pl.DataFrame,
    limits: RecordLimits,
    budget: Budget,
    paths: frozenset[str],
    now: datetime,
    rng: random.Random,
) -> Decided:
    """Decide about every failed attempt of a batch; equal histories are decided together.

    They also get the same delay, so that they share a retry manifest. Retries are counted against
    the version's budget group by group; a group that does not fit as a whole waits as a whole.

    Args:
        failed: `FAILED_SCHEMA`.
        limits: of each record.
        budget: of the version, before this batch.
        paths: recovery paths that the version allows.
        now: the time.
        rng: draws the jitter.
    """
    keys = ["failure_class", "attempts", "of_class", "free", "paths", "first_submitted_at"]
    parts = [pl.DataFrame(schema=DECIDED_SCHEMA)]
    holds: dict[str, str] = {}
    made = budget.retries_made
    for group in failed.sort(*keys, "attempt_no").partition_by(keys, maintain_order=True):
        first = group.row(0, named=True)
        rule = CLASS_LIMITS.get(first["failure_class"])
        free = rule is not None and rule.free
        submitted = first["first_submitted_at"]
        history = History(
            attempts=first["attempts"] + (0 if free else 1),
            of_class=first["of_class"] + 1,
            free=first["free"] + (1 if free else 0),
            paths=frozenset(first["paths"].split()),
            first_submitted_at=None if submitted is None else from_text(submitted),
        )
        # Counted as if all but one of the group were retried already: all fit, or none.
        ahead = replace(budget, retries_made=made + group.height - 1)
        decision = decide_retry(first["failure_class"], history, limits, ahead, paths, now, rng)
        if decision.kind == "retry":
            made += group.height
        if decision.hold is not None:
            holds.setdefault(decision.hold, decision.reason)
        parts.append(_rows(group, decision))
    return Decided(pl.concat(parts).sort("attempt_no"), holds)


def _rows(group: pl.DataFrame, decision: RetryDecision) -> pl.DataFrame:
    until = None if decision.not_before is None else to_text(decision.not_before)
    return group.select(
        "attempt_no",
        "record_no",
        decision=pl.lit(decision.kind),
        recovery_path=pl.lit(decision.path),
        counted=pl.lit(int(decision.counted), dtype=pl.Int64),
        failure_class="failure_class",
        reason=pl.lit(decision.reason),
        not_before=pl.lit(until, dtype=pl.String),
    )
