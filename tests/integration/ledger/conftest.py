"""An open ledger on each database, and several processes that race."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from sqlalchemy import text, true

from resources.ledger.engine import Ledger, open_ledger
from resources.ledger.schema import ledger_info, metadata
from tests.support.clock import FrozenClock
from tests.support.postgres import fresh_database

IDENTITY = ("ledger_id", "profile", "made_at")
BACKENDS = [
    pytest.param("sqlite", id="sqlite"),
    pytest.param("postgresql", id="postgresql", marks=pytest.mark.postgres),
]


@pytest.fixture(scope="module", params=BACKENDS)
def module_url(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Return the URL of a database that the tests of a module share, once of each kind."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path_factory.mktemp('ledger') / 'ledger.sqlite3'}"
        return
    with fresh_database(request.getfixturevalue("postgres")) as url:
        yield url.render_as_string(hide_password=False)


@pytest.fixture(scope="module")
def module_ledger(module_url: str) -> Iterator[Ledger]:
    """Return the open ledger behind `ledger`."""
    opened = open_ledger(module_url)
    yield opened
    opened.close()


@pytest.fixture
def ledger(module_ledger: Ledger, frozen_clock: FrozenClock) -> Ledger:
    """Return an open ledger without rows.

    A fresh database a test would cost a minute in all; `ledger_url` gives one where it matters.
    """
    with module_ledger.write() as connection:
        for table in reversed(metadata.sorted_tables):
            kept = table.c.name.not_in(IDENTITY) if table is ledger_info else true()
            connection.execute(table.delete().where(kept))
        connection.execute(text("DELETE FROM archive_search"))
    return replace(module_ledger, clock=frozen_clock)
