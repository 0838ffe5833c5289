"""`tallybook settings`, `hold` and `release`: what an operator may change without a new version."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pipeline_assets.cli.options import (
    JsonOption,
    StateOption,
    VersionOption,
    make_settings,
    open_existing,
)

settings_app = typer.Typer(
    help="Show and change operating settings; every change is kept with its reason.",
    no_args_is_help=True,
)
ReasonOption = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it is kept.")]


@settings_app.command("list")
def list_command(
    version: VersionOption = None, state: StateOption = None, json: JsonOption = False
) -> int:
    """List operating settings with the values that hold for a version."""
    from pipeline_assets.account.known_version import known_version
    from pipeline_assets.cli import output
    from pipeline_assets.operating import SETTINGS
    from resources.ledger.versions import get_operating

    settings = make_settings(state=state, version=version)
    with open_existing(settings) as context:
        number = known_version(context, settings.version).version_no
        rows = [
            {
                "setting": name,
                "value": get_operating(context.ledger, number, name, entry.default),
                "default": entry.default,
                "meaning": entry.meaning,
            }
            for name, entry in SETTINGS.items()
        ]
    if json:
        output.emit_json_lines(rows)
        return 0
    output.table(
        f"Operating settings of {settings.version}",
        ("setting", "value", "default", "meaning"),
        ((row["setting"], row["value"], row["default"], row["meaning"]) for row in rows),
    )
    return 0


@settings_app.command("set")
def set_command(
    name: Annotated[str, typer.Argument(metavar="SETTING")],
    value: Annotated[str, typer.Argument(metavar="VALUE")],
    reason: ReasonOption,
    everywhere: Annotated[
        bool, typer.Option("--all-versions", help="For every version that has no value of its own.")
    ] = False,
    version: VersionOption = None,
    state: StateOption = None,
) -> int:
    """Change an operating setting of a version, or of all."""
    from pipeline_assets.account.known_version import known_version
    from pipeline_assets.cli import output
    from pipeline_assets.operating import check_operating
    from resources.ledger.versions import set_operating

    check_operating(name, value)
    settings = make_settings(state=state, version=version)
    with open_existing(settings) as context:
        number = None if everywhere else known_version(context, settings.version).version_no
        cause = context.cause(reason, "settings set")
        set_operating(context.ledger, number, name, value, cause)
    output.say(f"{name} is {value} for {'every version' if everywhere else settings.version}.")
    return 0


def hold_command(
    reason: ReasonOption, version: VersionOption = None, state: StateOption = None
) -> int:
    """Stop new submissions of a version; what is under way goes on."""
    return _move(version, state, reason, "active", "held")


def release_command(
    reason: ReasonOption, version: VersionOption = None, state: StateOption = None
) -> int:
    """Let a held version submit again."""
    return _move(version, state, reason, "held", "active")


class NotInState(Exception):
    """A version is not in the state that a wish starts from."""

    def __init__(self, key: str, state: str, wanted: str) -> None:
        super().__init__(f"{key} is {state}; expected one that is {wanted}. Nothing was changed.")


def _move(
    version: str | None, state: Path | None, reason: str, from_state: str, to_state: str
) -> int:
    from pipeline_assets.account.known_version import known_version
    from pipeline_assets.cli import output
    from resources.ledger.moves import move_version
    from resources.ledger.versions import state_of

    settings = make_settings(state=state, version=version)
    with open_existing(settings) as context:
        known = known_version(context, settings.version)
        with context.ledger.write() as connection:
            now = state_of(connection, known.version_no)
            if now != from_state:
                raise NotInState(settings.version, now, from_state)
            cause = context.cause(reason, f"{to_state} by command")
            move_version(
                connection,
                context.ledger.dialect,
                known.version_no,
                from_state,
                to_state,
                cause,
            )
    output.say(f"{settings.version} is {to_state}.")
    return 0
