"""The report of a batch: from the batch alone, kept once when it is complete."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import event

from pipeline_assets.account.reconciliation import page
from pipeline_assets.account.reconciliation.kept import (
    keep_batch_reports,
    keep_report,
    made_report,
    open_kept,
)
from pipeline_assets.account.reconciliation.outcomes import OUTCOMES
from pipeline_assets.account.report import BatchAccount
from resources.contracts import read_frame, read_shards
from resources.ledger.kept_reports import list_reports, newest_report, unreported_batches
from tests.support.small_archive import COPY, FAN, KEY, PUMP, Archive, manual

FIRST, SECOND = f"{KEY}-m1-b1", f"{KEY}-m2-b1"


def sql(archive: Archive, statement: str) -> None:
    with archive.context.ledger.write() as connection:
        connection.exec_driver_sql(statement)


def kept_of_batches(archive: Archive) -> list[str | None]:
    with archive.context.ledger.read() as connection:
        return [row.batch_id for row in list_reports(connection) if row.batch_no is not None]


def test_a_batch_is_accounted_for_by_itself(read_archive: Archive) -> None:
    with made_report(read_archive.context, KEY) as whole:
        pass
    with made_report(read_archive.context, KEY, FIRST) as made:
        account, details = made.report.account, made.report.details
    assert (account.documents, account.expected, account.pending) == (3, 3, 0)
    assert account.states == {"awaiting_review": 1, "published": 2}
    assert (account.former, account.excluded, account.attempts) == ({}, {}, {"first": 3})
    assert (account.invariant_holds, account.violations) == (True, ())
    (manifest,) = account.manifests
    assert (manifest.manifest_id, manifest.expected) == (f"{KEY}-m1", 3)
    assert manifest.digest == whole.report.account.manifests[0].digest
    assert manifest.dispositions["succeeded"] == 3
    assert manifest.batches == (
        BatchAccount(FIRST, "completed", "baseline", "completed", expected=3, reconciled=3),
    )
    (head,) = account.journal.heads
    assert head == next(one for one in whole.report.account.journal.heads if one.name == head.name)
    assert (head.name, account.journal.moves) == ("batch:1", head.moves)
    assert [step.records for step in details.steps] == [3, 3, 2, 2, 2]
    assert (details.scope, details.quality, details.ages) == (FIRST, None, {})
    assert details.cost["attempts"] == 3
    assert [one.manifest_id for one in details.configuration.manifests] == [f"{KEY}-m1"]


def test_records_of_documents_that_changed_are_counted_apart(archive: Archive) -> None:
    archive.write(PUMP, manual("Water Pump", "WP-200"))
    archive.process()
    with made_report(archive.context, KEY, FIRST) as made:
        account = made.report.account
    # The copy's bytes were those of the pump, whose record goes on as the copy's.
    assert account.documents == sum(account.states.values()) == 2
    assert sum(account.former.values()) == 1
    assert made.report.details.outcomes.records == 3


def test_what_happens_in_other_batches_changes_nothing(archive: Archive) -> None:
    first = keep_report(archive.context, KEY, FIRST)
    archive.write("new.txt", manual("Wall Heater", "WH-5"))
    archive.process()
    again = keep_report(archive.context, KEY, FIRST)
    assert (again.is_new, again.digest, again.report_no) == (False, first.digest, first.report_no)


def test_what_happens_to_its_records_is_told_against_the_one_before(archive: Archive) -> None:
    first = keep_report(archive.context, KEY, FIRST)
    keep_report(archive.context, KEY)
    (archive.folder / FAN).unlink()
    archive.process()
    found = keep_report(archive.context, KEY, FIRST).report.details.baseline
    assert found is not None
    assert (found.report_no, found.documents) == (first.report_no, (3, 2))


def test_only_its_own_catalogue_is_told(archive: Archive) -> None:
    archive.write("new.txt", manual("Wall Heater", "WH-5"))
    archive.process()
    sql(archive, "UPDATE batches SET catalogue_digest = 'c' || batch_no")
    for batch, catalogue in ((FIRST, "c1"), (SECOND, "c2")):
        with made_report(archive.context, KEY, batch) as made:
            assert made.report.details.configuration.catalogues == (catalogue,)


def test_each_complete_batch_is_kept_once(archive: Archive) -> None:
    assert keep_batch_reports(archive.context, KEY) == 1
    assert keep_batch_reports(archive.context, KEY) == 0
    archive.write("new.txt", manual("Wall Heater", "WH-5"))
    archive.prepare()
    # Frozen, and nobody answered yet.
    assert keep_batch_reports(archive.context, KEY) == 0
    archive.process()
    assert keep_batch_reports(archive.context, KEY) == 1
    assert kept_of_batches(archive) == [FIRST, SECOND]
    with archive.context.ledger.read() as connection:
        row = newest_report(connection, 1, 2)
        assert newest_report(connection, 1) is None
        assert unreported_batches(connection, 1) == []
        assert unreported_batches(connection, 2) == []
    assert row is not None
    opened = open_kept(archive.context, row.report_no)
    assert opened.report.details.scope == SECOND
    assert read_frame(OUTCOMES, opened.outcomes)["document_id"].to_list() == ["manuals/new.txt"]


def test_a_report_of_the_version_is_none_of_its_batches(archive: Archive) -> None:
    keep_report(archive.context, KEY)
    assert keep_batch_reports(archive.context, KEY) == 1
    assert kept_of_batches(archive) == [FIRST]


@pytest.mark.parametrize("state", ["completed_with_errors", "retry_required"])
def test_every_way_of_being_complete_counts(state: str, archive: Archive) -> None:
    sql(archive, f"UPDATE batches SET state = '{state}'")
    assert keep_batch_reports(archive.context, KEY) == 1


@pytest.mark.parametrize("state", ["running", "reconciling", "incident", "cancelled"])
def test_a_batch_that_is_not_complete_is_not_kept(state: str, archive: Archive) -> None:
    sql(archive, f"UPDATE batches SET state = '{state}'")
    assert keep_batch_reports(archive.context, KEY) == 0


def test_a_batch_that_does_not_add_up_says_so(archive: Archive) -> None:
    archive.write("new.txt", manual("Wall Heater", "WH-5"))
    archive.process()
    sql(archive, "DELETE FROM dispositions WHERE attempt_no = 1")
    with made_report(archive.context, KEY, FIRST) as made:
        assert not made.report.account.invariant_holds
        assert "2 dispositions for 3 attempts" in made.report.account.violations[0]
    with made_report(archive.context, KEY, SECOND) as other:
        assert other.report.account.invariant_holds


def test_the_statements_are_as_many_whatever_else_there_is(archive: Archive) -> None:
    asked: list[str] = []

    def note(*arguments: Any) -> None:
        asked.append(str(arguments[2]))

    engine = archive.context.ledger.engine
    counts = []
    for number in range(3):
        event.listen(engine, "before_cursor_execute", note)
        with made_report(archive.context, KEY, FIRST) as made:
            assert len(made.report.details.batches) == 1
        event.remove(engine, "before_cursor_execute", note)
        counts.append(len(asked))
        asked.clear()
        archive.write(f"new-{number}.txt", manual("Wall Heater", f"WH-{number}"))
        archive.process()
    assert counts[0] == counts[1] == counts[2]


def test_the_page_of_a_batch_has_what_is_the_batchs(read_archive: Archive) -> None:
    with made_report(read_archive.context, KEY, FIRST) as made:
        text = "".join(page.page_of(made.report, read_shards(OUTCOMES, made.outcomes), made.digest))
    assert f"batch {FIRST}" in text
    assert "Each of its 3 attempts has one disposition." in text
    assert "<dt>Records</dt><dd>3</dd>" in text
    for of_a_version in ("Quality sample", "Not closed", "<dt>Excluded</dt>", "How old", COPY):
        assert of_a_version not in text


def test_the_page_of_a_batch_that_is_out_says_so(archive: Archive) -> None:
    sql(archive, "UPDATE batches SET state = 'running'")
    sql(archive, "DELETE FROM dispositions")
    with made_report(archive.context, KEY, FIRST) as made:
        text = "".join(page.page_of(made.report, read_shards(OUTCOMES, made.outcomes), made.digest))
    assert "The batch is running; 3 of its 3 attempts have no disposition yet." in text
    assert "adds up" not in text
