"""Pruning: what is old and settled goes, and nothing that the audit needs."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

from pipeline_assets.account import health, integrity
from pipeline_assets.account.explain import explain
from pipeline_assets.account.report import build_report
from pipeline_assets.retention.policy import (
    DECLARED,
    OPEN_RECORDS,
    YOUNG,
    RetentionPolicy,
    What,
)
from pipeline_assets.retention.prune import PruneReport, plan_prune, prune, unnamed
from resources.artifacts import ArtifactPruned, ArtifactStore
from resources.ledger.moves import move_records, version_chain
from tests.support.small_archive import FAN, KEY, Archive

DAY = 24 * 3600


def execute(archive: Archive, statement: str) -> None:
    with archive.context.ledger.write() as connection:
        connection.exec_driver_sql(statement)


def settle(archive: Archive, state: str) -> None:
    """Move every record to a state in which it is settled, past the rules."""
    context = archive.context
    with context.ledger.write() as connection:
        rows = context.ledger.dialect.fetch(
            connection,
            "SELECT record_no, state FROM record_state",
            {"record_no": pl.Int64, "state": pl.String},
        )
        for (was,), part in rows.group_by("state"):
            if was != state:
                move_records(
                    connection,
                    context.ledger.dialect,
                    part["record_no"],
                    str(was),
                    state,
                    context.cause("for the test", "test"),
                    version_chain(1),
                )
    if state == "withdrawn":
        execute(archive, "DELETE FROM archive_heads")
        execute(archive, "DELETE FROM archive_search")
        execute(archive, "UPDATE archive_entries SET valid_to = valid_from")


def pruned(archive: Archive, *what: What, days: int | None = None) -> PruneReport:
    policy = RetentionPolicy(what=what) if what else RetentionPolicy()
    policy = policy if days is None else policy.older_than(days)
    return prune(archive.context, policy, "the quarter is over", "Ada")


def gone(report: PruneReport) -> dict[str, int]:
    return {part.what: part.files for part in report.parts if part.files}


def problems(archive: Archive) -> list[str]:
    context = archive.context
    found = [*integrity.diagnose(context), *health.look(context)]
    return [problem.kind for problem in found if problem.broken]


def test_nothing_of_published_records_goes(archive: Archive) -> None:
    archive.clock.advance(1000 * DAY)
    report = pruned(archive, "results", "requests", "parses")
    assert report.prune_no is None
    assert {part.what: part.kept for part in report.parts} == {
        "results": {OPEN_RECORDS: 1},
        "requests": {OPEN_RECORDS: 1},
        "parses": {DECLARED: 1},
    }
    assert problems(archive) == []


def test_results_and_requests_of_settled_batches_go_after_their_age(archive: Archive) -> None:
    settle(archive, "withdrawn")
    archive.clock.advance(89 * DAY)
    assert gone(pruned(archive)) == {}
    archive.clock.advance(2 * DAY)
    looked = plan_prune(archive.context, RetentionPolicy())
    assert sum(part.bytes for part in looked.parts) > 0
    store = archive.context.artifacts
    before = Counter(kind for kind, _ in all_files(store))
    report = pruned(archive)
    assert gone(report) == {"results": 1, "requests": 1}
    after = Counter(kind for kind, _ in all_files(store))
    assert before - after == Counter({"result": 1, "request": 1})
    assert problems(archive) == []
    assert build_report(archive.context, KEY).invariant_holds
    assert gone(pruned(archive)) == {}, "once is enough"


def all_files(store: ArtifactStore) -> list[tuple[str, str]]:
    return [(path.parts[-3], path.name) for path in store.root.glob("*/*/*") if path.is_file()]


def test_what_was_pruned_is_told_as_that(archive: Archive) -> None:
    settle(archive, "withdrawn")
    archive.clock.advance(100 * DAY)
    at = archive.context.ledger.now()
    pruned(archive)
    (record,) = explain(archive.context, FAN, KEY).records
    (attempt,) = record["attempts"]
    assert attempt["request"]["pruned_at"] == at
    assert [line["pruned_at"] for line in attempt["results"]] == [at]
    with pytest.raises(ArtifactPruned, match="pruned by policy at"):
        archive.context.artifacts.verify("request", attempt["request"]["artifact"])


def test_one_open_record_keeps_its_batch(archive: Archive) -> None:
    settle(archive, "withdrawn")
    archive.clock.advance(1000 * DAY)
    for state in ("dead_letter", "awaiting_review", "retry_wait", "accepted", "published"):
        execute(
            archive,
            f"UPDATE record_state SET state = '{state}' WHERE record_no = 1",
        )
        report = pruned(archive, "results", "requests")
        assert [part.kept for part in report.parts] == [{OPEN_RECORDS: 1}, {OPEN_RECORDS: 1}]


def test_what_would_be_tried_again_if_it_came_back_keeps_its_request(archive: Archive) -> None:
    execute(archive, "UPDATE record_state SET state = 'retry_wait' WHERE record_no = 1")
    settle(archive, "withdrawn")
    archive.clock.advance(1000 * DAY)
    report = pruned(archive, "results", "requests")
    assert [part.kept for part in report.parts] == [{OPEN_RECORDS: 1}, {OPEN_RECORDS: 1}]


def test_texts_of_a_parser_that_nobody_declares_go(archive: Archive) -> None:
    settle(archive, "withdrawn")
    execute(archive, "UPDATE processing_versions SET state = 'retired'")
    archive.clock.advance(31 * DAY)
    assert gone(pruned(archive, "parses")) == {"parses": 1}
    assert problems(archive) == []
    with archive.context.ledger.read() as connection:
        assert (
            connection.exec_driver_sql(
                "SELECT COUNT(*) FROM parses WHERE text_pack IS NOT NULL"
            ).scalar()
            == 0
        )


def test_texts_of_published_records_stay_after_their_version_is_retired(archive: Archive) -> None:
    execute(archive, "UPDATE processing_versions SET state = 'retired'")
    archive.clock.advance(1000 * DAY)
    assert gone(pruned(archive, "parses")) == {}


def test_leftovers_of_killed_runs_go_after_a_day(archive: Archive) -> None:
    store = archive.context.artifacts
    stored = store.put("result", b"of a run that was killed")
    assert list(unnamed(archive.context)) == [("result", stored.digest)]
    report = pruned(archive, "leftovers")
    assert [part.kept for part in report.parts] == [{YOUNG: 1}]
    before = all_files(store)
    for kind, digest in before:
        os.utime(store.path(kind, digest), (0, 0))  # pyright: ignore[reportArgumentType]
    assert gone(pruned(archive, "leftovers", days=0)) == {"leftovers": 1}
    assert set(before) - set(all_files(store)) == {("result", stored.digest)}
    assert problems(archive) == []


def test_storing_an_old_leftover_again_makes_it_young(archive: Archive) -> None:
    store = archive.context.artifacts
    stored = store.put("result", b"of a run that was killed")
    os.utime(stored.path, (0, 0))
    store.put("result", b"of a run that was killed")
    assert gone(pruned(archive, "leftovers")) == {}


class Killed(BaseException):
    """The process is gone."""


@pytest.mark.slow
@pytest.mark.parametrize("die_at", [1, 2, 3, 4])
def test_killed_while_files_are_deleted(
    die_at: int, archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle(archive, "withdrawn")
    archive.clock.advance(100 * DAY)
    count = 0
    unlink = Path.unlink

    def dying(path: Path, missing_ok: bool = False) -> None:
        nonlocal count
        count += "artifacts" in path.parts
        if count >= die_at:
            raise Killed
        unlink(path, missing_ok=missing_ok)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", dying)
        with pytest.raises(Killed):
            pruned(archive)
    assert problems(archive) == [], "what is named as pruned is no loss, there or not"
    report = pruned(archive)
    assert report.finished >= 1
    kinds = {kind for kind, _ in all_files(archive.context.artifacts)}
    assert not kinds & {"request", "result"}
