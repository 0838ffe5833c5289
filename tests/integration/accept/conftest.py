"""The fixtures of judged records, on each database.

What depends on the database is shown on both; of each test the SQLite one is among the fast.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.quality.conftest import judged
from tests.integration.stages.conftest import context, settings, shared_url

__all__ = ["context", "judged", "settings", "shared_url"]
HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests on PostgreSQL as slow."""
    for item in items:
        if item.path.parent == HERE and "postgresql" in item.name:
            item.add_marker(pytest.mark.slow)
