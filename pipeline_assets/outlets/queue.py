"""What is due to an outlet, what its answer means, and when to try again.

Belongs here: pure decisions, and queueing in shards. Does not belong here: the statements
(`resources/ledger/outlets.py`), the message (`payload.py`) and sending it (`http.py`).
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

import polars as pl

from resources.clock import from_text
from resources.context import Context
from resources.ledger.leases import Heartbeat, Lease, fenced
from resources.ledger.outlets import (
    OPERATION,
    add_deliveries,
    entries_after,
    gone_documents,
    newest_queued,
    overtake,
)

FIRST_WAIT = timedelta(seconds=30)
LONGEST_WAIT = timedelta(hours=1)
LONGEST_ASKED_WAIT = timedelta(hours=24)
GIVE_UP_AFTER = timedelta(days=3)
LEAST_TRIES = 8
"""A delivery is given up when it has failed for so long and so often: a weekend's outage alone
gives up nothing, since a look at a dead outlet tries few deliveries."""

# The request itself is at fault: sending the same bytes again cannot help.
_REFUSALS = frozenset({400, 406, 409, 410, 411, 413, 414, 415, 417, 422, 431, 451})
# The outlet as a whole is at fault or busy: other deliveries would meet the same.
_OF_THE_OUTLET = frozenset({401, 402, 403, 404, 405, 407, 421, 426, 429, 503})

State = Literal["due", "delivered", "refused", "given_up"]


@dataclass(frozen=True)
class Answer:
    """What an outlet said to one delivery.

    Attributes:
        status: the HTTP status; None if there was no answer.
        problem: without an answer: closed wording that says why.
        retry_after: how long the outlet asks to be left alone.
    """

    status: int | None
    problem: str | None = None
    retry_after: timedelta | None = None

    @property
    def accepted(self) -> bool:
        """Any of the 200s."""
        return self.status is not None and 200 <= self.status < 300

    @property
    def refused(self) -> bool:
        """The delivery itself is not wanted, and never will be.

        A conflict that names a time to come back means that the same key is still being worked on.
        """
        waits = self.status == 409 and self.retry_after is not None
        return self.status in _REFUSALS and not waits

    @property
    def of_the_outlet(self) -> bool:
        """Every other delivery would fare the same now: no access, wrong address, too busy."""
        redirect = self.status is not None and 300 <= self.status < 400
        return redirect or self.status in _OF_THE_OUTLET


@dataclass(frozen=True)
class Outcome:
    """What becomes of a delivery.

    Attributes:
        state: its state from now on.
        next_try_at: if it stays due: not before then.
        problem: closed wording.
    """

    state: State
    next_try_at: datetime | None = None
    problem: str | None = None


def outcome_of(
    answer: Answer, tries: int, queued_at: str, now: datetime, rng: random.Random
) -> Outcome:
    """What an answer means for a delivery that was tried so often, this time included."""
    if answer.accepted:
        return Outcome("delivered")
    problem = problem_of(answer)
    if answer.refused:
        return Outcome("refused", problem=problem)
    if tries >= LEAST_TRIES and now - from_text(queued_at) >= GIVE_UP_AFTER:
        return Outcome("given_up", problem=problem)
    wait = next_wait(tries, rng)
    if answer.retry_after is not None:
        wait = max(wait, min(answer.retry_after, LONGEST_ASKED_WAIT))
    return Outcome("due", now + wait, problem)


def next_wait(tries: int, rng: random.Random) -> timedelta:
    """Full jitter under a bound that doubles with every try."""
    bound = min(LONGEST_WAIT, FIRST_WAIT * 2 ** min(tries - 1, 16))
    return bound * rng.random()


def problem_of(answer: Answer) -> str:
    """What went wrong, in closed wording."""
    if answer.status is None:
        return answer.problem or "it did not answer"
    if 300 <= answer.status < 400:
        return f"it answered {answer.status}, a redirect, which is not followed"
    return f"it answered {answer.status}"


def key_of(outlet: str, effect: str, row: dict[str, object]) -> str:
    """The idempotency key of an effect: one business effect each, the same over all tries.

    SHA-256 over the outlet, the ledger's own delivery key (operation, record_id, request digest,
    accepted digest, promotion) and the effect, each with a zero byte after it.
    """
    parts = (
        outlet,
        OPERATION,
        row["record_id"],
        row["request_digest"] or "",
        row["accepted_digest"],
        row["promotion"],
        effect,
    )
    return hashlib.sha256("".join(f"{part}\0" for part in parts).encode()).hexdigest()


def queue_changes(
    context: Context, lease: Lease, outlet: str, is_late: Callable[[], bool] = lambda: False
) -> int:
    """Queue what became visible or left since the last look, and settle what was overtaken.

    In shards, each a transaction of its own: where it is interrupted, the next look goes on. What
    is due is sent only while it says what the archive shows, so a part of the queue is safe.

    Args:
        context: the open resources.
        lease: the outlet's.
        outlet: its name.
        is_late: is it time to stop and leave the rest to the next look?

    Returns:
        How many rows were queued.

    Raises:
        LeaseLost: another sender has the outlet.
    """
    ledger, size = context.ledger, context.settings.shard_records
    heart = Heartbeat(ledger, lease)
    queued = 0
    for effect in ("put", "remove"):
        while True:
            heart.beat()
            with fenced(ledger, lease) as connection:
                found = (
                    entries_after(connection, ledger, newest_queued(connection, outlet), size)
                    if effect == "put"
                    else gone_documents(connection, ledger, outlet, size)
                )
                if not found.is_empty():
                    rows = _with_keys(outlet, effect, found)
                    add_deliveries(connection, ledger, outlet, effect, rows, ledger.now())
            queued += found.height
            if found.height < size or is_late():
                break
    with fenced(ledger, lease) as connection:
        overtake(connection, outlet, ledger.now())
    return queued


def _with_keys(outlet: str, effect: str, rows: pl.DataFrame) -> pl.DataFrame:
    keys = [key_of(outlet, effect, row) for row in rows.iter_rows(named=True)]
    return rows.with_columns(idempotency_key=pl.Series(keys, dtype=pl.String))
