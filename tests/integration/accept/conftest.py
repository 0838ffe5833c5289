"""The fixtures of judged records, on each database."""

from __future__ import annotations

from tests.integration.quality.conftest import judged
from tests.integration.stages.conftest import context, settings, shared_url

__all__ = ["context", "judged", "settings", "shared_url"]
