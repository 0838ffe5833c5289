"""Rules over the text of every file of the repository, which no linter knows."""

from __future__ import annotations

import ast
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGES = ("partitions", "resources", "pipeline_assets")
CODE_FOLDERS = (*PACKAGES, "tests", "scripts")
SKIPPED_FOLDERS = frozenset(
    {".git", ".venv", "__pycache__", "build", "dist", "node_modules", "state"}
)
SKIPPED_SUFFIXES = (".egg-info", "_cache")
TEXT_SUFFIXES = frozenset(
    {
        "",
        ".cfg",
        ".css",
        ".html",
        ".ini",
        ".j2",
        ".js",
        ".json",
        ".mako",
        ".md",
        ".py",
        ".sh",
        ".sql",
        ".toml",
        ".txt",
        ".yaml",
        ".yml",
    }
)


class Rule(NamedTuple):
    """What no file may say, and why."""

    pattern: re.Pattern[str]
    reason: str


# Written in pieces, so that this file keeps its own rules.
RULES = {
    "registry": Rule(
        re.compile(
            r"\b(test\.)?py" + r"pi\.(org|python)|python" + r"hosted\.|registry\.np" + "mjs"
        ),
        "a package index is the reader's choice: pins carry hashes, not addresses",
    ),
    "machine-path": Rule(
        re.compile(r"(?<![\w.~$}/-])/(wo" + r"rk|ro" + r"ot)/[\w.]"),
        "a path of one machine means nothing on another",
    ),
    "author": Rule(
        re.compile(
            r"(?<!Azure )(?<!Vertex )(?<!Google )\bA" + r"I\b|\bassis" + r"tant (wrote|made|did)"
        ),
        "the text speaks of the project, not of who wrote it",
    ),
    "tracker": Rule(
        re.compile(r"\bissues? #?\d{1,2}\b", re.IGNORECASE),
        "a reason is written down where it is needed, not by number",
    ),
}


READ_BY_DAGSTER = frozenset(
    {"asset.py", "checks.py", "context_resource.py", "repair_job.py", "stuck_job.py"}
)
"""Dagster reads their annotations as objects, and the import would leave it only their text."""
SENSORS = "pipeline_assets/automation/sensors.py"
"""The one other file of which that is true."""


OWN_FIELDS = re.compile(r"\Atitle\Z|product_identifiers")
"""Text that names a field of the workload of manuals; no other workload has those fields."""
WORKLOADS = "pipeline_assets/workloads"
_SEARCH = "a column of the search, or the role that leads to it, which fields of any workload have"
_SCHEMA = "a word of JSON Schema"
MAY_NAME_FIELDS = {
    "resources/ledger/archive.py": _SEARCH,
    "resources/ledger/archive_content.py": _SEARCH,
    "resources/ledger/postgres.py": _SEARCH,
    "resources/ledger/sqlite.py": _SEARCH,
    f"{WORKLOADS}/declaration.py": _SEARCH,
    f"{WORKLOADS}/fields.py": _SEARCH,
    f"{WORKLOADS}/workload.py": _SEARCH,
    f"{WORKLOADS}/rules/titles_shared.py": _SEARCH,
    "resources/providers/gemini/schema.py": _SCHEMA,
    "pipeline_assets/prompting/request_maker.py": _SCHEMA,
    f"{WORKLOADS}/foreign_matter.py": "words of orders to a model, as documents print them",
}
"""Modules outside a workload's folder that may use such text all the same, and why."""


def repository_files() -> Iterator[Path]:
    for folder, folders, names in os.walk(REPOSITORY):
        folders[:] = [
            name
            for name in folders
            if name not in SKIPPED_FOLDERS
            and not name.endswith(SKIPPED_SUFFIXES)
            and not name.startswith((".tmp_", ".hypothesis"))
        ]
        yield from (Path(folder, name) for name in names)


def text_files() -> Iterator[tuple[str, str]]:
    """Give the name and the text of every file that people read."""
    for path in repository_files():
        relative = path.relative_to(REPOSITORY).as_posix()
        # A file without an ending is text at the root (Makefile, LICENSE) and in .ci.
        if path.suffix in TEXT_SUFFIXES and not relative.startswith("data/manuals/"):
            yield relative, path.read_text(encoding="utf-8", errors="replace")


def modules() -> list[Path]:
    return sorted(path for folder in CODE_FOLDERS for path in (REPOSITORY / folder).rglob("*.py"))


def fault_of_module(source: str, name: str = "module.py") -> str | None:
    """Return what a module's opening lacks, or None."""
    tree = ast.parse(source)
    if ast.get_docstring(tree) is None:
        return "has no docstring"
    if (
        len(tree.body) == 1
        or name == SENSORS
        or name.rsplit("/", maxsplit=1)[-1] in READ_BY_DAGSTER
    ):
        return None
    second = tree.body[1]
    names = [alias.name for alias in second.names] if isinstance(second, ast.ImportFrom) else []
    if names != ["annotations"]:
        return "does not start with `from __future__ import annotations` after its docstring"
    return None


def raises_not_implemented(source: str) -> list[int]:
    """Return the lines that raise `NotImplementedError`."""
    lines = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Raise) and node.exc is not None:
            raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            if isinstance(raised, ast.Name) and raised.id == "NotImplementedError":
                lines.append(node.lineno)
    return lines


def is_of_a_workload(path: Path) -> bool:
    """Tell whether a module is in a workload's own folder."""
    workloads = REPOSITORY / WORKLOADS
    return workloads in path.parents and any(
        folder.parent == workloads and (folder / "workload.py").is_file() for folder in path.parents
    )


