"""A reviewer's correction is what people see; what a reviewer rejected is seen by nobody."""

from __future__ import annotations

import polars as pl
import pytest
from sqlalchemy import update

from pipeline_assets.publish.candidates import AcceptanceUnproven, CorrectionDiffers
from pipeline_assets.publish.publish_accepted import PublishReport
from resources.ledger.schema import deliveries, reviews
from tests.integration.publish.support import FAN, ONE, PUMP, TWO, Stall
from tests.integration.stages.support import ON_ONE_DATABASE, manual

PUMP_ID, FAN_ID = f"shop/{PUMP}", f"shop/{FAN}"
SAMPLE, FINDINGS = "quality_sample", "findings"


def _reviewed(stall: Stall, decision: str | None, title: str | None = None) -> None:
    """The pump waited for a reviewer, and was moved to accepted."""
    record = stall.record_of(PUMP_ID)
    stall.doubt(record)
    stall.move(record, "accepted", "awaiting_review")
    stall.decide(record, decision, title=title, kind=FINDINGS)
    stall.move(record, "awaiting_review", "accepted")


def test_corrected_before_it_is_published(stall: Stall) -> None:
    stall.accept()
    _reviewed(stall, "correct", "Corrected Pump")
    assert stall.publish() == PublishReport(2, 0, 0)
    assert stall.titles()[PUMP_ID] == "Corrected Pump"
    with stall.context.ledger.read() as connection:
        wanted = connection.execute(reviews.select()).one().corrected_digest
        keys = [row.accepted_digest for row in connection.execute(deliveries.select())]
    assert wanted in keys
    assert stall.publish() == PublishReport(0, 0, 0)
    stall.require_whole()


def test_accepted_as_it_is(stall: Stall) -> None:
    stall.accept()
    _reviewed(stall, "accept")
    assert stall.publish() == PublishReport(2, 0, 0)
    stall.require_whole()


@ON_ONE_DATABASE
@pytest.mark.parametrize("decision", [None, "reject", "overtaken"])
def test_without_the_decision_a_move_proves_nothing(stall: Stall, decision: str | None) -> None:
    stall.accept()
    _reviewed(stall, decision)
    before = stall.facts()
    with pytest.raises(AcceptanceUnproven, match="1 records"):
        stall.publish()
    with pytest.raises(AcceptanceUnproven, match="1 records"):
        stall.promote()
    assert stall.facts() == before


@ON_ONE_DATABASE
def test_a_rejected_sample_is_not_published(stall: Stall) -> None:
    stall.accept()
    stall.decide(stall.record_of(PUMP_ID), "reject", kind=SAMPLE)
    with pytest.raises(AcceptanceUnproven):
        stall.publish()


@ON_ONE_DATABASE
@pytest.mark.parametrize("published", [False, True], ids=["accepted", "published"])
def test_a_correction_that_was_changed_is_refused(stall: Stall, *, published: bool) -> None:
    stall.accept()
    if published:
        stall.publish()
    stall.decide(stall.record_of(PUMP_ID), "correct", title="Corrected", kind=SAMPLE)
    with stall.context.ledger.write() as connection:
        connection.execute(update(reviews).values(corrected_digest="0" * 64))
    before = stall.facts()
    with pytest.raises(CorrectionDiffers, match="backup"):
        stall.publish()
    assert stall.facts() == before


def test_corrected_after_it_was_published(stall: Stall) -> None:
    stall.run()
    record = stall.record_of(PUMP_ID)
    first = stall.titles()[PUMP_ID]
    stall.decide(record, "correct", title="Corrected Pump", kind=SAMPLE)
    assert stall.publish() == PublishReport(0, 0, 0, corrected=1)
    assert stall.titles()[PUMP_ID] == "Corrected Pump"
    assert stall.publish() == PublishReport(0, 0, 0)
    stall.decide(record, "correct", title="Another Pump", kind=SAMPLE)
    assert stall.publish().corrected == 1
    # Back to what was shown once: its first delivery is used up, and it is wanted all the same.
    stall.decide(record, "correct", title="Corrected Pump", kind=SAMPLE)
    assert stall.publish().corrected == 1
    assert stall.titles()[PUMP_ID] == "Corrected Pump"
    assert [kind for _, _, kind in stall.sequence(PUMP_ID)] == ["publish", *["correction"] * 3]
    # A rollback that takes a correction away stays.
    assert stall.rollback_document(PUMP_ID, to=1).put_back == 1
    assert stall.publish() == PublishReport(0, 0, 0)
    assert stall.titles()[PUMP_ID] == first
    stall.require_whole()


