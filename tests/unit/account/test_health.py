"""What `doctor` says of work that does not go on, and what it mends in the archive."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, delete, insert, select, update

from pipeline_assets.account import health, integrity
from pipeline_assets.account.report import build_report
from pipeline_assets.account.search import search
from pipeline_assets.recovery.holds import hold
from resources.clock import to_text
from resources.ledger.alerts import raise_alert
from resources.ledger.leases import acquire
from resources.ledger.schema import (
    alert_deliveries,
    alerts,
    archive_entries,
    archive_heads,
    attempts,
    batches,
    dispositions,
    judgements,
    metadata,
    move_members,
    parses,
    record_state,
    records,
    refused_commits,
)
from resources.ledger.versions import list_versions
from tests.support.small_archive import KEY, Archive

LONG_AGO, SOON = timedelta(hours=3), timedelta(minutes=30)


def execute(archive: Archive, *statements: Any) -> None:
    with archive.context.ledger.write() as connection:
        for statement in statements:
            connection.execute(statement)


def look(archive: Archive) -> list[integrity.Problem]:
    return health.look(archive.context)


def kinds(archive: Archive) -> list[str]:
    return [problem.kind for problem in look(archive)]


def ago(archive: Archive, age: timedelta) -> str:
    return to_text(archive.clock() - age)


def only(archive: Archive) -> integrity.Problem:
    (problem,) = look(archive)
    return problem


def test_a_sound_archive_has_no_problem(read_archive: Archive) -> None:
    assert look(read_archive) == []


@dataclass(frozen=True)
class Changed:
    """The shared archive inside a transaction that is rolled back after the test."""

    archive: Archive
    connection: Connection

    def execute(self, *statements: Any) -> None:
        for statement in statements:
            self.connection.execute(statement)

    def look(self) -> list[integrity.Problem]:
        context = self.archive.context
        return health.look_within(self.connection, context, list_versions(context.ledger))

    def kinds(self) -> list[str]:
        return [problem.kind for problem in self.look()]

    def only(self) -> integrity.Problem:
        (problem,) = self.look()
        return problem

    def ago(self, age: timedelta) -> str:
        return ago(self.archive, age)


@pytest.fixture
def changed(read_archive: Archive, undone: Connection) -> Changed:
    """Return the archive that a test may change without a trace."""
    return Changed(read_archive, undone)


def test_looking_writes_nothing(archive: Archive) -> None:
    execute(archive, update(batches).values(state="quarantined"))

    def everything() -> list[list[Any]]:
        with archive.context.ledger.read() as connection:
            return [list(connection.execute(select(table))) for table in metadata.sorted_tables]

    before = everything()
    look(archive)
    assert everything() == before


@pytest.mark.parametrize(
    ("state", "kind", "said", "remedy"),
    [
        pytest.param(
            "quarantined",
            "quarantined",
            "it is not known whether the provider has",
            "tallybook batch attach",
            id="quarantined",
        ),
        pytest.param(
            "incident",
            "incident",
            "does not hold: the reason is not in the journal",
            "tallybook batch reconcile",
            id="incident",
        ),
    ],
)
def test_a_batch_that_needs_a_person_is_broken(
    state: str, kind: str, said: str, remedy: str, changed: Changed
) -> None:
    changed.execute(update(batches).where(batches.c.batch_no == 1).values(state=state))
    problem = changed.only()
    assert (problem.kind, problem.broken, problem.fixable) == (kind, True, False)
    assert said in problem.what
    assert f"{KEY}-m1-b1" in problem.what
    assert remedy in problem.remedy


def test_results_that_cannot_be_fetched_are_broken_until_they_are(changed: Changed) -> None:
    changed.execute(update(batches).where(batches.c.batch_no == 1).values(state="running"))
    name = changed.connection.execute(select(batches.c.batch_id)).scalars().first()
    raise_alert(changed.connection, "not_collectable", str(name), "cut short", changed.ago(SOON))
    assert changed.kinds() == []
    changed.execute(
        update(batches).where(batches.c.batch_no == 1).values(state="results_available")
    )
    problem = changed.only()
    assert (problem.kind, problem.broken) == ("not_collectable", True)
    assert "cannot be fetched: cut short" in problem.what
    changed.execute(update(alerts).values(cleared_at=changed.ago(SOON)))
    assert changed.kinds() == []


@pytest.mark.parametrize(
    ("mode", "state", "due", "told"),
    [
        pytest.param("batch", "running", LONG_AGO, ["overdue_job"], id="nobody-looks"),
        pytest.param("batch", "submitted", LONG_AGO, ["overdue_job"], id="submitted"),
        pytest.param("batch", "running", SOON, [], id="a-little-late"),
        pytest.param("online", "running", LONG_AGO, [], id="not-at-a-provider"),
        pytest.param("batch", "completed", LONG_AGO, [], id="done"),
    ],
)
def test_jobs_that_nobody_looks_at(
    mode: str, state: str, due: timedelta, told: list[str], changed: Changed
) -> None:
    changed.execute(
        update(batches)
        .where(batches.c.batch_no == 1)
        .values(mode=mode, state=state, next_poll_at=changed.ago(due)),
    )
    found = changed.look()
    assert [problem.kind for problem in found] == told
    assert not any(problem.broken for problem in found)


@pytest.mark.parametrize("state", ["submitting", "reconciling"])
def test_a_step_that_no_worker_is_at(state: str, archive: Archive) -> None:
    ledger = archive.context.ledger
    execute(archive, update(batches).where(batches.c.batch_no == 1).values(state=state))
    problem = only(archive)
    assert (problem.kind, problem.broken) == ("interrupted", False)
    assert f"is {state} and no worker is at it" in problem.what
    acquire(ledger, f"batch:{KEY}-m1-b1", "someone@elsewhere:1")
    assert kinds(archive) == []
    archive.clock.advance(timedelta(hours=1))
    assert kinds(archive) == ["interrupted"]


def test_a_doubtful_submission_that_is_looked_at_later_is_not_interrupted(
    changed: Changed,
) -> None:
    changed.execute(
        update(batches)
        .where(batches.c.batch_no == 1)
        .values(state="submitting", next_poll_at=changed.ago(-SOON)),
    )
    assert changed.kinds() == []


def test_a_hold_is_told_and_is_not_broken(archive: Archive) -> None:
    version = archive.version()
    hold(archive.context, version.version_no, "quota", "the provider's quota is used up")
    problem = only(archive)
    assert (problem.kind, problem.broken) == ("held", False)
    assert problem.what == f"{KEY} is held: the provider's quota is used up"
    assert f"tallybook release --version {KEY}" in problem.remedy


@pytest.mark.parametrize(
    ("due", "version", "told"),
    [
        pytest.param(LONG_AGO, "active", ["overdue_retry"], id="overdue"),
        pytest.param(SOON, "active", [], id="due-now"),
        pytest.param(-SOON, "active", [], id="not-due"),
        pytest.param(None, "active", ["overdue_retry"], id="without-a-time"),
        pytest.param(LONG_AGO, "held", ["held"], id="held-for-a-reason"),
    ],
)
def test_records_that_nobody_tries_again(
    due: timedelta | None, version: str, told: list[str], archive: Archive
) -> None:
    at = None if due is None else ago(archive, due)
    one = record_state.c.record_no == 1
    execute(
        archive,
        update(record_state).where(one).values(state="retry_wait", not_before=at),
    )
    if version == "held":
        hold(archive.context, archive.version().version_no, "operator", "why")
    assert kinds(archive) == told


def test_a_batch_without_anything_left_to_retry(changed: Changed) -> None:
    changed.execute(update(batches).where(batches.c.batch_no == 1).values(state="retry_required"))
    problem = changed.only()
    assert (problem.kind, problem.broken) == ("unsettled_batch", False)
    record = select(attempts.c.record_no).where(attempts.c.batch_no == 1).limit(1)
    waiting = update(record_state).where(record_state.c.record_no.in_(record))
    changed.execute(waiting.values(state="retry_wait", not_before=changed.ago(-SOON)))
    assert changed.kinds() == []


@pytest.mark.parametrize(
    ("age", "told"),
    [
        pytest.param(timedelta(hours=23), ["refused_commit"], id="today"),
        pytest.param(timedelta(hours=25), [], id="earlier"),
    ],
)
def test_commits_that_came_too_late(age: timedelta, told: list[str], changed: Changed) -> None:
    changed.execute(
        insert(refused_commits).values(
            lease="batch:b1", owner="one", token=1, why="taken", refused_at=changed.ago(age)
        ),
    )
    found = changed.look()
    assert [problem.kind for problem in found] == told
    assert not any(problem.broken for problem in found)


@pytest.mark.parametrize(
    ("cleared", "told_at", "failures", "problem", "told"),
    [
        pytest.param(False, None, 2, "refused", ["untold_alert"], id="never-told"),
        pytest.param(False, LONG_AGO, 0, None, [], id="told"),
        pytest.param(False, None, 0, None, [], id="being-told"),
        pytest.param(True, None, 2, "refused", [], id="over-before-it-was-told"),
        pytest.param(True, LONG_AGO, 2, "refused", ["untold_alert"], id="end-not-told"),
    ],
)
def test_channels_that_cannot_be_told(
    cleared: bool,
    told_at: timedelta | None,
    failures: int,
    problem: str | None,
    told: list[str],
    changed: Changed,
) -> None:
    raise_alert(changed.connection, "breaker", KEY, "too few", changed.ago(LONG_AGO))
    number = changed.connection.execute(select(alerts.c.alert_no)).scalar_one()
    if cleared:
        changed.connection.execute(update(alerts).values(cleared_at=changed.ago(SOON)))
    changed.connection.execute(
        insert(alert_deliveries).values(
            alert_no=number,
            channel="webhook",
            told_at=None if told_at is None else changed.ago(told_at),
            told_times=0,
            failures=failures,
            problem=problem,
        )
    )
    found = changed.look()
    assert [entry.kind for entry in found] == told
    assert all(entry.broken and "webhook: refused" in entry.what for entry in found)


def test_a_head_that_is_gone_comes_back_with_its_search_entry(archive: Archive) -> None:
    before = search(archive.context, "pump")
    execute(archive, delete(archive_heads).where(archive_heads.c.entry_no == 1))
    with archive.context.ledger.write() as connection:
        connection.exec_driver_sql("DELETE FROM archive_search")
    problem = only(archive)
    assert (problem.kind, problem.fixable, problem.broken) == ("archive_head", True, True)
    assert health.mend(archive.context, [problem]) == [problem]
    assert look(archive) == []
    assert integrity.diagnose(archive.context) == []
    assert search(archive.context, "pump") == before
    assert build_report(archive.context, KEY).invariant_holds


def test_a_head_that_shows_another_entry_is_put_right(archive: Archive) -> None:
    one = archive_heads.c.document_no.in_(
        select(archive_entries.c.document_no).where(archive_entries.c.entry_no == 1)
    )
    execute(archive, update(archive_heads).where(one).values(entry_no=2))
    assert "archive_head" in kinds(archive)
    health.mend(archive.context, look(archive))
    assert look(archive) == []
    assert integrity.diagnose(archive.context) == []


@pytest.mark.parametrize("named", ["", "0" * 64])
def test_a_thumbnail_that_the_store_has_is_named_again(named: str, archive: Archive) -> None:
    with archive.context.ledger.read() as connection:
        (kept,) = set(connection.execute(select(archive_entries.c.thumbnail)).scalars())
    execute(archive, update(archive_entries).values(thumbnail=named))
    problem = only(archive)
    assert (problem.kind, problem.fixable) == ("thumbnail", True)
    health.mend(archive.context, [problem])
    assert look(archive) == []
    visible = select(archive_entries.c.thumbnail).where(archive_entries.c.valid_to.is_(None))
    with archive.context.ledger.read() as connection:
        assert set(connection.execute(visible).scalars()) == {kept}


def test_a_thumbnail_that_is_gone_for_good_is_told(archive: Archive) -> None:
    execute(
        archive,
        update(archive_entries).values(thumbnail="0" * 64),
        update(parses).values(thumbnail="0" * 64),
    )
    problem = only(archive)
    assert (problem.kind, problem.fixable, problem.broken) == ("lost_thumbnail", True, True)
    for kept in archive.context.artifacts.root.glob("source/*/*"):
        kept.unlink()
    problem = only(archive)
    assert (problem.kind, problem.fixable, problem.broken) == ("lost_thumbnail", False, True)
    assert health.mend(archive.context, [problem]) == []


@pytest.mark.parametrize(
    ("table", "said"),
    [
        pytest.param(records, "states of no record", id="records"),
        pytest.param(record_state, "records without a state", id="states"),
        pytest.param(attempts, "dispositions of no attempt", id="attempts"),
    ],
)
def test_rows_that_belong_to_nothing(table: Any, said: str, changed: Changed) -> None:
    changed.execute(delete(table))
    (problem,) = [entry for entry in changed.look() if entry.kind == "orphans"]
    assert said in problem.what
    assert problem.broken


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        pytest.param(
            insert(judgements).values(
                attempt_no=999, record_no=1, outcome="accepted", values_digest="0" * 64
            ),
            "1 judgements of no attempt",
            id="judgement",
        ),
        pytest.param(
            insert(dispositions).values(attempt_no=999, disposition="succeeded", diagnostics=""),
            "1 dispositions of no attempt",
            id="disposition",
        ),
        pytest.param(
            insert(move_members).values(
                move_no=select(move_members.c.move_no).limit(1).scalar_subquery(), record_no=999
            ),
            "1 memberships of no record",
            id="membership",
        ),
        pytest.param(
            update(attempts).where(attempts.c.attempt_no == 1).values(batch_no=999),
            "1 attempts of no batch",
            id="attempt",
        ),
    ],
)
def test_one_row_that_belongs_to_nothing(statement: Any, said: str, changed: Changed) -> None:
    changed.execute(statement)
    problem = changed.only()
    assert problem.kind == "orphans"
    assert said in problem.what
