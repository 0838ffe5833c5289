"""What canaries cost: they are paid like any answer, and by the version whose canary it was.

Belongs here: adding up a canary's answers when it is judged, and its charge. Does not belong here:
the verdict (`pipeline_assets/canary`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Decimal

from sqlalchemy import Connection, select

from pipeline_assets.costs.charges import (
    CANARY_UNANSWERED,
    GIVEN_UP,
    NOT_KEPT,
    NOT_SETTLED,
    PRICE,
)
from pipeline_assets.costs.rates import JobRates, rates_of_jobs
from resources.context import Context
from resources.ledger.job_prices import CanaryUsage, usage_of_canaries
from resources.ledger.schema import canaries, intents
from resources.providers.port import MalformedLine, ResultLine, ResultReader

_NOT_RUN = ("expired", "cancelled", "provider_failed")
_OUT = ("submitting", "quarantined", "submitted", "running", "results_available")
JUDGED = ("passed", "failed", "expired")
DONE = (*JUDGED, "cancelled")
"""States after which a canary costs nothing more."""
NO_USAGE = CanaryUsage(0, 0, 0, 0, 0, 0)


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
    """A canary as its charge needs it; times are the ledger's text.

    `given_up` is true where an operator gave it up before it was known whether the provider had
    it.
    """

    no: int
    provider: str
    model: str
    mode: str
    state: str
    submitted_at: str | None
    expected_records: int
    input_tokens: int | None
    results: str | None
    given_up: bool


def usage_of_lines(reader: ResultReader, lines: Iterable[bytes]) -> CanaryUsage:
    """What a canary's result lines report of their tokens; a line of an error reports none.

    The same line twice is one answer.
    """
    answered = unknown = read = written = cached = longest = 0
    for data in sorted(set(lines)):
        line = _read(reader, data)
        if line is None:
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


def with_unanswered(usage: CanaryUsage, count: int) -> CanaryUsage:
    """The same, and so many requests that may have been paid though nobody has their answer."""
    return replace(usage, lines=usage.lines + count, unknown=usage.unknown + count)


def unanswered_of(
    reader: ResultReader, lines: Iterable[bytes], expected: int, provider_outcome: str | None
) -> int:
    """Requests of a canary that may have been run though no line came back for them.

    Args:
        reader: of the provider's lines.
        lines: what came back.
        expected: requests that were sent.
        provider_outcome: how the job ended; what an expired, cancelled or failed job leaves
            unanswered was not run.
    """
    if provider_outcome in _NOT_RUN:
        return 0
    found = {line.custom_id for data in lines if (line := _read(reader, data)) is not None}
    return max(0, expected - len(found - {None}))


def canaries_of_version(connection: Connection, version_no: int) -> list[CanaryJob]:
    """Every canary that a version sent or wants to send, oldest first."""
    table = canaries.c
    given_up = (
        select(intents.c.intent_id)
        .where(
            intents.c.machine == "canary",
            intents.c.subject_no == table.canary_no,
            intents.c.outcome == "discarded",
        )
        .exists()
    )
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
            given_up,
        )
        .where(table.version_no == version_no)
        .order_by(table.canary_no)
    )
    return [CanaryJob(*row) for row in rows]


def canary_charges(connection: Connection, context: Context, version_no: int) -> list[CanaryCharge]:
    """The charges of a version's canaries; one whose usage is partly known has two.

    Prompts of a canary are added up: where the longest of them is beyond a step of the price, all
    are charged as if they were, which is never too little.
    """
    jobs = canaries_of_version(connection, version_no)
    if not jobs:
        return []
    rates = rates_of_jobs(connection, "canary", jobs, context.clock)
    usage = usage_of_canaries(connection, jobs[0].no, jobs[-1].no)
    return [charge for job in jobs for charge in _charges(job, usage.get(job.no), rates[job.no])]


def _charges(job: CanaryJob, usage: CanaryUsage | None, rates: JobRates) -> list[CanaryCharge]:
    kept = NO_USAGE if usage is None else usage
    rows, reason = _unknown(job, usage)
    charges = []
    if kept.lines > kept.unknown:
        usd = rates.amount(
            kept.input_tokens, kept.output_tokens, kept.cached_tokens, kept.longest_input
        )
        charges.append(
            CanaryCharge(
                job.no,
                kept.lines - kept.unknown,
                kept.input_tokens,
                kept.cached_tokens,
                kept.output_tokens,
                usd,
                PRICE if usd is None else None,
                rates,
            )
        )
    if rows:
        charges.append(CanaryCharge(job.no, rows, 0, 0, 0, None, reason, rates))
    return charges


def _unknown(job: CanaryJob, usage: CanaryUsage | None) -> tuple[int, str]:
    """Requests of unknown amount, and why it is not known."""
    if usage is not None:
        return usage.unknown, NOT_SETTLED if job.state in _OUT else CANARY_UNANSWERED
    if job.state in _OUT:
        return job.expected_records, NOT_SETTLED
    if job.state in JUDGED and job.results not in (None, "[]"):
        return job.expected_records, NOT_KEPT
    return (job.expected_records if job.given_up else 0), GIVEN_UP


def _read(reader: ResultReader, data: bytes) -> ResultLine | None:
    """A line; None for one that nobody can read."""
    try:
        return reader.read_line(data)
    except MalformedLine:
        return None


def _may_be_paid(line: ResultLine) -> bool:
    """Did a model answer, though the line does not say its tokens?"""
    return line.status_code == 200 and line.text is not None
