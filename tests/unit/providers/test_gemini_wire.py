"""Gemini's formats, tables and errors: pure, without a server."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import httpx2
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.providers.gemini import errors, jobs
from resources.providers.gemini.account import account_of, model_name
from resources.providers.gemini.errors import failure_of, read_problem
from resources.providers.gemini.jobs import inline_lines, job_of, read_operation, read_page
from resources.providers.gemini.statuses import FINISH, GRPC_HTTP, GRPC_NAMES
from resources.providers.gemini.wire import GeminiWire
from resources.providers.port import (
    Ambiguous,
    Ask,
    Counts,
    CredentialsMissing,
    JobMissing,
    MalformedLine,
    Refused,
    Reply,
    ResultLine,
    SchemaUnsupported,
    Unavailable,
    Unreachable,
)
from tests.provider_emulator.gemini_schema import BadSchema, check_schema
from tests.support.asks import SCHEMA, make_ask

WIRE = GeminiWire()
STRING = {"type": "string"}


def ask(schema: dict[str, Any] | None = None, **parameters: Any) -> Ask:
    return make_ask(
        "gemini-2.5-flash",
        "=== doc-0123456789abcdef document begins ===",
        schema=SCHEMA if schema is None else schema,
        parameters=parameters,
    )


def config(schema: dict[str, Any] | None = None, **parameters: Any) -> dict[str, Any]:
    return WIRE.body(ask(schema, **parameters))["generationConfig"]


def obj(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}


# --- bodies -------------------------------------------------------------------------------------


def test_the_body_has_the_documented_form() -> None:
    body = WIRE.body(ask(temperature=0.0, safetySettings=[{"category": "x"}]))
    generation = body.pop("generationConfig")
    assert body == {
        "contents": [
            {"role": "user", "parts": [{"text": "=== doc-0123456789abcdef document begins ==="}]}
        ],
        "systemInstruction": {"parts": [{"text": "Read the manual."}]},
        "safetySettings": [{"category": "x"}],
    }
    del generation["responseSchema"]
    assert generation == {
        "responseMimeType": "application/json",
        "maxOutputTokens": 2000,
        "temperature": 0.0,
    }


def test_the_workloads_schema_is_written_out_in_the_openapi_subset() -> None:
    schema = config()["responseSchema"]
    text = json.dumps(schema)
    assert "$ref" not in text and "$defs" not in text and "additionalProperties" not in text
    order = ["document", "title", "product_identifiers", "language", "description"]
    assert schema["propertyOrdering"] == schema["required"] == list(schema["properties"]) == order
    value = schema["properties"]["title"]["properties"]["value"]
    assert value["type"] == "STRING" and value["nullable"] is True
    items = schema["properties"]["product_identifiers"]["items"]
    assert items == schema["properties"]["title"]


@pytest.mark.parametrize("dialect", ["responseSchema", "responseJsonSchema"])
def test_the_workloads_schema_is_taken_in_both_dialects(dialect: str) -> None:
    made = config(schema_dialect=dialect)
    assert "schema_dialect" not in made
    assert [name for name in made if name.startswith("response")] == ["responseMimeType", dialect]
    check_schema(made, 32)


def test_the_second_dialect_sends_the_schema_as_it_is() -> None:
    assert config(schema_dialect="responseJsonSchema")["responseJsonSchema"] == SCHEMA


@pytest.mark.parametrize(
    ("schema", "made"),
    [
        pytest.param(
            obj(a={"anyOf": [STRING, {"type": "null"}]}),
            {"type": "STRING", "nullable": True},
            id="any-of-with-null",
        ),
        pytest.param(
            obj(a={"oneOf": [STRING, {"type": "integer"}], "title": "t"}),
            {"anyOf": [{"type": "STRING"}, {"type": "INTEGER"}], "title": "t"},
            id="one-of",
        ),
        pytest.param(
            obj(a={"type": ["string", "null"], "enum": ["x", None]}),
            {"type": "STRING", "nullable": True, "enum": ["x"]},
            id="null-in-enum",
        ),
        pytest.param(
            obj(a={"type": "array", "items": {"type": "number", "format": "double"}}),
            {"type": "ARRAY", "items": {"type": "NUMBER", "format": "double"}},
            id="array",
        ),
        pytest.param(
            {**obj(a={"$ref": "#/$defs/x~1y", "description": "mine"}), "$defs": {"x/y": STRING}},
            {"type": "STRING", "description": "mine"},
            id="words-beside-a-reference",
        ),
    ],
)
def test_schemas_are_said_in_the_subset(schema: dict[str, Any], made: dict[str, Any]) -> None:
    found = config(schema)
    assert found["responseSchema"]["properties"]["a"] == made
    check_schema(found, 32)


CYCLE = {
    **obj(a={"$ref": "#/$defs/n"}),
    "required": ["a"],
    "$defs": {"n": {**obj(next={"$ref": "#/$defs/n"}), "required": ["next"]}},
}


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        pytest.param(obj(a={"type": "string", "const": "x"}), "no word for const", id="const"),
        pytest.param(obj(a={"allOf": [STRING]}), "no word for allOf", id="all-of"),
        pytest.param(obj(a={"type": ["string", "integer"]}), "expected one type", id="two-types"),
        pytest.param(obj(a={}), "type is None", id="no-type"),
        pytest.param(obj(), "an object needs properties", id="empty-object"),
        pytest.param(obj(a={"type": "array"}), "an array needs items", id="no-items"),
        pytest.param(obj(a={"type": "integer", "enum": [1]}), "only list strings", id="enum"),
        pytest.param(obj(a={"type": "string", "format": "email"}), "'email'", id="format"),
        pytest.param(
            {"type": "object", "properties": {"a": STRING}, "additionalProperties": True},
            "must be false",
            id="open-object",
        ),
        pytest.param({**obj(a=STRING), "required": ["b"]}, "requires b", id="required-unknown"),
        pytest.param(CYCLE, "refers to itself", id="cycle"),
        pytest.param(obj(a={"$ref": "#/$defs/gone"}), "points at nothing", id="dangling"),
        pytest.param(obj(a={"$ref": "other.json#/x"}), "outside the schema", id="other-document"),
        pytest.param(obj(a=True), "no schema object", id="boolean-schema"),
        pytest.param(
            obj(a={"anyOf": [STRING], "minLength": 1}), "anyOf beside minLength", id="any-of-and"
        ),
    ],
)
def test_schemas_outside_the_subset_are_refused(schema: dict[str, Any], problem: str) -> None:
    with pytest.raises(SchemaUnsupported, match=problem):
        WIRE.body(ask(schema))


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        pytest.param(obj(a={**STRING, "pattern": "x"}), "document pattern", id="pattern"),
        pytest.param(obj(a={"type": "array", "items": {"const": 1}}), "const", id="inner-const"),
        pytest.param({**obj(a=STRING), "$defs": {"x": {"not": {}}}}, "not", id="unused-def"),
        pytest.param(obj(a={"$ref": "#/$defs/gone"}), "points at nothing", id="dangling"),
        pytest.param(CYCLE, "refers to itself", id="required-cycle"),
    ],
)
def test_json_schemas_outside_the_documented_words_are_refused(
    schema: dict[str, Any], problem: str
) -> None:
    with pytest.raises(SchemaUnsupported, match=problem):
        WIRE.body(ask(schema, schema_dialect="responseJsonSchema"))


def test_a_cycle_through_an_optional_property_is_taken() -> None:
    schema = {**obj(a={"$ref": "#/$defs/n"}), "$defs": {"n": obj(next={"$ref": "#/$defs/n"})}}
    made = config(schema, schema_dialect="responseJsonSchema")
    check_schema(made, 32)


def test_the_schema_is_not_kept_for_another_one() -> None:
    wire = GeminiWire()
    for _ in range(2):
        for schema, name in ((obj(a=STRING), "a"), (obj(b=STRING), "b")):
            made = wire.body(ask(schema))["generationConfig"]
            assert list(made["responseSchema"]["properties"]) == [name]
            made = wire.body(ask(schema, schema_dialect="responseJsonSchema"))["generationConfig"]
            assert made["responseJsonSchema"] == schema


def test_an_unknown_dialect_is_refused() -> None:
    with pytest.raises(SchemaUnsupported, match="schema_dialect is 'json', expected one of"):
        WIRE.body(ask(schema_dialect="json"))


@pytest.mark.parametrize("name", ["responseSchema", "maxOutputTokens", "responseMimeType"])
def test_parameters_do_not_win_over_what_the_request_sets(name: str) -> None:
    with pytest.raises(ValueError, match=f"the parameters set {name}"):
        WIRE.body(ask(None, **{name: 1}))


@pytest.mark.parametrize(
    "made",
    [
        pytest.param({"responseSchema": SCHEMA}, id="json-schema-as-openapi"),
        pytest.param({"responseJsonSchema": {"const": 1}}, id="unknown-word"),
        pytest.param({"responseSchema": {"type": "OBJECT"}}, id="empty-object"),
        pytest.param({"responseJsonSchema": CYCLE}, id="cycle"),
        pytest.param({"responseSchema": {"type": "INTEGER", "enum": ["1"]}}, id="enum"),
    ],
)
def test_the_emulator_refuses_what_the_wire_would_not_send(made: dict[str, Any]) -> None:
    with pytest.raises(BadSchema):
        check_schema({"responseMimeType": "application/json", **made}, 32)


def test_the_broken_body_differs_only_in_its_contents() -> None:
    body, broken = WIRE.body(ask()), WIRE.broken_body(ask())
    assert broken.pop("contents") == []
    del body["contents"]
    assert broken == body


# --- request lines ------------------------------------------------------------------------------

ids = st.from_regex(r"[A-Za-z0-9_-]{1,64}", fullmatch=True)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(ids, st.dictionaries(st.text(), values, max_size=4))
def test_a_request_line_gives_back_the_exact_bytes(custom_id: str, body: dict[str, Any]) -> None:
    data = msgspec.json.encode(body)
    line = WIRE.encode_request(custom_id, data)
    assert b"\n" not in line
    assert WIRE.decode_request(line) == (custom_id, data)
    assert json.loads(line) == {"key": custom_id, "request": body}


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"[]",
        b'{"key":"a"}',
        b'{"request":{}}',
        b'{"key":1,"request":{}}',
        b'{"key":"a"',
        b"\xff",
    ],
    ids=["empty", "list", "no-request", "no-key", "key-no-text", "cut", "not-utf8"],
)
def test_other_request_lines_are_malformed(line: bytes) -> None:
    with pytest.raises(MalformedLine, match="not a Gemini request line"):
        WIRE.decode_request(line)


# --- result lines -------------------------------------------------------------------------------


def answered(finish: str | None = "STOP", text: str | None = "{}", **more: Any) -> dict[str, Any]:
    candidate: dict[str, Any] = {}
    if text is not None:
        candidate["content"] = {"parts": [{"text": text}], "role": "model"}
    if finish is not None:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], **more}


def read(**line: Any) -> ResultLine:
    return WIRE.read_line(json.dumps({"key": "k1", **line}, ensure_ascii=False).encode())


@pytest.mark.parametrize(
    ("raw", "word"),
    [
        *[pytest.param(raw, word, id=raw.lower()) for raw, word in FINISH.items()],
        *[
            pytest.param(raw, "unknown", id=str(raw).lower())
            for raw in (
                None,
                "",
                "OTHER",
                "LANGUAGE",
                "IMAGE_OTHER",
                "NO_IMAGE",
                "UNEXPECTED_TOOL_CALL",
                "TOO_MANY_TOOL_CALLS",
                "MISSING_THOUGHT_SIGNATURE",
                "FINISH_REASON_UNSPECIFIED",
                "stop",
                "A_WORD_OF_NEXT_YEAR",
            )
        ],
    ],
)
def test_finish_words(raw: str | None, word: str) -> None:
    found = read(response=answered(raw))
    assert (found.status_code, found.text, found.finish_reason) == (200, "{}", word)


def test_the_table_of_finish_words_is_the_documented_one() -> None:
    assert {raw for raw, word in FINISH.items() if word == "stop"} == {"STOP"}
    assert {raw for raw, word in FINISH.items() if word == "truncated"} == {"MAX_TOKENS"}
    filtered = {raw for raw, word in FINISH.items() if word == "filtered"}
    assert filtered >= {"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"}


def test_texts_are_joined_and_thoughts_left_out() -> None:
    parts = [{"text": "I think", "thought": True}, {"text": '{"a":'}, {"inlineData": {}}]
    response = {"candidates": [{"content": {"parts": [*parts, {"text": "1}"}]}}]}
    assert read(response=response).text == '{"a":1}'


def test_a_blocked_prompt_was_filtered() -> None:
    found = read(response={"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}})
    assert found == ResultLine("k1", 200, None, "filtered")


def test_a_filtered_answer_may_have_no_text() -> None:
    assert read(response=answered("SAFETY", None)) == ResultLine("k1", 200, None, "filtered")


@pytest.mark.parametrize(
    ("line", "status"),
    [
        pytest.param({"response": {}}, 200, id="empty-response"),
        pytest.param({"response": {"candidates": []}}, 200, id="no-candidates"),
        pytest.param({}, 0, id="neither"),
        pytest.param({"response": None, "error": None}, 0, id="nulls"),
    ],
)
def test_a_line_without_an_answer_claims_none(line: dict[str, Any], status: int) -> None:
    assert read(**line) == ResultLine("k1", status)


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        pytest.param(None, (None, None, None), id="not-told"),
        pytest.param({}, (None, 0, 0), id="empty"),
        pytest.param({"promptTokenCount": 10}, (10, 0, 0), id="zeros-left-out"),
        pytest.param(
            {
                "promptTokenCount": 10,
                "toolUsePromptTokenCount": 3,
                "cachedContentTokenCount": 4,
                "candidatesTokenCount": 5,
                "thoughtsTokenCount": 6,
                "totalTokenCount": 24,
            },
            (13, 11, 4),
            id="thoughts-are-output-and-cached-is-input",
        ),
    ],
)
def test_usage(usage: dict[str, int] | None, tokens: tuple[int | None, ...]) -> None:
    response = answered(modelVersion="gemini-2.5-flash-001")
    if usage is not None:
        response["usageMetadata"] = usage
    found = read(response=response)
    assert (found.input_tokens, found.output_tokens, found.cached_tokens) == tokens
    assert found.model_revision == "gemini-2.5-flash-001"


@pytest.mark.parametrize(
    ("code", "status", "name"),
    [
        pytest.param(3, 400, "INVALID_ARGUMENT", id="3"),
        pytest.param(4, 504, "DEADLINE_EXCEEDED", id="4"),
        pytest.param(5, 404, "NOT_FOUND", id="5"),
        pytest.param(7, 403, "PERMISSION_DENIED", id="7"),
        pytest.param(8, 429, "RESOURCE_EXHAUSTED", id="8"),
        pytest.param(13, 500, "INTERNAL", id="13"),
        pytest.param(14, 503, "UNAVAILABLE", id="14"),
        pytest.param(16, 401, "UNAUTHENTICATED", id="16"),
        pytest.param(1, 0, "cancelled", id="1-was-never-run"),
        pytest.param(99, 500, "99", id="no-such-code"),
        pytest.param(429, 429, "429", id="an-http-number"),
        pytest.param(0, 0, None, id="0"),
    ],
)
def test_row_errors(code: int, status: int, name: str | None) -> None:
    found = read(error={"code": code, "message": "text that stays in the file"})
    assert found == ResultLine("k1", status, error_code=name)


def test_the_tables_of_codes_agree() -> None:
    assert GRPC_NAMES.keys() == GRPC_HTTP.keys()


def test_a_rows_own_error_word_wins() -> None:
    assert read(error={"code": 8, "status": "QUOTA"}).error_code == "QUOTA"


@pytest.mark.parametrize(
    ("line", "key"),
    [
        pytest.param({"response": {}}, None, id="no-key"),
        pytest.param({"key": None, "response": {}}, None, id="null-key"),
        pytest.param({"metadata": {"key": "m"}, "response": {}}, "m", id="key-in-metadata"),
    ],
)
def test_keys(line: dict[str, Any], key: str | None) -> None:
    assert WIRE.read_line(json.dumps(line).encode()).custom_id == key


def test_unknown_fields_and_raw_separators_do_no_harm() -> None:
    found = read(response=answered(text="a\u2028b\u0085c", futureField={"x": [1]}), extra=1)
    assert found.text == "a\u2028b\u0085c"


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"[]",
        b"null",
        b'{"key":1}',
        b'{"key":"a","response":[]}',
        b'{"key":"a","response":{"candidates":[{"content":{"parts":[{"text":"secr',
        b'{"key":"a","error":"secret"}',
        b'{"key":"a"} {"key":"b"}',
        b'{"key":"\xff"}',
        b"[" * 100_000,
    ],
    ids=[
        "empty",
        "list",
        "null",
        "key-no-text",
        "response-a-list",
        "cut",
        "error-a-text",
        "two-values",
        "not-utf8",
        "too-deep",
    ],
)
def test_malformed_lines_say_so_without_their_content(line: bytes) -> None:
    with pytest.raises(MalformedLine, match=r"\Anot a Gemini result line: \w+\Z"):
        WIRE.read_line(line)


# --- replies as lines ---------------------------------------------------------------------------


def pretty(value: Any) -> bytes:
    return json.dumps(value, indent=2, ensure_ascii=False).encode() + b"\n"


def test_a_reply_reads_like_a_batch_line() -> None:
    response = answered(text="a\u2028 b", usageMetadata={"promptTokenCount": 3})
    line = WIRE.encode_reply("k1", Reply(200, pretty(response)))
    assert b"\n" not in line
    assert json.loads(line) == {"key": "k1", "response": response}
    assert WIRE.read_line(line) == read(response=response)


@pytest.mark.parametrize("body", [b"", b'{"candidates":[{"con', b"<html>", b"[]"])
def test_a_success_that_cannot_be_read_is_no_answer(body: bytes) -> None:
    line = WIRE.encode_reply("k1", Reply(200, body, failure="transport", ambiguous=True))
    assert WIRE.read_line(line) == ResultLine("k1", 0)


@pytest.mark.parametrize(
    ("status", "name", "code"),
    [
        pytest.param(400, "INVALID_ARGUMENT", 3, id="400"),
        pytest.param(400, "FAILED_PRECONDITION", 9, id="400-precondition"),
        pytest.param(401, "UNAUTHENTICATED", 16, id="401"),
        pytest.param(403, "PERMISSION_DENIED", 7, id="403"),
        pytest.param(404, "NOT_FOUND", 5, id="404"),
        pytest.param(429, "RESOURCE_EXHAUSTED", 8, id="429"),
        pytest.param(500, "INTERNAL", 13, id="500"),
        pytest.param(503, "UNAVAILABLE", 14, id="503"),
        pytest.param(504, "DEADLINE_EXCEEDED", 4, id="504"),
    ],
)
def test_error_replies_become_row_errors(status: int, name: str, code: int) -> None:
    error = {"code": status, "message": "m", "status": name, "details": [{"a": 1}]}
    line = WIRE.encode_reply("k1", Reply(status, pretty({"error": error})))
    assert json.loads(line)["error"] == {**error, "code": code}
    assert WIRE.read_line(line) == ResultLine("k1", status, error_code=name)


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        pytest.param(Reply(0, failure="transport", ambiguous=True), 0, id="no-answer"),
        pytest.param(Reply(502, b"<html>Bad gateway</html>"), 502, id="gateway"),
        pytest.param(Reply(503, b""), 503, id="empty-503"),
        pytest.param(Reply(413, b"too large"), 413, id="413"),
    ],
)
def test_replies_of_another_form_keep_their_status(reply: Reply, status: int) -> None:
    line = WIRE.encode_reply("k1", reply)
    assert b"html" not in line
    assert WIRE.read_line(line).status_code == status


# --- jobs ---------------------------------------------------------------------------------------

FILE = {"responsesFile": "files/batch-1"}


def operation(state: str | None = None, **more: Any) -> dict[str, Any]:
    metadata = {"displayName": "tallybook-x-1", **more.pop("metadata", {})}
    if state is not None:
        metadata["state"] = state
    return {"name": "batches/1", "metadata": metadata, **more}


def job(state: str | None = None, **more: Any) -> Any:
    return job_of(read_operation(json.dumps(operation(state, **more)).encode()))


@pytest.mark.parametrize("prefix", ["BATCH_STATE_", "JOB_STATE_"])
@pytest.mark.parametrize(
    ("state", "phase", "outcome"),
    [
        pytest.param("PENDING", "queued", None, id="pending"),
        pytest.param("QUEUED", "queued", None, id="queued"),
        pytest.param("PAUSED", "queued", None, id="paused"),
        pytest.param("RUNNING", "running", None, id="running"),
        pytest.param("UPDATING", "running", None, id="updating"),
        pytest.param("CANCELLING", "cancelling", None, id="cancelling"),
        pytest.param("SUCCEEDED", "ended", "completed", id="succeeded"),
        pytest.param("PARTIALLY_SUCCEEDED", "ended", "completed", id="partially"),
        pytest.param("FAILED", "ended", "provider_failed", id="failed"),
        pytest.param("CANCELLED", "ended", "cancelled", id="cancelled"),
        pytest.param("EXPIRED", "ended", "expired", id="expired"),
        pytest.param("UNSPECIFIED", "unknown", None, id="unspecified"),
        pytest.param("REVIEWING", "unknown", None, id="new-word"),
    ],
)
def test_states(prefix: str, state: str, phase: str, outcome: str | None) -> None:
    found = job(prefix + state, response=FILE, done=True)
    assert (found.raw_status, found.phase, found.outcome) == (prefix + state, phase, outcome)
    assert bool(found.files) == (phase == "ended" and state != "EXPIRED")


def test_a_job_without_a_state_is_unknown() -> None:
    assert (job().phase, job().raw_status) == ("unknown", "")


def test_a_job_has_not_ended_before_its_results_are_named() -> None:
    found = job("BATCH_STATE_SUCCEEDED", response={"responsesFile": ""}, done=True)
    assert (found.phase, found.outcome, found.files) == ("running", None, ())


@pytest.mark.parametrize(
    ("more", "ref"),
    [
        pytest.param({"response": FILE}, "files/batch-1", id="response"),
        pytest.param({"metadata": {"output": FILE}}, "files/batch-1", id="metadata"),
        pytest.param(
            {"response": FILE, "metadata": {"output": FILE}}, "files/batch-1", id="told-twice"
        ),
        pytest.param({"response": {"inlinedResponses": {}}}, "inline:batches/1", id="inline"),
        pytest.param(
            {"metadata": {"output": {"inlinedResponses": {"inlinedResponses": []}}}},
            "inline:batches/1",
            id="inline-in-metadata",
        ),
    ],
)
def test_results_are_found_wherever_they_are_told(more: dict[str, Any], ref: str) -> None:
    assert [file.ref for file in job("BATCH_STATE_SUCCEEDED", **more).files] == [ref]


def test_what_can_be_deleted_is_named() -> None:
    found = job(
        "BATCH_STATE_SUCCEEDED",
        response=FILE,
        metadata={"inputConfig": {"fileName": "files/in"}},
    )
    assert found.remote == ("files/in", "files/batch-1", "batches/1")
    assert job("BATCH_STATE_PENDING").remote == ("batches/1",)


@pytest.mark.parametrize(
    ("stats", "counts"),
    [
        pytest.param(None, None, id="none"),
        pytest.param({}, Counts(0, 0, 0, 0), id="all-zero"),
        pytest.param(
            {"requestCount": "3", "successfulRequestCount": "2", "failedRequestCount": "1"},
            Counts(3, 2, 1, 0),
            id="strings",
        ),
        pytest.param({"requestCount": 3, "pendingRequestCount": 3}, Counts(3, 0, 0, 3), id="ints"),
        pytest.param({"requestCount": "many"}, Counts(None, 0, 0, 0), id="no-number"),
    ],
)
def test_counts(stats: dict[str, Any] | None, counts: Counts | None) -> None:
    assert job("BATCH_STATE_RUNNING", metadata={"batchStats": stats}).counts == counts


@pytest.mark.parametrize(
    ("code", "failure", "name"),
    [
        pytest.param(3, "invalid_request", "INVALID_ARGUMENT", id="3"),
        pytest.param(5, "unsupported", "NOT_FOUND", id="5"),
        pytest.param(7, "auth", "PERMISSION_DENIED", id="7"),
        pytest.param(8, "capacity", "RESOURCE_EXHAUSTED", id="8"),
        pytest.param(13, "server_error", "INTERNAL", id="13"),
        pytest.param(14, "server_error", "UNAVAILABLE", id="14"),
        pytest.param(16, "auth", "UNAUTHENTICATED", id="16"),
        pytest.param(77, "server_error", "77", id="unknown"),
    ],
)
def test_failed_jobs(code: int, failure: str, name: str) -> None:
    found = job("BATCH_STATE_FAILED", error={"code": code, "message": "why\nit failed" + "x" * 999})
    assert (found.error_class, found.error_code) == (failure, name)
    assert found.error_note.startswith("why it failed") and len(found.error_note) == 300


def test_a_used_up_daily_quota_fails_a_job_for_longer_than_capacity() -> None:
    details = [{"violations": [{"quotaId": "TokensPerDayPerProject"}]}]
    found = job("BATCH_STATE_FAILED", error={"code": 8, "message": "m", "details": details})
    assert found.error_class == "quota"


def test_a_failed_job_may_keep_its_reason_to_itself() -> None:
    found = job("BATCH_STATE_FAILED")
    assert (found.error_class, found.error_code, found.error_note) == ("server_error", None, None)


def test_an_error_beside_another_state_is_not_the_jobs() -> None:
    found = job("BATCH_STATE_CANCELLED", error={"code": 1, "message": "cancelled"})
    assert found.error_class is None


@pytest.mark.parametrize(
    ("text", "time"),
    [
        pytest.param(
            "2026-11-07T11:55:07.827892252Z",
            datetime(2026, 11, 7, 11, 55, 7, 827892, UTC),
            id="nine-decimals",
        ),
        pytest.param("2026-11-07T11:55:07Z", datetime(2026, 11, 7, 11, 55, 7, 0, UTC), id="none"),
        pytest.param(
            "2026-11-07T13:55:07+02:00", datetime(2026, 11, 7, 11, 55, 7, 0, UTC), id="offset"
        ),
        pytest.param("yesterday", None, id="no-time"),
        pytest.param(None, None, id="missing"),
    ],
)
def test_times(text: str | None, time: datetime | None) -> None:
    assert jobs.read_time(text) == time


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b"{}", b'{"name":""}', b'{"name":"batches/1","metadata":[]}', b"\xff"],
    ids=["empty", "list", "no-name", "empty-name", "metadata-a-list", "not-utf8"],
)
def test_other_answers_are_no_operations(data: bytes) -> None:
    with pytest.raises(jobs.NotAnOperation):
        read_operation(data)


def test_a_page_says_when_an_entry_could_not_be_read() -> None:
    page = {"operations": [operation(), {"name": 5}], "nextPageToken": "t"}
    found, whole, token = read_page(json.dumps(page).encode())
    assert ([one.name for one in found], whole, token) == (["batches/1"], False, "t")
    assert read_page(b"{}") == ([], True, None)
    with pytest.raises(jobs.NotAnOperation):
        read_page(b'{"operations":1}')


@pytest.mark.parametrize("nested", [True, False], ids=["object", "list"])
def test_inline_results_become_lines(nested: bool) -> None:
    entries = [
        {"metadata": {"key": "b"}, "response": answered(text="x\u2028y")},
        {"metadata": {"key": "a"}, "error": {"code": 8, "message": "m"}},
        {"response": answered()},
    ]
    output = {"inlinedResponses": {"inlinedResponses": entries} if nested else entries}
    told = operation("BATCH_STATE_SUCCEEDED", response=output, metadata={"output": output})
    lines = b"".join(inline_lines(read_operation(pretty(told)))).split(b"\n")
    assert lines.pop() == b""
    found = [WIRE.read_line(line) for line in lines]
    assert [(one.custom_id, one.status_code, one.text) for one in found] == [
        ("b", 200, "x\u2028y"),
        ("a", 429, None),
        (None, 200, "{}"),
    ]


def test_inline_results_of_another_form_are_not_taken_for_none() -> None:
    told = operation("BATCH_STATE_SUCCEEDED", response={"inlinedResponses": "many"})
    with pytest.raises(jobs.NotAnOperation):
        list(inline_lines(read_operation(pretty(told))))


# --- errors -------------------------------------------------------------------------------------


def problem(status: int, name: str | None = None, message: str = "m", *details: Any) -> Any:
    error = {"code": status, "message": message, "status": name, "details": list(details)}
    return read_problem(status, {}, pretty({"error": error}))


PER_DAY = {"violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel"}]}
PER_MINUTE = {"violations": [{"quotaId": "GenerateRequestsPerMinutePerProject"}]}
GONE = "You do not have permission to access the File abc or it may not exist."


@pytest.mark.parametrize(
    ("found", "failure"),
    [
        pytest.param(problem(400, "INVALID_ARGUMENT"), "invalid_request", id="400"),
        pytest.param(problem(400, "FAILED_PRECONDITION"), "quota", id="400-precondition"),
        pytest.param(
            problem(400, "INVALID_ARGUMENT", "m", {"reason": "API_KEY_INVALID"}), "auth", id="key"
        ),
        pytest.param(problem(401, "UNAUTHENTICATED"), "auth", id="401"),
        pytest.param(problem(402), "quota", id="402"),
        pytest.param(problem(403, "PERMISSION_DENIED"), "auth", id="403"),
        pytest.param(problem(404, "NOT_FOUND"), "unsupported", id="404"),
        pytest.param(problem(408), "transport", id="408"),
        pytest.param(problem(413), "invalid_request", id="413"),
        pytest.param(problem(429, "RESOURCE_EXHAUSTED"), "rate_limited", id="429"),
        pytest.param(problem(429, None, "m", PER_MINUTE), "rate_limited", id="429-minute"),
        pytest.param(problem(429, None, "m", PER_DAY), "quota", id="429-day"),
        pytest.param(problem(500, "INTERNAL"), "server_error", id="500"),
        pytest.param(problem(503, "UNAVAILABLE"), "overloaded", id="503"),
        pytest.param(problem(504, "DEADLINE_EXCEEDED"), "server_error", id="504"),
        pytest.param(problem(302), "transport", id="302"),
    ],
)
def test_what_refusals_mean(found: Any, failure: str) -> None:
    assert failure_of(found) == failure


@pytest.mark.parametrize(
    ("found", "failure", "code"),
    [
        pytest.param(
            problem(429, "RESOURCE_EXHAUSTED"), "capacity", "RESOURCE_EXHAUSTED", id="429"
        ),
        pytest.param(problem(429, "R", "m", PER_DAY), "quota", "R", id="429-day"),
        pytest.param(
            problem(403, "PERMISSION_DENIED", GONE), "transport", "input_not_found", id="gone"
        ),
        pytest.param(
            problem(400, "FAILED_PRECONDITION", "The File x is not in an ACTIVE state and usage"),
            "transport",
            "input_not_ready",
            id="processing",
        ),
        pytest.param(problem(404, "NOT_FOUND"), "unsupported", "NOT_FOUND", id="model"),
        pytest.param(problem(403, "PERMISSION_DENIED"), "auth", "PERMISSION_DENIED", id="auth"),
    ],
)
def test_what_a_no_at_creation_means(found: Any, failure: str, code: str) -> None:
    error = errors.of_creation(found)
    assert isinstance(error, Refused)
    assert (error.failure, error.code) == (failure, code)


MISSING = JobMissing("gemini", "batches/1")


@pytest.mark.parametrize(
    ("found", "kind"),
    [
        pytest.param(problem(404), JobMissing, id="404"),
        pytest.param(problem(403, "PERMISSION_DENIED", GONE), JobMissing, id="403-gone"),
        pytest.param(problem(403, "PERMISSION_DENIED"), Refused, id="403"),
        pytest.param(problem(401), Refused, id="401"),
        pytest.param(problem(400), Refused, id="400"),
        pytest.param(problem(429), Unavailable, id="429"),
        pytest.param(problem(500), Unavailable, id="500"),
        pytest.param(problem(503), Unavailable, id="503"),
        pytest.param(problem(302), Unavailable, id="302"),
    ],
)
def test_what_a_no_at_reading_means(found: Any, kind: type[Exception]) -> None:
    assert type(errors.of_reading(found, MISSING)) is kind


@pytest.mark.parametrize(
    ("delay", "header", "seconds"),
    [
        pytest.param("34s", None, 34.0, id="seconds"),
        pytest.param("34.074824224s", None, 34.074824224, id="fraction"),
        pytest.param(None, "7", 7.0, id="header"),
        pytest.param("2s", "7", 7.0, id="the-longer-one"),
        pytest.param("soon", "Wed, 21 Oct 2026 07:28:00 GMT", None, id="unreadable"),
        pytest.param(None, None, None, id="none"),
    ],
)
def test_how_long_to_wait(delay: str | None, header: str | None, seconds: float | None) -> None:
    details = [] if delay is None else [{"@type": "RetryInfo", "retryDelay": delay}]
    body = {"error": {"code": 429, "message": "m", "details": details}}
    headers = httpx2.Headers({} if header is None else {"Retry-After": header})
    assert read_problem(429, headers, pretty(body)).retry_after == seconds


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>", b"[]", b'{"error":"text"}', b'{"error":{"details":{"a":1}}}', b"[" * 100_000],
    ids=["empty", "html", "list", "text", "details-a-map", "too-deep"],
)
def test_an_error_without_the_providers_body_has_its_status(body: bytes) -> None:
    found = read_problem(503, {}, body)
    assert (found.status, found.name, found.note) == (503, None, "HTTP 503")


def test_an_error_inside_a_list_is_read() -> None:
    body = [{"error": {"code": 429, "message": "slow down", "status": "RESOURCE_EXHAUSTED"}}]
    assert read_problem(429, {}, pretty(body)).note == "slow down"


def test_a_key_in_a_message_is_taken_out() -> None:
    text = "Permission denied: Consumer 'api_key:AIzaSyD-9tSrke72PouQMnMX' has been suspended."
    note = errors.clean_note(text)
    assert note == "Permission denied: Consumer 'api_key:[key]' has been suspended."


@pytest.mark.parametrize(
    ("error", "reading", "creating"),
    [
        pytest.param(httpx2.ConnectError("x"), Unreachable, Unreachable, id="connect"),
        pytest.param(httpx2.ConnectTimeout("x"), Unreachable, Unreachable, id="connect-timeout"),
        pytest.param(httpx2.PoolTimeout("x"), Unreachable, Unreachable, id="pool"),
        pytest.param(httpx2.ReadTimeout("x"), Unavailable, Ambiguous, id="read-timeout"),
        pytest.param(httpx2.WriteError("x"), Unavailable, Ambiguous, id="write"),
        pytest.param(httpx2.RemoteProtocolError("x"), Unavailable, Ambiguous, id="dropped"),
        pytest.param(httpx2.DecodingError("x"), Unavailable, Ambiguous, id="decoding"),
    ],
)
def test_broken_connections(
    error: httpx2.HTTPError, reading: type[Exception], creating: type[Exception]
) -> None:
    assert type(errors.of_transport(error)) is reading
    assert type(errors.of_transport_at_create(error)) is creating


# --- account ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("environment", "base_url", "version", "key"),
    [
        pytest.param(
            {"GEMINI_API_KEY": "k"},
            "https://generativelanguage.googleapis.com",
            "v1",
            "k",
            id="defaults",
        ),
        pytest.param(
            {"GEMINI_API_KEY": "k", "GOOGLE_API_KEY": " g\n"},
            "https://generativelanguage.googleapis.com",
            "v1",
            "g",
            id="the-sdk-prefers-google",
        ),
        pytest.param(
            {
                "GEMINI_API_KEY": "k",
                "GOOGLE_GEMINI_BASE_URL": "http://127.0.0.1:9/gemini/",
                "GOOGLE_GENAI_API_VERSION": "beta",
            },
            "http://127.0.0.1:9/gemini",
            "v1beta",
            "k",
            id="set",
        ),
    ],
)
def test_the_account_is_the_sdks(
    environment: dict[str, str], base_url: str, version: str, key: str
) -> None:
    found = account_of(environment)
    assert (found.base_url, found.version, found.key) == (base_url, version, key)


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [
        pytest.param({}, "GEMINI_API_KEY .or GOOGLE_API_KEY. is not set", id="no-key"),
        pytest.param({"GEMINI_API_KEY": "  "}, "GEMINI_API_KEY", id="blank"),
        pytest.param({"GEMINI_API_KEY": "schlüssel"}, "printable ASCII", id="not-ascii"),
        pytest.param({"GEMINI_API_KEY": "a\nb"}, "printable ASCII", id="line-feed"),
        pytest.param(
            {"GEMINI_API_KEY": "k", "GOOGLE_GEMINI_BASE_URL": "localhost:80"},
            "an http or https address in GOOGLE_GEMINI_BASE_URL",
            id="no-scheme",
        ),
        pytest.param(
            {"GEMINI_API_KEY": "k", "GOOGLE_GEMINI_BASE_URL": "http://h:port"},
            "an http or https address",
            id="bad-port",
        ),
    ],
)
def test_unusable_accounts_are_refused(environment: dict[str, str], wanted: str) -> None:
    with pytest.raises(CredentialsMissing, match=wanted):
        account_of(environment)


def test_the_key_is_never_shown() -> None:
    found = account_of({"GEMINI_API_KEY": "AIza-secret"})
    assert "secret" not in repr(found) + str(found) + found.text()
    other = account_of({"GEMINI_API_KEY": "AIza-other"})
    assert found.text() != other.text()


@pytest.mark.parametrize(
    ("model", "name"),
    [("gemini-2.5-flash", "models/gemini-2.5-flash"), ("tunedModels/x", "tunedModels/x")],
)
def test_model_names(model: str, name: str) -> None:
    assert model_name(model) == name


def test_odd_names_stay_inside_their_path() -> None:
    account = account_of({"GEMINI_API_KEY": "k", "GOOGLE_GEMINI_BASE_URL": "http://h"})
    assert account.url("batches/a?b#c", "cancel") == "http://h/v1/batches/a%3Fb%23c:cancel"
