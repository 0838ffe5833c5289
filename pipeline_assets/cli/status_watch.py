"""Showing a view once, or again and again.

Belongs here: the three ways (in place on a terminal, a block each time elsewhere, a line of JSON).
Does not belong here: what is shown (`status.py`, `status_page.py`).

Ctrl-C ends the command as it ends every other one.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pipeline_assets.cli import output
from pipeline_assets.cli.status_page import drawn, print_page

if TYPE_CHECKING:
    from rich.console import Console

    from pipeline_assets.cli.status import View


def show(view: View, *, json: bool) -> bool:
    """Print a view; returns whether nothing waits."""
    if json:
        output.emit_json_lines(view.values)
    else:
        print_page(view.page(output.console().width, False))
    return view.done


def watched(
    look: Callable[[], View],
    *,
    every: float,
    times: int | None,
    json: bool,
    sleep: Callable[[float], None] = time.sleep,
) -> bool:
    """Look, show and wait, over and over; returns whether nothing waited at the last look.

    Args:
        look: takes a view.
        every: seconds between two looks.
        times: how often; None for ever.
        json: a line (of all versions: a line each) a look.
        sleep: waits.
    """
    views = _views(look, every, times, sleep)
    if not json and output.console().is_terminal:
        return _in_place(views, output.console(), every)
    done = True
    for view in views:
        if not json:
            output.say(_taken_at())
        done = show(view, json=json)
        # Whoever reads a pipe wants each look when it is taken.
        output.flush()
    return done


def _views(
    look: Callable[[], View], every: float, times: int | None, sleep: Callable[[float], None]
) -> Iterator[View]:
    for number in itertools.count() if times is None else range(times):
        if number:
            sleep(every)
        yield look()


def _in_place(views: Iterator[View], console: Console, every: float) -> bool:
    """On a screen of its own, which gives the terminal back as it was; the last look stays."""
    from rich.console import Group
    from rich.live import Live
    from rich.text import Text

    view = None
    with Live(console=console, screen=True, auto_refresh=False) as live:
        for view in views:
            head = Text(f"{_taken_at()}, every {every:g} s; Ctrl-C ends", style="dim")
            live.update(Group(head, drawn(view.page(console.width, True))), refresh=True)
    return True if view is None else show(view, json=False)


def _taken_at() -> str:
    return f"At {output.local_datetime(datetime.now(UTC))}"
