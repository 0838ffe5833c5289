"""Changes of the archive reach a real receiver: each effect once, in order, whatever is lost."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from pipeline_assets.outlets.deliver import lease_of, retry_deliveries, send_changes
from resources.ledger.leases import LeaseHeld, acquire
from tests.integration.outlets.conftest import World
from tests.support.outlet_receiver import Answer, every_third_is_dropped

BACKENDS = [
    pytest.param("sqlite", id="sqlite"),
    pytest.param("postgresql", id="postgresql", marks=pytest.mark.postgres),
]
pytestmark = pytest.mark.parametrize("module_context", BACKENDS, indirect=True)


def test_what_is_visible_when_an_outlet_is_first_configured(world: World) -> None:
    world.shelf.put("a", "old")
    world.shelf.put("a", "new", kind="correction")
    world.shelf.put("b", "b")
    world.shelf.put("c", "c")
    world.shelf.remove("c")
    report = world.send()
    assert (report.queued, report.delivered, report.troubled) == (5, 2, False)
    assert world.receiver.holder.held == world.shelf.visible() == {"a": (2, "new"), "b": (1, "b")}
    assert world.shelf.rows() == [
        ("a", 1, "put", "overtaken", 0),
        ("a", 2, "put", "delivered", 1),
        ("b", 1, "put", "delivered", 1),
        ("c", 1, "put", "overtaken", 0),
        ("c", 1, "remove", "overtaken", 0),
    ]


def test_a_look_with_nothing_to_tell_writes_nothing(world: World) -> None:
    world.shelf.put("a", "a")
    world.send()
    before = world.shelf.rows()
    assert world.send(at_once=True).delivered == 0
    assert len(world.receiver.bodies) == 1
    assert world.shelf.rows() == before


def test_correction_promotion_and_removal_are_effects_of_their_own(world: World) -> None:
    """The same values shown again are a new effect: the delivery key carries the promotion."""
    told = []
    for change in ("publish", "correction", "rollback", "promote"):
        world.shelf.put(
            "a", "first" if change in ("publish", "rollback") else "second", kind=change
        )
        world.send()
        told.append(("put", change))
    world.shelf.remove("a")
    world.send()
    world.shelf.put("a", "first", kind="promote")
    world.send()
    told += [("remove", "removal"), ("put", "promote")]
    effects = list(world.receiver.holder.effects.values())
    assert [(effect["effect"], effect["change"]) for effect in effects] == told
    assert len(world.receiver.bodies) == len(effects) == 6
    assert "fields" not in effects[4]
    assert world.receiver.holder.held == {"a": (5, "first")}


def test_every_third_acknowledgement_is_lost(world: World) -> None:
    world.receiver.answer = every_third_is_dropped
    for number in range(12):
        world.shelf.put(f"d{number}", f"one {number}")
    world.send_until_quiet()
    for number in range(0, 12, 2):
        world.shelf.put(f"d{number}", f"two {number}", kind="correction")
    for number in range(0, 12, 3):
        world.shelf.remove(f"d{number}")
    world.send_until_quiet()
    assert world.receiver.holder.held == world.shelf.visible()
    holder = world.receiver.holder
    assert len(holder.requests) > len(holder.effects), "something was sent more than once"
    # 12 first values, corrections of documents that stayed, and 4 removals.
    assert len(holder.effects) == 12 + 4 + 4
    assert all(state in ("delivered", "overtaken") for _, _, _, state, _ in world.shelf.rows())


def test_a_later_change_overtakes_one_that_was_not_taken(world: World) -> None:
    world.receiver.answer = lambda _number, _message: 500
    world.shelf.put("a", "one")
    assert world.send().failed == 1
    world.shelf.put("a", "two")
    world.receiver.answer = lambda _number, _message: 204
    assert world.send().delivered == 1
    world.shelf.clock.advance(timedelta(hours=2))
    assert world.send().delivered == 0
    assert world.shelf.rows() == [
        ("a", 1, "put", "overtaken", 1),
        ("a", 2, "put", "delivered", 1),
    ]


def test_a_removal_is_told_where_the_put_may_have_arrived(world: World) -> None:
    world.receiver.answer = lambda number, _message: "drop" if number == 1 else 204
    world.shelf.put("a", "one")
    world.shelf.put("b", "never sent")
    world.shelf.remove("b")
    world.send()
    assert world.receiver.holder.held == {"a": (1, "one")}
    world.shelf.remove("a")
    world.send()
    assert world.receiver.holder.held == {}
    assert [message["document_id"] for message in world.receiver.holder.effects.values()] == [
        "a"
    ] * 2


def test_a_document_that_comes_back_before_its_removal_was_told(world: World) -> None:
    world.shelf.put("a", "one")
    world.send()
    world.shelf.remove("a")
    world.receiver.answer = lambda _number, _message: 500
    world.send()
    world.shelf.put("a", "one", kind="promote")
    world.receiver.answer = lambda _number, _message: 204
    world.send()
    assert world.receiver.holder.held == {"a": (2, "one")}
    assert ("a", 1, "remove", "overtaken", 1) in world.shelf.rows()


def test_a_refused_change_that_was_overtaken_is_not_tried_again(world: World) -> None:
    world.receiver.answer = lambda _number, _message: 422
    world.shelf.put("a", "a")
    world.send()
    world.shelf.put("a", "b")
    assert retry_deliveries(world.context, "webhook", None) == 0


def test_one_sender_at_a_time(world: World) -> None:
    world.shelf.put("a", "a")
    acquire(world.context.ledger, lease_of("webhook"), "another worker")
    assert world.send().busy
    assert world.receiver.bodies == []
    with pytest.raises(LeaseHeld):
        retry_deliveries(world.context, "webhook", None)
    world.shelf.clock.advance(timedelta(hours=1))
    assert world.send().delivered == 1


def test_a_sender_that_lost_its_lease_settles_nothing(world: World) -> None:
    """Its request arrived; the next sender sends the same once more, under the same key."""
    world.shelf.put("a", "a")

    def taken_over() -> None:
        if not world.receiver.headers:
            world.shelf.clock.advance(timedelta(hours=1))
            acquire(world.context.ledger, lease_of("webhook"), "another worker", 1)

    world.receiver.before = taken_over
    assert world.send().busy
    assert world.shelf.rows() == [("a", 1, "put", "due", 1)]
    world.shelf.clock.advance(timedelta(hours=1))
    assert world.send().delivered == 1
    assert len(world.receiver.bodies) == 2
    assert len(world.receiver.holder.effects) == 1


def test_another_name_hears_everything_anew(world: World) -> None:
    world.shelf.put("a", "a")
    world.send()
    renamed = replace(world.outlet, name="second")
    assert send_changes(world.context, outlet=renamed).delivered == 1
    assert len(world.receiver.holder.effects) == 2, "keys of two outlets never meet"


def test_the_archive_changes_in_the_middle_of_a_look(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is no longer shown when its round begins is not sent, though it was queued as due."""
    monkeypatch.setattr("pipeline_assets.outlets.deliver.ROUND", 1)
    for name in ("a", "b", "c"):
        world.shelf.put(name, "old")

    def change(number: int, _message: dict[str, Any]) -> Answer:
        if number == 1:
            world.shelf.put("b", "new")
            world.shelf.remove("c")
        return 204

    world.receiver.answer = change
    assert world.send().delivered == 1
    assert world.receiver.holder.held == {"a": (1, "old")}
    assert world.send().delivered == 1
    assert world.receiver.holder.held == world.shelf.visible() == {"a": (1, "old"), "b": (2, "new")}


