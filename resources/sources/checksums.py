"""The checksum of every document of a source that opens files one by one.

Here: streaming SHA-256. Not here: how a source opens a file, and which documents need a checksum
again (`changes`).
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
