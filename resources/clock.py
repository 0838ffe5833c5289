"""The clock that everything else is given, and the one text form of a time.

Belongs here: reading the time, and turning it into the ledger's fixed-width UTC text and back.
Does not belong here: what a time means (deadlines, ages), which the stages decide.
"""

from __future__ import annotations

import ipaddress
import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

Clock = Callable[[], datetime]

_FORMAT = "%Y-%m-%dT%H:%M:%S.%fZ"


def system_clock() -> datetime:
    """The machine's time, aware and in UTC."""
    return datetime.now(UTC)


class ClockUnreachable(Exception):
    """A test's clock does not answer."""

    def __init__(self, url: str, problem: str) -> None:
        super().__init__(
            f"the clock at {url} does not answer as it should ({problem}). Start the provider "
            "emulator again, or take TALLYBOOK_CLOCK_URL away."
        )


def is_loopback(url: str) -> bool:
    """Does a URL name this machine itself?"""
    host = urlsplit(url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def virtual_clock(url: str, refresh_seconds: float = 0.5) -> Clock:
    """The machine's time plus the offset that a provider emulator tells (`offset_seconds`).

    Args:
        url: where the emulator tells its clock; on this machine, which `Settings` checks.
        refresh_seconds: an offset is asked for again after so long.

    Raises:
        ClockUnreachable: at a look at the clock, if the emulator does not answer.
    """
    known = timedelta()
    asked_at = float("-inf")

    def look() -> datetime:
        nonlocal known, asked_at
        if time.monotonic() - asked_at >= refresh_seconds:
            known = _offset(url)
            asked_at = time.monotonic()
        return datetime.now(UTC) + known

    return look


def _offset(url: str) -> timedelta:
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310 - loopback, checked
            content = json.load(answer)
        return timedelta(seconds=float(content["offset_seconds"]))
    except urllib.error.HTTPError as error:
        error.close()  # it is the answer, with a connection of its own
        raise ClockUnreachable(url, f"status {error.code}") from error
    except (OSError, ValueError, OverflowError, KeyError, TypeError) as error:
        raise ClockUnreachable(url, type(error).__name__) from error


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
