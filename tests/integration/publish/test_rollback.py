"""Promoting and rolling back: what the archive shows after each step, and what it showed before."""

from __future__ import annotations

from datetime import datetime

import polars as pl
import pytest

from pipeline_assets.account.published import NotPublishedThen, published_entry
from pipeline_assets.publish.publish_accepted import PublishReport
from pipeline_assets.publish.rollback import NoSuchArchiveVersion, NotShowable
from resources.clock import to_text
from resources.ledger.versions import get_operating
from tests.integration.publish.support import BOTH, FAN, ONE, PUMP, TWO, Stall
from tests.integration.stages.support import ON_ONE_DATABASE, manual

PUMP_ID, FAN_ID = f"shop/{PUMP}", f"shop/{FAN}"
ALL_ONE: dict[str, str] = dict.fromkeys(BOTH, ONE)
ALL_TWO: dict[str, str] = dict.fromkeys(BOTH, TWO)


@pytest.mark.parametrize(
    "shared_url",
    ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)],
    indirect=True,
)
def test_publish_over_roll_back_promote_again(stall: Stall) -> None:
    seen: list[tuple[datetime, dict[str, str]]] = [(stall.clock(), {})]

    def note(expected: dict[str, str]) -> None:
        assert stall.shown() == expected
        stall.require_whole()
        seen.append((stall.clock(), expected))

    stall.run(ONE)
    note(ALL_ONE)
    assert stall.run(TWO).replaced == 2
    note(ALL_TWO)
    report = stall.rollback(TWO)
    assert (report.put_back, report.removed, report.made_manual) == (2, 0, True)
    note(ALL_ONE)
    # Neither version's next run changes anything.
    assert stall.run(TWO) == stall.run(ONE) == PublishReport(0, 0, 0)
    note(ALL_ONE)
    again = stall.promote(TWO)
    assert (again.shown_again, again.replaced, again.published, again.manual) == (2, 2, 0, True)
    note(ALL_TWO)
    assert stall.rollback(TWO).put_back == 2
    note(ALL_ONE)
    assert (stall.rollback(ONE).put_back, stall.shown()) == (0, {})
    note({})
    assert stall.promote(ONE).shown_again == 2
    note(ALL_ONE)
    assert stall.sequence(PUMP_ID) == [
        (ONE, 1, "publish"),
        (TWO, 1, "publish"),
        (ONE, 2, "rollback"),
        (TWO, 2, "promote"),
        (ONE, 3, "rollback"),
        (ONE, 4, "promote"),
    ]
    for moment, expected in seen:
        for document in BOTH:
            assert _as_of(stall, document, moment) == expected.get(document)


def _as_of(stall: Stall, document: str, moment: datetime) -> str | None:
    try:
        entry = published_entry(stall.context, document, as_of=moment)
    except NotPublishedThen:
        return None
    assert entry["published_at"] <= to_text(moment)
    assert entry["visible_until"] is None or entry["visible_until"] > to_text(moment)
    return entry["provenance"]["processing_version"]


@ON_ONE_DATABASE
def test_repeating_a_command_is_said_and_changes_nothing(stall: Stall) -> None:
    stall.run(ONE)
    stall.run(TWO)
    assert stall.promote(TWO).changed == 0
    stall.rollback(TWO)
    before = stall.facts()
    assert stall.rollback(TWO).changed == 0
    stall.promote(ONE)
    assert stall.facts() == before


@ON_ONE_DATABASE
def test_a_trial_tells_and_changes_nothing(stall: Stall) -> None:
    stall.run(ONE)
    stall.accept(TWO)
    before = stall.facts()
    assert stall.promote(TWO, trial=True).published == 2
    assert stall.rollback(ONE, trial=True).removed == 2
    assert stall.rollback_document(PUMP_ID, trial=True).removed == 1
    assert stall.facts() == before


def test_manual_waits_for_the_command(stall: Stall) -> None:
    stall.run(ONE)
    stall.rollback(ONE)
    assert stall.shown() == {}
    assert (
        get_operating(stall.context.ledger, stall.version(ONE).version_no, "promote", "auto")
        == "manual"
    )
    stall.write("saw.txt", manual("Band Saw", "BS-300"))
    assert stall.run(ONE) == PublishReport(0, 0, 0, waiting=1)
    saw = pl.Series([stall.document_no("shop/saw.txt")])
    assert stall.promote(ONE, documents=saw).published == 1
    assert stall.shown() == {"shop/saw.txt": ONE}
    report = stall.promote(ONE)
    assert (report.published, report.shown_again) == (0, 2)
    assert stall.shown() == ALL_ONE | {"shop/saw.txt": ONE}
    assert stall.changes() == [
        ("publish", 2, 0),
        ("removal", 0, 2),
        ("promote", 1, 0),
        ("promote", 2, 0),
    ]
    stall.require_whole()


