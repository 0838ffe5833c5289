"""Reading a CSV file a frame at a time, or not at all.

Here: the dialect, its limits, and where exactly a file breaks it. Not here: which rows are
documents (`row_listing`), and opening the file (`table_file`).

The dialect is RFC 4180: UTF-8 with or without a byte order mark, commas, values in double quotes
where they hold a comma, a quote or a line end, and names in the first line. Values are text, never
guessed to be numbers. Lines without any character are no rows. Python's own reader is used in its
strict mode: it says where a file is broken, and never mends one.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from typing import BinaryIO, TextIO

import polars as pl

from resources.sources.listing import LISTED_ROWS
from resources.sources.row_listing import FRAME_CHARACTERS

#: No line, and no value, may be longer: what is not closed must not fill the memory.
LONGEST_LINE = 64 * 1024 * 1024
_STEP_ROWS = 200
_BLOCK_BYTES = 1024 * 1024
_NEVER_CLOSED = "unexpected end of data"
_TOO_LONG = "field larger than field limit"


class TableBroken(Exception):
    """A file is no table of its kind; the message says where, in closed wording."""


def csv_frames(stream: BinaryIO, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
    """The values of these columns as text, with the number of each row (`row`, from 1).

    Args:
        stream: the file, at any place; it is read more than once.
        columns: names that must stand in its first line, each once.

    Returns:
        Frames of `LISTED_ROWS` rows at most, with columns `row` and `0`, `1`, …

    Raises:
        TableBroken: it is no such table.
        OSError: it cannot be read.
    """
    with _broken(stream), _opened(stream) as text:
        reader = _reader(text)
        width, places = _header(reader, columns)
        row = 1
        rows: list[list[str]] = []
        characters = 0
        while step := list(islice(reader, _STEP_ROWS)):
            # A line without any character comes as a list without values.
            full = [values for values in step if values]
            if any(len(values) != width for values in full):
                raise TableBroken(_first_ragged(stream, width))
            rows += full
            characters += sum(map(len, chain.from_iterable(full)))
            if len(rows) > LISTED_ROWS - _STEP_ROWS or characters >= FRAME_CHARACTERS:
                yield _frame(rows, row, places)
                row += len(rows)
                rows, characters = [], 0
        if rows:
            yield _frame(rows, row, places)


def _frame(rows: list[list[str]], first: int, places: Sequence[int]) -> pl.DataFrame:
    numbers = pl.int_range(first, first + len(rows), dtype=pl.Int64, eager=True)
    return pl.DataFrame(
        {
            "row": numbers,
            **{
                f"{at}": pl.Series([values[place] for values in rows], dtype=pl.String)
                for at, place in enumerate(places)
            },
        }
    )


def _header(reader: Iterator[list[str]], columns: Sequence[str]) -> tuple[int, list[int]]:
    """How many columns there are, and the places of the wanted ones."""
    names = next((values for values in reader if values), [])
    for name in columns:
        if names.count(name) != 1:
            found = "twice" if name in names else "not"
            raise TableBroken(
                f"its first line names {len(names)} columns, and {name!r} {found}; expected names "
                "separated by commas, each once"
            )
    return len(names), [names.index(name) for name in columns]


def _reader(text: TextIO) -> Iterator[list[str]]:
    # The limit is one of the whole process: it is only ever raised.
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_LINE))
    return csv.reader(_lines(text), strict=True)


def _lines(text: TextIO) -> Iterator[str]:
    for number, line in enumerate(iter(lambda: text.readline(LONGEST_LINE), ""), start=1):
        if len(line) == LONGEST_LINE:
            raise TableBroken(f"line {number} is longer than {LONGEST_LINE} characters")
        yield line


@contextmanager
def _opened(stream: BinaryIO) -> Iterator[TextIO]:
    stream.seek(0)
    text = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="strict", newline="")
    try:
        yield text
    finally:
        text.detach()


@contextmanager
def _broken(stream: BinaryIO) -> Iterator[None]:
    """Say in which line a file breaks the rules."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise TableBroken(f"line {_undecodable_line(stream)} is not UTF-8 text") from error
    except csv.Error as error:
        raise TableBroken(_broken_record(stream, str(error))) from error


def _undecodable_line(stream: BinaryIO) -> int:
    decoder = codecs.getincrementaldecoder("utf-8")("strict")
    stream.seek(0)
    line = 1
    while block := stream.read(_BLOCK_BYTES):
        held = len(decoder.getstate()[0])
        try:
            decoder.decode(block)
        except UnicodeDecodeError as error:
            return line + block[: max(0, error.start - held)].count(b"\n")
        line += block.count(b"\n")
    return line


def _broken_record(stream: BinaryIO, problem: str) -> str:
    """Where the record begins that the reader refused, and why."""
    begins, line = 1, 1
    with _opened(stream) as text:
        reader = csv.reader(_lines(text), strict=True)
        try:
            for _ in reader:
                begins = reader.line_num + 1
        except csv.Error:
            line = reader.line_num
    if problem.startswith(_NEVER_CLOSED):
        return f"a quoted value in the row that begins in line {begins} is never closed"
    if problem.startswith(_TOO_LONG):
        return (
            f"the row that begins in line {begins} holds a value beyond {LONGEST_LINE} characters"
        )
    return f"line {line} holds a quote inside of a quoted value; expected it doubled"


def _first_ragged(stream: BinaryIO, width: int) -> str:
    begins, found = 1, width
    with _opened(stream) as text:
        reader = csv.reader(_lines(text), strict=True)
        for values in reader:
            if values and len(values) != width:
                found = len(values)
                break
            begins = reader.line_num + 1
    return f"the row that begins in line {begins} has {found} values, its first line has {width}"
