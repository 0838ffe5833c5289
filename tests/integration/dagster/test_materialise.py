"""Materialising everything on a small folder, again without change, and publishing alone."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from sqlalchemy import Connection, text

from partitions.definition import register
from pipeline_assets.accept.checks import check_name
from pipeline_assets.accept.family_findings import FAMILIES
from pipeline_assets.definitions import ASSETS, build_definitions
from pipeline_assets.prepare.asset import NOTHING_TO_DO
from resources.context import Context, open_context
from resources.settings import Settings
from tests.support.materialise import Finished, materialise
from tests.support.small_shop import KEY

MOVED: dict[str, object] = {"source_documents": {"config": {"source_moved": True}}}
CHECKS = {
    "dispositions_add_up",
    "acceptance_boundary",
    *(check_name(family) for family in FAMILIES),
    "representations_complete",
    "every_document_has_one_outcome",
}


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as instance:
        register(instance, [KEY])
        yield instance


def failure_of(result: dg.ExecuteInProcessResult, step: str) -> str:
    data = result.failure_data_for_node(step)
    assert data is not None
    assert data.user_failure_data is not None, data.error
    return data.user_failure_data.description or ""


def metadata_of(result: dg.ExecuteInProcessResult, name: str) -> dict[str, object]:
    (event,) = result.asset_materializations_for_node(name)
    return {key: value.value for key, value in event.metadata.items()}


def data_versions(result: dg.ExecuteInProcessResult) -> dict[str, str]:
    return {
        event.asset_key.to_user_string(): (event.tags or {})["dagster/data_version"]
        for asset in ASSETS
        for event in result.asset_materializations_for_node(asset.key.to_user_string())
    }


def checks_of(result: dg.ExecuteInProcessResult) -> dict[str, bool]:
    return {check.check_name: check.passed for check in result.get_asset_check_evaluations()}


def states(connection: Connection) -> dict[str, int]:
    rows = connection.execute(text("SELECT state, COUNT(*) FROM record_state GROUP BY state"))
    return {str(state): int(count) for state, count in rows}


def states_of(settings: Settings) -> dict[str, int]:
    with open_context(settings) as context, context.ledger.read() as connection:
        return states(connection)


def tamper(settings: Settings, statement: str) -> None:
    with open_context(settings) as context, context.ledger.write() as connection:
        assert connection.execute(text(statement)).rowcount > 0


def test_everything_is_processed(finished: Finished) -> None:
    result = finished.result
    assert result.success
    assert checks_of(result) == dict.fromkeys(CHECKS, True)
    assert metadata_of(result, "source_documents")["documents"] == 3
    assert metadata_of(result, "manifest")["expected"] == 2
    assert metadata_of(result, "manifest")["excluded by reason"] == {"empty": 1}
    assert metadata_of(result, "validated_staging")["accepted"] == 1
    assert metadata_of(result, "published_archive")["published"] == 1
    report = metadata_of(result, "reconciliation_report")
    assert report["documents"] == 3
    assert report["states"] == {"awaiting_review": 1, "published": 1}
    assert report["violations"] == 0


def test_nothing_is_processed_twice(
    finished: Finished, after_a_run: Settings, instance: dg.DagsterInstance
) -> None:
    again = materialise(after_a_run, instance, config=MOVED)
    assert again.success
    assert checks_of(again) == dict.fromkeys(CHECKS, True)
    assert data_versions(again) == data_versions(finished.result)
    assert metadata_of(again, "manifest")["note"] == NOTHING_TO_DO
    assert metadata_of(again, "manifest")["expected"] == 0
    done = ("provider_batches", "provider_results", "validated_staging", "published_archive")
    for name in (*done, "quality_sample"):
        assert "nothing to do" in str(metadata_of(again, name)["note"]), name
    states = metadata_of(finished.result, "reconciliation_report")["states"]
    assert metadata_of(again, "reconciliation_report")["states"] == states


@pytest.mark.postgres
def test_a_ledger_on_postgres_gives_the_same(
    finished: Finished, settings: Settings, instance: dg.DagsterInstance, postgres_url: str
) -> None:
    on_postgres = settings.model_copy(update={"ledger_url": postgres_url})
    first = materialise(on_postgres, instance)
    assert first.success
    assert checks_of(first) == dict.fromkeys(CHECKS, True)
    for name in ("manifest", "validated_staging", "published_archive", "reconciliation_report"):
        assert numbers_of(first, name) == numbers_of(finished.result, name), name
    again = materialise(on_postgres, instance)
    assert data_versions(again) == data_versions(first)


def numbers_of(result: dg.ExecuteInProcessResult, name: str) -> dict[str, object]:
    """Return the counts of an asset's metadata; no times, no names."""
    return {
        key: value
        for key, value in metadata_of(result, name).items()
        if isinstance(value, int | dict)
        and not key.startswith(("seconds", "oldest", "tallybook", "disk"))
    }


