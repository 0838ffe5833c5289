"""`status`, once and again and again: on a terminal, in a pipe, as JSON, for all versions."""

from __future__ import annotations

import json
import os
import pty
import random
import re
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline_assets.cli import app
from pipeline_assets.cli.status import View
from pipeline_assets.cli.status_page import Facts
from pipeline_assets.cli.status_watch import watched
from resources.context import open_context
from resources.settings import Settings
from tests.support.clock import FrozenClock
from tests.support.command import COMMAND, environment
from tests.support.small_archive import KEY, PUMP, Archive, manual


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the state folder of an archive with one published and one new document."""
    tmp_path = tmp_path_factory.mktemp("watched")
    folder, clock = tmp_path / "documents", FrozenClock()
    settings = Settings(state=tmp_path / "state", source=folder)
    with open_context(settings, clock=clock, rng=random.Random(7)) as context:
        archive = Archive(folder, settings, context, clock)
        archive.write(PUMP, manual("Water Pump", "WP-100"))
        archive.process()
        archive.write("saw.txt", manual("Band Saw", "BS-9"))
        archive.scan()
    return settings.state_folder


def views(*done: bool) -> Iterator[View]:
    for number, finished in enumerate(done):
        yield View(
            done=finished,
            values=[{"look": number}],
            page=lambda _width, _watching, number=number: [Facts([("look", str(number))])],
        )


def test_it_waits_between_looks_and_tells_of_the_last(capsys: pytest.CaptureFixture[str]) -> None:
    slept: list[float] = []
    looks = views(True, True, False)
    done = watched(lambda: next(looks), every=7.0, times=3, json=False, sleep=slept.append)
    assert done is False
    assert slept == [7.0, 7.0]
    blocks = re.findall(r"At \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\nlook  (\d)\n", capsys.readouterr().out)
    assert blocks == ["0", "1", "2"]


def test_json_is_a_line_a_look(capsys: pytest.CaptureFixture[str]) -> None:
    looks = views(False, True)
    assert watched(lambda: next(looks), every=1, times=2, json=True, sleep=lambda _: None)
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line) for line in lines] == [{"look": 0}, {"look": 1}]


def test_the_command_says_what_waits_and_reads_only(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ledger = place / "ledger.sqlite"
    before = ledger.read_bytes()
    assert app.main(["status", "--watch", "0.1", "--times", "2", "--state", str(place)]) == 3
    shown = capsys.readouterr().out
    assert shown.count(f"processing version  {KEY} (active)") == 2
    assert "1 document not processed yet" in shown
    assert ledger.read_bytes() == before


def test_status_as_json(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["status", "--json", "--state", str(place)]) == 3
    (line,) = capsys.readouterr().out.splitlines()
    told = json.loads(line)
    assert told["publication"] == {
        "published": 1,
        "accepted": 0,
        "shown": 1,
        "shown_former": 0,
        "shown_again": 0,
        "share": 1.0,
    }
    assert told["waits"] == [
        {"what": "pending", "count": 1, "who": "the next run", "since": None, "command": ["run"]}
    ]
    assert told["ages"]["open_records"]["count"] == 0
    assert told["disk"]["artifact_files"]["request"] == 1
    assert told["ready"] is None


def test_every_version_in_a_line(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["status", "--all", "--state", str(place)]) == 3
    assert re.search(rf"{KEY} +active +0 +0 +1 +0 +0 +1", capsys.readouterr().out)
    assert app.main(["status", "--all", "--json", "--state", str(place)]) == 3
    (line,) = capsys.readouterr().out.splitlines()
    assert (json.loads(line)["processing_version"], json.loads(line)["waiting"]) == (KEY, 1)


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["5"], id="seconds-without-watch"),
        pytest.param(["--times", "2"], id="times-without-watch"),
        pytest.param(["--watch", "0"], id="no-seconds"),
        pytest.param(["--watch", "--times", "0"], id="no-times"),
        pytest.param(["--all", "--version", KEY], id="all-and-one"),
    ],
)
def test_wrong_usage(place: Path, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["status", *words, "--state", str(place)]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert len(told.err.splitlines()) == 1


def test_ctrl_c_ends_it(place: Path) -> None:
    words = [*COMMAND, "status", "--watch", "0.1", "--json", "--state", str(place)]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(), text=True
    ) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["processing_version"] == KEY
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "interrupted" in told
    assert "Traceback" not in told


def test_on_a_terminal_it_is_drawn_in_place(place: Path) -> None:
    ours, theirs = pty.openpty()
    words = [*COMMAND, "status", "--watch", "0.1", "--times", "2", "--state", str(place)]
    variables = environment() | {"TERM": "xterm", "COLUMNS": "80", "LINES": "24"}
    process = subprocess.Popen(
        words, stdin=theirs, stdout=theirs, stderr=theirs, env=variables, close_fds=True
    )
    os.close(theirs)
    seen = _all_of(ours)
    assert process.wait(timeout=30) == 3
    opened, closed = seen.index("\x1b[?1049h"), seen.index("\x1b[?1049l")
    assert seen[opened:closed].count("every 0.1 s; Ctrl-C ends") == 2
    # The terminal is given back, with the last look on it.
    assert "every 0.1 s" not in seen[closed:]
    assert "1 document not processed yet" in seen[closed:]


def _all_of(ours: int, limit: float = 60.0) -> str:
    """Everything that is written to a terminal until nobody has it open any more."""
    parts, last = [], time.monotonic() + limit
    while time.monotonic() < last:
        if not select.select([ours], [], [], 1.0)[0]:
            continue
        try:
            part = os.read(ours, 65_536)
        except OSError:
            break
        if not part:
            break
        parts.append(part)
    os.close(ours)
    return b"".join(parts).decode()
