"""Places to back up and to restore into, on each kind of database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.postgres import PostgresServer, fresh_database

ACROSS = [
    pytest.param(("sqlite", "sqlite"), id="sqlite-to-sqlite"),
    pytest.param(
        ("postgresql", "postgresql"), id="postgresql-to-postgresql", marks=pytest.mark.postgres
    ),
    pytest.param(("sqlite", "postgresql"), id="sqlite-to-postgresql", marks=pytest.mark.postgres),
    pytest.param(("postgresql", "sqlite"), id="postgresql-to-sqlite", marks=pytest.mark.postgres),
]


HERE = Path(__file__).parent
SLOW = (
    "test_a_submission_without_an_answer_is_settled_in_the_new_place",
    "test_an_open_job_is_finished_in_the_new_place[postgresql-to-postgresql]",
    "test_an_open_job_is_finished_in_the_new_place[postgresql-to-sqlite]",
    "test_an_open_job_is_finished_in_the_new_place[sqlite-to-sqlite]",
    "test_every_row_and_every_file_is_in_the_new_place[postgresql-to-postgresql]",
    "test_every_row_and_every_file_is_in_the_new_place[sqlite-to-sqlite]",
    "test_go_on_holds_no_version",
    "test_nothing_is_submitted_before_somebody_releases_the_version",
    "test_numbers_go_on_after_the_highest[postgresql-to-postgresql]",
    "test_numbers_go_on_after_the_highest[postgresql-to-sqlite]",
    "test_numbers_go_on_after_the_highest[sqlite-to-sqlite]",
    "test_what_was_never_submitted_is_submitted_once_when_it_was_looked_for",
)
"""Tests of several seconds; of the ways to and fro, those across are among the fast ones."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave the longer ones to the slow run."""
    for item in items:
        if item.path.parent == HERE and item.name in SLOW:
            item.add_marker(pytest.mark.slow)


@pytest.fixture
def new_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[str, str], str]]:
    """Return what makes the URL of an empty database of a kind, for a state folder of a name."""
    with ExitStack() as stack:

        def make(kind: str, name: str) -> str:
            if kind == "sqlite":
                return f"sqlite:///{tmp_path / name / 'ledger.sqlite'}"
            server: PostgresServer = request.getfixturevalue("postgres")
            url = stack.enter_context(fresh_database(server))
            return url.render_as_string(hide_password=False)

        yield make
