"""The account of a version: what is counted, and every way in which it may not add up."""

from __future__ import annotations

import msgspec
import pytest
from sqlalchemy import Connection

from partitions.processing_version import MalformedVersionKey
from pipeline_assets.account.export import export_entries
from pipeline_assets.account.integrity import diagnose
from pipeline_assets.account.reconciliation.kept import keep_report
from pipeline_assets.account.report import build_report
from pipeline_assets.account.standing import count_standings
from pipeline_assets.account.violations import find_violations
from pipeline_assets.known_version import VersionNeverUsed, known_version, parser_key_of
from pipeline_assets.parser_settings import parser_settings
from tests.support.small_archive import COPY, FAN, KEY, PUMP, Archive, manual


def test_every_document_is_counted_once(read_archive: Archive) -> None:
    report = build_report(read_archive.context, KEY)
    assert report.violations == ()
    assert report.invariant_holds
    assert (report.documents, report.expected, report.pending) == (6, 3, 0)
    assert report.states == {"awaiting_review": 1, "published": 2}
    assert report.excluded == {"duplicate_content": 1, "empty": 1, "encrypted": 1}
    assert report.former == {}
    (manifest,) = report.manifests
    assert manifest.expected == sum(manifest.dispositions.values()) == 3
    assert manifest.dispositions["succeeded"] == 3
    assert [batch.state for batch in manifest.batches] == ["completed"]


def test_json_has_the_promised_shape(read_archive: Archive) -> None:
    shown = msgspec.json.decode(
        msgspec.json.encode(build_report(read_archive.context, KEY).as_json())
    )
    assert list(shown)[:2] == ["processing_version", "digest"]
    assert {"manifests", "documents", "expected", "states", "excluded", "invariant_holds"} <= set(
        shown
    )
    assert {"manifest_id", "digest", "expected", "dispositions"} <= set(shown["manifests"][0])


def test_a_changed_and_a_removed_document_leave_former_records(archive: Archive) -> None:
    archive.write(PUMP, manual("Water Pump", "WP-200"))
    (archive.folder / FAN).unlink()
    archive.process()
    report = build_report(archive.context, KEY)
    assert report.violations == ()
    # The copy has the bytes of the pump's first record, whose document holds others now.
    assert report.documents == 5
    assert report.former == {"published": 2}
    assert sum(report.states.values()) + sum(report.excluded.values()) == 5
    assert len(report.manifests) == 2


def test_a_document_that_went_back_to_earlier_bytes_adds_up(archive: Archive) -> None:
    before = list(export_entries(archive.context))
    (archive.folder / COPY).unlink()
    archive.write(PUMP, manual("Water Pump", "WP-200"))
    archive.process()
    archive.write(PUMP, manual("Water Pump", "WP-100"))
    archive.process()
    report = build_report(archive.context, KEY)
    assert report.violations == ()
    assert report.former == {"published": 1}
    assert diagnose(archive.context) == []
    after = {row["document_id"]: row for row in export_entries(archive.context)}
    shown = after[f"manuals/{PUMP}"]
    assert shown["archive_version"] == 3
    assert shown["title"] == before[1]["title"]
    assert shown["provenance"] == before[1]["provenance"]


