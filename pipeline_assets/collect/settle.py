"""What a reconciled batch changes: dispositions, decisions, late results and moves, together.

Belongs here: the one transaction that completes a batch, and what has to be known before it. Does
not belong here: matching lines (`reconcile.py`), the decisions (`late.py`,
`pipeline_assets/recovery/retry.py`), and which batches (`collect_batches.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

import polars as pl
from sqlalchemy import Connection

from pipeline_assets.collect.late import choose_late
from pipeline_assets.collect.reconcile import Reconciliation
from pipeline_assets.costs.gate import budget_for_retries
from pipeline_assets.costs.lines import TOKEN_COLUMNS, cost_of_lines
from pipeline_assets.costs.rates import JobRates, day_rates
from pipeline_assets.operating import Operating, operating
from pipeline_assets.provider_jobs.operate import OPERATOR_CANCELLED
from pipeline_assets.recovery.holds import HoldKind, hold_within
from pipeline_assets.recovery.retry import (
    DECIDED_SCHEMA,
    Budget,
    Decided,
    RecordLimits,
    allowed_paths,
    decide_retries,
)
from pipeline_assets.versions import OpenVersion
from resources.context import Context
from resources.contracts import COLLECTED, store_frame
from resources.ledger.alerts import clear_alerts, raise_alert
from resources.ledger.batches import Batch, reload_batch, update_batch
from resources.ledger.dead_letters import close_dead_letters, open_dead_letters
from resources.ledger.job_prices import store_price
from resources.ledger.jobs import job_of_batch
from resources.ledger.late import store_late_answers, store_late_results
from resources.ledger.leases import Lease, fenced
from resources.ledger.moves import MoveRefused, batch_chain, move_batch, move_records
from resources.ledger.repairs import store_repairs
from resources.ledger.results import (
    DISPOSITION_SCHEMA,
    RESULT_SCHEMA,
    count_dispositions,
    standing_of,
    store_results,
)
from resources.ledger.retries import store_decisions, tried_before

TRIES = 3
"""A late result elsewhere may answer a record in between; then what is known is looked up again."""
STAGE = "collect"


@dataclass(frozen=True)
class Settled:
    """What a batch came to.

    Attributes:
        whole: does every attempt have a disposition? Else the batch is an incident.
        state: the batch's state now.
        decisions: decision → failed attempts.
        late: late results, and how many of them were used.
    """

    whole: bool
    state: str
    decisions: dict[str, int]
    late: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class _Known:
    """What is known before the transaction.

    Attributes:
        own: dispositions with the record's state and whether the record is answered late.
        late: late results with `used`.
        answers: answers that are used: attempt_no, record_no, answer.
    """

    own: pl.DataFrame
    late: pl.DataFrame
    answers: pl.DataFrame


def settle(
    context: Context, version: OpenVersion, lease: Lease, batch: Batch, outcome: Reconciliation
) -> Settled | None:
    """Write what a batch's reconciliation means; None if another worker did already.

    Raises:
        LeaseLost: another worker has the batch; nothing was written.
        MoveRefused: records kept moving meanwhile; nothing was written.
    """
    settings = operating(context.ledger, version.version_no)
    rates = _rates(context, batch)
    budget = _budget(context, version, settings, batch, outcome, rates)
    for left in reversed(range(TRIES)):
        try:
            return _settle(context, version, lease, batch, outcome, settings, budget, rates)
        except MoveRefused:
            if not left:
                raise
    raise AssertionError("unreachable: the last try returns or raises")


def _settle(
    context: Context,
    version: OpenVersion,
    lease: Lease,
    batch: Batch,
    outcome: Reconciliation,
    settings: Operating,
    budget: Budget,
    rates: JobRates,
) -> Settled | None:
    ledger = context.ledger
    known = _look(context, batch, outcome)
    collected = store_frame(context.artifacts, "frame", COLLECTED, [known.answers])
    used = known.late.filter("used")
    late_frame = used.select("attempt_no", "record_no", "answer")
    late_stored = (
        None
        if used.is_empty()
        else store_frame(context.artifacts, "frame", COLLECTED, [late_frame])
    )
    with fenced(ledger, lease) as connection:
        if reload_batch(connection, batch.batch_no).state != "reconciling":
            return None
        cause = context.cause("reconciled", STAGE)
        attempt = connection.begin_nested()
        store_results(
            connection,
            ledger,
            outcome.lines.select(list(RESULT_SCHEMA)),
            outcome.dispositions.select(list(DISPOSITION_SCHEMA)),
        )
        # Counted in the database, not in the frame that was just sent there.
        counted = count_dispositions(connection, batch.first_attempt_no, batch.last_attempt_no)
        if counted != batch.expected_records:
            attempt.rollback()
            write_incident(
                connection,
                context,
                batch,
                f"{counted} of {batch.expected_records} attempts have a disposition",
            )
            return Settled(whole=False, state="incident", decisions={})
        attempt.commit()
        write_repairs(
            connection,
            context,
            outcome.repairs,
            outcome.dispositions.filter(pl.col("disposition") == "succeeded"),
        )
        write_repairs(connection, context, outcome.repairs, used)
        store_price(connection, "batch", batch.batch_no, rates.price)
        update_batch(
            connection,
            lease,
            batch.batch_no,
            reconciled_records=counted,
            collected_artifact=collected.digest,
        )
        failed = _failed(batch, known.own)
        decided = _decide(connection, context, version, failed, settings, budget)
        _move(connection, context, batch, known.own, decided)
        write_late(connection, context, batch, known.late, late_stored and late_stored.digest)
        store_decisions(connection, ledger, decided.rows, cause.at)
        _bury(connection, context, version, settings, decided.rows)
        _hold(connection, context, version, decided.holds)
        _alert(connection, context, batch, outcome.anomalies)
        state = _batch_state(known.own, decided)
        move_batch(
            connection,
            ledger.dialect,
            batch.batch_no,
            "reconciling",
            state,
            context.cause(
                f"{counted} of {batch.expected_records} records have a disposition", STAGE
            ),
        )
    counts = decided.rows["decision"].value_counts()
    return Settled(
        whole=True,
        state=state,
        decisions=dict(sorted(counts.iter_rows())),
        late=(known.late.height, used.height),
    )


def write_incident(connection: Connection, context: Context, batch: Batch, reason: str) -> None:
    """The batch is an incident: nothing of it is reported complete until an operator acts."""
    cause = context.cause(reason, STAGE)
    move_batch(connection, context.ledger.dialect, batch.batch_no, "reconciling", "incident", cause)
    raise_alert(
        connection,
        "incident",
        batch.batch_id,
        f"{reason}; nothing of it is judged. Repair the cause, then: tallybook batch reconcile "
        f"{batch.batch_id}",
        cause.at,
    )


def write_repairs(
    connection: Connection, context: Context, repairs: pl.DataFrame, answered: pl.DataFrame
) -> None:
    """Record what was mended in the answers of lines.

    Args:
        connection: inside the fenced transaction.
        context: the open resources.
        repairs: those of a reconciliation.
        answered: attempt_no, result_file_no, line of the lines that are answers.
    """
    if repairs.is_empty():
        return
    place = ["result_file_no", "line"]
    made = repairs.join(answered.select("attempt_no", *place), on=place, how="inner")
    store_repairs(connection, context.ledger, made)


def write_late(
    connection: Connection,
    context: Context,
    batch: Batch,
    late: pl.DataFrame,
    artifact: str | None,
) -> None:
    """Record late results; the used ones answer their records.

    Args:
        connection: inside the fenced transaction.
        context: the open resources.
        batch: where they came in.
        late: late results with `used` and `state`.
        artifact: the answers that are used, as a stored frame; None if none is.
    """
    if late.is_empty():
        return
    ledger = context.ledger
    at = ledger.now()
    store_late_results(connection, ledger, batch.batch_no, late, at)
    used = late.filter("used")
    if artifact is None:
        return
    store_late_answers(connection, batch.batch_no, used.height, artifact, at)
    cause = context.cause("a late result of an earlier attempt was valid", STAGE)
    for (state,), part in used.group_by("state", maintain_order=True):
        move_records(
            connection,
            ledger.dialect,
            part["record_no"],
            str(state),
            "collected",
            cause,
            batch_chain(batch.batch_no),
        )
    close_dead_letters(
        connection,
        ledger,
        used.filter(pl.col("state") == "dead_letter")["record_no"],
        closing="answered",
        reason=cause.reason,
        by=cause.actor,
        at=at,
    )


def _look(context: Context, batch: Batch, outcome: Reconciliation) -> _Known:
    with context.ledger.read() as connection:
        standing = standing_of(
            connection, context.ledger, batch, judged=not outcome.late.is_empty()
        )
    own = outcome.dispositions.join(
        standing.select("record_no", "state"), on="record_no", how="left", maintain_order="left"
    )
    answered = own.filter(
        (pl.col("disposition") == "succeeded") & (pl.col("state") == "submitted")
    )["record_no"]
    late = choose_late(outcome.late, standing, answered)
    own = own.with_columns(
        answered_late=pl.col("record_no").is_in(late.filter("used")["record_no"].implode())
    )
    answers = outcome.answers.filter(pl.col("record_no").is_in(answered.implode()))
    return _Known(own, late, answers)


def _budget(
    context: Context,
    version: OpenVersion,
    settings: Operating,
    batch: Batch,
    outcome: Reconciliation,
    rates: JobRates,
) -> Budget:
    """What the version may still do, with the lines of this batch, which is not complete yet."""
    usd, unsized = (Decimal(0), 0) if settings.budget_usd is None else _cost(outcome, rates)
    with context.ledger.read() as connection:
        return budget_for_retries(
            connection,
            context,
            version,
            settings,
            batch_no=batch.batch_no,
            usd=usd,
            unsized=unsized,
        )


def _cost(outcome: Reconciliation, rates: JobRates) -> tuple[Decimal | None, int]:
    """What the lines of a batch cost (None: no price), and its attempts of unknown tokens."""
    columns = ("disposition", "failure_class", *TOKEN_COLUMNS)
    has_line = pl.col("line").is_not_null()
    own = outcome.dispositions.filter(has_line)
    usd, unsized = cost_of_lines(
        pl.concat([own.select(columns), outcome.late.select(columns)]), rates
    )
    # Without a line that can be trusted they may have been run all the same.
    failures = outcome.dispositions.filter(~has_line)["failure_class"]
    return usd, unsized + int(failures.is_in(("missing_result", "duplicate_conflict")).sum())


def _rates(context: Context, batch: Batch) -> JobRates:
    """The prices of the day that the batch was handed over, to be kept with its results."""
    with context.ledger.read() as connection:
        job = job_of_batch(connection, batch.batch_no)
    return JobRates(day_rates(job, context.ledger.clock()), frozen=True)


def _failed(batch: Batch, own: pl.DataFrame) -> pl.DataFrame:
    """Attempts that failed and that something has to become of: attempt_no, record_no, class."""
    return own.filter(
        (pl.col("state") == "submitted")
        & (pl.col("disposition") != "succeeded")
        & ~pl.col("answered_late")
        & ~_unwanted(batch)
    ).select(
        "attempt_no",
        "record_no",
        failure_class=pl.coalesce("failure_class", "disposition"),
    )


def _unwanted(batch: Batch) -> pl.Expr:
    """Cancelled because an operator ended the job: nobody wants another attempt."""
    return (pl.col("disposition") == "cancelled") & pl.lit(batch.error_class == OPERATOR_CANCELLED)


def _decide(
    connection: Connection,
    context: Context,
    version: OpenVersion,
    failed: pl.DataFrame,
    settings: Operating,
    budget: Budget,
) -> Decided:
    if failed.is_empty():
        return Decided(pl.DataFrame(schema=DECIDED_SCHEMA), {})
    histories = tried_before(connection, context.ledger, failed)
    limits = RecordLimits(settings.attempts_a_record, settings.free_retries, settings.retry_time)
    return decide_retries(
        histories,
        limits,
        budget,
        allowed_paths(version.spec),
        context.ledger.clock(),
        context.rng,
    )


_TARGETS: Mapping[str, str] = {
    "retry": "retry_wait",
    "hold": "retry_wait",
    "dead_letter": "dead_letter",
}


def _move(
    connection: Connection, context: Context, batch: Batch, own: pl.DataFrame, decided: Decided
) -> None:
    """Move the records that this attempt decides about; the others went on without it."""
    wanted = (
        own.filter((pl.col("state") == "submitted") & ~pl.col("answered_late"))
        .join(decided.rows.select("attempt_no", "decision"), on="attempt_no", how="left")
        .with_columns(
            target=pl.when(pl.col("disposition") == "succeeded")
            .then(pl.lit("collected"))
            .when(_unwanted(batch))
            .then(pl.lit("cancelled"))
            .otherwise(pl.col("decision").replace_strict(_TARGETS, default=None))
        )
    )
    for (disposition, failure, target), part in wanted.sort("attempt_no").group_by(
        "disposition", "failure_class", "target", maintain_order=True
    ):
        move_records(
            connection,
            context.ledger.dialect,
            part["record_no"],
            "submitted",
            str(target),
            context.cause(_sentence(str(disposition), failure), STAGE),
            batch_chain(batch.batch_no),
        )


def _sentence(disposition: str, failure: object) -> str:
    said = f"disposition {disposition}"
    return said if failure in (None, disposition) else f"{said} ({failure})"


def _bury(
    connection: Connection,
    context: Context,
    version: OpenVersion,
    settings: Operating,
    decided: pl.DataFrame,
) -> None:
    dead = decided.filter(pl.col("decision") == "dead_letter")
    open_dead_letters(
        connection,
        context.ledger,
        dead.select(
            "attempt_no",
            "record_no",
            "failure_class",
            "reason",
            version_no=pl.lit(version.version_no, dtype=pl.Int64),
            owner=pl.lit(settings.dead_letter_owner),
            opened_at=pl.lit(context.ledger.now()),
        ),
    )


def _hold(
    connection: Connection, context: Context, version: OpenVersion, holds: dict[str, str]
) -> None:
    kinds: dict[str, HoldKind] = {
        "auth": "auth",
        "quota": "quota",
        "free_retries": "free_retries",
        "budget": "budget",
    }
    for kind, reason in sorted(holds.items()):
        hold_within(connection, context, version.version_no, kinds[kind], reason)


def _alert(
    connection: Connection, context: Context, batch: Batch, anomalies: dict[str, int]
) -> None:
    at = context.ledger.now()
    clear_alerts(connection, batch.batch_id, at, ("incident",))
    misrouted = anomalies.get("misrouted", 0)
    if misrouted:
        raise_alert(
            connection,
            "misrouted",
            batch.batch_id,
            f"{misrouted} answers name another document than the one they were given for; none of "
            "them is used, and each record is asked about once more",
            at,
        )


def _batch_state(own: pl.DataFrame, decided: Decided) -> str:
    if (decided.rows["decision"] != "dead_letter").any():
        return "retry_required"
    return "completed" if (own["disposition"] == "succeeded").all() else "completed_with_errors"
