"""The sensor `new_processing_versions`: files become partitions, broken ones are told once."""

from __future__ import annotations

import logging
from pathlib import Path

import dagster as dg
import pytest

from pipeline_assets.automation.version_sensor import new_processing_versions
from pipeline_assets.expected_errors import EXPECTED_ERRORS
from resources.context_resource import ContextOpening, ContextResource
from resources.settings import Settings, load_settings
from tests.integration.replay.support import ONE, TWO, write_specs


@pytest.fixture
def place(tmp_path: Path) -> Settings:
    write_specs(tmp_path / "specs")
    return load_settings(state=tmp_path / "state", specs=tmp_path / "specs")


def tick(
    settings: Settings, instance: dg.DagsterInstance, cursor: str | None = None
) -> tuple[list[str], str, str]:
    """The keys that are asked for, the cursor, and what the tick says."""
    resource = ContextResource(opening=ContextOpening(settings, EXPECTED_ERRORS))
    with dg.build_sensor_context(
        instance=instance, cursor=cursor, resources={"tallybook": resource}
    ) as context:
        found = new_processing_versions(context)
    assert isinstance(found, dg.SensorResult)
    keys = [
        key for request in found.dynamic_partitions_requests or () for key in request.partition_keys
    ]
    assert not found.run_requests
    assert found.skip_reason is not None
    return keys, str(found.cursor), str(found.skip_reason.skip_message)


def test_new_files_become_partitions(place: Settings) -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        keys, cursor, told = tick(place, instance)
        assert {ONE, TWO, "manuals-baseline-2"} <= set(keys)
        assert told.startswith("new: ")
        instance.add_dynamic_partitions("processing_version", keys)
        assert tick(place, instance, cursor)[0] == []
        assert place.specs is not None
        text = (place.specs / f"{ONE}.yaml").read_text()
        (place.specs / "manuals-four-1.yaml").write_text(text.replace(ONE, "manuals-four-1"))
        assert tick(place, instance, cursor)[0] == ["manuals-four-1"]


def test_a_broken_file_is_told_once_for_each_content(
    place: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    assert place.specs is not None
    broken = place.specs / "manuals-broken-1.yaml"
    broken.write_text("key: manuals-broken-1\n")
    logging.getLogger("dagster").propagate = True
    with dg.DagsterInstance.ephemeral() as instance:
        keys, cursor, _ = tick(place, instance)
        assert "manuals-broken-1" not in keys
        assert ONE in keys
        instance.add_dynamic_partitions("processing_version", keys)
        _, again, told = tick(place, instance, cursor)
        assert again == cursor
        assert told.endswith("1 cannot be used, none is new")
        broken.unlink()
        _, cursor, told = tick(place, instance, cursor)
        assert cursor == "{}"
        assert told.endswith("files, none is new")
    del caplog


def test_a_folder_that_cannot_be_listed_takes_nothing_away(place: Settings) -> None:
    elsewhere = place.model_copy(update={"specs": place.state_folder / "nowhere"})
    with dg.DagsterInstance.ephemeral() as instance:
        keys, _, told = tick(elsewhere, instance)
    assert keys == []
    assert told == "1 files, 1 cannot be used, none is new"
