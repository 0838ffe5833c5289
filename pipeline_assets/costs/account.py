"""The cost of a version by accepted item: what it was for, what is not known, at which prices.

Belongs here: putting charges, canaries, review and prices together. Does not belong here: what is
charged (`charges.py`), rates (`rates.py`), time from the journal (`times.py`).

An accepted item is a record that was accepted at least once, by rules or by a reviewer, and that
no reviewer rejected afterwards. One that was later superseded, withdrawn or sent again by a replay
counts: the work was done and its answer was good. All that was paid is divided by them, retries,
repairs, canaries and the work on rejected records included. As soon as one part is not known the
cost of an accepted item is not known either; then `at_least` says what it is at the least.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import polars as pl
from sqlalchemy import Connection

from pipeline_assets.costs.canaries import CanaryCharge, canary_charges
from pipeline_assets.costs.charges import (
    CALL_UNANSWERED,
    COARSE_FACTS,
    NOT_HANDED_OVER,
    ChargedJob,
    calls_without_answer,
    jobs_of_version,
)
from pipeline_assets.costs.rates import JobRates, rates_of_jobs
from pipeline_assets.costs.review_time import ReviewTime, review_time
from pipeline_assets.costs.times import TimeAccount, times_of_version
from pipeline_assets.costs.totals import Charge, Sum, charges_of_version
from pipeline_assets.known_version import KnownVersion, known_version
from pipeline_assets.operating import operating
from pipeline_assets.slices import SLICE_FACTS, slices
from resources.context import Context

CANARIES = "canaries"
CALLS = "calls without an answer"
LATE = "late and repeated answers"
FIRST = "first attempts"
RETRIES = "retries"
RECOVERY = "recovery paths"
REQUEUED = "requeued by an owner"
REPLAYED = "replays"
_PURPOSES: Mapping[str, str] = {
    "larger_output": RECOVERY,
    "repair_prompt": RECOVERY,
    "fewer_pages": RECOVERY,
    "requeue": REQUEUED,
    "replay": REPLAYED,
}
"""Path of an attempt → what it was for; `repeat` and others are first attempts or retries."""
_OUTCOMES: Mapping[str, str] = {
    "accepted": "accepted",
    "published": "accepted",
    "rejected": "rejected by a reviewer",
    "dead_letter": "dead letters",
    "discarded": "discarded",
    "cancelled": "cancelled",
    "superseded": "superseded",
    "withdrawn": "withdrawn",
}
"""State of an attempt's record → what became of the work; every other state is still open."""
OPEN = "still open"
NO_CLASS = "succeeded"

_ACCEPTED = (
    "SELECT r.record_no, {facts} FROM records r JOIN record_state s "
    "ON s.record_no = r.record_no LEFT JOIN parses f ON f.checksum = r.checksum "
    "AND f.parser_key = ? WHERE r.version_no = ? AND (s.state IN ('accepted', 'published') OR "
    "(s.state <> 'rejected' AND EXISTS (SELECT 1 FROM move_members m "
    "JOIN moves v ON v.move_no = m.move_no WHERE m.record_no = r.record_no "
    "AND v.to_state = 'accepted')))"
)


@dataclass(frozen=True)
class Tokens:
    """Known tokens.

    Attributes:
        input: read, cached ones included.
        cached: of them, read from a cache.
        output: written, reasoning included.
    """

    input: int
    cached: int
    output: int


@dataclass(frozen=True)
class Part:
    """A part of what was paid.

    Attributes:
        name: of the part.
        attempts: attempts and further answers in it.
        tokens: known ones.
        usd: the known amount, in US dollars.
        unknown: reason → attempts, answers or calls whose amount is not known.
        accepted: accepted items of a slice; None where items are not divided like this.
    """

    name: str
    attempts: int
    tokens: Tokens
    usd: Decimal
    unknown: dict[str, int]
    accepted: int | None = None

    @property
    def per_accepted(self) -> Decimal | None:
        """The cost of an accepted item of the part; None where it is not known."""
        return None if self.unknown else _each(self.usd, self.accepted or 0)

    def as_json(self) -> dict[str, Any]:
        """The same as plain JSON values; amounts are text."""
        shown = vars(self) | {"tokens": vars(self.tokens), "usd": format(self.usd, "f")}
        if self.accepted is None:
            del shown["accepted"]
            return shown
        return shown | {"per_accepted_usd": _text(self.per_accepted)}


