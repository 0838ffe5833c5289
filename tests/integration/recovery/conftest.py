"""The stages' own fixtures: an open context on each database, and a shop to walk through."""

from __future__ import annotations

from tests.integration.stages.conftest import context, settings, shared_url, shop

__all__ = ["context", "settings", "shared_url", "shop"]
