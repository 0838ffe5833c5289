"""The switches of automation: every sensor and schedule that is off in a fresh checkout.

Belongs here: their names, and reading and changing their state in a Dagster instance, as the
switch of the user interface does. Does not belong here: what they do, and the command line
(`cli/automation.py`).

Dagster keeps a switch under the code location, the repository and the name. The location's name is
the one in `workspace.yaml`; another one would be another switch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import dagster as dg
from dagster._core.definitions.run_request import InstigatorType
from dagster._core.definitions.selector import InstigatorSelector
from dagster._core.remote_origin import RegisteredCodeLocationOrigin, RemoteRepositoryOrigin
from dagster._core.scheduler.instigation import (
    InstigatorState,
    InstigatorStatus,
    ScheduleInstigatorData,
    SensorInstigatorData,
    TickStatus,
)

LOCATION = "tallybook"
REPOSITORY = "__repository__"
AUTOMATION = (
    "new_source_files",
    "new_processing_versions",
    "provider_batch_monitor",
    "retry_due",
    "hourly_reconciliation",
    "stuck_work_alerts",
)
"""What `tallybook automation on` switches on; what sends values to another system is not here."""

Definition = dg.SensorDefinition | dg.ScheduleDefinition


class NoSuchSwitch(LookupError):
    """A name that no switch of automation has."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"automation has no {name!r}; expected one of {', '.join(AUTOMATION)}. Nothing was "
            "switched."
        )


@dataclass(frozen=True)
class SensorState:
    """A sensor's switch and memory.

    Attributes:
        on: is it on?
        since: since when, seconds since 1970; 0 where that is not kept.
        cursor: what its last tick remembered.
    """

    on: bool
    since: float
    cursor: str | None


@dataclass(frozen=True)
class Switch:
    """A sensor or schedule as it stands.

    Attributes:
        name: its name.
        kind: sensor or schedule.
        on: is it on?
        meaning: what it does.
        last_tick: when it came last, seconds since 1970; None where it never did.
        outcome: what came of that: started (asked for runs), skipped, failed.
        error: what went wrong; None where nothing did.
    """

    name: str
    kind: Literal["sensor", "schedule"]
    on: bool
    meaning: str
    last_tick: float | None = None
    outcome: str | None = None
    error: str | None = None


def read_switches(
    instance: dg.DagsterInstance, definitions: Mapping[str, Definition]
) -> list[Switch]:
    """Every switch of automation, in the order of `AUTOMATION`."""
    return [_read(instance, definitions[name]) for name in AUTOMATION]


def turn(instance: dg.DagsterInstance, definition: Definition, *, on: bool, now: float) -> bool:
    """Switch one on or off, and say whether that changed anything.

    Args:
        instance: where the switch is kept.
        definition: the sensor or schedule.
        on: which way.
        now: seconds since 1970; a schedule owes no tick from before.
    """
    name = definition.name
    stored = _stored(instance, name)
    kind = _type_of(definition)
    if stored is not None and stored.instigator_type != kind:
        # A schedule of a sensor's name from an earlier release: its memory means nothing here.
        instance.delete_instigator_state(stored.instigator_origin_id, stored.selector_id)
        stored = None
    if (stored is not None and stored.status == InstigatorStatus.RUNNING) is on:
        return False
    status = InstigatorStatus.RUNNING if on else InstigatorStatus.STOPPED
    if stored is not None:
        state = stored.with_status(status)
        instance.update_instigator_state(state.with_data(_data(definition, stored, now)))
    else:
        origin = RemoteRepositoryOrigin(
            code_location_origin=RegisteredCodeLocationOrigin(LOCATION),
            repository_name=REPOSITORY,
        ).get_instigator_origin(name)
        instance.add_instigator_state(
            InstigatorState(origin, kind, status, _data(definition, None, now))
        )
    return True


def sensor_state(instance: dg.DagsterInstance, name: str) -> SensorState | None:
    """The switch and the memory of a sensor; None where it was never switched."""
    stored = _stored(instance, name)
    if stored is None or not isinstance(stored.instigator_data, SensorInstigatorData):
        return None
    data = stored.instigator_data
    return SensorState(stored.is_running, data.last_sensor_start_timestamp or 0.0, data.cursor)


def _stored(instance: dg.DagsterInstance, name: str) -> InstigatorState | None:
    # The first argument is asked only by storages of Dagster before 1.0.
    return instance.get_instigator_state("", _selector(name))


def _selector(name: str) -> str:
    return InstigatorSelector(
        location_name=LOCATION, repository_name=REPOSITORY, name=name
    ).get_id()


def _type_of(definition: Definition) -> InstigatorType:
    if isinstance(definition, dg.ScheduleDefinition):
        return InstigatorType.SCHEDULE
    return InstigatorType.SENSOR


def _data(
    definition: Definition, stored: InstigatorState | None, now: float
) -> SensorInstigatorData | ScheduleInstigatorData:
    if isinstance(definition, dg.ScheduleDefinition):
        return ScheduleInstigatorData(definition.cron_schedule, start_timestamp=now)
    if stored is not None and isinstance(stored.instigator_data, SensorInstigatorData):
        return stored.instigator_data.with_sensor_start_timestamp(now)
    return SensorInstigatorData(
        min_interval=definition.minimum_interval_seconds,
        last_sensor_start_timestamp=now,
        sensor_type=definition.sensor_type,
    )


def _read(instance: dg.DagsterInstance, definition: Definition) -> Switch:
    name = definition.name
    stored = _stored(instance, name)
    kind = "schedule" if isinstance(definition, dg.ScheduleDefinition) else "sensor"
    found = Switch(
        name,
        kind,
        stored is not None and stored.status == InstigatorStatus.RUNNING,
        definition.description or "",
    )
    ticks = instance.get_ticks("", _selector(name), limit=2)
    over = [tick for tick in ticks if tick.status != TickStatus.STARTED]
    if not over:
        return found
    tick = over[0]
    error = None if tick.error is None else _told(tick.error)
    return Switch(
        found.name,
        found.kind,
        found.on,
        found.meaning,
        last_tick=tick.timestamp,
        outcome="started" if tick.status == TickStatus.SUCCESS else tick.status.value.lower(),
        error=error,
    )


def _told(error: object) -> str:
    """The message of the innermost cause, in a line: what people are meant to read."""
    while getattr(error, "cause", None) is not None:
        error = error.cause  # pyright: ignore[reportAttributeAccessIssue]
    return " ".join(str(getattr(error, "message", error)).split())
