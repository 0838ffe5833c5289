"""Edited copies of files without what a document has in them.

Belongs here: blanking lines in place, and leaving rows out. Does not belong here: which lines and
rows (`purge.py`) and putting the copy in the place of the file (`resources/artifacts.py`).
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from resources.providers.port import split_lines

_BLANK = bytes(10 if byte == 10 else 32 for byte in range(256))
"""Every byte becomes a blank but the end of a line, so that lines and offsets stay what they are;
readers of result lines skip blank ones."""


def blank_ranges(source: Path, target: Path, ranges: Iterable[tuple[int, int]]) -> None:
    """Copy a file with the bytes of (offset, length) ranges overwritten by blanks."""
    shutil.copyfile(source, target)
    with target.open("r+b") as stream:
        for offset, length in ranges:
            stream.seek(offset)
            data = stream.read(length)
            stream.seek(offset)
            stream.write(data.translate(_BLANK))


def marked_ranges(file: Path, marks: Sequence[bytes]) -> list[tuple[int, int]]:
    """(offset, length) of lines that hold one of some byte strings."""
    if not marks:
        return []
    with file.open("rb") as stream:
        return [
            (line.offset, len(line.data))
            for line in split_lines(stream)
            if any(mark in line.data for mark in marks)
        ]


def unblanked(file: Path, ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The ranges that still hold something."""
    left = []
    with file.open("rb") as stream:
        for offset, length in ranges:
            stream.seek(offset)
            if stream.read(length).strip():
                left.append((offset, length))
    return left


def without_rows(source: Path, target: Path, column: str, values: Sequence[str | int]) -> None:
    """Copy a Parquet file without the rows whose column has one of the values."""
    with pq.ParquetFile(source) as file:
        schema = file.schema_arrow
        with pq.ParquetWriter(target, schema, compression="zstd") as writer:
            for number in range(file.num_row_groups):
                rows = pl.DataFrame(file.read_row_group(number))
                kept = rows.filter(~_among(column, values)).to_arrow()
                writer.write_table(
                    pa.Table.from_batches(kept.to_batches(), kept.schema).cast(schema)
                )


def count_rows(file: Path, column: str, values: Sequence[str | int]) -> tuple[int, int]:
    """How many rows of a Parquet file have one of the values, and how many there are."""
    found = total = 0
    with pq.ParquetFile(file) as opened:
        for number in range(opened.num_row_groups):
            rows = pl.DataFrame(opened.read_row_group(number, columns=[column]))
            found += rows.filter(_among(column, values)).height
            total += rows.height
    return found, total


def _among(column: str, values: Sequence[str | int]) -> pl.Expr:
    return pl.col(column).is_in(list(values)).fill_null(value=False)
