"""What `doctor` finds in ledger and artifacts, and what it mends."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import Insert, insert, select

from pipeline_assets.account.integrity import (
    GRACE_SECONDS,
    UNTOUCHED_SECONDS,
    diagnose,
    fix,
    release_dead_leases,
)
from pipeline_assets.account.report import build_report
from pipeline_assets.account.search import search
from resources.ledger.leases import LeaseHeld, acquire
from resources.ledger.schema import batches, canaries, late_answers
from tests.support.small_archive import KEY, Archive


def execute(archive: Archive, statement: str) -> None:
    with archive.context.ledger.write() as connection:
        connection.exec_driver_sql(statement)


def kinds(archive: Archive) -> list[str]:
    return [problem.kind for problem in diagnose(archive.context)]


@pytest.fixture
def dead_pid() -> int:
    """Return the number of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_a_sound_archive_has_no_problem(read_archive: Archive) -> None:
    assert diagnose(read_archive.context) == []


def test_search_entries_are_made_again_as_they_were(archive: Archive) -> None:
    before = {text: search(archive.context, text) for text in ("pump", "WP-100", "manual", "fan")}
    execute(archive, "DELETE FROM archive_search")
    (problem,) = diagnose(archive.context)
    assert problem.kind == "search_entries"
    assert "2 published documents" in problem.what
    assert fix(archive.context, [problem]) == [problem]
    assert kinds(archive) == []
    assert build_report(archive.context, KEY).invariant_holds
    assert {text: search(archive.context, text) for text in before} == before


def test_a_stray_search_entry_is_dropped(archive: Archive) -> None:
    execute(archive, "DELETE FROM archive_heads WHERE entry_no = 1")
    (problem,) = diagnose(archive.context)
    assert "1 search entries show nothing visible" in problem.what
    fix(archive.context, [problem])
    assert kinds(archive) == []


@pytest.mark.parametrize(
    "kind", ["text", "thumbnail", "source", "manifest", "request", "result", "frame"]
)
def test_a_missing_artifact_is_told(kind: str, read_archive: Archive, tmp_path: Path) -> None:
    store = read_archive.context.artifacts
    file = next(path for path in (store.root / kind).rglob("*") if path.is_file())
    file.rename(tmp_path / "elsewhere")
    try:
        (problem,) = diagnose(read_archive.context)
    finally:
        (tmp_path / "elsewhere").rename(file)
    assert (problem.kind, problem.fixable) == ("missing_artifact", False)
    assert kind in problem.what
    assert file.name[:12] in problem.what
    assert fix(read_archive.context, [problem]) == []


@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        pytest.param(
            insert(late_answers).values(
                batch_no=1, records=1, collected_artifact="a" * 64, collected_at="2030"
            ),
            "frame",
            id="late-answers-collected",
        ),
        pytest.param(
            insert(late_answers).values(
                batch_no=1,
                records=1,
                collected_artifact=select(batches.c.collected_artifact).limit(1).scalar_subquery(),
                staging_artifact="a" * 64,
                collected_at="2030",
            ),
            "frame",
            id="late-answers-judged",
        ),
        pytest.param(
            insert(canaries).values(
                canary_id="canary-1",
                batch_key="0" * 12,
                combination="0" * 64,
                version_no=1,
                provider="openai",
                mode="batch",
                sdk_version="1",
                model="a-model",
                request_artifact="a" * 64,
                request_bytes=1,
                state="prepared",
                polls=0,
                expected_records=0,
                prepared_at="2030",
            ),
            "request",
            id="canary",
        ),
    ],
)
def test_artifacts_of_every_table_are_looked_for(
    statement: Insert, kind: str, archive: Archive
) -> None:
    with archive.context.ledger.write() as connection:
        connection.execute(statement)
    (problem,) = diagnose(archive.context)
    assert problem.kind == "missing_artifact"
    assert problem.what.startswith(f"1 {kind} artifacts")
    assert "aaaaaaaaaaaa" in problem.what


