"""Typing what a page of the documentation tells to type, in a place that is made for it.

Belongs here: a copy of the project, a shell that runs a page's commands in their order, and what
each of them came to. Does not belong here: what places there are (`places.py`).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.documentation.blocks import Command

REPOSITORY = Path(__file__).resolve().parents[2]
COPIED = (
    *("Makefile", "README.md", "pyproject.toml", "sources.yaml", "dagster.yaml", "workspace.yaml"),
    *("partitions", "resources", "pipeline_assets", "scripts", "deploy", "docs"),
    *("requirements.txt", "requirements-dev.txt"),
)
PAGE_SECONDS = 420
_MARK = "@@tallybook-documentation@@"


@dataclass(frozen=True)
class Typed:
    """A command that was typed, and what came of it."""

    command: Command
    text: str
    status: int
    output: str


def copy_project(folder: Path) -> Path:
    """The project as a clone has it, with the tests' virtual environment and no state."""
    folder.mkdir(parents=True)
    for name in COPIED:
        source = REPOSITORY / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, folder / name)
    (folder / "data").mkdir()
    for path in (REPOSITORY / "data").iterdir():
        if path.name != "state":
            (shutil.copytree if path.is_dir() else shutil.copy2)(path, folder / "data" / path.name)
    (folder / "tests").symlink_to(REPOSITORY / "tests")
    binaries = folder / ".venv" / "bin"
    binaries.mkdir(parents=True)
    _write_program(binaries / "tallybook", folder, "-m pipeline_assets.cli.app")
    _write_program(binaries / "python", folder, "")
    for stamp in (".installed-runtime", ".installed-dev", "pyvenv.cfg"):
        # Behind everything that they are made from: make then has nothing to install.
        (folder / ".venv" / stamp).touch()
    return folder


def _write_program(path: Path, folder: Path, module: str) -> None:
    path.write_text(
        f'#!/bin/sh\nexport PYTHONPATH="{folder}" PYTHONWARNINGS=ignore PYTHONDONTWRITEBYTECODE=1\n'
        f'exec "{sys.executable}" {module} "$@"\n'
    )
    path.chmod(0o755)


def type_commands(
    page: list[Command], folder: Path, variables: Mapping[str, str], words: Mapping[str, str]
) -> list[Typed]:
    """Type commands one after the other into one shell.

    Args:
        page: the commands.
        folder: a copy of the project, where the shell stands.
        variables: of the environment; the settings and keys of whoever runs this are left out.
        words: what a reader would put in the place of a word, such as DOCUMENT.

    Raises:
        subprocess.TimeoutExpired: the page took longer than `PAGE_SECONDS`.
    """
    texts = [_put_in(command.text, words) for command in page]
    script = "\n".join(
        f"{text}\nprintf '\\n{_MARK} {number} %d\\n' $?" for number, text in enumerate(texts)
    )
    done = subprocess.run(
        ["bash", "-s"],
        cwd=folder,
        env=_environment(folder) | dict(variables),
        input=script,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PAGE_SECONDS,
    )
    pieces = re.split(rf"\n{_MARK} (\d+) (\d+)\n", done.stdout)
    outputs, numbers, statuses = pieces[0::3], pieces[1::3], pieces[2::3]
    assert [int(number) for number in numbers] == list(range(len(page))), done.stdout[-2_000:]
    return [
        Typed(command, text, int(status), output.strip())
        for command, text, status, output in zip(page, texts, statuses, outputs, strict=False)
    ]


def _environment(folder: Path) -> dict[str, str]:
    private = ("TALLYBOOK_", "DAGSTER_", "OPENAI_", "ANTHROPIC_", "GEMINI_", "GOOGLE_", "AWS_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(private)}
    return kept | {
        "PATH": f"{folder / '.venv' / 'bin'}:{kept['PATH']}",
        "HOME": str(folder),
        "COLUMNS": "100",
    }


def _put_in(text: str, words: Mapping[str, str]) -> str:
    for word, meant in words.items():
        text = re.sub(rf"(?<![\w/]){re.escape(word)}(?!\w)", lambda _, new=meant: new, text)
    return text
