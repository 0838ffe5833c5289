"""A version whose results are accepted and shown to nobody yet can be compared."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from sqlalchemy import text

from pipeline_assets.accept.judge_batches import judge_batches
from pipeline_assets.collect.collect_batches import collect_batches
from pipeline_assets.compare.compare import Comparison, compare_versions
from pipeline_assets.prepare.freeze import freeze_manifest
from pipeline_assets.submit.submit_batches import submit_batches
from pipeline_assets.versions import open_version
from resources.context import open_context
from resources.ledger.schema import reviews
from resources.settings import Settings
from tests.support.archive_shelf import digest
from tests.support.clock import FrozenClock
from tests.support.small_archive import FAN, KEY, PUMP, Archive, fill_folder

OTHER = "manuals-baseline-1"


@pytest.fixture
def archive(ledger_url: str, tmp_path: Path) -> Iterator[Archive]:
    """Return the small archive: one version is published, another one accepted alone."""
    clock, folder = FrozenClock(), tmp_path / "documents"
    settings = Settings(state=tmp_path / "state", ledger_url=ledger_url, source=folder)
    with open_context(settings, clock=clock) as context:
        archive = Archive(folder, settings, context, clock)
        fill_folder(archive)
        archive.process()
        version = open_version(context, OTHER)
        for step in (freeze_manifest, submit_batches, collect_batches, judge_batches):
            step(context, version)
        yield archive


def titles(found: Comparison) -> dict[str, tuple[list[str], list[str]]]:
    return {
        entry.document_id: (entry.first["title"], entry.second["title"]) for entry in found.listed
    }


def test_accepted_values_stand_for_a_version(archive: Archive) -> None:
    found = compare_versions(archive.context, KEY, OTHER)
    assert (found.both, found.changed, found.unpublished) == (2, 0, (0, 2))
    assert (found.only_first, found.only_second) == (0, 0)
    assert list(found.slices) == ["en/short/text"]
    turned = compare_versions(archive.context, OTHER, KEY, where=["title=same"])
    assert turned.unpublished == (2, 0)
    assert titles(turned)[f"manuals/{PUMP}"][0] == ["Water Pump WP-100 User Manual"]


def test_a_correction_that_is_not_published_counts(archive: Archive) -> None:
    ledger = archive.context.ledger
    with ledger.write() as connection:
        row = connection.execute(
            text(
                "SELECT a.attempt_no, r.record_no, r.version_no, e.content FROM records r "
                "JOIN attempts a ON a.record_no = r.record_no "
                "JOIN processing_versions v ON v.version_no = r.version_no AND v.key = :key "
                "JOIN documents d ON d.document_no = r.document_no "
                "JOIN archive_entries e ON e.document_no = d.document_no "
                "WHERE d.document_id = :document"
            ),
            {"key": OTHER, "document": f"manuals/{FAN}"},
        ).one()
        content = msgspec.json.decode(row.content)
        content["title"]["value"] = "What the reviewer wrote"
        corrected = msgspec.json.encode(content).decode()
        connection.execute(
            reviews.insert().values(
                review_no=999,
                record_no=row.record_no,
                attempt_no=row.attempt_no,
                version_no=row.version_no,
                kind="findings",
                sample_no=0,
                slice="",
                priority=0,
                opened_at=ledger.now(),
                revision=1,
                decision="correct",
                values_digest=digest(row.content),
                corrected_digest=digest(corrected),
                corrected_content=corrected,
            )
        )
    found = compare_versions(archive.context, KEY, OTHER)
    assert (found.both, found.changed) == (2, 1)
    assert titles(found)[f"manuals/{FAN}"][1] == ["What the reviewer wrote"]


def test_what_was_rejected_stands_for_nothing_while_it_is_tried_again(archive: Archive) -> None:
    with archive.context.ledger.write() as connection:
        connection.execute(
            text(
                "UPDATE record_state SET state = 'prepared' WHERE record_no = "
                "(SELECT r.record_no FROM records r "
                "JOIN processing_versions v ON v.version_no = r.version_no AND v.key = :key "
                "JOIN documents d ON d.document_no = r.document_no "
                "WHERE d.document_id = :document)"
            ),
            {"key": KEY, "document": f"manuals/{PUMP}"},
        )
    found = compare_versions(archive.context, KEY, OTHER)
    assert (found.both, found.only_second_ids) == (1, [f"manuals/{PUMP}"])
