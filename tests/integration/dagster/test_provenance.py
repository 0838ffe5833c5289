"""Where each materialisation comes from: the record on it, and the chain of data versions."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import dagster as dg
import pytest

from partitions.definition import register
from pipeline_assets.definitions import ASSETS, build_definitions
from pipeline_assets.ingest.asset import source_documents
from pipeline_assets.provenance.record import CONTRACT_VERSION, KEY, release
from resources.context import open_context
from resources.ledger.versions import find
from resources.settings import Settings
from tests.support.materialise import Finished, materialise
from tests.support.small_shop import KEY as VERSION

MOVED: dict[str, object] = {"source_documents": {"config": {"source_moved": True}}}
MEMBERS = {
    "contract_version",
    "asset",
    "processing_version",
    "workload",
    "spec_digest",
    "code_version",
    "release",
    "ledger_id",
    "run_id",
    "data_version",
    "inputs",
    "counts",
    "replay_id",
    "made_at",
}
CHAIN = (
    "source_documents",
    "parsed_documents",
    "manifest",
    "provider_batches",
    "provider_results",
    "validated_staging",
    "published_archive",
)
EDGES = [
    (spec.key.to_user_string(), dep.asset_key.to_user_string())
    for asset in ASSETS
    for spec in asset.specs
    for dep in spec.deps
]
CODE_VERSIONS = {
    spec.key.to_user_string(): spec.code_version for asset in ASSETS for spec in asset.specs
}
UNPARTITIONED = {asset.key.to_user_string() for asset in ASSETS if asset.partitions_def is None}


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as instance:
        register(instance, [VERSION])
        yield instance


def names_of_assets() -> list[str]:
    definitions = build_definitions()
    return sorted(
        spec.key.to_user_string()
        for spec in definitions.resolve_all_asset_specs()
        if spec.group_name == "tallybook"
    )


def made(result: dg.ExecuteInProcessResult, name: str) -> dg.AssetMaterialization:
    (event,) = result.asset_materializations_for_node(name)
    return event


def record(result: dg.ExecuteInProcessResult, name: str) -> dict[str, Any]:
    value = made(result, name).metadata[KEY].value
    assert isinstance(value, dict)
    return value


def data_version(result: dg.ExecuteInProcessResult, name: str) -> str:
    return (made(result, name).tags or {})["dagster/data_version"]


@pytest.mark.parametrize("name", names_of_assets())
def test_every_asset_has_its_record(finished: Finished, name: str) -> None:
    result = finished.result
    told = record(result, name)
    assert set(told) == MEMBERS
    assert told["contract_version"] == CONTRACT_VERSION
    assert told["asset"] == name
    assert told["run_id"] == result.run_id
    assert told["data_version"] == data_version(result, name)
    assert told["processing_version"] == (None if name in UNPARTITIONED else VERSION)
    assert told["workload"] == "equipment_manuals"
    assert told["code_version"] == CODE_VERSIONS[name]
    assert told["release"] == release()
    assert told["replay_id"] is None
    assert told["made_at"].endswith("Z")
    assert all(type(count) is int for count in told["counts"].values())
    assert not any("/" in counted for counted in told["counts"])


def test_the_record_names_ledger_and_frozen_version(
    finished: Finished, after_a_run: Settings
) -> None:
    with open_context(after_a_run) as context:
        frozen = find(context.ledger, VERSION)
        assert frozen is not None
        told = {name: record(finished.result, name) for name in names_of_assets()}
        assert {one["ledger_id"] for one in told.values()} == {context.ledger.ledger_id}
        # The first run reads documents before it opens, and so freezes, its version.
        before = {"source_documents": None, "parsed_documents": None}
        assert {name: one["spec_digest"] for name, one in told.items()} == dict.fromkeys(
            told, frozen.digest
        ) | before


def test_counts_are_the_numbers_that_the_asset_reports(finished: Finished) -> None:
    told = record(finished.result, "validated_staging")["counts"]
    assert told["judged"] == 2
    assert told["accepted"] == 1
    assert "seconds" not in told


@pytest.mark.parametrize(("asset", "dep"), EDGES)
def test_each_edge_carries_the_data_version(finished: Finished, asset: str, dep: str) -> None:
    upstream = data_version(finished.result, dep)
    tags = made(finished.result, asset).tags or {}
    # Of a partitioned asset Dagster keeps the digest of the data versions that it read, here one.
    expected = upstream if dep in UNPARTITIONED else hashlib.sha256(upstream.encode()).hexdigest()
    assert tags[f"dagster/input_data_version/{dep}"] == expected
    assert {
        "asset": dep,
        "data_version": upstream,
        "partition": None if dep in UNPARTITIONED else VERSION,
    } in record(finished.result, asset)["inputs"]


def test_the_chain_leads_from_the_archive_to_the_sources(finished: Finished) -> None:
    seen = ["published_archive"]
    while inputs := record(finished.result, seen[-1])["inputs"]:
        (one,) = inputs
        seen.append(one["asset"])
    assert tuple(reversed(seen)) == CHAIN


def test_the_same_content_has_the_same_data_versions(
    finished: Finished, after_a_run: Settings, instance: dg.DagsterInstance
) -> None:
    again = materialise(after_a_run, instance, config=MOVED)
    for name in names_of_assets():
        first, second = record(finished.result, name), record(again, name)
        assert first["data_version"] == second["data_version"], name
        assert first["inputs"] == second["inputs"], name
        assert first["run_id"] != second["run_id"], name


def test_an_input_that_was_never_materialised_is_told_as_such(
    after_a_run: Settings, instance: dg.DagsterInstance
) -> None:
    result = materialise(after_a_run, instance, "published_archive")
    assert record(result, "published_archive")["inputs"] == [
        {"asset": "validated_staging", "data_version": None, "partition": VERSION}
    ]


@pytest.mark.slow
def test_a_replay_is_named_from_its_manifest_on(
    after_a_run: Settings, instance: dg.DagsterInstance
) -> None:
    config: dict[str, object] = {
        "manifest": {"config": {"replay_from": VERSION, "note": "operator: to see", "actor": "ada"}}
    }
    result = materialise(after_a_run, instance, config=MOVED | config)
    assert result.success
    told = {name: record(result, name) for name in names_of_assets()}
    replay = made(result, "manifest").metadata["replay"].value
    before = {"source_documents": None, "parsed_documents": None}
    assert {name: one["replay_id"] for name, one in told.items()} == dict.fromkeys(
        told, replay
    ) | before


def test_a_run_without_a_version_tells_of_no_workload(
    settings: Settings, instance: dg.DagsterInstance
) -> None:
    result = dg.materialize(
        [source_documents],
        instance=instance,
        resources=build_definitions(settings).resources or {},
    )
    told = record(result, "source_documents")
    assert (told["workload"], told["processing_version"], told["inputs"]) == (None, None, [])