@dataclass(frozen=True)
class PriceUsed:
    """A price that jobs of the version were charged at.

    Attributes:
        model: the provider's name of it.
        mode: batch, online or embedded.
        basis: where the price comes from.
        day: the day whose price it is.
        package: the price list and its version.
        rates: US dollars a million tokens, as text.
        note: why it is estimated or unknown.
        frozen: was it kept when results came in? Else it is the present price list's.
        jobs: how many batches and canaries.
    """

    model: str
    mode: str
    basis: str
    day: str
    package: str
    rates: str
    note: str
    frozen: bool
    jobs: int


@dataclass(frozen=True)
class CostAccount:
    """What a version cost, and what an accepted item did.

    Attributes:
        key: the version.
        accepted: accepted items.
        attempts: attempts that a charge was looked for, and further answers.
        tokens: known ones, canaries included.
        provider_usd: the known amount that goes to the provider, canaries included.
        unknown: reason (`charges.MEANINGS`) → attempts, answers or calls of unknown amount.
        by_purpose: what it was paid for; the parts add up to the whole, as in the next three.
        by_outcome: what became of the records.
        by_class: failure classes of the attempts, and `succeeded`.
        by_slice: slices of the documents, with their accepted items.
        review: the time of reviewers.
        prices: the prices used.
        time: how long accepted items took.
    """

    key: str
    accepted: int
    attempts: int
    tokens: Tokens
    provider_usd: Decimal
    unknown: dict[str, int]
    by_purpose: tuple[Part, ...]
    by_outcome: tuple[Part, ...]
    by_class: tuple[Part, ...]
    by_slice: tuple[Part, ...]
    review: ReviewTime
    prices: tuple[PriceUsed, ...]
    time: TimeAccount

    @property
    def usd(self) -> Decimal:
        """All that is known: the provider's part and the reviewers'."""
        return self.provider_usd + (self.review.usd or Decimal(0))

    @property
    def complete(self) -> bool:
        """Is every part known?"""
        return not self.unknown and self.review.known

    @property
    def cost_per_accepted(self) -> Decimal | None:
        """What an accepted item cost; None where a part is not known or none was accepted."""
        return _each(self.usd, self.accepted) if self.complete else None

    @property
    def at_least(self) -> Decimal | None:
        """What is known of it by accepted item: never more than it cost."""
        return _each(self.usd, self.accepted)

    @property
    def provider_per_accepted(self) -> Decimal | None:
        """The provider's part of an accepted item; None where it is not known."""
        return None if self.unknown else _each(self.provider_usd, self.accepted)

    def as_json(self) -> dict[str, Any]:
        """The same as plain JSON values; amounts are decimal text, in US dollars."""
        return {
            "processing_version": self.key,
            "accepted": self.accepted,
            "attempts": self.attempts,
            "tokens": vars(self.tokens),
            "provider_usd": format(self.provider_usd, "f"),
            "unknown": self.unknown,
            "review": self.review.as_json(),
            "usd": format(self.usd, "f"),
            "cost_per_accepted_usd": _text(self.cost_per_accepted),
            "at_least_per_accepted_usd": _text(self.at_least),
            "provider_per_accepted_usd": _text(self.provider_per_accepted),
            "by_purpose": [part.as_json() for part in self.by_purpose],
            "by_outcome": [part.as_json() for part in self.by_outcome],
            "by_class": [part.as_json() for part in self.by_class],
            "by_slice": [part.as_json() for part in self.by_slice],
            "prices": [vars(price) for price in self.prices],
            "time": self.time.as_json(),
        }


CostReader = Callable[[Context, str], CostAccount]
"""Reads what a version cost, as `cost_account` does."""


@dataclass
class _Sums:
    """The same charges added up in several ways."""

    whole: Sum = field(default_factory=Sum)
    purpose: dict[str, Sum] = field(default_factory=dict)
    outcome: dict[str, Sum] = field(default_factory=dict)
    failure: dict[str, Sum] = field(default_factory=dict)
    slice: dict[str, Sum] = field(default_factory=dict)

    def add(self, charge: Charge, purpose: str, outcome: str, failure: str, part: str) -> None:
        self.whole.add(charge)
        for sums, name in (
            (self.purpose, purpose),
            (self.outcome, outcome),
            (self.failure, failure),
            (self.slice, part),
        ):
            sums.setdefault(name, Sum()).add(charge)


def cost_account(context: Context, key: str) -> CostAccount:
    """The cost and time of a version by accepted item, as the ledger knows it now.

    Raises:
        VersionNeverUsed: the ledger does not have the version.
    """
    known = known_version(context, key)
    usd_hour = operating(context.ledger, known.version_no).reviewer_usd_hour
    with context.ledger.read() as connection:
        return _account(connection, context, known, usd_hour)


