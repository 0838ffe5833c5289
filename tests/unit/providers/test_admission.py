"""Every refusal of a planned job, with its whole message."""

from __future__ import annotations

import ast
import inspect
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from resources.providers import admission
from resources.providers.admission import (
    JobRefused,
    PlannedJob,
    check_job,
    custom_ids_fit,
    require_admitted,
)
from resources.providers.capabilities import Capability, Fact, Mode, find_capability

JOB = PlannedJob(
    records=1000,
    size=5_000_000,
    largest_line=20_000,
    output_tokens=1500,
    largest_prompt_tokens=6000,
    prompt_tokens=4_000_000,
    window_hours=24,
)
CLOSED: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {"title": {"type": "string"}},
    "required": ["title"],
}
OPENAI = ("openai", "gpt-5-mini", "/v1/responses", "batch")
CHAT_ONLINE = ("openai", "gpt-4.1-mini", "/v1/chat/completions", "online")
ANTHROPIC = ("anthropic", "claude-haiku-4-5", "/v1/messages", "batch")
ANTHROPIC_ONLINE = ("anthropic", "claude-haiku-4-5", "/v1/messages", "online")
GEMINI = ("gemini", "gemini-2.5-flash", "generateContent", "batch")
BEDROCK = ("bedrock", "amazon.nova-lite-v1:0", "converse", "batch")
ROW = "openai gpt-5-* /v1/responses batch"

CASES = [
    pytest.param(
        OPENAI,
        {"records": 50_001},
        f"max_records: found 50001 records in one job, allowed at most 50000 (row {ROW}; source "
        "O-G, 2026-11)",
        id="max_records",
    ),
    pytest.param(
        BEDROCK,
        {"records": 99},
        "min_records: found 99 records in one job, allowed at least 100 (row bedrock "
        "*amazon.nova-lite-v1* converse batch; source B-Q, 2026-11)",
        id="min_records",
    ),
    pytest.param(
        OPENAI,
        {"size": 200_000_001},
        "max_bytes: found 200000001 bytes in one job, allowed at most 200000000 (row "
        f"{ROW}; source O-G, 2026-11)",
        id="max_bytes",
    ),
    pytest.param(
        ANTHROPIC_ONLINE,
        {"largest_line": 32_000_001},
        "max_line_bytes: found 32000001 bytes in one request, allowed at most 32000000 (row "
        "anthropic claude-*-4-5* /v1/messages online; source A-E, 2026-11)",
        id="max_line_bytes",
    ),
    pytest.param(
        ANTHROPIC,
        {"custom_ids_ok": False},
        "custom_id_pattern: found a custom id of another form, allowed only [a-zA-Z0-9_-]{1,64} "
        "(row anthropic claude-*-4-5* /v1/messages batch; source A-T, 2026-11)",
        id="custom_id_pattern",
    ),
    pytest.param(
        OPENAI,
        {"custom_ids_unique": False},
        "custom_id_unique: found a custom id that is there twice, allowed each only once (row "
        f"{ROW}; source O-G, 2026-11)",
        id="custom_id_unique",
    ),
    pytest.param(
        OPENAI,
        {"output_tokens": 128_001},
        "output_tokens_max: found 128001 tokens for one answer, allowed at most 128000 (row "
        f"{ROW}; source V-M, 2026-11)",
        id="output_tokens_max",
    ),
    pytest.param(
        GEMINI,
        {"largest_prompt_tokens": 1_048_577},
        "input_tokens_max: found 1048577 tokens in one prompt, allowed at most 1048576 (row "
        "gemini gemini-2.5-* generateContent batch; source G-M, 2026-11)",
        id="input_tokens_max",
    ),
    pytest.param(
        OPENAI,
        {"largest_prompt_tokens": 398_501},
        "context_tokens: found 400001 tokens in prompt and answer together, allowed at most "
        f"400000 (row {ROW}; source P-D, 2026-11)",
        id="context_tokens",
    ),
    pytest.param(
        ANTHROPIC,
        {"parameters": {"temperature": 0}},
        "parameters_refused: found the parameter 'temperature', allowed not at all: refused "
        "since the API version 2026-10-21 (row anthropic claude-*-4-5* /v1/messages batch; "
        "source A-V, 2026-10-21)",
        id="parameters_refused",
    ),
    pytest.param(
        GEMINI,
        {"parameters": {"top_p": 1}},
        "parameters_allowed: found the parameter 'top_p', allowed only frequencyPenalty, "
        "logprobs, mediaResolution, presencePenalty, responseLogprobs, schema_dialect, seed, "
        "stopSequences, temperature, thinkingConfig, topK, topP (row gemini gemini-2.5-* "
        "generateContent batch; source G-T, 2026-11)",
        id="parameters_allowed",
    ),
    pytest.param(
        BEDROCK,
        {"parameters": {"toolConfig": {}}},
        "tools: found the parameter 'toolConfig', allowed no tools (row bedrock "
        "*amazon.nova-lite-v1* converse batch; source B-G, 2026-11)",
        id="tools",
    ),
    pytest.param(
        GEMINI,
        {"schema": CLOSED, "parameters": {"schema_dialect": "openapi"}},
        "schema_dialects: found the schema dialect 'openapi', allowed only responseSchema, "
        "responseJsonSchema (row gemini gemini-2.5-* generateContent batch; source G-R, 2026-11)",
        id="schema_dialects",
    ),
    pytest.param(
        ANTHROPIC,
        {"schema": CLOSED | {"additionalProperties": True}},
        "schema: found in the schema #: an object must have 'additionalProperties': false, "
        "allowed only the dialect anthropic (row anthropic claude-*-4-5* /v1/messages batch; "
        "source A-SO, 2026-11)",
        id="schema",
    ),
    pytest.param(
        ANTHROPIC,
        {
            "schema": {
                "type": "object",
                "additionalProperties": False,
                "properties": {f"p{n}": {"type": "string"} for n in range(25)},
            }
        },
        "schema_limits: found in the schema 25 optional properties, allowed are at most 24, "
        "allowed no larger schema (row anthropic claude-*-4-5* /v1/messages batch; source A-SO, "
        "2026-11)",
        id="schema_limits",
    ),
    pytest.param(
        OPENAI,
        {"window_hours": 48},
        f"window_hours: found a window of 48 hours, allowed 24 hours (row {ROW}; source O-G, "
        "2026-11)",
        id="window_hours",
    ),
    pytest.param(
        BEDROCK,
        {"window_hours": 12},
        "window_hours: found a window of 12 hours, allowed 24 to 168 hours (row bedrock "
        "*amazon.nova-lite-v1* converse batch; source B-M, 2026-11)",
        id="window_hours-with-a-choice",
    ),
]


