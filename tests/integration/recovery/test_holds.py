"""Holds with their kinds in the journal, the breaker and the backlog over stored rows."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from itertools import product
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from sqlalchemy import Connection, Table, func, select, update

from pipeline_assets.collect.collect_batches import collect_batches
from pipeline_assets.operating import operating
from pipeline_assets.provider_jobs.operate import OPERATOR_CANCELLED
from pipeline_assets.recovery.backpressure import look_at_backpressure
from pipeline_assets.recovery.breaker import (
    BreakerState,
    Window,
    look_at_breaker,
    on_probation,
    policy_of,
    read_breaker,
    trip_breaker,
)
from pipeline_assets.recovery.holds import (
    ALERTED,
    ENDS_BY_ITSELF,
    KINDS,
    Hold,
    HoldKind,
    hold,
    hold_of,
    release,
)
from pipeline_assets.recovery.releases import look_at_hold, look_at_holds
from pipeline_assets.submit import answer_embedded
from pipeline_assets.submit.submit_batches import EVERY_BATCH, ON_PROBATION, submit_batches
from pipeline_assets.versions import open_version
from resources.context import Context, open_context
from resources.ledger.alerts import open_alerts
from resources.ledger.batches import find_batches
from resources.ledger.journal import verify_all
from resources.ledger.leases import LEASE_SECONDS, acquire
from resources.ledger.moves import batch_chain, move_batch, move_records, move_version
from resources.ledger.schema import batches, dispositions, record_state, records
from resources.ledger.versions import moves_of, set_operating, state_of
from resources.settings import Settings
from tests.integration.ledger.support import make_batch, make_version
from tests.support.clock import FrozenClock
from tests.support.emulator import RunningEmulator
from tests.support.provider_walk import provider_walk
from tests.support.small_archive import PUMP, Archive, fill_folder, manual

V, OTHER = 1, 2


@pytest.fixture
def archive(ledger_url: str, tmp_path: Path, frozen_clock: FrozenClock) -> Iterator[Archive]:
    """Return an archive without documents, with an open context on a fresh database."""
    folder = tmp_path / "documents"
    folder.mkdir()
    settings = Settings(state=tmp_path / "state", ledger_url=ledger_url, source=folder)
    with open_context(settings, clock=frozen_clock, rng=random.Random(7)) as context:
        yield Archive(folder, settings, context, frozen_clock)


@pytest.fixture
def context(archive: Archive) -> Context:
    """Return the context, with two versions that nothing was done under."""
    with archive.context.ledger.write() as connection:
        for number in (V, OTHER):
            make_version(connection, archive.context.ledger, number)
    return archive.context


def held(context: Context, version_no: int = V) -> Hold | None:
    with context.ledger.read() as connection:
        return hold_of(connection, version_no)


def kind_of(context: Context, version_no: int = V) -> HoldKind | None:
    found = held(context, version_no)
    return None if found is None else found.kind


def alerts(context: Context) -> set[tuple[str, str]]:
    return {(alert.kind, alert.subject) for alert in open_alerts(context.ledger)}


def breaker(context: Context, version_no: int = V) -> BreakerState:
    policy = policy_of(operating(context.ledger, version_no))
    with context.ledger.read() as connection:
        return read_breaker(connection, context.ledger, version_no, policy)


def set_up(context: Context, version_no: int = V, **values: int) -> None:
    for name, value in values.items():
        cause = context.cause("told by the test", "test")
        set_operating(context.ledger, version_no, name, str(value), cause)


def check_journal(context: Context) -> None:
    with context.ledger.read() as connection:
        assert verify_all(connection, context.ledger.dialect).holds


def results(
    context: Context,
    *classes: str,
    version_no: int = V,
    error_class: str | None = None,
) -> None:
    """Store a collected batch with these results; `ok` is a success."""
    ledger = context.ledger
    with ledger.write() as connection:
        number = connection.execute(select(func.count()).select_from(batches)).scalar_one() + 1
        first = number * 1000
        make_batch(connection, ledger, number, version_no)
        connection.execute(
            update(batches)
            .where(batches.c.batch_no == number)
            .values(
                first_attempt_no=first,
                last_attempt_no=first + len(classes) - 1,
                reconciled_records=len(classes),
                state="reconciling",
                error_class=error_class,
            )
        )
        rows = [
            {
                "attempt_no": first + index,
                "disposition": {
                    "ok": "succeeded",
                    "cancelled": "cancelled",
                    "expired": "expired",
                }.get(name, "permanent_failure"),
                "failure_class": None if name == "ok" else name,
                "diagnostics": "",
            }
            for index, name in enumerate(classes)
        ]
        schema = {
            "attempt_no": pl.Int64,
            "disposition": pl.String,
            "failure_class": pl.String,
            "diagnostics": pl.String,
        }
        ledger.dialect.load(connection, dispositions, pl.DataFrame(rows, schema=schema))
        cause = context.cause("told by the test", "collect")
        move_batch(connection, ledger.dialect, number, "reconciling", "completed", cause)


def wait_in(context: Context, connection: Connection, state: str, numbers: Sequence[int]) -> None:
    """Store records of the version in a state."""
    frame = pl.DataFrame({"record_no": numbers}, schema={"record_no": pl.Int64})
    context.ledger.dialect.load(
        connection,
        records,
        frame.with_columns(
            record_id=pl.format("r{}", "record_no"),
            version_no=pl.lit(V),
            document_no=pl.col("record_no"),
            source_version_no=pl.col("record_no"),
            checksum=pl.lit("d" * 64),
            operation=pl.lit("extract"),
            replay_reason=pl.lit("new_source"),
            manifest_no=pl.lit(1),
        ),
    )
    context.ledger.dialect.load(
        connection,
        record_state,
        frame.with_columns(state=pl.lit(state), version=pl.lit(1), shard=pl.lit(0)),
    )


def move_on(context: Context, numbers: Sequence[int], from_state: str, to_state: str) -> None:
    with context.ledger.write() as connection:
        move_records(
            connection,
            context.ledger.dialect,
            pl.Series(numbers, dtype=pl.Int64),
            from_state,
            to_state,
            context.cause("told by the test", "test"),
            batch_chain(1),
        )


def test_a_hold_says_why_and_is_taken_off(context: Context, frozen_clock: FrozenClock) -> None:
    for kind in KINDS:
        assert held(context) is None
        assert hold(context, V, kind, f"because of {kind}")
        found = held(context)
        assert found is not None
        assert (found.kind, found.reason) == (kind, f"because of {kind}")
        assert (found.since, found.actor) == (context.ledger.now(), context.settings.owner)
        assert alerts(context) == ({(kind, "v1")} if kind in ALERTED else set())
        assert held(context, OTHER) is None

        assert not any(
            release(context, V, other, "not for this") for other in KINDS if other != kind
        )
        frozen_clock.advance(60)
        assert release(context, V, None, "it is over", actor="somebody")
        assert alerts(context) == set()
        assert not release(context, V, None, "twice")
        with context.ledger.read() as connection:
            last = moves_of(connection, V)[-1]
            assert state_of(connection, V) == "active"
        assert (last.actor, last.reason) == ("somebody", "it is over")
    check_journal(context)


def test_only_a_hold_that_ends_by_itself_gives_way(context: Context) -> None:
    for first, second in product(KINDS, KINDS):
        gives_way = first in ENDS_BY_ITSELF and second not in ENDS_BY_ITSELF
        assert hold(context, V, first, "the first")
        assert hold(context, V, second, "the second") is gives_way
        left = second if gives_way else first
        assert kind_of(context) == left
        assert alerts(context) == ({(left, "v1")} if left in ALERTED else set())
        assert release(context, V, None, "it is over")
    check_journal(context)


def test_a_retired_version_is_not_held(context: Context) -> None:
    with context.ledger.write() as connection:
        cause = context.cause("no longer used", "test")
        move_version(connection, context.ledger.dialect, V, "active", "retired", cause)
    assert not hold(context, V, "operator", "too late")
    assert held(context) is None


def test_a_hold_without_a_kind(context: Context) -> None:
    known = {"held by command": "operator", "submit": "refused", "hold:no-such-kind": "refused"}
    for cause, kind in known.items():
        with context.ledger.write() as connection:
            told = context.cause("from before", cause)
            move_version(connection, context.ledger.dialect, V, "active", "held", told)
        assert kind_of(context) == kind
        assert not look_at_hold(context, V)
        assert release(context, V, None, "it is over")


def test_many_holders_at_once(context: Context) -> None:
    for _ in range(3):
        with ThreadPoolExecutor(6) as pool:
            put_on = list(pool.map(lambda _: hold(context, V, "breaker", "a race"), range(6)))
            assert put_on.count(True) == 1
            taken_off = list(pool.map(lambda _: release(context, V, None, "a race"), range(6)))
            assert taken_off.count(True) == 1
    assert alerts(context) == set()
    check_journal(context)


def test_the_breaker_trips_on_the_last_results_only(context: Context) -> None:
    set_up(context, breaker_window=10, breaker_least=4, breaker_floor=60)
    results(context, *["ok"] * 30)
    results(context, *["refused"] * 3, version_no=OTHER)
    assert trip_breaker(context, V) is None
    results(context, *["refused"] * 4)
    assert breaker(context).window == Window(10, 6, {"refused": 4})
    assert trip_breaker(context, V) is None, "at the floor"
    results(context, "schema_violation")
    tripped = trip_breaker(context, V)
    assert tripped is not None
    assert tripped == held(context)
    assert tripped.reason.startswith("only 5 of the last 10 results are usable, the floor is 60%")
    assert alerts(context) == {("breaker", "v1")}
    assert trip_breaker(context, V) is None, "it is held already"
    assert kind_of(context, OTHER) is None


def test_the_window_ends_inside_a_batch(context: Context) -> None:
    set_up(context, breaker_window=5, breaker_least=4)
    results(context, "ok", "ok", "ok", "refused", "refused")
    results(context, "ok", "truncated")
    assert breaker(context).window == Window(5, 2, {"refused": 2, "truncated": 1})


def test_what_says_nothing_of_the_version_is_not_counted(context: Context) -> None:
    set_up(context, breaker_window=10, breaker_least=2)
    results(context, "ok", "auth", "quota", "auth")
    results(context, "ok", *["cancelled"] * 12, error_class=OPERATOR_CANCELLED)
    assert breaker(context).window == Window(2, 2, {})
    assert trip_breaker(context, V) is None
    results(context, "cancelled", "cancelled", "expired")
    assert breaker(context).window == Window(5, 2, {"cancelled": 2, "expired": 1})
    assert trip_breaker(context, V) is not None, "the provider itself gave these up"


def test_it_can_be_switched_off(context: Context) -> None:
    set_up(context, breaker_least=2)
    results(context, *["refused"] * 4)
    set_up(context, breaker_window=0)
    assert trip_breaker(context, V) is None
    set_up(context, breaker_window=100)
    assert trip_breaker(context, V) is not None
    assert look_at_holds(context) == []
    set_up(context, breaker_window=0)
    assert look_at_holds(context) == ["v1"]
    assert not on_probation(context, V)


def test_it_ends_by_itself_on_probation_and_doubles(
    context: Context, frozen_clock: FrozenClock
) -> None:
    set_up(context, breaker_least=2, breaker_minutes=60)
    for hours in (1, 2, 4):
        assert look_at_holds(context) == []
        results(context, "refused", "refused")
        assert trip_breaker(context, V) is not None
        assert breaker(context).ends_at == frozen_clock() + timedelta(hours=hours)
        frozen_clock.advance(timedelta(hours=hours, seconds=-1))
        assert look_at_holds(context) == []
        frozen_clock.advance(1)
        assert look_at_holds(context) == ["v1"]
        assert breaker(context).window == Window(0, 0), "what came in before is forgotten"
        assert on_probation(context, V)
        assert alerts(context) == set()
    results(context, "ok")
    assert on_probation(context, V), "one result is not enough"
    results(context, "ok")
    assert not on_probation(context, V)
    results(context, *["refused"] * 3)
    assert trip_breaker(context, V) is not None
    assert breaker(context).trips == 1, "a passed window lies between"
    assert breaker(context).ends_at == frozen_clock() + timedelta(hours=1)
    check_journal(context)


def test_a_probation_that_was_never_decided_was_not_passed(
    context: Context, frozen_clock: FrozenClock
) -> None:
    set_up(context, breaker_least=2)
    assert hold(context, V, "breaker", "told by the test")
    frozen_clock.advance(timedelta(hours=1))
    assert look_at_holds(context) == ["v1"]
    results(context, "ok")
    assert hold(context, V, "breaker", "told by the test")
    assert breaker(context).trips == 2


def test_a_release_by_command_starts_anew(context: Context, frozen_clock: FrozenClock) -> None:
    set_up(context, breaker_least=2, breaker_minutes=60)
    for _ in range(2):
        results(context, "refused", "refused")
        assert trip_breaker(context, V) is not None
        frozen_clock.advance(timedelta(hours=1))
        assert release(context, V, None, "the prompt's owner looked at it")
        assert breaker(context).window == Window(0, 0)
        assert not on_probation(context, V)
        assert trip_breaker(context, V) is None
    results(context, "refused", "refused")
    assert trip_breaker(context, V) is not None
    assert breaker(context).trips == 1


def test_only_by_command(context: Context, frozen_clock: FrozenClock) -> None:
    set_up(context, breaker_least=2, breaker_minutes=0)
    results(context, "refused", "refused")
    assert trip_breaker(context, V) is not None
    frozen_clock.advance(timedelta(days=30))
    assert look_at_holds(context) == []
    assert breaker(context).ends_at is None


@pytest.mark.parametrize(
    ("state", "setting"),
    [
        ("collected", "backlog_staging"),
        ("awaiting_review", "backlog_review"),
        ("accepted", "backlog_publication"),
    ],
)
def test_backpressure_holds_and_lets_go(context: Context, state: str, setting: str) -> None:
    set_up(context, **{setting: 10})
    set_up(context, OTHER, **{setting: 10})
    with context.ledger.write() as connection:
        wait_in(context, connection, state, range(1, 10))
        wait_in(context, connection, "published", range(100, 140))
    assert look_at_backpressure(context, V) is None
    with context.ledger.write() as connection:
        wait_in(context, connection, state, [10])
    found = look_at_backpressure(context, V)
    assert found is not None
    assert found == held(context)
    assert found.reason == (
        f"behind their limits: {setting.removeprefix('backlog_')} "
        "(10 records, limit 10, goes on at 8)"
    )
    assert alerts(context) == {("backpressure", "v1")}
    assert look_at_backpressure(context, OTHER) is None, "its queues are its own"
    target = "awaiting_review" if state != "awaiting_review" else "rejected"
    move_on(context, [1], state, target)
    assert look_at_holds(context) == []
    move_on(context, [2], state, target)
    assert look_at_holds(context) == ["v1"]
    assert held(context) is None
    assert alerts(context) == set()
    check_journal(context)


def test_results_that_came_in_under_backpressure_still_trip_the_breaker(context: Context) -> None:
    set_up(context, breaker_least=2)
    assert hold(context, V, "backpressure", "told by the test")
    results(context, "refused", "refused")
    assert trip_breaker(context, V) is None
    assert look_at_holds(context) == []
    assert kind_of(context) == "breaker"
    assert alerts(context) == {("breaker", "v1")}


def grow(archive: Archive, count: int, first: int = 0) -> None:
    """Add documents, each frozen in a batch of its own."""
    for number in range(first, first + count):
        archive.write(f"more-{number}.txt", manual("Water Pump", f"WP-{500 + number}"))
        archive.prepare()


def test_on_probation_one_batch_at_a_time(archive: Archive) -> None:
    archive.write(PUMP, manual("Water Pump", "WP-100"))
    archive.process()
    context, version = archive.context, archive.version()
    set_up(context, version.version_no, breaker_least=2)
    grow(archive, 4)
    assert hold(context, version.version_no, "breaker", "told by the test")
    report = submit_batches(context, archive.version())
    assert (report.batches, list(report.waiting)) == (0, [EVERY_BATCH])
    assert report.held == held(context, version.version_no)

    archive.clock.advance(timedelta(hours=1))
    report = submit_batches(context, version)
    assert (report.batches, report.waiting) == (1, {EVERY_BATCH: ON_PROBATION})
    again = submit_batches(context, version)
    assert (again.batches, again.waiting) == (0, {EVERY_BATCH: ON_PROBATION})
    collect_batches(context, version)
    assert submit_batches(context, version).batches == 1
    collect_batches(context, version)
    # Two results are enough, and they are usable.
    assert look_at_breaker(context, version) is None
    report = submit_batches(context, version)
    assert (report.batches, report.waiting) == (2, {})


def test_submit_waits_for_reviewers_and_goes_on(archive: Archive) -> None:
    fill_folder(archive)
    archive.process()
    context, version = archive.context, archive.version()
    set_up(context, version.version_no, backlog_review=1)
    assert submit_batches(context, version).waiting == {}, "there is nothing to hold back"
    assert held(context, version.version_no) is None
    grow(archive, 1)
    report = submit_batches(context, version)
    assert report.batches == 0
    assert "review (1 records, limit 1" in report.waiting[EVERY_BATCH]
    found = _rows(context, record_state)
    waiting = [row.record_no for row in found if row.state == "awaiting_review"]
    move_on(context, waiting, "awaiting_review", "rejected")
    assert submit_batches(context, version).batches == 1
    assert held(context, version.version_no) is None


def test_the_batch_of_another_worker_is_left_to_it(archive: Archive) -> None:
    grow(archive, 2)
    context, version = archive.context, archive.version()
    name = _rows(context, batches)[0].batch_id
    acquire(context.ledger, f"batch:{name}", "someone@elsewhere:1")
    report = submit_batches(context, version)
    assert report.batches == 1
    assert list(report.waiting) == [name]
    assert "someone@elsewhere:1" in report.waiting[name]
    archive.clock.advance(LEASE_SECONDS + 1)
    assert submit_batches(context, version).batches == 1


def test_two_workers_answer_every_batch_once(archive: Archive) -> None:
    grow(archive, 4)
    contexts = [replace(archive.context, worker=f"worker:{number}") for number in range(2)]
    version = archive.version()
    with ThreadPoolExecutor(2) as pool:
        reports = list(pool.map(lambda context: submit_batches(context, version), contexts))
    assert sum(report.batches for report in reports) == 4
    assert {row.state for row in _rows(archive.context, batches)} == {"results_available"}
    check_journal(archive.context)


def test_what_another_worker_answered_meanwhile_is_left_alone(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    grow(archive, 2)
    context, version = archive.context, archive.version()
    stale = find_batches(context.ledger, version.version_no, ("prepared",))
    assert submit_batches(context, version).batches == 2
    monkeypatch.setattr(answer_embedded, "find_batches", lambda *_: stale)
    assert answer_embedded.answer_embedded(context, version) == ([], {})


def test_a_provider_gets_one_batch_at_a_time_on_probation(
    emulator: RunningEmulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with provider_walk(emulator, "openai", tmp_path, monkeypatch, documents=1) as walk:
        context, folder = walk.context, walk.context.settings.source_folder
        for number in range(2):
            (folder / f"more-{number}.txt").write_text(manual("Water Pump", f"WP-{500 + number}"))
            walk.prepare()
        walk.pass_canary()
        version_no = open_version(context, walk.key).version_no
        set_up(context, version_no, breaker_least=2)
        assert hold(context, version_no, "breaker", "told by the test")
        walk.advance(3600)
        handed_over = []
        for _ in range(8):
            report = walk.step().submit
            handed_over.append(report.batches)
            out = walk.jobs("submitted", "running", "results_available")
            if on_probation(context, version_no):
                assert len(out) <= 1
                assert set(report.waiting.values()) == {ON_PROBATION}
            walk.advance(3600)
        assert sum(handed_over) == 3
        assert max(handed_over) == 1
        assert not on_probation(context, version_no)
        assert {job.state for job in walk.jobs()} == {"completed"}


def _rows(context: Context, table: Table) -> list[Any]:
    with context.ledger.read() as connection:
        return list(connection.execute(select(table).order_by(*table.primary_key.columns)))
