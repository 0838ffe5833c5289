"""`tallybook export`: the published archive, one JSON object a line."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from pipeline_assets.cli.options import (
    JsonOption,
    StateOption,
    VersionOption,
    counted,
    make_settings,
    open_existing,
)


def export_command(
    to: Annotated[
        Path | None,
        typer.Option(
            "--output",
            metavar="FILE",
            help="Write to a file, whole or not at all.",
            show_default=False,
        ),
    ] = None,
    version: VersionOption = None,
    state: StateOption = None,
    json: JsonOption = False,
) -> int:
    """Print every published document with its evidence and provenance, one JSON object a line.

    Without --version, entries of all processing versions. --json changes nothing: the export is
    JSON lines anyway.
    """
    from pipeline_assets.account.export import export_entries
    from pipeline_assets.cli import output

    settings = make_settings(state=state, version=version)
    with open_existing(settings) as context:
        rows = export_entries(context, version)
        if to is None:
            output.emit_json_lines(rows)
            return 0
        written = _write(to.expanduser(), rows)
    output.say(f"{counted(written, 'document')} written to {to}")
    return 0


def _write(file: Path, rows: Iterable[dict[str, Any]]) -> int:
    """Write beside the file and rename, so that a reader never sees half of it."""
    import tempfile

    from pipeline_assets.cli.output import json_line

    written = 0
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", dir=file.parent, prefix=f".{file.name}.", delete=False
    ) as fresh:
        try:
            for row in rows:
                fresh.write(json_line(row))
                written += 1
            fresh.flush()
            Path(fresh.name).replace(file)
        except BaseException:
            Path(fresh.name).unlink(missing_ok=True)
            raise
    return written
