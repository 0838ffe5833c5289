"""A small folder of documents and three versions, on each database."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline_assets.ingest import parse_documents
from resources.context import Context
from resources.settings import Settings
from tests.integration.publish import conftest as publishing
from tests.integration.replay.support import Works, write_specs
from tests.integration.stages.support import InProcessPool
from tests.support.clock import FrozenClock

shared_url = publishing.shared_url
context = publishing.context


@pytest.fixture
def settings(tmp_path: Path, shared_url: str) -> Settings:
    """Return settings for an empty ledger, an empty folder and the specs of three versions."""
    return publishing.empty_settings(tmp_path, shared_url, write_specs)


@pytest.fixture
def works(context: Context, frozen_clock: FrozenClock, monkeypatch: pytest.MonkeyPatch) -> Works:
    """Return the stages over an empty folder, the parser running in this process."""
    monkeypatch.setattr(parse_documents, "ParserPool", InProcessPool)
    return Works(context.settings.source_folder, context, frozen_clock)
