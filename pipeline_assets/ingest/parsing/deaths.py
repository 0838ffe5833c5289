"""Explains why a worker ended: which of a document's limits, or whose fault.

A pure table over exit status and what the parent knows; no process here.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from pipeline_assets.ingest.parsing.model import ParseFailure, ParseLimits

Stopped: TypeAlias = Literal["wall", "protocol"]
"""Why the parent itself ended a worker."""

_FROM_OUTSIDE: Final = frozenset({signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
"""Signals that documents do not cause: an operator, or the kernel short of memory."""
_MEMORY_SIGNALS: Final = frozenset({signal.SIGABRT})
_CRASH_OF_ALLOCATION: Final = frozenset(
    {signal.SIGTRAP, signal.SIGILL, signal.SIGSEGV, signal.SIGBUS}
)
_NEAR_LIMIT: Final = 0.8


@dataclass(frozen=True)
class Death:
    """A verdict on the document in hand.

    Attributes:
        blameless: The document did not cause it and deserves another worker.
    """

    failure: ParseFailure
    blameless: bool


def explain(
    exit_status: int, stopped: Stopped | None, peak_rss_bytes: int, limits: ParseLimits
) -> Death:
    """Why the worker ended.

    Args:
        exit_status: As `subprocess` has it: negative for a signal.
        stopped: Set when the parent ended the worker itself.
        peak_rss_bytes: Of the whole process; 0 when it is not known.
        limits: Those it ran under.

    PDFium traps instead of aborting when its own allocator fails, so a crash near the memory
    limit counts as too large.
    """
    if stopped == "wall":
        return _blamed("too_slow", f"more than {limits.wall_seconds:g} s of wall time")
    if stopped == "protocol":
        # What it sent may have been about the document before.
        failure = ParseFailure("unreadable", "the worker answered with garbage")
        return Death(failure, blameless=True)
    if exit_status == 0:
        # A sound worker leaves only when the parent does: it never took this document up.
        failure = ParseFailure("unreadable", "the worker left without an answer")
        return Death(failure, blameless=True)
    if exit_status > 0:
        return _blamed("unreadable", f"the worker ended with status {exit_status}")
    name = signal_name(-exit_status)
    if -exit_status == signal.SIGXCPU:
        return _blamed("too_slow", f"more than {limits.cpu_seconds} s of CPU time")
    if -exit_status in _FROM_OUTSIDE:
        return Death(ParseFailure("unreadable", f"the worker was ended by {name}"), blameless=True)
    if -exit_status in _MEMORY_SIGNALS:
        return _blamed("too_large", f"the reader gave up with {name}: out of memory")
    if -exit_status in _CRASH_OF_ALLOCATION and peak_rss_bytes > _NEAR_LIMIT * limits.memory_bytes:
        return _blamed("too_large", f"the reader crashed with {name} near the memory limit")
    return _blamed("unreadable", f"the reader crashed with {name}")


def signal_name(number: int) -> str:
    """Name of a signal, or its number where it has none."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _blamed(reason: Literal["too_slow", "too_large", "unreadable"], detail: str) -> Death:
    return Death(ParseFailure(reason, detail), blameless=False)
