"""Dropping a canary's verdict, by an operator and with a reason.

Belongs here: the check and the move. Does not belong here: what follows (`gate.py`).
"""

from __future__ import annotations

from resources.context import Context
from resources.ledger.alerts import clear_alerts
from resources.ledger.jobs import find_job, move_job, reload_job
from resources.ledger.leases import fenced, held


class NoVerdict(LookupError):
    """A name that no judged canary has."""

    def __init__(self, name: str, state: str | None) -> None:
        found = "there is no canary of that name" if state is None else f"it is {state}"
        super().__init__(
            f"{name!r} has no verdict to drop ({found}); expected one that passed or failed: see "
            "`tallybook canary list`"
        )


def drop_canary(context: Context, name: str, reason: str) -> None:
    """Make a verdict count no more.

    Raises:
        NoVerdict: there is none.
    """
    job = find_job(context.ledger, name)
    if job is None or job.machine != "canary":
        raise NoVerdict(name, None)
    with (
        held(context.ledger, job.lease_name, context.worker) as lease,
        fenced(context.ledger, lease) as connection,
    ):
        now = reload_job(connection, job)
        if now.state not in ("passed", "failed"):
            raise NoVerdict(name, now.state)
        cause = context.cause(f"dropped: {reason}", "canary drop")
        clear_alerts(connection, now.id, cause.at)
        move_job(connection, context.ledger, now, now.state, "expired", cause)
