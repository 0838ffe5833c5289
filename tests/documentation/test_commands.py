"""Every command of the documentation runs, in the order in which its page shows it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.documentation.blocks import Command, commands, pages
from tests.documentation.places import Place, fresh, messy, sample
from tests.documentation.walk import type_commands

REPOSITORY = Path(__file__).resolve().parents[2]

PLACES: dict[str, Callable[[Path], AbstractContextManager[Place]]] = {}
"""Page → the place that its commands are typed in."""

RUN_ELSEWHERE: dict[str, str] = {
    "make test": ".ci/run",
}
"""Commands that take minutes → what runs them, or their module with smaller figures."""

FINE: dict[str, set[int]] = {
    "tallybook": {0, 3},
    "make": {0},
}
"""Exit statuses that a reader would take for success: 3 says that something waits."""


def _with_commands() -> list[Path]:
    return [page for page in pages(REPOSITORY) if commands(page)]


def test_every_page_with_commands_has_a_place() -> None:
    assert sorted(page.name for page in _with_commands()) == sorted(PLACES)


def test_what_is_run_elsewhere_is() -> None:
    missing = [name for name, place in RUN_ELSEWHERE.items() if not (REPOSITORY / place).exists()]
    assert missing == []


@pytest.mark.slow
@pytest.mark.parametrize("page", _with_commands(), ids=lambda page: page.name)
def test_the_commands_of_a_page_run(page: Path, tmp_path: Path) -> None:
    todo = [command for command in commands(page) if not _is_run_elsewhere(command)]
    with PLACES[page.name](tmp_path) as place:
        typed = type_commands(todo, place.folder, place.variables, place.words)
    wrong = [
        f"{each.command.page}:{each.command.line}: {each.text}: {each.status}\n{each.output[-800:]}"
        for each in typed
        if each.status not in _fine(each.text)
    ]
    assert wrong == [], "\n".join(wrong)


def _is_run_elsewhere(command: Command) -> bool:
    return any(
        command.text == name or command.text.startswith(f"{name} ") for name in RUN_ELSEWHERE
    )


def _fine(text: str) -> set[int]:
    program = text.removeprefix(".venv/bin/").split()[0]
    return FINE.get(program, {0})


_ = (fresh, messy, sample)
