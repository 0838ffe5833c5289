"""`tallybook settings`, `hold` and `release`: what an operator may change without a new version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from pipeline_assets.cli.options import (
    JsonOption,
    StateOption,
    VersionOption,
    make_settings,
    open_existing,
)

if TYPE_CHECKING:
    from resources.context import Context

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
    from pipeline_assets.cli import output
    from pipeline_assets.known_version import known_version
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
    from pipeline_assets.cli import output
    from pipeline_assets.known_version import known_version
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
    """Stop new submissions of a version; what is under way goes on.

    A hold that would end by itself gives way to this one, which ends only by `release`.
    """
    from pipeline_assets.cli import output
    from pipeline_assets.known_version import known_version
    from pipeline_assets.recovery.holds import hold

    settings = make_settings(state=state, version=version)
    with open_existing(settings) as context:
        number = known_version(context, settings.version).version_no
        if not hold(context, number, "operator", reason):
            raise NotInState(settings.version, _state(context, number), "active")
    output.say(f"{settings.version} is held.")
    return 0


def release_command(
    reason: ReasonOption, version: VersionOption = None, state: StateOption = None
) -> int:
    """Let a held version submit again, whatever it is held for."""
    from pipeline_assets.cli import output
    from pipeline_assets.known_version import known_version
    from pipeline_assets.recovery.holds import release

    settings = make_settings(state=state, version=version)
    with open_existing(settings) as context:
        number = known_version(context, settings.version).version_no
        if not release(context, number, None, reason):
            raise NotInState(settings.version, _state(context, number), "held")
    output.say(f"{settings.version} is active.")
    return 0


class NotInState(Exception):
    """A version is not in the state that a wish starts from."""

    def __init__(self, key: str, state: str, wanted: str) -> None:
        super().__init__(f"{key} is {state}; expected one that is {wanted}. Nothing was changed.")


def _state(context: Context, version_no: int) -> str:
    """The version's state with what it is held for."""
    from pipeline_assets.recovery.holds import hold_of
    from resources.ledger.versions import state_of

    with context.ledger.read() as connection:
        held = hold_of(connection, version_no)
        if held is None:
            return state_of(connection, version_no)
    return f"held for {held.kind} since {held.since} ({held.reason})"
