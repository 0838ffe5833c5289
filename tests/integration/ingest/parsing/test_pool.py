"""The pool over real workers: good files, hostile files, limits, and the parent's death."""

from __future__ import annotations

import hashlib
import os
import signal
import socket
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from PIL import Image, ImageDraw, ImageFont

from pipeline_assets.ingest.parsing import dump, process
from pipeline_assets.ingest.parsing.model import (
    MIB,
    PDF,
    ParsedDocument,
    ParseFailure,
    ParseLimits,
    ParseReport,
    ParseTask,
)
from pipeline_assets.ingest.parsing.opening import open_document
from pipeline_assets.ingest.parsing.pool import ParserPool, ParserUnavailable, PoolMisuse
from pipeline_assets.ingest.parsing.selftest import KNOWN_TEXT, known_pdf

REPOSITORY = Path(__file__).resolve().parents[4]


@pytest.fixture(scope="module")
def pool() -> Iterator[ParserPool]:
    """One pool for every test that does not wear it out: workers are made to be shared."""
    with ParserPool(2, ParseLimits()) as shared:
        yield shared


def task(path: Path, content: bytes | None = None, **options: str) -> ParseTask:
    if content is not None:
        path.write_bytes(content)
    return ParseTask(path.name, path, **options)


def one(pool: ParserPool, wanted: ParseTask) -> ParseReport:
    (report,) = pool.parse_many([wanted])
    assert report.key == wanted.key
    return report


def reason(report: ParseReport) -> str:
    assert isinstance(report.outcome, ParseFailure), report.outcome
    return report.outcome.reason


def pdf_with_content(content: bytes, *, packed: int = 0) -> bytes:
    """The known PDF with another content stream, compressed `packed` times already."""
    filters = b"[" + b"/FlateDecode" * (packed + 1) + b"]"
    content = zlib.compress(content, 9)
    head, _, rest = known_pdf().partition(b"<</Filter/FlateDecode")
    _, _, tail = rest.partition(b"endstream")
    stream = b"<</Filter%b/Length %d>>stream\n%b\nendstream" % (filters, len(content), content)
    return head + stream + tail


def inflating_to_a_gibibyte() -> bytes:
    """A zlib stream of spaces: one compressed MiB, said again and again."""
    packer = zlib.compressobj(9)
    mib = b" " * MIB
    first = packer.compress(mib) + packer.flush(zlib.Z_FULL_FLUSH)
    again = packer.compress(mib) + packer.flush(zlib.Z_FULL_FLUSH)
    return first + again * 1023 + packer.flush()


def test_every_task_has_one_report(pool: ParserPool, tmp_path: Path) -> None:
    good = known_pdf()
    tasks = [task(tmp_path / f"{number}.pdf", good) for number in range(7)]
    tasks.append(task(tmp_path / "noise.pdf", os.urandom(2_000)))
    reports = {report.key: report for report in pool.parse_many(iter(tasks))}
    assert set(reports) == {wanted.key for wanted in tasks}
    first = reports["0.pdf"]
    assert isinstance(first.outcome, ParsedDocument)
    assert first.outcome.text == KNOWN_TEXT
    assert first.sha256 == hashlib.sha256(good).hexdigest()
    assert first.cacheable
    assert 0 < first.peak_rss_bytes < 1024 * MIB
    assert first.wall_seconds >= 0
    assert first.cpu_seconds >= 0
    assert reason(reports["noise.pdf"]) == "unreadable"


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        pytest.param("blob", {"media_type_hint": PDF}, (), id="a hint promises the type"),
        pytest.param("blob", {"name": "Manual.pdf"}, (), id="the document's own name does"),
        pytest.param("blob", {}, ("extension_ignored",), id="nothing does"),
        pytest.param("a.pdf", {"media_type_hint": "x/y"}, (), id="an unknown hint is no promise"),
    ],
)
def test_what_promises_the_type(
    pool: ParserPool, tmp_path: Path, name: str, options: dict[str, str], expected: tuple[str, ...]
) -> None:
    report = one(pool, task(tmp_path / name, known_pdf(), **options))
    assert isinstance(report.outcome, ParsedDocument)
    assert report.outcome.notes == expected


def make_empty(path: Path) -> None:
    path.touch()