def test_a_new_document_changes_every_data_version(
    finished: Finished, after_a_run: Settings, instance: dg.DagsterInstance
) -> None:
    folder = after_a_run.source_folder
    sander = (folder / "sander.txt").read_text(encoding="utf-8")
    (folder / "planer.txt").write_text(
        sander.replace("KX-40", "PB-71").replace("Drum Sander", "Thickness Planer"),
        encoding="utf-8",
    )
    result = materialise(after_a_run, instance, config=MOVED)
    assert result.success
    assert metadata_of(result, "manifest")["expected"] == 1
    before, after = data_versions(finished.result), data_versions(result)
    assert [name for name in before if before[name] == after[name]] == []


@pytest.mark.parametrize(
    "name",
    [
        "accepted",
        "awaiting review",
        "dead letters",
        "published",
        "failures",
        "excluded",
        "oldest open record, hours",
        "seconds",
    ],
)
def test_what_people_plot_is_a_number(finished: Finished, name: str) -> None:
    report = metadata_of(finished.result, "reconciliation_report")
    assert isinstance(report[name], int | float)


@pytest.mark.parametrize("word", ["Sander", "KX-40", "sander.txt", "abrasive"])
def test_dagster_is_told_no_text_of_a_document(finished: Finished, word: str) -> None:
    told = [str(metadata_of(finished.result, asset.key.to_user_string())) for asset in ASSETS]
    told += [str(check.metadata) for check in finished.result.get_asset_check_evaluations()]
    assert word not in " ".join(told)
    assert "attempts reconciled" in finished.logged
    assert word not in finished.logged


def test_publishing_alone_publishes_what_is_accepted_and_nothing_else(
    settings: Settings, instance: dg.DagsterInstance
) -> None:
    before = [asset.key.to_user_string() for asset in ASSETS]
    before = before[: before.index("published_archive")]
    assert materialise(settings, instance, *before).success
    assert states_of(settings) == {"accepted": 1, "awaiting_review": 1}

    result = materialise(settings, instance, "published_archive")
    assert result.success
    assert states_of(settings) == {"awaiting_review": 1, "published": 1}


def test_publishing_alone_before_anything_else_publishes_nothing(
    settings: Settings, instance: dg.DagsterInstance
) -> None:
    result = materialise(settings, instance, "published_archive")
    assert result.success
    assert metadata_of(result, "published_archive")["published"] == 0
    assert states_of(settings) == {}


def test_a_record_that_was_slipped_past_the_boundary_stops_the_run_before_publishing(
    after_a_run: Settings, instance: dg.DagsterInstance
) -> None:
    tamper(
        after_a_run, "UPDATE record_state SET state = 'accepted' WHERE state = 'awaiting_review'"
    )
    result = materialise(after_a_run, instance, "validated_staging", "published_archive")
    assert not result.success
    assert {name for name, passed in checks_of(result).items() if not passed} == {
        "acceptance_boundary"
    }
    assert result.asset_materializations_for_node("published_archive") == []
    assert states_of(after_a_run) == {"accepted": 1, "published": 1}


