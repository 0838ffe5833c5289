"""What a job cost, from the tokens that its results report and prices known on this machine.

Belongs here: adding up, per job and version. Does not belong here: prices
(`resources/providers/prices.py`).

A token count or a price that is not known makes the sum unknown in that part; it is never counted
as nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

import polars as pl

from resources.clock import from_text
from resources.context import Context
from resources.ledger.batches import COMPLETE
from resources.ledger.jobs import JobRow, find_jobs
from resources.providers.prices import TokenUsage, price_of


@dataclass(frozen=True)
class JobCost:
    """The cost of a job's results.

    Attributes:
        amount: in US dollars, of the rows whose tokens are known; None where the price is unknown.
        basis: where the price comes from, or `unknown`.
        package: the price list and its version.
        rows: rows that were answered.
        rows_without_usage: answered rows that report no tokens; they are in no amount.
        input_tokens: known ones together.
        output_tokens: known ones together.
        note: what else has to be said of the price.
    """

    amount: Decimal | None
    basis: str
    package: str
    rows: int
    rows_without_usage: int
    input_tokens: int
    output_tokens: int
    note: str


_USAGE = {
    "input": pl.Int64,
    "output": pl.Int64,
    "cached": pl.Int64,
    "rows": pl.Int64,
    "unknown": pl.Int64,
}

# A line that came late was paid like the others, whether it was used or not.
_PAID = (
    "SELECT p.input_tokens, p.output_tokens, p.cached_tokens FROM batches b JOIN dispositions p "
    "ON p.attempt_no BETWEEN b.first_attempt_no AND b.last_attempt_no "
    "WHERE b.batch_no = ? AND p.line IS NOT NULL "
    "AND (p.disposition = 'succeeded' OR p.input_tokens IS NOT NULL) UNION ALL "
    "SELECT l.input_tokens, l.output_tokens, l.cached_tokens FROM batches b JOIN late_results l "
    "ON l.attempt_no BETWEEN b.first_attempt_no AND b.last_attempt_no "
    "WHERE b.batch_no = ? AND (l.disposition = 'succeeded' OR l.input_tokens IS NOT NULL)"
)

_ADDED_UP = (
    "SELECT COALESCE(SUM(d.input_tokens), 0), COALESCE(SUM(d.output_tokens), 0), "  # noqa: S608
    "COALESCE(SUM(d.cached_tokens), 0), COUNT(*), "
    "SUM(CASE WHEN d.input_tokens IS NULL OR d.output_tokens IS NULL THEN 1 ELSE 0 END) "
    f"FROM ({_PAID}) d"
)


def spent(context: Context, version_no: int) -> Decimal | None:
    """What a version's results have cost so far, in US dollars; None if a part is not known."""
    total = Decimal(0)
    for job in find_jobs(context.ledger, COMPLETE, version_no=version_no, machine="batch"):
        cost = job_cost(context, job)
        if cost is None:
            continue
        if cost.amount is None or cost.rows_without_usage:
            return None
        total += cost.amount
    return total


def job_cost(context: Context, job: JobRow) -> JobCost | None:
    """What a batch's results cost; None for one that cost nothing or has no results yet.

    Prices in steps by prompt length are taken at the mean length of the job's prompts.
    """
    if job.machine != "batch" or job.provider == "baseline":
        return None
    with context.ledger.read() as connection:
        usage = context.ledger.dialect.fetch(
            connection,
            _ADDED_UP,
            _USAGE,
            (job.no, job.no),
        ).row(0, named=True)
    known = usage["rows"] - (usage["unknown"] or 0)
    if not usage["rows"]:
        return None
    at = context.ledger.clock() if job.submitted_at is None else from_text(job.submitted_at)
    mode: Literal["batch", "online"] = "online" if job.mode == "online" else "batch"
    mean = TokenUsage(
        input_tokens=usage["input"] // max(1, known),
        output_tokens=usage["output"] // max(1, known),
        cached_tokens=usage["cached"] // max(1, known),
    )
    each = price_of(job.provider, job.model, mode, mean, at)
    return JobCost(
        amount=None if each.amount is None else each.amount * known,
        basis=each.basis,
        package=each.package,
        rows=usage["rows"],
        rows_without_usage=usage["unknown"] or 0,
        input_tokens=usage["input"],
        output_tokens=usage["output"],
        note=each.note,
    )
