"""A real state with reviews, a correction, replaced entries and a closed report."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.tampering.states import State, copied, make_reviewed
from tests.integration.stages.conftest import context, settings, shared_url, shop
from tests.support.postgres import fresh_database

__all__ = ["context", "settings", "shared_url", "shop"]
HERE = Path(__file__).parent


@pytest.fixture(
    scope="session",
    params=[
        pytest.param("sqlite", id="sqlite"),
        pytest.param("postgresql", id="postgresql", marks=pytest.mark.postgres),
    ],
)
def reviewed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[State]:
    """Return the state; it is made once for each database and only ever read."""
    folder = tmp_path_factory.mktemp("reviewed") / "state"
    if request.param == "sqlite":
        yield make_reviewed(folder)
        return
    with fresh_database(request.getfixturevalue("postgres")) as url:
        yield make_reviewed(folder, url.render_as_string(hide_password=False))


@pytest.fixture
def state(reviewed: State, tmp_path: Path) -> Iterator[State]:
    """Return a copy of it that a test may break."""
    with copied(reviewed, tmp_path / "copy") as copy:
        yield copy
