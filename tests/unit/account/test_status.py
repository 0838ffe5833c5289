"""What is open, how old it is, and what waits for whom."""

from __future__ import annotations

import pytest

from pipeline_assets.account.standing import Standings
from pipeline_assets.account.status import status, what_waits, work_mark
from pipeline_assets.submit.submit_batches import submit_batches
from tests.support.small_archive import KEY, Archive


def standings(pending: int = 0, **states: int) -> Standings:
    return Standings(
        documents=sum(states.values()) + pending,
        states=states,
        excluded={},
        pending=pending,
        doubled=0,
    )


@pytest.mark.parametrize(
    ("counted", "batches", "version", "waits"),
    [
        pytest.param(standings(published=3), {"completed": 1}, "active", [], id="all-published"),
        pytest.param(
            standings(rejected=1, discarded=1, superseded=1, withdrawn=1, cancelled=1),
            {"completed_with_errors": 1, "cancelled": 1, "retry_required": 1},
            "active",
            [],
            id="ends-that-need-nobody",
        ),
        pytest.param(
            standings(awaiting_review=2, dead_letter=1),
            {},
            "active",
            [("awaiting_review", 2, True), ("dead_letter", 1, True)],
            id="for-a-person",
        ),
        pytest.param(
            standings(retry_wait=1, prepared=2),
            {"submitted": 1},
            "active",
            [("prepared", 2, False), ("retry_wait", 1, False), ("batch submitted", 1, False)],
            id="for-another-run",
        ),
        pytest.param(
            standings(),
            {"quarantined": 1, "incident": 2},
            "active",
            [("batch quarantined", 1, True), ("batch incident", 2, True)],
            id="for-an-operator",
        ),
        pytest.param(standings(published=1), {}, "held", [("held", 1, True)], id="held"),
        pytest.param(
            standings(pending=4), {}, "active", [("pending", 4, False)], id="scanned-only"
        ),
    ],
)
def test_what_waits(
    counted: Standings,
    batches: dict[str, int],
    version: str,
    waits: list[tuple[str, int, bool]],
) -> None:
    found = what_waits(counted, batches, version)
    assert [(item.what, item.count, item.by_person) for item in found] == waits


def test_after_every_stage(read_archive: Archive) -> None:
    now = status(read_archive.context, KEY)
    assert (now.documents, now.excluded, now.open_records) == (6, 3, 0)
    assert now.stages == {
        "scanned": 6,
        "parsed": 4,
        "recorded": 3,
        "submitted": 3,
        "collected": 3,
        "judged": 3,
        "published": 2,
    }
    assert now.oldest_open_at is None
    assert [item.what for item in now.waiting] == ["awaiting_review"]
    assert not now.done
    assert now.as_json()["done"] is False


def test_between_the_stages_the_oldest_record_ages(fresh_archive: Archive) -> None:
    version = fresh_archive.prepare()
    fresh_archive.clock.advance(90)
    now = status(fresh_archive.context, KEY)
    assert now.stages["recorded"] == 3
    assert now.stages["submitted"] == 0
    assert (now.open_records, now.oldest_open_seconds) == (3, 90.0)
    assert {item.what for item in now.waiting} == {"prepared", "batch prepared"}
    submit_batches(fresh_archive.context, version)
    moved = status(fresh_archive.context, KEY)
    assert moved.oldest_open_seconds == 0.0
    assert moved.stages["submitted"] == 3


def test_the_mark_moves_only_with_work(archive: Archive) -> None:
    before = work_mark(archive.context)
    archive.process()
    assert work_mark(archive.context) == before
    archive.write("another.txt", "a note without any title or meaning")
    archive.scan()
    assert work_mark(archive.context) != before
