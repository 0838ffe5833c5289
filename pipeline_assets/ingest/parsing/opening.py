"""Opens a document for a worker, or says why it cannot be: the only place that uses its path."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from pipeline_assets.ingest.parsing.model import ParseFailure


def open_document(path: Path, max_bytes: int) -> int | ParseFailure:
    """A read-only descriptor of a regular file, which the caller closes.

    Links are not followed and special files never block: a queue opens at once and is refused.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        return ParseFailure("unreadable", _why_not_open(error))
    status = os.fstat(descriptor)
    failure: ParseFailure | None = None
    if not stat.S_ISREG(status.st_mode):
        failure = ParseFailure("unreadable", "not a regular file")
    elif status.st_size == 0:
        failure = ParseFailure("empty", "the file has no bytes")
    elif status.st_size > max_bytes:
        failure = ParseFailure("too_large", f"more than {max_bytes} bytes")
    if failure is None:
        return descriptor
    os.close(descriptor)
    return failure


def _why_not_open(error: OSError | ValueError) -> str:
    if not isinstance(error, OSError):
        return "the path cannot name a file"
    if error.errno == errno.ELOOP:
        return "the path is a symbolic link"
    return f"the file cannot be opened ({errno.errorcode.get(error.errno or 0, 'unknown error')})"
