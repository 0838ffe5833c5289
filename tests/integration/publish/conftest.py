"""A small folder of documents that two versions publish, on each database."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from pipeline_assets.ingest import parse_documents
from resources.context import Context, open_context
from resources.ledger.engine import open_ledger
from resources.ledger.schema import ledger_info, metadata
from resources.settings import Settings, load_settings
from tests.integration.publish.market import Market
from tests.integration.publish.support import ONE, Stall, write_specs
from tests.integration.stages.support import InProcessPool
from tests.support.clock import FrozenClock
from tests.support.postgres import fresh_database


@pytest.fixture(
    scope="session",
    params=[
        pytest.param("sqlite", id="sqlite"),
        # The statements are the same; `test_rollback.py` has the one quick walk on PostgreSQL.
        pytest.param("postgresql", id="postgresql", marks=[pytest.mark.postgres, pytest.mark.slow]),
    ],
)
def shared_url(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Return the URL of a database that all tests of this folder share, once of each kind."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path_factory.mktemp('ledger') / 'ledger.sqlite3'}"
        return
    with fresh_database(request.getfixturevalue("postgres")) as url:
        yield url.render_as_string(hide_password=False)


@pytest.fixture
def settings(tmp_path: Path, shared_url: str) -> Settings:
    """Return settings for an empty ledger, an empty folder and the specs of two versions."""
    return empty_settings(tmp_path, shared_url, write_specs)


def empty_settings(
    tmp_path: Path, shared_url: str, write_specs: Callable[[Path], None]
) -> Settings:
    """Settings for an empty ledger, an empty folder, and the specs that are written."""
    ledger = open_ledger(shared_url)
    with ledger.write() as connection:
        for table in reversed(metadata.sorted_tables):
            if table is not ledger_info:
                connection.execute(table.delete())
        connection.execute(text("DELETE FROM archive_search"))
    ledger.close()
    (tmp_path / "documents").mkdir()
    write_specs(tmp_path / "specs")
    return load_settings(
        state=tmp_path / "state",
        ledger_url=shared_url,
        source=tmp_path / "documents",
        source_name="shop",
        parser_workers=1,
    ).model_copy(update={"specs": tmp_path / "specs", "version": ONE})


@pytest.fixture
def context(settings: Settings, frozen_clock: FrozenClock, rng: random.Random) -> Iterator[Context]:
    """Return an open context."""
    with open_context(settings, clock=frozen_clock, rng=rng) as opened:
        yield opened


@pytest.fixture
def stall(context: Context, frozen_clock: FrozenClock, monkeypatch: pytest.MonkeyPatch) -> Stall:
    """Return the stages over a folder of two documents, the parser running in this process."""
    monkeypatch.setattr(parse_documents, "ParserPool", InProcessPool)
    return Stall(context.settings.source_folder, context, frozen_clock).fill()


@pytest.fixture
def market(
    settings: Settings,
    tmp_path: Path,
    frozen_clock: FrozenClock,
    rng: random.Random,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Market]:
    """Return the stages over a declared folder whose removed documents are withdrawn."""
    monkeypatch.setattr(parse_documents, "ParserPool", InProcessPool)
    declared = settings.model_copy(update={"sources": tmp_path / "sources.yaml"})
    # The folder is declared, not given.
    declared.model_fields_set.discard("source")
    with open_context(declared, clock=frozen_clock, rng=rng) as context:
        made = Market(context.settings.source_folder, context, frozen_clock)
        made.declare("withdraw")
        made.fill()
        yield made
