"""A clock that stands still until a test moves it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

START = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)


class FrozenClock:
    """A `Callable[[], datetime]` in UTC whose time passes only by `advance`."""

    def __init__(self, now: datetime = START) -> None:
        self._now = now

    def __call__(self) -> datetime:
        """Return the present moment."""
        return self._now

    def advance(self, step: timedelta | float) -> datetime:
        """Move on by a duration, or by seconds, and return the new moment."""
        self._now += step if isinstance(step, timedelta) else timedelta(seconds=step)
        return self._now
