"""What carries events: a port that every queue fills.

Belongs here: the port. Does not belong here: any queue, and what a message says (`events.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Received:
    """A message as it was received, once or again.

    Attributes:
        event_key: what the transport calls the message; the same when it is delivered again.
        body: its bytes.
        receipt: what it is acknowledged by.
        problem: why its body is not to be had, in closed wording; None where it is.
    """

    event_key: str
    body: bytes
    receipt: str
    problem: str | None = None


class EventTransport(Protocol):
    """A queue that delivers every message at least once, in any order."""

    @property
    def location(self) -> str:
        """The queue, for people to read; free of credentials."""
        ...

    def receive(self, limit: int, seconds: float) -> list[Received]:
        """Messages that are there; none if nothing comes within the time.

        Args:
            limit: messages at most.
            seconds: how long to wait for the first and to go on receiving.

        Raises:
            SourceMissing, SourceUnreadable: the queue cannot be asked. Never "no messages".
        """
        ...

    def acknowledge(self, receipts: Sequence[str]) -> None:
        """Say that messages are safe here and need not be delivered again.

        Raises:
            SourceMissing, SourceUnreadable: it cannot be said; they may be delivered again.
        """
        ...
