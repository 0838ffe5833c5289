"""Every command that the documentation names exists, with the options that it is shown with."""

from __future__ import annotations

import re
import shlex
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from pipeline_assets.cli.app import app
from tests.documentation.blocks import (
    commands,
    inline_commands,
    loose_commands,
    pages,
)

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = pages(REPOSITORY)
_IDS = [str(page.relative_to(REPOSITORY)) for page in PAGES]
_TARGET = re.compile(r"^([a-z][a-z0-9-]*):", re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=_IDS)
def test_commands_stand_where_a_test_runs_them(page: Path) -> None:
    """In blocks of the language `console`, each behind a `$`."""
    assert loose_commands(page) == []


@pytest.mark.parametrize("page", PAGES, ids=_IDS)
def test_commands_and_options_exist(page: Path) -> None:
    named = [(command.line, command.text) for command in commands(page)] + inline_commands(page)
    wrong = [
        f"{page.name}:{line}: {text}: {problem}"
        for line, text in named
        for problem in _problems(text)
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("tallybook status --json", None),
        ("tallybook batch list|show|poll", None),
        ("VARIABLE=1 tallybook status > FILE", None),
        ("tallybook review", None),
        ("tallybook nonsense", "there is no command 'nonsense'"),
        ("tallybook batch nonsense", "there is no command 'nonsense'"),
        ("tallybook status --nonsense", "there is no option --nonsense"),
        ("make nonsense", "there is no target 'nonsense'"),
    ],
    ids=str,
)
def test_a_command_that_does_not_exist_is_found(text: str, problem: str | None) -> None:
    assert _problems(text) == ([] if problem is None else [problem])


@cache
def _tallybook() -> Any:
    return get_command(app)


@cache
def _targets() -> frozenset[str]:
    return frozenset(_TARGET.findall((REPOSITORY / "Makefile").read_text(encoding="utf-8")))


def _problems(text: str) -> list[str]:
    found: list[str] = []
    for piece in re.split(r"\s(?:&&|\|\||;|\|)\s", text):
        try:
            words = shlex.split(piece, comments=True)
        except ValueError as error:
            return [str(error)]
        while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
            words.pop(0)
        if words and words[0] == "make":
            targets = [word for word in words[1:] if "=" not in word]
            found += [f"there is no target {name!r}" for name in targets if name not in _targets()]
        elif words and words[0].endswith("tallybook"):
            found += _problems_of(words[1:])
    return found


def _problems_of(words: list[str]) -> list[str]:
    command: Any = _tallybook()
    words = list(words)
    while words and hasattr(command, "commands") and not words[0].startswith("-"):
        names = words.pop(0).split("|")
        missing = [name for name in names if name not in command.commands]
        if missing and not names[0].isupper():
            return [f"there is no command {name!r}" for name in missing]
        if missing:
            break
        command = command.commands[names[0]]
    known = {option for each in command.params for option in (*each.opts, *each.secondary_opts)}
    known |= {"--help"}
    given = [word.split("=")[0] for word in words if word.startswith("--")]
    return [f"there is no option {name}" for name in given if name not in known]
