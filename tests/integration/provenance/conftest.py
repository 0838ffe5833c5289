"""The small archive on each kind of database, and folders that other tests process."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from resources.context import open_context
from resources.settings import Settings
from tests.integration.publish import conftest as publishing
from tests.integration.replay import conftest as replaying
from tests.integration.stages import conftest as staging
from tests.support.clock import FrozenClock
from tests.support.small_archive import Archive, fill_folder

# Slow on PostgreSQL, but for the tests that say otherwise: the statements are the same.
shared_url = publishing.shared_url
context = publishing.context
works = replaying.works
shop = staging.shop


@pytest.fixture
def settings(tmp_path: Path, shared_url: str) -> Settings:
    """Return settings for an empty ledger and the specs of three versions beside the packaged."""
    return publishing.empty_settings(tmp_path, shared_url, replaying.write_specs)


@pytest.fixture
def archive(settings: Settings, frozen_clock: FrozenClock) -> Iterator[Archive]:
    """Return the small archive after every stage, its clock a minute after that."""
    own = settings.model_copy(update={"specs": None, "version": "manuals-baseline-2"})
    with open_context(own, clock=frozen_clock, rng=random.Random(7)) as opened:
        made = Archive(own.source_folder, own, opened, frozen_clock)
        fill_folder(made)
        made.process()
        frozen_clock.advance(60)
        yield made


@pytest.fixture(scope="session")
def read_archive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archive]:
    """Return the small archive after every stage on SQLite, for tests that only read it."""
    place, clock = tmp_path_factory.mktemp("read"), FrozenClock()
    settings = Settings(
        state=place / "state",
        ledger_url=f"sqlite:///{place / 'ledger.sqlite3'}",
        source=place / "documents",
    )
    with open_context(settings, clock=clock, rng=random.Random(7)) as opened:
        made = Archive(settings.source_folder, settings, opened, clock)
        fill_folder(made)
        made.process()
        yield made


__all__ = ["archive", "context", "read_archive", "settings", "shared_url", "shop", "works"]