def test_a_correction_of_what_is_not_shown_waits(stall: Stall) -> None:
    stall.run(ONE)
    stall.run(TWO)
    stall.decide(stall.record_of(PUMP_ID), "correct", title="Corrected Pump", kind=SAMPLE)
    assert stall.publish(ONE) == PublishReport(0, 0, 0)
    assert stall.shown()[PUMP_ID] == TWO
    stall.rollback(TWO)
    assert stall.publish(ONE).corrected == 1
    assert stall.titles()[PUMP_ID] == "Corrected Pump"
    stall.require_whole()


def test_by_command_only_corrections_wait_too(stall: Stall) -> None:
    stall.run(ONE)
    stall.run(TWO)
    stall.rollback(TWO)
    stall.decide(stall.record_of(PUMP_ID, TWO), "correct", title="Corrected Pump", kind=SAMPLE)
    assert stall.publish(TWO) == PublishReport(0, 0, 0), "it is not the visible one"
    report = stall.promote(TWO)
    assert (report.shown_again, report.corrected) == (2, 1)
    assert stall.titles()[PUMP_ID] == "Corrected Pump"
    stall.decide(stall.record_of(FAN_ID, TWO), "correct", title="Corrected Fan", kind=SAMPLE)
    assert stall.publish(TWO) == PublishReport(0, 0, 0, waiting=1)
    assert stall.promote(TWO).corrected == 1
    stall.require_whole()


def test_what_is_rejected_gives_way_to_what_was_shown_before(stall: Stall) -> None:
    """The same values of another version are as wrong, so they are passed over."""
    stall.run(ONE)
    stall.decide(stall.record_of(PUMP_ID), "correct", title="Corrected Pump", kind=SAMPLE)
    stall.publish(ONE)
    stall.run(TWO)
    both = [stall.record_of(PUMP_ID, TWO), stall.record_of(FAN_ID, TWO)]
    assert stall.reject(both) == 2
    assert stall.shown() == {PUMP_ID: ONE}
    assert stall.titles() == {PUMP_ID: "Corrected Pump"}
    assert stall.changes()[-1] == ("removal", 1, 2)
    for key in (ONE, TWO):
        assert stall.run(key) == PublishReport(0, 0, 0)
    assert stall.promote(TWO).changed == 0
    stall.require_whole()


def test_rejected_and_accepted_again_with_the_same_values(stall: Stall) -> None:
    stall.run(ONE)
    record = stall.record_of(PUMP_ID)
    stall.reject([record])
    assert stall.shown() == {FAN_ID: ONE}
    for pair in (
        ("rejected", "prepared"),
        ("prepared", "submitted"),
        ("submitted", "collected"),
        ("collected", "accepted"),
    ):
        stall.move(record, *pair)
    report = stall.publish(ONE)
    assert (report.published, report.already, report.restored) == (0, 1, 1)
    assert stall.shown() == {PUMP_ID: ONE, FAN_ID: ONE}
    stall.require_whole()


@ON_ONE_DATABASE
def test_accepted_again_when_the_document_has_moved_on(stall: Stall) -> None:
    """Values of bytes that are gone never take the place of those of the present ones."""
    stall.run(ONE)
    record = stall.record_of(PUMP_ID)
    stall.reject([record])
    stall.write(PUMP, manual("Circulation Pump", "WP-200"))
    stall.run(ONE)
    newer = stall.record_of(PUMP_ID)
    for pair in (
        ("rejected", "prepared"),
        ("prepared", "submitted"),
        ("submitted", "collected"),
        ("collected", "accepted"),
    ):
        stall.move(record, *pair)
    assert stall.publish(ONE).restored == 0
    shown = stall.query(
        "SELECT e.record_no FROM archive_heads h JOIN archive_entries e "
        f"ON e.entry_no = h.entry_no WHERE h.document_no = {stall.document_no(PUMP_ID)}",
        {"record_no": pl.Int64},
    )
    assert shown.item() == newer
    stall.require_whole()


@ON_ONE_DATABASE
def test_a_promotion_shows_what_was_decided_last(stall: Stall) -> None:
    """Also where the same values had been delivered once before, and given up."""
    stall.run(ONE)
    record = stall.record_of(PUMP_ID)
    for title in ("Corrected Pump", "Another Pump", "Corrected Pump"):
        stall.decide(record, "correct", title=title, kind=SAMPLE)
        assert stall.publish().corrected == 1
    stall.run(TWO)
    assert stall.titles()[PUMP_ID] != "Corrected Pump"
    stall.promote(ONE)
    assert stall.titles()[PUMP_ID] == "Corrected Pump"
    stall.require_whole()


def test_hiding_what_is_not_shown_changes_nothing(stall: Stall) -> None:
    stall.run(ONE)
    stall.run(TWO)
    assert stall.reject([stall.record_of(PUMP_ID, ONE)]) == 0
    assert stall.changes()[-1] == ("removal", 0, 0)
    # What is rejected is never gone back to.
    assert stall.rollback(TWO).removed == 1
    assert stall.shown() == {FAN_ID: ONE}
    stall.require_whole()
