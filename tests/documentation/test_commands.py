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
    },
)

RUN_ELSEWHERE: dict[str, str] = {
    "make test": ".ci/run",
    "make providers-e2e": "tests/e2e/providers.py",
    "make replay-e2e": "tests/e2e/replays.py",
    "make adversarial": "tests/acceptance/test_adversarial.py",
    "make realmodel": "tests/integration/realmodel/test_walk.py",
    "make soak": "tests/faults/test_simulation.py",
    "python -m tests.faults.simulation --mutations": "tests/faults/test_simulation.py",
    "make kill-test": "tests/faults/test_kill_series.py",
    "make audit-tamper": "tests/faults/test_tampering.py",
}
"""Commands that take minutes → what runs them, or their module with smaller figures."""

FINE: dict[str, set[int]] = {"tallybook": {0, 3}}
"""Exit statuses that a reader would take for success: 3 says that something waits."""

BROKEN_ON_PURPOSE = {("runbook.md", "tallybook doctor"): {1}}
"""Where the place is broken, what finds it broken says so."""


def _with_commands() -> list[Path]:
    return [page for page in pages(REPOSITORY) if commands(page)]


def test_every_page_with_commands_has_a_place() -> None:
    assert [page.name for page in _with_commands() if page.name not in PLACES] == []


def test_what_is_run_elsewhere_is() -> None:
    missing = [name for name, place in RUN_ELSEWHERE.items() if not (REPOSITORY / place).exists()]
    assert missing == []


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
    said = {each.command.text: each for each in typed}
    wanted = SAYS.get(page, {})
    missing = [f"{page} has no command {text!r} any more" for text in wanted if text not in said]
    return missing + [
        f"{_told(said[text])}\ndoes not say {pattern!r}"
        for text, pattern in wanted.items()
        if text in said and not re.search(pattern, said[text].output, re.MULTILINE)
    ]


def _told(each: Typed) -> str:
    place = f"{each.command.page}:{each.command.line}"
    return f"{place}: {each.text}: {each.status}\n{each.output[-1_500:]}"


def _is_run_elsewhere(command: Command) -> bool:
    return any(
        command.text == name or command.text.startswith(f"{name} ") for name in RUN_ELSEWHERE
    )


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
