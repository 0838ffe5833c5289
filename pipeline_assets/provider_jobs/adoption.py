"""What to make of a submission whose outcome is not known: the pure decision.

Belongs here: the decision alone. Does not belong here: searching (`resources/providers`) and
writing what was decided (`life.py`).

The rule behind it: a second job is never made while the first one may exist. A job that carries
our own key is proof wherever it is found; its absence is proof only in the account that the
intent went to, after a whole search, and after the time that a new job may stay unlisted.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from datetime import datetime, timedelta

from resources.providers.port import Found, Job

GRACE = timedelta(minutes=3)
"""How long a new job may be missing from a provider's own list. None publishes a figure; reports
speak of moments (PROVIDERS 1.6)."""
RECHECK = timedelta(minutes=10)
"""How often a doubt that time may settle is looked at again."""


@dataclass(frozen=True)
class Adopt:
    """The job is there: take it; `extra` are further jobs of the batch, which are to be ended."""

    job: Job
    extra: tuple[Job, ...]


@dataclass(frozen=True)
class Absent:
    """There is no job: the batch may be submitted again."""


@dataclass(frozen=True)
class Wait:
    """It is too early to say."""

    until: datetime
    reason: str


@dataclass(frozen=True)
class Quarantine:
    """It cannot be said; a person may have to. It is looked at again at `recheck_at`."""

    reason: str
    recheck_at: datetime


Decision = Adopt | Absent | Wait | Quarantine


def decide_adoption(
    found: Found,
    *,
    same_account: bool,
    taken: Set[str],
    called_at: datetime,
    now: datetime,
) -> Decision:
    """Decide about an intent that was left without an answer.

    Args:
        found: what the search came to.
        same_account: the account in use is the one that the intent went to.
        taken: ids of found jobs that already belong to something in the ledger.
        called_at: when its call went out, or ended; else when the intent was written.
        now: the time.
    """
    ours = [job for job in found.jobs if job.job_id not in taken]
    if ours:
        return Adopt(ours[0], tuple(ours[1:]))
    if not same_account:
        return Quarantine(
            "the account in use is not the one that the intent went to, so a missing job proves "
            "nothing: use the earlier key again, or attach or discard by hand",
            now + RECHECK,
        )
    settled_at = called_at + GRACE
    if now < settled_at:
        return Wait(settled_at, "a new job may not be listed yet")
    if not found.complete:
        return Wait(now + RECHECK, "the provider's list could not be read to its end")
    maybe = [job for job in found.maybe if job.job_id not in taken]
    if maybe:
        return Quarantine(
            f"{len(maybe)} jobs of the account may be it ("
            + ", ".join(job.job_id for job in maybe[:3])
            + ") and show their ids only when they end",
            now + RECHECK,
        )
    return Absent()
