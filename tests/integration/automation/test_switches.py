"""Switches: everything is off at first, and on where somebody says so; Dagster itself agrees."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.scheduler.instigation import TickData, TickStatus
from dagster_shared.error import SerializableErrorInfo

from pipeline_assets.automation.switches import AUTOMATION, read_switches, sensor_state, turn
from pipeline_assets.definitions import build_definitions
from resources.settings import load_settings
from tests.support.command import one_json, tallybook

ON_FROM_THE_START = {"alert_sender", "run_failure_alert", "run_success_clears_alert"}
"""They tell people of failures: a switch that somebody has to find is how alerts stay unheard."""


@pytest.fixture(scope="module")
def definitions(tmp_path_factory: pytest.TempPathFactory) -> dg.Definitions:
    return build_definitions(load_settings(state=tmp_path_factory.mktemp("state")))


@pytest.fixture(scope="module")
def storage() -> Iterator[dg.DagsterInstance]:
    # An ephemeral one keeps no switches.
    with dg.instance_for_test() as found:
        yield found


@pytest.fixture
def instance(storage: dg.DagsterInstance) -> dg.DagsterInstance:
    """Return an instance without any switch."""
    for state in storage.all_instigator_state():
        storage.delete_instigator_state(state.instigator_origin_id, state.selector_id)
    return storage


def instigators(definitions: dg.Definitions) -> dict[str, Any]:
    found = [*(definitions.sensors or ()), *(definitions.schedules or ())]
    return {each.name: each for each in found}  # type: ignore[union-attr]


def test_everything_is_off_in_a_fresh_checkout(definitions: dg.Definitions) -> None:
    on = {
        name
        for name, each in instigators(definitions).items()
        if each.default_status.value == "RUNNING"
    }
    assert on == ON_FROM_THE_START
    assert set(AUTOMATION) | ON_FROM_THE_START | {"outlet_sender"} == set(instigators(definitions))


def test_every_one_says_what_it_does(definitions: dg.Definitions) -> None:
    for each in instigators(definitions).values():
        assert len(each.description or "") > 40, each.name


def test_on_and_off(definitions: dg.Definitions, instance: dg.DagsterInstance) -> None:
    each = instigators(definitions)
    assert not any(switch.on for switch in read_switches(instance, each))
    for name in AUTOMATION:
        assert turn(instance, each[name], on=True, now=5.0)
        assert not turn(instance, each[name], on=True, now=6.0), "it was on before"
    assert [switch.name for switch in read_switches(instance, each) if switch.on] == [*AUTOMATION]
    state = sensor_state(instance, "new_source_files")
    assert state is not None
    assert (state.on, state.since, state.cursor) == (True, 5.0, None)
    for name in AUTOMATION:
        assert turn(instance, each[name], on=False, now=7.0)
        assert not turn(instance, each[name], on=False, now=7.0)
    assert not any(switch.on for switch in read_switches(instance, each))


def test_the_last_tick_is_told_with_its_error(
    definitions: dg.Definitions, instance: dg.DagsterInstance
) -> None:
    each = instigators(definitions)
    turn(instance, each["retry_due"], on=True, now=1.0)
    (state,) = instance.all_instigator_state()
    inner = SerializableErrorInfo("the sources file cannot be used\n", [], "Failure")
    for second, status, error in (
        (2.0, TickStatus.SKIPPED, None),
        (3.0, TickStatus.FAILURE, SerializableErrorInfo("outside", [], "Wrapper", inner)),
        (4.0, TickStatus.STARTED, None),
    ):
        instance.create_tick(
            TickData(
                instigator_origin_id=state.instigator_origin_id,
                instigator_name="retry_due",
                instigator_type=state.instigator_type,
                status=status,
                timestamp=second,
                selector_id=state.selector_id,
                error=error,
            )
        )
    (told,) = [switch for switch in read_switches(instance, each) if switch.name == "retry_due"]
    assert (told.last_tick, told.outcome) == (3.0, "failure"), "the one under way is not over"
    assert told.error == "the sources file cannot be used"


def test_off_was_never_on(definitions: dg.Definitions, instance: dg.DagsterInstance) -> None:
    assert not turn(instance, instigators(definitions)["retry_due"], on=False, now=1.0)
    assert sensor_state(instance, "retry_due") is None


def test_the_switch_is_that_of_the_location_in_the_workspace(
    definitions: dg.Definitions, instance: dg.DagsterInstance
) -> None:
    turn(instance, instigators(definitions)["retry_due"], on=True, now=1.0)
    (state,) = instance.all_instigator_state()
    selector = state.origin.get_selector()
    assert (selector.location_name, selector.repository_name, selector.name) == (
        "tallybook",
        "__repository__",
        "retry_due",
    )


@pytest.mark.slow
def test_the_command(tmp_path: Path) -> None:
    def run(*words: str) -> tuple[int, str, str]:
        done = tallybook("automation", *words, "--state", tmp_path / "state", cwd=tmp_path)
        return done.returncode, done.stdout, done.stderr

    def on() -> set[str]:
        status, out, _ = run("status", "--json")
        assert status == 0
        found = one_json(out)
        assert found["daemon"] is False
        return {each["name"] for each in found["automation"] if each["on"]}

    assert on() == set()
    status, out, _ = run("on")
    assert status == 0
    assert out.startswith("Switched on: new_source_files, ")
    assert "daemon does not run" in out
    assert on() == set(AUTOMATION)
    assert run("off", "retry_due", "new_source_files")[0] == 0
    assert on() == set(AUTOMATION) - {"retry_due", "new_source_files"}
    status, out, err = run("on", "retry_due", "outlet_sender")
    assert (status, out) == (1, "")
    assert "automation has no 'outlet_sender'" in err
    assert "retry_due" not in on(), "nothing was switched"
    assert "Were off before" in run("off", "retry_due")[1]
    shown = run("status")[1]
    assert "provider_batch_monitor: Asks provider jobs" in shown
