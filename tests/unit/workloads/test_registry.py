"""Finding workloads: the packaged ones, one's own, and those that cannot be used."""

from __future__ import annotations

import ast
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline_assets.workloads import registry
from pipeline_assets.workloads.declaration import problem_of
from pipeline_assets.workloads.registry import (
    InvalidWorkload,
    UnknownWorkload,
    WorkloadNamedTwice,
    load_workload,
)
from pipeline_assets.workloads.support_tickets.workload import FIELDS, load
from pipeline_assets.workloads.workload import (
    Acceptance,
    Admission,
    Kept,
    PublishedField,
    Repair,
    Workload,
)

REPOSITORY = Path(__file__).resolve().parents[3]
PACKAGED = REPOSITORY / "pipeline_assets" / "workloads"
TICKETS = "support_tickets"
GOOD = load()
FIRST = GOOD.acceptances["1"]


def copy_of_tickets(folder: Path, name: str) -> Path:
    """A copy of the packaged workload under another name, in a folder of one's own."""
    ignored = shutil.ignore_patterns("__pycache__")
    return Path(shutil.copytree(PACKAGED / TICKETS, folder / name, ignore=ignored))


@pytest.fixture
def own(tmp_path: Path) -> Callable[..., Path]:
    """A function that writes an own workload's module and gives the folder of workloads."""

    def write(source: str, name: str = "mine", module: str = "workload") -> Path:
        (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / name / f"{module}.py").write_text(source, encoding="utf-8")
        return tmp_path

    return write


def test_every_packaged_folder_with_a_workload_is_found() -> None:
    names = {file.parent.name for file in PACKAGED.glob("*/workload.py")}
    assert names == {"equipment_manuals", TICKETS}
    assert {load_workload(name).name for name in names} == names
    assert load_workload(TICKETS) is load_workload(TICKETS)


def test_a_workload_changes_nothing_outside_its_folder() -> None:
    """What the registry needs of one is its folder alone: no other module knows its name."""
    mentioned = [
        file.relative_to(REPOSITORY).as_posix()
        for package in ("pipeline_assets", "resources", "partitions")
        for file in sorted((REPOSITORY / package).rglob("*"))
        if file.is_file()
        and file.suffix != ".pyc"
        and not file.is_relative_to(PACKAGED / TICKETS)
        and TICKETS in file.read_text(encoding="utf-8", errors="replace")
    ]
    assert mentioned
    assert all(name.startswith("partitions/versions/tickets-") for name in mentioned), mentioned


def test_its_modules_never_call_it_by_its_name() -> None:
    """Else a copy under another name would read the packaged one's modules."""
    called = [
        file.name
        for file in sorted((PACKAGED / TICKETS).rglob("*.py"))
        if f"workloads.{TICKETS}" in file.read_text(encoding="utf-8")
    ]
    assert called == []


def test_every_caller_says_where_own_workloads_are() -> None:
    short = [
        f"{file.relative_to(REPOSITORY)}:{node.lineno}"
        for file in sorted((REPOSITORY / "pipeline_assets").rglob("*.py"))
        if "load_workload(" in (text := file.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
        and getattr(node.func, "id", getattr(node.func, "attr", "")) == "load_workload"
        and len(node.args) + len(node.keywords) < 2
    ]
    assert short == []


def test_a_copy_under_another_name_outside_the_package(tmp_path: Path) -> None:
    copy_of_tickets(tmp_path, "complaints_desk")
    found = load_workload("complaints_desk", tmp_path)
    assert (found.name, found.fields) == ("complaints_desk", FIELDS)
    module = sys.modules[found.baseline.__module__]
    assert Path(module.__file__ or "").is_relative_to(tmp_path), "its own modules, not ours"
    assert load_workload("complaints_desk", tmp_path) is found
    assert load_workload(TICKETS, tmp_path).name == TICKETS, "the packaged ones are there too"


def test_two_folders_may_have_one_name(tmp_path: Path) -> None:
    copies = [copy_of_tickets(tmp_path / side, "mine") for side in ("left", "right")]
    (copies[1] / "prompt.md").write_bytes(GOOD.prompt + b"\n")
    left, right = (load_workload("mine", tmp_path / side) for side in ("left", "right"))
    assert left.prompt != right.prompt
    assert sys.modules[left.baseline.__module__] is not sys.modules[right.baseline.__module__]


@pytest.mark.parametrize(
    "name", ["nothing", "rules", "workload", "a.b", "../mine", "", "Mine", "mine/", ".mine"]
)
def test_what_is_in_neither_place(own: Callable[..., Path], name: str) -> None:
    folder = own("load = None")
    with pytest.raises(UnknownWorkload, match="Correct the spec's field `workload`") as refused:
        load_workload(name, folder)
    assert str(folder) in str(refused.value)
    with pytest.raises(UnknownWorkload, match="TALLYBOOK_WORKLOADS"):
        load_workload(name)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UnknownWorkload):
        load_workload("mine", tmp_path / "gone")


