"""Telling a process that runs from one that has ended, or whose number somebody else has now."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from resources import processes
from resources.processes import ProcessIdentity, is_alive, this_process


def test_this_process_is_alive() -> None:
    assert is_alive(this_process()) is True


def test_identity_does_not_change() -> None:
    assert this_process() == this_process()


def child_identity(child: subprocess.Popen[bytes]) -> ProcessIdentity:
    return replace(this_process(), pid=child.pid, started=processes._started(child.pid) or "")


def test_ended_process_is_dead_before_and_after_its_parent_looks() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    identity = child_identity(child)
    assert is_alive(identity) is True
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert is_alive(identity) is False  # a zombie
    child.wait()
    assert is_alive(identity) is False
    assert child.stdin is not None
    child.stdin.close()


def test_number_that_another_process_has_now_is_not_taken_for_the_old_one() -> None:
    if not Path("/proc/self/stat").exists():
        pytest.skip("this system does not say when a process started")
    assert is_alive(replace(this_process(), started="an-earlier-boot:1")) is False


def test_process_of_another_host_is_not_judged() -> None:
    assert is_alive(replace(this_process(), host="elsewhere.example")) is None


def test_without_proc_only_the_number_counts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(processes, "PROC", tmp_path)
    me = this_process()
    assert me.started == ""
    assert is_alive(me) is True
    # The highest number that a Linux system may give away is 2**22.
    assert is_alive(replace(me, pid=2**22 + 1)) is False


def test_name_with_brackets_and_spaces_is_read_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pid = os.getpid()
    (tmp_path / "self").mkdir()
    (tmp_path / str(pid)).mkdir()
    (tmp_path / "sys/kernel/random").mkdir(parents=True)
    (tmp_path / "sys/kernel/random/boot_id").write_text("boot\n")
    fields = ["S", *("0" for _ in range(18)), "4711", "0"]
    (tmp_path / str(pid) / "stat").write_text(f"{pid} (a ) Z name) {' '.join(fields)}\n")
    monkeypatch.setattr(processes, "PROC", tmp_path)
    assert this_process().started == "boot:4711"
