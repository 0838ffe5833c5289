"""Drawing samples from a ledger: who may be drawn, how often, and what is kept of it."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import select, update

from pipeline_assets.quality import draw
from pipeline_assets.quality.draw import SampleReasonMissing, draw_sample
from pipeline_assets.quality.error_rates import error_rates
from resources.context import Context
from resources.ledger.leases import LeaseHeld, held
from resources.ledger.schema import (
    quality_sample_slices,
    quality_samples,
    record_state,
    reviews,
)
from resources.ledger.versions import set_operating
from tests.integration.quality.support import GERMAN, SCAN, Judged
from tests.integration.stages.support import ON_ONE_DATABASE


def set_to(judged: Judged, name: str, value: str) -> None:
    set_operating(
        judged.ledger,
        judged.version.version_no,
        name,
        value,
        cause=judged.context.cause("a test", "test"),
    )


def test_a_sample_is_drawn_once(judged: Judged) -> None:
    judged.add(100)
    judged.add(3, notes="ocr", state="published")
    first = judged.draw()
    assert (first.population, first.sampled) == (103, first.drawn)
    assert first.by_slice[SCAN] == 3
    assert 5 <= first.by_slice[GERMAN] <= 10
    again = judged.draw()
    assert (again.sample_no, again.drawn, again.sampled) == (None, 0, first.drawn)
    assert len(judged.drawn()) == len(set(judged.drawn())) == first.drawn


def test_what_is_kept_of_a_sample(judged: Judged) -> None:
    judged.add(40)
    report = judged.draw(seed=7)
    with judged.ledger.read() as connection:
        (sample,) = connection.execute(select(quality_samples)).all()
        (part,) = connection.execute(select(quality_sample_slices)).all()
        rows = connection.execute(select(reviews)).all()
    assert sample._mapping == {
        "sample_no": report.sample_no,
        "version_no": judged.version.version_no,
        "seed": 7,
        "percent": "2",
        "least": 5,
        "reason": "a test",
        "actor": "tester",
        "drawn_at": judged.ledger.now(),
    }
    assert (part.slice, part.population, part.drawn) == (GERMAN, 40, report.drawn)
    for row in rows:
        assert (row.kind, row.sample_no, row.slice) == ("quality_sample", sample.sample_no, GERMAN)
        assert (row.decision, row.revision, row.opened_at) == (None, 0, sample.drawn_at)
        assert int(row.values_digest) == row.attempt_no


@pytest.mark.parametrize(
    ("state", "outcome", "expected"),
    [
        pytest.param("accepted", "accepted", 4, id="accepted"),
        pytest.param("published", "accepted", 4, id="published"),
        pytest.param("awaiting_review", "awaiting_review", 0, id="waits-for-a-reviewer"),
        pytest.param("accepted", "awaiting_review", 0, id="accepted-by-a-reviewer"),
        pytest.param("superseded", "accepted", 0, id="superseded"),
        pytest.param("withdrawn", "accepted", 0, id="withdrawn"),
        pytest.param("rejected", "accepted", 0, id="rejected"),
        pytest.param("prepared", "accepted", 0, id="asked-again"),
    ],
)
@ON_ONE_DATABASE
def test_who_is_drawn(judged: Judged, state: str, outcome: str, expected: int) -> None:
    judged.add(4, state=state, outcome=outcome)
    assert judged.draw().drawn == expected


@ON_ONE_DATABASE
def test_what_another_version_has_is_not_drawn(judged: Judged) -> None:
    judged.add(4)
    with judged.ledger.write() as connection:
        connection.exec_driver_sql("UPDATE records SET version_no = 99")
    assert judged.draw().drawn == 0


def test_what_is_accepted_later_is_drawn_later(judged: Judged) -> None:
    early = judged.add(60)
    judged.draw(seed=5)
    before = judged.drawn()
    late = judged.add(1_000)
    report = judged.draw()
    assert report.drawn > 0
    after = judged.drawn()
    assert len(after) == len(set(after)) == len(before) + report.drawn
    assert set(before) <= set(early)
    assert set(after) - set(before) <= set(late)
    with judged.ledger.read() as connection:
        seeds = connection.execute(select(quality_samples.c.seed)).scalars().all()
    assert seeds == [5, 5]
    assert [entry.population for entry in judged.rates().by_slice] == [1_060]


def test_an_answer_that_was_judged_anew_can_be_drawn_anew(judged: Judged) -> None:
    numbers = judged.add(3)
    judged.draw()
    judged.decide("reject", 1)
    judged.decide("accept", 1)
    judged.answer(numbers)
    assert judged.draw().drawn == 3
    assert judged.drawn() == sorted(numbers * 2)
    rates = judged.rates()
    assert (rates.drawn, rates.waiting, rates.decided) == (3, 3, 0)


@ON_ONE_DATABASE
def test_a_record_that_the_sample_rejected_still_weighs(judged: Judged) -> None:
    numbers = judged.add(5)
    judged.draw()
    judged.decide("reject", 1)
    with judged.ledger.write() as connection:
        connection.execute(
            update(record_state)
            .where(record_state.c.record_no == numbers[0])
            .values(state="rejected")
        )
    judged.add(1)
    assert judged.draw().drawn == 0
    assert judged.draw().population == 6


@ON_ONE_DATABASE
def test_more_may_be_wanted_later(judged: Judged) -> None:
    judged.add(50)
    assert judged.draw().drawn == 5
    set_to(judged, "sample_least", "12")
    assert judged.draw().drawn == 7
    set_to(judged, "sample_percent", "100")
    assert judged.draw().drawn == 38
    assert judged.draw().drawn == 0


@ON_ONE_DATABASE
def test_samples_can_be_switched_off(judged: Judged) -> None:
    judged.add(50)
    set_to(judged, "sample_least", "0")
    set_to(judged, "sample_percent", "0")
    assert judged.draw().drawn == 0
    with judged.ledger.read() as connection:
        assert error_rates(connection, judged.ledger, judged.version.version_no) is None


@ON_ONE_DATABASE
def test_the_same_seed_draws_the_same(judged: Judged) -> None:
    judged.add(300)
    judged.draw(seed=11)
    first = judged.drawn()
    with judged.ledger.write() as connection:
        for table in (reviews, quality_samples, quality_sample_slices):
            connection.execute(table.delete())
    judged.draw(seed=11)
    assert judged.drawn() == first


@ON_ONE_DATABASE
@pytest.mark.parametrize("reason", ["", "  \n"])
def test_nobody_draws_without_a_reason(judged: Judged, reason: str) -> None:
    judged.add(3)
    with pytest.raises(SampleReasonMissing, match="--reason"):
        draw_sample(judged.context, judged.version, reason, "tester")
    assert judged.drawn() == []


@ON_ONE_DATABASE
def test_two_never_draw_at_once(judged: Judged) -> None:
    judged.add(3)
    with (
        held(judged.ledger, f"quality:{judged.version.key}", "another"),
        pytest.raises(LeaseHeld, match="another"),
    ):
        judged.draw()
    assert judged.draw().drawn == 3


def test_racing_draws_draw_nothing_twice(judged: Judged, context: Context) -> None:
    judged.add(200)
    outcomes: list[object] = []

    def run(worker: str) -> None:
        mine = replace(context, worker=worker)
        try:
            outcomes.append(draw_sample(mine, judged.version, "a race", worker, seed=3).drawn)
        except LeaseHeld:
            outcomes.append("held")

    threads = [threading.Thread(target=run, args=(f"worker {n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outcomes) == 4
    assert len(judged.drawn()) == len(set(judged.drawn()))
    assert sum(count for count in outcomes if isinstance(count, int)) == len(judged.drawn())


@ON_ONE_DATABASE
def test_a_record_that_moves_on_meanwhile_is_left_out(
    judged: Judged, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Candidates are read before the write lock is taken."""
    numbers = judged.add(3)
    choose = draw._choose

    def and_withdraw(*arguments: Any) -> object:
        found = choose(*arguments)
        with judged.ledger.write() as connection:
            connection.execute(
                update(record_state)
                .where(record_state.c.record_no == numbers[0])
                .values(state="withdrawn")
            )
        return found

    monkeypatch.setattr(draw, "_choose", and_withdraw)
    assert judged.draw().drawn == 2
    assert judged.drawn() == numbers[1:]


