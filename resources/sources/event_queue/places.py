"""Where the documents that events name are: what a queue asks of a folder or a bucket.

Belongs here: the port, and a folder that looks for single files. Does not belong here: buckets
(`bucket.py`, which fills the port itself) and events.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Protocol

import polars as pl

from resources.sources.directory import DirectorySource, FoldedNames, judge_file
from resources.sources.document_id import DocumentIdError
from resources.sources.folder import FolderListing, within_64_bits
from resources.sources.port import EntryRefused, SourceUnreadable
from resources.sources.seen import Seen
from resources.sources.spelling import Spelt, spelt

_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NOT_THERE = (errno.ENOENT, errno.ENOTDIR)
_OUR_OWN_TROUBLE = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})


class DocumentPlace(Protocol):
    """A place of documents in which single ones can be looked for."""

    @property
    def location(self) -> str:
        """The place, for people to read; free of credentials."""
        ...

    def check(self) -> None:
        """Make sure that the place can be looked at, and is not empty where it must not be.

        Raises:
            SourceMissing, SourceUnreadable, SourceEmpty: a document that is not found there would
                only seem to be gone.
        """
        ...

    def look_up(self, document_ids: Iterable[str]) -> Iterator[Seen]:
        """What single documents are like now, in their order; nothing is read."""
        ...

    def read(self, wanted: pl.DataFrame) -> Iterator[pl.DataFrame]:
        """As `ListedSource.read`."""
        ...

    def open(self, document_id: str) -> BinaryIO:
        """As `ListedSource.open`."""
        ...


class FolderPlace(FolderListing):
    """A folder of documents, each looked for by its own path.

    Args:
        name: the source's name in document ids.
        root: the folder; may itself be a link.
        max_file_bytes: larger files are excluded as `too_large` without being read.
        allow_empty: accept a root without a single name.
    """

    def __init__(self, name: str, root: Path, *, max_file_bytes: int, allow_empty: bool) -> None:
        super().__init__(name, root, max_file_bytes=max_file_bytes, allow_empty=allow_empty)
        self._place = root
        self._max_file_bytes = max_file_bytes
        self._walked = DirectorySource(
            name, root, max_file_bytes=max_file_bytes, allow_empty=allow_empty
        )

    def check(self) -> None:
        """Make sure that the root can be listed, and is not empty where it must not be.

        Raises:
            SourceMissing, SourceUnreadable, SourceEmpty: it is not so.
        """
        next(self._walked.walk(), None)

    def look_up(self, document_ids: Iterable[str]) -> Iterator[Seen]:
        """What single files are like now.

        A path is looked for as the id gives it (NFC), then in NFD, then among the names of its
        folders, which are listed once.

        Raises:
            SourceUnreadable: the root is no longer to be had.
        """
        try:
            root = os.open(self._place, _FOLDER_FLAGS)
        except OSError as error:
            raise self._unreadable(error) from error
        try:
            known: FoldedNames = {}
            for identity in document_ids:
                yield self._look_for(root, identity, known)
        finally:
            os.close(root)

    def _look_for(self, root: int, identity: str, known: FoldedNames) -> Seen:
        try:
            name = spelt(identity)
        except DocumentIdError:
            return Seen(identity, "failed", problem="no path can be told from its id")
        seen = Seen(identity, "gone")
        try:
            for path in self._where(identity, name, known):
                seen = self._look_at(root, identity, path)
                if seen.outcome != "gone":
                    break
        except EntryRefused as refused:  # unknown is not gone
            return Seen(identity, "failed", problem=refused.detail)
        return seen

    def _where(self, identity: str, name: Spelt, known: FoldedNames) -> Iterator[bytes]:
        yield from name.likely()
        if name.may_differ():
            yield from self._walked.spelt_as(identity, name.path, known)

    def _look_at(self, root: int, identity: str, path: bytes) -> Seen:
        folder, _, name = path.rpartition(b"/")
        try:
            with _opened(root, folder) as descriptor:
                status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
                foreign = os.fstat(descriptor).st_dev != os.fstat(root).st_dev
        except OSError as error:
            if error.errno in _NOT_THERE or error.errno == errno.ELOOP:
                return Seen(identity, "gone")  # not below a link: no listing goes there either
            if error.errno in _OUR_OWN_TROUBLE:
                raise self._unreadable(error) from error
            problem = f"could not be examined ({errno.errorcode.get(error.errno or 0, 'unknown')})"
            return Seen(identity, "failed", problem=problem)
        if foreign:  # as in a listing, unknown is not gone
            return Seen(identity, "failed", problem="it is on another file system")
        if stat.S_ISDIR(status.st_mode):
            return Seen(identity, "gone")
        verdict = ("symbolic_link", "") if stat.S_ISLNK(status.st_mode) else None
        verdict = verdict or judge_file(status, self._max_file_bytes)
        reason, detail = verdict or (None, "")
        # In the order of LISTED_SCHEMA.
        row = (
            identity, path, status.st_size, within_64_bits(status.st_mtime_ns),
            str(status.st_dev), str(status.st_ino), None, None, reason, detail,
        )  # fmt: skip
        return Seen(identity, "found", row)

    def _unreadable(self, error: OSError) -> SourceUnreadable:
        why = errno.errorcode.get(error.errno or 0, type(error).__name__)
        return SourceUnreadable(
            f"source {self.name}: {self.location!a} cannot be opened ({why}); expected the folder "
            "that holds the documents: correct its permissions or its disk. Nothing is known about "
            "its documents until then"
        )


@contextmanager
def _opened(root: int, folder: bytes) -> Iterator[int]:
    """A folder below the root, each step taken without following links."""
    descriptor = os.dup(root)
    try:
        for step in folder.split(b"/") if folder else ():
            below = os.open(step, _FOLDER_FLAGS | os.O_NOFOLLOW, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = below
        yield descriptor
    finally:
        os.close(descriptor)
