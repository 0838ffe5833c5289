"""One finished run on the sample manuals, shared by every test that only reads it."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.support.command import tallybook


@dataclass(frozen=True)
class FinishedRun:
    """A state folder after `tallybook run`, and what the run printed."""

    state: Path
    outcome: CompletedProcess[str]


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> FinishedRun:
    """Return the run; tests must leave its state folder as it is."""
    folder = tmp_path_factory.mktemp("finished")
    outcome = tallybook("run", "--state", folder / "state", cwd=folder)
    return FinishedRun(folder / "state", outcome)


@pytest.fixture
def state(finished_run: FinishedRun, tmp_path: Path) -> Path:
    """Return a copy of the finished state folder that a test may change."""
    shutil.copytree(finished_run.state, tmp_path / "state")
    return tmp_path / "state"
