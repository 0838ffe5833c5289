"""What the run with a small model changes on the way, and what it must not change."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from partitions.processing_version import PACKAGED_SPECS, find_spec
from pipeline_assets.workloads.equipment_manuals.columns import check_answer
from resources.context import open_context
from resources.providers import capabilities
from resources.providers.capabilities import UnsupportedCombination, find_capability
from resources.settings import load_settings
from tests.benchmarks.score_baseline import Miss, Score
from tests.realmodel.__main__ import main, spread
from tests.realmodel.bounds import bounded
from tests.realmodel.findings import Findings, as_lines
from tests.realmodel.model_server import MODEL
from tests.realmodel.proxy import with_bounds
from tests.realmodel.walk import KEY, SPEC, table_with_own_row, trial, write_spec

ENDPOINT = "/v1/chat/completions"
REFERENCE = "doc-0123456789abcdef"
MARKED = f"=== {REFERENCE} document begins ===\nx\n=== doc-{'f' * 16} document begins ==="
SCHEMA: dict[str, Any] = json.loads(
    Path("pipeline_assets/workloads/equipment_manuals/output_schema.json").read_text()
)


def least(schema: dict[str, Any], *, present: bool) -> Any:
    """The least answer in a schema of objects, lists, texts, numbers and choices."""
    if "anyOf" in schema:
        return least(schema["anyOf"][0 if present else 1], present=present)
    if "enum" in schema:
        return schema["enum"][0]
    if schema["type"] == "object":
        return {name: least(part, present=present) for name, part in schema["properties"].items()}
    if schema["type"] == "array":
        count = schema.get("minItems", 0)
        return [least(schema["items"], present=present) for _ in range(count)]
    if schema["type"] == "string":
        return "en" if "pattern" in schema else "x" * schema["minLength"]
    return schema.get("minimum")


@pytest.mark.parametrize("present", [True, False], ids=["present", "absent"])
def test_an_answer_in_the_narrower_form_is_one_in_the_workloads_own(present: bool) -> None:
    check_answer(json.dumps(least(bounded(SCHEMA, REFERENCE), present=present)))


def test_the_narrower_form_names_the_same_members_and_leaves_the_given_schema_alone() -> None:
    before = json.dumps(SCHEMA)
    narrow = bounded(SCHEMA, REFERENCE)
    assert list(narrow["properties"]) == list(SCHEMA["properties"])
    assert narrow["required"] == SCHEMA["required"]
    field = list(SCHEMA["$defs"]["field"]["properties"])
    assert list(narrow["properties"]["title"]["anyOf"][0]["properties"]) == field
    assert json.dumps(SCHEMA) == before


def test_any_other_schema_stays_as_it_is() -> None:
    schema = {"type": "object", "properties": {"title": {"type": "string"}}}
    assert bounded(schema, REFERENCE) == schema


def test_only_the_form_of_a_request_is_changed() -> None:
    form = {"name": "metadata", "strict": True, "schema": SCHEMA}
    body = {"model": MODEL, "messages": [{"role": "user", "content": MARKED}]}
    sent = {**body, "response_format": {"type": "json_schema", "json_schema": form}}
    passed = json.loads(with_bounds(json.dumps(sent).encode()))
    del passed["logit_bias"]
    assert passed["response_format"]["json_schema"].pop("schema") == bounded(SCHEMA, REFERENCE)
    assert {name: passed[name] for name in body} == body
    assert passed["response_format"]["json_schema"] == {"name": "metadata", "strict": True}


@pytest.mark.parametrize("body", [b"", b"no json", b"[1]", b'{"model":"m"}'])
def test_another_body_passes_as_it_is(body: bytes) -> None:
    assert with_bounds(body) == body


def test_the_models_row_holds_only_inside_the_trial() -> None:
    with trial(canary=False):
        row = find_capability("openai", MODEL, ENDPOINT, "online")
        assert row.context_tokens is not None
    assert table_with_own_row().rows[:-1] == capabilities.packaged_table().rows
    with pytest.raises(UnsupportedCombination):
        find_capability("openai", MODEL, ENDPOINT, "online")


def test_the_spec_is_the_packaged_one_for_another_model(tmp_path: Path) -> None:
    write_spec(tmp_path)
    [ours, theirs] = (find_spec(key, [PACKAGED_SPECS, tmp_path]) for key in (KEY, SPEC))
    assert (ours.rules, ours.repairs, ours.acceptance) == (
        theirs.rules,
        theirs.repairs,
        theirs.acceptance,
    )
    assert (ours.model, ours.endpoint) == (MODEL, ENDPOINT)


@pytest.mark.parametrize(
    ("most", "expected"),
    [(10, [0, 1, 2, 3, 4, 5]), (3, [0, 2, 4]), (1, [0]), (6, [0, 1, 2, 3, 4, 5])],
)
def test_documents_are_taken_evenly(most: int, expected: list[int]) -> None:
    labels = [{"file": number} for number in range(6)]
    assert [label["file"] for label in spread(labels, most)] == expected


@pytest.mark.parametrize(
    ("titles", "good"),
    [((0, 0), True), ((99, 100), True), ((98, 100), False)],
    ids=["nothing was accepted", "just enough", "too few"],
)
def test_the_share_of_right_fields_decides(titles: tuple[int, int], good: bool) -> None:
    assert _findings(Score(titles=titles)).good is good


def test_a_wrong_field_is_told_by_its_documents_number_alone() -> None:
    miss = Miss("files/secret.pdf", "title", "Secret", "Other")
    found = _findings(Score(titles=(0, 1), misses=(miss,)))
    lines = list(as_lines(found, [{"file": "files/a.pdf"}, {"file": "files/secret.pdf"}]))
    assert "  wrong title in document 2" in lines
    assert not any("ecret" in line for line in lines)


def test_without_labels_it_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--corpus", str(tmp_path)]) == 2
    assert "no labelled documents" in capsys.readouterr().err


def test_an_unused_ledger_has_no_verdict(tmp_path: Path) -> None:
    from tests.realmodel.walk import canary_verdict

    with open_context(load_settings(state=tmp_path / "state")) as context:
        assert canary_verdict(context) is None


def _findings(result: Score) -> Findings:
    return Findings(documents=1, accepted=1, reviewed=0, stopped={}, rules={}, score=result)
