"""The report in full: the outcome of every record, what is kept of it, and what is different."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from pathlib import Path

import polars as pl
import pytest
from sqlalchemy import insert

from pipeline_assets.account.reconciliation.errors import (
    ReportOfOther,
    ReportWithoutOutcomes,
    UnknownBatch,
    UnknownReport,
)
from pipeline_assets.account.reconciliation.facts import decode_report
from pipeline_assets.account.reconciliation.kept import keep_report, made_report, open_kept
from pipeline_assets.account.reconciliation.outcomes import OUTCOMES, leaves_of
from pipeline_assets.account.reconciliation.tally import Step
from pipeline_assets.retention.policy import RetentionPolicy
from pipeline_assets.retention.prune import prune
from resources.contracts import read_frame, read_shards
from resources.ledger.kept_reports import list_reports
from resources.ledger.schema import deliveries, reviews
from resources.merkle import root_of
from tests.support.small_archive import COPY, FAN, KEY, PUMP, Archive, manual


def rows_of(archive: Archive, batch: str | None = None) -> list[dict[str, object]]:
    with made_report(archive.context, KEY, batch) as made:
        return read_frame(OUTCOMES, made.outcomes).to_dicts()


def test_every_document_has_a_row(read_archive: Archive) -> None:
    rows = rows_of(read_archive)
    assert [(row["document_id"], row["state"], row["reason"]) for row in rows] == [
        (row["document_id"], row["state"], row["reason"])
        for row in sorted(rows, key=lambda row: str(row["subject"]))
    ]
    states = {str(row["document_id"]): (row["state"], row["visible"]) for row in rows}
    assert states[f"manuals/{PUMP}"] == ("published", True)
    assert states[f"manuals/{COPY}"] == ("excluded", False)
    assert Counter(str(state) for state, _ in states.values()) == {
        "awaiting_review": 1,
        "excluded": 3,
        "published": 2,
    }
    (pump,) = [row for row in rows if row["document_id"] == f"manuals/{PUMP}"]
    assert pump["subject"] == pump["record_id"]
    assert (pump["attempts"], pump["disposition"], pump["judged"]) == (1, "succeeded", "accepted")
    assert (pump["delivery"], pump["archive_version"], pump["present"]) == ("published", 1, True)
    assert pump["accepted_digest"] and pump["request_digest"] and pump["slice"] != "unparsed"
    (copy,) = [row for row in rows if row["document_id"] == f"manuals/{COPY}"]
    assert (copy["subject"], copy["record_id"]) == (copy["document_id"], None)
    assert copy["reason"] == "duplicate_content"


def test_what_was_lost_on_the_way_adds_up(read_archive: Archive) -> None:
    with made_report(read_archive.context, KEY) as made:
        details = made.report.details
    assert details.steps == (
        Step("expected", 3, 0, {}),
        Step("answered", 3, 0, {}),
        Step("accepted", 2, 1, {"awaiting_review": 1}),
        Step("published", 2, 0, {}),
        Step("shown", 2, 0, {}),
    )
    assert {(kind.what, kind.why): kind.subjects for kind in details.kinds} == {
        ("awaiting_review", None): 1,
        ("excluded", "duplicate_content"): 1,
        ("excluded", "empty"): 1,
        ("excluded", "encrypted"): 1,
        ("published", None): 2,
    }
    (batch,) = details.batches
    assert batch.expected == sum(batch.dispositions.values()) == 3
    assert (batch.unknown, len(batch.result_artifacts)) == (0, 1)


def test_what_was_delivered_and_is_shown_no_more_is_published_only(archive: Archive) -> None:
    archive.write(FAN, manual("Ventilator", "VF-30"))
    archive.process()
    with made_report(archive.context, KEY) as made:
        steps = {step.name: step for step in made.report.details.steps}
        rows = read_frame(OUTCOMES, made.outcomes).to_dicts()
    assert (steps["published"].records, steps["shown"].records) == (3, 2)
    assert sum(steps["shown"].where.values()) == 1
    earlier, later = sorted(
        (row for row in rows if row["document_id"] == f"manuals/{FAN}"),
        key=lambda row: bool(row["present"]),
    )
    assert (earlier["visible"], later["visible"]) == (False, True)
    assert earlier["delivery"] == later["delivery"] == "published"
    assert (earlier["archive_version"], later["archive_version"]) == (None, 2)
    assert earlier["accepted_digest"] != later["accepted_digest"]


def write(archive: Archive, *statements: str) -> None:
    with archive.context.ledger.write() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)


_OPEN = "(SELECT record_no FROM record_state WHERE state = 'awaiting_review')"


def test_the_newest_correction_is_what_may_be_published(archive: Archive) -> None:
    write(
        archive,
        "UPDATE reviews SET decision = 'correct', reviewer = 'grace', reason = 'it is so', "
        "decided_at = '2026-11-30T01:02:03.000004Z', corrected_digest = 'first' "
        f"WHERE record_no = {_OPEN}",
    )
    with archive.context.ledger.write() as connection:
        row = dict(
            connection.exec_driver_sql(f"SELECT * FROM reviews WHERE record_no = {_OPEN}")
            .mappings()
            .one()
        )
        row |= {
            "review_no": 900,
            "kind": "quality_sample",
            "decided_at": "2026-11-30T02:02:03.000004Z",
            "corrected_digest": "second",
        }
        connection.execute(insert(reviews).values(row))
    write(archive, f"UPDATE record_state SET state = 'accepted' WHERE record_no = {_OPEN}")
    (saw,) = [row for row in rows_of(archive) if row["state"] == "accepted"]
    assert (saw["accepted_digest"], saw["delivery"], saw["reason"]) == ("second", None, None)


def test_the_last_delivery_of_a_record_counts(archive: Archive) -> None:
    with archive.context.ledger.write() as connection:
        row = dict(
            connection.exec_driver_sql("SELECT * FROM deliveries ORDER BY record_no LIMIT 1")
            .mappings()
            .one()
        )
        later = row | {"promotion": row["promotion"] + 1, "accepted_digest": "other", "entry_no": 1}
        connection.execute(insert(deliveries).values(later))
        name = connection.exec_driver_sql(
            f"SELECT record_id FROM records WHERE record_no = {row['record_no']}"
        ).scalar()
    (found,) = [each for each in rows_of(archive) if each["record_id"] == name]
    assert found["accepted_digest"] == "other"


@pytest.mark.parametrize("state", ["superseded", "withdrawn"])
def test_what_was_overtaken_had_accepted_values(state: str, archive: Archive) -> None:
    write(
        archive,
        "DELETE FROM deliveries",
        f"UPDATE record_state SET state = '{state}' WHERE state = 'published'",
    )
    found = [row for row in rows_of(archive) if row["state"] == state]
    assert [(bool(row["accepted_digest"]), row["judged"]) for row in found] == [
        (True, "accepted"),
        (True, "accepted"),
    ]


def test_documents_that_are_gone_without_a_record_have_no_row(archive: Archive) -> None:
    (archive.folder / "empty.txt").unlink()
    archive.process()
    assert "manuals/empty.txt" not in {row["document_id"] for row in rows_of(archive)}


def test_a_versions_own_setting_comes_before_that_of_all(archive: Archive) -> None:
    at = "'2026-11-30T01:02:03.000004Z'"
    write(
        archive,
        "INSERT INTO operating_settings (version_no, name, value, reason, actor, set_at) VALUES "
        f"(1, 'budget_usd', '7', 'own', 'ada', {at}), "
        f"(NULL, 'budget_usd', '5', 'all', 'ada', {at})",
    )
    with made_report(archive.context, KEY) as made:
        (setting,) = made.report.details.configuration.settings
    assert (setting.value, setting.everywhere) == ("7", False)


def test_the_merkle_root_is_that_of_the_rows(read_archive: Archive) -> None:
    with made_report(read_archive.context, KEY) as made:
        table = made.report.details.outcomes
        frame = read_frame(OUTCOMES, made.outcomes)
        bytes_ = made.outcomes.read_bytes()
    leaves = list(leaves_of(frame))
    # Written out here, since an outsider has to be able to.
    by_hand = [
        json.dumps(["outcomes/1", *row], separators=(",", ":"), ensure_ascii=False).encode()
        for row in frame.iter_rows()
    ]
    assert leaves == by_hand
    assert table.merkle_root == root_of(leaves)
    assert (table.rows, table.records) == (6, 3)
    assert table.artifact == hashlib.sha256(bytes_).hexdigest()


def test_the_configuration_says_what_it_ran_with(archive: Archive) -> None:
    with archive.context.ledger.write() as connection:
        connection.exec_driver_sql(
            "INSERT INTO operating_settings (version_no, name, value, reason, actor, set_at) "
            "VALUES (NULL, 'budget_usd', '5', 'trial', 'ada', '2026-11-30T01:02:03.000004Z')"
        )
    with made_report(archive.context, KEY) as made:
        found = made.report.details.configuration
    assert found.spec["key"] == KEY
    assert found.spec_digest == made.report.account.digest
    (setting,) = found.settings
    assert (setting.name, setting.value, setting.everywhere) == ("budget_usd", "5", True)
    assert (setting.actor, setting.reason) == ("ada", "trial")
    assert found.capability is None
    assert {"polars", "dagster", "sqlalchemy", "pandera"} <= set(found.packages)
    assert [manifest.digest for manifest in found.manifests] == [
        manifest.digest for manifest in made.report.account.manifests
    ]


def test_the_heads_of_the_journal_are_kept(archive: Archive) -> None:
    with made_report(archive.context, KEY) as made:
        journal = made.report.account.journal
    assert {head.name for head in journal.heads} >= {"version:1", "batch:1"}
    assert sum(head.moves for head in journal.heads) == journal.moves
    with archive.context.ledger.read() as connection:
        for head in journal.heads:
            newest = connection.exec_driver_sql(
                f"SELECT digest FROM moves WHERE chain = '{head.name}' "
                "ORDER BY move_no DESC LIMIT 1"
            ).scalar()
            assert newest == head.head


def test_json_comes_back_as_it_was(read_archive: Archive) -> None:
    with made_report(read_archive.context, KEY) as made:
        report = made.report
    again = decode_report(json.dumps(report.as_json()).encode())
    assert again == report
    assert again.content_digest == report.content_digest
    assert list(report.as_json())[:2] == ["processing_version", "digest"]


def test_the_same_ledger_gives_the_same_digest_at_any_time(archive: Archive) -> None:
    with made_report(archive.context, KEY) as first:
        pass
    archive.clock.advance(86_400)
    with made_report(archive.context, KEY) as later:
        pass
    assert first.report.account.made_at != later.report.account.made_at
    assert first.digest == later.digest
    assert first.report.details.outcomes == later.report.details.outcomes


def test_a_kept_report_opens_from_its_artifacts_after_everything_moved_on(
    archive: Archive,
) -> None:
    kept = keep_report(archive.context, KEY)
    assert kept.is_new
    archive.write(PUMP, manual("Water Pump", "WP-200"))
    (archive.folder / FAN).unlink()
    archive.process()
    opened = open_kept(archive.context, kept.report_no)
    assert opened.report == kept.report
    assert opened.row.digest == kept.digest == opened.report.content_digest
    assert opened.row.merkle_root == kept.report.details.outcomes.merkle_root
    assert opened.row.leaves == 6
    assert opened.page is None
    assert read_frame(OUTCOMES, opened.outcomes).height == 6


def test_a_later_report_tells_what_is_different(archive: Archive) -> None:
    first = keep_report(archive.context, KEY)
    assert first.report.details.baseline is None
    archive.write(PUMP, manual("Water Pump", "WP-200"))
    (archive.folder / FAN).unlink()
    archive.process()
    second = keep_report(archive.context, KEY)
    assert second.is_new
    found = second.report.details.baseline
    assert found is not None
    assert (found.report_no, found.digest) == (first.report_no, first.digest)
    assert found.documents == (6, 5)
    moved = {(each.before, each.after): each.subjects for each in found.moved}
    # The pump's new bytes are a new record; its copy is one no longer, and has a record of its own.
    assert moved == {(None, "published"): 2, ("excluded", None): 1}
    assert found.more == 0
    assert {each.document_id for each in found.changed} == {f"manuals/{PUMP}", f"manuals/{COPY}"}
    assert found.settings == ()
    # What it is held against is not what it says.
    opened = open_kept(archive.context, second.report_no).report
    assert (opened.content_digest, opened.details.baseline) == (second.digest, found)
    # Held against its own copy it would have no news to tell.
    again = keep_report(archive.context, KEY)
    assert not again.is_new
    assert again.report.details.baseline == found


def test_a_report_is_held_against_the_one_that_is_named(archive: Archive) -> None:
    context = archive.context
    first = keep_report(context, KEY)
    archive.write("new.txt", manual("Wall Heater", "WH-5"))
    archive.process()
    keep_report(context, KEY)
    archive.write("newer.txt", manual("Wall Heater", "WH-6"))
    archive.process()
    with made_report(context, KEY, against=first.report_no) as made:
        found = made.report.details.baseline
    assert found is not None
    assert (found.report_no, found.documents) == (first.report_no, (6, 8))
    with (
        pytest.raises(UnknownReport, match="no kept report 77"),
        made_report(context, KEY, against=77),
    ):
        pass


def test_reports_of_a_batch_have_its_records_alone(archive: Archive) -> None:
    whole = keep_report(archive.context, KEY)
    batch = whole.report.details.batches[0].batch_id
    archive.write("new.txt", manual("Wall Heater", "WH-5"))
    archive.process()
    kept = keep_report(archive.context, KEY, batch)
    assert kept.report.details.scope == batch
    assert kept.report.details.outcomes.rows == 3
    assert kept.report.details.baseline is None
    assert [entry.batch_id for entry in kept.report.details.batches] == [batch]
    assert open_kept(archive.context, kept.report_no).row.batch_id == batch
    with (
        pytest.raises(ReportOfOther, match="batch"),
        made_report(archive.context, KEY, against=kept.report_no),
    ):
        pass
    with (
        pytest.raises(UnknownBatch, match="no batch 'nope'"),
        made_report(archive.context, KEY, "nope"),
    ):
        pass


def test_reports_of_an_earlier_release_are_listed_and_not_opened(archive: Archive) -> None:
    with archive.context.ledger.write() as connection:
        connection.exec_driver_sql(
            "INSERT INTO reports (report_no, version_no, digest, artifact, invariant_holds, "
            "made_at) VALUES (9, 1, 'd', 'a', 1, '2026-11-30T01:02:03.000004Z')"
        )
    with archive.context.ledger.read() as connection:
        (row,) = list_reports(connection)
    assert (row.report_no, row.outcomes, row.closed) == (9, None, False)
    with pytest.raises(ReportWithoutOutcomes, match="report 9"):
        open_kept(archive.context, 9)
    kept = keep_report(archive.context, KEY)
    assert kept.report.details.baseline is None


def test_pruning_leaves_the_files_of_kept_reports(archive: Archive) -> None:
    context = archive.context
    kept = keep_report(context, KEY)
    stray = context.artifacts.put("report", b"left by a run that was killed").digest
    # Pruning asks the files for their own age.
    for path in (context.artifacts.root / "report").glob("*/*"):
        os.utime(path, (1_000_000_000, 1_000_000_000))
    archive.clock.advance(400 * 86_400)
    prune(context, RetentionPolicy(what=("leftovers",)), reason="old", actor="ada")
    assert not context.artifacts.has("report", stray)
    row = open_kept(context, kept.report_no).row
    assert row.outcomes is not None
    assert context.artifacts.has("report", row.outcomes)
    assert context.artifacts.has("report", row.artifact)


def test_shards_are_sorted_over_their_borders(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = rows_of(archive)
    monkeypatch.setattr("pipeline_assets.account.reconciliation.outcomes.MOST_NUMBERS", 2)
    with made_report(archive.context, KEY) as made:
        shards = list(read_shards(OUTCOMES, made.outcomes))
        root = made.report.details.outcomes.merkle_root
    assert len(shards) == 3
    assert pl.concat(shards).to_dicts() == whole
    subjects = pl.concat(shards)["subject"].to_list()
    assert subjects == sorted(subjects, key=str.encode)
    with made_report(archive.context, KEY) as again:
        assert again.report.details.outcomes.merkle_root == root


def test_nothing_is_left_where_nothing_is_kept(archive: Archive, tmp_path: Path) -> None:
    with made_report(archive.context, KEY) as made:
        assert made.outcomes.is_file()
    assert not made.outcomes.exists()
    assert list((archive.context.artifacts.root / "incoming").iterdir()) == []
