"""Who each thing waits for."""

from __future__ import annotations

import polars as pl
import pytest

from pipeline_assets.account.ages import BATCH_SCHEMA, MOVED_SCHEMA, REVIEW_SCHEMA
from pipeline_assets.account.hold_facts import HoldFacts
from pipeline_assets.account.waits import (
    LETTER_SCHEMA,
    WaitFacts,
    Waiting,
    dead_letters_by_owner,
    name_waits,
)
from tests.support.small_archive import Archive

EARLY, LATE = "2030-01-01T00:00:00.000000Z", "2030-01-02T00:00:00.000000Z"
RELEASE = ("release", "--reason", "TEXT")


def held(by_itself: bool) -> HoldFacts:
    return HoldFacts("quota", "used up", EARLY, "monitor", by_itself, None, "by command")


def batch(state: str, name: str = "b1", mode: str = "batch", records: int = 3) -> tuple:
    return (name, state, mode, records, EARLY, None, None, LATE)


def facts(
    *,
    hold: HoldFacts | None = None,
    failed_canaries: int = 0,
    moved: list[tuple] | None = None,
    batches: list[tuple] | None = None,
    reviews: list[tuple] | None = None,
    letters: list[tuple] | None = None,
) -> WaitFacts:
    def frame(rows: list[tuple] | None, schema: dict[str, type[pl.DataType]]) -> pl.DataFrame:
        return pl.DataFrame(rows or [], schema=schema, orient="row")

    return WaitFacts(
        key="v-1",
        held=hold,
        failed_canaries=failed_canaries,
        moved=frame(moved, MOVED_SCHEMA),
        batches=frame(batches, BATCH_SCHEMA),
        reviews=frame(reviews, REVIEW_SCHEMA),
        letters=frame(letters, LETTER_SCHEMA),
    )


