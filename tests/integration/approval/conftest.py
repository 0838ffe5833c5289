"""A ledger with documents of a source that demands approval, and of one that does not."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from resources.context import Context, open_context
from resources.ledger.engine import open_ledger
from resources.ledger.schema import ledger_info, metadata
from resources.settings import load_settings
from tests.integration.approval.support import Office
from tests.support.clock import FrozenClock
from tests.support.postgres import fresh_database


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("sqlite", id="sqlite"),
        pytest.param("postgresql", id="postgresql", marks=[pytest.mark.postgres, pytest.mark.slow]),
    ],
)
def module_url(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Return the URL of a database that the tests of a module share, once of each kind."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path_factory.mktemp('ledger') / 'ledger.sqlite3'}"
        return
    with fresh_database(request.getfixturevalue("postgres")) as url:
        yield url.render_as_string(hide_password=False)


@pytest.fixture
def context(
    tmp_path: Path, module_url: str, frozen_clock: FrozenClock, rng: random.Random
) -> Iterator[Context]:
    """Return an open context over an empty ledger and two declared folders."""
    ledger = open_ledger(module_url)
    with ledger.write() as connection:
        for table in reversed(metadata.sorted_tables):
            if table is not ledger_info:
                connection.execute(table.delete())
        connection.execute(text("DELETE FROM archive_search"))
    ledger.close()
    settings = load_settings(state=tmp_path / "state", ledger_url=module_url).model_copy(
        update={"sources": tmp_path / "sources.yaml"}
    )
    with open_context(settings, clock=frozen_clock, rng=rng) as opened:
        yield opened


@pytest.fixture
def office(tmp_path: Path, context: Context, frozen_clock: FrozenClock) -> Office:
    """Return the two folders, filled and scanned."""
    return Office(tmp_path, context, frozen_clock).fill()
