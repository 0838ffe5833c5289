"""The asset `source_documents` over several sources: what is scanned, and what is told of it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import msgspec
import pytest
import yaml

from partitions.definition import register
from pipeline_assets.definitions import build_definitions
from pipeline_assets.ingest.asset import source_documents
from resources.context import open_context
from resources.ledger.source_snapshots import newest_digests
from resources.settings import Settings, load_settings
from tests.support.small_shop import KEY


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as instance:
        register(instance, [KEY])
        yield instance


@pytest.fixture
def declared(tmp_path: Path) -> Settings:
    """Return settings of two sources, each of a workload of its own."""
    for name in ("manuals", "letters"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_text(name)
    sources = {
        "manuals": {"kind": "folder", "path": "manuals", "workload": "equipment_manuals"},
        "letters": {"kind": "folder", "path": "letters", "workload": "letters"},
    }
    (tmp_path / "sources.yaml").write_text(yaml.safe_dump({"sources": sources}))
    return load_settings(state=tmp_path / "state", sources=tmp_path / "sources.yaml")


def scan(
    settings: Settings,
    instance: dg.DagsterInstance,
    *,
    partition: str | None = None,
    **config: object,
) -> dg.ExecuteInProcessResult:
    """Materialise `source_documents` alone, as a run of one version or of none."""
    definitions = build_definitions(settings)
    return dg.materialize(
        [source_documents],
        instance=instance,
        resources=definitions.resources or {},
        run_config={"ops": {"source_documents": {"config": config}}},
        tags=None if partition is None else {"dagster/partition": partition},
        raise_on_error=False,
    )


def told(result: dg.ExecuteInProcessResult) -> dict[str, object]:
    (event,) = result.asset_materializations_for_node("source_documents")
    return {key: value.value for key, value in event.metadata.items()}


def names(result: dg.ExecuteInProcessResult) -> list[object]:
    records = told(result)["sources"]
    assert isinstance(records, dg.TableMetadataValue)
    return [record.data["source"] for record in records.records]


def version(result: dg.ExecuteInProcessResult) -> str:
    (event,) = result.asset_materializations_for_node("source_documents")
    return (event.tags or {})["dagster/data_version"]


def test_a_run_of_a_version_scans_the_sources_of_its_workload(
    declared: Settings, instance: dg.DagsterInstance
) -> None:
    one = scan(declared, instance, partition=KEY)
    assert names(one) == ["manuals"]
    assert (told(one)["documents"], told(one)["added"]) == (1, 1)
    both = scan(declared, instance)
    assert names(both) == ["letters", "manuals"]
    assert (told(both)["documents"], told(both)["added"]) == (2, 1)
    assert version(one) != version(both)
    with open_context(declared) as context:
        known = msgspec.json.encode(newest_digests(context.ledger))
    assert version(both) == hashlib.sha256(known).hexdigest()
    again = scan(declared, instance, partition=KEY)
    assert version(again) == version(both), "of every source that is known"


def test_what_a_scan_may_be_told(declared: Settings, instance: dg.DagsterInstance) -> None:
    waiting = scan(declared, instance, only="letters", settle_seconds=3600)
    assert names(waiting) == ["letters"]
    assert (told(waiting)["documents"], told(waiting)["left alone until settled"]) == (0, 1)
    unknown = scan(declared, instance, only="nobody")
    assert not unknown.success
    failure = unknown.failure_data_for_node("source_documents")
    assert failure is not None
    assert failure.user_failure_data is not None
    assert "declared are letters, manuals" in (failure.user_failure_data.description or "")
