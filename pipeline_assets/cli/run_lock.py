"""One run at a time on a state folder.

Belongs here: the lock file, and naming who holds it. The system lets the lock go when its holder
ends, however it ends, so a lock is never left over.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from resources.clock import Clock, from_text, system_clock, to_text
from resources.context import make_private

LOCK_NAME = "run.lock"


class StateInUse(Exception):
    """Another run works on the same state folder."""

    def __init__(self, folder: Path, holder: str) -> None:
        super().__init__(
            f"another run is using {folder} ({holder}). Wait for it to end, or give this one a "
            "folder of its own with --state."
        )


@contextmanager
def run_lock(folder: Path, clock: Clock = system_clock) -> Iterator[None]:
    """Hold the state folder for the length of a block.

    Raises:
        StateInUse: another process holds it.
    """
    make_private(folder)
    descriptor = os.open(folder / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "r+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StateInUse(folder, _holder(file.read())) from None
        file.truncate()
        file.write(f"{os.getpid()} {to_text(clock())}\n")
        file.flush()
        try:
            yield
        finally:
            file.seek(0)
            file.truncate()


def _holder(content: str) -> str:
    pid, _, since = content.strip().partition(" ")
    try:
        started = from_text(since).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    except ValueError:
        return "it has only just started"
    return f"process {pid}, since {started}"
