"""The sensor `new_source_files`: ticks over real folders, with a real Dagster instance."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from pipeline_assets.automation.busy import PARTITION_TAG
from pipeline_assets.automation.source_sensor import read_memory
from pipeline_assets.definitions import build_definitions
from resources.ledger.alerts import open_alerts
from tests.integration.automation.support import Desk, looked_at
from tests.integration.replay.support import ONE, TWO


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as found:
        yield found


def test_a_new_file_is_asked_for_and_settles_in_the_run(
    desk: Desk, instance: dg.DagsterInstance
) -> None:
    desk.drop("pump.txt", "WP-100")
    ((request,), _, _) = desk.tick(instance)
    assert (request.job_name, request.partition_key) == ("process_version", ONE)
    assert request.run_config == {
        "ops": {"source_documents": {"config": {"only": "shop", "settle_seconds": 30}}}
    }
    assert request.tags["tallybook/why"] == "new"
    assert request.tags["tallybook/source"] == "shop"
    assert instance.get_dynamic_partitions("processing_version") == [ONE]


@pytest.mark.slow
def test_the_run_that_is_asked_for_publishes(desk: Desk, instance: dg.DagsterInstance) -> None:
    """The configuration fits the job; after it there is nothing more to ask for."""
    desk.drop("pump.txt", "WP-100")
    ((request,), cursor, _) = desk.tick(instance)
    job = build_definitions(desk.context.settings).resolve_job_def("process_version")
    result = job.execute_in_process(
        instance=instance, partition_key=ONE, run_config=request.run_config
    )
    assert result.success
    assert desk.shown() == {"shop/pump.txt": ONE}
    again, _, told = desk.tick(instance, cursor)
    assert again == []
    assert told == "1 sources looked at"


def test_a_file_that_is_still_being_written_is_left_for_the_next_tick(
    desk: Desk, instance: dg.DagsterInstance
) -> None:
    path = desk.drop("pump.txt", "WP-100", age=10)
    asked, cursor, told = desk.tick(instance)
    assert asked == [], "older than the source asks for, and seen for the first time"
    assert told == "1 sources looked at, 1 too fresh to be taken"

    # The writer went on, and has paused for longer than the source asks for.
    path.write_text(path.read_text() + "\nOne more line.\n")
    desk.age(path, 10)
    asked, cursor, _ = desk.tick(instance, looked_at(cursor, 30))
    assert asked == [], "another one than at the look before"

    desk.age(path, 40)
    asked, cursor, _ = desk.tick(instance, looked_at(cursor, 30))
    assert [request.tags["tallybook/why"] for request in asked] == ["new"]


@pytest.mark.slow
def test_one_file_that_is_being_written_keeps_no_other_one_waiting(
    desk: Desk, instance: dg.DagsterInstance
) -> None:
    desk.drop("pump.txt", "WP-100")
    desk.drop("fan.txt", "VF-20", age=1)
    ((request,), _, _) = desk.tick(instance)
    job = build_definitions(desk.context.settings).resolve_job_def("process_version")
    job.execute_in_process(instance=instance, partition_key=ONE, run_config=request.run_config)
    assert desk.shown() == {"shop/pump.txt": ONE}


def test_the_same_work_is_asked_for_once(desk: Desk, instance: dg.DagsterInstance) -> None:
    desk.drop("pump.txt", "WP-100")
    keys = [desk.tick(instance)[0][0].run_key for _ in range(2)]
    assert keys[0] == keys[1]
    desk.clock.advance(601)
    later = desk.tick(instance)[0][0].run_key
    assert later != keys[0], "a run that failed is tried again"
    desk.drop("fan.txt", "VF-20")
    assert desk.tick(instance)[0][0].run_key != later


def test_a_version_that_a_run_is_at_is_left_alone(desk: Desk, instance: dg.DagsterInstance) -> None:
    desk.drop("pump.txt", "WP-100")
    job = build_definitions(desk.context.settings).resolve_job_def("process_version")
    run = instance.create_run_for_job(
        job, tags={PARTITION_TAG: ONE}, status=dg.DagsterRunStatus.STARTED
    )
    asked, _, told = desk.tick(instance)
    assert asked == []
    assert told == "1 sources looked at, 1 wait for a run"
    instance.delete_run(run.run_id)
    assert desk.tick(instance)[0]


def test_a_source_that_cannot_be_listed_hinders_no_other_one(
    desk: Desk, instance: dg.DagsterInstance
) -> None:
    desk.drop("pump.txt", "WP-100")
    desk.process()
    desk.declare("archive", "shop", removed="withdraw")
    desk.drop("fan.txt", "VF-20")

    ((request,), cursor, _) = desk.tick(instance)
    assert request.tags["tallybook/source"] == "shop"
    (alert,) = open_alerts(desk.context.ledger)
    assert (alert.kind, alert.subject) == ("source_unreadable", "archive")
    assert "archive" in alert.message
    assert read_memory(cursor)["archive"].listed_at == 0.0

    desk.tick(instance, cursor)
    assert [found.times for found in open_alerts(desk.context.ledger)] == [1], "told once"
    (desk.root / "archive").mkdir()
    desk.tick(instance, cursor)
    assert open_alerts(desk.context.ledger) == []


def test_a_folder_that_is_not_there_is_never_an_empty_one(
    desk: Desk, instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    desk.declare("shop", removed="withdraw")
    desk.drop("pump.txt", "WP-100")
    desk.process()
    desk.folder.rename(tmp_path / "elsewhere")
    asked, cursor, told = desk.tick(instance)
    assert asked == []
    assert told == "0 sources looked at, 1 cannot be listed"
    (tmp_path / "elsewhere").rename(desk.folder)
    assert desk.tick(instance, cursor)[0] == []


def test_removed_and_corrected_files_are_asked_for(
    desk: Desk, instance: dg.DagsterInstance
) -> None:
    desk.drop("pump.txt", "WP-100")
    fan = desk.drop("fan.txt", "VF-20")
    desk.process()
    assert desk.tick(instance)[0] == []
    desk.drop("pump.txt", "WP-101", age=500)
    fan.unlink()
    ((request,), _, _) = desk.tick(instance)
    assert request.tags["tallybook/why"] == "changed,removed"


@pytest.mark.slow
def test_corrected_bytes_go_to_versions_that_process_only_replays(
    desk: Desk, instance: dg.DagsterInstance
) -> None:
    desk.drop("pump.txt", "WP-100")
    desk.drop("fan.txt", "VF-20")
    desk.process(ONE)
    desk.replay(documents=("shop/pump.txt",))
    desk.go_on(TWO)
    assert desk.tick(instance)[0] == []
    desk.drop("pump.txt", "WP-101", age=500)
    desk.process(ONE)
    asked, _, _ = desk.tick(instance)
    assert [(each.job_name, each.partition_key) for each in asked] == [("replay_version", TWO)]
    job = build_definitions(desk.context.settings).resolve_job_def("replay_version")
    assert job.execute_in_process(instance=instance, partition_key=TWO).success
    assert desk.tick(instance)[0] == []
    assert desk.adds_up(TWO)


@pytest.mark.parametrize(
    ("version", "told"),
    [
        pytest.param(None, "0 sources looked at", id="none-named"),
        pytest.param(
            "manuals-nowhere-1",
            "0 sources looked at, 1 name a version that cannot be used",
            id="no-such-version",
        ),
    ],
)
def test_sources_without_a_version_that_can_be_used(
    desk: Desk, instance: dg.DagsterInstance, version: str | None, told: str
) -> None:
    desk.declare("shop", version=version)
    desk.drop("pump.txt", "WP-100")
    asked, _, said = desk.tick(instance)
    assert asked == []
    assert said == told


def test_declarations_that_cannot_be_read_fail_the_tick(
    desk: Desk, instance: dg.DagsterInstance
) -> None:
    desk.context.settings.sources_file.write_text("sources: 3\n")
    with pytest.raises(dg.Failure, match=r"sources\.yaml"):
        desk.tick(instance)


def test_a_cursor_of_another_release_is_forgotten(desk: Desk, instance: dg.DagsterInstance) -> None:
    desk.drop("pump.txt", "WP-100")
    assert desk.tick(instance, '{"shop": 3}')[0]
    assert desk.tick(instance, "not even JSON")[0]