@pytest.mark.parametrize(
    ("statement", "asset", "check"),
    [
        pytest.param(
            "DELETE FROM dispositions",
            "provider_results",
            "dispositions_add_up",
            id="disposition-lost",
        ),
        pytest.param(
            "UPDATE archive_entries SET content_digest = 'other'",
            "validated_staging",
            "acceptance_boundary",
            id="other-values-published",
        ),
        pytest.param(
            "DELETE FROM archive_search",
            "published_archive",
            "representations_complete",
            id="search-entry-lost",
        ),
        pytest.param(
            "DELETE FROM archive_heads",
            "published_archive",
            "representations_complete",
            id="head-lost",
        ),
        pytest.param(
            "DELETE FROM record_state",
            "reconciliation_report",
            "every_document_has_one_outcome",
            id="state-lost",
        ),
    ],
)
def test_a_damaged_ledger_fails_its_check(
    after_a_run: Settings,
    instance: dg.DagsterInstance,
    statement: str,
    asset: str,
    check: str,
) -> None:
    tamper(after_a_run, statement)
    result = materialise(after_a_run, instance, asset)
    (evaluation,) = [one for one in result.get_asset_check_evaluations() if not one.passed]
    assert evaluation.check_name == check
    assert evaluation.partition == KEY
    assert evaluation.description
    assert result.success is (not evaluation.blocking)


def test_lost_thumbnail_fails_its_check(
    after_a_run: Settings, instance: dg.DagsterInstance
) -> None:
    with open_context(after_a_run) as context:
        remove_thumbnails(context)
    result = materialise(after_a_run, instance, "published_archive")
    assert checks_of(result) == {"representations_complete": False}


def remove_thumbnails(context: Context) -> None:
    with context.ledger.read() as connection:
        digests = connection.execute(text("SELECT thumbnail FROM archive_entries")).scalars().all()
    for digest in digests:
        context.artifacts.require("thumbnail", str(digest)).unlink()


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        pytest.param("new_prompt", None, id="known"),
        pytest.param("because", "'because' is no replay reason", id="unknown"),
    ],
)
def test_replay_reason_is_run_configuration(
    settings: Settings, instance: dg.DagsterInstance, reason: str, expected: str | None
) -> None:
    upto = ("source_documents", "parsed_documents", "manifest")
    config: dict[str, object] = {"manifest": {"config": {"replay_reason": reason}}}
    result = materialise(settings, instance, *upto, config=config)
    assert result.success is (expected is None)
    if expected is not None:
        assert expected in failure_of(result, "manifest")
        return
    with open_context(settings) as context, context.ledger.read() as connection:
        reasons = connection.execute(text("SELECT DISTINCT replay_reason FROM records")).scalars()
        assert reasons.all() == [reason]


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        pytest.param("Not A Key", "is not a processing version key", id="malformed"),
        pytest.param("never-written", "there is no processing version", id="unknown"),
    ],
)
def test_key_that_was_added_by_hand_is_refused_in_one_line(
    settings: Settings, instance: dg.DagsterInstance, key: str, expected: str
) -> None:
    """The user interface lets anybody add any text as a partition."""
    instance.add_dynamic_partitions("processing_version", [key])
    job = build_definitions(settings).resolve_job_def("process_version")
    result = job.execute_in_process(instance=instance, partition_key=key, raise_on_error=False)
    assert not result.success
    assert expected in failure_of(result, "source_documents")


def test_missing_folder_is_told_in_one_line(
    settings: Settings, documents: Path, instance: dg.DagsterInstance
) -> None:
    shutil.rmtree(documents)
    result = materialise(settings, instance)
    assert not result.success
    told = failure_of(result, "source_documents")
    assert "documents" in told
    assert "\n" not in told
