"""A small folder of documents and three versions on each database, and a declared source."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline_assets.ingest import parse_documents
from resources.context import Context
from resources.settings import Settings
from tests.integration.automation.support import Desk
from tests.integration.publish import conftest as publishing
from tests.integration.replay.support import write_specs
from tests.integration.stages.support import InProcessPool
from tests.support.clock import FrozenClock

shared_url = publishing.shared_url
context = publishing.context


@pytest.fixture
def settings(tmp_path: Path, shared_url: str) -> Settings:
    """Return settings for an empty ledger, an empty folder, three versions and declarations."""
    given = publishing.empty_settings(tmp_path, shared_url, write_specs)
    return Settings.model_validate(
        given.model_dump(exclude={"source"}, exclude_unset=True)
        | {"sources": tmp_path / "sources.yaml"}
    )


@pytest.fixture
def desk(
    context: Context, frozen_clock: FrozenClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Desk:
    """Return the stages over an empty folder, the parser running in this process."""
    monkeypatch.setattr(parse_documents, "ParserPool", InProcessPool)
    found = Desk(tmp_path / "documents", context, frozen_clock)
    found.declare("shop")
    return found
