"""The rows of `outcomes` and `export`."""

from __future__ import annotations

from pipeline_assets.account.export import export_entries
from pipeline_assets.account.outcomes import PENDING_REASON, outcomes
from pipeline_assets.account.report import build_report
from tests.support.small_archive import (
    COPY,
    EMPTY,
    FAN,
    KEY,
    LOCKED,
    PUMP,
    SAW,
    Archive,
    manual,
)

COLUMNS = [
    "document_id",
    "source_checksum",
    "media_type",
    "pages",
    "record_id",
    "state",
    "reason",
    "findings",
]


def test_every_file_has_one_row_in_order(read_archive: Archive) -> None:
    rows = list(outcomes(read_archive.context, KEY))
    assert [row["document_id"] for row in rows] == sorted(
        f"manuals/{name}" for name in (PUMP, FAN, SAW, LOCKED, EMPTY, COPY)
    )
    assert all(list(row) == COLUMNS for row in rows)
    assert {row["document_id"]: (row["state"], row["reason"]) for row in rows} == {
        f"manuals/{PUMP}": ("published", None),
        f"manuals/{FAN}": ("published", None),
        f"manuals/{SAW}": ("awaiting_review", "a finding needs a person"),
        f"manuals/{LOCKED}": ("excluded", "encrypted"),
        f"manuals/{EMPTY}": ("excluded", "empty"),
        f"manuals/{COPY}": ("excluded", "duplicate_content"),
    }


def test_a_row_tells_bytes_pages_and_findings(read_archive: Archive) -> None:
    rows = {row["document_id"]: row for row in outcomes(read_archive.context, KEY)}
    saw, copy = rows[f"manuals/{SAW}"], rows[f"manuals/{COPY}"]
    assert (saw["media_type"], saw["pages"]) == ("text/plain", 1)
    assert saw["record_id"] == (
        f"equipment_manuals:manuals/{SAW}@{saw['source_checksum'][:12]}:{KEY}"
    )
    assert ("uncertain_field", "product_identifiers") in {
        (finding["rule"], finding["field"]) for finding in saw["findings"]
    }
    assert all(
        list(finding) == ["rule", "severity", "field", "note"] for finding in saw["findings"]
    )
    assert copy["record_id"] is None
    assert copy["source_checksum"] == rows[f"manuals/{PUMP}"]["source_checksum"]
    assert (copy["media_type"], copy["pages"], copy["findings"]) == ("text/plain", 1, [])


def test_rows_and_report_agree(read_archive: Archive) -> None:
    report = build_report(read_archive.context, KEY)
    states: dict[str, int] = {}
    for row in outcomes(read_archive.context, KEY):
        states[row["state"]] = states.get(row["state"], 0) + 1
    assert states.pop("excluded") == sum(report.excluded.values())
    assert states == report.states


def test_a_document_of_a_later_scan_is_pending(archive: Archive) -> None:
    archive.write("new.txt", manual("Wall Heater", "WH-5"))
    archive.write(LOCKED, manual("Door Lock", "DL-3"))
    archive.scan()
    rows = {row["document_id"]: row for row in outcomes(archive.context, KEY)}
    # The exclusion was of other bytes, so it says nothing about the present ones.
    for name in ("new.txt", LOCKED):
        row = rows[f"manuals/{name}"]
        assert (row["state"], row["reason"], row["record_id"]) == ("pending", PENDING_REASON, None)


def test_export_shows_what_is_visible_with_evidence_and_provenance(read_archive: Archive) -> None:
    rows = list(export_entries(read_archive.context))
    assert [row["document_id"] for row in rows] == [f"manuals/{FAN}", f"manuals/{PUMP}"]
    pump = rows[1]
    assert list(pump) == [
        "document_id",
        "archive_version",
        "record_id",
        "workload",
        "title",
        "product_identifiers",
        "language",
        "description",
        "thumbnail",
        "provenance",
        "published_at",
    ]
    assert pump["archive_version"] == 1
    assert pump["title"]["value"] == "Water Pump WP-100 User Manual"
    assert [field["value"] for field in pump["product_identifiers"]] == ["WP-100"]
    assert pump["language"]["value"] == "en"
    assert all(set(quote) == {"page", "quote"} for quote in pump["title"]["evidence"])
    provenance = pump["provenance"]
    report = build_report(read_archive.context, KEY)
    assert provenance["processing_version"] == KEY
    assert provenance["digest"] == report.digest
    assert provenance["manifest_digest"] == report.manifests[0].digest
    assert provenance["provider"] == "baseline"
    assert pump["record_id"].split("@")[1][:12] == provenance["source_checksum"][:12]
    assert all(provenance.values())


def test_export_of_a_version_holds_its_entries_alone(read_archive: Archive) -> None:
    every = list(export_entries(read_archive.context))
    assert list(export_entries(read_archive.context, KEY)) == every


def test_a_changed_document_shows_its_new_version(archive: Archive) -> None:
    archive.write(PUMP, manual("Water Pump", "WP-200"))
    archive.process()
    rows = {row["document_id"]: row for row in export_entries(archive.context)}
    pump = rows[f"manuals/{PUMP}"]
    assert pump["archive_version"] == 2
    assert pump["title"]["value"] == "Water Pump WP-200 User Manual"
