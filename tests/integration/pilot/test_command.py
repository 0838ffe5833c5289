"""`tallybook pilot` as a person types it, each step in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import func, select

from pipeline_assets.cli.app import main
from resources.context import open_context
from resources.ledger.schema import metadata
from resources.settings import load_settings
from tests.integration.stages.support import manual
from tests.support.command import COMMAND, REPOSITORY, environment, one_json, tallybook

pytestmark = pytest.mark.slow

FIRST, SECOND = "manuals-baseline-1", "manuals-baseline-2"
DEADLINE_S = 120.0


def rows_of(state: Path) -> dict[str, int]:
    """Table → rows."""
    with (
        open_context(load_settings(state=state)) as context,
        context.ledger.read() as connection,
    ):
        return {
            table.name: int(
                connection.execute(select(func.count()).select_from(table)).scalar_one()
            )
            for table in metadata.sorted_tables
        }


def test_the_sample_manuals(tmp_path: Path) -> None:
    state, page = tmp_path / "state", tmp_path / "pilot.html"
    assert tallybook("run", "--state", state, cwd=tmp_path).returncode in (0, 3)
    before = rows_of(state)
    words = ("pilot", "--versions", f"{FIRST},{SECOND}", "--sample", 60, "--state", state)
    truth = tmp_path / "truth.jsonl"
    truth.write_text(
        "".join(
            json.dumps({"document_id": f"manuals/{row['file']}", **row}) + "\n"
            for row in map(
                json.loads, (REPOSITORY / "data" / "truth.jsonl").read_text().splitlines()
            )
        )
    )
    done = tallybook(*words, "--json", "--html", page, "--truth", truth, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    report = one_json(done.stdout)
    assert rows_of(state) == before, "the archive is as it was"
    assert report["done"]
    assert report["known"] == report["documents"] == report["taken"]
    for version in report["versions"]:
        assert version["outcomes"]["published"] > 0
        assert version["peak_rss_bytes"] > 50 * 2**20
        assert version["parser_peak_rss_bytes"] > 20 * 2**20
        assert version["parse_cpu_s"] > 0
        assert version["workers"]["value"] >= 1
        title = version["score"]["fields"][0]
        assert title["field"] == "title"
        assert title["known"] == title["exact"] + title["form"] > 0
    assert "Pilot" in page.read_text(encoding="utf-8")
    pilot_id = report["pilot_id"]
    shown = tallybook("pilot", "show", pilot_id, "--state", state, cwd=tmp_path)
    assert shown.returncode == 0
    assert "The whole archive, projected" in shown.stdout
    compared = tallybook(
        "compare", FIRST, SECOND, "--state", state / "pilots" / pilot_id, cwd=tmp_path
    )
    assert compared.returncode == 0, compared.stderr
    again = tallybook(*words, cwd=tmp_path)
    assert again.returncode == 0
    assert "process" not in again.stderr, "nothing was left to do"
    dropped = tallybook(
        "pilot", "drop", pilot_id, "--reason", "seen", "--state", state, cwd=tmp_path
    )
    assert dropped.returncode == 0
    listed = tallybook("pilot", "list", "--json", "--state", state, cwd=tmp_path)
    assert listed.stdout == ""
    assert rows_of(state) == before


@contextmanager
def started(cwd: Path, *words: object) -> Iterator[subprocess.Popen[bytes]]:
    """A command under way; it is over at the end of the block."""
    with subprocess.Popen(
        [*COMMAND, *map(str, words)],
        cwd=cwd,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_for(what: str, folder: Path) -> None:
    """Wait until a pilot has written a line with these words."""
    until = time.monotonic() + DEADLINE_S
    while time.monotonic() < until:
        if any(what in file.read_text() for file in folder.glob("pilots/*/measured.jsonl")):
            return
        time.sleep(0.05)
    raise AssertionError(f"no line with {what} in {DEADLINE_S} s")


def children_of(pid: int) -> list[int]:
    """Processes that a process started and that are alive."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and (entry / "stat").is_file():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(fields[1]) == pid and fields[0] != "Z":
                found.append(int(entry.name))
    return found


@pytest.mark.skipif(not Path("/proc/self/stat").is_file(), reason="looks into /proc")
def test_killed_for_real_it_goes_on(tmp_path: Path) -> None:
    source, state = tmp_path / "documents", tmp_path / "state"
    source.mkdir()
    for number in range(4):
        (source / f"d{number}.txt").write_text(manual("Circulation Pump", f"WP-{100 + number}"))
    words = ("pilot", "--versions", f"{FIRST},{SECOND}", "--source", source, "--state", state)
    with started(tmp_path, *words) as process:
        wait_for('"step":"process"', state)
        children = children_of(process.pid)
        assert children, "a step runs in a process of its own"
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    until = time.monotonic() + DEADLINE_S
    while any(Path(f"/proc/{child}").exists() for child in children):
        assert time.monotonic() < until, "a step outlived the command that it belongs to"
        time.sleep(0.05)
    done = tallybook(*words, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    report = one_json(done.stdout)
    assert [version["outcomes"] for version in report["versions"]] == [{"published": 4}] * 2
    assert report["versions"][0]["times_are_short"]


@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        pytest.param((), 2, "name the versions", id="no-versions"),
        pytest.param(("--versions", "no-such"), 1, "no processing version", id="unknown-version"),
        pytest.param(("--versions", FIRST, "--sample", "0"), 2, "--sample", id="no-sample"),
        pytest.param(
            ("--versions", FIRST, "--budget-usd", "much"), 2, "above 0", id="budget-in-words"
        ),
        pytest.param(
            ("--versions", FIRST, "--review-minutes", "-1"), 2, "above 0", id="negative-minutes"
        ),
        pytest.param(("--versions", FIRST, "--truth", "none.csv"), 1, "none.csv", id="no-truth"),
        pytest.param(
            ("--versions", FIRST, "--html", "nowhere/p.html"), 1, "no folder", id="no-folder"
        ),
        pytest.param(("show", "p-000000000000"), 1, "there is no pilot", id="unknown-pilot"),
        pytest.param(("show", "../../etc"), 1, "there is no pilot", id="a-path-is-no-id"),
        pytest.param(("resume", "p-000000000000"), 1, "there is no pilot", id="resume-unknown"),
        pytest.param(
            ("drop", "p-000000000000", "--reason", "x"), 1, "there is no pilot", id="drop-unknown"
        ),
        pytest.param(("drop", "p-000000000000"), 2, "--reason", id="drop-without-reason"),
    ],
)
def test_what_is_refused(
    words: tuple[str, ...],
    status: int,
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["pilot", *words, *_state(words, tmp_path)]) == status
    assert told in capsys.readouterr().err
    assert not (tmp_path / "state").exists(), "nothing was made"


def test_known_values_that_cannot_be_used_are_told_before_anything_is_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    truth = tmp_path / "truth.jsonl"
    truth.write_text('{"file": "no-id.pdf", "title": "T"}\n')
    state = tmp_path / "state"
    words = ("--versions", FIRST, "--truth", str(truth), "--state", str(state))
    assert main(["pilot", *words]) == 1
    assert "row 1 has no document_id" in capsys.readouterr().err
    assert not list(state.rglob("measured.jsonl")), "no step was begun"


def _state(words: tuple[str, ...], folder: Path) -> tuple[str, ...]:
    return () if not words else ("--state", str(folder / "state"))


def test_nothing_to_list(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pilot", "list", "--state", str(tmp_path)]) == 0
    assert "No pilot was made here" in capsys.readouterr().out
