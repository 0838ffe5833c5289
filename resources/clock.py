"""The clock that everything else is given, and the one text form of a time.

Belongs here: reading the time, and turning it into the ledger's fixed-width UTC text and back.
Does not belong here: what a time means (deadlines, ages), which the stages decide.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], datetime]

_FORMAT = "%Y-%m-%dT%H:%M:%S.%fZ"


def system_clock() -> datetime:
    """The machine's time, aware and in UTC."""
    return datetime.now(UTC)


def to_text(moment: datetime) -> str:
    """`moment` as the ledger stores it: UTC, microseconds, 27 characters, sorts as text.

    Raises:
        ValueError: `moment` has no time zone, so its meaning would depend on the machine.
    """
    if moment.tzinfo is None:
        raise ValueError("found a time without a zone; give an aware time, e.g. datetime.now(UTC)")
    return moment.astimezone(UTC).strftime(_FORMAT)


def from_text(text: str) -> datetime:
    """The aware UTC time that `to_text` wrote.

    Raises:
        ValueError: `text` has another form.
    """
    return datetime.strptime(text, _FORMAT).replace(tzinfo=UTC)