@pytest.mark.parametrize(
    ("waiting", "known", "expected"),
    [
        pytest.param(
            Waiting("awaiting_review", 3, by_person=True),
            facts(
                reviews=[
                    ("findings", None, LATE, 1),
                    ("findings", None, EARLY, 1),
                    ("findings", "ada", LATE, 1),
                ]
            ),
            [
                ("awaiting_review", 1, "ada", LATE, ("review", "next")),
                ("awaiting_review", 2, "reviewer", EARLY, ("review", "next")),
            ],
            id="reviews-by-who-has-them",
        ),
        pytest.param(
            Waiting("awaiting_review", 2, by_person=True),
            facts(moved=[("awaiting_review", LATE, 1), ("awaiting_review", EARLY, 1)]),
            [("awaiting_review", 2, "reviewer", EARLY, ("review", "next"))],
            id="records-without-an-open-review",
        ),
        pytest.param(
            Waiting("dead_letter", 3, by_person=True),
            facts(letters=[("ops", EARLY, 2), (None, None, 1)]),
            [
                ("dead_letter", 1, "operator", None, ("dead-letter", "list")),
                ("dead_letter", 2, "ops", EARLY, ("dead-letter", "list")),
            ],
            id="dead-letters-by-owner",
        ),
        pytest.param(
            Waiting("awaiting_approval", 1, by_person=True),
            facts(),
            [("awaiting_approval", 1, "operator", None, ("sources", "waiting"))],
            id="approval",
        ),
        pytest.param(
            Waiting("batch incident", 2, by_person=True),
            facts(batches=[batch("incident"), batch("incident", "b2")]),
            [("batch incident", 2, "operator", LATE, ("batch", "list"))],
            id="several-batches-are-listed",
        ),
        pytest.param(
            Waiting("batch quarantined", 1, by_person=True),
            facts(batches=[batch("quarantined"), batch("prepared", "b2")]),
            [("batch quarantined", 1, "operator", LATE, ("batch", "show", "b1"))],
            id="one-batch-is-shown",
        ),
        pytest.param(
            Waiting("prepared", 5, by_person=False),
            facts(batches=[batch("quarantined")], moved=[("prepared", EARLY, 5)]),
            [
                ("prepared", 3, "operator", LATE, ("batch", "show", "b1")),
                ("prepared", 2, "the next run", EARLY, ("run",)),
            ],
            id="no-run-sends-what-is-quarantined",
        ),
        pytest.param(
            Waiting("prepared", 5, by_person=False),
            facts(hold=held(by_itself=False), moved=[("prepared", EARLY, 5)]),
            [("prepared", 5, "operator", EARLY, RELEASE)],
            id="a-hold-keeps-it",
        ),
        pytest.param(
            Waiting("batch prepared", 1, by_person=False),
            facts(failed_canaries=1, batches=[batch("prepared")]),
            [("batch prepared", 1, "operator", LATE, ("canary", "list"))],
            id="a-canary-keeps-it",
        ),
        pytest.param(
            Waiting("submitted", 3, by_person=False),
            facts(failed_canaries=1, batches=[batch("running")], moved=[("submitted", LATE, 3)]),
            [("submitted", 3, "provider", LATE, ("batch", "list"))],
            id="a-canary-keeps-nothing-that-was-sent",
        ),
        pytest.param(
            Waiting("held", 1, by_person=True),
            facts(hold=held(by_itself=False)),
            [("held", 1, "operator", EARLY, RELEASE)],
            id="held",
        ),
        pytest.param(
            Waiting("held", 1, by_person=False),
            facts(hold=held(by_itself=True)),
            [("held", 1, "the next run", EARLY, ("run",))],
            id="held-and-goes-on",
        ),
        pytest.param(
            Waiting("accepted", 2, by_person=True),
            facts(moved=[("accepted", LATE, 2)]),
            [("accepted", 2, "operator", LATE, ("promote", "v-1", "--reason", "TEXT"))],
            id="promoted-by-hand",
        ),
        pytest.param(
            Waiting("submitted", 3, by_person=False),
            facts(batches=[batch("running")], moved=[("submitted", LATE, 3)]),
            [("submitted", 3, "provider", LATE, ("batch", "list"))],
            id="at-the-provider",
        ),
        pytest.param(
            Waiting("submitted", 3, by_person=False),
            facts(batches=[batch("running", mode="online")], moved=[("submitted", LATE, 3)]),
            [("submitted", 3, "the next run", LATE, ("run",))],
            id="answered-by-the-run-itself",
        ),
        pytest.param(
            Waiting("pending", 4, by_person=False),
            facts(),
            [("pending", 4, "the next run", None, ("run",))],
            id="pending",
        ),
    ],
)
def test_whom_it_waits_for(
    waiting: Waiting, known: WaitFacts, expected: list[tuple[object, ...]]
) -> None:
    found = name_waits([waiting], known)
    assert [(w.what, w.count, w.who, w.since, w.command) for w in found] == expected


def test_quality_samples_come_last_and_keep_nothing_from_being_done() -> None:
    known = facts(reviews=[("quality_sample", None, EARLY, 2)])
    (found,) = name_waits([], known)
    assert (found.what, found.count, found.who) == ("quality_sample", 2, "reviewer")
    assert found.command == ("review", "next", "--kind", "quality_sample")


def test_what_documents_left_open_is_told_though_it_keeps_nothing_from_being_done() -> None:
    known = facts(
        reviews=[("findings", None, EARLY, 1), ("quality_sample", None, EARLY, 2)],
        letters=[("ops", LATE, 4)],
    )
    found = name_waits([], known)
    assert [(wait.what, wait.count, wait.who) for wait in found] == [
        ("awaiting_review", 1, "reviewer"),
        ("dead_letter", 4, "ops"),
        ("quality_sample", 2, "reviewer"),
    ]


def test_dead_letters_are_counted_from_the_states(read_archive: Archive) -> None:
    ledger = read_archive.context.ledger
    with ledger.read() as connection:
        number = read_archive.version().version_no
        assert dead_letters_by_owner(connection, ledger, number).is_empty()
