"""Taking holds off that end by themselves: a breaker's pause that is over, a backlog that is low.

Belongs here: looking at held versions and releasing those whose cause is gone. Does not belong
here: what holds a version (`breaker.py`, `backpressure.py`) and the release itself (`holds.py`).
"""

from __future__ import annotations

from pipeline_assets.operating import operating
from pipeline_assets.recovery.backpressure import backlog_reason
from pipeline_assets.recovery.breaker import policy_of, read_breaker, trip_breaker
from pipeline_assets.recovery.holds import Hold, hold_of, release
from resources.context import Context
from resources.ledger.versions import list_versions


def look_at_holds(context: Context) -> list[str]:
    """Release every version that may be released by itself now; to be called now and then.

    Returns:
        Their keys.
    """
    return [
        version.key
        for version in list_versions(context.ledger)
        if version.state == "held" and look_at_hold(context, version.version_no)
    ]


def look_at_hold(context: Context, version_no: int) -> bool:
    """Release a version if its hold ends by itself now.

    Returns:
        Was it released, and is it still? A release from backpressure lets the breaker look, since
        results may have come in that it could not act on.
    """
    with context.ledger.read() as connection:
        held = hold_of(connection, version_no)
    if held is None:
        return False
    if held.kind == "breaker":
        reason = _breaker_is_over(context, version_no)
    elif held.kind == "backpressure":
        reason = _backlog_is_low(context, version_no, held)
    else:
        return False
    if reason is None or not release(context, version_no, held.kind, reason):
        return False
    return trip_breaker(context, version_no) is None


def _breaker_is_over(context: Context, version_no: int) -> str | None:
    policy = policy_of(operating(context.ledger, version_no))
    with context.ledger.read() as connection:
        state = read_breaker(connection, context.ledger, version_no, policy)
    if state.ends_at is None or context.clock() < state.ends_at:
        return None
    if policy.window is None:
        return "the breaker was switched off"
    return "the breaker's pause is over; one batch at a time until enough results are in"


def _backlog_is_low(context: Context, version_no: int, held: Hold) -> str | None:
    if backlog_reason(context, version_no, held) is not None:
        return None
    return "the later stages have caught up"
