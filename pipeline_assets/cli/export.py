"""`tallybook export`: the published archive as JSON lines, Parquet or CSV."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pipeline_assets.cli.options import (
    JsonOption,
    StateOption,
    VersionOption,
    WorkloadOption,
    counted,
    make_settings,
    open_existing,
)

if TYPE_CHECKING:
    from pipeline_assets.workloads.fields import Fields

Format = Literal["jsonl", "parquet", "csv"]
_BY_ENDING: dict[str, Format] = {".parquet": "parquet", ".csv": "csv"}


def export_command(
    to: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "--output",
            metavar="FILE",
            help="Write to a file, whole or not at all.",
            show_default=False,
        ),
    ] = None,
    form: Annotated[
        Format | None,
        typer.Option(
            "--format",
            help="jsonl, parquet or csv [default: by the end of FILE, else jsonl].",
            show_default=False,
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace FILE if it exists.")] = False,
    raw: Annotated[
        bool,
        typer.Option(
            "--raw",
            help="CSV: leave values alone that a spreadsheet would take for a formula.",
        ),
    ] = False,
    as_of: Annotated[
        str | None,
        typer.Option(
            "--as-of",
            metavar="TIME",
            help="What was published at this time (ISO 8601; local unless it has a zone).",
            show_default=False,
        ),
    ] = None,
    workload: WorkloadOption = None,
    version: VersionOption = None,
    state: StateOption = None,
    json: JsonOption = False,
) -> int:
    """Give every published document with its evidence and provenance, sorted by document_id.

    Without --version, entries of all processing versions. --json is the same as --format jsonl.
    Parquet and CSV have the columns of one workload. CSV is flat, without evidence; a value that
    a spreadsheet would take for a formula gets an apostrophe before it.
    """
    from pipeline_assets.account.export import export_entries, exported_workload
    from pipeline_assets.account.moments import parse_moment
    from pipeline_assets.cli import output
    from pipeline_assets.workloads.fields import fields_of

    chosen = _format(form, to, json)
    if raw and chosen != "csv":
        raise typer.BadParameter("--raw goes with --format csv")
    moment = None if as_of is None else parse_moment(as_of)
    settings = make_settings(state=state, version=version)
    with open_existing(settings) as context:
        fields: Fields = ()
        if chosen != "jsonl":
            workload = exported_workload(context, version, moment, workload)
            fields = fields_of(settings, workload)
        rows = export_entries(context, version, moment, workload)
        if to is None:
            _print(rows, chosen, fields, raw=raw)
            return 0
        written = _write(to.expanduser(), rows, chosen, fields, force=force, raw=raw)
    output.say(f"{counted(written, 'document')} written to {to}")
    return 0


def _format(given: Format | None, to: Path | None, json: bool) -> Format:
    if json and given not in (None, "jsonl"):
        raise typer.BadParameter(f"--json means --format jsonl, and --format is {given}")
    if given is None and to is not None and not json:
        given = _BY_ENDING.get(to.suffix.lower())
    if given == "parquet" and to is None:
        raise typer.BadParameter("--format parquet needs --out FILE: it cannot be printed")
    return given or "jsonl"


def _print(rows: Iterable[dict[str, Any]], form: Format, fields: Fields, *, raw: bool) -> None:
    from pipeline_assets.account.export_tables import csv_lines
    from pipeline_assets.account.plain_text import lines
    from pipeline_assets.cli import output

    if form == "jsonl":
        output.emit_json_lines(rows)
        return
    # What may move a terminal's cursor is escaped there alone: a pipe gets the values as they are.
    on_terminal = sys.stdout.isatty()
    for line in csv_lines(rows, fields, raw=raw):
        output.say_text(f"{lines(line.removesuffix(_END))}{_END}" if on_terminal else line)


_END = "\r\n"


def _write(
    file: Path,
    rows: Iterable[dict[str, Any]],
    form: Format,
    fields: Fields,
    *,
    force: bool,
    raw: bool,
) -> int:
    from pipeline_assets.account.export_tables import csv_lines, write_parquet
    from pipeline_assets.account.whole_file import whole_file
    from pipeline_assets.cli.output import json_line

    with whole_file(file, force=force) as fresh:
        if form == "parquet":
            return write_parquet(rows, fresh, fields)
        if form == "csv":
            # The first line holds the names of the columns.
            return _write_text(fresh, csv_lines(rows, fields, raw=raw)) - 1
        return _write_text(fresh, (json_line(row) for row in rows))


def _write_text(file: Path, lines: Iterator[str]) -> int:
    written = 0
    # No translation of line ends: CSV brings its own.
    with file.open("w", encoding="utf-8", newline="") as stream:
        for line in lines:
            stream.write(line)
            written += 1
    return written
