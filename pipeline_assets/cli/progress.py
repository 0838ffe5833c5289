"""How far a run is: a bar on a terminal, a line a piece elsewhere.

Belongs here: the two forms of `resources.context.Progress`. Both write to standard error, so that
what a command answers can be piped.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from resources.context import Progress as ProgressPort
from resources.context import SilentProgress


class BarProgress:
    """Bars that come and stay as pieces of work begin and end."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._task: TaskID | None = None

    def start(self, label: str, total: int | None) -> None:
        """A piece of work begins."""
        # A piece without items is over at once: a bar of it would only say 0/0.
        self._task = None if total == 0 else self._bars.add_task(label, total=total)

    def advance(self, count: int = 1) -> None:
        """So many more items are done."""
        if self._task is not None:
            self._bars.advance(self._task, count)

    def finish(self) -> None:
        """The piece is over."""
        if self._task is not None:
            task = self._bars.tasks[self._task]
            self._bars.update(self._task, total=task.completed)
            self._task = None


class LineProgress:
    """A line when a piece is over."""

    def __init__(self) -> None:
        self._label, self._done, self._started = "", 0, 0.0

    def start(self, label: str, total: int | None) -> None:
        """A piece of work begins."""
        self._label, self._done, self._started = label, 0, time.monotonic()

    def advance(self, count: int = 1) -> None:
        """So many more items are done."""
        self._done += count

    def finish(self) -> None:
        """The piece is over."""
        if self._done:
            seconds = time.monotonic() - self._started
            sys.stderr.write(f"{self._label}: {self._done} in {seconds:.1f} s\n")


@contextmanager
def shown_progress(*, quiet: bool = False) -> Iterator[ProgressPort]:
    """The form that suits standard error, for the length of a block."""
    if quiet:
        yield SilentProgress()
    elif sys.stderr.isatty():
        with Progress(
            SpinnerColumn(finished_text="✓"),
            TextColumn("{task.description:<12}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=Console(stderr=True),
        ) as bars:
            yield BarProgress(bars)
    else:
        yield LineProgress()
