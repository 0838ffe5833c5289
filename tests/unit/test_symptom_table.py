"""Every reported symptom is in the table once, and each test that the table names exists."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TABLE = Path("docs") / "symptoms.md"
SYMPTOMS = 35
_ROW = re.compile(r"^\| (\d+) \| ([^|]+) \| ([^|]+) \| ([^|]*) \|$", re.MULTILINE)
_TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)(?:\[([^]`]+)\])?`")
LEAST_WORDS = 3


class NotUnderstood(AssertionError):
    """A parametrization in a form that this file cannot read; write it another way."""


class TestModule:
    """The tests of a file by its syntax alone, with the ids of their cases."""

    __test__ = False

    def __init__(self, source: str) -> None:
        tree = ast.parse(source)
        self._assigned: dict[str, ast.expr] = {}
        self.functions: dict[str, ast.FunctionDef] = {}
        for node in tree.body:
            if isinstance(node, ast.FunctionDef):
                self.functions[node.name] = node
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                if node.value is not None:
                    self._assigned[node.target.id] = node.value
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                self._assigned[node.targets[0].id] = node.value

    def ids(self, name: str) -> set[str]:
        """The ids of a test's own parametrization; empty for a test without."""
        found = [
            list(self._ids_of(call))
            for call in self.functions[name].decorator_list
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "pytest.mark.parametrize"
        ]
        # What stands nearest to the function comes first.
        return {"-".join(one) for one in itertools.product(*reversed(found))} if found else set()

    def _ids_of(self, call: ast.Call) -> Iterator[str]:
        named = {keyword.arg: keyword.value for keyword in call.keywords}
        yield from self._texts(named.get("ids", call.args[1]))

    def _texts(self, node: ast.expr) -> Iterator[str]:
        if isinstance(node, ast.Name) and node.id in self._assigned:
            yield from self._texts(self._assigned[node.id])
        elif isinstance(node, ast.Dict):
            for key in node.keys:
                if key is None:
                    raise NotUnderstood(ast.unparse(node))
                yield self._text(key)
        elif isinstance(node, (ast.List, ast.Tuple)):
            yield from map(self._text, node.elts)
        elif isinstance(node, ast.ListComp) and len(node.generators) == 1:
            yield from self._texts(node.generators[0].iter)
        else:
            raise NotUnderstood(ast.unparse(node))

    def _text(self, node: ast.expr) -> str:
        if isinstance(node, ast.Constant):
            return str(node.value)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.param":
            named = {keyword.arg: keyword.value for keyword in node.keywords}
            return self._text(named.get("id", node.args[0]))
        raise NotUnderstood(ast.unparse(node))


def rows_of(text: str) -> list[tuple[int, str, str, list[tuple[str, str, str]]]]:
    """Number, symptom, what is done, and (file, test, case) of each row."""
    return [
        (int(number), symptom, done, _TEST.findall(shown))
        for number, symptom, done, shown in _ROW.findall(text)
    ]


def problems_of(text: str, repository: Path) -> list[str]:
    """What is wrong with the table; empty where nothing is."""
    rows = rows_of(text)
    found = []
    if [number for number, *_ in rows] != list(range(1, SYMPTOMS + 1)):
        found.append(f"numbers are {[number for number, *_ in rows]}")
    for number, symptom, done, tests in rows:
        if min(len(symptom.split()), len(done.split())) < LEAST_WORDS:
            found.append(f"{number} says too little")
        if not tests and "does not apply: " not in done:
            found.append(f"{number} names no test and no reason")
        for test in tests:
            found += [f"{number}: {problem}" for problem in _problems_of_test(*test, repository)]
    return found


def _problems_of_test(file: str, name: str, case: str, repository: Path) -> Iterator[str]:
    path = repository / file
    if not path.is_file():
        yield f"there is no {file}"
        return
    module = TestModule(path.read_text(encoding="utf-8"))
    if name not in module.functions:
        yield f"there is no {name} in {file}"
    elif case and case not in module.ids(name):
        yield f"{name} has no case {case}: {sorted(module.ids(name))}"


def test_table(repository: Path) -> None:
    text = (repository / TABLE).read_text(encoding="utf-8")
    assert problems_of(text, repository) == []


def test_planted_symptoms_are_in_the_table(repository: Path) -> None:
    """A case that the table does not name is one that nobody finds."""
    named = {
        (name, case)
        for *_, tests in rows_of((repository / TABLE).read_text(encoding="utf-8"))
        for _, name, case in tests
    }
    path = repository / "tests" / "faults" / "test_symptoms.py"
    module = TestModule(path.read_text(encoding="utf-8"))
    planted = {
        (name, case)
        for name in module.functions
        if name.startswith("test_")
        for case in module.ids(name) or {""}
    }
    assert planted - named == {("test_symptom", "unknown-status")}


MODULE = """
NAMES = {"one": 1, "two": 2}
KINDS: tuple[str, ...] = ("a", "b")

@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [pytest.param(name, marks=[]) for name in NAMES])
def test_product(name, kind): ...

@pytest.mark.parametrize(("a", "b"), [pytest.param(1, 2, id="x"), pytest.param("y", 3)])
def test_named(a, b): ...

@pytest.mark.parametrize("flag", [True, False], ids=["on", "off"])
def test_ids(flag): ...

@pytest.mark.parametrize("number", range(3))
def test_unreadable(number): ...

def test_plain(): ...
"""


@pytest.mark.parametrize(
    ("name", "ids"),
    [
        pytest.param("test_product", {"one-a", "one-b", "two-a", "two-b"}, id="product"),
        pytest.param("test_named", {"x", "y"}, id="named"),
        pytest.param("test_ids", {"on", "off"}, id="ids"),
        pytest.param("test_plain", set(), id="plain"),
    ],
)
def test_ids_are_read_from_the_syntax(name: str, ids: set[str]) -> None:
    assert TestModule(MODULE).ids(name) == ids


def test_what_cannot_be_read_is_refused() -> None:
    with pytest.raises(NotUnderstood):
        TestModule(MODULE).ids("test_unreadable")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        pytest.param("| 17 |", "| 18 |", "numbers are", id="number-twice"),
        pytest.param("[19-line-separator]", "[19-other]", "has no case 19-other", id="case"),
        pytest.param("::test_31_one", "::test_31_two", "there is no test_31_two", id="function"),
        pytest.param(
            "test_killed_submission.py::", "test_gone.py::", "there is no tests", id="file"
        ),
        pytest.param(
            "`tests/faults/test_symptoms.py::test_symptom[28-inline-results]`",
            "",
            "28 names no",
            id="none",
        ),
        pytest.param("both forms are read", "read", "28 says too little", id="words"),
    ],
)
def test_a_broken_table_is_noticed(repository: Path, old: str, new: str, says: str) -> None:
    text = (repository / TABLE).read_text(encoding="utf-8")
    assert old in text
    assert any(says in one for one in problems_of(text.replace(old, new), repository))
