"""The two schedules: which accounts are asked for, and which alerts come and go."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta

import dagster as dg
import msgspec
import pytest

from pipeline_assets.automation import stuck_job
from pipeline_assets.automation.new_files import Remembered
from pipeline_assets.automation.schedules import hourly_reconciliation, stuck_work_alerts
from pipeline_assets.automation.stuck_facts import report_facts, stuck_facts
from pipeline_assets.automation.stuck_job import look_for_stuck_work
from pipeline_assets.automation.switches import SensorState
from pipeline_assets.definitions import build_definitions
from pipeline_assets.expected_errors import EXPECTED_ERRORS
from pipeline_assets.recovery.holds import hold
from resources.context_resource import ContextOpening, ContextResource
from resources.ledger.alerts import open_alerts
from tests.integration.automation.support import Desk
from tests.integration.replay.support import ONE

DAY = timedelta(days=1)


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as found:
        yield found


@pytest.fixture(autouse=True)
def sensor_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stuck_job, "sensor_state", lambda *_: None)


def told(desk: Desk) -> list[tuple[str, str]]:
    return [(alert.kind, alert.subject) for alert in open_alerts(desk.context.ledger)]


def test_records_that_stand_still_are_told_once_and_cleared_when_they_move(
    desk: Desk, instance: dg.DagsterInstance
) -> None:
    desk.drop("pump.txt", "WP-100")
    desk.drop("fan.txt", "VF-20")
    desk.prepare()
    assert look_for_stuck_work(desk.context, instance) == ([], [])
    desk.clock.advance(DAY + timedelta(minutes=1))
    assert look_for_stuck_work(desk.context, instance) == ([ONE], [])
    (alert,) = open_alerts(desk.context.ledger)
    assert alert.message.startswith("records that do not move: 2 prepared; the oldest since 2030-")
    desk.clock.advance(DAY)
    assert look_for_stuck_work(desk.context, instance) == ([], [])
    assert [alert.times for alert in open_alerts(desk.context.ledger)] == [1]
    desk.go_on(ONE)
    assert look_for_stuck_work(desk.context, instance) == ([], [ONE])
    assert told(desk) == []


def test_a_held_version_is_told_by_its_hold_alone(desk: Desk, instance: dg.DagsterInstance) -> None:
    desk.drop("pump.txt", "WP-100")
    desk.prepare()
    hold(desk.context, desk.version(ONE).version_no, "operator", "not now")
    desk.clock.advance(9 * DAY)
    assert look_for_stuck_work(desk.context, instance) == ([], [])


def test_reviews_that_stay_open(desk: Desk, instance: dg.DagsterInstance) -> None:
    (desk.folder / "odd.txt").write_text("A sheet without anything that the rules look for.\n" * 9)
    desk.age(desk.folder / "odd.txt", 1_000)
    desk.process()
    waiting = sum(group.count for group in stuck_facts(desk.context).reviews)
    assert waiting == 1
    desk.clock.advance(7 * DAY + timedelta(minutes=1))
    look_for_stuck_work(desk.context, instance)
    assert ("reviews_aging", ONE) in told(desk)


@pytest.mark.parametrize(
    ("state", "looked", "silent"),
    [
        pytest.param(SensorState(True, 0.0, None), 30, False, id="looked-at"),
        pytest.param(SensorState(True, 0.0, None), 7_200, True, id="not-for-two-hours"),
        pytest.param(SensorState(True, 0.0, None), None, True, id="never"),
        pytest.param(SensorState(True, time.time(), None), None, False, id="just-switched-on"),
        pytest.param(SensorState(False, 0.0, None), 7_200, False, id="off"),
    ],
)
def test_sources_that_are_not_looked_at(
    desk: Desk,
    instance: dg.DagsterInstance,
    monkeypatch: pytest.MonkeyPatch,
    state: SensorState,
    looked: float | None,
    silent: bool,
) -> None:
    memory = {} if looked is None else {"shop": Remembered(looked_at=time.time() - looked)}
    given = SensorState(state.on, state.since, msgspec.json.encode(memory).decode())
    monkeypatch.setattr(stuck_job, "sensor_state", lambda *_: given)
    look_for_stuck_work(desk.context, instance)
    assert told(desk) == ([("source_silent", "shop")] if silent else [])


@pytest.mark.slow
def test_accounts_are_asked_for_until_they_are_up_to_date(desk: Desk) -> None:
    # A schedule's context needs an instance of its own on the disk.
    with dg.instance_for_test() as instance:
        ask_for_accounts(desk, instance)


def ask_for_accounts(desk: Desk, instance: dg.DagsterInstance) -> None:
    # Dagster writes by the machine's time, which is behind the test's.
    desk.clock.advance(timedelta(days=-9_000))

    def tick() -> list[str | None] | str | None:
        opening = ContextOpening(desk.context.settings, EXPECTED_ERRORS, clock=desk.clock)
        with dg.build_schedule_context(
            instance=instance, resources={"tallybook": ContextResource(opening=opening)}
        ) as context:
            found = hourly_reconciliation(context)
        if isinstance(found, dg.SkipReason):
            return found.skip_message
        assert isinstance(found, list)
        return [request.partition_key for request in found]

    assert tick() == "the accounts of all 0 active versions are up to date"
    desk.drop("pump.txt", "WP-100")
    desk.prepare()
    assert [(fact.key, fact.open_batches) for fact in report_facts(desk.context.ledger)] == [
        (ONE, 1)
    ]
    assert tick() == [ONE]
    assert instance.get_dynamic_partitions("processing_version") == [ONE]
    desk.go_on(ONE)
    assert [(fact.key, fact.open_batches) for fact in report_facts(desk.context.ledger)] == [
        (ONE, 0)
    ]
    assert tick() == [ONE], "it moved, and was never reported"
    job = build_definitions(desk.context.settings).resolve_job_def("reconcile_versions")
    assert job.execute_in_process(instance=instance, partition_key=ONE).success
    assert tick() == "the accounts of all 1 active versions are up to date"


@pytest.mark.slow
def test_the_jobs_run(desk: Desk, instance: dg.DagsterInstance) -> None:
    desk.drop("pump.txt", "WP-100")
    desk.process()
    definitions = build_definitions(desk.context.settings)
    instance.add_dynamic_partitions("processing_version", [ONE])
    job = definitions.resolve_job_def("reconcile_versions")
    assert job.execute_in_process(instance=instance, partition_key=ONE).success
    # An ephemeral instance keeps no switches, which is as if all were off.
    assert definitions.resolve_job_def("stuck_work").execute_in_process(instance=instance).success
    assert isinstance(stuck_work_alerts(dg.build_schedule_context()), dg.RunRequest)
