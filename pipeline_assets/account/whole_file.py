"""Writing a file that a person names: whole or not at all, and never over another by accident.

Belongs here: only that. Artifacts have their own store (`resources/artifacts.py`).
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class FileRefused(ValueError):
    """A file that a person named is not written."""


class FileExists(FileRefused):
    """The file is there already, and nobody said that it may be replaced."""

    def __init__(self, file: Path) -> None:
        super().__init__(
            f"{file} exists already, and nothing was written. Give --force to replace it, or "
            "another name."
        )


class NotAFile(FileRefused):
    """The name is that of a folder, a device or a pipe, which must not be replaced."""

    def __init__(self, file: Path) -> None:
        super().__init__(
            f"{file} is not a regular file, and nothing was written. Give another name."
        )


class NoSuchFolder(FileRefused):
    """The file would stand in a folder that is not there."""

    def __init__(self, file: Path) -> None:
        super().__init__(
            f"{file} was not written: there is no folder {file.parent}. Make it, or give another "
            "name."
        )


@contextmanager
def whole_file(file: Path, *, force: bool = False) -> Iterator[Path]:
    """A fresh file beside `file` to write to; it takes that name when the block ends well.

    Args:
        file: the name; a symbolic link is followed.
        force: replace what is there.

    Raises:
        FileExists: the name is taken, at the start or by the end.
        NotAFile: the name is taken by something that is no regular file.
        NoSuchFolder: the folder that it would stand in is not there.
        OSError: the folder cannot be written to.
    """
    target = file.resolve()
    if target.exists() and not target.is_file():
        raise NotAFile(file)
    if target.exists() and not force:
        raise FileExists(file)
    if not target.parent.is_dir():
        raise NoSuchFolder(file)
    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:100]}.")
    os.close(descriptor)
    fresh = Path(name)
    try:
        yield fresh
        with fresh.open("rb") as written:
            os.fsync(written.fileno())
        if force:
            fresh.replace(target)
        else:
            _take_free_name(fresh, target, file)
    finally:
        fresh.unlink(missing_ok=True)


def _take_free_name(fresh: Path, target: Path, named: Path) -> None:
    """A link, unlike a rename, never replaces what somebody put there meanwhile."""
    try:
        target.hardlink_to(fresh)
    except FileExistsError:
        raise FileExists(named) from None
    except OSError:
        # No hard links on this file system; what remains is a look just before.
        if target.exists():
            raise FileExists(named) from None
        fresh.replace(target)
