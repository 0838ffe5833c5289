"""Closing a report: what is in the way, and that a closed one stands for good."""

from __future__ import annotations

import random
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from pipeline_assets.account.reconciliation import closing
from pipeline_assets.account.reconciliation.closing import CAUSE, close_report, find_obstacles
from pipeline_assets.account.reconciliation.errors import (
    CloserUnnamed,
    ReportNotClosable,
    ReportOvertaken,
)
from pipeline_assets.account.reconciliation.kept import keep_report, made_report, open_kept
from pipeline_assets.account.status import status
from pipeline_assets.account.waits import Wait
from pipeline_assets.quality.draw import draw_sample
from pipeline_assets.review.decisions import asked_of, decide
from resources.context import open_context
from resources.ledger.journal import verify_all
from resources.ledger.kept_reports import list_reports
from resources.settings import Settings
from tests.support.clock import FrozenClock
from tests.support.small_archive import KEY, Archive, fill_folder, manual


def decide_all(archive: Archive, decision: Any = "accept") -> None:
    with archive.context.ledger.read() as connection:
        found = connection.exec_driver_sql(
            "SELECT review_no, revision FROM reviews WHERE decision IS NULL ORDER BY review_no"
        ).all()
    for number, revision in found:
        decide(
            archive.context,
            asked_of([(number, revision)]),
            decision,
            reviewer="grace",
            reason="looked at",
        )


def make_ready(archive: Archive) -> Archive:
    """Decide on everything, publish it, draw a sample and decide on that."""
    decide_all(archive, "reject")
    draw_sample(archive.context, archive.version(), "a look", "ada", seed=3)
    decide_all(archive)
    archive.process()
    return archive


