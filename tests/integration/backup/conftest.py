"""Places to back up and to restore into, on each kind of database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.postgres import PostgresServer, fresh_database

ACROSS = [
    pytest.param(("sqlite", "sqlite"), id="sqlite-to-sqlite"),
    pytest.param(
        ("postgresql", "postgresql"), id="postgresql-to-postgresql", marks=pytest.mark.postgres
    ),
    pytest.param(("sqlite", "postgresql"), id="sqlite-to-postgresql", marks=pytest.mark.postgres),
    pytest.param(("postgresql", "sqlite"), id="postgresql-to-sqlite", marks=pytest.mark.postgres),
]


@pytest.fixture
def new_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[str, str], str]]:
    """Return what makes the URL of an empty database of a kind, for a state folder of a name."""
    with ExitStack() as stack:

        def make(kind: str, name: str) -> str:
            if kind == "sqlite":
                return f"sqlite:///{tmp_path / name / 'ledger.sqlite'}"
            server: PostgresServer = request.getfixturevalue("postgres")
            url = stack.enter_context(fresh_database(server))
            return url.render_as_string(hide_password=False)

        yield make
