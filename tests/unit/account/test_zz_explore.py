from __future__ import annotations
from pipeline_assets.account.status import all_versions, status
from pipeline_assets.publish.rollback import rollback_version
from tests.support.small_archive import KEY, Archive, manual, SAW, FAN, PUMP
from tests.unit.account.test_readiness import close, ready

def test_rollback(archive: Archive) -> None:
    archive.clock.advance(1)
    close(archive, 1)
    archive.clock.advance(10)
    rollback_version(archive.context, archive.version().version_no, "trial")
    print("ROLL", ready(archive))

def test_removed(archive: Archive) -> None:
    import pytest
    now = status(archive.context, KEY)
    print("BEFORE", now.states, now.review_backlog, now.waits)
    for name in (SAW, FAN, PUMP):
        archive.clock.advance(10)
        archive.write(name, "something else")
        archive.scan()
        now = status(archive.context, KEY)
        print("CHANGED", name, now.states, now.review_backlog, now.dead_letters, now.open_records, now.oldest_open_at, now.waits, now.done, all_versions(archive.context)[0].awaiting_review)
    for name in (SAW, FAN, PUMP):
        (archive.folder/name).unlink()
    archive.scan()
    now = status(archive.context, KEY)
    print("GONE", now.states, now.review_backlog, now.waits, now.done)

def test_prepared_removed(fresh_archive: Archive) -> None:
    fresh_archive.prepare()
    for name in (SAW, FAN, PUMP):
        (fresh_archive.folder/name).unlink()
    fresh_archive.clock.advance(10)
    fresh_archive.scan()
    now = status(fresh_archive.context, KEY)
    print("PREP", now.states, now.batches, now.open_records, now.oldest_open_at, now.waits, now.done, now.publication)
