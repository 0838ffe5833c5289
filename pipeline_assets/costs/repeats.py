"""Late lines that are the same line delivered again, which is paid once.

Belongs here: telling them from answers of another run of the request, by the bytes that were
stored. Does not belong here: what is charged (`charges.py`).

A provider that answers a request twice writes two lines, which differ at least in the provider's
own ids; each of them was paid. One that delivers a line again, in the file of another job, writes
the same bytes; the answer was paid once. Only lines of equal length are read. Where what was
stored is gone (pruned or erased) it is not known which of the two it is.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import BinaryIO

import polars as pl
from sqlalchemy import Connection

from resources.artifacts import ArtifactDamaged, ArtifactMissing
from resources.context import Context
from resources.ledger.numbers import is_one_of

_PAIR = {
    "result_file_no": pl.Int64,
    "line": pl.Int64,
    "artifact": pl.String,
    "offset": pl.Int64,
    "length": pl.Int64,
    "earlier_artifact": pl.String,
    "earlier_offset": pl.Int64,
}
_PAIRS = """
SELECT l.result_file_no, l.line, f.artifact, x.line_offset, x.line_length, g.artifact,
    y.line_offset
FROM late_results l
JOIN attempts a ON a.attempt_no = l.attempt_no
JOIN batches b ON b.batch_no = a.batch_no
JOIN results x ON x.result_file_no = l.result_file_no AND x.line = l.line
JOIN result_files f ON f.result_file_no = l.result_file_no
{earlier}
JOIN results y ON y.result_file_no = e.result_file_no AND y.line = e.line
    AND y.line_length = x.line_length
JOIN result_files g ON g.result_file_no = e.result_file_no
WHERE b.version_no = ?
ORDER BY l.result_file_no, e.result_file_no
"""
MOST_OPEN = 32
"""Result files that are open at once; lines come file by file."""
_EARLIER = (
    "JOIN dispositions e ON e.attempt_no = l.attempt_no AND e.line IS NOT NULL",
    "JOIN late_results e ON e.attempt_no = l.attempt_no AND (e.result_file_no < l.result_file_no "
    "OR (e.result_file_no = l.result_file_no AND e.line < l.line))",
)


@dataclass(frozen=True)
class Repeats:
    """Late lines of a version: file and line.

    Attributes:
        same: the same bytes as an earlier line of the attempt.
        perhaps: as long as one of them, and what was stored is gone.
    """

    same: frozenset[tuple[int, int]]
    perhaps: frozenset[tuple[int, int]]


NO_REPEATS = Repeats(frozenset(), frozenset())


def repeats_of(connection: Connection, context: Context, version_no: int) -> Repeats:
    """The repeated lines of a version."""
    same: set[tuple[int, int]] = set()
    perhaps: set[tuple[int, int]] = set()
    with closing(_StoredLines(context)) as stored:
        for earlier in _EARLIER:
            sql = _PAIRS.format(earlier=earlier)
            for pairs in context.ledger.dialect.stream(connection, sql, _PAIR, (version_no,)):
                for file_no, line, artifact, offset, length, other, at in pairs.iter_rows():
                    one = stored.read(artifact, offset, length)
                    two = stored.read(other, at, length)
                    if one is None or two is None:
                        perhaps.add((file_no, line))
                    elif one == two:
                        same.add((file_no, line))
    return Repeats(frozenset(same), frozenset(perhaps - same))


def as_condition(lines: frozenset[tuple[int, int]], row: str) -> str:
    """The SQL condition that a late result is one of these lines; never true for none."""
    by_file: dict[int, list[int]] = {}
    for file_no, line in sorted(lines):
        by_file.setdefault(file_no, []).append(line)
    parts = [
        f"({row}.result_file_no = {file_no} AND "
        f"{is_one_of(f'{row}.line', pl.Series(found, dtype=pl.Int64))})"
        for file_no, found in by_file.items()
    ]
    return f"({' OR '.join(parts)})" if parts else "1 = 0"


class _StoredLines:
    """Lines of stored result files; a file is opened once for as long as its lines are read."""

    def __init__(self, context: Context) -> None:
        self._artifacts = context.artifacts
        self._open: dict[str, BinaryIO | None] = {}

    def read(self, artifact: str, offset: int, length: int) -> bytes | None:
        """A line; None where it is gone or an erasure took something out of its file."""
        if artifact not in self._open:
            if len(self._open) == MOST_OPEN:
                self.close()
            self._open[artifact] = self._stream(artifact)
        stream = self._open[artifact]
        if stream is None:
            return None
        stream.seek(offset)
        return stream.read(length)

    def close(self) -> None:
        """Close what is open."""
        for stream in self._open.values():
            if stream is not None:
                stream.close()
        self._open.clear()

    def _stream(self, artifact: str) -> BinaryIO | None:
        try:
            if self._artifacts.sidecar("result", artifact) is not None:
                return None
            return self._artifacts.open("result", artifact)
        except (ArtifactMissing, ArtifactDamaged):
            return None
