"""One run at a time on a state folder."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline_assets.cli.run_lock import LOCK_NAME, StateInUse, run_lock
from tests.support.command import environment

HOLDER = """
import sys, time
from pathlib import Path
from pipeline_assets.cli.run_lock import run_lock
with run_lock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def start_holder(folder: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder)],
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_second_run_is_told_who_holds_it_and_a_dead_holder_holds_nothing(tmp_path: Path) -> None:
    holder = start_holder(tmp_path / "state")
    try:
        said = rf"process {holder.pid}, since \d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d"
        with pytest.raises(StateInUse, match=said), run_lock(tmp_path / "state"):
            pass
    finally:
        holder.send_signal(signal.SIGKILL)
        holder.communicate()
    with run_lock(tmp_path / "state"):
        pass


def test_the_lock_is_free_after_the_block(tmp_path: Path) -> None:
    for _ in range(2):
        with run_lock(tmp_path / "state"):
            assert (tmp_path / "state" / LOCK_NAME).read_text()
        assert (tmp_path / "state" / LOCK_NAME).read_text() == ""


def test_the_state_folder_is_private(tmp_path: Path) -> None:
    with run_lock(tmp_path / "state"):
        assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700
        assert (tmp_path / "state" / LOCK_NAME).stat().st_mode & 0o777 == 0o600


def test_a_lock_without_a_name_is_told_as_fresh(tmp_path: Path) -> None:
    import fcntl

    folder = tmp_path / "state"
    folder.mkdir()
    with (folder / LOCK_NAME).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(StateInUse, match=re.escape("only just started")), run_lock(folder):
            pass