def row(asked: tuple[str, str, str, Mode]) -> Capability:
    return find_capability(*asked)


@pytest.mark.parametrize(("asked", "change", "message"), CASES)
def test_each_rule_says_what_was_found_what_is_allowed_and_where_it_is_written(
    asked: tuple[str, str, str, Mode], change: dict[str, Any], message: str
) -> None:
    refusals = check_job(row(asked), replace(JOB, **change))
    assert [str(refusal) for refusal in refusals] == [message]


def test_an_operators_limit_refuses_too() -> None:
    limited = row(OPENAI).with_setting("enqueued_tokens", 3_000_000, "2026-11-20")
    assert [str(refusal) for refusal in check_job(limited, JOB)] == [
        "enqueued_tokens: found 4000000 prompt tokens waiting at one time, allowed at most "
        f"3000000 (row {ROW}; source operating setting, 2026-11-20)"
    ]
    assert check_job(limited, replace(JOB, prompt_tokens=None)) == []


def test_a_row_without_structured_output_refuses_a_schema() -> None:
    without = replace(row(OPENAI), structured_output=Fact(False, "O-SO", "2026-11"))
    assert [str(refusal) for refusal in check_job(without, replace(JOB, schema=CLOSED))] == [
        "structured_output: found an output schema, allowed no structured output (row "
        f"{ROW}; source O-SO, 2026-11)"
    ]
    assert check_job(without, JOB) == []