@pytest.fixture
def ready(archive: Archive) -> Archive:
    """Return the archive with everything decided, published and sampled."""
    return make_ready(archive)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with such an archive on SQLite, to make copies of."""
    place = tmp_path_factory.mktemp("ready")
    with opened(place) as archive:
        fill_folder(archive)
        archive.process()
        make_ready(archive)
    return place


@pytest.fixture
def copy(prepared: Path, tmp_path: Path) -> Iterator[Archive]:
    """Return a copy: cases that damage the ledger need one each, and making one takes a second."""
    place = tmp_path / "copy"
    shutil.copytree(prepared, place)
    with opened(place) as archive:
        sql(f"UPDATE sources SET location = '{archive.folder}'")(archive)
        yield archive


@contextmanager
def opened(place: Path) -> Iterator[Archive]:
    folder, clock = place / "documents", FrozenClock()
    settings = Settings(state=place / "state", source=folder, shard_records=2)
    with open_context(settings, clock=clock, rng=random.Random(7)) as context:
        yield Archive(folder, settings, context, clock)


def obstacles(archive: Archive) -> list[str]:
    with made_report(archive.context, KEY) as made:
        found = find_obstacles(archive.context, made.version, made.report)
    return [each.kind for each in found]


def test_a_collection_that_is_done_is_closed(ready: Archive) -> None:
    before = len(list_of(ready))
    closed = close_report(ready.context, KEY, " Ada ", "all is well")
    assert closed.is_new
    row = closed.row
    assert (row.closed_by, row.closing_reason, row.closed) == ("Ada", "all is well", True)
    assert row.closed_digest == row.digest
    assert len(list_of(ready)) == before + 1
    opened = open_kept(ready.context, row.report_no)
    assert opened.page is not None
    page = opened.page.read_text(encoding="utf-8")
    assert "<strong>Closed</strong>" in page
    assert row.digest in page
    with ready.context.ledger.read() as connection:
        move = connection.exec_driver_sql(
            "SELECT chain, to_state, actor, cause FROM moves WHERE machine = 'report'"
        ).one()
        assert verify_all(connection, ready.context.ledger.dialect).holds
    assert tuple(move) == (f"report:{row.report_no}", "closed", "Ada", f"{CAUSE} {row.digest}")
    now = status(ready.context, KEY).ready
    assert now is not None
    assert (now.report_no, now.ready) == (row.report_no, True)


def test_closing_twice_says_that_it_is_closed(ready: Archive) -> None:
    first = close_report(ready.context, KEY, "Ada")
    ready.clock.advance(timedelta(hours=1))
    second = close_report(ready.context, KEY, "Grace")
    assert (second.is_new, second.row) == (False, first.row)
    # A run afterwards keeps nothing new either.
    assert not keep_report(ready.context, KEY).is_new


def test_what_happens_later_makes_a_new_report_and_leaves_the_closed_one(ready: Archive) -> None:
    first = close_report(ready.context, KEY, "Ada").row
    opened = open_kept(ready.context, first.report_no)
    ready.clock.advance(timedelta(minutes=1))
    ready.write("new.txt", manual("Wall Heater", "WH-5"))
    ready.process()
    now = status(ready.context, KEY).ready
    assert now is not None
    assert not now.ready
    assert now.records_since
    draw_sample(ready.context, ready.version(), "another look", "ada")
    decide_all(ready)
    second = close_report(ready.context, KEY, "Grace").row
    assert second.report_no > first.report_no
    assert second.baseline_no == first.report_no
    assert open_kept(ready.context, first.report_no) == opened
    rows = [row for row in list_of(ready) if row.closed]
    assert [row.closed_by for row in rows] == ["Ada", "Grace"]


@dataclass(frozen=True)
class Case:
    """What is done to an archive that could be closed, and what is then in the way."""

    do: Callable[[Archive], None]
    kind: str


def sql(*statements: str) -> Callable[[Archive], None]:
    def run(archive: Archive) -> None:
        with archive.context.ledger.write() as connection:
            for statement in statements:
                connection.exec_driver_sql(statement)

    return run


def scan_new(archive: Archive) -> None:
    archive.write("new.txt", manual("Wall Heater", "WH-5"))
    archive.scan()


def accept_more(archive: Archive) -> None:
    archive.write("new.txt", manual("Wall Heater", "WH-5"))
    archive.process()


def draw_more(archive: Archive) -> None:
    accept_more(archive)
    draw_sample(archive.context, archive.version(), "another look", "ada")


def ask_for_more(archive: Archive) -> None:
    """Give the sample a share that it does not have yet."""
    sql(
        "INSERT INTO operating_settings (version_no, name, value, reason, actor, set_at) "
        "VALUES (NULL, 'sample_percent', '100', 'more', 'ada', '2026-11-30T01:02:03.000004Z')",
        "INSERT INTO operating_settings (version_no, name, value, reason, actor, set_at) "
        "VALUES (NULL, 'sample_least', '1', 'more', 'ada', '2026-11-30T01:02:03.000004Z')",
    )(archive)
    accept_more(archive)


_ONE = "(SELECT MIN(record_no) FROM record_state WHERE state = 'published')"
CASES = {
    "pending": Case(scan_new, "pending"),
    "sample-too-small": Case(accept_more, "sample_too_small"),
    "sample-share-too-small": Case(ask_for_more, "sample_too_small"),
    "sample-not-reviewed": Case(draw_more, "sample_not_reviewed"),
    "sample-not-drawn": Case(
        sql(
            "DELETE FROM reviews WHERE kind = 'quality_sample'",
            "DELETE FROM quality_samples",
            "DELETE FROM quality_sample_slices",
        ),
        "sample_not_drawn",
    ),
    **{
        state.replace("_", "-"): Case(
            sql(f"UPDATE record_state SET state = '{state}' WHERE record_no = {_ONE}"), state
        )
        for state in (
            "accepted",
            "awaiting_review",
            "collected",
            "dead_letter",
            "prepared",
            "queued",
            "retry_wait",
            "submitted",
        )
    },
    **{
        f"batch-{state}": Case(
            sql(f"UPDATE batches SET state = '{state}' WHERE batch_no = 1"), f"batch_{state}"
        )
        for state in ("incident", "quarantined", "running")
    },
    "violation": Case(sql("DELETE FROM deliveries"), "violation"),
    "journal": Case(sql("UPDATE moves SET actor = 'mallory' WHERE move_no = 2"), "journal"),
    "approval": Case(
        sql(
            "UPDATE exclusions SET reason = 'awaiting_approval' WHERE reason = 'empty'",
            "UPDATE source_entries SET excluded = 'awaiting_approval' WHERE excluded = 'empty'",
            "UPDATE exclusions SET reason = 'awaiting_approval' WHERE reason = 'encrypted'",
        ),
        "awaiting_approval",
    ),
    "held": Case(
        sql("UPDATE processing_versions SET state = 'held', state_reason = 'budget: spent'"),
        "held",
    ),
}


@pytest.mark.parametrize("name", sorted(CASES))
def test_each_obstacle_is_named_and_nothing_is_kept(name: str, copy: Archive) -> None:
    case = CASES[name]
    assert obstacles(copy) == []
    case.do(copy)
    before = list_of(copy)
    with pytest.raises(ReportNotClosable) as refused:
        close_report(copy.context, KEY, "Ada")
    kinds = [each.kind for each in refused.value.obstacles]
    assert case.kind in kinds
    assert all(each.what and each.remedy for each in refused.value.obstacles)
    assert list_of(copy) == before


def test_members_of_a_move_that_is_gone_are_in_the_way(copy: Archive) -> None:
    with made_report(copy.context, KEY) as made:
        sql("INSERT INTO move_members (move_no, record_no) VALUES (999999, 1)")(copy)
        (found,) = find_obstacles(copy.context, made.version, made.report)
    assert (found.kind, "members without a move" in found.what) == ("journal", True)


def test_everything_in_the_way_is_told_at_once(archive: Archive) -> None:
    scan_new(archive)
    with pytest.raises(ReportNotClosable) as refused:
        close_report(archive.context, KEY, "Ada")
    kinds = {each.kind for each in refused.value.obstacles}
    assert {"pending", "awaiting_review", "sample_not_drawn"} <= kinds
    assert "tallybook review" in str(refused.value)


def test_records_of_documents_that_changed_since_are_open_too(copy: Archive) -> None:
    sql(
        f"UPDATE record_state SET state = 'submitted' WHERE record_no = {_ONE}",
        "UPDATE source_entries SET to_snapshot = 1 WHERE document_no = (SELECT document_no "
        "FROM records WHERE record_no = (SELECT record_no FROM record_state "
        "WHERE state = 'submitted'))",
    )(copy)
    assert "submitted" in obstacles(copy)


@pytest.mark.parametrize(
    ("least", "percent", "remedy"),
    [
        pytest.param("5", "0", f"tallybook quality draw --reason TEXT --version {KEY}", id="draw"),
        pytest.param(
            "0",
            "0",
            f"tallybook settings set sample_least 5 --reason TEXT --version {KEY}, then tallybook "
            f"quality draw --reason TEXT --version {KEY}",
            id="switched-off",
        ),
    ],
)
def test_what_is_told_to_do_about_a_sample_helps(
    least: str, percent: str, remedy: str, copy: Archive
) -> None:
    CASES["sample-not-drawn"].do(copy)
    sql(
        "INSERT INTO operating_settings (version_no, name, value, reason, actor, set_at) VALUES "
        f"(NULL, 'sample_least', '{least}', 'a', 'ada', '2026-11-30T01:02:03.000004Z'), "
        f"(NULL, 'sample_percent', '{percent}', 'a', 'ada', '2026-11-30T01:02:03.000004Z')"
    )(copy)
    with made_report(copy.context, KEY) as made:
        (found,) = find_obstacles(copy.context, made.version, made.report)
    assert (found.kind, found.remedy) == ("sample_not_drawn", remedy)


def test_where_a_person_saw_every_answer_no_sample_is_asked_for(copy: Archive) -> None:
    sql(
        "UPDATE reviews SET kind = 'findings' WHERE kind = 'quality_sample'",
        "DELETE FROM quality_samples",
        "DELETE FROM quality_sample_slices",
    )(copy)
    with made_report(copy.context, KEY) as made:
        assert made.report.details.quality is None
    assert obstacles(copy) == []


@pytest.mark.parametrize(
    ("wait", "said"),
    [
        (Wait("dead_letter", 1, "ada", None, None), "1 record waits for ada (dead letter)"),
        (Wait("submitted", 12, "provider", None, None), "12 records wait for provider (submitted)"),
        (
            Wait("batch quarantined", 1, "operator", None, None),
            "1 batch waits for operator (quarantined)",
        ),
        (Wait("canary failed", 2, "operator", None, None), "2 canaries wait for operator (failed)"),
        (
            Wait("held", 1, "operator", None, None),
            "the version is held and waits for operator",
        ),
    ],
    ids=["record", "records", "batch", "canaries", "held"],
)
def test_what_waits_is_a_sentence(wait: Wait, said: str) -> None:
    assert closing._said(wait) == said


def test_nobody_vouches_for_what_moved_meanwhile(
    ready: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = closing.page_of

    def meanwhile(*arguments: Any) -> Any:
        ready.write("new.txt", manual("Wall Heater", "WH-5"))
        ready.process()
        return shown(*arguments)

    monkeypatch.setattr(closing, "page_of", meanwhile)
    before = list_of(ready)
    with pytest.raises(ReportOvertaken, match="Close it again"):
        close_report(ready.context, KEY, "Ada")
    assert list_of(ready) == before


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "\x00", "a" * 129, "\udcff"])
def test_nobody_is_no_name(name: str, copy: Archive) -> None:
    with pytest.raises(CloserUnnamed, match="--by NAME"):
        close_report(copy.context, KEY, name)


def test_of_two_who_close_at_once_one_wins(ready: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    # Both have made their report and found nothing in the way before either writes.
    gate = threading.Barrier(2)
    close = closing._close

    def at_once(*arguments: Any) -> closing.Closed:
        gate.wait(60)
        return close(*arguments)

    monkeypatch.setattr(closing, "_close", at_once)
    found: list[closing.Closed] = []
    threads = [
        threading.Thread(target=lambda who=who: found.append(close_report(ready.context, KEY, who)))
        for who in ("Ada", "Grace")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert sorted(closed.is_new for closed in found) == [False, True]
    assert found[0].row == found[1].row
    assert len([row for row in list_of(ready) if row.closed]) == 1


def list_of(archive: Archive) -> Any:
    with archive.context.ledger.read() as connection:
        return list_reports(connection)
