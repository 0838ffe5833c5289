"""Which online call is sent next, and what a reply leads to.

Belongs here: the decisions on a group of rows, without I/O, clock or event loop. Does not belong
here: the window's arithmetic (`window.py`) and sending (`online.py`).

A row that waits for its next try keeps its place against rows that were never sent: with a
provider that answers nobody, no more rows are tried than fit the window. Backoff is exponential
with full jitter: a wait drawn evenly between nothing and the ceiling.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

from pipeline_assets.online_calls.window import Window
from resources.providers.port import FailureClass, Reply

Verdict = Literal["final", "again", "stop"]
"""The reply settles its row, the row is called again, or nothing more is called at all."""

PUSHBACKS: frozenset[FailureClass] = frozenset({"rate_limited", "overloaded", "capacity"})
"""The provider has no room: the window shrinks and the row is called again."""
REPEATED: frozenset[FailureClass] = frozenset({*PUSHBACKS, "server_error", "transport"})
"""Failures that the same call may not meet again."""
STOPPING: frozenset[FailureClass] = frozenset({"auth", "quota"})
"""Failures that every other call would meet too. Any further class belongs to its row alone."""


@dataclass(frozen=True)
class CallPolicy:
    """How often and how patiently rows are called.

    Attributes:
        tries: calls of one row at most.
        ambiguous_tries: of these, calls that follow one which may have been paid.
        backoff_seconds: ceiling of the wait before the second call of a row; it doubles with
            each further one.
        backoff_cap_seconds: the ceiling never exceeds this.
        patience_seconds: a provider that asks to wait for longer ends the group instead, so that
            a run does not sit out an hour.
    """

    tries: int = 4
    ambiguous_tries: int = 1
    backoff_seconds: float = 1.0
    backoff_cap_seconds: float = 60.0
    patience_seconds: float = 300.0


@dataclass(frozen=True)
class RowCalls:
    """The calls of one row so far: how many, and how many of them may have been paid in vain."""

    tries: int = 0
    ambiguous: int = 0


def judge_reply(reply: Reply, before: RowCalls, policy: CallPolicy) -> Verdict:
    """What a reply means for its row.

    Args:
        reply: what came.
        before: the row's calls; this one is among `tries`, its ambiguity is not counted yet.
        policy: the limits.
    """
    if reply.failure in STOPPING:
        return "stop"
    if reply.failure not in REPEATED:
        return "final"
    if reply.retry_after is not None and reply.retry_after > policy.patience_seconds:
        return "stop"
    if before.tries >= policy.tries:
        return "final"
    if reply.ambiguous and before.ambiguous >= policy.ambiguous_tries:
        return "final"
    return "again"


def backoff(tries: int, policy: CallPolicy, rng: random.Random) -> timedelta:
    """The wait after a row's failed call number `tries`."""
    # Above 2 ** 32 seconds the cap has long taken over; the power is bounded to stay a float.
    ceiling = min(policy.backoff_cap_seconds, policy.backoff_seconds * 2.0 ** min(tries - 1, 32))
    return timedelta(seconds=rng.uniform(0.0, ceiling))


class CallPlan:
    """The calls of one group: hands out rows to be sent and takes their replies.

    Args:
        rows: how many rows the group has.
        window: as an earlier group left it.
        policy: the limits.
        rng: draws the backoff.

    Attributes:
        window: as it is now.
        calls: calls handed out.
        possibly_paid: calls that may have been run though no answer came.
        stopped: why nothing more is sent, None while nothing stands against it.
        settled: the last reply of every row that needs no further call.
    """

    def __init__(self, rows: int, window: Window, policy: CallPolicy, rng: random.Random) -> None:
        self.window = window
        self.calls = 0
        self.possibly_paid = 0
        self.stopped: FailureClass | None = None
        self.settled: dict[int, Reply] = {}
        self._policy = policy
        self._rng = rng
        self._rows = [RowCalls()] * rows
        self._fresh = deque(range(rows))
        self._waiting: list[tuple[datetime, int]] = []  # a heap: when due, row
        self._under_way: dict[int, int] = {}  # row to the window's round when it was sent

    @property
    def done(self) -> bool:
        """Is nothing under way and nothing left to send?"""
        return not self._under_way and not self._may_send

    @property
    def unanswered(self) -> tuple[int, ...]:
        """The rows that are not settled, in order."""
        return tuple(row for row in range(len(self._rows)) if row not in self.settled)

    def take(self, now: datetime) -> int | None:
        """A row to be sent now, counted as sent; None where nothing may be."""
        if not self._has_room or self.window.is_blocked(now):
            return None
        row = self._next_row(now)
        if row is not None:
            calls = self._rows[row]
            self._rows[row] = replace(calls, tries=calls.tries + 1)
            self._under_way[row] = self.window.round
            self.calls += 1
        return row

    def wake_at(self, now: datetime) -> datetime | None:
        """When `take` may give a row again without a further reply; None: not without one."""
        if not self._has_room:
            return None
        if self.window.is_blocked(now):
            return self.window.blocked_until
        return self._waiting[0][0] if self._waiting else None

    def settle(self, row: int, reply: Reply, now: datetime) -> None:
        """Take the reply to a row that was handed out."""
        sent_in = self._under_way.pop(row)
        before = self._rows[row]
        verdict = judge_reply(reply, before, self._policy)
        self.window = _adapt(self.window, sent_in, reply, now)
        if reply.ambiguous:
            self.possibly_paid += 1
            self._rows[row] = replace(before, ambiguous=before.ambiguous + 1)
        if verdict == "final":
            self.settled[row] = reply
        elif verdict == "again":
            due = now + backoff(before.tries, self._policy, self._rng)
            heapq.heappush(self._waiting, (self._not_blocked(due, now), row))
        elif self.stopped is None:
            self.stopped = reply.failure

    @property
    def _may_send(self) -> bool:
        return self.stopped is None and bool(self._waiting or self._fresh)

    @property
    def _has_room(self) -> bool:
        return self._may_send and len(self._under_way) < self.window.size

    def _next_row(self, now: datetime) -> int | None:
        if self._waiting and self._waiting[0][0] <= now:
            return heapq.heappop(self._waiting)[1]
        if self._fresh and len(self._under_way) + len(self._waiting) < self.window.size:
            return self._fresh.popleft()
        return None

    def _not_blocked(self, due: datetime, now: datetime) -> datetime:
        """`due` counted from the end of the block, so that turned-away rows come back spread."""
        if self.window.blocked_until is None or self.window.blocked_until <= now:
            return due
        return due + (self.window.blocked_until - now)


def _adapt(window: Window, sent_in: int, reply: Reply, now: datetime) -> Window:
    if reply.failure is None:
        return window.after_success(sent_in)
    if reply.failure in PUSHBACKS:
        return window.after_pushback(sent_in, reply.retry_after, now)
    if reply.failure in REPEATED:
        return window.blocked(reply.retry_after, now)
    return window