def test_the_table_of_messages_knows_every_rule() -> None:
    rules = {
        node.value
        for node in ast.walk(ast.parse(inspect.getsource(admission)))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    fields = set(Capability.__dataclass_fields__) & rules
    tested = {str(case.id) for case in CASES} | {"enqueued_tokens", "structured_output"}
    assert fields | {"custom_id_unique", "schema"} == tested - {"window_hours-with-a-choice"}


@pytest.mark.parametrize(
    "asked", [OPENAI, CHAT_ONLINE, ANTHROPIC, ANTHROPIC_ONLINE, GEMINI, BEDROCK], ids=" ".join
)
def test_a_job_at_every_limit_passes(asked: tuple[str, str, str, Mode], repository: Path) -> None:
    schema = repository / "pipeline_assets/workloads/equipment_manuals/output_schema.json"
    capability = row(asked)
    most = {name: fact.value for name, fact in capability.facts().items()}
    output = most["output_tokens_max"]
    job = PlannedJob(
        records=most.get("max_records", 1000),
        size=most.get("max_bytes", 0),
        largest_line=most.get("max_line_bytes", 0),
        output_tokens=output,
        largest_prompt_tokens=most.get(
            "input_tokens_max", most.get("context_tokens", output) - output
        ),
        prompt_tokens=10**9,
        parameters=dict.fromkeys({*most["parameters_allowed"]} - {"schema_dialect", "toolConfig"})
        if asked != OPENAI
        else {"reasoning": {"effort": "low"}},
        schema=json.loads(schema.read_text(encoding="utf-8")),
        window_hours=most["window_hours"].at_most if "window_hours" in most else None,
    )
    assert check_job(capability, job) == []
    require_admitted(capability, job)


def test_a_job_of_the_smallest_size_passes() -> None:
    assert check_job(row(BEDROCK), replace(JOB, records=100)) == []


@pytest.mark.parametrize("dialect", ["responseSchema", "responseJsonSchema"])
def test_the_dialect_is_chosen_by_a_parameter(dialect: str) -> None:
    loop = CLOSED | {"properties": {"title": {"$ref": "#"}}}
    job = replace(JOB, schema=loop, parameters={"schema_dialect": dialect})
    found = [(refusal.rule, refusal.allowed) for refusal in check_job(row(GEMINI), job)]
    refused = [("schema", "only the dialect responseSchema")]
    assert found == (refused if dialect == "responseSchema" else [])


def test_a_refused_job_lists_every_reason() -> None:
    job = replace(JOB, records=50_001, window_hours=1)
    with pytest.raises(JobRefused) as raised:
        require_admitted(row(OPENAI), job)
    assert raised.value.refusals == tuple(check_job(row(OPENAI), job))
    assert str(raised.value) == (
        "the job was refused before anything was sent:\n"
        "- max_records: found 50001 records in one job, allowed at most 50000 (row "
        f"{ROW}; source O-G, 2026-11)\n"
        f"- window_hours: found a window of 1 hours, allowed 24 hours (row {ROW}; source O-G, "
        "2026-11)\n"
        "Nothing is trimmed to pass: change the version's spec or the operating settings, or "
        "correct the row in resources/providers/capabilities.yaml with its source."
    )


@pytest.mark.parametrize(
    ("custom_ids", "fit", "unique"),
    [
        pytest.param(["0123456789ab-0", "0123456789ab-1"], True, True, id="ours"),
        pytest.param([], True, True, id="none"),
        pytest.param(["a", "a"], True, False, id="twice"),
        pytest.param(["a" * 64], True, True, id="longest"),
        pytest.param(["a" * 65], False, True, id="too-long"),
        pytest.param(["a/b"], False, True, id="slash"),
        pytest.param(["a\n"], False, True, id="newline-at-the-end"),
        pytest.param([""], False, True, id="empty"),
    ],
)
def test_custom_ids_are_held_against_the_row(
    custom_ids: list[str], fit: bool, unique: bool
) -> None:
    assert custom_ids_fit(row(ANTHROPIC), custom_ids) == (fit, unique)
    without = replace(row(ANTHROPIC), custom_id_pattern=None)
    assert custom_ids_fit(without, custom_ids) == (True, unique)
    assert check_job(without, replace(JOB, custom_ids_ok=False, custom_ids_unique=False)) == []
