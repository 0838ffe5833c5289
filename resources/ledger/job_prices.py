"""What jobs cost by the million tokens, as it was known when their results came in; canary usage.

Belongs here: both tables' rows, and rates as the text that is kept of them. Does not belong here:
finding a price (`resources/providers/prices.py`) and adding up (`pipeline_assets/costs`).
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

import msgspec
from sqlalchemy import Connection, select, update

from resources.ledger.schema import canary_usage, job_prices
from resources.providers.prices import Rate


class _RateText(msgspec.Struct, frozen=True):
    base: str
    steps: list[tuple[int, str]]


@dataclass(frozen=True)
class JobPrice:
    """The rates that the tokens of one job are charged at.

    Attributes:
        provider: whose.
        model: of the job.
        mode: batch, online or embedded.
        priced_at: the moment whose prices they are, UTC text.
        basis: where they come from, such as `batch`; `unknown` where there are none.
        package: the price list and its version.
        note: why they are unknown or estimated; empty otherwise.
        read: for tokens read; None where unknown.
        cached: for tokens read from a cache; None where the model has no such price.
        written: for tokens written; None where unknown.
    """

    provider: str
    model: str
    mode: str
    priced_at: str
    basis: str
    package: str
    note: str
    read: Rate | None
    cached: Rate | None
    written: Rate | None


@dataclass(frozen=True)
class CanaryUsage:
    """What the answers to a canary report of their tokens.

    Attributes:
        lines: requests that a model answered, or may have.
        unknown: of them, those whose tokens nobody knows.
        input_tokens: of the others, cached ones included.
        output_tokens: of the others.
        cached_tokens: the part of the input that was read from a cache.
        longest_input: tokens of the longest prompt, which decides which step of a price holds.
    """

    lines: int
    unknown: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    longest_input: int


def store_price(connection: Connection, machine: str, subject_no: int, price: JobPrice) -> bool:
    """Keep a job's rates; False where they were kept before, which are never changed."""
    known = connection.execute(
        select(job_prices.c.subject_no).where(
            job_prices.c.machine == machine, job_prices.c.subject_no == subject_no
        )
    ).first()
    if known is not None:
        return False
    connection.execute(
        job_prices.insert().values(
            machine=machine,
            subject_no=subject_no,
            provider=price.provider,
            model=price.model,
            mode=price.mode,
            priced_at=price.priced_at,
            basis=price.basis,
            package=price.package,
            note=price.note,
            read_usd=_as_text(price.read),
            cached_usd=_as_text(price.cached),
            written_usd=_as_text(price.written),
        )
    )
    return True


def prices_of(connection: Connection, machine: str, first: int, last: int) -> dict[int, JobPrice]:
    """The kept rates of jobs in a range of numbers: job → rates."""
    table = job_prices.c
    rows = connection.execute(
        select(job_prices).where(table.machine == machine, table.subject_no.between(first, last))
    )
    return {
        int(row.subject_no): JobPrice(
            provider=row.provider,
            model=row.model,
            mode=row.mode,
            priced_at=row.priced_at,
            basis=row.basis,
            package=row.package,
            note=row.note,
            read=_as_rate(row.read_usd),
            cached=_as_rate(row.cached_usd),
            written=_as_rate(row.written_usd),
        )
        for row in rows
    }


def add_canary_usage(connection: Connection, canary_no: int, usage: CanaryUsage, at: str) -> None:
    """Add what answers to a canary report to what is kept of it."""
    kept = usage_of_canaries(connection, canary_no, canary_no).get(canary_no)
    if kept is None:
        connection.execute(
            canary_usage.insert().values(canary_no=canary_no, recorded_at=at, **vars(usage))
        )
        return
    together = {name: value + getattr(kept, name) for name, value in vars(usage).items()}
    longest = max(kept.longest_input, usage.longest_input)
    connection.execute(
        update(canary_usage)
        .where(canary_usage.c.canary_no == canary_no)
        .values(**(together | {"longest_input": longest, "recorded_at": at}))
    )


def usage_of_canaries(connection: Connection, first: int, last: int) -> dict[int, CanaryUsage]:
    """The kept usage of canaries in a range of numbers: canary → usage."""
    table = canary_usage.c
    rows = connection.execute(select(canary_usage).where(table.canary_no.between(first, last)))
    return {
        int(row.canary_no): CanaryUsage(
            *(int(getattr(row, name)) for name in CanaryUsage.__dataclass_fields__)
        )
        for row in rows
    }


def _as_text(rate: Rate | None) -> str | None:
    if rate is None:
        return None
    steps = [(start, format(price, "f")) for start, price in rate.steps]
    return msgspec.json.encode(_RateText(format(rate.base, "f"), steps)).decode()


def _as_rate(text: str | None) -> Rate | None:
    if text is None:
        return None
    kept = msgspec.json.decode(text, type=_RateText)
    return Rate(Decimal(kept.base), tuple((start, Decimal(price)) for start, price in kept.steps))
