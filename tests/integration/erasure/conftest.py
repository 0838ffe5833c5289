"""A small archive with two documents of rare words, on each kind of database."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from resources.context import open_context
from resources.settings import Settings
from tests.integration.erasure.support import RARE, RARE_TEXT, Erasable
from tests.support.clock import FrozenClock
from tests.support.small_archive import Archive, fill_folder


@pytest.fixture
def archive(ledger_url: str, tmp_path: Path) -> Iterator[Archive]:
    """Return the archive after every stage."""
    folder, clock = tmp_path / "documents", FrozenClock()
    settings = Settings(
        state=tmp_path / "state",
        ledger_url=ledger_url.replace(str(tmp_path), str(tmp_path / "state")),
        source=folder,
    )
    (tmp_path / "state").mkdir()
    with open_context(settings, clock=clock, rng=random.Random(7)) as context:
        archive = Archive(folder, settings, context, clock)
        fill_folder(archive)
        archive.write(RARE, RARE_TEXT)
        archive.process()
        yield archive


@pytest.fixture
def erasable(archive: Archive) -> Erasable:
    """Return it with what erases."""
    return Erasable(archive)
