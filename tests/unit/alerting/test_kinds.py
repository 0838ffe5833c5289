"""The table of kinds against the code that raises them, and its remedies against the commands."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator, Set
from pathlib import Path

import pytest
from typer.main import get_command

from pipeline_assets.alerting.kinds import KINDS, SEVERITIES, kind_of, remedy_of
from pipeline_assets.automation import source_sensor, stuck_work
from pipeline_assets.provider_jobs import polling
from pipeline_assets.recovery import dead_letter_alerts, holds

PACKAGES = ("pipeline_assets", "resources")
TABLE = "pipeline_assets/alerting/kinds.py"


def _of_polling() -> set[str | None]:
    return raised_kinds(ast.parse(inspect.getsource(polling)))


OPEN_PLACES: dict[str, Callable[[], Set[str | None]]] = {
    "pipeline_assets/provider_jobs/monitor.py": _of_polling,
    "pipeline_assets/recovery/holds.py": lambda: holds.ALERTED,
    "pipeline_assets/recovery/dead_letter_alerts.py": lambda: {
        dead_letter_alerts.MANY,
        dead_letter_alerts.AGING,
    },
    "pipeline_assets/automation/told.py": lambda: {
        source_sensor.UNREADABLE,
        stuck_work.STUCK,
        stuck_work.REVIEWS,
        stuck_work.SILENT,
    },
}
"""Places that raise a kind that a variable holds, and the kinds that it may hold there."""


def trees(repository: Path) -> Iterator[tuple[str, ast.Module]]:
    for package in PACKAGES:
        for path in sorted((repository / package).rglob("*.py")):
            yield (
                path.relative_to(repository).as_posix(),
                ast.parse(path.read_text(encoding="utf-8")),
            )


def constants(tree: ast.Module) -> dict[str, str]:
    """Names that a module gives to texts."""
    return {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def raised_kinds(tree: ast.Module) -> set[str | None]:
    """Kinds that a module raises, or lists in a dictionary `alerts`; None for an open one."""
    names = constants(tree)
    found: set[str | None] = set()
    for node in ast.walk(tree):
        kind: ast.expr | None = None
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            called = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
            if called == "raise_alert":
                kind = next((word.value for word in node.keywords if word.arg == "kind"), None)
                kind = node.args[1] if kind is None else kind
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            target = node.targets[0]
            if isinstance(target.value, ast.Name) and target.value.id == "alerts":
                kind = target.slice
        if isinstance(kind, ast.Constant) and isinstance(kind.value, str):
            found.add(kind.value)
        elif isinstance(kind, ast.Name):
            found.add(names.get(kind.id))
        elif kind is not None:
            found.add(None)
    return found


@pytest.mark.parametrize(
    ("source", "kinds"),
    [
        ('raise_alert(c, "a", s, m, at)', {"a"}),
        ('K = "b"\ndef f():\n    alerts_module.raise_alert(c, K, s, m, at)', {"b"}),
        ('raise_alert(c, kind="c", subject=s, message=m, at=at)', {"c"}),
        ('alerts["d"] = "text"', {"d"}),
        ("for k in ks:\n    raise_alert(c, k, s, m, at)", {None}),
        ("raise_alert(c, f(), s, m, at)", {None}),
        ("other(c, 'x')", set()),
    ],
)
def test_the_walk_finds(source: str, kinds: set[str | None]) -> None:
    assert raised_kinds(ast.parse(source)) == kinds


def test_every_kind_that_the_code_raises_is_in_the_table(repository: Path) -> None:
    raised: dict[str, str] = {}
    open_places: set[str] = set()
    for name, tree in trees(repository):
        for kind in raised_kinds(tree):
            if kind is None:
                open_places.add(name)
            else:
                raised[kind] = name
    assert len(raised) >= 8
    assert {kind: name for kind, name in raised.items() if kind not in KINDS} == {}
    # Any other place would hide its kinds from here.
    assert open_places <= OPEN_PLACES.keys()


@pytest.mark.parametrize("place", OPEN_PLACES)
def test_what_is_raised_by_a_variable_is_in_the_table(place: str) -> None:
    kinds = OPEN_PLACES[place]()
    assert kinds
    assert kinds - set(KINDS) == set()


def test_no_kind_of_the_table_is_unheard_of(repository: Path) -> None:
    said = {
        node.value
        for name, tree in trees(repository)
        if name != TABLE
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert set(KINDS) - said == set()


@pytest.mark.parametrize("kind", KINDS)
def test_an_entry_is_whole(kind: str) -> None:
    entry = KINDS[kind]
    assert len(kind) <= 32
    assert entry.severity in SEVERITIES
    assert entry.meaning.endswith(".")
    assert entry.meaning.count(". ") == 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_remedy_is_a_command_that_exists(kind: str) -> None:
    from pipeline_assets.cli.app import app

    program, *words = KINDS[kind].remedy.split()
    assert program == "tallybook"
    command = get_command(app)
    for word in words:
        subcommands = getattr(command, "commands", None)
        if subcommands is None:
            break
        if word.startswith("--"):  # a group that does something by itself
            assert getattr(command, "invoke_without_command", False)
            break
        assert word in subcommands
        command = subcommands[word]


def test_a_kind_without_an_entry_is_told_all_the_same() -> None:
    assert kind_of("never_heard_of").severity == "warn"


@pytest.mark.parametrize(
    ("kind", "subject", "remedy"),
    [
        ("unreachable", "job-1", "tallybook batch show job-1"),
        ("unreachable", "x; rm -r {version}", "tallybook batch show 'x; rm -r {version}'"),
        ("run_failed", "v-1/process_version", "tallybook status --version v-1"),
        ("breaker", "v-1", "tallybook status --version v-1"),
        ("late_commit", "lease", "tallybook doctor"),
    ],
)
def test_remedies_are_ready_for_a_shell(kind: str, subject: str, remedy: str) -> None:
    assert remedy_of(kind, subject) == remedy
