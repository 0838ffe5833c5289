"""Whatever happens to archive and sender, the receiver ends with what the archive shows."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from pipeline_assets.outlets.deliver import send_changes
from pipeline_assets.outlets.payload import Message
from pipeline_assets.outlets.queue import Answer
from resources.context import Context
from tests.integration.outlets.conftest import TABLES
from tests.support.archive_shelf import Shelf, clear
from tests.support.clock import FrozenClock

DOCUMENTS = ("a", "b", "c")
# taken; taken and the acknowledgement lost; lost on the way; refused for now; the sender dies.
FATES = ("taken", "dropped", "lost", "failed", "killed before", "killed after", "not begun")


class Killed(BaseException):
    """The sender died; nothing after this runs but what a restart would do."""


class Naive:
    """A receiver that knows keys and nothing else: order and effects are the sender's business."""

    name = "naive"

    def __init__(self) -> None:
        self.effects: dict[str, dict[str, Any]] = {}
        self.held: dict[str, tuple[int, str | None]] = {}
        self.fates: list[str] = []

    def send(self, messages: Sequence[Message]) -> list[Answer | None]:
        return [self._one(message) for message in messages]

    def _one(self, message: Message) -> Answer | None:
        fate = self.fates.pop(0) if self.fates else "taken"
        if fate == "killed before":
            raise Killed
        if fate in ("taken", "dropped", "killed after"):
            self._take(msgspec.json.decode(message.body))
        if fate == "killed after":
            raise Killed
        return {
            "taken": Answer(204),
            "failed": Answer(500),
            "not begun": None,
        }.get(fate, Answer(None, "it did not answer in time"))

    def _take(self, message: dict[str, Any]) -> None:
        key, document = message["idempotency_key"], message["document_id"]
        if key in self.effects:
            assert self.effects[key] == message
            return
        self.effects[key] = message
        if message["effect"] == "remove":
            # It may never have been there: a sender cannot know what became of a lost message.
            self.held.pop(document, None)
            return
        version = message["archive_version"]
        assert version > self.held.get(document, (0, None))[0], "a later entry was sent before"
        self.held[document] = (version, message["fields"]["title"]["value"])


class Life(RuleBasedStateMachine):
    """Publishing, correcting, rolling back and removing, with a sender that has bad luck."""

    def __init__(self, context: Context) -> None:
        super().__init__()
        clear(context, *TABLES)
        self.clock = FrozenClock()
        ledger = replace(context.ledger, clock=self.clock)
        self.context = replace(context, ledger=ledger, clock=self.clock, rng=random.Random(1))
        self.shelf = Shelf(self.context, self.clock)
        self.receiver = Naive()

    @rule(
        document=st.sampled_from(DOCUMENTS),
        title=st.sampled_from(["one", "two", "three"]),
        kind=st.sampled_from(["publish", "correction", "rollback", "promote"]),
    )
    def put(self, document: str, title: str, kind: str) -> None:
        self.shelf.put(document, title, kind=kind)

    @rule(document=st.sampled_from(DOCUMENTS))
    def remove(self, document: str) -> None:
        if document in self.shelf.visible():
            self.shelf.remove(document)

    @rule(hours=st.sampled_from([0, 1, 200]))
    def wait(self, hours: int) -> None:
        self.clock.advance(timedelta(hours=hours))

    @rule(fates=st.lists(st.sampled_from(FATES), max_size=4), at_once=st.booleans())
    def send(self, fates: list[str], at_once: bool) -> None:
        self.receiver.fates = list(fates)
        try:
            send_changes(self.context, outlet=self.receiver, at_once=at_once)
        except Killed:
            return
        self._check_order()

    def _check_order(self) -> None:
        """After each look: at most one thing of a document waits."""
        due = [document for document, _, _, state, _ in self.shelf.rows() if state == "due"]
        assert len(due) == len(set(due))

    def teardown(self) -> None:
        self.receiver.fates = []
        for _ in range(3):
            send_changes(self.context, outlet=self.receiver, at_once=True)
        assert self.receiver.held == self.shelf.visible()
        states = {state for _, _, _, state, _ in self.shelf.rows()}
        assert states <= {"delivered", "overtaken"}


@pytest.mark.parametrize(
    ("module_context", "examples"),
    [
        pytest.param("sqlite", 25, id="sqlite"),
        pytest.param("sqlite", 150, id="sqlite-long", marks=pytest.mark.slow),
        pytest.param(
            "postgresql", 60, id="postgresql", marks=[pytest.mark.slow, pytest.mark.postgres]
        ),
    ],
    indirect=["module_context"],
)
def test_the_receiver_ends_with_what_the_archive_shows(
    module_context: Context, examples: int
) -> None:
    run_state_machine_as_test(
        cast("type[RuleBasedStateMachine]", lambda: Life(module_context)),
        settings=settings(max_examples=examples, stateful_step_count=14, deadline=None),
    )
