"""The stages' own fixtures."""

from __future__ import annotations

from tests.integration.stages.conftest import context, settings, shared_url, shop

__all__ = ["context", "settings", "shared_url", "shop"]
