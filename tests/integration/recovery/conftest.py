"""The stages' own fixtures, and what of this folder runs with the slow tests.

What depends on the database is shown on both; of each test the SQLite one is among the fast.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.stages.conftest import context, settings, shared_url, shop

__all__ = ["context", "settings", "shared_url", "shop"]
HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests on PostgreSQL as slow: together they take a minute."""
    for item in items:
        if item.path.parent == HERE and "postgresql" in item.name:
            item.add_marker(pytest.mark.slow)
