"""What was published stands while a replay asks again, and whatever comes of it."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest

from pipeline_assets.accept.judge_batches import judge_batches
from pipeline_assets.account.status import status
from pipeline_assets.collect.collect_batches import collect_batches
from pipeline_assets.submit import answer_embedded
from pipeline_assets.submit.submit_batches import submit_batches
from resources.ledger.prunes import ended_batches
from tests.integration.replay.support import ONE, PUMP, TWO, Works
from tests.integration.stages.support import manual

NAME = f"shop/{PUMP}"


@pytest.fixture
def replayed(works: Works) -> Works:
    """Documents published under ONE and TWO, and another attempt at one of ONE's."""
    works.fill().run(ONE)
    works.run(TWO)
    works.replay(ONE, ONE, documents=(NAME,))
    return works


class Silent:
    """The built-in rules, which find no description this time."""

    def __init__(self, rules: Any) -> None:
        self._rules = rules

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rules, name)

    def answer_line(self, request: bytes) -> bytes:
        line = json.loads(self._rules.answer_line(request))
        answer = json.loads(line["body"]["text"])
        answer["description"] = {"value": None, "status": "absent", "evidence": []}
        line["body"]["text"] = json.dumps(answer)
        return json.dumps(line).encode()


def content(works: Works) -> str:
    return works.query(
        "SELECT e.content FROM archive_heads h JOIN archive_entries e ON e.entry_no = h.entry_no",
        {"content": pl.String},
    ).item()


def answer(works: Works, key: str) -> None:
    version = works.version(key)
    submit_batches(works.context, version)
    collect_batches(works.context, version)
    judge_batches(works.context, version)


def require_sound(works: Works) -> None:
    for key in (ONE, TWO):
        assert works.report(key).violations == ()
        status(works.context, key)
    works.require_whole()


def test_going_back_while_the_other_attempt_is_under_way(replayed: Works) -> None:
    replayed.rollback(TWO)
    assert set(replayed.shown().values()) == {ONE}
    assert NAME in replayed.shown()
    require_sound(replayed)
    replayed.go_on(ONE)
    assert replayed.shown()[NAME] == ONE
    require_sound(replayed)


def test_going_back_where_the_other_answer_was_rejected(replayed: Works) -> None:
    answer(replayed, ONE)
    replayed.move(replayed.record_of(NAME), "accepted", "rejected")
    replayed.rollback(TWO)
    assert replayed.shown().get(NAME) == ONE
    require_sound(replayed)


def test_what_was_rejected_before_the_replay_stays_away(works: Works) -> None:
    works.fill().run(ONE)
    works.reject([works.record_of(NAME)])
    works.run(TWO)
    works.replay(ONE, ONE, documents=(NAME,))
    works.rollback(TWO)
    assert NAME not in works.shown()
    require_sound(works)


def test_what_was_rejected_while_another_version_was_shown_stays_away(works: Works) -> None:
    works.fill().run(ONE)
    works.run(TWO)
    works.move(works.record_of(NAME), "published", "rejected")
    works.replay(ONE, ONE, documents=(NAME,))
    works.rollback(TWO)
    assert NAME not in works.shown()


def test_what_is_shown_keeps_its_evidence_though_its_record_was_rejected_since(
    works: Works,
) -> None:
    works.write(PUMP, manual("Circulation Pump", "WP-100"))
    works.run(ONE)
    works.replay(ONE, ONE, documents=(NAME,))
    answer(works, ONE)
    works.move(works.record_of(NAME), "accepted", "rejected")
    assert works.shown() == {NAME: ONE}
    with works.context.ledger.read() as connection:
        found = ended_batches(connection, works.context.ledger)
    assert found["unsettled"].to_list() == [1, 1]


def test_the_other_attempt_leaves_a_newer_version_visible(works: Works) -> None:
    works.fill().run(ONE)
    works.replay(ONE, ONE, documents=(NAME,))
    works.run(TWO)
    works.go_on(ONE)
    assert works.shown()[NAME] == TWO
    require_sound(works)


def test_the_newest_accepted_answer_is_shown_though_it_was_shown_before(
    works: Works, monkeypatch: pytest.MonkeyPatch
) -> None:
    works.write(PUMP, manual("Circulation Pump", "WP-100"))
    works.run(ONE)
    first = content(works)
    rules = answer_embedded.embedded_provider
    with monkeypatch.context() as patch:
        patch.setattr(answer_embedded, "embedded_provider", lambda version: Silent(rules(version)))
        works.replay(ONE, ONE, name="r-1")
        works.go_on(ONE)
    assert content(works) != first
    works.replay(ONE, ONE, name="r-2")
    works.go_on(ONE)
    assert content(works) == first
    entries = works.count("archive_entries")
    works.replay(ONE, ONE, name="r-3")
    works.go_on(ONE)
    assert (content(works), works.count("archive_entries")) == (first, entries)
    assert works.report(ONE).violations == ()
    works.require_whole()


def test_the_same_answer_takes_no_place_of_a_correction(works: Works) -> None:
    works.write(PUMP, manual("Circulation Pump", "WP-100"))
    works.run(ONE)
    works.decide(works.record_of(NAME), "correct", title="Ours", kind="quality_sample")
    works.publish(ONE)
    works.replay(ONE, ONE)
    works.go_on(ONE)
    assert works.titles() == {NAME: "Ours"}
    works.require_whole()


def test_an_entry_that_a_rejection_left_visible_is_told_though_there_was_a_replay(
    works: Works,
) -> None:
    works.write(PUMP, manual("Circulation Pump", "WP-100"))
    works.run(ONE)
    works.replay(ONE, ONE)
    works.go_on(ONE)
    assert works.report(ONE).violations == ()
    works.move(works.record_of(NAME), "published", "rejected")
    assert any("never published" in told for told in works.report(ONE).violations)
