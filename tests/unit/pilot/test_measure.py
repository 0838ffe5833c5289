"""What a step took: lines in a file, and adding up."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pipeline_assets.pilot.measure import (
    FILE,
    Effort,
    Stopwatch,
    ended,
    peak_rss_bytes,
    read_measured,
    stages_of,
    was_cut,
)


def test_stages_add_up_over_runs(tmp_path: Path) -> None:
    for _ in range(2):
        with Stopwatch(tmp_path / FILE, "process", "v1") as watch:
            with watch.stage("submit"):
                sum(range(200_000))
            with watch.stage("collect"):
                pass
    with Stopwatch(tmp_path / FILE, "process", "v2"):
        pass
    lines = read_measured(tmp_path)
    found = stages_of(lines, "process", "v1")
    assert list(found) == ["submit", "collect"]
    assert found["submit"].times == 2
    assert found["submit"].wall_s > found["collect"].wall_s
    assert found["submit"].peak_rss_bytes > 2**20
    assert ended(lines, "process", "v1")
    assert not was_cut(lines, "process", "v1")
    assert stages_of(lines, "process", "v2") == {}


def test_a_killed_step_is_told(tmp_path: Path) -> None:
    killed = Stopwatch(tmp_path / FILE, "process", "v1").__enter__()
    with killed.stage("submit"):
        pass
    with (tmp_path / FILE).open("ab") as file:
        file.write(b'{"step": "process", "sub')
    lines = read_measured(tmp_path)
    assert was_cut(lines, "process", "v1")
    assert not ended(lines, "process", "v1")
    assert stages_of(lines, "process", "v1")["submit"].times == 1
    with Stopwatch(tmp_path / FILE, "process", "v1") as again, again.stage("submit"):
        pass
    lines = read_measured(tmp_path)
    assert was_cut(lines, "process", "v1"), "the time of the first run is still not known"
    assert ended(lines, "process", "v1"), "the line that was cut took no other with it"
    assert stages_of(lines, "process", "v1")["submit"].times == 2


def test_a_stage_that_fails_took_its_time(tmp_path: Path) -> None:
    with (
        pytest.raises(ZeroDivisionError),
        Stopwatch(tmp_path / FILE, "process", "v1") as watch,
        watch.stage("submit"),
    ):
        _ = 1 / 0
    lines = read_measured(tmp_path)
    assert stages_of(lines, "process", "v1")["submit"].times == 1
    assert list(stages_of(lines, "process", "v1")) == ["submit"], "a mark is no stage"
    assert not was_cut(lines, "process", "v1"), "nothing of it is missing"
    assert not ended(lines, "process", "v1")


def test_nothing_measured(tmp_path: Path) -> None:
    assert read_measured(tmp_path) == []
    assert Effort().times == 0


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_memory_is_that_of_the_process_itself() -> None:
    """A large parent must not be seen in the figure of a small child."""
    ballast = bytearray(200 * 2**20)
    ballast[:: 2**12] = b"x" * len(ballast[:: 2**12])
    code = "from pipeline_assets.pilot.measure import peak_rss_bytes; print(peak_rss_bytes())"
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 2**20 < int(child.stdout) < 150 * 2**20 < peak_rss_bytes()
    assert ballast[0] == ord("x")
