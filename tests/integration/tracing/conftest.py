"""The stages over a scripted provider, on each database, and a collector on loopback."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.recovery.support import Retries
from tests.integration.stages.conftest import context, settings, shared_url, shop
from tests.integration.stages.support import Shop
from tests.integration.tracing.support import CollectorServer, collector_server
from tests.support.clock import FrozenClock

__all__ = ["context", "settings", "shared_url", "shop"]


@pytest.fixture
def retries(shop: Shop, frozen_clock: FrozenClock, monkeypatch: pytest.MonkeyPatch) -> Retries:
    """Return a shop whose documents are answered by a script."""
    return Retries(shop, frozen_clock, monkeypatch)


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[CollectorServer]:
    """Return a running collector that the standard variables point at."""
    with collector_server() as server:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.url)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=open-sesame")
        monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "5")
        yield server
