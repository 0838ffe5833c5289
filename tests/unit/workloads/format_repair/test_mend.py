"""Mending an answer: the order, what is recorded, and what is refused."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable

import pytest

from pipeline_assets.workloads.equipment_manuals.acceptance import acceptances
from pipeline_assets.workloads.format_repair.repairs import REPAIRS, RepairMade, mend
from pipeline_assets.workloads.format_repair.scanning import MAX_DEPTH
from pipeline_assets.workloads.workload import AnswerInvalid, Repair
from tests.unit.workloads.format_repair.support import check, mended


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_which_repairs_there_are() -> None:
    """What a version was frozen with; a repair that does otherwise gets a higher version."""
    assert [(repair.id, repair.version) for repair in REPAIRS] == [
        ("encoding", 1),
        ("fences", 1),
        ("surrounding_text", 1),
        ("commas", 1),
        ("quotes", 1),
    ]
    found = acceptances()
    assert (found["1"].repairs, found["2"].repairs) == ((), REPAIRS)


def test_every_step_is_recorded() -> None:
    steps = [
        "\ufeffSure: {'a': 'x\n',}!",
        "Sure: {'a': 'x\\n',}!",
        "{'a': 'x\\n',}",
        "{'a': 'x\\n'}",
        '{"a": "x\\n"}',
    ]
    found = mend(steps[0], REPAIRS, check)
    assert found is not None
    assert found.answer == steps[-1]
    assert found.made == tuple(
        RepairMade(rule, 1, digest(before), digest(after))
        for rule, before, after in zip(
            ("encoding", "surrounding_text", "commas", "quotes"), steps, steps[1:], strict=False
        )
    )


def test_the_first_usable_text_is_the_answer() -> None:
    def never(text: str) -> str:
        raise AssertionError(text)

    found = mend('```\n{"a": 1}\n```', (*REPAIRS, Repair("never", 1, never)), check)
    assert found is not None
    assert [made.rule for made in found.made] == ["fences"]


def test_the_normal_form_is_the_check_s() -> None:
    def normal(text: str) -> str:
        check(text)
        return "normal"

    found = mend('{"a": 1,}', REPAIRS, normal)
    assert found is not None
    assert found.answer == "normal"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('{"a": 1, "a": 2,}', id="a-member-twice"),
        pytest.param('{"a": 1, "\\u0061": 1,}', id="twice-and-escaped"),
        pytest.param("{'a': [{'b': {'c': 1, 'd': [], 'c': 1}}]}", id="twice-deep-inside"),
        pytest.param('{"a": 1,} {"a": 1}', id="two-objects"),
        pytest.param('```json\n{"a": "x', id="cut-in-a-string"),
        pytest.param('{"a": {"b": 1,}', id="cut-between"),
        pytest.param('{"a": }', id="no-value"),
        pytest.param('{"a": 1, "b"}', id="no-second-value"),
        pytest.param("{'a': undefined}", id="no-json-value"),
        pytest.param('{"a": 01,}', id="no-json-number"),
        pytest.param('{"a": "\\x41",}', id="no-json-escape"),
        pytest.param('{"a": 1 /* why */}', id="a-comment"),
        pytest.param("I cannot read this document.", id="words"),
        pytest.param("", id="nothing"),
        pytest.param("[1,]", id="a-list"),
    ],
)
def test_what_is_refused(text: str) -> None:
    assert mended(text) is None


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1, "a": 2}',
        '"{}"',
        "[{}]",
        "null",
        '{"a": ["\'x\' “y” ```", ",,", "it\'s"]}\r\n',
        '[{"a": "```json {} ```"}]',
    ],
)
def test_json_is_not_touched(text: str) -> None:
    """Whatever its shape: an answer of another shape is not one in a bad form."""

    def other_shape(_: str) -> str:
        raise AnswerInvalid("of another shape")

    assert mend(text, REPAIRS, other_shape) is None
    assert [repair.mend(text) for repair in REPAIRS] == [None] * len(REPAIRS)


def test_without_repairs_nothing_is_mended() -> None:
    assert mend('{"a": 1,}', (), check) is None


@pytest.mark.parametrize(
    ("depth", "usable"),
    [pytest.param(MAX_DEPTH, True, id="deepest"), pytest.param(MAX_DEPTH + 1, False, id="deeper")],
)
def test_how_deep_it_looks(depth: int, usable: bool) -> None:
    text = '{"a":' * depth + "1" + "}" * depth
    assert mended(text + "!") == (text if usable else None)


SIZE = 50_000
HUGE: dict[str, Callable[[int], str]] = {
    "open braces": lambda size: "{" * size,
    "open lists": lambda size: '{"a":' + "[" * size,
    "open objects": lambda size: '{"a":' * (size // 5),
    "closed objects": lambda size: '{"a":' * (size // 6) + "1" + "}" * (size // 6),
    "valid and deep": lambda size: "[" * (size // 2) + "]" * (size // 2),
    "double marks": lambda size: "{" + '"' * size,
    "single marks": lambda size: "{" + "'" * size,
    "single marks apart": lambda size: "{'a" + "' " * (size // 2),
    "marks before blanks": lambda size: '{"a": 1}' + ('"' + " " * 999) * (size // 1000),
    "backslashes": lambda size: '{"a": "' + "\\" * size,
    "blanks": lambda size: "{" + " " * size,
    "backticks": lambda size: "`" * size,
    "fences": lambda size: "```\n" + "\n```x" * (size // 5),
    "controls": lambda size: "\0" * size,
    "words": lambda size: "it's so " * (size // 8) + "{}",
    "commas": lambda size: '{"a": 1' + "," * (size // 4) + "}",
    "line breaks": lambda size: '{"a": "' + "x\n" * (size // 2) + '"}',
    "members": lambda size: "{" + "".join(f"'k{n}': 1\n" for n in range(size // 40)) + "}",
    "one member": lambda size: "{" + "'k': 1," * (size // 20) + "}",
}


@pytest.mark.parametrize("name", HUGE)
def test_huge_texts_take_linear_time(name: str) -> None:
    """No recursion, and nothing that grows with the square: that would take minutes."""
    text = HUGE[name](SIZE)
    started = time.process_time()
    mended(text)
    for repair in REPAIRS:
        repair.mend(text)
    assert time.process_time() - started < 10


def test_a_large_answer_is_mended() -> None:
    value = {"quotes": [{"page": number, "quote": "x y " * 20} for number in range(1_000)]}
    right = json.dumps(value)
    found = mended(f"```json\n{right[:-1]},}}\n```")
    assert found == right