def make_huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(2 * 2**30)


def make_queue(path: Path) -> None:
    os.mkfifo(path)


def make_folder(path: Path) -> None:
    path.mkdir()


def make_link(path: Path) -> None:
    target = path.with_name("target")
    target.write_bytes(known_pdf())
    path.symlink_to(target)


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))


def make_nothing(path: Path) -> None:
    assert not path.exists()


@pytest.mark.parametrize(
    ("make", "expected", "detail"),
    [
        pytest.param(make_empty, "empty", "no bytes", id="empty"),
        pytest.param(make_huge, "too_large", "bytes", id="sparse 2 GiB"),
        pytest.param(make_queue, "unreadable", "regular", id="queue"),
        pytest.param(make_folder, "unreadable", "regular", id="folder"),
        pytest.param(make_link, "unreadable", "symbolic link", id="link"),
        pytest.param(make_socket, "unreadable", "ENXIO", id="socket"),
        pytest.param(make_nothing, "unreadable", "ENOENT", id="missing"),
    ],
)
def test_what_cannot_be_opened(
    pool: ParserPool, tmp_path: Path, make: Callable[[Path], None], expected: str, detail: str
) -> None:
    path = tmp_path / "x.pdf"
    make(path)
    report = one(pool, ParseTask("x", path))
    assert isinstance(report.outcome, ParseFailure)
    assert report.outcome.reason == expected
    assert detail in report.outcome.detail
    assert str(tmp_path) not in report.outcome.detail