def _account(
    connection: Connection, context: Context, known: KnownVersion, usd_hour: Decimal | None
) -> CostAccount:
    version_no = known.version_no
    jobs = jobs_of_version(connection, version_no)
    rates = rates_of_jobs(connection, "batch", jobs, context.clock)
    sums = _Sums()
    for row, charge in _sliced(connection, context, known, jobs, rates):
        sums.add(
            charge,
            _purpose(row),
            _OUTCOMES.get(row["state"], OPEN),
            row["class"] or NO_CLASS,
            row["slice"],
        )
    canaries = canary_charges(connection, context, version_no)
    for one in canaries:
        charge = Charge(one.rows, one.input, one.cached, one.output, one.usd, one.reason)
        sums.add(charge, *[CANARIES] * 4)
    calls = sum(calls_without_answer(connection, context.ledger, version_no).values())
    if calls:
        sums.add(Charge(calls, 0, 0, 0, None, CALL_UNANSWERED), *[CALLS] * 4)
    accepted = _accepted(connection, context, known)
    whole = sums.whole
    return CostAccount(
        key=known.key,
        accepted=sum(accepted.values()),
        attempts=whole.rows,
        tokens=Tokens(whole.input, whole.cached, whole.output),
        provider_usd=whole.usd,
        unknown=dict(sorted(whole.unknown.items())),
        by_purpose=_parts(sums.purpose),
        by_outcome=_parts(sums.outcome),
        by_class=_parts(sums.failure),
        by_slice=_parts(sums.slice, accepted),
        review=review_time(connection, context.ledger, version_no, usd_hour),
        prices=_prices(
            [rates[job.no] for job in jobs if job.state not in NOT_HANDED_OVER]
            + _of_canaries(canaries)
        ),
        time=times_of_version(connection, context.ledger, version_no),
    )


def _sliced(
    connection: Connection,
    context: Context,
    known: KnownVersion,
    jobs: list[ChargedJob],
    rates: dict[int, JobRates],
) -> Iterator[tuple[dict[str, Any], Charge]]:
    named: dict[tuple[object, ...], str] = {}
    for row, charge in charges_of_version(
        connection, context, known.version_no, jobs, rates, known.parser_key
    ):
        facts = tuple(row[name] for name in SLICE_FACTS)
        if facts not in named:
            frame = pl.DataFrame([facts], schema=SLICE_FACTS, orient="row")
            named[facts] = str(slices(frame).item())
        yield row | {"slice": named[facts]}, charge


def _accepted(connection: Connection, context: Context, known: KnownVersion) -> Counter[str]:
    """Accepted items by slice."""
    facts = ", ".join(f"g.{name}" for name in SLICE_FACTS)
    inner = _ACCEPTED.replace("{facts}", COARSE_FACTS)
    found = context.ledger.dialect.fetch(
        connection,
        f"SELECT {facts}, COUNT(*) FROM ({inner}) g GROUP BY {facts}",  # noqa: S608
        SLICE_FACTS | {"records": pl.Int64},
        (known.parser_key, known.version_no),
    )
    counts: Counter[str] = Counter()
    for name, records in zip(slices(found), found["records"], strict=True):
        counts[name] += records
    return counts


def _purpose(row: Mapping[str, Any]) -> str:
    if row["late"]:
        return LATE
    return _PURPOSES.get(row["path"], RETRIES if row["again"] else FIRST)


def _parts(sums: Mapping[str, Sum], accepted: Mapping[str, int] | None = None) -> tuple[Part, ...]:
    """Parts, the dearest first."""
    names = set(sums) | set(accepted or ())
    parts = [
        Part(
            name,
            found.rows,
            Tokens(found.input, found.cached, found.output),
            found.usd,
            dict(sorted(found.unknown.items())),
            None if accepted is None else accepted.get(name, 0),
        )
        for name in names
        for found in (sums.get(name, Sum()),)
    ]
    return tuple(sorted(parts, key=lambda part: (-part.usd, -part.attempts, part.name)))


def _of_canaries(charges: Iterable[CanaryCharge]) -> list[JobRates]:
    return list({charge.canary_no: charge.rates for charge in charges}.values())


def _prices(rates: Iterable[JobRates]) -> tuple[PriceUsed, ...]:
    counts: Counter[tuple[str, str, str, str, str, str, str, bool]] = Counter(
        (
            one.price.model,
            one.price.mode,
            one.price.basis,
            one.price.priced_at[:10],
            one.price.package,
            one.as_text(),
            one.price.note,
            one.frozen,
        )
        for one in rates
    )
    return tuple(PriceUsed(*names, jobs) for names, jobs in sorted(counts.items()))


def _each(usd: Decimal, items: int) -> Decimal | None:
    return usd / items if items else None


def _text(amount: Decimal | None) -> str | None:
    return None if amount is None else format(amount, "f")
