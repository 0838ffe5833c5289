"""The pool against workers that crash, hang, lie and stop at every point."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline_assets.ingest.parsing import pool as pool_module
from pipeline_assets.ingest.parsing.model import (
    ParsedDocument,
    ParseFailure,
    ParseLimits,
    ParseReport,
    ParseTask,
)
from pipeline_assets.ingest.parsing.pool import ParserPool, ParserUnavailable

# A worker that does what the document says; `first` says it only once for each file.
WORKER = textwrap.dedent(
    """
    import os, signal, socket, sys, time
    from pathlib import Path
    from pipeline_assets.ingest.parsing import protocol as p
    from pipeline_assets.ingest.parsing.model import ParsedDocument, ParseFailure, place_pages

    channel = socket.socket(fileno=int(sys.argv[1]))
    here = Path(__file__).parent
    start = (here / "start").read_text() if (here / "start").exists() else "ok"

    def send(message):
        channel.sendall(p.encode(message))

    def die(name):
        os.kill(os.getpid(), getattr(signal, name))
        time.sleep(30)

    if start == "exit":
        sys.exit(3)
    if start == "hang":
        time.sleep(30)
    if start == "broken":
        send(p.SelfTestFailed("no picture library"))
        sys.exit(1)
    if start == "noise":
        channel.sendall(b"\\x00\\x00\\x00\\x02hi")
        time.sleep(30)
    send(p.Hello("0" if start == "old" else "1", False, 0.0))
    if start == "hello twice":
        send(p.Hello("1", False, 0.0))
    if start == "idle death":
        sys.exit(0)

    while True:
        prefix, descriptors, _, _ = socket.recv_fds(channel, 4, 1)
        if not prefix:
            sys.exit(0)
        request = p.decode_request(channel.recv(int.from_bytes(prefix, "big")))
        with os.fdopen(descriptors[0], "rb") as file:
            orders = file.read().decode().split(",")
        number = request.number
        for order in orders:
            if order.startswith("first "):
                seen = here / ("seen-" + order.replace(" ", "-"))
                if seen.exists():
                    continue
                seen.touch()
                order = order.removeprefix("first ")
            if order.startswith("render "):
                if not request.render:
                    continue
                send(p.Rendering(number))
                order = order.removeprefix("render ")
            if order.startswith("SIG"):
                die(order)
            elif order == "exit":
                sys.exit(7)
            elif order == "hang":
                time.sleep(30)
            elif order == "close":
                channel.close()
                time.sleep(30)
            elif order == "noise":
                channel.sendall(b"\\x00\\x00\\x00\\x04junk")
                time.sleep(30)
            elif order == "huge":
                channel.sendall(b"\\xff\\xff\\xff\\xff")
                time.sleep(30)
            elif order == "half":
                channel.sendall(b"\\x00\\x00\\x01\\x00{")
                sys.exit(0)
            elif order == "other number":
                number += 1
            elif order == "no text":
                send(p.Reply(number, None, ParseFailure("no_text", "x"), None, 0.0, 1, False))
        pages = place_pages([("text", "text")])
        notes = () if request.render else ("render_failed",)
        document = ParsedDocument("text/plain", 1, pages, None, (), None, False, notes)
        if "no text" not in orders:
            send(p.Reply(number, document, None, "0" * 64, 0.0, 1, "retire" in orders))
        if "twice" in orders:
            send(p.Reply(number, document, None, "0" * 64, 0.0, 1, False))
    """
)


@pytest.fixture
def faulty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ParserPool]:
    monkeypatch.setattr(pool_module, "GRACE_SECONDS", 0.4)
    script = tmp_path / "worker.py"
    script.write_text(WORKER)

    def command(descriptor: int, _: ParseLimits) -> list[str]:
        return [sys.executable, "-B", str(script), str(descriptor)]

    with ParserPool(2, ParseLimits(wall_seconds=1.5), command=command) as pool:
        yield pool


def orders(tmp_path: Path, *contents: str) -> list[ParseTask]:
    tasks = []
    for number, content in enumerate(contents):
        path = tmp_path / f"{number}.txt"
        path.write_text(content)
        tasks.append(ParseTask(content, path))
    return tasks


def summary(report: ParseReport) -> str:
    outcome = report.outcome
    if isinstance(outcome, ParseFailure):
        return f"{outcome.reason}: {outcome.detail}"
    return ",".join(outcome.notes) or "ok"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        pytest.param("ok,", "ok", id="sound"),
        pytest.param("retire", "ok", id="retires"),
        pytest.param("SIGABRT", "too_large: the reader gave up with SIGABRT", id="abort"),
        pytest.param("SIGXCPU", "too_slow: more than 40 s of CPU time", id="cpu"),
        pytest.param("SIGSEGV", "unreadable: the reader crashed with SIGSEGV", id="crash"),
        pytest.param("exit", "unreadable: the worker ended with status 7", id="exit"),
        pytest.param("hang", "too_slow: more than 1.5 s of wall time", id="hang"),
        pytest.param(
            "close", "unreadable: the worker answered with garbage", id="closes and hangs"
        ),
        pytest.param("noise", "unreadable: the worker answered with garbage", id="noise"),
        pytest.param("huge", "unreadable: the worker answered with garbage", id="huge frame"),
        pytest.param("half", "unreadable: the worker left without an answer", id="half a frame"),
        pytest.param("other number", "unreadable: the worker answered", id="another's answer"),
        pytest.param("first SIGKILL", "ok", id="killed from outside once"),
        pytest.param("SIGKILL", "unreadable: the worker was ended by SIGKILL", id="always killed"),
        pytest.param("render SIGABRT", "render_failed", id="dies while drawing"),
        pytest.param("render hang", "render_failed", id="hangs while drawing"),
        pytest.param("render SIGABRT,no text", "too_large: the reader gave up", id="only drawings"),
        pytest.param("twice", "ok", id="answers twice"),
    ],
)
def test_one_outcome_and_the_pool_lives(
    faulty: ParserPool, tmp_path: Path, content: str, expected: str
) -> None:
    tasks = orders(tmp_path, "ok", content, "ok ", "ok  ")
    reports = {report.key: summary(report) for report in faulty.parse_many(tasks)}
    assert len(reports) == 4
    assert reports[content].startswith(expected)
    assert [reports[key] for key in ("ok", "ok ", "ok  ")] == ["ok"] * 3


def test_a_death_from_outside_is_not_remembered(faulty: ParserPool, tmp_path: Path) -> None:
    (report,) = faulty.parse_many(orders(tmp_path, "SIGKILL"))
    assert not report.cacheable


def test_many_bad_documents_at_once(faulty: ParserPool, tmp_path: Path) -> None:
    contents = [f"{order}{' ' * n}" for n in range(3) for order in ("SIGSEGV", "noise", "ok")]
    tasks = orders(tmp_path, *(content.strip() for content in contents))
    assert len(list(faulty.parse_many(tasks))) == len(tasks)


@pytest.mark.parametrize(
    ("start", "message"),
    [
        pytest.param("exit", "ended at start .status 3., 3 times in a row", id="exits"),
        pytest.param("hang", "did not start within", id="hangs"),
        pytest.param("broken", "self-test failed: no picture library", id="self-test"),
        pytest.param("noise", "3 times in a row", id="noise"),
        pytest.param("old", "parser version 0", id="another version"),
    ],
)
def test_workers_that_never_start_stop_the_run(
    faulty: ParserPool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    start: str,
    message: str,
) -> None:
    monkeypatch.setattr(pool_module, "START_SECONDS", 1.0)
    (tmp_path / "start").write_text(start)
    with pytest.raises(ParserUnavailable, match=message):
        list(faulty.parse_many(orders(tmp_path, "ok")))


def test_a_worker_that_dies_while_free_costs_nothing(faulty: ParserPool, tmp_path: Path) -> None:
    (tmp_path / "start").write_text("idle death")
    faulty.check()
    (tmp_path / "start").write_text("ok")
    (report,) = faulty.parse_many(orders(tmp_path, "ok"))
    assert isinstance(report.outcome, ParsedDocument)


def test_no_descriptor_is_lost(faulty: ParserPool, tmp_path: Path) -> None:
    tasks = orders(tmp_path, "ok", "SIGSEGV", "noise", "retire", "ok")
    list(faulty.parse_many(tasks))
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(3):
        list(faulty.parse_many(tasks))
    assert len(list(Path("/proc/self/fd").iterdir())) <= before + 1
