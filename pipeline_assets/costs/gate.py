"""The gate before every hand-over: a version's budget is asked, and holds what could pass it.

Belongs here: putting the figures together that `pipeline_assets/recovery/budget.py` compares, the
hold, and the budget that a decision on retries is given. Does not belong here: the comparison, the
figures themselves (`worst_case.py`, `totals.py`), and which work is handed over.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal

from sqlalchemy import Connection, func, select

from pipeline_assets.costs.worst_case import WorstCase, total_of, worst_case
from pipeline_assets.operating import Operating
from pipeline_assets.recovery.budget import BudgetLimit, OverBudget, Work, decide_budget
from pipeline_assets.recovery.holds import hold_within
from pipeline_assets.recovery.retry import Budget
from pipeline_assets.versions import OpenVersion
from resources.clock import from_text
from resources.context import Context
from resources.ledger.jobs import JobRow
from resources.ledger.moves import version_chain
from resources.ledger.retries import retries_made
from resources.ledger.schema import attempts, batches

NO_PRICE = "its model has no price in the list"
_BY_RETRY_ITSELF = ("requeue", "replay")


@dataclass(frozen=True)
class BudgetGate:
    """A version's budget, with what was charged when the gate was opened.

    Attributes:
        context: the open resources.
        version: whose.
        limit: the budget; at least one limit is set.
        worst: what it had cost and may cost; None where money is not limited.
    """

    context: Context
    version: OpenVersion
    limit: BudgetLimit
    worst: WorstCase | None

    def hold_used_up(self) -> str | None:
        """Put a hold on the version if its budget allows nothing more; why, or None."""
        with self.context.ledger.write() as connection:
            return self._ask(connection, Decimal(0))

    def hold_before(self, connection: Connection, job: JobRow) -> str | None:
        """Put a hold on the version if a job could pass its budget; why, or None.

        Args:
            connection: the write transaction that would begin the hand-over.
            job: prepared; nothing of it was sent.
        """
        usd = Decimal(0) if self.worst is None else self.worst.job(connection, job)
        return self._ask(connection, usd, self._retries_in(connection, job))

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
        worst = self.worst
        usd = Decimal(0) if worst is None else worst.calls(connection, job, first, count)
        return self._ask(connection, usd)

    def _ask(self, connection: Connection, usd: Decimal | None, retried: int = 0) -> str | None:
        version_no = self.version.version_no
        # Two workers of a version take turns: what one begins is under way for the other.
        self.context.ledger.dialect.lock_chain(connection, version_chain(version_no))
        over = self._decide(connection, Work(usd, retried, unknown=NO_PRICE))
        if over is None:
            return None
        hold_within(connection, self.context, version_no, "budget", over.told)
        return over.told

    def _decide(self, connection: Connection, next_: Work) -> OverBudget | None:
        limit, version_no, worst = self.limit, self.version.version_no, self.worst
        made = retries_made(connection, version_no) if limit.attempts is not None else 0
        elapsed = None
        if limit.time is not None:
            elapsed = elapsed_of(connection, self.context, version_no)
        # Retries of the next step were counted when they were decided.
        before = max(0, made - next_.attempts)
        if worst is None:
            return decide_budget(limit, Work(Decimal(0), before, elapsed), Work(), next_)
        spent = Work(worst.usd, before, elapsed, NO_PRICE)
        committed = total_of([worst.unsized, worst.under_way(connection)])
        return decide_budget(limit, spent, Work(committed, unknown=NO_PRICE), next_)

    def _retries_in(self, connection: Connection, job: JobRow) -> int:
        """Retries of a batch."""
        if self.limit.attempts is None or job.machine != "batch":
            return 0
        return int(
            connection.execute(
                select(func.count())
                .select_from(attempts)
                .join(
                    batches,
                    attempts.c.attempt_no.between(
                        batches.c.first_attempt_no, batches.c.last_attempt_no
                    ),
                )
                .where(
                    batches.c.batch_no == job.no,
                    attempts.c.ordinal > 1,
                    attempts.c.recovery_path.not_in(_BY_RETRY_ITSELF),
                )
            ).scalar_one()
        )


def open_gate(context: Context, version: OpenVersion, settings: Operating) -> BudgetGate | None:
    """The gate of a version; None, without a look at the ledger, where no budget is set."""
    limit = BudgetLimit(settings.budget_usd, settings.budget_attempts, settings.budget_time)
    if not limit.any:
        return None
    worst = None
    if limit.money is not None and version.spec.mode != "embedded":
        with context.ledger.read() as connection:
            worst = worst_case(connection, context, version)
    return BudgetGate(context, version, limit, worst)


def budget_for_retries(
    connection: Connection,
    context: Context,
    version: OpenVersion,
    settings: Operating,
    *,
    batch_no: int | None = None,
    usd: Decimal | None = Decimal(0),
    unsized: int = 0,
) -> Budget:
    """What a version may still do, for a decision on retries; no limit, no look at the ledger.

    What is under way is not in it: a retry asks the gate when it is handed over.

    Args:
        connection: of one moment.
        context: the open resources.
        version: whose.
        settings: its limits.
        batch_no: a batch that is just being settled.
        usd: the known amount of its lines; None where they have no price.
        unsized: attempts of it whose tokens nobody knows.
    """
    version_no = version.version_no
    made, elapsed = 0, None
    if settings.budget_attempts is not None:
        made = retries_made(connection, version_no)
    if settings.budget_time is not None:
        elapsed = elapsed_of(connection, context, version_no)
    spent: Decimal | None = Decimal(0)
    unknown: Decimal | None = Decimal(0)
    if settings.budget_usd is not None and version.spec.mode != "embedded":
        worst = worst_case(connection, context, version)
        spent = None if worst.usd is None or usd is None else worst.usd + usd
        parts = [worst.unsized]
        if batch_no is not None:
            parts.append(worst.lines(connection, batch_no, unsized))
        unknown = total_of(parts)
    return Budget(
        attempts=settings.budget_attempts,
        retries_made=made,
        money=settings.budget_usd,
        spent=spent,
        unsized=unknown,
        time=settings.budget_time,
        elapsed=elapsed,
    )


def elapsed_of(connection: Connection, context: Context, version_no: int) -> timedelta | None:
    """The time since a version's first batch was submitted; None before that."""
    first = connection.execute(
        select(func.min(batches.c.submitted_at)).where(batches.c.version_no == version_no)
    ).scalar_one()
    return None if first is None else context.clock() - from_text(first)
