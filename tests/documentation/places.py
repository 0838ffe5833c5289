"""Where the commands of a page are typed: what has happened before, and what its words stand for.

Belongs here: a place for every page that has commands. Does not belong here: typing them
(`walk.py`).
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

from tests.documentation.walk import REPOSITORY, copy_project
from tests.support.emulator import running_emulator
from tests.support.messy_run import KEY, messy_run


@dataclass(frozen=True)
class Place:
    """A place to type commands in.

    Attributes:
        folder: a copy of the project.
        variables: settings and keys.
        words: what stands for the words that a reader replaces.
    """

    folder: Path
    variables: dict[str, str] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)


@contextmanager
def fresh(folder: Path) -> Iterator[Place]:
    """A clone in which nothing was processed."""
    yield Place(copy_project(folder / "tallybook"))


@contextmanager
def sample(folder: Path) -> Iterator[Place]:
    """A clone in which the sample manuals were processed."""
    project = copy_project(folder / "tallybook")
    done = subprocess.run(
        [project / ".venv" / "bin" / "tallybook", "run"],
        cwd=project,
        env={**os.environ, "TALLYBOOK_STATE": str(project / "data" / "state")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3, done.stdout + done.stderr
    yield Place(project)


@contextmanager
def messy(folder: Path) -> Iterator[Place]:
    """A clone whose state has everything that can go wrong, with its provider still there."""
    project = copy_project(folder / "tallybook")
    with running_emulator() as emulator, patch.dict(os.environ, emulator.environment()):
        with messy_run(emulator, folder / "shop") as run:
            settings = run.settings
        variables = emulator.environment() | {
            "TALLYBOOK_STATE": str(settings.state_folder),
            "TALLYBOOK_SOURCE": str(settings.source_folder),
            "TALLYBOOK_SOURCE_NAME": settings.source_name,
            "TALLYBOOK_SPECS": str(folder / "shop" / "specs"),
            "TALLYBOOK_VERSION": KEY,
            "TALLYBOOK_PARSER_WORKERS": "1",
        }
        yield Place(project, variables)


assert REPOSITORY.is_dir()
