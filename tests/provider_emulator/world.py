"""The state of one emulator: its clock, its faults, what was run, and a place for large files.

Belongs here: what every provider shares. A provider's jobs and files are its own, hung on
`World.state` under its name.
"""

from __future__ import annotations

import random
import tempfile
import threading
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.provider_emulator import answers
from tests.provider_emulator.faults import FaultPlan


class VirtualClock:
    """Real time plus an offset that only grows, so that a day's window passes in a moment."""

    def __init__(self) -> None:
        self.offset_seconds = 0.0

    def now(self) -> datetime:
        """Return the present virtual moment, in UTC."""
        return datetime.now(UTC) + timedelta(seconds=self.offset_seconds)

    def advance(self, seconds: float) -> None:
        """Move on by so many seconds.

        Raises:
            ValueError: time would go back.
        """
        if seconds < 0:
            raise ValueError(f"the clock cannot go back by {-seconds} s")
        self.offset_seconds += seconds


@dataclass
class Timing:
    """How long a job stays in each phase, in virtual seconds."""

    validating_seconds: float = 20.0
    running_seconds: float = 600.0
    cancelling_seconds: float = 30.0


@dataclass(frozen=True)
class Call:
    """One entry of the call log: what was asked, when, and facts without bodies or keys."""

    provider: str
    op: str
    at: datetime
    facts: dict[str, Any] = field(default_factory=dict)


class World:
    """Everything that the emulated providers know.

    Attributes:
        lock: held by whoever reads and writes several things at once; re-entrant.
        executed: provider → row ids that were really run, that is billed, with how often.
        jobs_created: provider → ids of all jobs ever created.
        settings: limits that a test may move, by dotted name, e.g. `openai.enqueued_tokens`.
        state: a provider's own object, by its name.
        folder: a temporary folder for files too large to hold; gone after `close`.
        errors: programming errors of the emulator itself; the fixture fails on them.
        base_url: `http://127.0.0.1:PORT`, set by the server.
    """

    def __init__(self, timing: Timing | None = None, seed: int = 20_300_102) -> None:
        self.lock = threading.RLock()
        self.clock = VirtualClock()
        self.faults = FaultPlan()
        self.timing = timing or Timing()
        self.rng = random.Random(seed)
        self.executed: dict[str, Counter[str]] = defaultdict(Counter)
        self.jobs_created: dict[str, list[str]] = defaultdict(list)
        self.settings: dict[str, Any] = {}
        self.state: dict[str, Any] = {}
        self.calls: list[Call] = []
        self.errors: list[BaseException] = []
        self.base_url = ""
        self._temporary = tempfile.TemporaryDirectory(prefix="provider-emulator-")
        self.folder = Path(self._temporary.name)

    def new_id(self, prefix: str) -> str:
        """Return a fresh id: the prefix and 24 hexadecimal digits, the same in every run."""
        with self.lock:
            return f"{prefix}{self.rng.getrandbits(96):024x}"

    def log(self, provider: str, op: str, **facts: Any) -> None:
        """Note a call. Facts are ids, sizes and statuses: never bodies, never keys."""
        with self.lock:
            self.calls.append(Call(provider, op, self.clock.now(), facts))

    def count_calls(self, provider: str, op: str) -> int:
        """Return how often an operation was asked."""
        with self.lock:
            return sum(one.provider == provider and one.op == op for one in self.calls)

    def answer(self, user_text: str) -> str:
        """Return what the emulated model says to a prompt."""
        return answers.answer(user_text)

    def close(self) -> None:
        """Delete the temporary folder."""
        self._temporary.cleanup()
