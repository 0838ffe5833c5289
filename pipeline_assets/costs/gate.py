"""The gate before every hand-over: what a version has cost, and may still cost, within its budget.

Belongs here: gathering the three figures that `pipeline_assets/recovery/budget.py` compares, and
the hold. Does not belong here: the comparison, and which work is handed over.

What may still be spent is an upper estimate: the tokens that were counted for the prompts, on the
side of too many, and answers as long as the request allows. Answers are mostly far shorter; but a
budget that went by their mean would be passed now and then. What was charged is read once for a
gate; a batch that is settled after that counts at its upper estimate, so no result falls between.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal

from sqlalchemy import Connection, func, select

from pipeline_assets.costs.canaries import canaries_of_version
from pipeline_assets.costs.charges import ChargedJob, jobs_of_version
from pipeline_assets.costs.rates import JobRates, day_rates, rates_of_jobs
from pipeline_assets.costs.totals import SoFar, so_far
from pipeline_assets.operating import Operating
from pipeline_assets.recovery.budget import BudgetLimit, Work, decide_budget
from pipeline_assets.recovery.holds import hold_within
from pipeline_assets.versions import OpenVersion
from resources.clock import from_text
from resources.context import Context
from resources.ledger.jobs import JobRow
from resources.ledger.moves import version_chain
from resources.ledger.retries import retries_made
from resources.ledger.schema import attempts, batches, online_groups, renderings
from resources.providers.tokens import SAFETY_FACTORS

PROMPT_ROOM = 50_000
"""More tokens than the instructions and the schema of any prompt have beside the document."""
_NOT_OUT = ("prepared", "cancelled")
_BY_RETRY_ITSELF = ("requeue", "replay")
_NO_ESTIMATE = "its prompts were not counted"


@dataclass(frozen=True)
class BudgetGate:
    """A version's budget, with what was charged when the gate was opened.

    Attributes:
        context: the open resources.
        version: whose.
        limit: the budget; at least one limit is set.
        charged: what it had cost; None where money is not limited.
    """

    context: Context
    version: OpenVersion
    limit: BudgetLimit
    charged: SoFar | None

    def hold_used_up(self) -> str | None:
        """Put a hold on the version if its budget allows nothing more; why, or None."""
        with self.context.ledger.write() as connection:
            return self._decide(connection, Work())

    def hold_before(self, connection: Connection, job: JobRow) -> str | None:
        """Put a hold on the version if a job could pass its budget; why, or None.

        Args:
            connection: the write transaction that would begin the hand-over.
            job: prepared; nothing of it was sent.
        """
        retried = self._retries_in(connection, job)
        return self._decide(
            connection, self._money(self._job_at_most(connection, job), retried), retried
        )

    def hold_before_calls(
        self, connection: Connection, job: JobRow, first: int, count: int
    ) -> str | None:
        """The same for some online calls of a job.

        Args:
            connection: the write transaction that would begin the calls.
            job: answered online.
            first: index of the first of them in the batch.
            count: how many.
        """
        usd = self._calls_at_most(connection, job.no, first, count, self._rates(job))
        return self._decide(connection, self._money(usd, 0))

    def _decide(self, connection: Connection, next_: Work, retried: int = 0) -> str | None:
        context, version_no = self.context, self.version.version_no
        # Two workers of a version take turns: what one begins is under way for the other.
        context.ledger.dialect.lock_chain(connection, version_chain(version_no))
        made = retries_made(connection, version_no) if self.limit.attempts is not None else 0
        spent = Work(self._spent(), max(0, made - retried), self._elapsed(connection), _UNPRICED)
        over = decide_budget(self.limit, spent, self._committed(connection), next_)
        if over is None:
            return None
        reason = (
            f"{over}. Nothing more is sent: wait for what is under way, or raise the budget "
            f"(tallybook settings set {self._setting(over)}), then: tallybook release"
        )
        hold_within(connection, context, version_no, "budget", reason)
        return reason

    def _setting(self, over: str) -> str:
        if "retries" in over:
            return "budget_attempts"
        return "budget_hours" if "hours ago" in over else "budget_usd"

    def _money(self, usd: Decimal | None, retried: int) -> Work:
        if self.charged is None:
            return Work(attempts=retried)
        return Work(usd, retried, None, _NO_PRICE)

    def _spent(self) -> Decimal | None:
        if self.charged is None:
            return Decimal(0)
        return None if self.charged.unpriced else self.charged.usd

    def _elapsed(self, connection: Connection) -> timedelta | None:
        if self.limit.time is None:
            return None
        return elapsed_of(connection, self.context, self.version.version_no)

    def _committed(self, connection: Connection) -> Work:
        """What is out may still cost, and what was out and left no answer."""
        if self.charged is None:
            return Work()
        version_no = self.version.version_no
        jobs = [
            job
            for job in jobs_of_version(connection, version_no)
            if job.mode != "embedded" and job.state not in _NOT_OUT
        ]
        rates = rates_of_jobs(connection, "batch", jobs, self.context.clock)
        parts = [self._out_at_most(connection, job, rates[job.no]) for job in jobs]
        for canary in canaries_of_version(connection, version_no):
            if canary.state not in _NOT_OUT and canary.no not in self.charged.canaries:
                price = day_rates(canary, self.context.clock())
                written = canary.expected_records * self._answer_tokens
                parts.append(self._at_most(JobRates(price, False), canary.input_tokens, written))
        known = [part for part in parts if part is not None]
        total = sum(known, Decimal(0)) if len(known) == len(parts) else None
        return Work(total, unknown=_NO_PRICE)

    def _out_at_most(
        self, connection: Connection, job: ChargedJob, rates: JobRates
    ) -> Decimal | None:
        charged = self.charged
        assert charged is not None  # noqa: S101 - asked for where money is limited only
        if job.no in charged.settled:
            lost = charged.may_have_cost.get(job.no, 0)
            return self._share_at_most(job, lost, rates) if lost else Decimal(0)
        if job.mode == "online":
            return self._started_at_most(connection, job, rates)
        later = self._later_attempts(connection, job.first_attempt_no, job.last_attempt_no)
        return self._at_most(
            rates, job.input_tokens, self._written(job.expected_records - later, later)
        )

    def _job_at_most(self, connection: Connection, job: JobRow) -> Decimal | None:
        if self.charged is None:
            return Decimal(0)
        if job.mode == "online" and job.machine == "batch":
            return Decimal(0)  # its calls are asked for group by group
        later = 0
        if job.machine == "batch":
            later = self._later_attempts(connection, *self._range(connection, job.no))
        written = self._written(job.expected_records - later, later)
        return self._at_most(self._rates(job), job.input_tokens, written)

    def _started_at_most(
        self, connection: Connection, job: ChargedJob, rates: JobRates
    ) -> Decimal | None:
        """Groups of online calls that were begun; the others ask before they begin."""
        table = online_groups.c
        calls = connection.execute(
            select(func.coalesce(func.sum(table.records + table.possibly_paid), 0)).where(
                table.batch_no == job.no
            )
        ).scalar_one()
        return self._share_at_most(job, int(calls), rates)

    def _share_at_most(self, job: ChargedJob, count: int, rates: JobRates) -> Decimal | None:
        if job.input_tokens is None:
            return None
        each = math.ceil(job.input_tokens / max(1, job.expected_records))
        return self._at_most(rates, each * count, self._written(0, count))

    def _calls_at_most(
        self, connection: Connection, batch_no: int, first: int, count: int, rates: JobRates
    ) -> Decimal | None:
        """At most: the documents of these calls, and their share of what all prompts have."""
        if self.charged is None:
            return Decimal(0)
        start, end = self._range(connection, batch_no)
        whole = connection.execute(
            select(batches.c.input_tokens).where(batches.c.batch_no == batch_no)
        ).scalar_one()
        if whole is None:
            return None
        factor = SAFETY_FACTORS.get(self.version.spec.provider, max(SAFETY_FACTORS.values()))
        all_documents = self._documents(connection, start, end) * factor
        fixed = max(0.0, whole - all_documents) / max(1, end - start + 1)
        documents = self._documents(connection, start + first, start + first + count - 1) * factor
        later = self._later_attempts(connection, start + first, start + first + count - 1)
        read = math.ceil(documents + fixed * count)
        return self._at_most(rates, read, self._written(count - later, later))

    def _at_most(self, rates: JobRates, read: int | None, written: int) -> Decimal | None:
        request = self.version.spec.request
        if read is None or request is None:
            return None
        factor = SAFETY_FACTORS.get(self.version.spec.provider, max(SAFETY_FACTORS.values()))
        longest = math.ceil(request.document_tokens * factor) + PROMPT_ROOM
        return rates.at_most(read, written, longest)

    @property
    def _answer_tokens(self) -> int:
        request = self.version.spec.request
        return 0 if request is None else request.output_tokens

    def _written(self, first_attempts: int, later: int) -> int:
        """Tokens of answers as long as they may be; later attempts may have more room."""
        request = self.version.spec.request
        recovery = None if request is None else request.recovery
        larger = (recovery and recovery.output_tokens) or self._answer_tokens
        return first_attempts * self._answer_tokens + later * larger

    def _rates(self, job: JobRow) -> JobRates:
        return JobRates(day_rates(job, self.context.clock()), frozen=False)

    @staticmethod
    def _range(connection: Connection, batch_no: int) -> tuple[int, int]:
        row = connection.execute(
            select(batches.c.first_attempt_no, batches.c.last_attempt_no).where(
                batches.c.batch_no == batch_no
            )
        ).one()
        return int(row[0]), int(row[1])

    @staticmethod
    def _documents(connection: Connection, first: int, last: int) -> int:
        return int(
            connection.execute(
                select(func.coalesce(func.sum(renderings.c.tokens), 0)).where(
                    renderings.c.attempt_no.between(first, last)
                )
            ).scalar_one()
        )

    @staticmethod
    def _later_attempts(connection: Connection, first: int, last: int) -> int:
        return int(
            connection.execute(
                select(func.count()).where(
                    attempts.c.attempt_no.between(first, last), attempts.c.ordinal > 1
                )
            ).scalar_one()
        )

    def _retries_in(self, connection: Connection, job: JobRow) -> int:
        """Retries of a batch; they were counted when they were decided."""
        if self.limit.attempts is None or job.machine != "batch":
            return 0
        first, last = self._range(connection, job.no)
        return int(
            connection.execute(
                select(func.count()).where(
                    attempts.c.attempt_no.between(first, last),
                    attempts.c.ordinal > 1,
                    attempts.c.recovery_path.not_in(_BY_RETRY_ITSELF),
                )
            ).scalar_one()
        )


_UNPRICED = "an answer reports no tokens, or its model has no price"
_NO_PRICE = f"its model has no price, or {_NO_ESTIMATE}"


def open_gate(context: Context, version: OpenVersion, settings: Operating) -> BudgetGate | None:
    """The gate of a version; None, without a look at the ledger, where no budget is set."""
    limit = BudgetLimit(settings.budget_usd, settings.budget_attempts, settings.budget_time)
    if not limit.any:
        return None
    charged = None
    if limit.money is not None and version.spec.mode != "embedded":
        with context.ledger.read() as connection:
            charged = so_far(connection, context, version.version_no)
    return BudgetGate(context, version, limit, charged)


def elapsed_of(connection: Connection, context: Context, version_no: int) -> timedelta | None:
    """The time since a version's first batch was submitted; None before that."""
    first = connection.execute(
        select(func.min(batches.c.submitted_at)).where(batches.c.version_no == version_no)
    ).scalar_one()
    return None if first is None else context.clock() - from_text(first)
