"""Ages of what is open: read by sets, summed up as distributions."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta, timezone

import polars as pl
import pytest

from pipeline_assets.account import ages
from pipeline_assets.account.ages import (
    BATCH_SCHEMA,
    MOVED_SCHEMA,
    REVIEW_SCHEMA,
    ages_of,
    moved,
    open_batches,
    open_reviews,
    seconds_since,
)
from pipeline_assets.account.status import OPEN_STATES
from pipeline_assets.submit.submit_batches import submit_batches
from resources.clock import to_text
from tests.support.small_archive import Archive

NOW = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)


def at(**ago: float) -> str:
    return to_text(NOW - timedelta(**ago))


def batch(state: str, prepared: str, submitted: str | None) -> tuple[object, ...]:
    return ("b", state, "batch", 3, prepared, submitted, None, None)


def frame(schema: dict[str, type[pl.DataType]], *rows: tuple[object, ...]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), schema=schema, orient="row")


def test_what_is_counted_as_what() -> None:
    found = ages_of(
        NOW,
        frame(MOVED_SCHEMA, ("prepared", at(hours=2), 9), ("submitted", at(days=1), 1)),
        frame(
            BATCH_SCHEMA,
            batch("prepared", at(hours=3), None),
            batch("submitting", at(hours=4), None),
            batch("running", at(hours=5), at(hours=1)),
            batch("reconciling", at(hours=6), at(hours=2)),
            batch("quarantined", at(hours=7), at(hours=6)),
        ),
        frame(
            REVIEW_SCHEMA,
            ("findings", None, at(minutes=2), 4),
            ("findings", "ada", at(minutes=10), 1),
            ("quality_sample", None, at(days=8), 2),
        ),
    )
    assert (found.open_records.count, found.open_records.p50, found.open_records.max) == (
        10,
        7200.0,
        86400.0,
    )
    assert found.open_records.histogram == (0, 0, 0, 0, 9, 1, 0, 0, 0)
    assert (found.batches_out.count, found.batches_out.max) == (2, 6 * 3600.0)
    assert (found.batches_open.count, found.batches_open.max) == (5, 7 * 3600.0)
    assert (found.reviews.count, found.reviews.p90) == (5, 600.0)
    assert (found.quality_samples.count, found.quality_samples.histogram[-1]) == (2, 2)


@pytest.mark.parametrize("hours", [-5, 0, 9])
def test_seconds_do_not_depend_on_the_zone_of_the_clock(hours: int) -> None:
    now = NOW.astimezone(timezone(timedelta(hours=hours)))
    found = seconds_since(pl.Series([at(seconds=1.5), None], dtype=pl.String), now)
    assert found.to_list() == [1.5, None]


@pytest.mark.parametrize("at_once", [1, 2, 250_000])
def test_records_by_their_newest_move(
    fresh_archive: Archive, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(ages, "RECORDS_AT_ONCE", at_once)
    version = fresh_archive.prepare()
    ledger, number = fresh_archive.context.ledger, version.version_no
    prepared_at = ledger.now()
    fresh_archive.clock.advance(90)
    with ledger.read() as connection:
        found = moved(connection, ledger, number, OPEN_STATES)
        assert found.rows() == [("prepared", prepared_at, 3)]
        assert moved(connection, ledger, number, ("accepted",)).is_empty()
        assert moved(connection, ledger, number + 1, OPEN_STATES).is_empty()
    submit_batches(fresh_archive.context, version)
    with ledger.read() as connection:
        found = moved(connection, ledger, number, OPEN_STATES)
        batches = open_batches(connection, ledger, number)
    assert found.rows() == [("submitted", ledger.now(), 3)]
    assert batches["records"].sum() == 3
    assert set(batches["entered_at"]) == {ledger.now()}
    assert set(batches["prepared_at"]) == {prepared_at}


def test_only_undecided_reviews_are_open(read_archive: Archive) -> None:
    ledger = read_archive.context.ledger
    number = read_archive.version().version_no
    with ledger.read() as connection:
        found = open_reviews(connection, ledger, number)
        assert moved(connection, ledger, number, OPEN_STATES).is_empty()
        assert open_batches(connection, ledger, number).is_empty()
    assert found.select("kind", "who", "reviews").rows() == [("findings", None, 1)]


def test_ages_of_random_moves_agree_with_a_walk_over_records(rng: random.Random) -> None:
    rows = [("queued", at(seconds=rng.randrange(10**6)), rng.randrange(1, 5)) for _ in range(50)]
    found = ages_of(
        NOW, frame(MOVED_SCHEMA, *rows), frame(BATCH_SCHEMA), frame(REVIEW_SCHEMA)
    ).open_records
    each = sorted(
        age
        for _, moment, count in rows
        for age in seconds_since(pl.Series([moment]), NOW).to_list() * count
    )
    assert (found.count, found.max) == (len(each), each[-1])
    assert found.p50 == each[-(-len(each) * 50 // 100) - 1]
    assert found.p90 == each[-(-len(each) * 90 // 100) - 1]
