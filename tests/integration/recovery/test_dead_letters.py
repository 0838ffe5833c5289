"""Dead letters of a real walk through the stages: told of, given up, given away, mended."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta

import pytest
from sqlalchemy import delete, update

from pipeline_assets.accept.judge_batches import judge_batches
from pipeline_assets.account import health
from pipeline_assets.prepare.retries import requeue
from pipeline_assets.recovery.dead_letter_alerts import AGING, MANY, look_at_dead_letters
from pipeline_assets.recovery.dead_letter_choice import (
    NothingSelected,
    Selection,
    UnknownDeadLetter,
)
from pipeline_assets.recovery.dead_letters import (
    OwnerRefused,
    ReasonMissing,
    assign,
    dead_letters_of,
    discard,
    mend_episodes,
    story,
    take_up,
)
from pipeline_assets.versions import OpenVersion
from resources.ledger.alerts import open_alerts
from resources.ledger.journal import verify_all
from resources.ledger.leases import LeaseHeld, acquire
from resources.ledger.schema import dead_letters, moves, record_state
from resources.ledger.versions import set_operating
from tests.integration.stages.support import KEY, ON_ONE_DATABASE, Shop, manual
from tests.support.clock import FrozenClock
from tests.support.given_up import walk_to_dead_letters

ALL = Selection(everything=True)
REFUSED = Selection(failure_class="invalid_request")


Walk = Callable[[list[str]], OpenVersion]


@pytest.fixture
def walk(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Walk:
    """Return a function that has one document an entry answered so, and collects."""
    return lambda script: walk_to_dead_letters(shop, monkeypatch, script)


def forget_episodes(shop: Shop) -> None:
    """As a release that kept no episodes left it."""
    with shop.context.ledger.write() as connection:
        connection.execute(delete(dead_letters))


def look(shop: Shop, version: OpenVersion) -> None:
    look_at_dead_letters(shop.context, version.version_no, KEY)


def told(shop: Shop) -> dict[str, tuple[str, int]]:
    return {alert.kind: (alert.message, alert.times) for alert in open_alerts(shop.context.ledger)}


def proven(shop: Shop) -> bool:
    with shop.context.ledger.read() as connection:
        verdict = verify_all(connection, shop.context.ledger.dialect)
    return not verdict.orphans and not any(chain.faults for chain in verdict.chains)


def test_collect_leaves_an_episode_with_owner_and_cause(walk: Walk, shop: Shop) -> None:
    version = walk(["well", "refused", "conflict"])
    found = dead_letters_of(shop.context, version.version_no)
    assert found.select("document_id", "failure_class", "owner", "recorded").rows() == [
        ("shop/m1.txt", "invalid_request", "operators", 1),
        ("shop/m2.txt", "duplicate_conflict", "operators", 1),
    ]


def test_the_story_points_at_every_line_and_holds_no_text(walk: Walk, shop: Shop) -> None:
    version = walk(["well", "conflict"])
    (entry,) = story(shop.context, version.version_no, KEY, "m1.txt")
    assert (entry["document_id"], entry["state"]) == ("shop/m1.txt", "dead_letter")
    (episode,) = entry["episodes"]
    assert (episode["failure_class"], episode["closed_at"]) == ("duplicate_conflict", None)
    (attempt,) = entry["attempts"]
    assert (attempt["ordinal"], attempt["failure_class"]) == (1, "duplicate_conflict")
    assert attempt["decision"] == "dead_letter"
    assert [line["anomaly"] for line in entry["lines"]] == ["duplicate_conflict"] * 2
    for line in entry["lines"]:
        data = shop.context.artifacts.path("result", line["result_artifact"]).read_bytes()
        place = line["line_offset"]
        assert json.loads(data[place : place + line["line_length"]])["status_code"] == 200
    assert "Grinder" not in json.dumps(entry)


def test_the_story_of_a_document_without_one_is_refused(walk: Walk, shop: Shop) -> None:
    version = walk(["well", "refused"])
    with pytest.raises(UnknownDeadLetter):
        story(shop.context, version.version_no, KEY, "m0.txt")


def test_discarding_moves_closes_and_proves_itself(walk: Walk, shop: Shop) -> None:
    version = walk(["well", "refused", "refused", "conflict"])
    change = discard(shop.context, version.version_no, KEY, REFUSED, " of no use ")
    assert (change.records, change.documents) == (2, ("shop/m1.txt", "shop/m2.txt"))
    assert list(shop.states().values())[1:] == ["discarded", "discarded", "dead_letter"]
    (move,) = [row for row in shop.rows(moves) if row["to_state"] == "discarded"]
    assert (move["members"], move["reason"]) == (2, "discarded: of no use")
    assert move["cause"] == "dead-letter discard"
    assert move["chain"].startswith("batch:")
    closed = [row for row in shop.rows(dead_letters) if row["closed_at"] is not None]
    assert [(row["closing"], row["closing_reason"]) for row in closed] == [
        ("discarded", "of no use")
    ] * 2
    assert proven(shop)
    left = dead_letters_of(shop.context, version.version_no)["document_id"].to_list()
    assert left == ["shop/m3.txt"]
    judge_batches(shop.context, version)
    with pytest.raises(NothingSelected, match="no 'invalid_request' dead letter"):
        discard(shop.context, version.version_no, KEY, REFUSED, "again")


def test_those_of_several_batches_are_discarded_together(walk: Walk, shop: Shop) -> None:
    first = walk(["refused"])
    shop.write("m9.txt", manual("Bench Grinder", "BG-999"))
    walk(["refused", "refused"])
    change = discard(shop.context, first.version_no, KEY, ALL, "all of it")
    made = [row for row in shop.rows(moves) if row["to_state"] == "discarded"]
    assert change.records == 3
    assert [row["members"] for row in made] == [1, 2]
    assert len({row["chain"] for row in made}) == 2
    assert proven(shop)


def test_what_is_refused_changes_nothing(walk: Walk, shop: Shop) -> None:
    version = walk(["well", "refused"])
    before = (shop.states(), shop.rows(dead_letters))
    with pytest.raises(ReasonMissing):
        discard(shop.context, version.version_no, KEY, ALL, "  ")
    with pytest.raises(UnknownDeadLetter):
        discard(shop.context, version.version_no, KEY, Selection(("m1.txt", "m9.txt")), "why")
    for owner in ("", " ", "x" * 129):
        with pytest.raises(OwnerRefused):
            assign(shop.context, version.version_no, KEY, ALL, owner)
    acquire(shop.context.ledger, f"recovery:{KEY}", "someone@elsewhere:1")
    with pytest.raises(LeaseHeld):
        discard(shop.context, version.version_no, KEY, ALL, "why")
    assert (shop.states(), shop.rows(dead_letters)) == before


def test_an_owner_is_given_and_kept(walk: Walk, shop: Shop) -> None:
    version = walk(["refused", "refused"])
    assert assign(shop.context, version.version_no, KEY, Selection(("m1.txt",)), " Ada ").records
    owners = dead_letters_of(shop.context, version.version_no)["owner"].to_list()
    assert owners == ["operators", "Ada"]


def test_letters_of_an_older_release_are_dealt_with_like_others(walk: Walk, shop: Shop) -> None:
    version = walk(["refused", "refused", "refused"])
    forget_episodes(shop)
    cause = shop.context.cause("why", "test")
    set_operating(shop.context.ledger, None, "dead_letter_owner", "archive team", cause)
    found = dead_letters_of(shop.context, version.version_no)
    assert (
        found.select("failure_class", "owner", "recorded").rows()
        == [("invalid_request", "archive team", 0)] * 3
    )
    discard(shop.context, version.version_no, KEY, Selection(("m0.txt",)), "of no use")
    assign(shop.context, version.version_no, KEY, Selection(("m1.txt",)), "Ada")
    assert [(row["owner"], row["closing"]) for row in shop.rows(dead_letters)] == [
        ("archive team", "discarded"),
        ("Ada", None),
    ]
    assert [p.kind for p in health.look(shop.context)] == ["dead_letters", "dead_letter_rows"]
    assert mend_episodes(shop.context, version.version_no, KEY) == 1
    assert mend_episodes(shop.context, version.version_no, KEY) == 0
    assert dead_letters_of(shop.context, version.version_no)["recorded"].to_list() == [1, 1]


@pytest.mark.parametrize(
    ("state", "closing"),
    [
        ("withdrawn", "withdrawn"),
        ("superseded", "superseded"),
        ("discarded", "discarded"),
        ("prepared", "requeued"),
        ("published", "answered"),
    ],
)
@ON_ONE_DATABASE
def test_stale_episodes_are_closed_as_their_record_went(
    state: str,
    closing: str,
    walk: Walk,
    shop: Shop,
) -> None:
    version = walk(["refused"])
    with shop.context.ledger.write() as connection:
        connection.execute(update(record_state).values(state=state))
    assert "dead_letter_rows" in [problem.kind for problem in health.look(shop.context)]
    assert mend_episodes(shop.context, version.version_no, KEY) == 1
    assert [row["closing"] for row in shop.rows(dead_letters)] == [closing]


def test_requeued_letters_get_another_attempt(walk: Walk, shop: Shop) -> None:
    version = walk(["refused", "refused"])
    forget_episodes(shop)
    chosen = take_up(shop.context, version.version_no, KEY, Selection(("m0.txt",)))
    report = requeue(shop.context, version, chosen["record_no"], "try again", "Ada")
    assert report.records == 1
    assert list(shop.states().values()) == ["prepared", "dead_letter"]
    assert [(row["closing"], row["closed_by"]) for row in shop.rows(dead_letters)] == [
        ("requeued", "Ada")
    ]
    (entry,) = story(shop.context, version.version_no, KEY, "m0.txt")
    assert [attempt["ordinal"] for attempt in entry["attempts"]] == [1, 2]


def test_growth_is_told_once_and_shrinking_quietly(
    walk: Walk,
    shop: Shop,
    frozen_clock: FrozenClock,
) -> None:
    version = walk(["refused", "refused", "conflict"])
    look(shop, version)
    message = "3 dead letters are open: 2 invalid_request, 1 duplicate_conflict"
    assert told(shop) == {MANY: (message, 1)}
    frozen_clock.advance(timedelta(hours=1))
    before = shop.counts()
    look(shop, version)
    assert told(shop) == {MANY: (message, 1)}
    assert shop.counts() == before
    discard(shop.context, version.version_no, KEY, REFUSED, "of no use")
    assert told(shop) == {MANY: ("1 dead letter is open: 1 duplicate_conflict", 1)}
    shop.write("m9.txt", manual("Bench Grinder", "BG-999"))
    shop.write("m8.txt", manual("Bench Grinder", "BG-888"))
    walk(["refused", "refused"])
    look(shop, version)
    assert told(shop)[MANY][1] == 2
    discard(shop.context, version.version_no, KEY, ALL, "of no use")
    assert told(shop) == {}


def test_age_is_told_and_is_over_when_the_old_ones_are_gone(
    walk: Walk,
    shop: Shop,
    frozen_clock: FrozenClock,
) -> None:
    version = walk(["refused"])
    look(shop, version)
    frozen_clock.advance(timedelta(hours=72))
    look(shop, version)
    assert AGING not in told(shop)
    frozen_clock.advance(timedelta(hours=10))
    look(shop, version)
    assert told(shop)[AGING] == (
        "1 dead letter is open for more than 72 hours; the oldest for 82 hours",
        1,
    )
    look(shop, version)
    assert told(shop)[AGING][1] == 1
    (problem,) = [p for p in health.look(shop.context) if p.kind == "dead_letters"]
    assert "1 dead letters of manuals-baseline-2 wait" in problem.what
    assert "1 of them for more than 72 hours" in problem.what
    assert not problem.broken
    discard(shop.context, version.version_no, KEY, ALL, "of no use")
    assert told(shop) == {}
