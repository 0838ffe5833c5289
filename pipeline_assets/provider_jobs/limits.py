"""The limits that hold for a job: the capability table's, and what an operator set over them.

Belongs here: putting the two together. Does not belong here: either of them.
"""

from __future__ import annotations

from typing import TypeVar

from pipeline_assets.operating import Operating
from resources.ledger.jobs import JobRow
from resources.providers.capabilities import Capability, Fact, Mode, find_capability
from resources.providers.registry import endpoint_of

T = TypeVar("T")


def value_of(fact: Fact[T] | None) -> T | None:
    """A fact's value; None for one that is not known."""
    return None if fact is None else fact.value


def capability_of(job: JobRow) -> Capability:
    """The capability row of a job's provider, model, endpoint and mode.

    Raises:
        UnsupportedCombination: no row has them.
    """
    mode: Mode = "online" if job.mode == "online" else "batch"
    return find_capability(job.provider, job.model, endpoint_of(job.provider, job.endpoint), mode)


def with_operating(capability: Capability, settings: Operating, date: str) -> Capability:
    """The row with the limits that an operator set; they win, and are named as what they are."""
    if settings.enqueued_tokens is not None:
        capability = capability.with_setting("enqueued_tokens", settings.enqueued_tokens, date)
    if settings.jobs_in_flight is not None:
        capability = capability.with_setting("jobs_in_flight", settings.jobs_in_flight, date)
    return capability
