"""What canaries cost: they are paid like any answer, and by the version whose canary it was.

Belongs here: adding up a canary's answers when it is judged, and its charge. Does not belong here:
the verdict (`pipeline_assets/canary`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from sqlalchemy import Connection, select

from pipeline_assets.costs.charges import NOT_KEPT, NOT_SETTLED, PRICE, WITHOUT_USAGE
from pipeline_assets.costs.rates import JobRates, rates_of_jobs
from resources.context import Context
from resources.ledger.job_prices import CanaryUsage, usage_of_canaries
from resources.ledger.schema import canaries
from resources.providers.port import MalformedLine, ResultLine, ResultReader

_OUT = ("submitting", "quarantined", "submitted", "running", "results_available")
JUDGED = ("passed", "failed", "expired")


@dataclass(frozen=True)
class CanaryCharge:
    """What one canary is charged, or why that is not known.

    Attributes:
        canary_no: which.
        rows: answers of this charge.
        input: tokens read.
        cached: of them, from a cache.
        output: tokens written.
        usd: the amount; None where it is not known.
        reason: why it is not known; None where it is.
        rates: what it was charged at.
    """

    canary_no: int
    rows: int
    input: int
    cached: int
    output: int
    usd: Decimal | None
    reason: str | None
    rates: JobRates


@dataclass(frozen=True)
class CanaryJob:
    """A canary as its charge needs it; times are the ledger's text."""

    no: int
    provider: str
    model: str
    mode: str
    state: str
    submitted_at: str | None
    expected_records: int
    input_tokens: int | None
    results: str | None


def usage_of_lines(reader: ResultReader, lines: Iterable[bytes]) -> CanaryUsage:
    """What a canary's result lines report of their tokens; a line of an error reports none.

    The same line twice is one answer.
    """
    answered = unknown = read = written = cached = longest = 0
    for data in sorted(set(lines)):
        try:
            line = reader.read_line(data)
        except MalformedLine:
            continue
        if line.input_tokens is None or line.output_tokens is None:
            if not _may_be_paid(line):
                continue
            answered, unknown = answered + 1, unknown + 1
            continue
        answered += 1
        read += line.input_tokens
        written += line.output_tokens
        cached += min(line.cached_tokens or 0, line.input_tokens)
        longest = max(longest, line.input_tokens)
    return CanaryUsage(answered, unknown, read, written, cached, longest)


def canaries_of_version(connection: Connection, version_no: int) -> list[CanaryJob]:
    """Every canary that a version sent or wants to send, oldest first."""
    table = canaries.c
    rows = connection.execute(
        select(
            table.canary_no,
            table.provider,
            table.model,
            table.mode,
            table.state,
            table.submitted_at,
            table.expected_records,
            table.input_tokens,
            table.results,
        )
        .where(table.version_no == version_no)
        .order_by(table.canary_no)
    )
    return [CanaryJob(*row) for row in rows]


def canary_charges(connection: Connection, context: Context, version_no: int) -> list[CanaryCharge]:
    """The charges of a version's canaries; one whose answers partly lack usage has two."""
    jobs = canaries_of_version(connection, version_no)
    if not jobs:
        return []
    rates = rates_of_jobs(connection, "canary", jobs, context.clock)
    usage = usage_of_canaries(connection, jobs[0].no, jobs[-1].no)
    return [charge for job in jobs for charge in _charges(job, usage.get(job.no), rates[job.no])]


def _charges(job: CanaryJob, usage: CanaryUsage | None, rates: JobRates) -> list[CanaryCharge]:
    def unknown(rows: int, reason: str) -> CanaryCharge:
        return CanaryCharge(job.no, rows, 0, 0, 0, None, reason, rates)

    if usage is None:
        if job.state in _OUT:
            return [unknown(job.expected_records, NOT_SETTLED)]
        if job.state in JUDGED and job.results not in (None, "[]"):
            return [unknown(job.expected_records, NOT_KEPT)]
        return []
    charges = []
    if usage.lines > usage.unknown:
        usd = rates.amount(
            usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.longest_input
        )
        charges.append(
            CanaryCharge(
                job.no,
                usage.lines - usage.unknown,
                usage.input_tokens,
                usage.cached_tokens,
                usage.output_tokens,
                usd,
                PRICE if usd is None else None,
                rates,
            )
        )
    if usage.unknown:
        charges.append(unknown(usage.unknown, WITHOUT_USAGE))
    return charges


def _may_be_paid(line: ResultLine) -> bool:
    """Did a model answer, though the line does not say its tokens?"""
    return line.status_code == 200 and line.text is not None
