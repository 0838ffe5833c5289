"""A run whose process was killed: found, closed, and out of the way of the next one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
import pytest

from pipeline_assets.cli.dagster_run import (
    close_leftover_runs,
    leftover_runs,
    open_instance,
    run_version,
)
from resources.settings import Settings
from tests.support.small_shop import KEY

pytestmark = pytest.mark.slow

RUN_AND_HANG = """
import sys, time
from pathlib import Path
from pipeline_assets.cli.dagster_run import run_version
from resources.context import SilentProgress
from tests.support.small_shop import KEY, settings_for

class Hanging(SilentProgress):
    def start(self, label, total):
        if label == "parsing":
            print("parsing", flush=True)
            time.sleep(600)

run_version(settings_for(Path(sys.argv[1])), KEY, progress=Hanging())
"""


@contextmanager
def hanging_run(folder: Path, repository: Path) -> Iterator[subprocess.Popen[str]]:
    """Start a run in a process of its own and wait until it is in the middle."""
    process = subprocess.Popen(
        [sys.executable, "-c", RUN_AND_HANG, str(folder)],
        cwd=repository,
        env={**os.environ, "PYTHONPATH": str(repository)},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "parsing\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def status_of(settings: Settings, run_id: str) -> dg.DagsterRunStatus:
    with open_instance(settings) as instance:
        run = instance.get_run_by_id(run_id)
    assert run is not None
    return run.status


@pytest.fixture
def killed(settings: Settings, tmp_path: Path, repository: Path) -> str:
    """Return the id of a run that was killed in the middle; alive it was no leftover."""
    with hanging_run(tmp_path, repository) as process:
        with open_instance(settings) as instance:
            (run,) = instance.get_runs()
        assert run.status == dg.DagsterRunStatus.STARTED
        assert leftover_runs(settings) == []
        process.kill()
        process.wait()
    return run.run_id


def test_doctor_finds_and_closes_it(settings: Settings, killed: str) -> None:
    assert status_of(settings, killed) == dg.DagsterRunStatus.STARTED
    (leftover,) = leftover_runs(settings)
    assert (leftover.run_id, leftover.version, leftover.dead) == (killed, KEY, True)
    assert "has ended" in leftover.why

    assert [run.run_id for run in close_leftover_runs(settings)] == [killed]
    assert status_of(settings, killed) == dg.DagsterRunStatus.FAILURE
    assert leftover_runs(settings) == []


def test_the_next_run_closes_it_and_does_the_work(settings: Settings, killed: str) -> None:
    outcome = run_version(settings, KEY)
    assert outcome.success
    assert [run.run_id for run in outcome.closed] == [killed]
    assert status_of(settings, killed) == dg.DagsterRunStatus.FAILURE
