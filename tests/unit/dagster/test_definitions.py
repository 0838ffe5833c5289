"""What Dagster is given: specs as a snapshot, so that no key, owner or check changes unseen."""

from __future__ import annotations

import importlib
import warnings
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml
from syrupy.assertion import SnapshotAssertion

from partitions.definition import PROCESSING_VERSIONS
from pipeline_assets.accept.asset import STAGING_COLUMNS
from pipeline_assets.accept.family_findings import FAMILIES
from pipeline_assets.automation.jobs import MAX_RUNTIME_SECONDS
from pipeline_assets.automation.sensors import INTERVAL_SECONDS
from pipeline_assets.collect.asset import COLLECTED_COLUMNS
from pipeline_assets.definitions import ASSETS, build_definitions
from pipeline_assets.ingest.asset import TEXT_COLUMNS
from pipeline_assets.prepare.asset import MANIFEST_COLUMNS
from resources.contracts import COLLECTED, MANIFEST, PARSED_TEXT, STAGING, FrameContract
from resources.settings import Settings, load_settings


@pytest.fixture
def definitions(tmp_path: Path) -> dg.Definitions:
    return build_definitions(load_settings(state=tmp_path))


def described(spec: dg.AssetSpec) -> dict[str, Any]:
    return {
        "key": spec.key.to_user_string(),
        "deps": [dep.asset_key.to_user_string() for dep in spec.deps],
        "group": spec.group_name,
        "kinds": sorted(spec.kinds),
        "owners": list(spec.owners),
        "code_version": spec.code_version,
        "partitions": None if spec.partitions_def is None else "processing_version",
        "columns": [column.name for column in spec.metadata["dagster/column_schema"].columns],
    }


def test_asset_specs(definitions: dg.Definitions, snapshot: SnapshotAssertion) -> None:
    specs = {spec.key: spec for spec in definitions.resolve_all_asset_specs()}
    assert len(specs) == len(ASSETS)
    assert [described(specs[asset.key]) for asset in ASSETS] == snapshot


def test_check_specs(definitions: dg.Definitions, snapshot: SnapshotAssertion) -> None:
    specs = [
        {
            "asset": spec.asset_key.to_user_string(),
            "name": spec.name,
            "blocking": spec.blocking,
            "described": bool(spec.description),
        }
        for check in definitions.asset_checks or ()
        if isinstance(check, dg.AssetChecksDefinition)
        for spec in check.check_specs
    ]
    assert specs == snapshot


def test_every_asset_is_described_and_names_who_looks_after_it(
    definitions: dg.Definitions,
) -> None:
    for spec in definitions.resolve_all_asset_specs():
        assert len(spec.description or "") > 40, spec.key
        assert spec.owners, spec.key


def test_checks_are_partitioned_like_their_assets(definitions: dg.Definitions) -> None:
    """An unpartitioned check lets one version's good result stand for another's bad one."""
    for check in definitions.asset_checks or ():
        assert isinstance(check, dg.AssetChecksDefinition)
        assert all(spec.partitions_def == PROCESSING_VERSIONS for spec in check.check_specs)


def test_definitions_can_be_loaded(definitions: dg.Definitions) -> None:
    dg.Definitions.validate_loadable(definitions)


def test_job_holds_every_asset_and_check(definitions: dg.Definitions) -> None:
    job = definitions.resolve_job_def("process_version")
    assert job.asset_layer.selected_asset_keys == {asset.key for asset in ASSETS}
    assert len(job.asset_layer.asset_graph.asset_check_keys) == 4 + len(FAMILIES)
    assert job.executor_def == dg.in_process_executor
    assert job.partitions_def == PROCESSING_VERSIONS
    assert job.run_tags["dagster/max_runtime"] == str(MAX_RUNTIME_SECONDS)


def test_second_job_holds_what_follows_the_frozen_manifest(definitions: dg.Definitions) -> None:
    """A run of the sensor never scans, parses or freezes anything."""
    job = definitions.resolve_job_def("advance_version")
    names = [asset.key.to_user_string() for asset in ASSETS]
    after = names[names.index("manifest") + 1 :]
    assert {key.to_user_string() for key in job.asset_layer.selected_asset_keys} == set(after)
    assert job.executor_def == dg.in_process_executor
    assert job.partitions_def == PROCESSING_VERSIONS
    assert job.run_tags["dagster/max_runtime"] == str(MAX_RUNTIME_SECONDS)
    assert {found.name for found in definitions.jobs or ()} == {
        "process_version",
        "advance_version",
        "reconcile_versions",
        "repair_archive",
        "replay_version",
        "retry_version",
        "stuck_work",
    }


def test_sensor_asks_for_the_second_job_and_is_off_until_switched_on(
    definitions: dg.Definitions,
) -> None:
    named = {sensor.name: sensor for sensor in definitions.sensors or ()}
    sensor = named["provider_batch_monitor"]
    assert isinstance(sensor, dg.SensorDefinition)
    assert sensor.job_name == "advance_version"
    assert sensor.default_status == dg.DefaultSensorStatus.STOPPED
    assert sensor.minimum_interval_seconds == INTERVAL_SECONDS
    assert sensor.required_resource_keys == {"tallybook"}
    assert len(sensor.description or "") > 40


def test_nothing_but_the_one_preview_warning_is_silenced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pipeline_assets.collect import checks

    def noisy() -> list[dg.AssetChecksDefinition]:
        warnings.warn("something else", dg.PreviewWarning, stacklevel=1)
        return []

    monkeypatch.setattr(checks, "make_checks", noisy)
    with pytest.warns(dg.PreviewWarning, match="something else"):
        build_definitions(load_settings(state=tmp_path))


def test_module_defines_what_workspace_loads(repository: Path) -> None:
    workspace = yaml.safe_load((repository / "workspace.yaml").read_text())
    (target,) = [entry["python_module"] for entry in workspace["load_from"]]
    module = importlib.import_module(target["module_name"])
    assert isinstance(module.defs, dg.Definitions)
    assert target["location_name"] == "tallybook"


def test_password_of_the_ledger_is_not_in_the_definitions(tmp_path: Path) -> None:
    settings = Settings(
        state=tmp_path, ledger_url="postgresql://reader:open-sesame@localhost/ledger"
    )
    definitions = build_definitions(settings)
    shown = definitions.get_repository_def().get_top_level_resources()["tallybook"]
    assert "open-sesame" not in str(shown.config_schema.default_value)


@pytest.mark.parametrize(
    ("columns", "contract"),
    [
        pytest.param(TEXT_COLUMNS, PARSED_TEXT, id="parsed_text"),
        pytest.param(MANIFEST_COLUMNS, MANIFEST, id="manifest"),
        pytest.param(COLLECTED_COLUMNS, COLLECTED, id="collected"),
        pytest.param(STAGING_COLUMNS, STAGING, id="staging"),
    ],
)
def test_column_schema_is_the_frame_contract(
    columns: dg.TableSchema, contract: FrameContract
) -> None:
    assert {column.name: column.type for column in columns.columns} == {
        name: str(dtype) for name, dtype in contract.schema.items()
    }
    assert all(column.description for column in columns.columns)
