"""The documentation of filters says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pipeline_assets.selection.bind import bind
from pipeline_assets.selection.facts import FACTS
from pipeline_assets.selection.parse import parse_where
from pipeline_assets.workloads.registry import load_workload

PAGE = (Path(__file__).parents[3] / "docs" / "selection.md").read_text(encoding="utf-8")
KINDS = {"flag": "true or false", "list": "set"}
EXAMPLES = re.findall(r"^\| `([^`]+)` \| [^|]+ \|$", PAGE.split("## Examples")[1], re.MULTILINE)


def test_every_fact_is_told() -> None:
    told = re.findall(r"^\| `(\w+)` \| ([^|]+) \| ([^|]+) \|$", PAGE, re.MULTILINE)
    assert [(name, kind) for name, kind, _ in told] == [
        (fact.name, KINDS.get(fact.kind, fact.kind)) for fact in FACTS.values()
    ]
    for name, _, meaning in told:
        assert meaning.startswith(FACTS[name].meaning)
        if name != "state":
            assert re.findall("`(.+?)`", meaning)[-len(FACTS[name].known) or 99 :] == list(
                FACTS[name].known
            )


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 15


@pytest.mark.parametrize("text", EXAMPLES)
def test_examples(text: str) -> None:
    fields = load_workload("equipment_manuals", None).fields
    assert bind(parse_where(text), lambda: fields).mentioned
