"""Result lines: each row of `results` is a line of its file, and belongs to its attempt.

Belongs here: places and ids of lines. Does not belong here: what a line means (`answers.py`), and
a file's own digest (`artifacts.py`).

A line that an erasure blanked keeps its place and nothing else.
"""

from __future__ import annotations

import polars as pl

from pipeline_assets.audit.look import Look
from pipeline_assets.audit.requests import mapped
from resources.record_ids import custom_id

LINE, FILE = "result.line", "result.file"

_FILE_SCHEMA = {
    "result_file_no": pl.Int64,
    "artifact": pl.String,
    "bytes": pl.Int64,
    "lines": pl.Int64,
    "batch_id": pl.String,
}
_LINE_SCHEMA = {
    "line": pl.Int64,
    "attempt_no": pl.Int64,
    "offset": pl.Int64,
    "length": pl.Int64,
    "batch_key": pl.String,
    "index": pl.Int64,
}


def check_result_lines(look: Look) -> None:
    """Check every line that came back."""
    files = look.rows(
        "SELECT f.result_file_no, f.artifact, f.bytes, f.lines, b.batch_id "  # noqa: S608
        "FROM result_files f JOIN batches b ON b.batch_no = f.batch_no "
        f"WHERE {look.of_version('b.version_no')} ORDER BY f.result_file_no",
        _FILE_SCHEMA,
    )
    for file in files.iter_rows(named=True):
        lines = look.rows(
            "SELECT l.line, l.attempt_no, l.line_offset, l.line_length, b.batch_key, "
            "a.attempt_no - b.first_attempt_no FROM results l "
            "LEFT JOIN attempts a ON a.attempt_no = l.attempt_no "
            "LEFT JOIN batches b ON b.batch_no = a.batch_no "
            "WHERE l.result_file_no = ? ORDER BY l.line",
            _LINE_SCHEMA,
            file["result_file_no"],
        )
        _check_file(look, file, lines)


def _check_file(look: Look, file: dict[str, object], lines: pl.DataFrame) -> None:
    artifact = str(file["artifact"])
    name = f"result file {artifact[:16]} of batch {file['batch_id']}"
    look.findings.looked(FILE)
    store = look.context.artifacts
    if not store.has("result", artifact):
        return
    with mapped(store.path("result", artifact)) as data:
        if len(data) != file["bytes"]:
            look.findings.add(FILE, name, f"{len(data)} bytes", f"{file['bytes']}")
        look.findings.looked(LINE, lines.height)
        redacted = look.was_redacted("result", artifact)
        for row in lines.iter_rows():
            said = _said(data, row, redacted=redacted)
            if said is not None:
                look.findings.add(LINE, f"line {row[0]} of {name}", *said)
        # A file that was fetched and not read yet has no lines in the ledger.
        if not lines.is_empty():
            _check_gaps(look, name, data, lines)


def _check_gaps(look: Look, name: str, data: memoryview, lines: pl.DataFrame) -> None:
    """Every line of the file is on record, and once."""
    end = 0
    for line, offset, length in lines.sort("offset").select("line", "offset", "length").iter_rows():
        if offset < end:
            look.findings.add(
                LINE,
                f"line {line} of {name}",
                f"bytes from {offset} on, again",
                "a line of its own",
            )
        elif bytes(data[end:offset]).strip():
            look.findings.add(
                FILE, name, f"a line at {end} that no row has", "a row for each of its lines"
            )
        end = max(end, offset + length)
    if bytes(data[end:]).strip():
        look.findings.add(
            FILE, name, f"a line at {end} that no row has", "a row for each of its lines"
        )


def _said(
    data: memoryview,
    row: tuple[int, int | None, int, int, str | None, int | None],
    *,
    redacted: bool,
) -> tuple[str, str] | None:
    """What is wrong with a line, and what it should be; None where nothing is."""
    _, attempt_no, offset, length, key, index = row
    if offset < 0 or length < 0 or offset + length > len(data):
        return f"a place outside the file: {length} bytes at {offset}", "a line of the file"
    if offset and data[offset - 1] != 10:
        return f"no line begins at {offset}", "a line of the file"
    if attempt_no is None:
        return None
    if key is None or index is None:
        return f"attempt {attempt_no}, which does not exist", "an attempt that was made"
    line = bytes(data[offset : offset + length])
    if f'"{custom_id(key, index)}"'.encode() in line or (redacted and not line.strip()):
        return None
    return f"no {custom_id(key, index)} in it", f"the id of attempt {attempt_no}"
