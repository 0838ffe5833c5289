"""What `tallybook status` says, and that it fits where it is shown."""

from __future__ import annotations

import io
import re
from dataclasses import replace

import pytest
from rich.console import Console

from pipeline_assets.account.ages import Ages
from pipeline_assets.account.disk import Ahead, DiskFacts, Place
from pipeline_assets.account.readiness import Readiness
from pipeline_assets.account.status import NextPoll, Publication, Status, VersionLine
from pipeline_assets.account.waits import Wait
from pipeline_assets.cli import status_page
from pipeline_assets.cli.status_page import (
    Facts,
    Grid,
    bars,
    disk_sentence,
    drawn,
    open_sentence,
    page_of,
    page_of_all,
    print_page,
    ready_sentence,
    shown_sentence,
    size,
    span,
)
from pipeline_assets.disk_room import RecordBytes
from pipeline_assets.distribution import Distribution

MOMENT = "2030-01-02T03:04:05.000000Z"
NONE = Distribution(0, 0.0, None, None, None, (0,) * 9)
SOME = Distribution(12, 9.0e5, 90.0, 7200.0, 700_000.0, (0, 8, 1, 0, 2, 0, 0, 0, 1))
EACH = RecordBytes(request=2074.0, result=824.0, frame=122.0, ledger=2875.5)


def disk(
    *, ahead: int = 3, forecast: int | None = 5_000_000, enough: bool | None = True
) -> DiskFacts:
    return DiskFacts(
        artifacts={"text": 1_500_000},
        artifact_files={"text": 2},
        artifact_bytes=1_500_000,
        ledger_bytes=900,
        places=(Place(("artifacts", "ledger"), 2_000_000_000, 10**12, forecast, enough),),
        per_document=400.0,
        per_record=EACH,
        record_bytes=5895,
        ahead=Ahead(0, ahead, 0, 0, 0),
        records_ahead=ahead,
        forecast=forecast,
        unknown=() if forecast is not None else ("result", "frame"),
        reserve=1_024_000_000,
        enough=enough,
    )


def status(waits: tuple[Wait, ...] = ()) -> Status:
    return Status(
        processing_version="manuals-of-a-rather-long-name-openai-batch-12",
        state="active",
        state_reason="first use",
        documents=1_000_000,
        excluded=12,
        stages={
            "scanned": 1_000_000,
            "parsed": 999_000,
            "recorded": 999_000,
            "submitted": 900_000,
            "collected": 800_000,
            "judged": 700_000,
            "published": 690_000,
        },
        states={"published": 690_000, "prepared": 99_000, "awaiting_review": 17},
        batches={"completed": 28, "running": 4},
        open_records=99_000,
        oldest_open_at=MOMENT,
        oldest_open_seconds=90.0,
        waiting=(),
        retries_due_at=MOMENT,
        ages=Ages(SOME, SOME, SOME, SOME, NONE),
        active_attempts=100_000,
        publication=Publication(690_000, 5, 690_000, 0, 0.99999),
        next_poll=NextPoll("manuals-of-a-rather-long-name-openai-batch-12-m1-b3", MOMENT, True),
        waits=waits,
    )


WAITS = (
    Wait("awaiting_review", 17, "reviewer", MOMENT, ("review", "next")),
    Wait("submitted", 2, "provider", MOMENT, ("batch", "list")),
    Wait("batch running", 1, "provider", None, ("batch", "list")),
    Wait("held", 1, "operator", None, ("release", "--reason", "TEXT")),
    Wait("promoted", 1, "operator", None, None),
)


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (None, "–"),
        (0.2, "0 s"),
        (59, "59 s"),
        (60, "1.0 min"),
        (3600, "1.0 h"),
        (228_960, "2.6 days"),
    ],
)
def test_spans(seconds: float | None, told: str) -> None:
    assert span(seconds) == told


@pytest.mark.parametrize(
    ("count", "told"), [(0, "0 B"), (999, "999 B"), (2_340_000, "2.3 MB"), (5.6e12, "5.6 TB")]
)
def test_sizes(count: float, told: str) -> None:
    assert size(count) == told


@pytest.mark.parametrize(
    ("histogram", "told"),
    [
        ((0, 0, 0), "···"),
        ((8, 4, 1), "█▄▁"),
        ((1000, 1, 0), "█▁·"),
        ((3,), "█"),
    ],
)
def test_bars_need_no_colour(histogram: tuple[int, ...], told: str) -> None:
    assert bars(histogram) == told


@pytest.mark.parametrize("watching", [False, True])
@pytest.mark.parametrize("columns", [80, 160])
def test_a_page_fits_its_terminal(columns: int, watching: bool) -> None:
    screen = Console(file=io.StringIO(), width=columns, force_terminal=True, highlight=False)
    screen.print(drawn(page_of(status(WAITS), disk(), [], columns, watching=watching)))
    shown = re.sub(r"\x1b\[[0-9;]*m", "", screen.file.getvalue())  # pyright: ignore
    assert max(len(line.rstrip()) for line in shown.splitlines()) <= columns
    for word in ("published", "1000000", "8.1 days", "What waits for whom"):
        assert word in shown
    assert ("▁·▂··▁" in shown) or ("·█▁·▂···▁" in shown)
    # On a wide screen each bin has a number, on a narrow one a legend says which bar is which.
    assert ("up to 1m, 5m" in shown) is (columns == 80)
    assert ("release --reason TEXT" in shown) is not watching


