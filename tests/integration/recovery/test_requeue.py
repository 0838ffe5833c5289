"""Requeueing by an operator: another attempt at what was given up, with limits that start anew."""

from __future__ import annotations

import importlib

import polars as pl
import pytest
from sqlalchemy import update

from pipeline_assets.prepare.freeze import freeze_manifest
from pipeline_assets.prepare.retries import REQUEUEABLE, NotRequeueable, RetryReport, requeue
from pipeline_assets.recovery.dead_letter_choice import Selection
from pipeline_assets.recovery.dead_letters import discard
from resources.contracts import MANIFEST, read_frame
from resources.ledger.leases import LeaseHeld, acquire
from resources.ledger.moves import batch_chain, move_records
from resources.ledger.schema import (
    attempts,
    dead_letters,
    manifests,
    moves,
    record_state,
    retry_decisions,
)
from resources.ledger.transitions import RECORD
from tests.integration.recovery.support import Retries
from tests.integration.recovery.test_retries import die_in_turn
from tests.integration.stages.support import KEY, ON_ONE_DATABASE, Shop
from tests.support.clock import FrozenClock

pytestmark = pytest.mark.slow


@pytest.fixture
def retries(shop: Shop, frozen_clock: FrozenClock, monkeypatch: pytest.MonkeyPatch) -> Retries:
    return Retries(shop, frozen_clock, monkeypatch)


def ask_again(retries: Retries, *record_nos: int) -> RetryReport:
    return requeue(
        retries.shop.context,
        retries.shop.version(),
        pl.Series(record_nos, dtype=pl.Int64),
        "the provider mended it",
        "Ada",
    )


def test_a_requeued_dead_letter_gets_an_attempt_of_its_own(retries: Retries) -> None:
    retries.walk(["refused"], ["refused"], ["good"])
    report = ask_again(retries, 1)
    assert (report.records, report.batches, report.paths) == (1, 1, {"requeue": 1})
    assert retries.states() == ["prepared", "dead_letter", "published"]
    first, *_, last = retries.shop.rows(attempts)
    assert (last["ordinal"], last["recovery_path"]) == (2, "requeue")
    assert last["parent_attempt_no"] == first["attempt_no"]
    assert last["request_digest"] == first["request_digest"]
    assert retries.parents() == [(2, 1)]
    manifest = retries.shop.rows(manifests)[-1]
    assert (manifest["manifest_id"], manifest["replay_reason"]) == (report.manifest_id, "operator")
    path = retries.shop.context.artifacts.path("manifest", manifest["artifact"])
    assert read_frame(MANIFEST, path)["replay_reason"].to_list() == ["operator"]
    (move,) = [
        row
        for row in retries.shop.rows(moves)
        if row["cause"] == "requeue" and (row["machine"] == "record")
    ]
    assert (move["actor"], move["reason"]) == ("Ada", "requeued: the provider mended it")
    closed = [row for row in retries.shop.rows(dead_letters) if row["closed_at"] is not None]
    assert [(row["record_no"], row["closing"], row["closed_by"]) for row in closed] == [
        (1, "requeued", "Ada")
    ]
    retries.step()
    assert retries.states() == ["published", "dead_letter", "published"]
    retries.check()


def test_limits_start_anew(retries: Retries) -> None:
    retries.walk(["missing"] * 3 + ["missing"] * 3)
    assert [ordinal for _, ordinal, *_ in retries.paths()] == [1, 2, 3]
    ask_again(retries, 1)
    retries.step()
    while retries.again().manifest_id is not None:
        pass
    assert [(ordinal, path) for _, ordinal, path, _ in retries.paths()] == [
        *((1, "first"), (2, "repeat"), (3, "repeat")),
        *((4, "requeue"), (5, "repeat"), (6, "repeat")),
    ]
    assert [(name, closing) for name, _, closing in retries.letters()] == [
        ("missing_result", "requeued"),
        ("missing_result", None),
    ]
    retries.check()


def test_limits_start_anew_for_what_was_discarded_first(retries: Retries) -> None:
    version = retries.walk(["missing"] * 4)
    discard(retries.shop.context, version.version_no, KEY, Selection(everything=True), "no use")
    ask_again(retries, 1)
    retries.step()
    assert retries.states() == ["retry_wait"], "the fourth is the first since it was requeued"
    retries.again()
    assert retries.states() == ["published"]
    retries.check()


