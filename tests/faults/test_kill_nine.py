"""`tallybook run` killed at any moment, then run again, ends as if nothing had happened."""

from __future__ import annotations

import io
import random
import resource
import signal
import subprocess
import time
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from pipeline_assets.account.integrity import diagnose
from pipeline_assets.cli.app import main
from pipeline_assets.cli.options import make_settings
from resources.context import open_context
from tests.support.command import COMMAND, environment, json_lines, tallybook

pytestmark = pytest.mark.slow

MOMENTS = 10
SEED = 20_301_130
# All that may differ from an undisturbed run. The journal's digest is over rows that hold times,
# and a step that was begun twice is in it twice. What was sent holds names that every ledger draws
# for itself, so the digests of files differ too.
DIFFERING_IN_A_REPORT = frozenset(
    {
        "made_at",
        "seconds",
        "journal",
        "content_digest",
        "drawn_at",
        "submitted_at",
        "frozen_at",
        "request_artifact",
        "result_artifacts",
    }
)
DISTRIBUTIONS = ("ages", "time")
TIMES_OF_A_DISTRIBUTION = frozenset({"p50", "p90", "max", "total", "histogram"})
DIFFERING_IN_AN_ENTRY = frozenset({"published_at"})


@dataclass(frozen=True)
class Ending:
    """What a state folder says at the end, without times."""

    report: dict[str, Any]
    exported: list[dict[str, Any]]
    outcomes: list[dict[str, Any]]


@dataclass(frozen=True)
class Undisturbed:
    """A run that nobody killed: how it ended, and how much processor time it took.

    Processor time, since the time of day says little on a machine that others use too.
    """

    ending: Ending
    seconds: float


def printed(*arguments: object) -> list[dict[str, Any]]:
    """Return what a command prints with --json, run in this process to be quick."""
    output = io.StringIO()
    with redirect_stdout(output):
        main([*map(str, arguments), "--json"])
    return json_lines(output.getvalue())


def without(value: Any, names: frozenset[str]) -> Any:
    """Leave out these fields of an object, and of all that is in it."""
    if isinstance(value, dict):
        return {
            name: without(held, names | TIMES_OF_A_DISTRIBUTION if name in DISTRIBUTIONS else names)
            for name, held in value.items()
            if name not in names
        }
    return [without(held, names) for held in value] if isinstance(value, list) else value


def ending_of(state: Path) -> Ending:
    (report,) = printed("report", "--state", state)
    exported = printed("export", "--state", state)
    return Ending(
        without(report, DIFFERING_IN_A_REPORT),
        without(exported, DIFFERING_IN_AN_ENTRY),
        printed("outcomes", "--state", state),
    )


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    """Return the yardstick; it holds for both databases."""
    state = tmp_path_factory.mktemp("undisturbed") / "state"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    outcome = tallybook("run", "--state", state, cwd=state.parent)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert outcome.returncode == 3, outcome.stderr
    return Undisturbed(ending_of(state), seconds)


def moment(index: int) -> float:
    """The share of an undisturbed run after which run `index` is killed, one in each tenth."""
    generator = random.Random(SEED)
    shares = [(tenth + generator.random()) / MOMENTS for tenth in range(MOMENTS)]
    return shares[index]


def start(state: Path, errors: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*COMMAND, "run", "--state", str(state)],
        cwd=state.parent,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=errors,
    )


def kill(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()


def used_seconds(process: psutil.Process) -> float:
    """Processor time of a process and of its children, those that have ended included."""
    times = process.cpu_times()
    total = times.user + times.system + times.children_user + times.children_system
    for child in process.children():
        with suppress(psutil.NoSuchProcess):
            total += sum(child.cpu_times()[:2])
    return total


def run_and_kill(state: Path, after: float) -> bool:
    """Start a run and kill it after so many seconds of processor time; False if it ended first."""
    process = start(state)
    watched = psutil.Process(process.pid)
    while process.poll() is None:
        with suppress(psutil.NoSuchProcess):
            if used_seconds(watched) >= after:
                kill(process)
                return True
        time.sleep(0.01)
    return False


def run_and_kill_at(state: Path, piece: str) -> bool:
    """Start a run and kill it as soon as it tells that a piece is done; False if it never does."""
    process = start(state, subprocess.PIPE)
    assert process.stderr is not None
    with process.stderr as errors:
        for line in errors:
            if line.startswith(piece.encode()):
                kill(process)
                return True
    process.wait()
    return False


def finish(state: Path, undisturbed: Undisturbed) -> None:
    """Run to the end and compare it with the yardstick."""
    again = tallybook("run", "--state", state, cwd=state.parent)
    assert again.returncode == 3, again.stderr
    ending = ending_of(state)
    assert ending.report == undisturbed.ending.report
    assert ending.exported == undisturbed.ending.exported
    assert ending.outcomes == undisturbed.ending.outcomes
    with open_context(make_settings(state=state)) as context:
        assert diagnose(context) == []


def kill_then_finish(folder: Path, index: int, undisturbed: Undisturbed) -> None:
    state = folder / "state"
    state.mkdir()
    killed = run_and_kill(state, moment(index) * undisturbed.seconds)
    # Late in a run that took a little less than the yardstick there is nothing left to kill.
    assert killed or index >= MOMENTS - 3
    finish(state, undisturbed)


@pytest.mark.parametrize("index", range(MOMENTS))
def test_killed_once(index: int, tmp_path: Path, undisturbed: Undisturbed) -> None:
    kill_then_finish(tmp_path, index, undisturbed)


@pytest.mark.postgres
@pytest.mark.parametrize("index", [4, 7])
def test_killed_once_on_postgres(
    index: int,
    tmp_path: Path,
    undisturbed: Undisturbed,
    postgres_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TALLYBOOK_LEDGER_URL", postgres_url)
    kill_then_finish(tmp_path, index, undisturbed)


def test_killed_again_and_again(tmp_path: Path, undisturbed: Undisturbed) -> None:
    """One state folder, one run after the other, each killed when it has got one piece further."""
    state = tmp_path / "state"
    state.mkdir()
    pieces = ("checksums", "parsing", "requests", "answers", "judging", "publishing")
    kills = [run_and_kill_at(state, piece) for piece in pieces]
    assert sum(kills) >= len(pieces) // 2
    finish(state, undisturbed)