def test_opening_leaves_no_descriptor_behind(tmp_path: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        assert isinstance(open_document(tmp_path, 10), ParseFailure)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_bomb_costs_one_document(pool: ParserPool, tmp_path: Path) -> None:
    bomb = pdf_with_content(inflating_to_a_gibibyte(), packed=1)
    assert len(bomb) < 20_000
    tasks = [
        task(tmp_path / "before.pdf", known_pdf()),
        task(tmp_path / "bomb.pdf", bomb),
        task(tmp_path / "after.pdf", known_pdf()),
    ]
    reports = {report.key: report for report in pool.parse_many(tasks)}
    assert reason(reports["bomb.pdf"]) == "too_large"
    assert reports["bomb.pdf"].peak_rss_bytes < 1024 * MIB
    for key in ("before.pdf", "after.pdf"):
        assert isinstance(reports[key].outcome, ParsedDocument)


SLOW = b"1 0 0 1 0 0 cm\n" * 10_000_000


@pytest.mark.parametrize(
    ("limits", "word"),
    [
        pytest.param(ParseLimits(cpu_seconds=1), "CPU", id="cpu"),
        pytest.param(ParseLimits(wall_seconds=0.7), "wall", id="wall"),
    ],
)
def test_a_slow_document_is_stopped(tmp_path: Path, limits: ParseLimits, word: str) -> None:
    began = time.monotonic()
    with ParserPool(1, limits) as pool:
        pool.check()
        report = one(pool, task(tmp_path / "slow.pdf", pdf_with_content(SLOW)))
        assert isinstance(one(pool, task(tmp_path / "ok.pdf", known_pdf())).outcome, ParsedDocument)
    assert isinstance(report.outcome, ParseFailure)
    assert report.outcome.reason == "too_slow"
    assert word in report.outcome.detail
    assert not report.cacheable
    assert time.monotonic() - began < 20


def test_too_little_memory_is_told_at_the_start() -> None:
    limits = ParseLimits(memory_bytes=48 * MIB)
    with ParserPool(1, limits) as pool, pytest.raises(ParserUnavailable, match="memory"):
        pool.check()


def test_the_caller_may_take_its_time(tmp_path: Path) -> None:
    with ParserPool(2, ParseLimits(wall_seconds=3)) as pool:
        pool.check()
        outcomes = []
        for report in pool.parse_many(
            task(tmp_path / f"{number}.pdf", known_pdf()) for number in range(4)
        ):
            outcomes.append(report.outcome)
            if len(outcomes) == 1:
                time.sleep(3.5)
    assert [type(outcome) for outcome in outcomes] == [ParsedDocument] * 4


def test_stopping_early_leaves_a_usable_pool(pool: ParserPool, tmp_path: Path) -> None:
    tasks = [task(tmp_path / f"{number}.pdf", known_pdf()) for number in range(6)]
    reports = pool.parse_many(tasks)
    next(reports)
    with pytest.raises(PoolMisuse, match="in use"):
        next(pool.parse_many(tasks))
    reports.close()  # pyright: ignore[reportAttributeAccessIssue] - it is a generator
    assert len(list(pool.parse_many(tasks))) == 6


def test_a_pool_must_be_entered() -> None:
    pool = ParserPool(1, ParseLimits())
    with pytest.raises(PoolMisuse, match="with"):
        pool.check()
    with pytest.raises(ValueError, match="at least one"):
        ParserPool(0, ParseLimits())


def test_leaving_the_pool_ends_every_worker(tmp_path: Path) -> None:
    me = psutil.Process()
    before = set(me.children())
    with ParserPool(2, ParseLimits()) as pool:
        list(pool.parse_many(task(tmp_path / f"{n}.pdf", known_pdf()) for n in range(4)))
        workers = set(me.children()) - before
        assert 1 <= len(workers) <= 2
        for worker in workers:
            assert worker.cwd() == "/"
            assert os.getsid(worker.pid) == worker.pid
            assert worker.rlimit(psutil.RLIMIT_CORE) == (0, 0)
            assert worker.rlimit(psutil.RLIMIT_FSIZE) == (0, 0)
            assert worker.rlimit(psutil.RLIMIT_AS)[0] == ParseLimits().memory_bytes
    assert not [worker for worker in workers if worker.is_running()]


def test_a_worker_inherits_no_settings_and_no_keys() -> None:
    inherited = {
        "PATH": "/bin",
        "TALLYBOOK_LEDGER_URL": "x",
        "SOME_API_KEY": "x",
        "PYTHONPATH": "/extra",
    }
    environment = process.worker_environment(inherited)
    assert not {"PATH", "TALLYBOOK_LEDGER_URL", "SOME_API_KEY"} & set(environment)
    assert environment["PYTHONPATH"].split(os.pathsep) == [str(REPOSITORY), "/extra"]


PARENT = """
import sys, time
from pipeline_assets.ingest.parsing.model import ParseLimits
from pipeline_assets.ingest.parsing.pool import ParserPool
with ParserPool(1, ParseLimits()) as pool:
    pool.check()
    print("ready", flush=True)
    time.sleep(60)
"""


def test_workers_die_with_a_killed_parent() -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    with parent.stdout:
        assert parent.stdout.readline() == "ready\n"
        (worker,) = psutil.Process(parent.pid).children()
        os.kill(parent.pid, signal.SIGKILL)
        parent.wait()
    psutil.wait_procs([worker], timeout=5)
    assert not worker.is_running() or worker.status() == psutil.STATUS_ZOMBIE


def scan(path: Path) -> ParseTask:
    """A PDF that is nothing but a picture of words."""
    image = Image.new("L", (1240, 800), 255)
    draw = ImageDraw.Draw(image)
    font = ImageFont.load_default(size=40)
    lines = ["Operating instructions", "Connect the cable to the", "terminal before you switch on"]
    for row, line in enumerate(lines):
        draw.text((100, 100 + 90 * row), line, font=font, fill=0)
    image.save(path, format="PDF", resolution=150)
    return task(path)


def test_a_scan_is_read(pool: ParserPool, tmp_path: Path) -> None:
    if not pool.ocr_available:
        pytest.skip("the extra ocr is not installed")
    outcome = one(pool, scan(tmp_path / "scan.pdf")).outcome
    assert isinstance(outcome, ParsedDocument)
    assert outcome.notes == ("ocr",)
    assert outcome.text.startswith("Operating instructions\n")
    words = " ".join(outcome.text.split())
    assert "Connect the cable to the terminal before you switch on" in words
    assert outcome.language == "en"


def test_dump_prints_pages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert dump.main([str(task(tmp_path / "a.pdf", known_pdf()).path)]) == 0
    assert KNOWN_TEXT in capsys.readouterr().out
    assert dump.main([str(tmp_path / "missing.pdf")]) == 3
    assert '"unreadable"' in capsys.readouterr().out
    assert dump.main([]) == 2
