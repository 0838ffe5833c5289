"""`metrics`: printed, written to a file, and served to whoever may read them."""

from __future__ import annotations

import http.client
import os
import random
import re
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from pipeline_assets.cli import app
from pipeline_assets.cli.metrics_server import (
    FRESH_SECONDS,
    CannotListen,
    MetricsServer,
    Scrapes,
    who_can_read,
)
from resources.context import open_context
from resources.settings import Settings
from tests.support.clock import FrozenClock
from tests.support.command import COMMAND, environment
from tests.support.small_archive import KEY, PUMP, Archive, manual


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a state folder with one published document, closed."""
    place = tmp_path_factory.mktemp("metrics")
    (place / "documents").mkdir()
    clock = FrozenClock()
    settings = Settings(state=place / "state", source=place / "documents")
    with open_context(settings, clock=clock, rng=random.Random(7)) as context:
        archive = Archive(place / "documents", settings, context, clock)
        archive.write(PUMP, manual("Water Pump", "WP-100"))
        archive.process()
    return place / "state"


def families(text: str) -> dict[str, str]:
    return {family.name: family.type for family in text_string_to_metric_families(text)}


def test_printed(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["metrics", "--state", str(state), "--version", KEY]) == 0
    printed = capsys.readouterr().out
    assert printed.endswith("# EOF\n")
    assert families(printed)["tallybook_queue_age_seconds"] == "gaugehistogram"


def test_written_whole_over_what_was_there(state: Path, tmp_path: Path) -> None:
    file = tmp_path / "tallybook.prom"
    file.write_text("old")
    assert app.main(["metrics", "--state", str(state), "--out", str(file)]) == 0
    text = file.read_text()
    assert "# TYPE tallybook_queue_age_seconds histogram" in text
    assert "gaugehistogram" not in text
    mask = os.umask(0o022)
    os.umask(mask)
    assert file.stat().st_mode & 0o777 == 0o644 & ~mask
    assert [found.name for found in tmp_path.iterdir()] == ["tallybook.prom"]
    other = tmp_path / "tallybook.txt"
    assert app.main(["metrics", "--state", str(state), "--out", str(other)]) == 0
    assert "tallybook_queue_age_seconds" in families(other.read_text())


@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        pytest.param(["--version", "never-1"], 1, "nothing was processed", id="unknown-version"),
        pytest.param(["--serve", "--out", "x.prom"], 2, "exclude each other", id="both-ways"),
        pytest.param(["--host", "0.0.0.0"], 2, "go with --serve", id="host-alone"),
        pytest.param(["--port", "9"], 2, "go with --serve", id="port-alone"),
        pytest.param(["--serve", "--port", "70000"], 2, "65535", id="no-port"),
        pytest.param(["--serve", "--host", "192.0.2.1"], 1, "--host or --port", id="not-ours"),
        pytest.param(["--out", "no/folder/x.prom"], 1, "there is no folder", id="no-folder"),
    ],
)
def test_refused(
    state: Path,
    words: list[str],
    status: int,
    told: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert app.main(["metrics", "--state", str(state), *words]) == status
    said = capsys.readouterr()
    assert told in said.err
    assert said.out == ""


def test_nothing_to_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["metrics", "--state", str(tmp_path), "--serve", "--port", "0"]) == 1
    assert "there is no ledger" in capsys.readouterr().err


# The server.


@contextmanager
def served(scrapes: Scrapes) -> Iterator[MetricsServer]:
    with MetricsServer("127.0.0.1", 0, scrapes) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def ask(server: MetricsServer, method: str, path: str) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection(server.address, server.server_port, timeout=20)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()


class Reader:
    """Counts reads, on a clock of its own; fails while `trouble` is set."""

    def __init__(self) -> None:
        self.reads, self.now, self.trouble = 0, 100.0, None
        self.told: list[Exception] = []
        self.scrapes = Scrapes(self.read, "text/x", self.told.append, lambda: self.now)

    trouble: Exception | None

    def read(self) -> bytes:
        self.reads += 1
        if self.trouble is not None:
            raise self.trouble
        return b"text %d\n" % self.reads


@pytest.mark.parametrize(
    ("method", "path", "status", "body"),
    [
        pytest.param("GET", "/metrics", 200, b"text 1\n", id="get"),
        pytest.param("GET", "/metrics?name=x", 200, b"text 1\n", id="with-a-query"),
        pytest.param("HEAD", "/metrics", 200, b"", id="head"),
        pytest.param("GET", "/", 404, b"there is only /metrics here\n", id="another-path"),
        pytest.param("GET", "/metrics/..", 404, b"there is only /metrics here\n", id="below"),
        pytest.param("POST", "/metrics", 405, b"expected GET or HEAD\n", id="post"),
        pytest.param("BREW", "/metrics", 405, b"expected GET or HEAD\n", id="unheard-of"),
    ],
)
def test_answers(method: str, path: str, status: int, body: bytes) -> None:
    reader = Reader()
    with served(reader.scrapes) as server:
        found, headers, read = ask(server, method, path)
    assert (found, read) == (status, body)
    assert headers.get("Allow") == ("GET, HEAD" if status == 405 else None)
    if status == 200:
        assert headers["Content-Type"] == "text/x"
        assert headers["Content-Length"] == "7"
    assert reader.reads == int(status == 200)


def test_a_text_is_fresh_for_a_second() -> None:
    reader = Reader()
    texts = []
    for later in (0.0, FRESH_SECONDS / 2, FRESH_SECONDS / 2, FRESH_SECONDS):
        reader.now += later
        texts.append(reader.scrapes.answer("GET", "/metrics").body)
    assert texts == [b"text 1\n", b"text 1\n", b"text 2\n", b"text 3\n"]


def test_a_failed_read_is_told_once_and_never_an_old_text() -> None:
    reader = Reader()
    assert reader.scrapes.answer("GET", "/metrics").status == "200 OK"
    reader.trouble = OSError("the secret reason")
    reader.now += FRESH_SECONDS
    answers = [reader.scrapes.answer("GET", "/metrics") for _ in range(3)]
    assert {answer.status for answer in answers} == {"503 Service Unavailable"}
    assert b"secret" not in answers[0].body
    assert b"Traceback" not in answers[0].body
    assert len(reader.told) == 1
    reader.trouble = None
    assert reader.scrapes.answer("GET", "/metrics").body == b"text 5\n"
    reader.trouble, reader.now = OSError("the secret reason"), reader.now + FRESH_SECONDS
    reader.scrapes.answer("GET", "/metrics")
    assert len(reader.told) == 2


def test_scrapes_do_not_overlap() -> None:
    at_once, most, lock = [0], [0], threading.Lock()
    entered = threading.Barrier(5)

    def read() -> bytes:
        with lock:
            at_once[0] += 1
            most[0] = max(most[0], at_once[0])
        threading.Event().wait(0.02)
        with lock:
            at_once[0] -= 1
        return b"text"

    # A clock that jumps, so that no text is fresh enough for the next.
    ticks = iter(range(0, 10_000, 10))
    scrapes = Scrapes(read, "text/x", lambda error: None, lambda: float(next(ticks)))

    def scrape() -> None:
        entered.wait()
        assert scrapes.answer("GET", "/metrics").body == b"text"

    threads = [threading.Thread(target=scrape) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]


def test_an_address_that_is_taken() -> None:
    reader = Reader()
    with served(reader.scrapes) as server, pytest.raises(CannotListen, match="--port"):
        MetricsServer(server.address, server.server_port, reader.scrapes)


@pytest.mark.parametrize(
    ("address", "warned"),
    [
        pytest.param("127.0.0.1", None, id="loopback"),
        pytest.param("127.9.9.9", None, id="loopback-too"),
        pytest.param("::1", None, id="loopback-6"),
        pytest.param("0.0.0.0", "every address of this machine", id="all"),
        pytest.param("::", "every address of this machine", id="all-6"),
        pytest.param("192.0.2.7", "192.0.2.7", id="another"),
    ],
)
def test_who_can_read(address: str, warned: str | None) -> None:
    told = who_can_read(address)
    assert (told is None) == (warned is None)
    assert warned is None or (told is not None and warned in told and "without a login" in told)


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM], ids=lambda end: end.name)
def test_the_whole_command_until_it_is_interrupted(
    state: Path, tmp_path: Path, end: signal.Signals
) -> None:
    words = ("metrics", "--serve", "--port", "0", "--state", str(state))
    with subprocess.Popen(
        [*COMMAND, *words],
        cwd=tmp_path,
        env=environment(PYTHONUNBUFFERED="1"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)/metrics", line)
        assert found is not None
        connection = http.client.HTTPConnection("127.0.0.1", int(found[1]), timeout=60)
        connection.request("GET", "/metrics")
        answer = connection.getresponse()
        kind, text = answer.getheader("Content-Type", ""), answer.read().decode()
        connection.close()
        process.send_signal(end)
        out, errors = process.communicate(timeout=60)
    assert kind.startswith("application/openmetrics-text")
    assert "tallybook_documents" in families(text)
    assert (process.returncode, out, errors) == (0, "Stopped.\n", "")
