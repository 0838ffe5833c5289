"""How many online calls may be under way at once, and from when on.

Belongs here: the pure arithmetic of the window. Does not belong here: which call is sent next
(`call_plan.py`) and sending it (`online.py`).

Additive increase, multiplicative decrease, as TCP does it (RFC 5681): one call more after a
window full of answers, half of the calls when the provider pushes back. All calls that were under
way at one push-back tell of the same jam, so only the first of them halves the window. Calls are
told apart by the round in which they were sent.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

OPENING_SIZE = 4
"""Calls at once until answers have shown that more are taken."""
LONGEST_BLOCK_SECONDS = 86_400.0
"""More than this is never read out of a retry-after; a later reply can ask again."""


@dataclass(frozen=True)
class Window:
    """The window as it is now.

    Attributes:
        size: calls that may be under way at once, from 1 to `limit`.
        limit: what the operator allows at most.
        round: grows with each decrease; a call belongs to the round in which it was sent.
        credit: answers of this round that count towards the next increase.
        blocked_until: nothing may be sent before, None where the provider never asked for that.
    """

    size: int
    limit: int
    round: int = 0
    credit: int = 0
    blocked_until: datetime | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.size <= self.limit:
            raise ValueError(
                f"found a window of {self.size} calls with a limit of {self.limit}; expected at "
                "least one call and not more than the limit"
            )

    def after_success(self, sent_in: int) -> Window:
        """The window after an answer to a call of round `sent_in`."""
        if sent_in != self.round or self.size == self.limit:
            return self
        if self.credit + 1 < self.size:
            return replace(self, credit=self.credit + 1)
        return replace(self, size=self.size + 1, credit=0)

    def after_pushback(self, sent_in: int, retry_after: float | None, now: datetime) -> Window:
        """The window after a call of round `sent_in` was turned away for want of room.

        Args:
            sent_in: the round in which the call was sent.
            retry_after: seconds that the provider asks to wait, None where it does not say.
            now: when the reply came.
        """
        blocked = self.blocked(retry_after, now)
        if sent_in != self.round:
            return blocked
        return replace(blocked, size=max(1, self.size // 2), round=self.round + 1, credit=0)

    def blocked(self, retry_after: float | None, now: datetime) -> Window:
        """The window that sends nothing for so many seconds; an earlier, longer block stays."""
        # Written so that NaN, which compares with nothing, is no wish either.
        if retry_after is None or not retry_after > 0:
            return self
        until = now + timedelta(seconds=min(retry_after, LONGEST_BLOCK_SECONDS))
        if self.blocked_until is not None and self.blocked_until >= until:
            return self
        return replace(self, blocked_until=until)

    def is_blocked(self, now: datetime) -> bool:
        """May nothing be sent at the moment?"""
        return self.blocked_until is not None and now < self.blocked_until

    def with_limit(self, limit: int) -> Window:
        """The window under another limit."""
        return replace(self, limit=limit, size=min(self.size, limit), credit=0)


def open_window(limit: int) -> Window:
    """The window before the first call.

    Raises:
        ValueError: the limit allows no call.
    """
    return Window(size=min(OPENING_SIZE, limit), limit=limit)
