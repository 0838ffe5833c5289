"""The sensor that tells the outlet: what it says of a tick, and that it is off at first."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
from pydantic import SecretStr

from pipeline_assets.automation.outlet_sensor import SENSOR_SECONDS, outlet_sender
from pipeline_assets.definitions import build_definitions
from pipeline_assets.expected_errors import EXPECTED_ERRORS
from resources.context import open_context
from resources.context_resource import ContextOpening, ContextResource
from resources.settings import Settings, load_settings
from tests.support.archive_shelf import Shelf
from tests.support.clock import FrozenClock
from tests.support.outlet_receiver import outlet_receiver


def tick(settings: Settings) -> str:
    resource = ContextResource(opening=ContextOpening(settings, EXPECTED_ERRORS))
    with dg.build_sensor_context(resources={"tallybook": resource}) as context:
        found = outlet_sender(context)
    assert isinstance(found, dg.SkipReason)
    return found.skip_message or ""


def test_without_an_outlet_nothing_is_opened(tmp_path: Path) -> None:
    assert tick(load_settings(state=tmp_path / "state")) == "no outlet is configured"
    assert not (tmp_path / "state").exists()


def test_a_tick_tells_what_is_due(tmp_path: Path) -> None:
    with outlet_receiver() as receiver:
        settings = load_settings(state=tmp_path, outlet_webhook_url=SecretStr(receiver.url))
        with open_context(settings) as context:
            shelf = Shelf(context, FrozenClock())
            shelf.put("a", "a")
            shelf.put("b", "b")
        receiver.answer = lambda number, _message: 422 if number == 1 else 204
        assert tick(settings) == "webhook: 1 delivered, 1 refused"
        assert tick(settings) == "webhook: 0 delivered"
        assert len(receiver.bodies) == 2


def test_it_is_off_until_somebody_switches_it_on(tmp_path: Path) -> None:
    definitions = build_definitions(load_settings(state=tmp_path))
    sensors = {sensor.name: sensor for sensor in definitions.sensors or ()}
    sensor = sensors["outlet_sender"]
    assert isinstance(sensor, dg.SensorDefinition)
    assert sensor.default_status == dg.DefaultSensorStatus.STOPPED
    assert sensor.minimum_interval_seconds == SENSOR_SECONDS
    assert sensor.required_resource_keys == {"tallybook"}
