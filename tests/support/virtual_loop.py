"""An event loop whose time jumps: a wait of an hour takes no time, and its order is exact.

Belongs here: the loop and its clock. Does not belong here: what a test waits for.
"""

from __future__ import annotations

import asyncio
import selectors
from datetime import datetime, timedelta

from tests.support.clock import START


class _JumpingSelector(selectors.SelectSelector):
    """Counts the seconds that it was asked to wait, and waits for none of them."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None:
            raise AssertionError("every task waits for something that can never come")
        self.seconds += timeout
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop that starts at second 0 and moves on only when everything waits."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        """Return the virtual seconds since the loop was made."""
        return self._jumping.seconds


class LoopClock:
    """A `Callable[[], datetime]` that shows the time of the loop it is asked in.

    Args:
        starts: when the loop's second 0 is.
    """

    def __init__(self, starts: datetime = START) -> None:
        self._starts = starts

    def __call__(self) -> datetime:
        """Return the present moment of the running loop."""
        return self._starts + timedelta(seconds=asyncio.get_running_loop().time())
