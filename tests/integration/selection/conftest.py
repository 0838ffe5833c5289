"""The widened archive on each kind of database: one that is only read, and copies to change."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.postgres import fresh_database
from tests.support.small_archive import Archive
from tests.support.widened_archive import opened_archive, process_first


def _sqlite(place: Path) -> str:
    return f"sqlite:///{place / 'ledger.sqlite3'}"


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of an archive on SQLite after every stage; nothing changes it."""
    place = tmp_path_factory.mktemp("archive")
    with opened_archive(place, _sqlite(place)) as archive:
        process_first(archive)
    return place


@pytest.fixture
def archive(made: Path, tmp_path: Path) -> Iterator[Archive]:
    """Return a copy of the archive, on SQLite; the test may change it."""
    place = tmp_path / "copy"
    shutil.copytree(made, place)
    with opened_archive(place, _sqlite(place)) as archive:
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
    """Return the archive after every stage; it is shared, so tests leave it as it is."""
    if request.param == "sqlite":
        place = request.getfixturevalue("made")
        with opened_archive(place, _sqlite(place)) as archive:
            yield archive
        return
    place = tmp_path_factory.mktemp("archive")
    with (
        fresh_database(request.getfixturevalue("postgres")) as url,
        opened_archive(place, url.render_as_string(hide_password=False)) as archive,
    ):
        process_first(archive)
        yield archive
