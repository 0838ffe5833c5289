"""The sensor `retry_due` and the decision behind it: which versions have retries that are due."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import dagster as dg
import pytest

from pipeline_assets.automation.busy import PARTITION_TAG
from pipeline_assets.automation.jobs import MAX_RUNTIME_SECONDS
from pipeline_assets.automation.pending import due_versions, pending_versions, run_key
from pipeline_assets.automation.sensors import INTERVAL_SECONDS, retry_due
from pipeline_assets.definitions import ASSETS, build_definitions
from pipeline_assets.expected_errors import EXPECTED_ERRORS
from pipeline_assets.ingest import parse_documents
from pipeline_assets.recovery.holds import hold, release
from resources.context import Context, open_context
from resources.context_resource import ContextOpening, ContextResource
from resources.ledger.schema import documents
from resources.settings import load_settings
from tests.integration.recovery.support import LONG, Retries
from tests.integration.stages.support import KEY, InProcessPool, Shop
from tests.support.clock import FrozenClock


@pytest.fixture
def context(tmp_path: Path, frozen_clock: FrozenClock, rng: random.Random) -> Iterator[Context]:
    (tmp_path / "documents").mkdir()
    settings = load_settings(
        state=tmp_path / "state",
        source=tmp_path / "documents",
        source_name="shop",
        parser_workers=1,
    )
    with open_context(settings, clock=frozen_clock, rng=rng) as opened:
        yield opened


@pytest.fixture
def retries(
    context: Context, frozen_clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> Retries:
    monkeypatch.setattr(parse_documents, "ParserPool", InProcessPool)
    shop = Shop(context.settings.source_folder, context)
    return Retries(shop, frozen_clock, monkeypatch)


def test_a_version_is_due_when_its_first_record_is(context: Context, retries: Retries) -> None:
    assert due_versions(context) == []
    retries.start(["busy", "busy"], ["good"], ["missing"])
    retries.step()
    retries.clock.advance(-timedelta(microseconds=1))
    assert due_versions(context) == []
    retries.clock.advance(LONG)
    (work,) = due_versions(context)
    assert (work.key, work.why) == (KEY, ("retry",))
    assert pending_versions(context) == ([], {}), "it is no work of the other sensor"
    now = context.clock()
    assert run_key(work, now) == run_key(due_versions(context)[0], now), "the same work once"
    retries.freeze()
    assert due_versions(context) == []
    retries.step()
    retries.clock.advance(LONG)
    (again,) = due_versions(context)
    assert again.mark != work.mark, "other work is another run"
    retries.again()
    assert due_versions(context) == []


def test_a_held_version_is_due_when_it_is_released(context: Context, retries: Retries) -> None:
    retries.start(["busy"])
    retries.step()
    retries.clock.advance(LONG)
    version = retries.shop.version()
    hold(context, version.version_no, "operator", "not now")
    assert due_versions(context) == []
    release(context, version.version_no, None, "now")
    assert [work.key for work in due_versions(context)] == [KEY]


def tick(context: Context, instance: dg.DagsterInstance) -> dg.SensorResult | dg.SkipReason:
    opening = ContextOpening(context.settings, EXPECTED_ERRORS, clock=context.clock)
    with dg.build_sensor_context(
        instance=instance, resources={"tallybook": ContextResource(opening=opening)}
    ) as given:
        found = retry_due(given)
    assert isinstance(found, dg.SensorResult | dg.SkipReason)
    return found


def test_the_sensor_asks_for_a_run_of_the_partition(context: Context, retries: Retries) -> None:
    retries.start(["busy"])
    retries.step()
    with dg.DagsterInstance.ephemeral() as instance:
        early = tick(context, instance)
        assert isinstance(early, dg.SkipReason)
        assert early.skip_message == "0 versions have retries due"
        retries.clock.advance(LONG)
        found = tick(context, instance)
        assert isinstance(found, dg.SensorResult)
        (request,) = found.run_requests or []
        assert request.partition_key == KEY
        assert request.tags["tallybook/why"] == "retry"
        assert request.tags["dagster/max_runtime"] == str(MAX_RUNTIME_SECONDS)
        assert instance.get_dynamic_partitions("processing_version") == [KEY]
        again = tick(context, instance)
        assert isinstance(again, dg.SensorResult)
        assert [one.run_key for one in again.run_requests or []] == [request.run_key]

        # While a run is at the version, it is left alone.
        job = build_definitions(context.settings).resolve_job_def("retry_version")
        run = instance.create_run_for_job(
            job, tags={PARTITION_TAG: KEY}, status=dg.DagsterRunStatus.STARTED
        )
        assert isinstance(tick(context, instance), dg.SkipReason)
        instance.delete_run(run.run_id)
        assert isinstance(tick(context, instance), dg.SensorResult)


def test_the_job_freezes_retries_and_goes_on(context: Context, retries: Retries) -> None:
    """It never looks for documents, nor freezes new ones."""
    retries.start(["busy"], ["good"])
    retries.step()
    retries.clock.advance(LONG)
    path = retries.shop.folder / "later.txt"
    path.write_text((retries.shop.folder / "m00.txt").read_text().replace("BG-000", "BG-700"))
    opening = ContextOpening(context.settings, EXPECTED_ERRORS, clock=context.clock)
    definitions = build_definitions(context.settings)
    with dg.DagsterInstance.ephemeral() as instance:
        instance.add_dynamic_partitions("processing_version", [KEY])
        job = definitions.resolve_job_def("retry_version")
        result = job.execute_in_process(
            instance=instance,
            partition_key=KEY,
            resources={"tallybook": ContextResource(opening=opening)},
        )
        assert result.success
        (made,) = result.asset_materializations_for_node("manifest")
    assert made.metadata["tried again"].value == 1
    assert made.metadata["retry manifest"].value == f"{KEY}-m2"
    assert made.metadata["tried again by path"].value == {"repeat": 1}
    assert retries.states() == ["published", "published"]
    assert [row["document_id"] for row in retries.shop.rows(documents)] == [
        "shop/m00.txt",
        "shop/m01.txt",
    ]
    assert due_versions(context) == []


def test_what_dagster_is_given(tmp_path: Path) -> None:
    definitions = build_definitions(load_settings(state=tmp_path))
    job = definitions.resolve_job_def("retry_version")
    names = [asset.key.to_user_string() for asset in ASSETS]
    wanted = set(names[names.index("manifest") :])
    assert {key.to_user_string() for key in job.asset_layer.selected_asset_keys} == wanted
    assert job.executor_def == dg.in_process_executor
    assert job.run_tags["dagster/max_runtime"] == str(MAX_RUNTIME_SECONDS)
    named = {sensor.name: sensor for sensor in definitions.sensors or ()}
    sensor = named["retry_due"]
    assert isinstance(sensor, dg.SensorDefinition)
    assert sensor.job_name == "retry_version"
    assert sensor.default_status == dg.DefaultSensorStatus.STOPPED
    assert sensor.minimum_interval_seconds == INTERVAL_SECONDS
    assert sensor.required_resource_keys == {"tallybook"}
    assert len(sensor.description or "") > 40
