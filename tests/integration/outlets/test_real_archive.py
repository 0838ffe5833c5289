"""The receiver follows what the real stages make of the archive, change by change."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from pipeline_assets.accept.judge_batches import judge_batches
from pipeline_assets.account.export import export_entries
from pipeline_assets.collect.collect_batches import collect_batches
from pipeline_assets.outlets.deliver import send_changes
from pipeline_assets.outlets.http import WebhookOutlet
from pipeline_assets.prepare.freeze import freeze_manifest
from pipeline_assets.publish.promote import promote
from pipeline_assets.publish.publish_accepted import publish_accepted
from pipeline_assets.publish.rollback import rollback_version
from pipeline_assets.submit.submit_batches import submit_batches
from pipeline_assets.versions import open_version
from resources.context import open_context
from resources.settings import Settings
from tests.support.clock import FrozenClock
from tests.support.outlet_receiver import OutletReceiver, every_third_is_dropped
from tests.support.small_archive import KEY, PUMP, Archive, fill_folder, manual

OTHER = "manuals-baseline-1"


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    """Return the small archive before any stage."""
    clock, folder = FrozenClock(), tmp_path / "documents"
    settings = Settings(state=tmp_path / "state", source=folder)
    with open_context(settings, clock=clock) as context:
        archive = Archive(folder, settings, context, clock)
        fill_folder(archive)
        yield archive


@pytest.mark.slow
def test_every_change_arrives_once(archive: Archive, receiver: OutletReceiver) -> None:
    receiver.answer = every_third_is_dropped
    outlet = WebhookOutlet(SecretStr(receiver.url))
    changes: list[list[tuple[str, str]]] = []

    def tell() -> None:
        known = len(receiver.holder.effects)
        for _ in range(4):
            send_changes(archive.context, outlet=outlet, at_once=True)
        assert receiver.holder.held == {
            row["document_id"]: (row["archive_version"], row["title"]["value"])
            for row in export_entries(archive.context)
        }
        fresh = list(receiver.holder.effects.values())[known:]
        changes.append(sorted((effect["effect"], effect["change"]) for effect in fresh))
        archive.clock.advance(60)

    archive.process()
    tell()
    version = open_version(archive.context, OTHER)
    for step in (freeze_manifest, submit_batches, collect_batches, judge_batches):
        step(archive.context, version)
    publish_accepted(archive.context, version)
    tell()
    rollback_version(archive.context, version.version_no, "a test")
    tell()
    promote(archive.context, version, "a test")
    tell()
    archive.write(PUMP, manual("Water Pump", "WP-200"))
    archive.process()
    tell()
    first = open_version(archive.context, KEY)
    rollback_version(archive.context, first.version_no, "a test")
    rollback_version(archive.context, version.version_no, "a test")
    tell()
    tell()
    assert changes[:4] == [
        [("put", "publish")] * 2,
        [("put", "publish")] * 2,
        [("put", "rollback")] * 2,
        [("put", "promote")] * 2,
    ]
    assert changes[-1] == []
    assert ("remove", "removal") in changes[5]