def named_fields(source: str) -> list[str]:
    """Return the string literals, but docstrings, that name a field of one workload."""
    tree = ast.parse(source)
    told = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return [
        f"{node.lineno}: {node.value[:40]}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in told
        and OWN_FIELDS.search(node.value)
    ]


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_no_file_says(rule: Rule) -> None:
    found = [
        f"{name}:{text.count(chr(10), 0, match.start()) + 1}: {match[0]}"
        for name, text in text_files()
        for match in rule.pattern.finditer(text)
    ]
    assert not found, rule.reason


@pytest.mark.parametrize(
    ("rule", "text", "forbidden"),
    [
        ("registry", "https://py" + "pi.org/simple", True),
        ("registry", "files.python" + "hosted.org", True),
        ("registry", "pip install", False),
        ("machine-path", "see /wo" + "rk/main/x", True),
        ("machine-path", "in '/ro" + "ot/.cache'", True),
        ("machine-path", "net/wo" + "rk/main", False),
        ("machine-path", "$HOME/wo" + "rk/x", False),
        ("author", "made with A" + "I help", True),
        ("author", "Vertex A" + "I", False),
        ("author", "OpenA" + "I", False),
        ("tracker", "see iss" + "ue 12", True),
        ("tracker", "dagster iss" + "ue #33958", False),
    ],
)
def test_rules_tell_the_cases_apart(rule: str, text: str, forbidden: bool) -> None:
    assert bool(RULES[rule].pattern.search(text)) is forbidden


def test_the_walk_sees_the_repository() -> None:
    names = {name for name, _ in text_files()}
    assert {"Makefile", "pyproject.toml", ".ci/run", "tests/conftest.py"} <= names
    assert not any(name.startswith((".venv/", ".git/", "data/state/")) for name in names)


@pytest.mark.parametrize(
    "path", modules(), ids=lambda path: path.relative_to(REPOSITORY).as_posix()
)
def test_module_opens_as_agreed(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    assert fault_of_module(source, path.relative_to(REPOSITORY).as_posix()) is None
    assert raises_not_implemented(source) == []


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        pytest.param("import os", "docstring", id="no-docstring"),
        pytest.param("", "docstring", id="empty"),
        pytest.param('"""Told."""\nimport os', "__future__", id="no-future"),
        pytest.param('"""Told."""', None, id="docstring-only"),
        pytest.param('"""Told."""\nfrom __future__ import annotations\nimport os', None, id="ok"),
    ],
)
def test_fault_of_module(source: str, complaint: str | None) -> None:
    fault = fault_of_module(source)
    assert fault is None if complaint is None else complaint in (fault or "")


@pytest.mark.parametrize(
    ("name", "allowed"),
    [
        ("pipeline_assets/collect/asset.py", True),
        (SENSORS, True),
        ("pipeline_assets/automation/jobs.py", False),
        ("resources/sensors.py", False),
    ],
)
def test_only_what_dagster_reads_goes_without_the_import(name: str, allowed: bool) -> None:
    assert (fault_of_module('"""Told."""\nimport os', name) is None) is allowed


def test_no_module_outside_a_workload_knows_its_fields() -> None:
    """A workload is added without a change outside its folder."""
    naming = {
        path.relative_to(REPOSITORY).as_posix(): found
        for path in modules()
        if path.relative_to(REPOSITORY).parts[0] in PACKAGES
        and not is_of_a_workload(path)
        and (found := named_fields(path.read_text(encoding="utf-8")))
    }
    assert {name: naming[name] for name in naming if name not in MAY_NAME_FIELDS} == {}
    assert set(MAY_NAME_FIELDS) <= set(naming), "whoever needs no leave any more has none"


@pytest.mark.parametrize(
    ("source", "naming"),
    [
        ('content["title"]', True),
        ('FIELDS = ("product_identifiers", "x")', True),
        ('f"{row} has no product_identifiers"', True),
        ('table(title="Hits")', False),
        ('"the title of a page"', False),
        ('"""Says what product_identifiers are."""', False),
    ],
)
def test_a_named_field_is_found(source: str, naming: bool) -> None:
    assert bool(named_fields(source)) is naming


def test_the_folder_of_a_workload_is_its_own() -> None:
    folder = REPOSITORY / WORKLOADS
    assert is_of_a_workload(folder / "equipment_manuals" / "rules" / "frame.py")
    assert not is_of_a_workload(folder / "rules" / "titles_shared.py")
    assert not is_of_a_workload(folder / "fields.py")


def test_not_implemented_is_found() -> None:
    assert raises_not_implemented("def f():\n    raise NotImplementedError('later')") == [2]
    assert raises_not_implemented("def f():\n    raise NotImplementedError") == [2]
    assert raises_not_implemented("raise ValueError") == []


def test_no_code_names_what_is_in_the_corpus(dev_corpus: Path) -> None:
    """A rule tuned to one maker or product would score well here and nowhere else."""
    collections = {
        path.name
        for path in (dev_corpus / "files").iterdir()
        if path.is_dir() and path.name not in {"adversarial", "misc"}
    }
    identifiers: set[str] = set()
    with (dev_corpus / "labels.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            identifiers.update(json.loads(line).get("product_identifiers") or [])
    telling = {
        name
        for name in collections | identifiers
        if len(name) >= 5 and (name in collections or re.search(r"\d", name))
    }
    assert len(telling) > 20
    pattern = re.compile(
        r"(?<!\w)(" + "|".join(re.escape(name) for name in sorted(telling)) + r")(?!\w)",
        re.IGNORECASE,
    )
    found = [
        f"{name}: {match[0]}" for name, text in text_files() for match in pattern.finditer(text)
    ]
    assert found == []
