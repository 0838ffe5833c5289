"""The checksum of every document, and which documents need one again.

Here: streaming SHA-256 over any source, and the decision whether a known checksum still holds. Not
here: how a source opens a file, and where known checksums are kept.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import BinaryIO

from resources.sources.port import (
    EntryRefused,
    Source,
    SourceChangedWhileReading,
    SourceEntry,
)

BLOCK_BYTES = 1024 * 1024
#: A file last changed within this time before its scan may have changed again in the same tick of
#: the file system's clock. Two seconds is the coarsest tick in use (FAT).
RACY_WINDOW_NS = 2_000_000_000

_ATTEMPTS = 2


@dataclass(frozen=True, slots=True)
class ChecksumOutcome:
    """What reading a document gave.

    Attributes:
        checksum: SHA-256 in lower-case hexadecimal, or None if the document is excluded.
        excluded: a key of `EXCLUSION_REASONS`, or None.
        detail: more about the exclusion in a short, closed wording.
    """

    checksum: str | None
    excluded: str | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class KnownFile:
    """What an earlier scan recorded of a file.

    Attributes:
        size, mtime_ns, inode: as in `SourceEntry`.
        checksum: SHA-256 in hexadecimal.
        scanned_at_ns: when the scan began, nanoseconds since 1970, by our clock.
    """

    size: int
    mtime_ns: int
    inode: tuple[int, int]
    checksum: str
    scanned_at_ns: int


def needs_checksum(entry: SourceEntry, known: KnownFile | None) -> bool:
    """Whether a document must be read again, told without touching it.

    The known checksum is reused if size, modification time and inode are all unchanged, and the
    modification time is at least `RACY_WINDOW_NS` before the scan that recorded it. Not seen is a
    change that keeps size and inode and then sets the old modification time back; a file system
    whose clock is behind ours by more than the window hides racy changes too. Pass `known=None` to
    read everything again.
    """
    if entry.excluded is not None:
        return False
    if known is None:
        return True
    unchanged = (entry.size, entry.mtime_ns, entry.inode) == (
        known.size,
        known.mtime_ns,
        known.inode,
    )
    return not unchanged or entry.mtime_ns > known.scanned_at_ns - RACY_WINDOW_NS


def checksums(
    source: Source,
    entries: Iterable[SourceEntry],
    *,
    on_bytes: Callable[[int], None] | None = None,
) -> Iterator[tuple[SourceEntry, ChecksumOutcome]]:
    """Read documents one after the other, in blocks of `BLOCK_BYTES`.

    Each entry comes back with the size, time and inode of the bytes that were really hashed, which
    may be newer than those of the walk. An excluded entry comes back as it is, unread. A document
    that changes while it is read is read once more, then excluded as `unreadable`.

    Args:
        source: where the entries come from.
        entries: documents of that source.
        on_bytes: told the number of bytes after each block, for showing progress.

    Raises:
        SourceMissing, SourceUnreadable: the source as a whole is not usable any more.
    """
    for entry in entries:
        if entry.excluded is not None:
            yield entry, ChecksumOutcome(None, entry.excluded, entry.detail)
        else:
            yield _checksum(source, entry, on_bytes)


def _checksum(
    source: Source, entry: SourceEntry, on_bytes: Callable[[int], None] | None
) -> tuple[SourceEntry, ChecksumOutcome]:
    for _ in range(_ATTEMPTS):
        try:
            return _read_once(source, entry, on_bytes)
        except SourceChangedWhileReading:
            continue
        except EntryRefused as refusal:
            return entry, ChecksumOutcome(None, refusal.reason, refusal.detail)
        except OSError as error:
            detail = f"could not be read ({os.strerror(error.errno or 0)})"
            return entry, ChecksumOutcome(None, "unreadable", detail)
    return entry, ChecksumOutcome(None, "unreadable", "changed while being read")


def _read_once(
    source: Source, entry: SourceEntry, on_bytes: Callable[[int], None] | None
) -> tuple[SourceEntry, ChecksumOutcome]:
    digest = hashlib.sha256()
    with source.open(entry) as stream:
        before = _with_status(entry, stream)
        length = 0
        # One byte more than expected is enough: a file that grows for ever must not be followed.
        while length <= before.size:
            block = stream.read(BLOCK_BYTES)
            if not block:
                break
            digest.update(block)
            length += len(block)
            if on_bytes is not None:
                on_bytes(len(block))
        after = _with_status(before, stream)
    if after != before or length != before.size:
        raise SourceChangedWhileReading(
            f"document {entry.document_id} changed while it was read ({before.size} bytes "
            f"expected, {length} read); scan the source again when nothing writes to it"
        )
    return after, ChecksumOutcome(digest.hexdigest())


def _with_status(entry: SourceEntry, stream: BinaryIO) -> SourceEntry:
    """The entry with size, time and inode of the open file; unchanged for streams without one."""
    try:
        status = os.fstat(stream.fileno())
    except io.UnsupportedOperation:
        return entry
    return replace(
        entry,
        size=status.st_size,
        mtime_ns=status.st_mtime_ns,
        inode=(status.st_dev, status.st_ino),
    )
