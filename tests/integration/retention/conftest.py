"""A small archive on each kind of database, with the records of one batch settled."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from resources.context import open_context
from resources.settings import Settings
from tests.support.clock import FrozenClock
from tests.support.small_archive import Archive, fill_folder


@pytest.fixture
def archive(ledger_url: str, tmp_path: Path) -> Iterator[Archive]:
    """Return the archive after every stage: records published, and one that waits for review."""
    folder, clock = tmp_path / "documents", FrozenClock()
    settings = Settings(state=tmp_path / "state", ledger_url=ledger_url, source=folder)
    with open_context(settings, clock=clock, rng=random.Random(7)) as context:
        archive = Archive(folder, settings, context, clock)
        fill_folder(archive)
        archive.process()
        yield archive
