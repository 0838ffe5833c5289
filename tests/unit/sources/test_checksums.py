"""Checksums over fake sources: blocks, and changes while reading."""

from __future__ import annotations

import errno
import hashlib
import io
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import pytest
from typing_extensions import Buffer

from resources.sources.checksums import (
    BLOCK_BYTES,
    ChecksumOutcome,
    checksums,
)
from resources.sources.port import EntryRefused, SourceEntry, SourceUnreadable, Walk

SECOND = 1_000_000_000
ENTRY = SourceEntry("docs/a", b"a", "a", size=3, mtime_ns=100 * SECOND, inode=(1, 2))


class OneFile:
    """A source of one document, whose stream is made anew at each opening."""

    name = "docs"
    kind = "fake"
    location = "nowhere"

    def __init__(self, opener: Callable[[int], BinaryIO]) -> None:
        self.opened = 0
        self._opener = opener

    def walk(self) -> Walk:
        raise AssertionError("checksums never walk")

    def open(self, entry: SourceEntry) -> BinaryIO:
        self.opened += 1
        return self._opener(self.opened)


class TouchedAtItsEnd(io.FileIO):
    """A file that `touch` changes when the reader meets its end."""

    def __init__(self, path: Path, touch: Callable[[], object]) -> None:
        super().__init__(path, "rb")
        self._touch = touch

    def readinto(self, buffer: Buffer, /) -> int:
        length = super().readinto(buffer)
        if not length:
            self._touch()
        return length


@pytest.mark.parametrize(
    "length",
    [1, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 2 * BLOCK_BYTES + 7],
    ids="{}_bytes".format,
)
def test_checksum_of_any_length(tmp_path: Path, length: int) -> None:
    content = bytes(range(251)) * (length // 251 + 1)
    path = tmp_path / "a"
    path.write_bytes(content[:length])
    told: list[int] = []
    source = OneFile(lambda _: path.open("rb"))

    [(entry, outcome)] = checksums(source, [ENTRY], on_bytes=told.append)

    assert outcome == ChecksumOutcome(hashlib.sha256(content[:length]).hexdigest())
    assert sum(told) == length
    assert (entry.size, entry.mtime_ns) == (length, path.stat().st_mtime_ns)
    assert entry.inode == (path.stat().st_dev, path.stat().st_ino)


def test_streams_without_a_file_are_taken_at_their_word() -> None:
    source = OneFile(lambda _: io.BytesIO(b"abc"))
    [(entry, outcome)] = checksums(source, [ENTRY])
    assert entry == ENTRY
    assert outcome.checksum == hashlib.sha256(b"abc").hexdigest()


@pytest.mark.parametrize("content", [b"ab", b"abcd"], ids=["shorter", "longer"])
def test_streams_of_another_length_have_no_checksum(content: bytes) -> None:
    source = OneFile(lambda _: io.BytesIO(content))
    [(_, outcome)] = checksums(source, [ENTRY])
    assert outcome == ChecksumOutcome(None, "unreadable", "changed while being read")
    assert source.opened == 2


def test_excluded_entries_pass_unread() -> None:
    source = OneFile(lambda _: io.BytesIO(b"abc"))
    excluded = replace(ENTRY, excluded="not_a_document", detail="pipe")
    assert list(checksums(source, [excluded])) == [
        (excluded, ChecksumOutcome(None, "not_a_document", "pipe"))
    ]
    assert source.opened == 0


def changing(path: Path, times: int) -> OneFile:
    """A source whose file is rewritten at the end of its first `times` readings."""

    def opener(opening: int) -> BinaryIO:
        def touch() -> None:
            if opening <= times:
                stamp = path.stat().st_mtime_ns + SECOND
                path.write_bytes(f"{opening}bc".encode())
                os.utime(path, ns=(stamp, stamp))

        return io.BufferedReader(TouchedAtItsEnd(path, touch))

    return OneFile(opener)


def test_a_change_while_reading_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"abc")
    source = changing(path, times=1)
    [(entry, outcome)] = checksums(source, [ENTRY])
    assert outcome == ChecksumOutcome(hashlib.sha256(b"1bc").hexdigest())
    assert entry.mtime_ns == path.stat().st_mtime_ns
    assert source.opened == 2


def test_a_document_that_keeps_changing_is_unreadable(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"abc")
    source = changing(path, times=9)
    [(_, outcome)] = checksums(source, [ENTRY])
    assert outcome == ChecksumOutcome(None, "unreadable", "changed while being read")
    assert source.opened == 2


def test_a_file_that_grows_for_ever_is_left(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"abc")

    class Growing(io.FileIO):
        def readinto(self, buffer: Buffer, /) -> int:
            with path.open("ab") as more:
                more.write(b"more" * BLOCK_BYTES)
            return super().readinto(buffer)

    told: list[int] = []
    source = OneFile(lambda _: io.BufferedReader(Growing(path)))
    [(_, outcome)] = checksums(source, [ENTRY], on_bytes=told.append)
    assert outcome.detail == "changed while being read"
    # One block behind 3 bytes, then five behind the 4 MiB and 3 bytes of the second opening.
    assert told == [BLOCK_BYTES] * 6


class Unreadable(io.RawIOBase):
    """A stream on a broken disk."""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer, /) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_read_errors_are_outcomes_not_ends() -> None:
    def opener(opening: int) -> BinaryIO:
        if opening == 1:
            return io.BufferedReader(Unreadable())
        if opening == 2:
            raise EntryRefused("docs/a", "unreadable", "permission denied")
        return io.BytesIO(b"abc")

    outcomes = [outcome for _, outcome in checksums(OneFile(opener), [ENTRY] * 3)]
    assert outcomes == [
        ChecksumOutcome(None, "unreadable", "could not be read (Input/output error)"),
        ChecksumOutcome(None, "unreadable", "permission denied"),
        ChecksumOutcome(hashlib.sha256(b"abc").hexdigest()),
    ]


def test_loss_of_the_whole_source_is_an_error() -> None:
    def opener(_: int) -> BinaryIO:
        raise SourceUnreadable("the disk is gone")

    with pytest.raises(SourceUnreadable):
        list(checksums(OneFile(opener), [ENTRY]))
