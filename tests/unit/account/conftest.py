"""The small archive on each kind of database: fresh ones, and one that is only read."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Connection

from resources.context import open_context
from resources.settings import Settings
from tests.support.clock import FrozenClock
from tests.support.postgres import fresh_database
from tests.support.small_archive import Archive, fill_folder


@contextmanager
def _opened(place: Path, ledger_url: str) -> Iterator[Archive]:
    folder, clock = place / "documents", FrozenClock()
    settings = Settings(
        state=place / "state", ledger_url=ledger_url, source=folder, shard_records=2
    )
    with open_context(settings, clock=clock, rng=random.Random(7)) as context:
        archive = Archive(folder, settings, context, clock)
        fill_folder(archive)
        yield archive


@pytest.fixture
def archive(ledger_url: str, tmp_path: Path) -> Iterator[Archive]:
    """Return the small archive after every stage; the test may change it."""
    with _opened(tmp_path, ledger_url) as archive:
        archive.process()
        yield archive


@pytest.fixture
def sqlite_archive(tmp_path: Path) -> Iterator[Archive]:
    """Return a scanned archive on SQLite, for what does not depend on the database."""
    with _opened(tmp_path, f"sqlite:///{tmp_path / 'ledger.sqlite3'}") as archive:
        archive.scan()
        yield archive


@pytest.fixture
def fresh_archive(ledger_url: str, tmp_path: Path) -> Iterator[Archive]:
    """Return the small archive before any stage."""
    with _opened(tmp_path, ledger_url) as archive:
        yield archive


@pytest.fixture(
    scope="session",
    params=[
        pytest.param("sqlite", id="sqlite"),
        pytest.param("postgresql", id="postgresql", marks=pytest.mark.postgres),
    ],
)
def read_archive(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Archive]:
    """Return the small archive after every stage; it is shared, so tests leave it as it is."""
    place = tmp_path_factory.mktemp("archive")
    if request.param == "sqlite":
        with _opened(place, f"sqlite:///{place / 'ledger.sqlite3'}") as archive:
            archive.process()
            yield archive
        return
    with (
        fresh_database(request.getfixturevalue("postgres")) as url,
        _opened(place, url.render_as_string(hide_password=False)) as archive,
    ):
        archive.process()
        yield archive


@pytest.fixture
def undone(read_archive: Archive) -> Iterator[Connection]:
    """Return a transaction on the shared archive that is rolled back after the test."""
    with read_archive.context.ledger.engine.connect() as connection:
        transaction = connection.begin()
        yield connection
        transaction.rollback()