def test_documents_scanned_after_the_last_freeze_are_pending(archive: Archive) -> None:
    archive.write("new.txt", manual("Wall Heater", "WH-5"))
    archive.scan()
    report = build_report(archive.context, KEY)
    assert report.pending == 1
    assert not report.invariant_holds
    assert "run it again" in report.violations[0]
    archive.process()
    assert build_report(archive.context, KEY).invariant_holds


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        pytest.param(
            "DELETE FROM dispositions WHERE attempt_no = 2",
            "has 2 dispositions for 3 attempts",
            id="a-disposition-is-missing",
        ),
        pytest.param(
            "INSERT INTO dispositions (attempt_no, disposition, diagnostics) "
            "VALUES (99, 'succeeded', '')",
            "1 dispositions belong to no attempt",
            id="a-disposition-too-many",
        ),
        pytest.param(
            "DELETE FROM attempts WHERE attempt_no = 3",
            "should hold 3 attempts at as many records and holds 2 at 2",
            id="an-attempt-is-missing",
        ),
        pytest.param(
            "UPDATE attempts SET record_no = 1 WHERE attempt_no = 2",
            "holds 3 at 2",
            id="one-record-twice",
        ),
        pytest.param(
            "UPDATE attempts SET record_no = 77 WHERE attempt_no = 2",
            "1 attempts are at records that do not exist",
            id="an-orphan",
        ),
        pytest.param(
            "UPDATE manifests SET expected = 4",
            "has 4 records and its batches have 3",
            id="manifest",
        ),
        pytest.param("UPDATE batches SET state = 'incident'", "is an incident", id="incident"),
        pytest.param(
            "UPDATE batches SET reconciled_records = 1", "dispositions for 3 attempts", id="counted"
        ),
        pytest.param("DELETE FROM record_state", "records have no state", id="no-state"),
        pytest.param(
            "INSERT INTO exclusions SELECT 1, document_no, source_version_no, 'empty', '' "
            "FROM records WHERE record_no = 1",
            "1 documents have both a record and an exclusion",
            id="both",
        ),
        pytest.param(
            "DELETE FROM exclusions", "2 documents have neither a record nor", id="neither"
        ),
        pytest.param(
            "DELETE FROM deliveries", "2 published records were not delivered", id="delivery"
        ),
        pytest.param(
            "UPDATE record_state SET state = 'accepted' WHERE state = 'published'",
            "2 archive entries are of records that were never published",
            id="leak",
        ),
        pytest.param(
            "DELETE FROM archive_heads",
            "2 documents whose archive entry and head disagree",
            id="head",
        ),
        pytest.param(
            "DELETE FROM archive_heads;DELETE FROM archive_search;DELETE FROM archive_entries",
            "2 published records have no archive entry",
            id="entry",
        ),
        pytest.param(
            "UPDATE archive_entries SET thumbnail = ''", "without a thumbnail", id="thumbnail"
        ),
        pytest.param(
            "DELETE FROM archive_search",
            "2 published documents that search cannot find",
            id="search",
        ),
        pytest.param(
            "UPDATE dispositions SET disposition = 'expired' WHERE attempt_no = 1",
            "1 judgements are of attempts that did not succeed",
            id="judged-without-success",
        ),
    ],
)
def test_damage_is_told(damage: str, said: str, read_archive: Archive, undone: Connection) -> None:
    for statement in damage.split(";"):
        undone.exec_driver_sql(statement)
    ledger, version = read_archive.context.ledger, known_version(read_archive.context, KEY)
    standings = count_standings(undone, ledger, version)
    violations = find_violations(undone, ledger, version, standings)
    assert any(said in violation for violation in violations), violations


def test_a_report_is_kept_once_until_something_changes(archive: Archive) -> None:
    context = archive.context
    first = build_report(context, KEY)
    assert keep_report(context, KEY).is_new
    archive.clock.advance(60)
    later = build_report(context, KEY)
    assert later.made_at != first.made_at
    assert later.content_digest == first.content_digest
    assert not keep_report(context, KEY).is_new
    archive.write("new.txt", manual("Wall Heater", "WH-5"))
    archive.process()
    assert keep_report(context, KEY).is_new


def test_the_journal_s_heads_are_digested(archive: Archive) -> None:
    before = build_report(archive.context, KEY).journal
    with archive.context.ledger.write() as connection:
        connection.exec_driver_sql(
            "UPDATE moves SET digest = 'x' WHERE move_no = (SELECT MAX(move_no) FROM moves)"
        )
    after = build_report(archive.context, KEY).journal
    assert before.moves == after.moves
    assert before.digest != after.digest


@pytest.mark.parametrize(
    ("key", "error", "said"),
    [
        ("Not A Key", MalformedVersionKey, "is not a processing version key"),
        ("never-seen", VersionNeverUsed, f"used so far: {KEY}"),
    ],
)
def test_unknown_versions_are_refused(
    key: str, error: type[Exception], said: str, read_archive: Archive
) -> None:
    with pytest.raises(error, match=said):
        build_report(read_archive.context, key)


def test_the_parser_key_is_that_of_the_parser(read_archive: Archive) -> None:
    spec = read_archive.version().spec
    assert known_version(read_archive.context, KEY).parser_key == parser_settings(spec).key
    assert parser_key_of('{"parser":{"version":"9","max_pages":3,"ocr_pages":0}}') == (
        "9;max_pages=3;ocr_pages=0"
    )
