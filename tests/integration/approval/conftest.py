"""A ledger with documents of a source that demands approval, and of one that does not."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from resources.context import Context, open_context
from resources.ledger.engine import open_ledger
from resources.ledger.schema import ledger_info, metadata
from resources.settings import load_settings
from tests.integration.approval.support import Office
from tests.integration.publish import conftest as publishing
from tests.support.clock import FrozenClock

shared_url = publishing.shared_url


@pytest.fixture
def context(
    tmp_path: Path, shared_url: str, frozen_clock: FrozenClock, rng: random.Random
) -> Iterator[Context]:
    """Return an open context over an empty ledger and two declared folders."""
    ledger = open_ledger(shared_url)
    with ledger.write() as connection:
        for table in reversed(metadata.sorted_tables):
            if table is not ledger_info:
                connection.execute(table.delete())
        connection.execute(text("DELETE FROM archive_search"))
    ledger.close()
    settings = load_settings(state=tmp_path / "state", ledger_url=shared_url).model_copy(
        update={"sources": tmp_path / "sources.yaml"}
    )
    with open_context(settings, clock=frozen_clock, rng=rng) as opened:
        yield opened


@pytest.fixture
def office(tmp_path: Path, context: Context, frozen_clock: FrozenClock) -> Office:
    """Return the two folders, filled and scanned."""
    return Office(tmp_path, context, frozen_clock).fill()