def test_rates_follow_the_decisions(judged: Judged) -> None:
    judged.add(900)
    judged.add(5, notes="ocr")
    judged.draw()
    assert judged.rates().rate is None
    judged.decide("accept", 4)
    judged.decide("correct", 1)
    judged.decide("reject", 5, slice_name=SCAN)
    rates = judged.rates()
    by_name = {entry.slice: entry for entry in rates.by_slice}
    assert (by_name[GERMAN].decided, by_name[GERMAN].errors, by_name[GERMAN].rate) == (5, 1, 0.2)
    assert (by_name[SCAN].rate, by_name[SCAN].low, by_name[SCAN].high) == (1.0, 1.0, 1.0)
    assert rates.rate == pytest.approx((900 * 0.2 + 5) / 905, abs=1e-6)
    assert rates.waiting == rates.drawn - 10
    assert judged.slices().total() == rates.drawn


def test_what_left_the_queue_does_not_wait(judged: Judged) -> None:
    (first, *_) = judged.add(3)
    judged.draw()
    with judged.ledger.write() as connection:
        connection.execute(
            update(record_state).where(record_state.c.record_no == first).values(state="withdrawn")
        )
    rates = judged.rates()
    assert (rates.drawn, rates.waiting) == (2, 2)
    judged.decide("accept", 3)
    rates = judged.rates()
    assert (rates.drawn, rates.waiting, rates.right) == (3, 0, 3), "what was decided counts"
