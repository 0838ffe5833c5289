"""The stages' own fixtures, and a version whose judged records are made of a table.

What depends on the database is shown on both; of each test the SQLite one is among the fast.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from resources.context import Context
from tests.integration.quality.support import Judged
from tests.integration.stages.conftest import context, settings, shared_url, shop

__all__ = ["context", "settings", "shared_url", "shop"]
HERE = Path(__file__).parent


@pytest.fixture
def judged(context: Context) -> Judged:
    """Return a version without records."""
    return Judged(context)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests on PostgreSQL as slow."""
    for item in items:
        if item.path.parent == HERE and "postgresql" in item.name:
            item.add_marker(pytest.mark.slow)
