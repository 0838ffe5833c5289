"""Events as files that are dropped into a folder.

Belongs here: taking the files and removing them. Does not belong here: what they say
(`events.py`).

A file is one message. Whoever drops one writes it under another name (`.tmp` at its end, or a dot
at its start) and renames it, each file under a name of its own; a file that does not parse is left
alone for a few seconds, for those who do not.
"""

from __future__ import annotations

import errno
import hashlib
import heapq
import json
import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from resources.sources.event_queue.transport import Received
from resources.sources.port import SourceMissing, SourceUnreadable

MAX_EVENT_BYTES = 256 * 1024
PARTIAL_SECONDS = 5.0
TOO_LARGE = "the message is too large"
NOT_A_FILE = "the message is no regular file"

_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class FolderDrop:
    """A folder of event files.

    Args:
        source: the source's name, for messages.
        folder: the folder.
        now: the time in seconds since 1970, by the file system's clock.
    """

    def __init__(self, source: str, folder: Path, *, now: Callable[[], float] = time.time) -> None:
        self._source = source
        self._folder = folder
        self._now = now

    @property
    def location(self) -> str:
        """The folder."""
        return str(self._folder)

    def receive(self, limit: int, seconds: float) -> list[Received]:
        """The files that are there, by name; nothing is waited for.

        Raises:
            SourceMissing: there is no such folder.
            SourceUnreadable: it, or a file in it, cannot be read.
        """
        del seconds
        with self._opened() as folder:
            names = heapq.nsmallest(limit, self._names(folder))
            received = [self._taken(folder, name) for name in names]
        return [message for message in received if message is not None]

    def acknowledge(self, receipts: Sequence[str]) -> None:
        """Remove files, unless another one has taken the name.

        Raises:
            SourceMissing, SourceUnreadable: the folder cannot be opened, or not be changed.
        """
        with self._opened() as folder:
            for receipt in receipts:
                name = os.fsencode(receipt.split(":", 2)[2])
                try:
                    if (
                        _receipt(name, os.stat(name, dir_fd=folder, follow_symlinks=False))
                        == receipt
                    ):
                        os.unlink(name, dir_fd=folder)
                except FileNotFoundError:
                    continue
                except OSError as error:
                    raise self._unreadable(error, "changed") from error

    @contextmanager
    def _opened(self) -> Iterator[int]:
        try:
            descriptor = os.open(self._folder, _FOLDER_FLAGS)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise SourceMissing(
                f"source {self._source}: there is no folder of events {self.location!a}; expected "
                "the folder that event files are dropped into: create it, or correct its path in "
                "the sources file"
            ) from error
        except OSError as error:
            raise self._unreadable(error, "listed") from error
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _names(self, folder: int) -> Iterator[bytes]:
        try:
            with os.scandir(folder) as items:
                for item in items:
                    name = os.fsencode(item.name)
                    if name.startswith(b".") or not name.endswith(b".json"):
                        continue
                    if not item.is_dir(follow_symlinks=False):
                        yield name
        except OSError as error:
            raise self._unreadable(error, "listed") from error

    def _taken(self, folder: int, name: bytes) -> Received | None:
        """A file as a message; None if it vanished or may still be in the writing."""
        try:
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if not stat.S_ISREG(status.st_mode):
                return _message(name, status, b"", NOT_A_FILE)
            status, body = _content(folder, name)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno == errno.ELOOP:
                return None  # exchanged for a link in this moment; it is told next time
            raise self._unreadable(error, "read") from error
        # A time far ahead is of another clock, and tells nothing.
        young = abs(self._now() - status.st_mtime) < PARTIAL_SECONDS
        if len(body) > MAX_EVENT_BYTES:
            return _message(name, status, b"", TOO_LARGE)
        if young and not _parses(body):
            return None
        return _message(name, status, body, None)

    def _unreadable(self, error: OSError, what: str) -> SourceUnreadable:
        why = errno.errorcode.get(error.errno or 0, type(error).__name__)
        return SourceUnreadable(
            f"source {self._source}: the folder of events {self.location!a}, or a file in it, "
            f"cannot be {what} ({why}); expected a folder whose files this user may read and "
            "remove: correct its permissions or its disk. No event was lost"
        )


def _content(folder: int, name: bytes) -> tuple[os.stat_result, bytes]:
    descriptor = os.open(name, _FILE_FLAGS, dir_fd=folder)
    with os.fdopen(descriptor, "rb") as stream:
        return os.fstat(descriptor), stream.read(MAX_EVENT_BYTES + 1)


def _message(name: bytes, status: os.stat_result, body: bytes, problem: str | None) -> Received:
    receipt = _receipt(name, status)
    # The same file again is the same message; a later one of the same name and words is not.
    digest = hashlib.sha256(os.fsencode(receipt) + b"\0" + body).hexdigest()
    shown = name[:60].decode("ascii", "replace").replace("\ufffd", "?")
    shown = "".join(letter if letter.isprintable() else "?" for letter in shown)
    return Received(f"file {shown} {digest[:16]}", body, receipt, problem)


def _receipt(name: bytes, status: os.stat_result) -> str:
    return f"{status.st_ino}:{status.st_mtime_ns}:{os.fsdecode(name)}"


def _parses(body: bytes) -> bool:
    try:
        json.loads(body.decode())
    except (ValueError, RecursionError):
        return False
    return True
