"""The alert of a failed run: its subject, its words, raising and clearing it.

Belongs here: what the ledger is told. Does not belong here: Dagster, which says how runs ended
(`automation/alert_sensors.py`).

The words are closed: job, run and steps. What a step raised may quote a document and stays in
Dagster's log of the run.
"""

from __future__ import annotations

from collections.abc import Sequence

from resources.context import Context
from resources.ledger.alerts import SUBJECT_LENGTH, clear_alerts, raise_alert

RUN_FAILED = "run_failed"
_STEPS_NAMED = 8


def run_subject(job: str, partition: str | None) -> str:
    """`<version>/<job>`, or the job alone: a success of another job mends nothing of this one."""
    subject = job if partition is None else f"{partition}/{job}"
    return subject[:SUBJECT_LENGTH]


def run_message(run_id: str, steps: Sequence[str]) -> str:
    """What the alert says of a run."""
    if not steps:
        return f"run {run_id} failed outside its steps"
    named = ", ".join(steps[:_STEPS_NAMED])
    more = f" and {len(steps) - _STEPS_NAMED} more" if len(steps) > _STEPS_NAMED else ""
    return f"run {run_id} failed in {named}{more}"


def raise_run_failed(context: Context, subject: str, message: str) -> None:
    """Raise or renew the alert."""
    with context.ledger.write() as connection:
        raise_alert(connection, RUN_FAILED, subject, message, context.ledger.now())


def clear_run_failed(context: Context, subject: str) -> bool:
    """Close the alert, if there is one."""
    with context.ledger.write() as connection:
        return clear_alerts(connection, subject, context.ledger.now(), (RUN_FAILED,)) > 0
