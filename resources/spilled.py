"""Frames that wait in a file: written one after the other, read back one at a time.

Belongs here: the file and its row groups. Does not belong here: frames that are kept and have a
contract (`contracts.py`).

What is planned about a million records does not fit into memory, and each part of it is wanted
twice: once for its digest, once for the ledger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from resources.artifacts import ArtifactStore


@dataclass(frozen=True)
class Rows:
    """The rows of one frame, wherever they are.

    Attributes:
        height: how many there are.
        read: gives them; each call may read them anew.
    """

    height: int
    read: Callable[[], pl.DataFrame]


def rows_of(frame: pl.DataFrame) -> Rows:
    """The rows of a frame that is in memory and stays there."""
    return Rows(frame.height, lambda: frame)


class SpilledFrames:
    """Frames of one schema in a temporary file.

    First all are added, then they are read: a file that is still written cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer: pq.ParquetWriter | None = None
        self._empty: pl.DataFrame | None = None
        self._file: pq.ParquetFile | None = None
        self.height = 0
        self._heights: list[int] = []

    def add(self, frame: pl.DataFrame) -> Rows:
        """Append a frame; what is returned reads it back, once everything was added.

        Raises:
            ValueError: the frame has other columns than the first one, or reading has begun.
        """
        if self._file is not None:
            raise ValueError("found a frame that comes after reading began; add all of them first")
        if self._empty is None:
            self._empty = frame.clear()
        elif frame.schema != self._empty.schema:
            raise ValueError(f"found columns {frame.columns}, expected {self._empty.columns}")
        number = len(self._heights)
        self._heights.append(frame.height)
        self.height += frame.height
        if not frame.is_empty():
            self._write(frame)
        return Rows(frame.height, lambda: self._read(number))

    def each(self) -> Iterator[pl.DataFrame]:
        """Every frame, in the order in which they were added."""
        for number in range(len(self._heights)):
            yield self._read(number)

    def slice(self, start: int, stop: int) -> pl.DataFrame:
        """Rows from one position to before another, counted over all frames.

        Raises:
            ValueError: there are no such rows.
        """
        if not 0 <= start < stop <= self.height:
            raise ValueError(f"found rows {start} to {stop}, expected some of {self.height}")
        found = []
        first = 0
        for number, height in enumerate(self._heights):
            low, high = max(start - first, 0), min(stop - first, height)
            if low < high:
                found.append(self._read(number).slice(low, high - low))
            first += height
        return pl.concat(found)

    def close(self) -> None:
        """Give the file back."""
        if self._writer is not None:
            self._writer.close()
        if self._file is not None:
            self._file.close()

    def _write(self, frame: pl.DataFrame) -> None:
        table = frame.to_arrow()
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._path, table.schema, compression="lz4")
        whole = pa.Table.from_batches(table.to_batches(), table.schema)
        self._writer.write_table(
            whole.cast(self._writer.schema), row_group_size=max(1, frame.height)
        )

    def _read(self, number: int) -> pl.DataFrame:
        assert self._empty is not None  # noqa: S101 - there is a frame with that number
        if not self._heights[number]:
            return self._empty
        if self._file is None:
            assert self._writer is not None  # noqa: S101 - the frame was written
            self._writer.close()
            self._file = pq.ParquetFile(self._path)
        # Empty frames have no row group.
        group = sum(1 for height in self._heights[:number] if height)
        return pl.DataFrame(self._file.read_row_group(group)).cast(self._empty.schema)  # pyright: ignore[reportArgumentType]


@contextmanager
def spilled_frames(store: ArtifactStore) -> Iterator[SpilledFrames]:
    """Frames on the file system of the artifacts, gone at the end of the block.

    Raises:
        ArtifactStoreFull: the disk is full.
    """
    with store.workfile() as path:
        frames = SpilledFrames(path)
        try:
            yield frames
        finally:
            frames.close()
