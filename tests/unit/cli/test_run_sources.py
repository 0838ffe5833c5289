"""What `tallybook run` looks at before anything is made or started."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from pipeline_assets.cli.run import _for_workload, _look_at_sources
from resources.settings import Settings, load_settings
from resources.sources.declared import InvalidSources, declared_sources
from resources.sources.port import SourceEmpty, SourceMissing


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Return settings of a folder with a document, an empty one, a missing one and a queue."""
    for name in ("full", "empty", "events"):
        (tmp_path / name).mkdir()
    (tmp_path / "full" / "a.txt").write_text("text")
    folder = {"kind": "folder"}
    sources = {
        "full": {**folder, "path": "full", "workload": "full"},
        "empty": {**folder, "path": "empty", "workload": "empty"},
        "gone": {**folder, "path": "gone", "workload": "gone"},
        "queue": {
            "kind": "queue",
            "transport": "folder",
            "path": "events",
            "documents": {"kind": "folder", "path": "gone"},
            "workload": "full",
        },
    }
    (tmp_path / "sources.yaml").write_text(yaml.safe_dump({"sources": sources}))
    return load_settings(state=tmp_path / "state", sources=tmp_path / "sources.yaml")


def test_only_sources_of_the_workload_are_looked_at(settings: Settings) -> None:
    _look_at_sources(settings, "full")
    with pytest.raises(SourceEmpty, match="source empty"):
        _look_at_sources(settings, "empty")
    with pytest.raises(SourceMissing, match="source gone"):
        _look_at_sources(settings, "gone")
    assert not settings.state_folder.exists(), "nothing is made"


def test_declarations_that_cannot_be_used(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "sources.yaml").write_text("sources: {a: {kind: shelf}}")
    with pytest.raises(InvalidSources, match="a: Input tag 'shelf'"):
        _look_at_sources(settings, "full")


def test_a_folder_that_is_named_is_of_the_versions_workload(
    settings: Settings, tmp_path: Path
) -> None:
    assert _for_workload(settings, "letters") is settings
    given = load_settings(source=tmp_path / "full", source_name="given")
    (source,) = declared_sources(_for_workload(given, "letters"))
    assert (source.name, source.workload) == ("given", "letters")