def test_a_look_whose_time_is_up_leaves_the_rest_to_the_next(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline_assets.outlets.deliver.ROUND", 1)
    settings = world.context.settings.model_copy(update={"shard_records": 2})
    context = replace(world.context, settings=settings)
    for number in range(5):
        world.shelf.put(f"d{number}", "v")
    reports = [send_changes(context, outlet=world.outlet, seconds=0) for _ in range(5)]
    assert [report.queued for report in reports] == [2, 2, 1, 0, 0]
    assert [report.delivered for report in reports] == [1] * 5
    assert world.receiver.holder.held == world.shelf.visible()


def test_a_document_that_leaves_twice(world: World) -> None:
    for _ in range(2):
        world.shelf.put("a", "a", kind="promote")
        world.send()
        world.shelf.remove("a")
        world.send()
        assert world.receiver.holder.held == {}
    effects = [effect["effect"] for effect in world.receiver.holder.effects.values()]
    assert effects == ["put", "remove"] * 2


def test_a_removal_that_the_outlet_need_not_hear(world: World) -> None:
    """It knows that the document left, and never heard that it was back in between."""
    world.shelf.put("a", "a")
    world.send()
    world.shelf.remove("a")
    world.send()
    world.shelf.put("a", "a", kind="promote")
    world.shelf.remove("a")
    assert world.send().delivered == 0
    assert world.shelf.rows()[-2:] == [
        ("a", 2, "put", "overtaken", 0),
        ("a", 2, "remove", "overtaken", 0),
    ]
