"""The capability table: strictly read, rightly found, printed as it is."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from resources.providers.capabilities import (
    BrokenCapabilityTable,
    Capability,
    Mode,
    UnsupportedCombination,
    find_capability,
    packaged_table,
    read_table,
)
from resources.providers.capability_page import as_markdown, packaged_page

ROW = "provider: openai, model: 'gpt-5*', endpoint: /v1/responses, mode: batch"
FACT = "max_records: {value: 50, source: S, date: 2026-11}"


def table_text(*rows: str, head: str = "sources: {S: a guide}") -> str:
    listed = ", ".join(f"{{{row}}}" for row in rows)
    return f"{head}\nrows: [{listed}]\n"


def test_a_fact_is_read_with_its_source_and_date() -> None:
    table = read_table(table_text(f"{ROW}, {FACT}"))
    fact = table.rows[0].max_records
    assert fact is not None
    assert (fact.value, fact.source, fact.date, fact.note) == (50, "S", "2026-11", "")
    assert table.rows[0].facts() == {"max_records": fact}
    assert table.sources == {"S": "a guide"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param(
            table_text(f"{ROW}, max_rows: {{value: 50, source: S, date: 2026-11}}"),
            "rows.0.max_rows: Unexpected keyword argument",
            id="unknown-field-of-a-row",
        ),
        pytest.param(
            table_text(f"{ROW}, max_records: {{value: 50, date: 2026-11}}"),
            "rows.0.max_records.source: Field required",
            id="fact-without-source",
        ),
        pytest.param(
            table_text(f"{ROW}, max_records: {{value: 50, source: S}}"),
            "rows.0.max_records.date: Field required",
            id="fact-without-date",
        ),
        pytest.param(
            table_text(f"{ROW}, max_records: {{value: 50, source: S, date: 2026-11, why: x}}"),
            "rows.0.max_records.why: Unexpected keyword argument",
            id="unknown-field-of-a-fact",
        ),
        pytest.param(
            table_text(f"{ROW}, max_records: 50"),
            "rows.0.max_records: Input should be an object",
            id="bare-value",
        ),
        pytest.param(
            table_text(f"{ROW}, max_records: {{value: '50', source: S, date: 2026-11}}"),
            "rows.0.max_records.value: Input should be a valid integer",
            id="number-as-text",
        ),
        pytest.param(
            table_text(f"{ROW}, max_records: {{value: 0, source: S, date: 2026-11}}"),
            "rows.0.max_records.value: Input should be greater than 0",
            id="limit-of-nought",
        ),
        pytest.param(
            table_text(f"{ROW}, max_records: {{value: 50, source: S, date: last week}}"),
            "rows.0.max_records.date: String should match pattern "
            r"'^20\d\d-(0[1-9]|1[0-2])(-([0-2]\d|3[01]))?$'",
            id="no-date",
        ),
        pytest.param(
            table_text(f"{ROW}, max_records: {{value: 50, source: T, date: 2026-11}}"),
            "openai gpt-5* /v1/responses batch: max_records names the source 'T', which is not "
            "under 'sources'",
            id="unknown-source",
        ),
        pytest.param(
            table_text(ROW.replace("batch", "overnight")),
            "rows.0.mode: Input should be 'batch' or 'online'",
            id="unknown-mode",
        ),
        pytest.param(
            table_text(f"{ROW}, schema_dialects: {{value: [x], source: S, date: 2026-11}}"),
            "rows.0.schema_dialects.value.0: Value error, 'x' is no schema dialect; expected one "
            "of openai_strict, anthropic, bedrock, responseSchema, responseJsonSchema",
            id="unknown-dialect",
        ),
        pytest.param(
            table_text(f"{ROW}, schema_limits: {{value: {{depht: 3}}, source: S, date: 2026-11}}"),
            "rows.0.schema_limits.value.depht: Unexpected keyword argument",
            id="unknown-schema-limit",
        ),
        pytest.param(
            table_text(f"{ROW}, custom_id_pattern: {{value: '[a', source: S, date: 2026-11}}"),
            "rows.0.custom_id_pattern.value: Value error, is no regular expression (unterminated "
            "character set at position 0)",
            id="broken-pattern",
        ),
        pytest.param(
            table_text(ROW, ROW),
            "the row 'openai gpt-5* /v1/responses batch' is there twice",
            id="row-twice",
        ),
        pytest.param(
            table_text(f"{ROW}, {FACT}, {FACT}"),
            "field 'max_records' is given twice in \"<unicode string>\", line 2, column 8: "
            "rows: [{provider: openai, model: 'gpt-5 ... ^",
            id="field-twice",
        ),
        pytest.param(
            "just words\n", "expected a mapping with 'sources' and 'rows'", id="no-mapping"
        ),
        pytest.param("sources: {}\n", "rows: Field required", id="no-rows"),
    ],
)
def test_a_table_with_a_fault_is_refused(text: str, problem: str) -> None:
    with pytest.raises(BrokenCapabilityTable) as raised:
        read_table(text)
    assert str(raised.value) == f"the capability table cannot be used: {problem}"


@pytest.mark.parametrize("mode", ["batch", "online"])
@pytest.mark.parametrize(
    ("provider", "model", "endpoint", "row"),
    [
        ("openai", "gpt-5-mini", "/v1/responses", "gpt-5-*"),
        ("openai", "gpt-5-mini-2025-08-07", "/v1/chat/completions", "gpt-5-*"),
        ("openai", "gpt-5.4-nano", "/v1/responses", "gpt-5.4-nano*"),
        ("openai", "gpt-5.4", "/v1/responses", "gpt-5*"),
        ("openai", "gpt-4.1-mini", "/v1/chat/completions", "gpt-4.1*"),
        ("anthropic", "claude-haiku-4-5", "/v1/messages", "claude-*-4-5*"),
        ("anthropic", "claude-sonnet-4-5", "/v1/messages", "claude-*-4-5*"),
        ("anthropic", "claude-opus-5", "/v1/messages", "claude-opus-5*"),
        ("anthropic", "claude-opus-4-1", "/v1/messages", "claude-*"),
        ("gemini", "gemini-2.5-flash", "generateContent", "gemini-2.5-*"),
        ("gemini", "gemini-3.1-flash-lite", "generateContent", "gemini-3*"),
        (
            "bedrock",
            "anthropic.claude-haiku-4-5-20251001-v1:0",
            "converse",
            "*anthropic.claude-*-4-5-*",
        ),
        (
            "bedrock",
            "us.anthropic.claude-haiku-4-5-20251001-v1:0",
            "converse",
            "*anthropic.claude-*-4-5-*",
        ),
        ("bedrock", "anthropic.claude-3-haiku-20240307-v1:0", "converse", "anthropic.claude-*"),
        ("bedrock", "eu.anthropic.claude-opus-4-1-v1:0", "converse", "*.anthropic.claude-*"),
        ("bedrock", "global.anthropic.claude-opus-5", "converse", "*anthropic.claude-opus-5*"),
        ("bedrock", "amazon.nova-lite-v1:0", "converse", "*amazon.nova-lite-v1*"),
        ("bedrock", "us.amazon.nova-pro-v1:0", "converse", "*.amazon.nova-*"),
    ],
)
def test_the_row_that_says_most_about_a_model_is_found(
    provider: str, model: str, endpoint: str, row: str, mode: Mode
) -> None:
    found = find_capability(provider, model, endpoint, mode)
    assert (found.provider, found.model, found.endpoint, found.mode) == (
        provider,
        row,
        endpoint,
        mode,
    )


@pytest.mark.parametrize(
    ("asked", "nearest"),
    [
        pytest.param(
            ("openai", "gpt-6", "/v1/responses", "batch"),
            "openai gpt-5* /v1/responses batch; openai gpt-5* /v1/responses online; "
            "openai gpt-5* /v1/chat/completions batch",
            id="model",
        ),
        pytest.param(
            ("anthropic", "claude-haiku-4-5", "/v1/responses", "batch"),
            "anthropic claude-*-4-5* /v1/messages batch; anthropic claude-*-4-5* /v1/messages "
            "online; anthropic claude-* /v1/messages batch",
            id="endpoint",
        ),
    ],
)
def test_a_combination_without_a_row_is_refused_with_the_nearest(
    asked: tuple[str, str, str, Mode], nearest: str
) -> None:
    with pytest.raises(UnsupportedCombination) as raised:
        find_capability(*asked)
    assert str(raised.value) == (
        f"the capability table has no row for {' '.join(asked)}. Nearest rows: {nearest}. "
        "Choose a model, endpoint and mode that a row has, or add a row with its sources."
    )


def rows(mode: Mode) -> list[Capability]:
    return [row for row in packaged_table().rows if row.mode == mode]


@pytest.mark.parametrize("row", rows("batch"), ids=lambda row: row.row)
def test_every_batch_row_says_what_a_batch_depends_on(row: Capability) -> None:
    needed = {
        "max_bytes",
        "custom_id_pattern",
        "window_hours",
        "deadline_hours",
        "retention_hours",
        "cancel",
        "counts_live",
        "file_format",
    }
    assert needed <= row.facts().keys()


@pytest.mark.parametrize("row", packaged_table().rows, ids=lambda row: row.row)
def test_every_row_says_what_a_request_may_hold(row: Capability) -> None:
    needed = {"parameters_allowed", "structured_output", "schema_dialects", "tools"}
    assert needed <= row.facts().keys()
    assert row.input_by_reference is not None
    assert row.input_by_reference.value is False


def test_every_source_is_used() -> None:
    used = {fact.source for row in packaged_table().rows for fact in row.facts().values()}
    assert used == packaged_table().sources.keys()


@pytest.mark.parametrize(
    ("provider", "endpoint", "module", "struct", "ours"),
    [
        pytest.param(
            "openai",
            "/v1/responses",
            "openai.types.responses.response_create_params",
            "ResponseCreateParamsBase",
            set(),
            id="responses",
        ),
        pytest.param(
            "openai",
            "/v1/chat/completions",
            "openai.types.chat.completion_create_params",
            "CompletionCreateParamsBase",
            set(),
            id="chat",
        ),
        pytest.param(
            "anthropic",
            "/v1/messages",
            "anthropic.types.message_create_params",
            "MessageCreateParamsBase",
            set(),
            id="messages",
        ),
        pytest.param(
            "gemini",
            "generateContent",
            "google.genai.types",
            "GenerationConfigDict",
            {"schema_dialect"},
            id="generateContent",
        ),
    ],
)
def test_parameters_are_fields_of_the_sdk(
    provider: str, endpoint: str, module: str, struct: str, ours: set[str]
) -> None:
    pytest.importorskip(module, reason="an SDK that is not installed")
    names = getattr(importlib.import_module(module), struct).__annotations__.keys()
    known = {name.replace("_", "").lower() for name in names}
    for row in packaged_table().rows:
        if (row.provider, row.endpoint) == (provider, endpoint):
            assert row.parameters_allowed is not None
            sent = set(row.parameters_allowed.value) - ours
            assert {name.replace("_", "").lower() for name in sent} <= known, row.row


def test_bedrock_parameters_are_members_of_converse() -> None:
    session = pytest.importorskip("botocore.session", reason="an SDK that is not installed")
    model = session.get_session().get_service_model("bedrock-runtime")
    members = {
        *model.operation_model("Converse").input_shape.members,
        *model.shape_for("InferenceConfiguration").members,
    }
    for row in packaged_table().rows:
        if row.provider == "bedrock":
            assert row.parameters_allowed is not None
            assert set(row.parameters_allowed.value) <= members


def test_an_operators_limit_is_named_as_such() -> None:
    row = find_capability("openai", "gpt-5-mini", "/v1/responses", "batch")
    assert row.enqueued_tokens is None
    limited = row.with_setting("enqueued_tokens", 2_000_000, "2026-11-20").enqueued_tokens
    assert limited is not None
    assert (limited.value, limited.source, limited.date) == (
        2_000_000,
        "operating setting",
        "2026-11-20",
    )


def test_the_page_is_what_the_table_says(repository: Path) -> None:
    page = (repository / "docs" / "capabilities.md").read_text(encoding="utf-8")
    assert page == packaged_page(), "docs/capabilities.md is out of date: run `make docs`"


def test_the_page_shows_a_fact_once_for_the_rows_that_share_it() -> None:
    other = ROW.replace("gpt-5*", "gpt-4*")
    more = "max_records: {value: 60, source: S, date: 2026-10, note: a|b}"
    third = ROW.replace("gpt-5*", "o*")
    page = as_markdown(read_table(table_text(f"{ROW}, {FACT}", f"{other}, {FACT}", third)))
    assert "| records in a job, at most | `gpt-5*`, `gpt-4*` | 50 | S | 2026-11 |" in page
    page = as_markdown(read_table(table_text(f"{ROW}, {FACT}", f"{other}, {more}")))
    assert "| records in a job, at most | `gpt-4*` | 60 (a\\|b) | S | 2026-10 |" in page
    assert "| S | a guide |" in page
