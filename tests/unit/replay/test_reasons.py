"""Telling why something is processed again from two declarations, and from words."""

from __future__ import annotations

from typing import Any

import pytest

from partitions.processing_version import RequestSpec, Spec, find_spec
from pipeline_assets.replay.plan import split_reason
from pipeline_assets.replay.reasons import (
    REPLAY_REASONS,
    UnknownReplayReason,
    check_replay_reason,
    derive_reason,
    differences,
)
from resources.settings import PROJECT

BASE: dict[str, Any] = {
    "workload": "equipment_manuals",
    "operation": "extract",
    "provider": "openai",
    "mode": "batch",
    "model": "m-1",
    "parameters": {"temperature": 0},
    "schema_version": 1,
    "parser": {"version": "1", "ocr_pages": 12, "max_pages": 2000},
    "rules": {"frame": 1},
    "batch_records": 25_000,
    "request": {
        "prompt": "2",
        "document_tokens": 6000,
        "output_tokens": 900,
        "redaction": None,
        "tail": "merge",
        "window_hours": 24,
    },
}


def changed(**members: Any) -> dict[str, Any]:
    """The base with members replaced; `request__prompt` is the prompt of the request."""
    spec = {**BASE, "request": dict(BASE["request"])}
    for name, value in members.items():
        outer, _, inner = name.partition("__")
        if inner:
            spec[outer] = {**spec[outer], inner: value}
        else:
            spec[outer] = value
    return spec


@pytest.mark.parametrize(
    ("after", "reason"),
    [
        pytest.param(changed(), "operator", id="nothing differs"),
        pytest.param(changed(request__prompt="3"), "new_prompt", id="prompt"),
        pytest.param(changed(request__document_tokens=9000), "new_prompt", id="share of the text"),
        pytest.param(changed(request__redaction={"mail": 1}), "new_prompt", id="redaction"),
        pytest.param(changed(schema_version=2), "new_schema", id="schema"),
        pytest.param(changed(parser__version="2"), "new_parser", id="parser"),
        pytest.param(changed(parser__ocr_pages=20), "new_parser", id="pages that are read"),
        pytest.param(changed(model="m-2"), "new_model", id="model"),
        pytest.param(changed(provider="anthropic"), "new_model", id="provider"),
        pytest.param(changed(mode="online"), "new_model", id="mode"),
        pytest.param(changed(parameters={"temperature": 1}), "new_model", id="parameters"),
        pytest.param(changed(request__output_tokens=1200), "new_model", id="room for the answer"),
        pytest.param(changed(request=None), "new_prompt", id="no request at all"),
        pytest.param(changed(rules={"frame": 2}), "operator", id="only rules"),
        pytest.param(changed(acceptance="2"), "operator", id="only acceptance"),
        pytest.param(changed(batch_records=10), "operator", id="only the size of batches"),
        pytest.param(
            changed(model="m-2", request__prompt="3"), "new_prompt", id="prompt before model"
        ),
        pytest.param(
            changed(model="m-2", schema_version=2, parser__version="2"),
            "new_parser",
            id="parser before all",
        ),
    ],
)
def test_the_reason_is_what_differs_furthest_up_the_stream(
    after: dict[str, Any], reason: str
) -> None:
    assert derive_reason(BASE, after) == reason
    assert reason in REPLAY_REASONS


@pytest.mark.parametrize(
    ("after", "reason"),
    [
        pytest.param(changed(endpoint="responses"), "new_model", id="endpoint"),
        pytest.param(changed(request__window_hours=1), "new_model", id="time to answer"),
        pytest.param(changed(request__recovery={"output_tokens": 1}), "operator", id="recovery"),
        pytest.param(changed(repairs={"fences": 1}), "operator", id="repairs"),
        pytest.param(changed(operation="classify"), "operator", id="operation"),
        pytest.param(changed(rules={"frame": 2}), "operator", id="rules"),
        pytest.param(changed(acceptance="2"), "operator", id="acceptance"),
    ],
)
def test_what_differs_is_told_apart_from_nothing(after: dict[str, Any], reason: str) -> None:
    assert differences(BASE, after) == [reason]


@pytest.mark.parametrize("after", [changed(batch_records=1), changed(request__tail="online")])
def test_how_requests_are_shared_out_is_no_difference(after: dict[str, Any]) -> None:
    assert differences(BASE, after) == []


def test_every_member_of_a_request_is_compared() -> None:
    """A field that is added to requests must be given a reason, or change no answer."""
    told = {"prompt", "document_tokens", "redaction", "output_tokens", "window_hours", "recovery"}
    assert set(RequestSpec.model_fields) == told | {"tail"}


def test_every_difference_is_named() -> None:
    after = changed(model="m-2", request__prompt="3", rules={"frame": 2})
    assert differences(BASE, after) == ["new_prompt", "new_model", "operator"]
    assert differences(BASE, BASE) == []


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ("manuals-baseline-1", "manuals-baseline-2", "operator"),
        ("manuals-openai-batch-2", "manuals-anthropic-batch-2", "new_model"),
        ("manuals-baseline-2", "manuals-openai-batch-3", "new_prompt"),
    ],
)
def test_of_packaged_versions(before: str, after: str, reason: str) -> None:
    folders = [PROJECT / "partitions" / "versions"]
    one, other = find_spec(before, folders), find_spec(after, folders)
    assert derive_reason(one.declared(), other.declared()) == reason


def test_every_member_that_decides_a_result_is_compared() -> None:
    """A field that is added to specs must be given a reason."""
    told = {
        "parser",
        "schema_version",
        "request",
        "provider",
        "mode",
        "model",
        "endpoint",
        "parameters",
        "acceptance",
        "rules",
        "repairs",
        "operation",
    }
    decides_nothing = {"key", "description", "workload", "batch_records"}
    assert set(Spec.model_fields) == told | decides_nothing


@pytest.mark.parametrize(
    ("given", "reason", "note"),
    [
        ("identifiers were cut", None, "identifiers were cut"),
        ("new_prompt", "new_prompt", REPLAY_REASONS["new_prompt"]),
        ("new_prompt: it asks for all identifiers", "new_prompt", "it asks for all identifiers"),
        (" operator :  a look ", None, "operator :  a look"),
        ("note: with a colon", None, "note: with a colon"),
        ("", None, ""),
    ],
)
def test_words_of_the_closed_list_are_recognised(given: str, reason: str | None, note: str) -> None:
    assert split_reason(given) == (reason, note)


def test_a_reason_outside_the_list_is_refused() -> None:
    with pytest.raises(UnknownReplayReason, match="'because' is no replay reason; give one of"):
        check_replay_reason("because")
