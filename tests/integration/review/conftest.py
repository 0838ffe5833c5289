"""Ledgers with reviews: bare rows in numbers, and a small archive that the real stages processed.

The databases are shared, and emptied before each test.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from resources.context import Context, open_context
from resources.ledger.engine import open_ledger
from resources.ledger.schema import ledger_info, metadata
from resources.settings import Settings
from tests.support.clock import FrozenClock
from tests.support.postgres import fresh_database
from tests.support.small_archive import Archive, fill_folder, manual


@pytest.fixture(
    scope="session",
    params=[
        pytest.param("sqlite", id="sqlite"),
        pytest.param("postgresql", id="postgresql", marks=pytest.mark.postgres),
    ],
)
def shared_url(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Return the URL of a database that all tests of this folder share, once of each kind."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path_factory.mktemp('ledger') / 'ledger.sqlite3'}"
        return
    with fresh_database(request.getfixturevalue("postgres")) as url:
        yield url.render_as_string(hide_password=False)


@pytest.fixture
def context(
    shared_url: str, tmp_path: Path, frozen_clock: FrozenClock, rng: random.Random
) -> Iterator[Context]:
    """Return an open context over an empty ledger."""
    ledger = open_ledger(shared_url)
    with ledger.write() as connection:
        for table in reversed(metadata.sorted_tables):
            if table is not ledger_info:
                connection.execute(table.delete())
        connection.execute(text("DELETE FROM archive_search"))
    ledger.close()
    settings = Settings(
        state=tmp_path / "state", ledger_url=shared_url, source=tmp_path / "documents"
    )
    with open_context(settings, clock=frozen_clock, rng=rng) as opened:
        yield opened


@pytest.fixture
def archive(context: Context, frozen_clock: FrozenClock) -> Archive:
    """Return a small archive after every stage: two documents published, two in review."""
    made = Archive(context.settings.source_folder, context.settings, context, frozen_clock)
    fill_folder(made)
    made.write("saw-ks-8.txt", manual("Band Saw", "KS-8", other="KS-6"))
    made.process()
    return made
