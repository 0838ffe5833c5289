"""Keeping the bytes of every source version by checksum.

Belongs here: copying a document's bytes into the artifact store, verified on the way. Does not
belong here: reading what they say. Parsing reads the kept copy, so that text and checksum can
never be of different bytes, and a frozen manifest can always be traced to what it was made of.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from resources.artifacts import BLOCK, ArtifactStore
from resources.sources.listing import ListedSource
from resources.sources.port import EntryRefused


class SourceGone(Exception):
    """The bytes with the scanned checksum are no longer to be had."""


def keep_source(
    store: ArtifactStore, source: ListedSource, document_id: str, checksum: str
) -> Path:
    """The kept copy of a document's bytes, made now if it is not there.

    Raises:
        SourceGone: the document vanished, cannot be read, or holds other bytes than were scanned.
    """
    if store.has("source", checksum):
        return store.path("source", checksum)
    try:
        with source.open(document_id) as stream:
            stored = store.put_stream("source", _blocks(stream))
    except EntryRefused as error:
        raise SourceGone(error.detail) from error
    if stored.digest != checksum:
        raise SourceGone("its bytes changed after the scan")
    return stored.path


def _blocks(stream: BinaryIO) -> Iterator[bytes]:
    while block := _read(stream):
        yield block


def _read(stream: BinaryIO) -> bytes:
    try:
        return stream.read(BLOCK)
    except OSError as error:
        # Of this document alone; an error of the store's own disk is another matter.
        raise SourceGone(f"could not be read ({error.strerror})") from error