@ON_ONE_DATABASE
def test_the_limit_of_time_starts_anew(retries: Retries) -> None:
    retries.walk(["refused", "busy"])
    retries.clock.advance(200 * 3600)
    ask_again(retries, 1)
    retries.step()
    assert retries.states() == ["retry_wait"]
    retries.again()
    assert retries.states() == ["published"]


@ON_ONE_DATABASE
def test_retries_of_a_requeued_record_are_of_the_usual_budget(retries: Retries) -> None:
    retries.start(["refused", "busy"])
    retries.set_operating("budget_attempts", "1")
    retries.step()
    ask_again(retries, 1)
    retries.step()
    assert retries.decisions()[-1] == ("overloaded", "retry", "repeat"), "a requeue is no retry"


STATES = sorted(set(RECORD) - {""})


@ON_ONE_DATABASE
@pytest.mark.parametrize("state", STATES)
def test_from_which_states_a_record_is_requeued(retries: Retries, state: str) -> None:
    retries.start(["refused"], ["refused"])
    retries.step()
    with retries.shop.context.ledger.write() as connection:
        connection.execute(
            update(record_state).where(record_state.c.record_no == 1).values(state=state)
        )
    before = retries.shop.counts()
    if state in REQUEUEABLE:
        assert ask_again(retries, 1, 2).records == 2
        assert retries.states() == ["prepared", "prepared"]
        return
    with pytest.raises(NotRequeueable, match=f"is {state}; expected one of") as refused:
        ask_again(retries, 1, 2)
    assert "m00.txt" in str(refused.value)
    assert (retries.states(), retries.shop.counts()) == ([state, "dead_letter"], before)


def test_one_that_a_reviewer_has_to_look_at_may_be_asked_again(retries: Retries) -> None:
    retries.walk(["doubtful", "good"])
    assert retries.states() == ["awaiting_review"]
    ask_again(retries, 1)
    retries.step()
    assert retries.states() == ["published"]
    assert retries.published_from() == {1: 2}
    assert retries.shop.rows(retry_decisions) == []
    retries.check()


@ON_ONE_DATABASE
def test_one_that_was_judged_and_then_fails_keeps_its_judgement_to_itself(
    retries: Retries,
) -> None:
    retries.walk(["doubtful", "refused"])
    ask_again(retries, 1)
    retries.step()
    assert retries.states() == ["dead_letter"]
    assert retries.shop.archive() == []
    retries.check()


def test_requeued_twice_at_once_is_once(retries: Retries) -> None:
    retries.walk(["refused"])
    assert ask_again(retries, 1, 1).records == 1
    before = retries.shop.counts()
    with pytest.raises(NotRequeueable, match="is prepared"):
        ask_again(retries, 1)
    assert retries.shop.counts() == before


@ON_ONE_DATABASE
def test_no_two_freeze_a_version(retries: Retries) -> None:
    retries.walk(["refused"])
    acquire(retries.shop.context.ledger, f"manifest:{KEY}", "someone@elsewhere:1")
    with pytest.raises(LeaseHeld):
        ask_again(retries, 1)
    assert retries.states() == ["dead_letter"]


def test_a_killed_worker_requeues_nothing_or_all(retries: Retries) -> None:
    retries.walk(["refused"], ["refused"])
    steps = [
        ("pipeline_assets.prepare.retries", name)
        for name in ("newest_attempts", "frozen_bodies", "store_frame", "close_dead_letters")
    ] + [("resources.ledger.manifests", "_prepare_again")]
    steps += [("pipeline_assets.prepare.retries", "store_manifest")]
    assert die_in_turn(retries, steps, lambda: ask_again(retries, 1, 2)) == len(steps)
    assert importlib.import_module(steps[0][0]).requeue is requeue
    assert ask_again(retries, 1, 2).records == 2
    retries.step()
    assert retries.states() == ["published", "published"]
    retries.check()


@ON_ONE_DATABASE
def test_a_rejected_record_goes_through_review_or_publication_again(retries: Retries) -> None:
    retries.walk(["doubtful", "doubtful"])
    context = retries.shop.context
    with context.ledger.write() as connection:
        move_records(
            connection,
            context.ledger.dialect,
            pl.Series([1], dtype=pl.Int64),
            "awaiting_review",
            "rejected",
            context.cause("not this one", "review"),
            batch_chain(1),
        )
    ask_again(retries, 1)
    retries.step()
    assert retries.states() == ["awaiting_review"]
    assert freeze_manifest(context, retries.shop.version()).expected == 0
    retries.check()