def test_a_name_in_both_places_is_refused(tmp_path: Path) -> None:
    copy_of_tickets(tmp_path, TICKETS)
    with pytest.raises(WorkloadNamedTwice, match="Rename your own folder"):
        load_workload(TICKETS, tmp_path)


@pytest.mark.parametrize(
    ("source", "told", "line"),
    [
        pytest.param("def load(:\n", "it is not Python", 1, id="syntax"),
        pytest.param(
            "\nimport no_such_module\n", "No module named 'no_such_module'", 2, id="import"
        ),
        pytest.param("x = 1\n", "has no load; expected a function load()", None, id="no-load"),
        pytest.param("def load():\n    return 1 / 0\n", "ZeroDivisionError", 2, id="raises"),
        pytest.param("import sys\nsys.exit(3)\n", "SystemExit: 3", 2, id="exits"),
        pytest.param("load = 5\n", "TypeError", None, id="no-function"),
        pytest.param("def load():\n    return {}\n", "gave a dict", None, id="no-workload"),
        pytest.param("from .other import thing\n", "No module named", 1, id="sibling-missing"),
    ],
)
def test_a_module_that_cannot_be_used(
    own: Callable[..., Path], source: str, told: str, line: int | None
) -> None:
    folder = own(source)
    with pytest.raises(InvalidWorkload) as refused:
        load_workload("mine", folder)
    message = str(refused.value)
    assert told in message
    assert str(folder / "mine" / "workload.py") in message
    assert line is None or f"line {line})" in message
    assert "Traceback" not in message
    assert "docs/workloads.md" in message
    assert (REPOSITORY / "docs" / "workloads.md").is_file()


def test_a_corrected_folder_is_read_anew(own: Callable[..., Path]) -> None:
    folder = own("from .part import VALUE\nraise ValueError(VALUE)\n")
    own("VALUE = 'first'\n", module="part")
    with pytest.raises(InvalidWorkload, match="ValueError: first"):
        load_workload("mine", folder)
    shutil.rmtree(folder / "mine")
    copy_of_tickets(folder, "mine")
    assert load_workload("mine", folder).name == "mine"


def test_an_error_is_told_where_it_arose(own: Callable[..., Path]) -> None:
    own("VALUE = [][1]\n", module="part")
    folder = own("from .part import VALUE\n")
    with pytest.raises(InvalidWorkload) as refused:
        load_workload("mine", folder)
    assert f"{folder / 'mine' / 'part.py'}, line 1" in str(refused.value)


def test_a_package_of_another_name_is_left_alone(own: Callable[..., Path]) -> None:
    own("VALUE = 1\n", name="mine_too", module="part")
    folder = own("from ..mine_too.part import VALUE\nraise ValueError\n")
    with pytest.raises(InvalidWorkload):
        load_workload("mine", folder)
    package = registry._own_package(folder)
    assert f"{package}.mine_too.part" in sys.modules
    assert f"{package}.mine.workload" not in sys.modules


