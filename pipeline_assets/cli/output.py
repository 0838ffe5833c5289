"""What a command prints: JSON lines, tables, local times, all safe for a terminal.

Belongs here: the forms. Does not belong here: what is said. Text that comes from documents or
file names passes `plain_text.one_line` (tables) or `plain_text.json_safe` (JSON).
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

import msgspec
import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipeline_assets.account.plain_text import json_safe, one_line
from resources.clock import from_text

PIPE_CLOSED = 141
"""What a shell reports of a command whose reader went away (128 + SIGPIPE)."""
_WIDE = 200


class _QuietConsole(Console):
    def on_broken_pipe(self) -> None:
        _leave()


def console() -> Console:
    """Standard output: styled on a terminal, else plain and wide, so that nothing is cut."""
    if sys.stdout.isatty():
        return _QuietConsole(highlight=False)
    return _QuietConsole(highlight=False, width=_WIDE, no_color=True)


def say(*lines: str) -> None:
    """Print lines as they are, unsafe characters escaped."""
    _write("".join(one_line(line) + "\n" for line in lines))


def say_text(text: str) -> None:
    """Print text that is safe already."""
    _write(text if text.endswith("\n") else text + "\n")


def emit_json(value: Any) -> None:
    """Print one JSON object on one line."""
    emit_json_lines([value])


def emit_json_lines(values: Iterable[Any]) -> None:
    """Print JSON objects, one a line, as they come."""
    for value in values:
        _write(json_line(value))


def json_line(value: Any) -> str:
    """A value as one line of JSON."""
    return json_safe(msgspec.json.encode(value).decode()) + "\n"


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table; numbers stand to the right, None is an empty cell."""
    console().print(grid(title, columns, rows))


def grid(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    """A table as `table` prints it, for a screen of several."""
    drawn = Table(
        title=Text(one_line(title)), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False
    )
    cells = [list(row) for row in rows]
    for index, name in enumerate(columns):
        numeric = bool(cells) and all(isinstance(row[index], int | float) for row in cells)
        drawn.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for row in cells:
        drawn.add_row(*(Text("" if cell is None else one_line(str(cell))) for cell in row))
    return drawn


def facts(rows: Iterable[tuple[str, object]], indent: int = 0) -> None:
    """Print names and values under each other; None is left out."""
    shown = [(name, str(value)) for name, value in rows if value is not None and value != ""]
    width = max((len(name) for name, _ in shown), default=0)
    say(*(f"{' ' * indent}{name:<{width}}  {value}" for name, value in shown))


def heading(text: str) -> None:
    """Print a heading."""
    console().print(Text(f"\n{one_line(text)}", style="bold"))


def local(moment: str | None) -> str | None:
    """A stored time (UTC) as local time."""
    if moment is None:
        return None
    return from_text(moment).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def local_datetime(moment: datetime) -> str:
    """An aware time as local time."""
    return moment.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def command(*words: object) -> str:
    """A command line that the reader can type here: `tallybook`, or the path to it."""
    import shlex

    called = Path(sys.argv[0])
    found = shutil.which("tallybook")
    name = "tallybook"
    if called.name == "tallybook" and (found is None or not _same(Path(found), called)):
        name = os.path.relpath(called)
    return shlex.join([name, *(str(word) for word in words)])


def close_pipe() -> None:
    """Send what is still buffered nowhere: it would fail again at the interpreter's end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def flush() -> None:
    """Hand everything over now.

    Raises:
        typer.Exit: the reader is gone.
    """
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _leave()


def _write(text: str) -> None:
    try:
        sys.stdout.write(text)
    except BrokenPipeError:
        _leave()


def _leave() -> NoReturn:
    """End the command quietly: the reader of its output is gone."""
    close_pipe()
    raise typer.Exit(PIPE_CLOSED)


def _same(one: Path, other: Path) -> bool:
    return one.resolve() == other.resolve()
