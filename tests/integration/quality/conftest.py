"""The stages' own fixtures, and a version whose judged records are made of a table."""

from __future__ import annotations

import pytest

from resources.context import Context
from tests.integration.quality.support import Judged
from tests.integration.stages.conftest import context, settings, shared_url, shop

__all__ = ["context", "settings", "shared_url", "shop"]


@pytest.fixture
def judged(context: Context) -> Judged:
    """Return a version without records."""
    return Judged(context)
