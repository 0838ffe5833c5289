"""Content-addressed files: written once under their SHA-256, never changed.

Belongs here: storing bytes durably and opening them again. Does not belong here: what the
bytes mean, and showing source text or page images to a person (`access.py` records who looked).
"""

from __future__ import annotations

import errno
import hashlib
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal

Kind = Literal["source", "text", "thumbnail", "manifest", "request", "result", "frame", "report"]
KINDS: tuple[Kind, ...] = (
    "source",
    "text",
    "thumbnail",
    "manifest",
    "request",
    "result",
    "frame",
    "report",
)
BLOCK = 1 << 20


class ArtifactMissing(Exception):
    """An artifact that the ledger names is not in the store."""

    def __init__(self, kind: Kind, digest: str) -> None:
        super().__init__(
            f"the {kind} artifact {digest[:12]} is not in the store. Restore it from a backup of "
            "the state folder; `tallybook doctor` lists what is missing."
        )


class ArtifactDamaged(Exception):
    """An artifact's bytes do not have the digest that names it."""

    def __init__(self, kind: Kind, digest: str, found: str) -> None:
        super().__init__(
            f"the {kind} artifact {digest[:12]} has bytes with digest {found[:12]}: it was changed "
            "after it was stored. Restore it from a backup of the state folder."
        )


class ArtifactStoreFull(Exception):
    """The disk has no room for an artifact; nothing of it was kept."""

    def __init__(self, place: Path) -> None:
        super().__init__(
            f"no space is left in {place.name} for an artifact. What was committed is intact: free "
            "some space and run the same command again."
        )


@dataclass(frozen=True)
class Stored:
    """An artifact that is durable now.

    Attributes:
        digest: its SHA-256, which is its name.
        size: bytes.
        path: where the bytes are.
    """

    digest: str
    size: int
    path: Path


class ArtifactWriter:
    """A stream into an artifact; `write` keeps the digest."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._digest = hashlib.sha256()
        self.size = 0

    def write(self, data: bytes | memoryview) -> None:
        """Append bytes."""
        self._stream.write(data)
        self._digest.update(data)
        self.size += len(data)

    def hexdigest(self) -> str:
        """The digest of what was written so far."""
        return self._digest.hexdigest()


class ArtifactStore:
    """Artifacts in a local folder: `<root>/<kind>/<first two digits>/<digest>`."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, kind: Kind, digest: str) -> Path:
        """Where an artifact is, or would be."""
        return self.root / kind / digest[:2] / digest

    def has(self, kind: Kind, digest: str) -> bool:
        """Is the artifact there?"""
        return self.path(kind, digest).is_file()

    def require(self, kind: Kind, digest: str) -> Path:
        """The artifact's path.

        Raises:
            ArtifactMissing: it is not there.
        """
        path = self.path(kind, digest)
        if not path.is_file():
            raise ArtifactMissing(kind, digest)
        return path

    def put(self, kind: Kind, data: bytes) -> Stored:
        """Store bytes; storing the same bytes again does nothing."""
        return self.put_stream(kind, (data,))

    def put_stream(self, kind: Kind, blocks: Iterable[bytes]) -> Stored:
        """Store a stream of blocks without holding it in memory."""

        def fill(writer: ArtifactWriter) -> None:
            for block in blocks:
                writer.write(block)

        return self.write(kind, fill)

    def write(self, kind: Kind, fill: Callable[[ArtifactWriter], None]) -> Stored:
        """Store what `fill` writes: a temporary file, synchronised, then renamed into place.

        Args:
            kind: which folder.
            fill: writes the bytes; an exception of its own leaves nothing behind.

        Raises:
            ArtifactStoreFull: the disk is full.
        """
        with self.workfile() as temporary:
            with temporary.open("wb") as stream:
                writer = ArtifactWriter(stream)
                fill(writer)
                stream.flush()
                os.fsync(stream.fileno())
            return self._settle(kind, temporary, writer.hexdigest(), writer.size)

    def adopt(self, kind: Kind, file: Path) -> Stored:
        """Move a finished file of the store's own file system into the store."""
        digest = hashlib.sha256()
        with file.open("rb") as stream:
            while block := stream.read(BLOCK):
                digest.update(block)
            os.fsync(stream.fileno())
        return self._settle(kind, file, digest.hexdigest(), file.stat().st_size)

    @contextmanager
    def workfile(self) -> Iterator[Path]:
        """A temporary file on the store's file system; it is gone after the block unless adopted.

        Raises:
            ArtifactStoreFull: the disk is full.
        """
        try:
            incoming = self.root / "incoming"
            _make_private(incoming)
            descriptor, name = tempfile.mkstemp(dir=incoming)
            os.close(descriptor)
            try:
                yield Path(name)
            finally:
                Path(name).unlink(missing_ok=True)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise ArtifactStoreFull(self.root) from error
            raise

    def open(self, kind: Kind, digest: str) -> BinaryIO:
        """The artifact's bytes as a stream; for the pipeline's own use, not for people.

        Raises:
            ArtifactMissing: it is not there.
        """
        return self.require(kind, digest).open("rb")

    def verify(self, kind: Kind, digest: str) -> None:
        """Read the artifact and compare its digest with its name.

        Raises:
            ArtifactMissing: it is not there.
            ArtifactDamaged: the bytes are others.
        """
        found = hashlib.sha256()
        with self.open(kind, digest) as stream:
            while block := stream.read(BLOCK):
                found.update(block)
        if found.hexdigest() != digest:
            raise ArtifactDamaged(kind, digest, found.hexdigest())

    def _settle(self, kind: Kind, temporary: Path, digest: str, size: int) -> Stored:
        path = self.path(kind, digest)
        # A file of another size was cut after it was stored; the bytes at hand mend it.
        if not path.exists() or path.stat().st_size != size:
            _make_private(path.parent)
            temporary.chmod(0o600)
            temporary.rename(path)
            _synchronise(path.parent)
        return Stored(digest, size, path)


def _make_private(folder: Path) -> None:
    """Make a folder and those above it for the owner alone, each durable in the one above."""
    if folder.is_dir():
        return
    _make_private(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)
    _synchronise(folder.parent)


def _synchronise(folder: Path) -> None:
    """Wait until the names in a folder are on the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
