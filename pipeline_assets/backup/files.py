"""Files of a backup: private, whole or not there, and copied with the digest of what was read.

Belongs here: writing and copying such files. Does not belong here: what they mean.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from resources.artifacts import BLOCK

HALF = ".part"
"""The end of the name of a file that is being written."""


def private_folder(folder: Path) -> Path:
    """Make a folder, and those above it that are missing, for the owner alone."""
    if not folder.is_dir():
        private_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def write_private(place: Path, data: bytes) -> None:
    """Write a file for the owner alone, durable before it has its name."""
    half = place.with_name(place.name + HALF)
    descriptor = os.open(half, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
    half.replace(place)
    folder = os.open(place.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def copy_private(source: Path, half: Path) -> tuple[str, int]:
    """Copy a file to one for the owner alone; the digest and size of what was read.

    It is not waited for until it is on the disk: `wait_for_disk` does so once for many files.
    """
    digest, size = hashlib.sha256(), 0
    with source.open("rb") as reading:
        descriptor = os.open(half, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as writing:
            while block := reading.read(BLOCK):
                writing.write(block)
                digest.update(block)
                size += len(block)
    return digest.hexdigest(), size


def digest_of(place: Path) -> tuple[str, int]:
    """The digest and size of a file."""
    digest, size = hashlib.sha256(), 0
    with place.open("rb") as reading:
        while block := reading.read(BLOCK):
            digest.update(block)
            size += len(block)
    return digest.hexdigest(), size


def wait_for_disk() -> None:
    """Wait until everything that was written is on the disk: once for a million small files."""
    os.sync()
