"""`tallybook status`: where a version stands and what waits.

Belongs here: the command. Does not belong here: the page (`status_page.py`) and its repetition
(`status_watch.py`). Whether the account adds up takes longer to tell; that is `tallybook report`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pipeline_assets.cli.options import (
    JsonOption,
    StateOption,
    VersionOption,
    make_settings,
    open_existing,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipeline_assets.cli.status_page import Page
    from resources.context import Context
    from resources.settings import Settings

EVERY_SECONDS = 5.0

AllOption = Annotated[bool, typer.Option("--all", help="Every version that was used, a line each.")]
WatchOption = Annotated[
    bool,
    typer.Option("--watch", help="Again every SECONDS (5 by default), until Ctrl-C or --times."),
]
TimesOption = Annotated[
    int | None,
    typer.Option(
        "--times", metavar="N", min=1, help="With --watch: so many times.", show_default=False
    ),
]
SecondsArgument = Annotated[
    float | None,
    typer.Argument(
        metavar="SECONDS",
        min=0.1,
        max=86_400,
        help="Between two looks of --watch.",
        show_default=False,
    ),
]


@dataclass(frozen=True)
class View:
    """What is shown once, in each of its forms.

    Attributes:
        done: nothing waits.
        values: as JSON, a line each.
        page: columns, and whether it is watched → for a person.
    """

    done: bool
    values: list[dict[str, Any]]
    page: Callable[[int, bool], Page]


def status_command(
    seconds: SecondsArgument = None,
    watch: WatchOption = False,
    times: TimesOption = None,
    all_: AllOption = False,
    version: VersionOption = None,
    state: StateOption = None,
    json: JsonOption = False,
) -> int:
    """Show how far every stage is, what is open and how old, and what waits for whom."""
    from pipeline_assets.cli.account import DONE, WAITS
    from pipeline_assets.cli.status_watch import show, watched

    if not watch and (seconds is not None or times is not None):
        raise typer.BadParameter("SECONDS and --times belong to --watch", param_hint="--watch")
    if all_ and version is not None:
        raise typer.BadParameter("--all is of every version", param_hint="--version")
    settings = make_settings(state=state, version=version)
    with open_existing(settings) as context:

        def look() -> View:
            return _all(context) if all_ else _one(context, settings)

        if watch:
            every = EVERY_SECONDS if seconds is None else seconds
            done = watched(look, every=every, times=times, json=json)
        else:
            done = show(look(), json=json)
    return DONE if done else WAITS


def _one(context: Context, settings: Settings) -> View:
    import msgspec

    from pipeline_assets.account.disk import disk_facts
    from pipeline_assets.account.status import status
    from pipeline_assets.cli.account import options_of
    from pipeline_assets.cli.status_page import page_of
    from pipeline_assets.known_version import known_version
    from resources.one_moment import at_one_moment

    with at_one_moment(context) as still:
        now = status(still, settings.version)
        disk = disk_facts(still, known_version(still, settings.version).version_no)
    values = {**now.as_json(), "disk": msgspec.to_builtins(disk)}
    return View(
        done=now.done,
        values=[values],
        page=lambda width, watching: page_of(
            now, disk, options_of(settings), width, watching=watching
        ),
    )


def _all(context: Context) -> View:
    import msgspec

    from pipeline_assets.account.status import all_versions
    from pipeline_assets.cli.status_page import page_of_all
    from resources.one_moment import at_one_moment

    with at_one_moment(context) as still:
        lines = all_versions(still)
    return View(
        done=all(line.done for line in lines),
        values=[msgspec.to_builtins(line) for line in lines],
        page=lambda _width, _watching: page_of_all(lines),
    )