def fields(*changes: PublishedField) -> dict[str, Any]:
    return {"fields": (*FIELDS, *changes)}


def acceptance(**changes: Any) -> dict[str, Any]:
    return {"acceptances": {"1": replace(FIRST, **changes)}}


KEPT = Kept(holds=True, because="it does")


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"name": "other"}, "expected the name of its folder, 'support_tickets'"),
        ({"schema_version": 0}, "schema_version is 0"),
        ({"schema_version": True}, "schema_version is True"),
        ({"fields": ()}, "fields are empty"),
        ({"fields": [*FIELDS]}, "expected a tuple"),
        ({"fields": ("title",)}, "fields hold a str"),
        (fields(FIELDS[0]), "the field 'category' twice"),
        (fields(PublishedField("Mood", "Mood")), "a field 'Mood'"),
        (fields(PublishedField("document", "Document")), "use for themselves"),
        (fields(PublishedField("record_id", "Record")), "use for themselves"),
        (fields(PublishedField("summary_status", "Status")), "a column of 'summary'"),
        (fields(PublishedField("mood", " ")), "'mood' has no label"),
        (fields(PublishedField("mood", "Mood")), "output_schema has no property mood"),
        (fields(PublishedField("mood", "Mood", search="title")), "the search role 'title'"),
        (fields(PublishedField("mood", "Mood", search="x")), "'x', which there is not"),  # type: ignore[arg-type]
        (
            {"fields": (PublishedField("summary", "Summary", many=True, search="title"),)},
            "the search role title is for one",
        ),
        ({"admission": None}, "admission is a NoneType"),
        ({"admission": Admission(KEPT, KEPT, True)}, "effect_can_be_retried without Kept"),  # type: ignore[arg-type]
        ({"admission": Admission(KEPT, Kept("yes", "so"), KEPT)}, "'yes', expected True"),  # type: ignore[arg-type]
        ({"prompts": {}}, "no prompt '1'"),
        ({"prompts": {"1": b" "}}, "prompt '1' is empty"),
        ({"prompts": {"1": b"x", "Two!": b"x"}}, "a prompt 'Two!'"),
        ({"output_schema": "{}"}, "not the bytes of a file"),
        ({"output_schema": b"{"}, "not JSON"),
        ({"output_schema": b"[]"}, "no property 'document'"),
        ({"acceptances": {}}, "no acceptance '1'"),
        ({"acceptances": {"1": 3}}, "acceptance '1' is a int"),
        (acceptance(rules=(), batch_rules=()), "has no rule"),
        (acceptance(rules=(*FIRST.rules, FIRST.rules[0])), "the rule 'frame' twice"),
        (acceptance(rules=(len,)), "where a Rule is expected"),
        (acceptance(rules=(replace(FIRST.rules[0], version=0),)), "without a version"),
        (acceptance(rules=(replace(FIRST.rules[0], severity="loud"),)), "severity 'loud'"),
        (acceptance(repairs=(Repair("x", 1, None),)), "a Repair 'x' without"),  # type: ignore[arg-type]
        (acceptance(thresholds="x"), "thresholds that are not"),
        ({"decode": None}, "its decode cannot be called"),
        ({"identical_duplicates": "maybe"}, "identical_duplicates is 'maybe'"),
        ({"redaction": 1}, "redaction is a int"),
    ],
)
def test_what_a_workload_has_to_be(changes: dict[str, Any], told: str) -> None:
    found = problem_of(replace(GOOD, **changes), TICKETS)
    assert found is not None
    assert told in found


@pytest.mark.parametrize("name", ["equipment_manuals", TICKETS])
def test_packaged_workloads_are_without_fault(name: str) -> None:
    assert problem_of(load_workload(name), name) is None


def test_what_is_no_workload_at_all() -> None:
    assert problem_of(None, "mine") == "load() gave a NoneType, expected a Workload"
    assert isinstance(GOOD, Workload)
    assert isinstance(FIRST, Acceptance)
