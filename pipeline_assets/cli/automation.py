"""`tallybook automation`: what Dagster does by itself, and the switches of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from pipeline_assets.cli.options import JsonOption, StateOption, make_settings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import dagster as dg

    from pipeline_assets.automation.switches import Definition, Switch
    from resources.settings import Settings

automation_app = typer.Typer(
    help="Show what runs by itself, and switch it on or off.", no_args_is_help=True
)
NamesArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[NAME]...",
        help="Sensors or schedules, as `automation status` names them [default: every one].",
        show_default=False,
    ),
]
DAEMONS = ("SENSOR", "SCHEDULER")
"""Dagster's daemons that tick; `dagster dev` runs them."""
HEARTBEAT_SECONDS = 120
NOT_RUNNING = (
    "Nothing ticks now: Dagster's daemon does not run on this state folder. Start it with "
    "`make ui`, or see docs/automation.md for a server."
)


@automation_app.command("status")
def status_command(state: StateOption = None, json: JsonOption = False) -> int:
    """Show each sensor and schedule: what it does, its last tick, and its last error."""
    from pipeline_assets.automation.switches import read_switches
    from pipeline_assets.cli import output
    from pipeline_assets.cli.dagster_instance import instance_home, open_instance, told

    settings = make_settings(state=state)
    with open_instance(settings) as instance, told(instance_home(settings)):
        switches = read_switches(instance, _definitions(settings))
        ticking = _is_ticking(instance)
    if json:
        output.emit_json(
            {"daemon": ticking, "automation": [_for_machines(each) for each in switches]}
        )
        return 0
    _print(switches)
    if not ticking and any(each.on for each in switches):
        output.say(NOT_RUNNING)
    return 0


@automation_app.command("on")
def on_command(names: NamesArgument = None, state: StateOption = None) -> int:
    """Switch automation on, all of it or what is named; Dagster's daemon does the rest."""
    return _switch(names, make_settings(state=state), on=True)


@automation_app.command("off")
def off_command(names: NamesArgument = None, state: StateOption = None) -> int:
    """Switch automation off, all of it or what is named; runs under way go on."""
    return _switch(names, make_settings(state=state), on=False)


def _switch(names: Sequence[str] | None, settings: Settings, *, on: bool) -> int:
    import time

    from pipeline_assets.automation.switches import AUTOMATION, NoSuchSwitch, turn
    from pipeline_assets.cli import output
    from pipeline_assets.cli.dagster_instance import instance_home, open_instance, told

    wanted = list(dict.fromkeys(names or AUTOMATION))
    for name in wanted:
        if name not in AUTOMATION:
            raise NoSuchSwitch(name)
    definitions = _definitions(settings)
    with open_instance(settings) as instance, told(instance_home(settings)):
        changed = [
            name for name in wanted if turn(instance, definitions[name], on=on, now=time.time())
        ]
        ticking = _is_ticking(instance)
    word = "on" if on else "off"
    if changed:
        output.say(f"Switched {word}: {', '.join(changed)}.")
    left = [name for name in wanted if name not in changed]
    if left:
        output.say(f"Were {word} before: {', '.join(left)}.")
    if on and not ticking:
        output.say(NOT_RUNNING)
    return 0


def _definitions(settings: Settings) -> Mapping[str, Definition]:
    """The sensors and schedules of automation, by name."""
    import dagster as dg

    from pipeline_assets.definitions import build_definitions

    definitions = build_definitions(settings)
    found = [*(definitions.sensors or ()), *(definitions.schedules or ())]
    return {
        each.name: each
        for each in found
        if isinstance(each, dg.SensorDefinition | dg.ScheduleDefinition)
    }


def _is_ticking(instance: dg.DagsterInstance) -> bool:
    """Did both daemons that tick show a sign of life just now?"""
    import time

    beats = instance.get_daemon_heartbeats()
    return all(
        name in beats and beats[name].timestamp > time.time() - HEARTBEAT_SECONDS
        for name in DAEMONS
    )


def _for_machines(switch: Switch) -> dict[str, Any]:
    return {**vars(switch), "last_tick": _moment(switch)}


def _moment(switch: Switch) -> str | None:
    from datetime import UTC, datetime

    from resources.clock import to_text

    if switch.last_tick is None:
        return None
    return to_text(datetime.fromtimestamp(switch.last_tick, UTC))


def _print(switches: Sequence[Switch]) -> None:
    from pipeline_assets.cli import output

    output.table(
        "Automation",
        ("name", "kind", "is", "last tick", "outcome"),
        (
            (
                each.name,
                each.kind,
                "on" if each.on else "off",
                output.local(_moment(each)) or "never",
                each.outcome or "",
            )
            for each in switches
        ),
    )
    for each in switches:
        output.say(f"{each.name}: {each.meaning}")
        if each.error is not None:
            output.say(f"  its last tick failed: {each.error}")
    if not any(each.on for each in switches):
        output.say("Everything is off. Next: tallybook automation on")
