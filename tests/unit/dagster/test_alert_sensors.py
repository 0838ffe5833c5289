"""The sensors of alerts: when a failed run is an alert, when it is over, and who is told."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from pydantic import SecretStr

from pipeline_assets.automation.alert_sensors import (
    RUNS_SECONDS,
    SEND_SECONDS,
    alert_sender,
    run_failure_alert,
    run_success_clears_alert,
)
from pipeline_assets.definitions import build_definitions
from pipeline_assets.expected_errors import EXPECTED_ERRORS
from resources.context import open_context
from resources.context_resource import PID_TAG, ContextOpening, ContextResource
from resources.ledger.alerts import Alert, open_alerts, raise_alert
from resources.settings import Settings, load_settings
from tests.support.alert_receivers import webhook_receiver

SECRET = "a line of a manual"


class World:
    """A state folder, a Dagster instance, and a job whose end a test chooses."""

    def __init__(self, settings: Settings, instance: dg.DagsterInstance) -> None:
        self.settings = settings
        self.instance = instance
        self.resource = ContextResource(opening=ContextOpening(settings, EXPECTED_ERRORS))
        self.fails = False
        self.cursors: dict[str, str] = {}

        @dg.op
        def work() -> None:
            if self.fails:
                raise ValueError(SECRET)

        @dg.job
        def process_version() -> None:
            work()

        @dg.job
        def another() -> None:
            work()

        self.jobs = {job.name: job for job in (process_version, another)}
        self.look()  # a sensor that starts looks ahead, not back

    def run(
        self,
        *,
        fails: bool,
        partition: str | None = "v-1",
        job: str = "process_version",
        ours: bool = True,
    ) -> dg.ExecuteInProcessResult:
        """A run that ended so; it is ours if our resource was opened in it."""
        self.fails = fails
        tags = {} if partition is None else {"dagster/partition": partition}
        tags |= {PID_TAG: "1"} if ours else {}
        return self.jobs[job].execute_in_process(
            instance=self.instance, tags=tags, raise_on_error=False
        )

    def tick(self, sensor: dg.SensorDefinition) -> None:
        """What the daemon does: the sensor sees the ends since its cursor."""
        with dg.build_sensor_context(
            instance=self.instance,
            cursor=self.cursors.get(sensor.name),
            resources={"tallybook": self.resource},
        ) as context:
            data = sensor.evaluate_tick(context)
        assert data.dagster_run_reactions is not None
        assert [reaction.error for reaction in data.dagster_run_reactions if reaction.error] == []
        assert data.cursor is not None
        self.cursors[sensor.name] = data.cursor

    def look(self, *, failures_first: bool = True) -> None:
        """One tick of both sensors, more than once: a tick may see one end at a time."""
        sensors = [run_failure_alert, run_success_clears_alert]
        for sensor in sensors if failures_first else sensors[::-1]:
            for _ in range(3):
                self.tick(sensor)

    def alerts(self) -> list[Alert]:
        """The open alerts."""
        with open_context(self.settings) as context:
            return open_alerts(context.ledger)

    def subjects(self) -> list[str]:
        """What the open alerts are about."""
        return [alert.subject for alert in self.alerts()]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield World(load_settings(state=tmp_path / "state"), instance)


def test_a_failed_run_is_an_alert_without_the_errors_text(world: World) -> None:
    result = world.run(fails=True)
    world.look()
    (alert,) = world.alerts()
    assert (alert.kind, alert.subject) == ("run_failed", "v-1/process_version")
    assert alert.message == f"run {result.run_id} failed in work"
    assert SECRET not in repr(alert)
    world.look()
    assert world.alerts() == [alert], "seen once"


def test_the_next_failure_renews_it_and_a_success_clears_it(world: World) -> None:
    world.run(fails=True)
    world.look()
    second = world.run(fails=True)
    world.look()
    (alert,) = world.alerts()
    assert (alert.times, second.run_id in alert.message) == (2, True)
    world.run(fails=False)
    world.look()
    assert world.alerts() == []


@pytest.mark.parametrize(
    ("partition", "job"),
    [
        pytest.param("v-2", "process_version", id="version"),
        pytest.param(None, "process_version", id="no-version"),
        pytest.param("v-1", "another", id="job"),
    ],
)
def test_a_success_of_another_one_clears_nothing(
    world: World, partition: str | None, job: str
) -> None:
    world.run(fails=True)
    world.run(fails=False, partition=partition, job=job)
    world.look()
    assert world.subjects() == ["v-1/process_version"]


def test_a_run_without_a_version_is_named_by_its_job(world: World) -> None:
    world.run(fails=True, partition=None)
    world.run(fails=False, partition="v-1")
    world.look()
    assert world.subjects() == ["process_version"]
    world.run(fails=False, partition=None)
    world.look()
    assert world.alerts() == []


def test_runs_of_others_on_the_same_instance_are_left_to_them(world: World) -> None:
    world.run(fails=True, job="another", ours=False)
    world.look()
    assert world.alerts() == []


def test_a_run_of_our_job_that_failed_before_it_was_marked_is_ours(world: World) -> None:
    world.run(fails=True, ours=False)
    world.look()
    assert world.subjects() == ["v-1/process_version"]


@pytest.mark.parametrize("failures_first", [True, False])
@pytest.mark.parametrize("ends", [(True, False), (False, True)], ids=["mended", "broken"])
def test_the_order_in_which_ends_are_seen_says_nothing(
    world: World, ends: tuple[bool, bool], failures_first: bool
) -> None:
    """Each sensor ticks on its own: a failure may be seen after the success that came later."""
    for fails in ends:
        world.run(fails=fails)
    world.look(failures_first=failures_first)
    assert world.subjects() == (["v-1/process_version"] if ends[-1] else [])


def send(settings: Settings) -> str:
    resource = ContextResource(opening=ContextOpening(settings, EXPECTED_ERRORS))
    with dg.build_sensor_context(resources={"tallybook": resource}) as context:
        found = alert_sender(context)
    assert isinstance(found, dg.SkipReason)
    return found.skip_message or ""


def test_without_a_channel_nothing_is_opened(tmp_path: Path) -> None:
    assert send(load_settings(state=tmp_path / "state")) == "no channel for alerts is configured"
    assert not (tmp_path / "state").exists()


def test_the_sender_tells_once(tmp_path: Path) -> None:
    with webhook_receiver() as webhook:
        settings = load_settings(state=tmp_path, alert_webhook_url=SecretStr(webhook.url))
        with open_context(settings) as context, context.ledger.write() as connection:
            raise_alert(connection, "incident", "job-1", "m", context.ledger.now())
        assert send(settings) == "webhook: 1 told, 0 left"
        assert send(settings) == "nothing to tell"
        assert webhook.told == [("incident", "job-1", "new")]


def test_the_sensors_are_on_from_the_start(tmp_path: Path) -> None:
    definitions = build_definitions(load_settings(state=tmp_path))
    sensors = {sensor.name: sensor for sensor in definitions.sensors or ()}
    for name, seconds in (
        ("alert_sender", SEND_SECONDS),
        ("run_failure_alert", RUNS_SECONDS),
        ("run_success_clears_alert", RUNS_SECONDS),
    ):
        sensor = sensors[name]
        assert isinstance(sensor, dg.SensorDefinition)
        assert sensor.default_status == dg.DefaultSensorStatus.RUNNING
        assert sensor.minimum_interval_seconds == seconds
        assert sensor.required_resource_keys == {"tallybook"}
        assert len(sensor.description or "") > 40


def test_a_secret_of_a_channel_is_not_in_the_definitions(tmp_path: Path) -> None:
    url = SecretStr("https://example.com/open-sesame")
    definitions = build_definitions(load_settings(state=tmp_path, alert_webhook_url=url))
    shown = definitions.get_repository_def().get_top_level_resources()["tallybook"]
    assert "open-sesame" not in str(shown.config_schema.default_value)