def test_watched_what_waits_comes_before_what_may_be_cut() -> None:
    page = page_of(status(WAITS), disk(), [], 80, watching=True)
    assert isinstance(page[1], Facts)
    assert page[1].heading == "What waits for whom"
    assert isinstance(page[2], Grid)


def test_piped_nothing_is_cut_and_a_command_is_said_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = ["--state", "/a/rather/long/place" * 12, "--version", "v-1"]
    print_page(page_of(status(WAITS), disk(), options, 200))
    shown = capsys.readouterr().out
    lines = [line.strip() for line in shown.splitlines()]
    assert sum("review next --state" in line for line in lines) == 1
    (listed,) = [line for line in lines if "batch list" in line]
    assert listed.endswith("/place"), "of a command that takes no version, and whole"
    assert "17 records awaiting review, since" in shown
    assert "1 batch running" in shown
    assert "2 records submitted" in shown
    assert "the version is held" in shown
    assert "\x1b" not in shown


def test_nothing_waits(capsys: pytest.CaptureFixture[str]) -> None:
    print_page([status_page._waits((), [])])
    assert capsys.readouterr().out == "Nothing waits.\n"


def test_control_characters_do_not_reach_the_terminal() -> None:
    screen = Console(file=io.StringIO(), width=80, force_terminal=True)
    screen.print(drawn([Facts([("because", "a\x1b[2Jb")])]))
    assert "\x1b[2J" not in screen.file.getvalue()  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(
    ("known", "told"),
    [
        (disk(), "3 documents and records ahead may take 5.0 MB: enough, 1.0 GB are to stay free"),
        (disk(enough=False), "may take 5.0 MB: NOT ENOUGH, 1.0 GB are to stay free"),
        (
            disk(forecast=None, enough=None),
            "what 3 documents and records ahead may take is not known yet (result, frame); 1.0 GB",
        ),
        (disk(ahead=0, forecast=0), "nothing is ahead: enough"),
        (
            replace(
                disk(),
                places=(
                    Place(("artifacts",), 5, 9, 1, True),
                    Place(("ledger",), None, None, 1, None),
                ),
            ),
            "5 B free for artifacts and free space unknown for ledger",
        ),
    ],
)
def test_what_is_said_of_the_disk(known: DiskFacts, told: str) -> None:
    assert told in disk_sentence(known)


@pytest.mark.parametrize(
    ("moves", "records", "scanned", "shown", "told"),
    [
        (0, 0, False, False, "yes: report 4 was closed on"),
        (3, 12, False, False, "no longer: report 4 was closed on"),
        (1, 0, False, False, "since then 1 move of batches or the version"),
        (0, 0, True, False, "since then the sources changed"),
        (1, 1, True, False, "since then 1 record moved and the sources changed"),
        (0, 0, False, True, "since then the archive shows something else of it"),
    ],
)
def test_what_is_said_of_readiness(
    moves: int, records: int, scanned: bool, shown: bool, told: str
) -> None:
    ready = Readiness(
        report_no=4,
        digest="d",
        made_at=MOMENT,
        closed_at=MOMENT,
        closed_by="ada",
        moves_since=moves,
        records_since=records,
        scanned_since=scanned,
        shown_since=shown,
        ready=not (moves or scanned or shown),
    )
    assert told in ready_sentence(ready)
    assert ready_sentence(None).startswith("no:")


@pytest.mark.parametrize(
    ("present", "oldest", "told"),
    [
        (12, MOMENT, "12, the oldest moved last at "),
        (0, MOMENT, "0 and 12 of documents that changed or went away since, the oldest moved"),
        (12, None, "12"),
    ],
)
def test_what_is_open_of_documents_that_are_gone(
    present: int, oldest: str | None, told: str
) -> None:
    now = replace(status(), open_records=present, oldest_open_at=oldest)
    assert open_sentence(now).startswith(told)


@pytest.mark.parametrize(
    ("published", "shown", "former", "again", "told"),
    [
        (4, 4, 0, 0, None),
        (
            4,
            3,
            0,
            0,
            "3 of 4 published documents (for the others the archive shows another version, "
            "or none)",
        ),
        (4, 6, 2, 0, "4 of 4 published documents, and 2 documents that changed or went away since"),
        (
            0,
            1,
            0,
            1,
            "0 of 0 published documents, and 1 document whose record is being processed again",
        ),
        (
            4,
            4,
            1,
            0,
            "3 of 4 published documents (for the others the archive shows another version, or "
            "none), and 1 document that changed or went away since",
        ),
    ],
)
def test_what_the_archive_shows(
    published: int, shown: int, former: int, again: int, told: str | None
) -> None:
    now = replace(status(), publication=Publication(published, 0, shown, former, 1.0, again))
    assert shown_sentence(now) == told


def test_every_version_has_a_line_and_a_held_one_its_reason(
    capsys: pytest.CaptureFixture[str],
) -> None:
    line = VersionLine(
        processing_version="v-1",
        state="active",
        reason="first use",
        held_for=None,
        since=None,
        ends=None,
        documents=5,
        open_records=4,
        accepted=3,
        published=2,
        shown=2,
        awaiting_review=7,
        dead_letters=8,
        batches_open=1,
        waiting=6,
        done=False,
    )
    other = replace(
        line,
        processing_version="v-2",
        state="held",
        reason="the budget is used up",
        held_for="budget",
        since=MOMENT,
        ends="by command",
    )
    print_page(page_of_all([line, other]))
    shown = capsys.readouterr().out
    assert re.search(r"v-1 +active +4 +3 +2 +7 +8 +6", shown)
    assert re.search(r"v-2 +for budget since .*: the budget is used up; goes on by command", shown)
