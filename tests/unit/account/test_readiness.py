"""Is the collection ready: the newest closed report and what happened since."""

from __future__ import annotations

from sqlalchemy import insert

from pipeline_assets.account.readiness import Readiness, readiness
from pipeline_assets.account.status import status
from pipeline_assets.known_version import known_version
from pipeline_assets.publish.rollback import rollback_version
from pipeline_assets.recovery.holds import hold
from resources.ledger.archive_changes import record_change
from resources.ledger.moves import close_report
from resources.ledger.schema import report_closings, reports
from tests.support.small_archive import KEY, Archive, manual

DIGEST = "d" * 64


def close(archive: Archive, number: int, batch_no: int | None = None) -> None:
    """Keep a report and vouch for it a minute later."""
    ledger, version = archive.context.ledger, archive.version()
    made_at = ledger.now()
    archive.clock.advance(60)
    with ledger.write() as connection:
        connection.execute(
            insert(reports).values(
                report_no=number,
                version_no=version.version_no,
                digest=DIGEST,
                artifact=DIGEST,
                invariant_holds=1,
                made_at=made_at,
                batch_no=batch_no,
            )
        )
        connection.execute(
            insert(report_closings).values(
                report_no=number,
                digest=DIGEST,
                closed_by="ada",
                reason="all was looked at",
                closed_at=ledger.now(),
            )
        )
        cause = archive.context.cause("closed", f"close_report {DIGEST}")
        close_report(connection, ledger.dialect, number, cause)


def ready(archive: Archive) -> Readiness | None:
    ledger = archive.context.ledger
    version = known_version(archive.context, KEY)
    with ledger.read() as connection:
        return readiness(connection, ledger, version)


def test_without_a_closed_report_nothing_is_ready(read_archive: Archive) -> None:
    assert ready(read_archive) is None
    assert status(read_archive.context, KEY).ready is None


def test_a_report_of_a_batch_says_nothing_of_the_version(archive: Archive) -> None:
    archive.clock.advance(1)
    close(archive, 1, batch_no=1)
    assert ready(archive) is None


def test_the_newest_closed_report_holds_until_something_moves(archive: Archive) -> None:
    archive.clock.advance(1)
    close(archive, 1)
    close(archive, 2)
    found = ready(archive)
    assert found is not None
    assert (found.report_no, found.closed_by, found.ready) == (2, "ada", True)
    assert (found.moves_since, found.records_since, found.scanned_since) == (0, 0, False)

    archive.clock.advance(1)
    archive.scan()
    assert ready(archive) == found, "a scan that finds nothing new changes nothing"

    archive.write("new.txt", manual("Band Saw", "BS-9"))
    archive.scan()
    later = status(archive.context, KEY).ready
    assert later is not None
    assert (later.moves_since, later.scanned_since, later.ready) == (0, True, False)

    archive.process()
    moved = ready(archive)
    assert moved is not None
    assert moved.records_since > 0
    assert not moved.ready


def test_a_move_of_the_version_itself_counts(archive: Archive) -> None:
    archive.clock.advance(1)
    close(archive, 1)
    # No time passes: the move's number alone shows that it came after.
    assert hold(archive.context, archive.version().version_no, "operator", "a look at prices")
    found = ready(archive)
    assert found is not None
    assert (found.moves_since, found.records_since, found.ready) == (1, 0, False)


def test_a_rollback_moves_no_record_and_counts(archive: Archive) -> None:
    archive.clock.advance(1)
    close(archive, 1)
    archive.clock.advance(1)
    rollback_version(archive.context, archive.version().version_no, "titles are cut")
    found = ready(archive)
    assert found is not None
    assert (found.moves_since, found.shown_since, found.ready) == (0, True, False)


def test_what_the_archive_shows_of_another_version_does_not_count(archive: Archive) -> None:
    archive.clock.advance(1)
    close(archive, 1)
    archive.clock.advance(1)
    ledger = archive.context.ledger
    with ledger.write() as connection:
        record_change(connection, "rollback", 4711, "elsewhere", "ada", ledger.now(), 1, 0)
    found = ready(archive)
    assert found is not None
    assert (found.shown_since, found.ready) == (False, True)
