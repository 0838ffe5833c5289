"""A run of the command line: through the instance, quiet, and its outcome in one line."""

from __future__ import annotations

import os
import shutil
import signal
import threading
from pathlib import Path

import dagster as dg
import pytest
from sqlalchemy import text

from partitions.processing_version import MalformedVersionKey, UnknownVersion
from pipeline_assets.cli.dagster_instance import instance_home
from pipeline_assets.cli.dagster_run import RunOutcome, leftover_runs, open_instance, run_version
from resources.context import SilentProgress, open_context
from resources.context_resource import tagged_process
from resources.processes import this_process
from resources.settings import Settings
from tests.support.small_shop import KEY


class Told(SilentProgress):
    """Progress that remembers what was begun, and does something at one piece of work."""

    def __init__(self, at: str = "", act: object = None) -> None:
        self.labels: list[str] = []
        self._at, self._act = at, act

    def start(self, label: str, total: int | None) -> None:
        self.labels.append(label)
        if label == self._at and callable(self._act):
            self._act()


def run_of(settings: Settings, outcome: RunOutcome) -> dg.DagsterRun:
    with open_instance(settings) as instance:
        run = instance.get_run_by_id(outcome.run_id)
    assert run is not None
    return run


def the_run(settings: Settings) -> dg.DagsterRun:
    with open_instance(settings) as instance:
        (run,) = instance.get_runs()
    return run


def test_run_is_in_the_instance_and_nothing_is_on_the_terminal(
    settings: Settings, capfd: pytest.CaptureFixture[str]
) -> None:
    progress = Told()
    outcome = run_version(settings, KEY, progress=progress)
    assert (outcome.success, outcome.error_line, outcome.closed) == (True, None, ())
    assert capfd.readouterr() == ("", "")
    assert {"checksums", "parsing", "judging"} <= set(progress.labels)

    run = run_of(settings, outcome)
    assert run.status == dg.DagsterRunStatus.SUCCESS
    assert run.tags["dagster/partition"] == KEY
    assert run.tags["dagster/max_runtime"] == "3600"
    assert tagged_process(run.tags, run.run_id) == this_process()
    with open_instance(settings) as instance:
        done = instance.get_materialized_partitions(dg.AssetKey("reconciliation_report"))
        assert done == {KEY}
        event = instance.get_latest_materialization_event(dg.AssetKey("published_archive"))
    assert event is not None
    assert event.run_id == outcome.run_id

    assert leftover_runs(settings) == []


@pytest.mark.parametrize(
    ("key", "error"),
    [
        pytest.param("Not A Key", MalformedVersionKey, id="malformed"),
        pytest.param("never-written", UnknownVersion, id="unknown"),
    ],
)
def test_wrong_key_leaves_no_trace(settings: Settings, key: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        run_version(settings, key)
    assert not instance_home(settings).exists()
    assert not (settings.state_folder / "ledger.sqlite").exists()


def test_expected_error_is_the_error_line(settings: Settings, documents: Path) -> None:
    shutil.rmtree(documents)
    outcome = run_version(settings, KEY)
    assert not outcome.success
    assert outcome.error_line is not None
    assert str(documents) in outcome.error_line
    assert "\n" not in outcome.error_line
    assert run_of(settings, outcome).status == dg.DagsterRunStatus.FAILURE


def test_failed_check_is_the_error_line(after_a_run: Settings) -> None:
    with open_context(after_a_run) as context, context.ledger.write() as connection:
        connection.execute(text("DELETE FROM dispositions"))
    outcome = run_version(after_a_run, KEY, source_moved=True)
    assert not outcome.success
    assert (outcome.error_line or "").startswith("check dispositions_add_up failed: 1 batches")


def test_source_that_was_moved_is_taken_only_when_told(after_a_run: Settings) -> None:
    refused = run_version(after_a_run, KEY)
    assert "--source-moved" in (refused.error_line or "")
    assert run_version(after_a_run, KEY, source_moved=True).success


def test_mistake_in_the_code_is_raised_as_it_was_and_the_run_has_failed(
    settings: Settings,
) -> None:
    def mistake() -> None:
        # Put together: a log may show this line, but not what the message said.
        raise ZeroDivisionError(" ".join(["text", "of", "a", "page"]))

    with pytest.raises(ZeroDivisionError, match="text of a page"):
        run_version(settings, KEY, progress=Told("parsing", mistake))
    assert the_run(settings).status == dg.DagsterRunStatus.FAILURE
    with open_instance(settings) as instance:
        log = "".join(str(entry) for entry in instance.all_logs(the_run(settings).run_id))
    assert "text of a page" not in log


def test_ctrl_c_ends_the_run(settings: Settings) -> None:
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("signals reach the main thread only")

    def interrupt() -> None:
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        run_version(settings, KEY, progress=Told("parsing", interrupt))
    assert the_run(settings).status == dg.DagsterRunStatus.FAILURE
    assert leftover_runs(settings) == []