def test_a_changed_journal_is_told(archive: Archive) -> None:
    execute(archive, "UPDATE moves SET reason = 'no reason' WHERE move_no = 3")
    (problem,) = diagnose(archive.context)
    assert (problem.kind, problem.fixable) == ("journal", False)
    assert "move 3" in problem.what


def test_the_lease_of_a_dead_process_is_released(archive: Archive, dead_pid: int) -> None:
    ledger, owner = archive.context.ledger, f"someone@{socket.gethostname()}:{dead_pid}"
    acquire(ledger, "step", owner)
    with pytest.raises(LeaseHeld):
        acquire(ledger, "step", archive.context.worker)
    (problem,) = diagnose(archive.context)
    assert problem.kind == "dead_lease"
    assert release_dead_leases(archive.context) == 1
    acquire(ledger, "step", archive.context.worker)


@pytest.mark.parametrize(
    "owner",
    [
        pytest.param(f"someone@{socket.gethostname()}:{os.getpid()}", id="alive"),
        pytest.param("someone@another-host:1", id="another-host"),
        pytest.param("an owner of another form", id="other-form"),
    ],
)
def test_leases_of_others_are_left_alone(owner: str, sqlite_archive: Archive) -> None:
    acquire(sqlite_archive.context.ledger, "step", owner)
    assert kinds(sqlite_archive) == []
    assert release_dead_leases(sqlite_archive.context) == 0


def test_a_younger_process_of_the_same_number_does_not_hold_it(
    sqlite_archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = sqlite_archive
    acquire(archive.context.ledger, "step", f"someone@{socket.gethostname()}:{os.getpid()}")
    later = archive.clock().timestamp() + 3600
    monkeypatch.setattr("pipeline_assets.account.integrity._started_at", lambda pid: later)
    assert kinds(archive) == ["dead_lease"]


def age(path: Path, seconds: float) -> None:
    moment = time.time() - seconds
    os.utime(path, (moment, moment))


@pytest.mark.parametrize(
    ("seconds", "in_use", "leftover"),
    [
        pytest.param(UNTOUCHED_SECONDS + 1, set(), True, id="old"),
        pytest.param(UNTOUCHED_SECONDS + 1, None, True, id="old-and-nobody-can-tell"),
        pytest.param(GRACE_SECONDS + 1, set(), True, id="nobody-has-it-open"),
        pytest.param(GRACE_SECONDS + 1, None, False, id="nobody-can-tell"),
        pytest.param(GRACE_SECONDS + 1, "itself", False, id="in-use"),
        pytest.param(1, set(), False, id="young"),
    ],
)
def test_leftover_files(
    seconds: float,
    in_use: set[tuple[int, int]] | str | None,
    leftover: bool,
    sqlite_archive: Archive,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    archive = sqlite_archive
    folder = archive.context.artifacts.root / "incoming"
    folder.mkdir()
    file = folder / "tmp-of-a-dead-run"
    file.write_bytes(b"half")
    age(file, seconds)
    found = file.stat()
    known = {(found.st_dev, found.st_ino)} if in_use == "itself" else in_use
    open_files: Callable[[], object] = lambda: known  # noqa: E731 - one line says it
    monkeypatch.setattr("pipeline_assets.account.integrity._open_files", open_files)
    problems = diagnose(archive.context)
    assert [problem.kind for problem in problems] == (["leftover_file"] if leftover else [])
    fix(archive.context, problems)
    assert file.exists() is not leftover


@pytest.mark.skipif(os.geteuid() != 0, reason="only root sees the open files of every process")
def test_files_that_are_open_are_seen(tmp_path: Path) -> None:
    from pipeline_assets.account.integrity import _open_files

    with (tmp_path / "open").open("w") as stream:
        found = os.fstat(stream.fileno())
        assert (found.st_dev, found.st_ino) in (_open_files() or set())
    assert (found.st_dev, found.st_ino) not in (_open_files() or set())
