"""A small archive to make pilots for."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline_assets.ingest import parse_documents
from resources.settings import load_settings
from tests.integration.pilot.support import InProcess, PilotPlace
from tests.integration.stages.support import InProcessPool, manual
from tests.support.clock import FrozenClock


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PilotPlace:
    """Return a place with twelve manuals, a doubtful text, and one that cannot be read."""
    monkeypatch.setattr(parse_documents, "ParserPool", InProcessPool)
    source = tmp_path / "documents"
    source.mkdir()
    for number in range(12):
        text = manual("Circulation Pump", f"WP-{100 + number}")
        (source / f"d{number}.txt").write_text(text)
    (source / "doubtful.txt").write_text(
        "the drum should be cleaned after every use because dust that stays on it burns the wood. "
        "a soft brush is enough. after cleaning turn the drum by hand and look for cracks.\n"
    )
    (source / "noise.pdf").write_bytes(b"%PDF-1.7 and then nothing that is one")
    settings = load_settings(
        state=tmp_path / "state", source=source, source_name="shop", parser_workers=1
    )
    return PilotPlace(settings, InProcess(FrozenClock()))