def test_a_version_in_between_stays(stall: Stall) -> None:
    """Only documents that show the version go back; the others keep what they show."""
    stall.run(ONE)
    stall.write(PUMP, manual("Circulation Pump", "WP-200"))
    stall.run(TWO)
    stall.rollback_document(FAN_ID)
    assert stall.shown() == {FAN_ID: ONE, PUMP_ID: TWO}
    assert stall.rollback(TWO).put_back == 1
    assert stall.shown() == ALL_ONE
    # The version's values of the pump are of bytes that the source no longer holds.
    stall.run(ONE)
    stall.write(PUMP, manual("Circulation Pump", "WP-300"))
    stall.run(ONE)
    report = stall.promote(TWO)
    assert (report.shown_again, report.older) == (1, 1)
    assert stall.shown() == {FAN_ID: TWO, PUMP_ID: ONE}
    stall.require_whole()


def test_within_a_version_a_rollback_stays(stall: Stall) -> None:
    """The bytes of now have a published record; the operator wants the earlier one all the same."""
    stall.run(ONE)
    stall.write(PUMP, manual("Circulation Pump", "WP-200"))
    stall.run(ONE)
    assert stall.rollback_document(PUMP_ID).put_back == 1
    before = stall.facts()
    assert stall.run(ONE) == PublishReport(0, 0, 0)
    assert {name: facts for name, facts in stall.facts().items() if facts != before[name]} == {}
    # New bytes are another matter.
    stall.write(PUMP, manual("Circulation Pump", "WP-300"))
    assert stall.run(ONE).published == 1
    assert stall.rollback_document(PUMP_ID).put_back == 1
    assert stall.promote(ONE).shown_again == 1
    stall.require_whole()


def test_to_a_certain_archive_version(stall: Stall) -> None:
    stall.run(ONE)
    stall.run(TWO)
    assert stall.rollback_document(PUMP_ID, to=2).changed == 0
    assert stall.rollback_document(PUMP_ID, to=1).put_back == 1
    assert stall.shown()[PUMP_ID] == ONE
    assert stall.rollback_document(PUMP_ID).removed == 1
    assert stall.rollback_document(PUMP_ID).changed == 0
    assert stall.rollback_document(PUMP_ID, to=2).put_back == 1
    assert stall.shown()[PUMP_ID] == TWO
    with pytest.raises(NoSuchArchiveVersion, match="1 to 4"):
        stall.rollback_document(PUMP_ID, to=5)
    stall.rollback_document(PUMP_ID, to=1)
    stall.reject([stall.record_of(PUMP_ID)])
    with pytest.raises(NotShowable, match="rejected"):
        stall.rollback_document(PUMP_ID, to=1)
    stall.require_whole()


def test_materialised_alone_it_leaks_nothing(stall: Stall) -> None:
    stall.accept(ONE)
    stall.doubt(stall.record_of(PUMP_ID))
    stall.move(stall.record_of(PUMP_ID), "accepted", "awaiting_review")
    for _ in range(2):
        stall.publish(ONE)
        assert stall.shown() == {FAN_ID: ONE}
    assert stall.promote(ONE).changed == 0
    assert stall.shown() == {FAN_ID: ONE}


@ON_ONE_DATABASE
def test_a_clock_that_is_behind_gives_no_time_two_answers(stall: Stall) -> None:
    """So does whoever looked at the clock and then waited for somebody else's transaction."""
    stall.run(ONE)
    stall.accept(TWO)
    stall.clock.advance(-60)
    stall.publish(TWO)
    stall.rollback(TWO)
    stall.reject([stall.record_of(PUMP_ID)])
    intervals = stall.query(
        "SELECT document_no, valid_from, valid_to FROM archive_entries ORDER BY entry_no",
        {"document_no": pl.Int64, "valid_from": pl.String, "valid_to": pl.String},
    )
    assert intervals.filter(pl.col("valid_to") < pl.col("valid_from")).is_empty()
    for moment in intervals["valid_from"].unique():
        shown = intervals.filter(
            (pl.col("valid_from") <= moment)
            & (pl.col("valid_to").is_null() | (pl.col("valid_to") > moment))
        )
        assert shown["document_no"].is_unique().all()
    stall.require_whole()
