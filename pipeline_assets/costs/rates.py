"""The rates of a job: those that were kept when its results came in, else those of its day.

Belongs here: choosing them, and what tokens come to at them. Does not belong here: the
price list (`resources/providers/prices.py`) and the rows (`resources/ledger/job_prices.py`).

Kept rates stay: a newer price list changes no old amount. A price that the list did not know then
is looked up again, since nothing was charged at it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Literal, Protocol

from sqlalchemy import Connection

from resources.clock import from_text, to_text
from resources.ledger.job_prices import JobPrice, prices_of
from resources.providers.prices import CURRENCY, Rate, Rates, package_version, rates_of

EMBEDDED = "embedded (nobody is paid)"
"""Basis of answers that are made on this machine: their amount is known, and nought."""
PARTS = 500
"""Jobs whose kept rates are read with one statement."""
_NOTHING = Rate(Decimal(0))


class PricedJob(Protocol):
    """What of a job its price depends on."""

    @property
    def no(self) -> int:
        """Its number."""
        ...

    @property
    def provider(self) -> str:
        """Whose."""
        ...

    @property
    def model(self) -> str:
        """The provider's name of the model."""
        ...

    @property
    def mode(self) -> str:
        """batch, online or embedded."""
        ...

    @property
    def submitted_at(self) -> str | None:
        """When it was handed over."""
        ...


@dataclass(frozen=True)
class JobRates:
    """The rates of a job.

    Attributes:
        price: what tokens cost.
        frozen: were they kept when the results came in? Else they are today's price list's.
    """

    price: JobPrice
    frozen: bool

    @property
    def steps(self) -> tuple[int, ...]:
        """Prompt lengths beyond which another price holds, ascending."""
        rates = (self.price.read, self.price.cached, self.price.written)
        return tuple(sorted({start for rate in rates if rate for start, _ in rate.steps}))

    @property
    def known(self) -> bool:
        """Is there a price?"""
        return self.price.read is not None and self.price.written is not None

    def amount(self, read: int, written: int, cached: int, longest: int) -> Decimal | None:
        """What tokens cost in US dollars, exact; None where the price is not known.

        Args:
            read: all tokens read, cached ones included.
            written: tokens written.
            cached: tokens read from a cache.
            longest: the length of a prompt; all tokens are of prompts on its side of each step.
        """
        price = self.price
        if price.read is None or price.written is None:
            return None
        at_cache = price.cached or price.read
        total = (
            (read - cached) * price.read.at(longest)
            + cached * at_cache.at(longest)
            + written * price.written.at(longest)
        )
        return total.scaleb(-6)

    def at_most(self, read: int, written: int, longest: int) -> Decimal | None:
        """What so many tokens may cost at most: nothing of them cached.

        Args:
            read: tokens read.
            written: tokens written.
            longest: no prompt is longer; the dearest step up to there is taken for all.
        """
        price = self.price
        if price.read is None or price.written is None:
            return None
        return (
            read * _dearest(price.read, longest) + written * _dearest(price.written, longest)
        ).scaleb(-6)

    def as_text(self) -> str:
        """The rates on one line."""
        price = self.price
        if price.read is None or price.written is None:
            return f"unknown ({price.note})"
        cached = "" if price.cached is None else f", cached input {price.cached}"
        return f"input {price.read}{cached}, output {price.written} {CURRENCY} a million tokens"


def day_rates(job: PricedJob, at: datetime) -> JobPrice:
    """The rates of a job by the price list of this machine.

    Args:
        job: the job.
        at: the time whose prices hold for a job that was not handed over yet.
    """
    moment = at if job.submitted_at is None else from_text(job.submitted_at)
    if job.mode == "embedded":
        return JobPrice(
            job.provider,
            job.model,
            job.mode,
            to_text(moment),
            EMBEDDED,
            package_version(),
            "",
            _NOTHING,
            None,
            _NOTHING,
        )
    mode: Literal["batch", "online"] = "online" if job.mode == "online" else "batch"
    found: Rates = rates_of(job.provider, job.model, mode, moment)
    return JobPrice(
        job.provider,
        job.model,
        job.mode,
        to_text(moment),
        found.basis,
        found.package,
        found.note,
        found.read,
        found.cached,
        found.written,
    )


def rates_of_jobs(
    connection: Connection, machine: str, jobs: Iterable[PricedJob], clock: Callable[[], datetime]
) -> dict[int, JobRates]:
    """The rates of jobs, kept or of their day: number → rates."""
    wanted = sorted(jobs, key=lambda job: job.no)
    at = clock()
    found: dict[int, JobRates] = {}
    of_day: dict[tuple[str, str, str, str], JobPrice] = {}
    for start in range(0, len(wanted), PARTS):
        part = wanted[start : start + PARTS]
        kept = prices_of(connection, machine, part[0].no, part[-1].no)
        for job in part:
            price = kept.get(job.no)
            if job.mode == "embedded" or (price is not None and price.read is not None):
                found[job.no] = JobRates(price or day_rates(job, at), frozen=True)
                continue
            # Prices change on UTC dates: jobs of one day share the slow look-up.
            key = (job.provider, job.model, job.mode, (job.submitted_at or to_text(at))[:10])
            if key not in of_day:
                of_day[key] = day_rates(job, at)
            found[job.no] = JobRates(of_day[key], frozen=False)
    return found


def _dearest(rate: Rate, longest: int) -> Decimal:
    return max([rate.base, *(price for start, price in rate.steps if longest > start)])
