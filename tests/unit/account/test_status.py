"""What is open, how old it is, and what waits for whom."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest
from sqlalchemy import update

from pipeline_assets.account.ages import BATCH_SCHEMA
from pipeline_assets.account.standing import Standings
from pipeline_assets.account.status import (
    POLL_GRACE,
    all_versions,
    next_poll,
    status,
    what_waits,
    work_mark,
)
from pipeline_assets.publish.rollback import rollback_version
from pipeline_assets.recovery.holds import HoldKind, hold
from pipeline_assets.submit.submit_batches import submit_batches
from resources.clock import to_text
from resources.ledger.schema import record_state
from resources.ledger.versions import set_operating
from tests.support.small_archive import KEY, SAW, Archive


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


def test_a_version_that_nothing_holds(read_archive: Archive) -> None:
    now = status(read_archive.context, KEY)
    assert now.held is None
    assert now.breaker is not None
    assert (now.breaker.results, now.breaker.usable, now.breaker.usable_percent) == (3, 3, 100.0)
    assert (now.breaker.window, now.breaker.enough, now.breaker.floor_percent) == (200, 20, 50)
    assert not now.breaker.on_probation
    assert [(entry.queue, entry.records, entry.limit) for entry in now.backlog] == [
        ("staging", 0, 200_000),
        ("review", 1, 20_000),
        ("publication", 0, 200_000),
    ]


@pytest.mark.parametrize(
    ("kind", "minutes", "by_itself", "ends_at", "ends"),
    [
        ("operator", 60, False, None, "by command"),
        ("quota", 60, False, None, "by command"),
        ("breaker", 0, False, None, "by command"),
        ("breaker", 90, True, "2030-01-02T04:34:05.000000Z", "by itself"),
        (
            "backpressure",
            60,
            True,
            None,
            "by itself, when the queues are down to 80 % of their limits",
        ),
    ],
)
def test_a_hold_says_how_it_ends(
    archive: Archive, kind: HoldKind, minutes: int, by_itself: bool, ends_at: str | None, ends: str
) -> None:
    context, number = archive.context, archive.version().version_no
    cause = context.cause("told by the test", "test")
    set_operating(context.ledger, number, "breaker_minutes", str(minutes), cause)
    set_operating(context.ledger, number, "backlog_review", "0", cause)
    assert hold(context, number, kind, "told by the test")
    archive.clock.advance(60)
    now = status(context, KEY)
    assert now.state == "held"
    assert now.held is not None
    assert (now.held.kind, now.held.reason) == (kind, "told by the test")
    assert now.held.since == "2030-01-02T03:04:05.000000Z"
    assert (now.held.ends_by_itself, now.held.ends_at, now.held.ends) == (by_itself, ends_at, ends)
    waits = {item.what: item.by_person for item in now.waiting}
    assert waits["held"] is not by_itself
    assert [entry.limit for entry in now.backlog] == [200_000, None, 200_000]
    told = now.as_json()
    assert told["held"]["kind"] == kind
    assert told["breaker"]["trips"] == (1 if kind == "breaker" else 0)
    assert told["backlog"][1] == {"queue": "review", "records": 1, "limit": None}


@pytest.mark.parametrize("by_hand", [False, True])
def test_who_publishes_what_is_accepted(by_hand: bool) -> None:
    (item,) = what_waits(standings(accepted=2), {}, "active", promoted_by_hand=by_hand)
    assert (item.what, item.count, item.by_person) == ("accepted", 2, by_hand)


def test_what_the_archive_shows_is_told_beside_what_was_published(fresh_archive: Archive) -> None:
    fresh_archive.process()
    context, version = fresh_archive.context, fresh_archive.version()
    before = status(context, KEY)
    assert (before.states["published"], before.shown) == (2, 2)
    rollback_version(context, version.version_no, "trial")
    after = status(context, KEY)
    assert (after.states["published"], after.shown) == (2, 0)
    assert after.as_json()["shown"] == 0


def test_what_was_added_up_belongs_to_the_states(read_archive: Archive) -> None:
    now = status(read_archive.context, KEY)
    assert (now.accepted, now.dead_letters, now.active_attempts) == (0, 0, 0)
    assert now.review_backlog == now.ages.reviews.count == now.states["awaiting_review"] == 1
    publication = now.publication
    assert (publication.published, publication.shown, publication.shown_former) == (2, 2, 0)
    assert publication.share == 1.0
    assert (now.next_poll, now.retries_due, now.ready) == (None, 0, None)
    assert [(wait.what, wait.who) for wait in now.waits] == [("awaiting_review", "reviewer")]


def test_a_document_that_changed_is_shown_and_not_published(fresh_archive: Archive) -> None:
    fresh_archive.process()
    fresh_archive.write("pump-wp-100.txt", "another text")
    fresh_archive.scan()
    publication = status(fresh_archive.context, KEY).publication
    assert (publication.published, publication.shown, publication.shown_former) == (1, 2, 1)


def test_a_record_that_is_processed_again_is_shown_and_not_published(
    fresh_archive: Archive,
) -> None:
    fresh_archive.process()
    ledger = fresh_archive.context.ledger
    with ledger.write() as connection:
        changed = connection.execute(
            update(record_state)
            .where(record_state.c.state == "published", record_state.c.record_no == 1)
            .values(state="retry_wait")
        )
        assert changed.rowcount == 1
    publication = status(fresh_archive.context, KEY).publication
    assert (publication.published, publication.shown) == (1, 2)
    assert (publication.shown_former, publication.shown_again) == (0, 1)


def test_a_line_of_every_version(archive: Archive) -> None:
    (line,) = all_versions(archive.context)
    now = status(archive.context, KEY)
    assert (line.processing_version, line.state, line.held_for) == (KEY, "active", None)
    assert (line.published, line.shown, line.awaiting_review) == (2, 2, 1)
    assert (line.waiting, line.done) == (len(now.waiting), now.done)
    assert hold(archive.context, archive.version().version_no, "quota", "told by the test")
    (held,) = all_versions(archive.context)
    assert (held.held_for, held.reason, held.ends) == ("quota", "told by the test", "by command")
    assert held.since is not None


def test_a_review_of_a_document_that_is_gone_is_told(fresh_archive: Archive) -> None:
    fresh_archive.process()
    (fresh_archive.folder / SAW).unlink()
    fresh_archive.scan()
    now = status(fresh_archive.context, KEY)
    assert now.done, "no document waits"
    assert now.review_backlog == 1
    assert [(wait.what, wait.count) for wait in now.waits] == [("awaiting_review", 1)]


@pytest.mark.parametrize(
    ("late", "overdue"),
    [
        pytest.param(timedelta(seconds=-1), False, id="not-yet"),
        pytest.param(timedelta(seconds=45), False, id="the-monitor-is-on-its-way"),
        pytest.param(POLL_GRACE + timedelta(seconds=1), True, id="nobody-looks"),
    ],
)
def test_a_job_that_is_just_due_is_not_yet_forgotten(late: timedelta, overdue: bool) -> None:
    now = datetime(2030, 1, 2, tzinfo=UTC)
    rows = [
        ("b1", "running", "batch", 3, None, None, to_text(now - late), None),
        ("b2", "running", "batch", 3, None, None, to_text(now + POLL_GRACE), None),
        ("b3", "running", "online", 3, None, None, to_text(now - 9 * POLL_GRACE), None),
        ("b4", "reconciling", "batch", 3, None, None, to_text(now - 9 * POLL_GRACE), None),
    ]
    found = next_poll(pl.DataFrame(rows, schema=BATCH_SCHEMA, orient="row"), now)
    assert found is not None
    assert (found.batch_id, found.overdue) == ("b1", overdue)
