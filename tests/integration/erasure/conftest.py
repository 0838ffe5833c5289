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

HERE = Path(__file__).parent
FAST_ON_BOTH = (
    "test_no_word_of_an_erased_document_is_left",
    "test_bytes_that_another_document_has_stay",
)


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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark most tests on PostgreSQL as slow; where the SQL is new, one is among the fast."""
    for item in items:
        name = item.name.partition("[")[0]
        if item.path.parent == HERE and "postgresql" in item.name and name not in FAST_ON_BOTH:
            item.add_marker(pytest.mark.slow)
