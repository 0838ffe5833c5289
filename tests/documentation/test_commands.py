"""Every command of the documentation runs, in the order in which its page shows it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.documentation.blocks import Command, commands, pages
from tests.documentation.expectations import SAYS
from tests.documentation.places import PLACES, Builder, place_of
from tests.documentation.programs.pick import picked
from tests.documentation.walk import Manners, Service, Typed, type_commands

REPOSITORY = Path(__file__).resolve().parents[2]

MANNERS = Manners(
    services=(
        Service("make ui", 3000, "PORT="),
        Service("make emulator", 8099, "PORT="),
        Service("tallybook metrics --serve", 9464, "--port "),
    ),
    keys={
        "tallybook review next": "q",
        "tallybook erase": "y\\n",
        "tallybook sources approve": "y\\n",
        "tallybook sources refuse": "y\\n",
    },
)

RUN_ELSEWHERE: dict[str, tuple[str, str]] = {
    "make test": (".ci/run", "make test"),
    "make providers-e2e": ("tests/documentation/test_long_commands.py", "providers.main("),
    "make adversarial": ("tests/documentation/test_long_commands.py", "adversarial.main("),
    "make realmodel": ("tests/integration/realmodel/test_walk.py", "from tests.realmodel.walk"),
    "make soak": ("tests/faults/test_simulation.py", "tests.faults.simulation"),
    "python -m tests.faults.simulation --mutations": (
        "tests/faults/test_simulation.py",
        "MUTATIONS",
    ),
}
"""Commands that take minutes → what runs their module with smaller figures, in these words."""

FINE: dict[str, set[int]] = {"tallybook": {0, 3}}
"""Exit statuses that a reader would take for success: 3 says that something waits."""

BROKEN_ON_PURPOSE = {
    ("runbook.md", "tallybook doctor"): {1},
    ("simulation.md", "python -m tests.faults.simulation --mutate"): {1},
}
"""Where something is broken, what finds it broken says so."""


def _with_commands() -> list[Path]:
    return [page for page in pages(REPOSITORY) if commands(page)]


def test_every_page_with_commands_has_a_place() -> None:
    assert [page.name for page in _with_commands() if page.name not in PLACES] == []


@pytest.mark.parametrize("name", RUN_ELSEWHERE)
def test_what_is_run_elsewhere_is(name: str) -> None:
    place, words = RUN_ELSEWHERE[name]
    assert words in (REPOSITORY / place).read_text(encoding="utf-8")
    shown = [each.text for page in pages(REPOSITORY) for each in commands(page)]
    assert [text for text in shown if _is_called(text, name)], "no page has it any more"


@pytest.fixture(scope="module")
def builder(tmp_path_factory: pytest.TempPathFactory) -> Builder:
    return Builder(tmp_path_factory.mktemp("places"))


@pytest.mark.slow
@pytest.mark.parametrize("page", _with_commands(), ids=lambda page: page.name)
def test_the_commands_of_a_page_run(page: Path, builder: Builder) -> None:
    todo = [command for command in commands(page) if not _is_run_elsewhere(command)]
    with place_of(page.name, builder) as place:
        typed = type_commands(todo, place.folder, place.variables, place.words, MANNERS)
    wrong = [_told(each) for each in typed if each.status not in _fine(each.command)]
    wrong += _not_said(page.name, typed)
    if wrong:
        pytest.fail("\n\n".join(wrong), pytrace=False)


def _not_said(page: str, typed: list[Typed]) -> list[str]:
    problems = []
    for begins, pattern in SAYS.get(page, {}).items():
        alike = [each for each in typed if each.command.text.startswith(begins)]
        meant = [each for each in alike if each.command.text == begins] or alike
        if not meant:
            problems.append(f"{page} has no command {begins!r} any more")
        elif not re.search(pattern, meant[-1].output, re.MULTILINE):
            problems.append(f"{_told(meant[-1])}\ndoes not say {pattern!r}")
    return problems


def _told(each: Typed) -> str:
    place = f"{each.command.page}:{each.command.line}"
    return f"{place}: {each.text}: {each.status}\n{each.output[-1_500:]}"


def _is_run_elsewhere(command: Command) -> bool:
    return any(_is_called(command.text, name) for name in RUN_ELSEWHERE)


def _is_called(text: str, name: str) -> bool:
    return text == name or text.startswith(f"{name} ")


def _fine(command: Command) -> set[int]:
    text = command.text.removeprefix(".venv/bin/")
    for (page, begins), statuses in BROKEN_ON_PURPOSE.items():
        if command.page == page and text.startswith(begins):
            return statuses
    return FINE.get(text.split()[0], {0})


@pytest.mark.parametrize(
    ("key", "patterns", "found"),
    [
        ("id", {}, "a"),
        ("id", {"state": "done*"}, "b"),
        ("id", {"state": "lost"}, None),
        ("deep", {}, "7"),
        ("none", {}, None),
    ],
    ids=["first", "pattern", "no object", "inside another", "null is no value"],
)
def test_a_figure_is_read_off_a_listing(key: str, patterns: dict, found: str | None) -> None:
    lines = [
        {"id": "a", "state": "open", "none": None},
        {"id": "b", "state": "done_with_errors", "more": [{"deep": 7}]},
    ]
    assert picked("\n".join(json.dumps(line) for line in lines), key, patterns) == found
