"""Answers that belong to another document: their records are asked about once more.

Belongs here: what acceptance does with an outcome of `recovery`, in its own transaction. Does not
belong here: finding such answers (`pipeline_assets/workloads/rules`), the decision
(`pipeline_assets/recovery/retry.py`) and the next attempt (`prepare/retries.py`).

The attempt's disposition stays `succeeded`: an answer came back and had the right form. That it is
not this document's is what acceptance found out, and the decision says so.
"""

from __future__ import annotations

import polars as pl
from sqlalchemy import Connection

from pipeline_assets.accept.judge import RECOVERY
from pipeline_assets.costs.gate import budget_for_retries
from pipeline_assets.operating import Operating
from pipeline_assets.recovery.holds import hold_within
from pipeline_assets.recovery.retry import RecordLimits, allowed_paths, decide_retries
from pipeline_assets.versions import OpenVersion
from resources.context import Context
from resources.ledger.alerts import raise_alert
from resources.ledger.batches import Batch
from resources.ledger.dead_letters import open_dead_letters
from resources.ledger.moves import batch_chain, move_records
from resources.ledger.retries import store_decisions, tried_before

FAILURE = "misrouted"


def ask_again(
    connection: Connection,
    context: Context,
    version: OpenVersion,
    batch: Batch,
    settings: Operating,
    staging: pl.DataFrame,
) -> None:
    """Move the records whose answers are another document's: to another attempt, or to an owner.

    Args:
        connection: the fenced transaction that stores the judgement.
        context: the open resources.
        version: their version.
        batch: whose chain the moves are written to.
        settings: limits and budgets.
        staging: attempt_no, record_no, outcome of everything that is judged.
    """
    failed = staging.filter(pl.col("outcome") == RECOVERY).select(
        "attempt_no", "record_no", failure_class=pl.lit(FAILURE)
    )
    if failed.is_empty():
        return
    ledger = context.ledger
    at = ledger.now()
    decided = decide_retries(
        tried_before(connection, ledger, failed),
        RecordLimits(settings.attempts_a_record, settings.free_retries, settings.retry_time),
        budget_for_retries(connection, context, version, settings),
        allowed_paths(version.spec),
        ledger.clock(),
        context.rng,
    )
    dead = pl.col("decision") == "dead_letter"
    for members, target, reason in (
        (decided.rows.filter(~dead), "retry_wait", "its answer is another document's"),
        (decided.rows.filter(dead), "dead_letter", "its answers are another document's"),
    ):
        move_records(
            connection,
            ledger.dialect,
            members["record_no"],
            "collected",
            target,
            context.cause(reason, "accept"),
            batch_chain(batch.batch_no),
        )
    store_decisions(connection, ledger, decided.rows, at)
    open_dead_letters(
        connection,
        ledger,
        decided.rows.filter(dead).select(
            "attempt_no",
            "record_no",
            "failure_class",
            "reason",
            version_no=pl.lit(version.version_no, dtype=pl.Int64),
            owner=pl.lit(settings.dead_letter_owner),
            opened_at=pl.lit(at),
        ),
    )
    if "budget" in decided.holds:
        hold_within(connection, context, version.version_no, "budget", decided.holds["budget"])
    raise_alert(
        connection,
        FAILURE,
        batch.batch_id,
        _told(decided.rows),
        at,
    )


def _told(decided: pl.DataFrame) -> str:
    """What an operator is told: how many answers, and what becomes of their records."""
    counts = dict(decided["decision"].value_counts().iter_rows())
    becomes = [
        f"{counts[kind]} {one if counts[kind] == 1 else more}"
        for kind, one, more in (
            ("retry", "is asked about once more", "are asked about once more"),
            ("hold", "waits until the version goes on", "wait until the version goes on"),
            (
                "dead_letter",
                "is given up and waits for its owner",
                "are given up and wait for their owner",
            ),
        )
        if kind in counts
    ]
    answers = "1 answer has" if decided.height == 1 else f"{decided.height:,} answers have"
    return (
        f"{answers} evidence of another document of the batch and will not be used; of the "
        f"records {', '.join(becomes)}"
    )
