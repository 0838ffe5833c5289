"""Content-addressed files: written once under their SHA-256, changed only by an erasure.

Belongs here: storing bytes durably and opening them again, and taking something out of them.
Does not belong here: what the bytes mean, what is erased and why, and showing source text or page
images to a person (`access.py` records who looked).

A file from which something was erased keeps its name, which ledger, manifests and provider jobs
refer to, and the rest of its content. A sidecar beside it says which digest it has now and by
which erasures; the ledger says the same (`redactions`), and only both together make it valid.
Storing the original bytes once more changes nothing: what was erased does not come back that way.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal

import msgspec

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
GONE = ""
"""The present digest of an artifact that was erased whole."""
_SIDECAR = ".redacted"


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


class ArtifactPruned(ArtifactMissing):
    """An artifact was removed by policy, so it is no loss, and it is not to be had."""

    def __init__(self, kind: Kind, digest: str, at: str) -> None:
        Exception.__init__(
            self,
            f"the {kind} artifact {digest[:12]} was pruned by policy at {at}, since every record "
            "in it was settled without being published. What needs it cannot be done any more; "
            "restore it from a backup of the state folder if it must be.",
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


class Sidecar(msgspec.Struct, frozen=True):
    """What stands beside an artifact from which something was erased.

    Attributes:
        present: the digest that the file has now.
        erasures: the numbers of the erasures that changed it.
        before: the digest that it had before the last of them, as long as it may still have it: a
            process may end between writing this and the file.
    """

    present: str
    erasures: tuple[int, ...]
    before: str | None = None


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
    """Artifacts in a local folder: `<root>/<kind>/<first two digits>/<digest>`.

    Args:
        root: the folder.
        redactions: the digests that the ledger says an artifact has after its erasures. Without
            it a sidecar is taken at its word.
        pruned: when the ledger says that an artifact was pruned; None where it does not say so.
    """

    def __init__(
        self,
        root: Path,
        *,
        redactions: Callable[[Kind, str], frozenset[str]] | None = None,
        pruned: Callable[[Kind, str], str | None] | None = None,
    ) -> None:
        self.root = root
        self._redactions = redactions
        self._pruned = pruned

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
            ArtifactPruned: it is not there, since it was pruned.
        """
        path = self.path(kind, digest)
        if not path.is_file():
            at = self.pruned_at(kind, digest)
            raise ArtifactMissing(kind, digest) if at is None else ArtifactPruned(kind, digest, at)
        return path

    def pruned_at(self, kind: Kind, digest: str) -> str | None:
        """When the ledger says that the artifact was pruned; None where it does not say so."""
        return None if self._pruned is None else self._pruned(kind, digest)

    def put(self, kind: Kind, data: bytes) -> Stored:
        """Store bytes; storing the same bytes again does nothing, after an erasure too."""
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
        return self._settle(kind, file, _digest_of(file, synchronise=True), file.stat().st_size)

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

        After an erasure it must have the digest that sidecar and ledger name, and no other.

        Raises:
            ArtifactMissing: it is not there.
            ArtifactDamaged: the bytes are others.
        """
        self._verified(kind, digest)

    def sidecar(self, kind: Kind, digest: str) -> Sidecar | None:
        """What stands beside an artifact; None where nothing was erased from it.

        Raises:
            ArtifactDamaged: it cannot be read.
        """
        try:
            data = self._sidecar_path(kind, digest).read_bytes()
        except FileNotFoundError:
            return None
        try:
            return msgspec.json.decode(data, type=Sidecar)
        except msgspec.DecodeError as error:
            found = hashlib.sha256(data).hexdigest()
            raise ArtifactDamaged(kind, digest, found) from error

    def redact(
        self,
        kind: Kind,
        digest: str,
        edit: Callable[[Path, Path], None],
        erasure_no: int,
        announce: Callable[[str], None],
    ) -> str:
        """Replace an artifact by an edited copy under the same name; doing it again goes on.

        Sidecar, ledger and file are written in this order, each durable before the next. Whoever
        verifies in between finds the file as it was or as it is to be, and both are valid.

        Args:
            kind: which folder.
            digest: the artifact's name.
            edit: writes the edited copy of the first path to the second.
            erasure_no: the erasure that it is part of.
            announce: writes the new digest into the ledger, committed when it returns.

        Returns:
            The digest that the file has now.

        Raises:
            ArtifactMissing: it is not there.
            ArtifactDamaged: it is not what was stored; nothing was changed.
            ArtifactStoreFull: the disk is full; nothing was changed.
        """
        now = self._verified(kind, digest)
        known = self.sidecar(kind, digest)
        earlier = () if known is None else known.erasures
        path = self.path(kind, digest)
        erasures = (*(number for number in earlier if number != erasure_no), erasure_no)
        with self.workfile() as temporary:
            edit(path, temporary)
            temporary.chmod(0o600)
            present = _digest_of(temporary, synchronise=True)
            self._write_sidecar(kind, digest, Sidecar(present, erasures, before=now))
            announce(present)
            temporary.replace(path)
            _synchronise(path.parent)
        self._write_sidecar(kind, digest, Sidecar(present, erasures))
        return present

    def remove(self, kind: Kind, digest: str) -> int:
        """Delete an artifact; the bytes that it had, 0 where it is not there.

        The ledger must say before that it is gone, or it counts as lost.
        """
        path = self.path(kind, digest)
        self._sidecar_path(kind, digest).unlink(missing_ok=True)
        try:
            size = path.stat().st_size
            path.unlink()
        except FileNotFoundError:
            return 0
        _synchronise(path.parent)
        return size

    def names(self, kind: Kind, prefix: str = "") -> Iterator[str]:
        """The artifacts that are there whose names begin with two digits, or all of a kind."""
        folder = self.root / kind
        parts = [folder / prefix] if prefix else sorted(folder.iterdir()) if folder.is_dir() else []
        for part in parts:
            if not part.is_dir():
                continue
            with os.scandir(part) as entries:
                yield from (
                    entry.name for entry in entries if _NAME.fullmatch(entry.name) is not None
                )

    def redacted(self) -> Iterator[tuple[Kind, str]]:
        """Every artifact with a sidecar."""
        for kind in KINDS:
            for path in sorted((self.root / kind).glob(f"*/*{_SIDECAR}")):
                yield kind, path.name.removesuffix(_SIDECAR)

    def present_digest(self, kind: Kind, digest: str) -> str:
        """The digest that an artifact's bytes have now.

        Raises:
            ArtifactMissing: it is not there.
        """
        return _digest_of(self.require(kind, digest))

    def _verified(self, kind: Kind, digest: str) -> str:
        found = self.present_digest(kind, digest)
        if found not in self._valid(kind, digest):
            raise ArtifactDamaged(kind, digest, found)
        return found

    def _valid(self, kind: Kind, digest: str) -> set[str]:
        """The digests that the artifact may have."""
        beside = self.sidecar(kind, digest)
        if beside is None:
            return {digest}
        named = {beside.present} if beside.before is None else {beside.present, beside.before}
        if self._redactions is None:
            return named
        return named & {digest, *self._redactions(kind, digest)}

    def _sidecar_path(self, kind: Kind, digest: str) -> Path:
        return self.path(kind, digest).with_name(digest + _SIDECAR)

    def _write_sidecar(self, kind: Kind, digest: str, sidecar: Sidecar) -> None:
        place = self._sidecar_path(kind, digest)
        with self.workfile() as temporary:
            with temporary.open("wb") as stream:
                stream.write(msgspec.json.encode(sidecar))
                stream.flush()
                os.fsync(stream.fileno())
            temporary.replace(place)
        _synchronise(place.parent)

    def _settle(self, kind: Kind, temporary: Path, digest: str, size: int) -> Stored:
        path = self.path(kind, digest)
        # What was erased must not come back with the same bytes: the redacted file stays.
        if not self._sidecar_path(kind, digest).exists() and not _stands(path, size):
            _make_private(path.parent)
            temporary.chmod(0o600)
            temporary.rename(path)
            _synchronise(path.parent)
        return Stored(digest, size, path)


_NAME = re.compile("[0-9a-f]{64}")


def _stands(path: Path, size: int) -> bool:
    """Is the file there and whole? It counts as written now: a pruning leaves young files alone."""
    try:
        # A file of another size was cut after it was stored; the bytes at hand mend it.
        if path.stat().st_size != size:
            return False
        os.utime(path)
    except FileNotFoundError:
        return False
    return True


def _digest_of(file: Path, *, synchronise: bool = False) -> str:
    """The digest of a file's bytes; `synchronise` waits until they are on the disk."""
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        while block := stream.read(BLOCK):
            digest.update(block)
        if synchronise:
            os.fsync(stream.fileno())
    return digest.hexdigest()


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
