"""An open ledger on each database, and several processes that race."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from resources.ledger.engine import Ledger, open_ledger
from tests.support.clock import FrozenClock
from tests.support.postgres import fresh_database


@pytest.fixture
def ledger(ledger_url: str, frozen_clock: FrozenClock, rng: random.Random) -> Iterator[Ledger]:
    """Return a fresh open ledger; the test runs once on each database."""
    opened = open_ledger(ledger_url, clock=frozen_clock, rng=rng)
    yield opened
    opened.close()


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("sqlite", id="sqlite"),
        pytest.param("postgresql", id="postgresql", marks=pytest.mark.postgres),
    ],
)
def module_ledger(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Ledger]:
    """Return an open ledger that the tests of a module share, once on each database."""
    with _database(request, tmp_path_factory) as url:
        opened = open_ledger(url, clock=FrozenClock())
        yield opened
        opened.close()


@contextmanager
def _database(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{Path(tmp_path_factory.mktemp('ledger')) / 'ledger.sqlite3'}"
        return
    with fresh_database(request.getfixturevalue("postgres")) as url:
        yield url.render_as_string(hide_password=False)
