"""The small version of `make kill-test`: a dozen kills on each database, and a few restarts.

The oracles are tried first, each on a run in which what it looks for was planted: one that sees
nothing would let every kill pass.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import text

from resources.context import open_context
from tests.faults.kill_series import (
    WEATHERS,
    Database,
    Plan,
    Series,
    house,
    measure,
    run_series,
)
from tests.faults.test_killed_submission import KILLS_VARIABLE
from tests.provider_emulator.world import World
from tests.support.kill_oracles import violations_of

pytestmark = pytest.mark.slow

KILLS = int(os.environ.get(KILLS_VARIABLE, "12"))
RESTARTS = max(1, KILLS // 4)
BOTH = [
    pytest.param("sqlite", id="sqlite"),
    pytest.param("postgresql", id="postgresql", marks=pytest.mark.postgres),
]


@pytest.mark.parametrize("database", BOTH)
def test_killed_at_random_moments(database: Database) -> None:
    with house(database) as at:
        tally = run_series(at, Plan(kills=KILLS), measure(at))
    print(tally.summary(), dict(tally.by_kind))
    assert tally.violations == []
    assert tally.kills >= KILLS
    assert tally.by_kind["tallybook run"] >= KILLS // 10


@pytest.mark.postgres
def test_postgresql_restarted_under_the_workers() -> None:
    with house("postgresql", restarts=True) as at:
        tally = run_series(at, Plan(kills=0, restarts=RESTARTS), measure(at))
    print(tally.summary(), dict(tally.by_kind))
    assert tally.violations == []
    assert tally.restarts >= RESTARTS


@pytest.fixture(scope="module")
def finished() -> Iterator[Series]:
    """Return a series that one worker brought to its end."""
    with house("sqlite") as at, at.series("finished", "openai", WEATHERS[0]) as series:
        assert series.workers.wait(series.start()).ended == "done"
        yield series


@pytest.fixture
def copied(finished: Series, tmp_path: Path) -> Iterator[Series]:
    """Return a copy of its folder and of what the provider knows, to spoil."""
    folder = tmp_path / "shop"
    shutil.copytree(finished.shop.folder, folder)
    world = World()
    world.executed = deepcopy(finished.world.executed)
    world.jobs_created = deepcopy(finished.world.jobs_created)
    world.clock.advance(finished.world.clock.offset_seconds)
    yield replace(finished, shop=replace(finished.shop, folder=folder), world=world)
    world.close()


def change(series: Series, *statements: str) -> None:
    """Change the ledger past every rule."""
    settings = series.shop.settings()
    with (
        open_context(settings, clock=series.world.clock.now) as context,
        context.ledger.write() as connection,
    ):
        for statement in statements:
            connection.execute(text(statement))


def run_twice(series: Series) -> None:
    ran = series.world.executed[series.shop.provider]
    ran[next(iter(ran))] += 1


def pay_for_nothing(series: Series) -> None:
    series.world.executed[series.shop.provider]["0123456789ab-0"] += 1


def make_second_job(series: Series) -> None:
    series.world.jobs_created[series.shop.provider].append("a-second-job")


def lose_artifact(series: Series) -> None:
    kept = series.shop.state / "artifacts" / "manifest"
    next(path for path in kept.rglob("*") if path.is_file()).unlink()


PLANTED: dict[str, tuple[Callable[[Series], None], str]] = {
    "row-run-twice": (run_twice, "was run 2 times"),
    "row-of-no-attempt": (pay_for_nothing, "is no attempt of the ledger"),
    "second-job": (make_second_job, "jobs were made that no batch has"),
    "record-tried-again": (
        lambda series: change(
            series,
            "INSERT INTO attempts (attempt_no, batch_no, record_no, ordinal, recovery_path, "
            "request_digest, request_offset, request_length) SELECT attempt_no + 1000, batch_no, "
            "record_no, ordinal, 'repeat', request_digest, request_offset, request_length "
            "FROM attempts WHERE attempt_no = (SELECT MIN(attempt_no) FROM attempts)",
        ),
        "was tried again although",
    ),
    "record-lost": (
        lambda series: change(
            series,
            "UPDATE record_state SET state = 'submitted' WHERE record_no = "
            "(SELECT MIN(record_no) FROM record_state)",
        ),
        "not everything ended published",
    ),
    "delivered-twice": (
        lambda series: change(
            series,
            "INSERT INTO deliveries SELECT record_no, operation, request_digest, accepted_digest, "
            "promotion + 1, disposition, entry_no, delivered_at FROM deliveries LIMIT 1",
        ),
        "by (13, 12) deliveries",
    ),
    "published-twice": (
        lambda series: change(
            series,
            "INSERT INTO archive_entries SELECT entry_no + 1000, document_no, record_no, "
            "version_no, archive_version + 1, promotion, content, content_digest, thumbnail, "
            "valid_from, valid_from, change_no, closed_by FROM archive_entries LIMIT 1",
        ),
        "are published as entries",
    ),
    "head-lost": (
        lambda series: change(
            series,
            "DELETE FROM archive_heads WHERE document_no = "
            "(SELECT MIN(document_no) FROM archive_heads)",
        ),
        "there are (11, 11) heads",
    ),
    "disposition-lost": (
        lambda series: change(
            series,
            "DELETE FROM dispositions WHERE attempt_no = "
            "(SELECT MIN(attempt_no) FROM dispositions)",
        ),
        "the account: batch",
    ),
    "search-entry-lost": (
        lambda series: change(series, "DELETE FROM archive_search WHERE rowid = 1"),
        "11 can be searched",
    ),
    "artifact-lost": (lose_artifact, "missing_artifact"),
}


@pytest.mark.parametrize("planted", PLANTED)
def test_an_oracle_sees(planted: str, copied: Series) -> None:
    plant, sentence = PLANTED[planted]
    assert violations_of(copied.shop, copied.world, spoilt=False) == []
    plant(copied)
    found = violations_of(copied.shop, copied.world, spoilt=False)
    assert [one for one in found if sentence in one], found
