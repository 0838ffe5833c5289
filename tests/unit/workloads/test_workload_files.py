"""Prompt, schema and thresholds agree with the typed answer and with the baseline."""

from __future__ import annotations

import json
import re
import string
from collections.abc import Iterator
from importlib import resources
from typing import Any

import msgspec
import pytest
import yaml

from pipeline_assets.workloads.equipment_manuals.answer import ABSENT, Answer, Evidence, Field
from pipeline_assets.workloads.equipment_manuals.baseline import description, identifiers, title

FOLDER = resources.files("pipeline_assets.workloads.equipment_manuals")


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    return json.loads((FOLDER / "output_schema.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def thresholds() -> dict[str, Any]:
    return yaml.safe_load((FOLDER / "thresholds.yaml").read_text(encoding="utf-8"))


def objects_of(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        if node.get("type") == "object":
            yield node
        for child in node.values():
            yield from objects_of(child)


def test_schema_is_strict(schema: dict[str, Any]) -> None:
    found = list(objects_of(schema))
    assert len(found) == 3
    for node in found:
        assert node["additionalProperties"] is False
        assert sorted(node["required"]) == sorted(node["properties"])


@pytest.mark.parametrize(
    ("struct", "path"),
    [
        pytest.param(Answer, (), id="answer"),
        pytest.param(Field, ("$defs", "field"), id="field"),
        pytest.param(Evidence, ("$defs", "evidence"), id="evidence"),
    ],
)
def test_schema_has_the_fields_of_the_struct(
    struct: type[msgspec.Struct], path: tuple[str, ...], schema: dict[str, Any]
) -> None:
    node = schema
    for key in path:
        node = node[key]
    assert list(node["properties"]) == list(struct.__struct_fields__)


def test_answer_survives_json() -> None:
    found = Field("MX-12", "found", [Evidence(1, "Mixer MX-12")])
    answer = Answer("a/ref", found, [found], ABSENT, ABSENT)
    assert msgspec.json.decode(msgspec.json.encode(answer), type=Answer) == answer


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('{"value": null, "status": "maybe", "evidence": []}', id="unknown status"),
        pytest.param('{"value": 3, "status": "found", "evidence": []}', id="value is a number"),
        pytest.param('{"value": null, "status": "absent"}', id="no evidence"),
        pytest.param('{"value": null, "status": "absent", "evidence": [], "x": 1}', id="more"),
    ],
)
def test_field_of_another_shape_is_refused(text: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(text, type=Field)


def test_prompt_has_the_two_places_and_no_other() -> None:
    prompt = (FOLDER / "prompt.md").read_text(encoding="utf-8")
    names = [name for _, name, _, _ in string.Formatter().parse(prompt) if name is not None]
    assert names == ["document", "pages"]
    assert "never an instruction" in prompt


@pytest.mark.parametrize(
    ("identifier", "good"),
    [
        ("MX-12", True),
        ("KX-TG1234", True),
        ("PC 1500", True),
        ("NOVA K7 PRO V1.2", True),
        ("ПР-07", True),
        ("RTX-3000+", True),
        ("MX-12 (B)", True),
        ("-MX12", False),
        ("MX-12-", False),
        ("MX\n12", False),
        ("M", False),
        ("", False),
    ],
)
def test_identifier_pattern(identifier: str, good: bool, thresholds: dict[str, Any]) -> None:
    bounds = thresholds["product_identifiers"]
    fits = re.fullmatch(bounds["pattern"], identifier) is not None
    long_enough = bounds["min_length"] <= len(identifier) <= bounds["max_length"]
    assert (fits and long_enough) is good


def test_baseline_stays_within_the_thresholds(thresholds: dict[str, Any]) -> None:
    assert thresholds["title"]["max_length"] >= title.MAX_LENGTH
    assert thresholds["title"]["max_evidence"] >= title.MAX_TITLE_LINES
    least, most = description.LENGTH
    assert thresholds["description"]["min_length"] <= least
    assert most <= thresholds["description"]["max_length"]
    assert thresholds["product_identifiers"]["max_count"] >= identifiers.MAX_IDENTIFIERS
