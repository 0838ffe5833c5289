"""Fetching result files: streamed, resumed or restarted, and whole or not at all.

Belongs here: one file from a provider into an artifact. Does not belong here: what its lines
mean (`collect`), and how a provider is asked for bytes (`resources/providers`).

A body that ends before its announced length is a failed download. It is never taken for a file
with fewer rows.
"""

from __future__ import annotations

import hashlib
import os
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from resources.artifacts import ArtifactStore, Stored
from resources.providers.port import BatchClient, RemoteFile, Unavailable, Unreachable

TRIES = 6
"""Connections for one file before it is left for later; progress gives a new set of tries."""
LONGEST_PAUSE = 20.0
"""Seconds between two connections, at most: a run does not wait for a provider."""


class DownloadFailed(Exception):
    """A result file could not be fetched whole; what was fetched is thrown away."""

    def __init__(self, job: str, kind: str, got: int, wanted: int | None, problem: str) -> None:
        known = "of unknown length" if wanted is None else f"of {wanted} bytes"
        super().__init__(
            f"the {kind} file {known} of {job} broke off after {got} bytes in {TRIES} tries "
            f"({problem}). Nothing of it is used; it is fetched again at the next run."
        )


@dataclass(frozen=True)
class Fetched:
    """A result file that is safe now.

    Attributes:
        kind: output or error.
        stored: the artifact.
        lines: lines that are not blank.
    """

    kind: str
    stored: Stored
    lines: int


class _Sink:
    """The bytes so far: on disk, digested, lines counted."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._restart()

    def _restart(self) -> None:
        self.size = 0
        self.digest = hashlib.sha256()
        self._lines = 0
        self._open = False

    def restart(self) -> None:
        """Throw everything away."""
        self._stream.seek(0)
        self._stream.truncate()
        self._restart()

    def write(self, block: bytes) -> None:
        """Append a block."""
        self._stream.write(block)
        self.digest.update(block)
        self.size += len(block)
        pieces = block.split(b"\n")
        self._open = self._open or bool(pieces[0].strip())
        for piece in pieces[1:]:
            self._lines += self._open
            self._open = bool(piece.strip())

    @property
    def lines(self) -> int:
        """Lines so far that are not blank, the last one with or without its newline."""
        return self._lines + self._open


def fetch_file(
    store: ArtifactStore,
    client: BatchClient,
    job_name: str,
    job_id: str,
    file: RemoteFile,
    *,
    rng: random.Random,
    sleep: Callable[[float], None],
    on_block: Callable[[], None] = lambda: None,
) -> Fetched:
    """Fetch one result file into an artifact.

    Args:
        store: where it goes.
        client: the provider.
        job_name: how messages call the job.
        job_id: the provider's name of the job.
        file: what to fetch.
        rng: for the jitter of pauses.
        sleep: pauses for so many seconds.
        on_block: called after each block, to keep a lease alive.

    Raises:
        DownloadFailed: it broke off too often.
        FileMissing: the provider does not have it.
    """
    with store.workfile() as path:
        with path.open("r+b") as stream:
            sink = _Sink(stream)
            _fill(client, job_name, job_id, file, sink, rng, sleep, on_block)
            stream.flush()
            os.fsync(stream.fileno())
        stored = _adopt(store, path, sink)
    return Fetched(file.kind, stored, sink.lines)


def _fill(
    client: BatchClient,
    job_name: str,
    job_id: str,
    file: RemoteFile,
    sink: _Sink,
    rng: random.Random,
    sleep: Callable[[float], None],
    on_block: Callable[[], None],
) -> None:
    failures, furthest, wanted = 0, 0, file.size
    while True:
        problem = "the connection broke"
        try:
            with client.open_file(job_id, file, sink.size) as download:
                if download.offset != sink.size:
                    sink.restart()
                if download.length is not None:
                    # What the provider lists of a file counts too: a connection may announce less.
                    wanted = max(file.size or 0, sink.size + download.length)
                for block in download.blocks:
                    sink.write(block)
                    on_block()
            if wanted is None or sink.size == wanted:
                return
            problem = "the body was shorter than announced"
            if sink.size > wanted:
                problem = "the body was longer than announced"
                sink.restart()
        except (Unavailable, Unreachable) as error:
            problem = type(error).__name__
            pause = getattr(error, "retry_after", None)
        else:
            pause = None
        # Whoever gets further than ever before is not failing, only slow.
        failures = 1 if sink.size > furthest else failures + 1
        furthest = max(furthest, sink.size)
        if failures >= TRIES:
            raise DownloadFailed(job_name, file.kind, sink.size, wanted, problem)
        sleep(min(LONGEST_PAUSE, pause or rng.random() * 2**failures / 2))


def _adopt(store: ArtifactStore, path: Path, sink: _Sink) -> Stored:
    stored = store.adopt("result", path)
    # Read back from the disk by `adopt`: what is kept must be what was received.
    if stored.digest != sink.digest.hexdigest():
        raise FileChangedOnDisk(stored.digest, sink.digest.hexdigest())
    return stored


class FileChangedOnDisk(Exception):
    """The bytes on the disk are not those that were received."""

    def __init__(self, found: str, expected: str) -> None:
        super().__init__(
            f"a fetched file has digest {found[:12]} on the disk and had {expected[:12]} when it "
            "was received: the disk or memory is damaged. Nothing of it is used."
        )
