"""What work of a version may cost at most: what is out, what is next, and what nobody knows.

Belongs here: the upper estimates that a budget is held against. Does not belong here: the budget
(`gate.py`), and what results did cost (`totals.py`).

At most means: all tokens that were counted for the prompts, on the side of too many, none of them
cached, and answers as long as the request allows. Answers are mostly far shorter; but a budget
that went by their mean would be passed now and then. An online call that breaks off is made once
more, and both may be paid. An attempt whose tokens nobody knows counts like the longest of its
batch. None is only what has no price.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from sqlalchemy import Connection, and_, case, func, or_, select

from pipeline_assets.costs.canaries import CanaryJob, canaries_of_version
from pipeline_assets.costs.charges import ChargedJob, jobs_of_version
from pipeline_assets.costs.rates import JobRates, day_rates, rates_of_jobs
from pipeline_assets.costs.totals import SoFar, so_far
from pipeline_assets.online_calls.call_plan import CallPolicy
from pipeline_assets.versions import OpenVersion
from resources.context import Context
from resources.ledger.job_prices import usage_of_canaries
from resources.ledger.jobs import JobRow
from resources.ledger.schema import attempts, batches, online_groups, renderings
from resources.providers.tokens import SAFETY_FACTORS

PROMPT_ROOM = 50_000
"""More tokens than the instructions and the schema of any prompt have beside the document."""
CALLS = 1 + CallPolicy().ambiguous_tries
"""Calls of one online request that may be paid."""


@dataclass(frozen=True)
class _Prompts:
    """The prompts of some attempts, in tokens, on the side of too many.

    Attributes:
        first: number of the first attempt.
        last: of the last one.
        whole: of all of them.
        fixed: of each beside its document.
        longest: of one.
    """

    first: int
    last: int
    whole: int
    fixed: float
    longest: int

    @property
    def count(self) -> int:
        """How many there are."""
        return self.last - self.first + 1


@dataclass(frozen=True)
class WorstCase:
    """What a version has cost, and what its work may still cost at most.

    Attributes:
        context: the open resources.
        version: whose.
        charged: what it had cost when this was opened. What is settled after that counts at its
            upper estimate, so no result falls between.
        unsized: what settled attempts, answers and calls may have cost by then whose tokens
            nobody knows.
    """

    context: Context
    version: OpenVersion
    charged: SoFar
    unsized: Decimal | None = Decimal(0)

    @property
    def usd(self) -> Decimal | None:
        """What is known to be charged; None where a part of it has no price."""
        return None if self.charged.unpriced else self.charged.usd

    def with_unsized(self, connection: Connection) -> WorstCase:
        """The same, with `unsized`."""
        charged, version_no = self.charged, self.version.version_no
        parts: list[Decimal | None] = [
            self.lines(connection, batch_no, count) for batch_no, count in charged.unsized.items()
        ]
        if charged.unsized_canaries:
            parts += [
                self._canary(connection, canary, charged.unsized_canaries[canary.no])
                for canary in canaries_of_version(connection, version_no)
                if canary.no in charged.unsized_canaries
            ]
        return replace(self, unsized=total_of(parts))

    def lines(self, connection: Connection, batch_no: int, count: int) -> Decimal | None:
        """So many requests of a batch, nobody knows which."""
        if not count:
            return Decimal(0)
        (job,) = jobs_of_version(connection, self.version.version_no, batch_no)
        rates = rates_of_jobs(connection, "batch", [job], self.context.clock)
        prompts = self._prompts(connection, batch_no)
        return self._at_most(rates[batch_no], prompts.longest * count, self._written(0, count))

    def under_way(self, connection: Connection) -> Decimal | None:
        """What was handed over and is not settled."""
        version_no, charged = self.version.version_no, self.charged
        jobs = [
            job
            for job in jobs_of_version(connection, version_no, first=charged.first_open)
            if job.state != "prepared" and job.mode != "embedded" and job.no not in charged.settled
        ]
        rates = rates_of_jobs(connection, "batch", jobs, self.context.clock)
        sent = [
            one
            for one in canaries_of_version(connection, version_no)
            if one.state != "prepared" and one.no not in charged.canaries
        ]
        return total_of(
            [
                *(self._out(connection, job, rates[job.no]) for job in jobs),
                *(self._canary(connection, one, self._asked(connection, one)) for one in sent),
            ]
        )

    def job(self, connection: Connection, job: JobRow) -> Decimal | None:
        """A job that is about to be handed over; one of online calls is asked about by calls."""
        rates = self._rates(job)
        if job.machine == "canary":
            calls = job.expected_records * (CALLS if job.mode == "online" else 1)
            return self._canary_requests(job.expected_records, job.input_tokens, calls, rates)
        if job.mode == "online":
            return Decimal(0)
        return self._whole(connection, self._prompts(connection, job.no), rates)

    def calls(self, connection: Connection, job: JobRow, first: int, count: int) -> Decimal | None:
        """Some online calls of a job: their documents, and their share of what all prompts have.

        Args:
            connection: of one moment.
            job: answered online.
            first: index of the first of them in the batch.
            count: how many.
        """
        prompts = self._prompts(connection, job.no)
        return self._calls(connection, prompts, first, count, CALLS, self._rates(job))

    def _out(self, connection: Connection, job: ChargedJob, rates: JobRates) -> Decimal | None:
        prompts = self._prompts(connection, job.no)
        if job.mode != "online":
            return self._whole(connection, prompts, rates)
        begun, again = self._begun(connection, job.no)
        return total_of(
            [
                self._calls(connection, prompts, 0, begun, 1, rates),
                self._at_most(rates, prompts.longest * again, self._written(0, again)),
            ]
        )

    @staticmethod
    def _begun(connection: Connection, batch_no: int) -> tuple[int, int]:
        """Online calls that were begun, in the order of the batch; and how many of them twice."""
        table = online_groups.c
        under_way = and_(
            table.finished_at.is_(None),
            or_(table.kept_at.is_(None), table.kept_at < table.started_at),
        )
        again = table.possibly_paid + case((under_way, table.records * (CALLS - 1)), else_=0)
        row = connection.execute(
            select(
                func.coalesce(func.max(table.first_index + table.records), 0),
                func.coalesce(func.sum(again), 0),
            ).where(table.batch_no == batch_no)
        ).one()
        return int(row[0]), int(row[1])

    def _whole(self, connection: Connection, prompts: _Prompts, rates: JobRates) -> Decimal | None:
        later = self._later_attempts(connection, prompts.first, prompts.last)
        return self._at_most(rates, prompts.whole, self._written(prompts.count - later, later))

    def _calls(
        self,
        connection: Connection,
        prompts: _Prompts,
        first: int,
        count: int,
        times: int,
        rates: JobRates,
    ) -> Decimal | None:
        if not count:
            return Decimal(0)
        start, end = prompts.first + first, prompts.first + first + count - 1
        documents, _ = self._documents(connection, start, end)
        read = math.ceil(documents + prompts.fixed * count)
        later = self._later_attempts(connection, start, end)
        return self._at_most(rates, read * times, self._written(count - later, later) * times)

    @staticmethod
    def _asked(connection: Connection, canary: CanaryJob) -> int:
        """Requests of a canary that was out when this was opened, as often as they were made."""
        usage = usage_of_canaries(connection, canary.no, canary.no).get(canary.no)
        return canary.expected_records + (0 if usage is None else usage.unknown)

    def _canary(self, connection: Connection, canary: CanaryJob, count: int) -> Decimal | None:
        rates = rates_of_jobs(connection, "canary", [canary], self.context.clock)
        return self._canary_requests(
            canary.expected_records, canary.input_tokens, count, rates[canary.no]
        )

    def _canary_requests(
        self, records: int, whole: int | None, count: int, rates: JobRates
    ) -> Decimal | None:
        """So many requests of a canary: as often the whole of it as they may be of."""
        read = records * self._longest if whole is None else whole
        return self._at_most(
            rates, read * math.ceil(count / max(1, records)), self._written(count, 0)
        )

    def _prompts(self, connection: Connection, batch_no: int) -> _Prompts:
        table = batches.c
        first, last, counted = connection.execute(
            select(table.first_attempt_no, table.last_attempt_no, table.input_tokens).where(
                table.batch_no == batch_no
            )
        ).one()
        documents, longest = self._documents(connection, first, last)
        records = last - first + 1
        # Older releases did not count prompts.
        whole = records * self._longest if counted is None else int(counted)
        fixed = max(0.0, whole - documents) / max(1, records)
        return _Prompts(first, last, whole, fixed, min(whole, math.ceil(longest + fixed)))

    def _documents(self, connection: Connection, first: int, last: int) -> tuple[float, float]:
        """Tokens of the documents of some attempts, and of the longest of them."""
        tokens = renderings.c.tokens
        row = connection.execute(
            select(func.coalesce(func.sum(tokens), 0), func.coalesce(func.max(tokens), 0)).where(
                renderings.c.attempt_no.between(first, last)
            )
        ).one()
        return int(row[0]) * self._factor, int(row[1]) * self._factor

    @staticmethod
    def _later_attempts(connection: Connection, first: int, last: int) -> int:
        return int(
            connection.execute(
                select(func.count()).where(
                    attempts.c.attempt_no.between(first, last), attempts.c.ordinal > 1
                )
            ).scalar_one()
        )

    def _at_most(self, rates: JobRates, read: int, written: int) -> Decimal | None:
        return rates.at_most(read, written, self._longest)

    def _rates(self, job: JobRow) -> JobRates:
        return JobRates(day_rates(job, self.context.clock()), frozen=False)

    @property
    def _factor(self) -> float:
        return SAFETY_FACTORS.get(self.version.spec.provider, max(SAFETY_FACTORS.values()))

    @property
    def _longest(self) -> int:
        """Tokens of the longest prompt that the version may send."""
        request = self.version.spec.request
        document = 0 if request is None else request.document_tokens
        return math.ceil(document * self._factor) + PROMPT_ROOM

    def _written(self, first_attempts: int, later: int) -> int:
        """Tokens of answers as long as they may be; later attempts may have more room."""
        request = self.version.spec.request
        if request is None:
            return 0
        recovery = request.recovery
        larger = (recovery and recovery.output_tokens) or request.output_tokens
        return first_attempts * request.output_tokens + later * larger


def worst_case(connection: Connection, context: Context, version: OpenVersion) -> WorstCase:
    """What a version has cost by now, to be held against what it may still cost."""
    charged = so_far(connection, context, version.version_no)
    return WorstCase(context, version, charged).with_unsized(connection)


def total_of(parts: Sequence[Decimal | None]) -> Decimal | None:
    """Amounts added up; None where one of them is not known."""
    known = [part for part in parts if part is not None]
    return sum(known, Decimal(0)) if len(known) == len(parts) else None
