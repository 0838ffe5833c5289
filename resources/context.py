"""What every stage is given: the open resources of one state folder.

Belongs here: opening and closing them together. Does not belong here: any work.
"""

from __future__ import annotations

import os
import random
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from resources.artifacts import ArtifactStore
from resources.clock import Clock
from resources.ledger.engine import Ledger, open_ledger
from resources.ledger.erasures import present_digests
from resources.ledger.moves import Cause
from resources.ledger.prunes import pruned_at
from resources.settings import Settings


class Progress(Protocol):
    """Where long work tells how far it is."""

    def start(self, label: str, total: int | None) -> None:
        """A piece of work begins; `total` is None where it is not known."""
        ...

    def advance(self, count: int = 1) -> None:
        """So many more items of the piece are done."""
        ...

    def finish(self) -> None:
        """The piece is over."""
        ...


class SilentProgress:
    """Progress that nobody watches."""

    def start(self, label: str, total: int | None) -> None:
        """Say nothing."""

    def advance(self, count: int = 1) -> None:
        """Say nothing."""

    def finish(self) -> None:
        """Say nothing."""


@dataclass(frozen=True)
class Context:
    """The resources of one state folder, open.

    Attributes:
        settings: where things are.
        ledger: the single source of truth.
        artifacts: content-addressed files.
        clock: the time.
        rng: randomness.
        progress: where long work tells how far it is.
        worker: names this process in leases: owner, host and process.
    """

    settings: Settings
    ledger: Ledger
    artifacts: ArtifactStore
    clock: Clock
    rng: random.Random
    progress: Progress
    worker: str

    def cause(self, reason: str, stage: str) -> Cause:
        """A cause for moves made now by this process."""
        return Cause(reason=reason, actor=self.settings.owner, at=self.ledger.now(), cause=stage)


def make_private(folder: Path) -> Path:
    """Make a folder that only its owner can enter (state holds document text)."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    return folder


@contextmanager
def open_context(
    settings: Settings,
    *,
    clock: Clock | None = None,
    rng: random.Random | None = None,
    progress: Progress | None = None,
) -> Iterator[Context]:
    """Open the state folder's resources for the length of a block.

    Args:
        settings: where things are.
        clock: the time; the settings' own by default.
        rng: randomness; the system's by default.
        progress: where long work tells how far it is.

    Raises:
        LedgerError: the ledger cannot be opened; the message says why and what helps.
    """
    generator = rng or random.Random()  # noqa: S311 - jitter and sampling, never secrets
    folder = make_private(settings.state_folder)
    time = clock or settings.clock
    ledger = open_ledger(settings.ledger_place, profile=settings.profile, clock=time, rng=rng)
    try:
        yield Context(
            settings=settings,
            ledger=ledger,
            artifacts=ArtifactStore(
                make_private(folder / "artifacts"),
                redactions=partial(present_digests, ledger),
                pruned=partial(pruned_at, ledger),
            ),
            clock=time,
            rng=generator,
            progress=progress or SilentProgress(),
            worker=f"{settings.owner}@{socket.gethostname()}:{os.getpid()}",
        )
    finally:
        ledger.close()
