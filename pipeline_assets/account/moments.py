"""Times that a person types.

Belongs here: reading them. Does not belong here: the ledger's own text form (`resources/clock.py`).
"""

from __future__ import annotations

from datetime import UTC, datetime

_FIRST_YEAR = 1000
"""The ledger compares times as texts, and the text of an earlier year is shorter: 226 is after
2026. A year like that is a slip of the keyboard."""


class UnreadableMoment(ValueError):
    """A text that is no time, or of a year that nobody means."""

    def __init__(self, text: str) -> None:
        super().__init__(
            f"{text!a} is no time; expected ISO 8601, e.g. 2026-11-30, 2026-11-30T14:05 (local "
            "time), 2026-11-30T14:05:00Z or 2026-11-30T14:05:00+02:00"
        )


def parse_moment(text: str) -> datetime:
    """The time in UTC that an ISO 8601 text names.

    Without a zone it is local time, as the commands print it; a date is its first moment.

    Raises:
        UnreadableMoment: it names none.
    """
    try:
        # Of a time without a zone, astimezone takes this machine's.
        moment = datetime.fromisoformat(text.strip()).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise UnreadableMoment(text) from error
    if moment.year < _FIRST_YEAR:
        raise UnreadableMoment(text)
    return moment
