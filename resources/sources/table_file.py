"""A CSV or Parquet file as a source: a row is a document.

Here: opening the file safely, listing its rows, and reading their texts in one pass. Not here: the
formats (`csv_rows`, `parquet_rows`), and which rows are documents (`row_listing`).

A file is read as a whole whatever is asked, so a listing says every checksum at once. What tells
cheaply that nothing changed is the file's own size, time and inode (`fingerprint`).
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO, Literal

import polars as pl

from resources.sources.checksums import RACY_WINDOW_NS
from resources.sources.csv_rows import TableBroken, csv_frames
from resources.sources.declared import TableSource
from resources.sources.listing import READ_SCHEMA, Listing
from resources.sources.parquet_rows import parquet_frames
from resources.sources.port import SourceEmpty, SourceMissing, SourceUnreadable, WalkReport
from resources.sources.row_listing import (
    RowListing,
    RowRules,
    judge_rows,
    open_row,
    rows_with_ids,
    texts_of,
    vanished,
)
from resources.sources.seen_rows import SeenRows

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from resources.ledger.engine import Ledger

_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def open_table(declared: TableSource) -> TableFile:
    """The file that is declared; nothing is opened yet."""
    return TableFile(declared)


class TableFile:
    """A table in a file (`ListedSource`).

    Args:
        declared: where it is, and which columns are what. The path may be a link: whoever declares
            the source names it.
        now_ns: the time, nanoseconds since 1970.
    """

    kind = "table"
    holds: Literal["rows"] = "rows"

    def __init__(self, declared: TableSource, *, now_ns: Callable[[], int] = time.time_ns) -> None:
        self.name = declared.name
        self._declared = declared
        self._now_ns = now_ns
        self._rules = RowRules(
            declared.name, tuple(declared.text), declared.max_row_bytes, (declared.key,)
        )
        self._columns = [declared.key, *declared.text]
        if declared.changed is not None:
            self._columns.append(declared.changed)

    @property
    def location(self) -> str:
        """The file, and the column that names its rows: by another one they are other documents."""
        return f"{self._file}, rows named by {self._declared.key!r}"

    @property
    def _file(self) -> str:
        return os.fsencode(self._declared.path).decode("utf-8", "backslashreplace")

    def fingerprint(self) -> str | None:
        """A digest of the declaration and of the file's size, time and inode.

        None while the file is so fresh that it may change again within its clock's tick.
        """
        with self._opened() as (_, status):
            if status.st_mtime_ns > self._now_ns() - RACY_WINDOW_NS:
                return None
            facts = (
                *(status.st_size, status.st_mtime_ns, status.st_dev, status.st_ino),
                *self._columns,
                self._declared.changed is not None,
                self._declared.max_row_bytes,
            )
        return hashlib.sha256("\n".join(map(repr, facts)).encode()).hexdigest()

    def listing(self) -> Listing:
        """Every row with its checksum, in the file's order.

        Raises, with any frame:
            SourceMissing: there is no such file.
            SourceUnreadable: it cannot be read to its end as such a table.
            SourceEmpty: it has no row, and the source was not declared as possibly empty.
        """
        return Listing(self._listed())

    def read(self, wanted: pl.DataFrame) -> Iterator[pl.DataFrame]:
        """The checksums of rows, in one pass over the file."""
        found = [wanted["document_id"].clear()]
        for frame in self.listing():
            hit = frame.join(wanted.select("document_id"), on="document_id", how="semi")
            if not hit.is_empty():
                found.append(hit["document_id"])
                yield hit.select(list(READ_SCHEMA))
        gone = vanished(wanted, pl.concat(found))
        if not gone.is_empty():
            yield gone.select(list(READ_SCHEMA))

    def open(self, document_id: str) -> BinaryIO:
        """The bytes of one row's document, for which the whole file is read."""
        return open_row(self, document_id)

    def texts(self, document_ids: pl.Series) -> Iterator[pl.DataFrame]:
        """The texts of rows, in one pass over the file that ends when all are found."""
        wanted = document_ids.unique()
        seen = SeenRows()
        left = len(wanted)
        for rows in self._rows():
            found = rows_with_ids(rows, self.name, wanted)
            if found.is_empty():
                continue
            judged = judge_rows(found, self._rules)
            # Of several rows with one id only the first is the document.
            first = judged.filter(seen.find(judged["document_id"]).is_null()).unique(
                "document_id", keep="first", maintain_order=True
            )
            seen.add(first["document_id"], seen.digests(first["document_id"]))
            yield from texts_of(first)
            left -= first.height
            if left == 0:
                return

    def settle(self, connection: Connection, ledger: Ledger) -> None:
        """Nothing is to be settled with a file."""

    def _listed(self) -> Generator[pl.DataFrame, None, WalkReport]:
        listing = RowListing(self._rules)
        for rows in self._rows():
            yield from listing.listed(rows)
        if listing.entries == 0 and not self._declared.allow_empty:
            raise SourceEmpty(
                f"source {self.name}: {self._file!a} holds no row, which is how an export that "
                "failed looks; expected at least one. Write the file again, or declare "
                "allow_empty for the source"
            )
        return WalkReport(listing.entries)

    def _rows(self) -> Iterator[pl.DataFrame]:
        """The file's rows (`rows_schema`), frame by frame."""
        frames = parquet_frames if self._is_parquet else csv_frames
        with self._opened() as (stream, before):
            try:
                for frame in frames(stream, self._columns):
                    yield self._named(frame)
            except TableBroken as error:
                raise self._unreadable(str(error)) from error
            except OSError as error:
                raise self._unreadable(f"it cannot be read ({error.strerror})") from error
            after = os.fstat(stream.fileno())
        if _facts(after) != _facts(before):
            raise self._unreadable("it changed while it was read")

    def _named(self, frame: pl.DataFrame) -> pl.DataFrame:
        """A frame of values as a frame of rows; values beyond the limit are left behind."""
        count = len(self._declared.text)
        texts = [pl.col(f"{at + 1}") for at in range(count)]
        longest = self._declared.max_row_bytes
        big = pl.any_horizontal(text.str.len_bytes() > longest for text in texts).fill_null(
            value=False
        )
        marked = self._declared.changed is not None
        mark = pl.col(f"{count + 1}") if marked else pl.lit(None, pl.String)
        return frame.with_columns(big=big).select(
            "row",
            pl.col("0").alias("key"),
            mark.alias("mark"),
            "big",
            pl.lit(value=False).alias("unread"),
            *(
                pl.when(~pl.col("big")).then(text).alias(f"text_{at}")
                for at, text in enumerate(texts)
            ),
        )

    @property
    def _is_parquet(self) -> bool:
        return self._declared.path.suffix.lower() == ".parquet"

    @contextmanager
    def _opened(self) -> Iterator[tuple[BinaryIO, os.stat_result]]:
        try:
            file = os.open(self._declared.path, _FLAGS)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise SourceMissing(
                f"source {self.name}: there is no file {self._file!a}; expected a table. "
                "Correct the path in the sources file, or mount its disk"
            ) from error
        except OSError as error:
            raise self._unreadable(f"it cannot be opened ({error.strerror})") from error
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            os.close(file)
            raise self._unreadable("it is no regular file")
        with os.fdopen(file, "rb") as stream:
            yield stream, status

    def _unreadable(self, problem: str) -> SourceUnreadable:
        kind = "Parquet" if self._is_parquet else "CSV"
        return SourceUnreadable(
            f"source {self.name}: the {kind} table {self._file!a} cannot be used: {problem}. "
            "Nothing of it was taken over: correct the file and scan again"
        )


def _facts(status: os.stat_result) -> tuple[int, int]:
    return status.st_size, status.st_mtime_ns
