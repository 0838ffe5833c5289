"""Reading a Parquet file a frame at a time.

Here: which columns and types can be text, and bounded reading. Not here: which rows are documents
(`row_listing`), and opening the file (`table_file`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import BinaryIO

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from resources.sources.csv_rows import TableBroken
from resources.sources.listing import LISTED_ROWS
from resources.sources.row_listing import FRAME_CHARACTERS

_BUFFER_BYTES = 1024 * 1024


def parquet_frames(stream: BinaryIO, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
    """The values of these columns as text, with the number of each row (`row`, from 1).

    Numbers, truth values, dates and times are written as Polars writes them; null stays null.

    Returns:
        Frames of `LISTED_ROWS` rows at most, with columns `row` and `0`, `1`, …

    Raises:
        TableBroken: it is no Parquet file, is damaged, or has not these columns of such types.
        OSError: it cannot be read.
    """
    stream.seek(0)
    row = 1
    try:
        with pq.ParquetFile(
            stream, memory_map=False, pre_buffer=False, buffer_size=_BUFFER_BYTES
        ) as file:
            _check_columns(file.schema_arrow, columns)
            wanted = list(dict.fromkeys(columns))
            for batch in file.iter_batches(
                batch_size=_batch_rows(file, wanted), columns=wanted, use_threads=False
            ):
                # Pages may be damaged where no checksum protects them: text must be UTF-8.
                batch.validate(full=True)
                frame = _as_text(batch, columns, row)
                row += frame.height
                yield frame
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise TableBroken("it is no Parquet file, or is damaged") from error
    except OSError as error:
        if error.errno is not None:
            raise
        # The library's word for pages that cannot be unpacked; the system's errors have a number.
        raise TableBroken("it is no Parquet file, or is damaged") from error
    except pa.ArrowException as error:
        raise TableBroken(f"it cannot be read as Parquet ({type(error).__name__})") from error


def _check_columns(schema: pa.Schema, columns: Sequence[str]) -> None:
    for name in columns:
        count = schema.names.count(name)
        if count != 1:
            found = "twice" if count else "not"
            raise TableBroken(f"it has {len(schema.names)} columns, and {name!r} {found}")
        kind = schema.field(name).type
        if pa.types.is_nested(kind):
            raise TableBroken(f"its column {name!r} holds {kind}; expected text or numbers")


def _batch_rows(file: pq.ParquetFile, columns: Sequence[str]) -> int:
    """So many rows that a batch of the longest row group's average rows fits into memory."""
    metadata = file.metadata
    longest = 1.0
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        size = sum(
            group.column(at).total_uncompressed_size
            for at in range(group.num_columns)
            if group.column(at).path_in_schema in columns
        )
        longest = max(longest, size / max(1, group.num_rows))
    return max(1, min(LISTED_ROWS, int(FRAME_CHARACTERS / longest)))


def _as_text(batch: pa.RecordBatch, columns: Sequence[str], row: int) -> pl.DataFrame:
    frame = pl.DataFrame(pa.Table.from_batches([batch]))
    texts = {}
    for at, name in enumerate(columns):
        try:
            texts[f"{at}"] = frame[name].cast(pl.String)
        except pl.exceptions.PolarsError as error:
            raise TableBroken(
                f"its column {name!r} holds {frame[name].dtype} that is no text"
            ) from error
    numbers = pl.int_range(row, row + frame.height, dtype=pl.Int64, eager=True)
    return pl.DataFrame({"row": numbers, **texts})
