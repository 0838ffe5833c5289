"""A folder of three documents, settings for it, and what a whole run on it leaves."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from resources.settings import Settings
from tests.support.materialise import Finished, finish
from tests.support.small_shop import make_documents, settings_for


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    """Return a folder: one document to publish, one to doubt, one to exclude."""
    return make_documents(tmp_path / "documents")


@pytest.fixture
def settings(tmp_path: Path, documents: Path) -> Settings:
    """Return settings for that folder and a state folder of its own."""
    return settings_for(tmp_path)


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """Return one whole run on the three documents; its state is copied, never used itself."""
    return finish(tmp_path_factory.mktemp("finished"))


@pytest.fixture
def after_a_run(finished: Finished, tmp_path: Path) -> Settings:
    """Return settings for a copy of what that run left; the source has moved with it."""
    # With their times: a file that looks changed would be read again.
    shutil.copytree(finished.folder, tmp_path / "copy", copy_function=shutil.copy2)
    return settings_for(tmp_path / "copy")
