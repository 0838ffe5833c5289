"""A made-up archive of two versions."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from resources.context import open_context
from resources.settings import Settings
from tests.support.archive_shelf import SECOND, Shelf, content
from tests.support.clock import FrozenClock
from tests.support.postgres import fresh_database

EVIL = "<script>alert(1)</script>\"'&"


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("sqlite", id="sqlite"),
        pytest.param("postgresql", id="postgresql", marks=pytest.mark.postgres),
    ],
)
def shelf(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Shelf]:
    """Return an archive in which some documents have values of both versions; it is only read."""
    state = tmp_path_factory.mktemp("state")
    if request.param == "sqlite":
        with _filled(state, None) as filled:
            yield filled
        return
    with (
        fresh_database(request.getfixturevalue("postgres")) as url,
        _filled(state, url.render_as_string(hide_password=False)) as filled,
    ):
        yield filled


@pytest.fixture(scope="module")
def sqlite_shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shelf]:
    """Return the same for what does not depend on the database."""
    with _filled(tmp_path_factory.mktemp("state"), None) as filled:
        yield filled


@contextmanager
def _filled(state: Path, ledger_url: str | None) -> Iterator[Shelf]:
    clock = FrozenClock()
    settings = Settings(state=state, ledger_url=ledger_url, shard_records=2)
    with open_context(settings, clock=clock, rng=random.Random(1)) as context:
        shelf = Shelf(context, clock)
        fill(shelf)
        yield shelf


def fill(shelf: Shelf) -> None:
    """Six documents of both, one of each alone."""
    shelf.put("a same", content("Pump", ("X-1",)))
    shelf.put("a same", content("Pump", ("X-1",)), version=SECOND)
    shelf.put("b form", content("PUMP", ("X-1",)))
    shelf.put("b form", content("Pump", ("X-1",)), version=SECOND)
    shelf.put("c changed", content("old"))
    shelf.put("c changed", content("older, and corrected"), kind="correction")
    shelf.put("c changed", content(EVIL, ("X-1", "X-2"), description="d"), version=SECOND)
    shelf.put("d lost", content("t", ("X-9",), language="de"))
    shelf.put("d lost", content("t", (), language="de"), version=SECOND)
    shelf.put("e rolled back", content("one"))
    shelf.put("e rolled back", content("two"), version=SECOND)
    shelf.put("e rolled back", content("one"), kind="rollback")
    shelf.put("f " + EVIL, content("old"))
    shelf.put("f " + EVIL, content("\u0645\u0636\u062e\u0629"), version=SECOND)
    shelf.put("g first", content("g"))
    shelf.put("h second", content("h"), version=SECOND)
