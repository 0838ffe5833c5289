"""When to look at a job again and what a look means: pure decisions.

Belongs here: backoff, deadlines and progress. Does not belong here: calling a provider and
writing (`monitor.py`).
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from resources.clock import from_text
from resources.ledger.jobs import JobRow
from resources.providers.port import Job

DeadlinePolicy = Literal["wait", "cancel_and_collect"]

FIRST_DELAY = timedelta(seconds=30)
LONGEST_DELAY = timedelta(minutes=10)
SHORTEST_DELAY = timedelta(seconds=5)
DOUBLINGS = 10
"""Beyond so many doublings the delay is at its longest anyway."""


@dataclass(frozen=True)
class PollPolicy:
    """Operating settings of polling.

    Attributes:
        deadline_policy: what to do at the internal deadline.
        no_progress: a job whose counts stand still for so long is worth a look.
        counts_live: the provider's counts move while the job runs; else they say nothing.
    """

    deadline_policy: DeadlinePolicy
    no_progress: timedelta
    counts_live: bool


@dataclass(frozen=True)
class PollDecision:
    """What a look at a job leads to.

    Attributes:
        state: the state to move to, None to stay.
        changed: status or counts are others than last time.
        cancel: ask the provider to end it now.
        alerts: kind → message.
    """

    state: Literal["running", "results_available"] | None
    changed: bool
    cancel: bool
    alerts: dict[str, str]


def next_delay(looks: int, rng: random.Random) -> timedelta:
    """How long to wait after so many looks: exponential, bounded, with full jitter.

    Jitter is over the whole interval but for a floor, so that jobs that were submitted together
    are not polled together for ever.
    """
    bound = min(FIRST_DELAY * 2 ** min(looks, DOUBLINGS), LONGEST_DELAY)
    return max(SHORTEST_DELAY, bound * rng.random())


def decide_poll(
    row: JobRow, job: Job, counts: str | None, now: datetime, policy: PollPolicy
) -> PollDecision:
    """What a job's present status means.

    Args:
        row: the job as the ledger has it.
        job: as the provider has it now.
        counts: its counts as the ledger keeps them.
        now: the time.
        policy: operating settings.
    """
    changed = job.raw_status != row.raw_status or counts != row.last_counts
    if job.phase == "ended":
        return PollDecision("results_available", changed=True, cancel=False, alerts={})
    alerts: dict[str, str] = {}
    if job.phase == "unknown":
        alerts["unknown_status"] = (
            f"the provider calls the job {job.raw_status!r}, which no table has; it is neither "
            "success nor failure, and is asked again"
        )
    past = row.internal_deadline_at is not None and now >= from_text(row.internal_deadline_at)
    cancel = False
    if past:
        cancel = policy.deadline_policy == "cancel_and_collect" and row.cancel_requested_at is None
        alerts["deadline"] = (
            f"not done at its internal deadline {row.internal_deadline_at}; policy "
            f"{policy.deadline_policy}"
        )
    if policy.counts_live and not changed and row.changed_at is not None:
        since = from_text(row.changed_at)
        if now - since >= policy.no_progress:
            alerts["no_progress"] = f"its counts have not changed since {row.changed_at}"
    runs = row.state == "submitted" and job.phase in ("running", "cancelling")
    return PollDecision("running" if runs else None, changed, cancel, alerts)


def internal_deadline(
    provider_deadline: datetime | None, submitted: datetime, lead: timedelta
) -> datetime | None:
    """The moment at which a job has to be dealt with, before the provider ends it.

    A lead longer than the window would be over at once: then half the window is taken.
    """
    if provider_deadline is None:
        return None
    if provider_deadline - lead > submitted:
        return provider_deadline - lead
    return submitted + (provider_deadline - submitted) / 2
