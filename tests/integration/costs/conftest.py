"""An open context on each database; what runs on PostgreSQL is among the slow tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.stages.conftest import context, settings, shared_url, shop

__all__ = ["context", "settings", "shared_url", "shop"]
HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests on PostgreSQL as slow; of each, the SQLite one is among the fast."""
    for item in items:
        if item.path.parent == HERE and "postgresql" in item.name:
            item.add_marker(pytest.mark.slow)
