"""Anthropic's formats, tables and errors: pure, without a server."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.providers.anthropic import jobs
from resources.providers.anthropic.batch import AnthropicBatch, joined, joined_length
from resources.providers.anthropic.errors import (
    creating,
    is_unsent,
    read_answer,
    read_retry_after,
    reading,
)
from resources.providers.anthropic.schema import MAX_OPTIONAL, MAX_UNIONS
from resources.providers.anthropic.wire import AnthropicWire, ParameterReserved
from resources.providers.port import (
    Ambiguous,
    Ask,
    Counts,
    Intent,
    JobMissing,
    MalformedLine,
    NewJob,
    Refused,
    Reply,
    ResultLine,
    SchemaUnsupported,
    Unavailable,
    Unreachable,
)
from tests.provider_emulator.anthropic_schema import schema_problem
from tests.support.asks import SCHEMA, make_ask

WIRE = AnthropicWire()
STRING = {"type": "string"}


def ask(schema: dict[str, Any] | None = None, **parameters: Any) -> Ask:
    return make_ask(
        "claude-haiku-4-5",
        "=== doc-0123456789abcdef document begins ===",
        schema=SCHEMA if schema is None else schema,
        parameters=parameters,
    )


def obj(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


# --- bodies -------------------------------------------------------------------------------------


def test_the_body_has_the_documented_form() -> None:
    assert WIRE.body(ask(thinking={"type": "disabled"})) == {
        "model": "claude-haiku-4-5",
        "max_tokens": 2000,
        "system": "Read the manual.",
        "messages": [{"role": "user", "content": "=== doc-0123456789abcdef document begins ==="}],
        "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}},
        "thinking": {"type": "disabled"},
    }


def test_other_fields_of_the_output_config_may_be_declared() -> None:
    config = WIRE.body(ask(output_config={"effort": "low"}))["output_config"]
    assert config == {"effort": "low", "format": {"type": "json_schema", "schema": SCHEMA}}


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ({"model": "x"}, "model"),
        ({"max_tokens": 1}, "max_tokens"),
        ({"system": "x"}, "system"),
        ({"messages": []}, "messages"),
        ({"output_format": {}}, "output_format"),
        ({"stream": True}, "stream"),
        ({"betas": []}, "betas"),
        ({"output_config": {"format": {}}}, "output_config.format"),
        ({"output_config": "x"}, "output_config.format"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_the_request_says_itself_cannot_be_declared(
    parameters: dict[str, Any], name: str
) -> None:
    with pytest.raises(ParameterReserved, match=name):
        WIRE.body(ask(**parameters))


def test_the_broken_body_is_broken_in_its_messages_alone() -> None:
    assert WIRE.broken_body(ask()) == {**WIRE.body(ask()), "messages": []}


def test_the_schema_of_the_ask_is_not_changed() -> None:
    before = json.dumps(SCHEMA)
    body = WIRE.body(ask())
    body["output_config"]["format"]["schema"]["more"] = 1
    assert json.dumps(SCHEMA) == before


# --- schemas ------------------------------------------------------------------------------------

OPTIONAL = {f"p{n}": STRING for n in range(MAX_OPTIONAL)}
UNIONS = {f"p{n}": {"type": ["string", "null"]} for n in range(MAX_UNIONS)}


def optional(properties: dict[str, Any]) -> dict[str, Any]:
    return {**obj(**properties), "required": []}


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param(SCHEMA, id="the-workload"),
        pytest.param(obj(a={"anyOf": [STRING, {"type": "null"}]}), id="any-of"),
        pytest.param(obj(a={"allOf": [STRING, {"description": "x"}]}), id="all-of"),
        pytest.param(obj(a={"type": "string", "format": "date-time"}), id="format"),
        pytest.param(obj(a={"type": "string", "pattern": "^[a-z]+(?:-[0-9]+)?$"}), id="pattern"),
        pytest.param(obj(a={"type": "array", "items": STRING, "minItems": 1}), id="min-items"),
        pytest.param(obj(a={"enum": ["x", 1, True, None]}), id="enum"),
        pytest.param(obj(a={"const": "x", "default": "x", "title": "t"}), id="const"),
        pytest.param(obj(minimum=STRING, type=STRING, items=STRING), id="names-like-keywords"),
        pytest.param(optional(OPTIONAL), id="most-optional"),
        pytest.param(obj(**UNIONS), id="most-unions"),
    ],
)
def test_schemas_inside_the_subset(schema: dict[str, Any]) -> None:
    assert WIRE.body(ask(schema))["output_config"]["format"]["schema"] == schema
    assert schema_problem(schema) is None


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        pytest.param(obj(a={"type": "integer", "minimum": 0}), "minimum", id="minimum"),
        pytest.param(obj(a={"type": "number", "multipleOf": 2}), "multipleOf", id="multiple-of"),
        pytest.param(obj(a={"type": "string", "maxLength": 9}), "#/properties/a", id="length"),
        pytest.param(obj(a={"type": "array", "items": STRING, "maxItems": 2}), "max", id="items"),
        pytest.param(obj(a={"type": "array", "minItems": 2}), "minItems", id="min-items-2"),
        pytest.param(obj(a={"oneOf": [STRING]}), "oneOf", id="one-of"),
        pytest.param(obj(a={"type": "string", "format": "phone"}), "phone", id="format"),
        pytest.param(obj(a={"type": "string", "pattern": "(?=x)"}), "pattern", id="pattern"),
        pytest.param(obj(a={"type": "text"}), "text", id="type"),
        pytest.param(obj(a={"enum": [{"x": 1}]}), "#/properties/a", id="enum-of-objects"),
        pytest.param(obj(a={"$ref": "https://x.example/y"}), "ref", id="external-reference"),
        pytest.param(obj(a={"$ref": "#/$defs/none"}), "not defined", id="undefined-reference"),
        pytest.param(
            {**obj(a={"allOf": [{"$ref": "#/$defs/s"}]}), "$defs": {"s": STRING}},
            "allOf",
            id="reference-in-all-of",
        ),
        pytest.param(
            {
                **obj(a={"$ref": "#/$defs/n"}),
                "$defs": {"n": obj(next={"anyOf": [{"$ref": "#/$defs/n"}, {"type": "null"}]})},
            },
            "recursion",
            id="recursion",
        ),
        pytest.param({"type": "object", "properties": {}}, "additionalProperties", id="open"),
        pytest.param(
            {"type": "object", "additionalProperties": STRING}, "additionalProperties", id="map"
        ),
        pytest.param(
            obj(a={"type": "object", "properties": {}}), "#/properties/a", id="open-inside"
        ),
        pytest.param(optional({**OPTIONAL, "q": STRING}), "25 properties", id="too-many-optional"),
        pytest.param(obj(**UNIONS, q={"anyOf": [STRING]}), "17 properties", id="too-many-unions"),
    ],
)
def test_schemas_outside_the_subset_are_named(schema: dict[str, Any], place: str) -> None:
    with pytest.raises(SchemaUnsupported, match=place):
        WIRE.body(ask(schema))
    assert schema_problem(schema) is not None  # the emulated provider refuses it too


# --- request lines ------------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(
    custom_id=st.text("abcXYZ019_-", min_size=1, max_size=64),
    body=st.dictionaries(st.text(), JSON, max_size=5),
    ascii_only=st.booleans(),
)
def test_a_request_line_gives_the_exact_bytes_back(
    custom_id: str, body: dict[str, Any], ascii_only: bool
) -> None:
    data = json.dumps(body, ensure_ascii=ascii_only).encode()
    line = WIRE.encode_request(custom_id, data)
    assert b"\n" not in line
    assert WIRE.decode_request(line) == (custom_id, data)
    assert json.loads(line) == {"custom_id": custom_id, "params": body}


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"{", id="cut"),
        pytest.param(b"[]", id="list"),
        pytest.param(b'{"custom_id":"a"}', id="no-params"),
        pytest.param(b'{"params":{}}', id="no-id"),
        pytest.param(b'{"custom_id":5,"params":{}}', id="number-as-id"),
        pytest.param(b'{"custom_id":"a","params":[1]}', id="params-no-object"),
        pytest.param(b'{"custom_id":"a","params":null}', id="params-null"),
        pytest.param(b'{"custom_id":"\xff","params":{}}', id="no-utf-8"),
    ],
)
def test_malformed_request_lines(line: bytes) -> None:
    with pytest.raises(MalformedLine):
        WIRE.decode_request(line)


# --- result lines -------------------------------------------------------------------------------


def message(**changes: Any) -> dict[str, Any]:
    usage = {
        "input_tokens": 100,
        "cache_creation_input_tokens": 20,
        "cache_read_input_tokens": 3,
        "output_tokens": 40,
    }
    made = {
        "id": "msg_1",
        "type": "message",
        "model": "claude-haiku-4-5-20251001",
        "content": [{"type": "text", "text": "{}"}],
        "stop_reason": "end_turn",
        "usage": usage,
    }
    return {**made, **changes}


def line_of(result: dict[str, Any], **more: Any) -> bytes:
    return json.dumps({"custom_id": "k", "result": result, **more}, ensure_ascii=False).encode()


def read(**changes: Any) -> ResultLine:
    return WIRE.read_line(line_of({"type": "succeeded", "message": message(**changes)}))


def test_a_whole_answer() -> None:
    assert read() == ResultLine(
        custom_id="k",
        status_code=200,
        text="{}",
        finish_reason="stop",
        model_revision="claude-haiku-4-5-20251001",
        input_tokens=123,
        output_tokens=40,
        cached_tokens=3,
    )


@pytest.mark.parametrize(
    ("word", "finish"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("tool_use", "stop"),
        ("max_tokens", "truncated"),
        ("model_context_window_exceeded", "truncated"),
        ("refusal", "refused"),
        ("pause_turn", "paused"),
        ("a_new_word", "unknown"),
        (None, "unknown"),
    ],
)
def test_finish_words(word: str | None, finish: str) -> None:
    assert read(stop_reason=word).finish_reason == finish


@pytest.mark.parametrize(
    ("content", "text"),
    [
        pytest.param([], "", id="none"),
        pytest.param([{"type": "text", "text": "a\u2028é"}], "a\u2028é", id="one"),
        pytest.param(
            [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "ab", id="two"
        ),
        pytest.param(
            [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "a"}],
            "a",
            id="thinking-left-out",
        ),
        pytest.param([{"type": "text"}], "", id="block-without-text"),
        pytest.param(None, None, id="no-content"),
    ],
)
def test_texts(content: Any, text: str | None) -> None:
    assert read(content=content).text == text


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        pytest.param({"input_tokens": 5, "output_tokens": 0}, (5, 0, None), id="no-cache"),
        pytest.param({"input_tokens": 0, "output_tokens": 1}, (0, 1, None), id="zero-is-a-number"),
        pytest.param({"cache_read_input_tokens": 5}, (None, None, 5), id="unknown-is-not-zero"),
        pytest.param({}, (None, None, None), id="empty"),
        pytest.param(None, (None, None, None), id="none"),
        pytest.param({"input_tokens": "5", "output_tokens": 1}, (None, 1, None), id="text"),
        pytest.param({"input_tokens": -1, "output_tokens": True}, (None, None, None), id="absurd"),
    ],
)
def test_usage(usage: Any, expected: tuple[int | None, ...]) -> None:
    found = read(usage=usage)
    assert (found.input_tokens, found.output_tokens, found.cached_tokens) == expected
    assert found.text == "{}"


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("invalid_request_error", 400),
        ("authentication_error", 401),
        ("billing_error", 402),
        ("permission_error", 403),
        ("not_found_error", 404),
        ("conflict_error", 409),
        ("request_too_large", 413),
        ("rate_limit_error", 429),
        ("api_error", 500),
        ("timeout_error", 504),
        ("overloaded_error", 529),
        ("a_new_error", 500),
    ],
)
def test_errored_rows(kind: str, status: int) -> None:
    error = {"type": "error", "error": {"type": kind, "message": "because"}, "request_id": None}
    found = WIRE.read_line(line_of({"type": "errored", "error": error}))
    assert found == ResultLine("k", status, error_code=kind)


@pytest.mark.parametrize(
    ("details", "code"),
    [
        ({"error_code": "ramp_limit_exceeded"}, "ramp_limit_exceeded"),
        ({"other": 1}, "rate_limit_error"),
        (None, "rate_limit_error"),
        ([1], "rate_limit_error"),
    ],
)
def test_the_code_of_the_details_says_more(details: Any, code: str) -> None:
    inner = {"type": "rate_limit_error", "message": "m", "details": details}
    found = WIRE.read_line(line_of({"type": "errored", "error": {"error": inner}}))
    assert (found.status_code, found.error_code) == (429, code)


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        pytest.param({"type": "expired"}, (0, "expired"), id="expired"),
        pytest.param({"type": "canceled"}, (0, "cancelled"), id="cancelled"),
        pytest.param({"type": "postponed"}, (0, "unknown_result_type"), id="unknown"),
        pytest.param({"type": "errored"}, (500, "unknown_error"), id="error-without-error"),
        pytest.param({"type": "succeeded"}, (200, None), id="success-without-message"),
    ],
)
def test_results_without_an_answer(
    result: dict[str, Any], expected: tuple[int, str | None]
) -> None:
    found = WIRE.read_line(line_of(result))
    assert (found.status_code, found.error_code) == expected
    assert (found.text, found.finish_reason, found.input_tokens) == (None, None, None)


def test_a_line_without_an_id_is_read() -> None:
    assert WIRE.read_line(b'{"result":{"type":"expired"}}').custom_id is None


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"<html>", id="html"),
        pytest.param(line_of({"type": "succeeded", "message": message()})[:-30], id="cut"),
        pytest.param(b'{"custom_id":"k"}', id="no-result"),
        pytest.param(b'{"custom_id":"k","result":{}}', id="no-type"),
        pytest.param(b'{"custom_id":5,"result":{"type":"expired"}}', id="number-as-id"),
        pytest.param(line_of({"type": "succeeded", "message": message(content="x")}), id="content"),
        pytest.param(b'{"custom_id":"\xff","result":{"type":"expired"}}', id="no-utf-8"),
        pytest.param(b'{"a":' * 5000, id="deep"),
    ],
)
def test_malformed_result_lines(line: bytes) -> None:
    with pytest.raises(MalformedLine):
        WIRE.read_line(line)


@given(st.binary(max_size=80))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for reader in (WIRE.read_line, WIRE.decode_request):
        try:
            reader(data)
        except MalformedLine:
            continue


# --- online replies as lines --------------------------------------------------------------------


def error_body(kind: str, **more: Any) -> bytes:
    return json.dumps({"type": "error", "error": {"type": kind, "message": "m", **more}}).encode()


@pytest.mark.parametrize("indent", [None, 2])
def test_an_answer_stands_in_the_line_as_it_came(indent: int | None) -> None:
    body = json.dumps(message(), indent=indent).encode()
    line = WIRE.encode_reply("k", Reply(200, body))
    assert b"\n" not in line
    assert json.loads(line) == {
        "custom_id": "k",
        "result": {"type": "succeeded", "message": message()},
    }
    assert WIRE.read_line(line) == read()
    if indent is None:
        assert body in line


@pytest.mark.parametrize(
    ("reply", "status", "code"),
    [
        pytest.param(Reply(400, error_body("invalid_request_error")), 400, None, id="400"),
        pytest.param(Reply(529, error_body("overloaded_error")), 529, None, id="529"),
        pytest.param(Reply(503, error_body("overloaded_error")), 503, None, id="kept-status"),
        pytest.param(
            Reply(429, error_body("rate_limit_error", details={"error_code": "x"})),
            429,
            "x",
            id="details",
        ),
        pytest.param(Reply(502, b"<html>"), 502, "no_answer", id="proxy-page"),
        pytest.param(Reply(500, b"<html>"), 500, "api_error", id="page-with-known-status"),
        pytest.param(Reply(200, b""), 200, "no_answer", id="success-without-body"),
        pytest.param(Reply(200, b'{"content":['), 200, "no_answer", id="success-cut"),
        pytest.param(Reply(0), 0, "no_answer", id="nothing-came"),
    ],
)
def test_failed_replies_as_lines(reply: Reply, status: int, code: str | None) -> None:
    line = WIRE.encode_reply("k", reply)
    assert b"\n" not in line
    found = WIRE.read_line(line)
    assert (found.custom_id, found.status_code, found.text) == ("k", status, None)
    expected = code or json.loads(reply.body)["error"]["type"]
    assert found.error_code == expected


# --- jobs ---------------------------------------------------------------------------------------


def batch(status: str = "ended", counts: dict[str, int] | None = None, **more: Any) -> bytes:
    return json.dumps(
        {"id": "msgbatch_1", "processing_status": status, "request_counts": counts, **more}
    ).encode()


@pytest.mark.parametrize(
    ("status", "phase"),
    [
        ("in_progress", "running"),
        ("canceling", "cancelling"),
        ("ended", "ended"),
        ("hibernating", "unknown"),
        ("", "unknown"),
        ("ENDED", "unknown"),
    ],
)
def test_statuses(status: str, phase: str) -> None:
    job = jobs.to_job(jobs.read_batch(batch(status)))
    assert (job.raw_status, job.phase) == (status, phase)
    assert (job.outcome is not None) == (phase == "ended")
    assert bool(job.files) == bool(job.remote) == (phase == "ended")


@pytest.mark.parametrize(
    ("counts", "outcome", "told"),
    [
        pytest.param({"succeeded": 3}, "completed", Counts(3, 3, 0, 0), id="all"),
        pytest.param({"errored": 3}, "completed", Counts(3, 0, 3, 0), id="none"),
        pytest.param({"succeeded": 2, "expired": 1}, "expired", Counts(3, 2, 1, 0), id="expired"),
        pytest.param({"succeeded": 2, "canceled": 1}, "cancelled", Counts(3, 2, 1, 0), id="cancel"),
        pytest.param({"canceled": 1, "expired": 1}, "cancelled", Counts(2, 0, 2, 0), id="both"),
        pytest.param(None, "completed", None, id="unknown"),
    ],
)
def test_outcomes(counts: dict[str, int] | None, outcome: str, told: Counts | None) -> None:
    job = jobs.to_job(jobs.read_batch(batch(counts=counts)))
    assert (job.outcome, job.counts) == (outcome, told)


def test_a_job_cancelled_too_late_has_completed() -> None:
    data = batch(counts={"succeeded": 3}, cancel_initiated_at="2026-11-30T12:00:00Z")
    assert jobs.to_job(jobs.read_batch(data)).outcome == "completed"


@pytest.mark.parametrize("text", ["2026-11-30T12:00:00Z", "2026-11-30T13:00:00+01:00"])
def test_times_are_aware(text: str) -> None:
    job = jobs.to_job(jobs.read_batch(batch(created_at=text)))
    assert job.created_at == datetime(2026, 11, 30, 12, tzinfo=UTC)


INTENT = Intent("0123456789ab-1", "0123456789ab", "m", 3, datetime(2026, 11, 30, 12, tzinfo=UTC))


@pytest.mark.parametrize(
    ("status", "seconds", "expected"),
    [
        ("in_progress", -60, (False, True)),
        ("in_progress", -61, (False, False)),
        ("in_progress", 3600, (False, True)),
        ("ended", -61, (False, True)),  # its lines will tell
        ("ended", -900, (False, True)),
        ("ended", -901, (True, False)),
    ],
)
def test_which_jobs_may_be_an_intents(
    status: str, seconds: int, expected: tuple[bool, bool]
) -> None:
    created = INTENT.recorded_at + timedelta(seconds=seconds)
    found = jobs.read_batch(batch(status, {"processing": 3}, created_at=created.isoformat()))
    assert (jobs.is_older(found, INTENT), jobs.may_be(found, INTENT)) == expected


MINE, OTHER = b'{"custom_id":"0123456789ab-00000-1"}', b'{"custom_id":"0123456789ab0-0-1"}'


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        pytest.param([MINE], True, id="mine"),
        pytest.param([OTHER], False, id="other"),
        pytest.param([OTHER, MINE], True, id="mine-later"),
        pytest.param([b"damaged", MINE], True, id="behind-damage"),
        pytest.param([OTHER] * 19 + [MINE], True, id="at-the-20th"),
        pytest.param([OTHER] * 20 + [MINE], False, id="at-the-21st"),
        pytest.param([b"damaged", b"{}"], None, id="no-ids"),
        pytest.param([], None, id="empty"),
    ],
)
def test_whose_results_these_are(lines: list[bytes], told: bool | None) -> None:
    assert jobs.names_batch(lines, "0123456789ab") is told


# --- errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "body", "failure", "code"),
    [
        (400, error_body("invalid_request_error"), "invalid_request", "invalid_request_error"),
        (401, error_body("authentication_error"), "auth", "authentication_error"),
        (402, error_body("billing_error"), "quota", "billing_error"),
        (403, error_body("permission_error"), "auth", "permission_error"),
        (404, error_body("not_found_error"), "invalid_request", "not_found_error"),
        (413, error_body("request_too_large"), "invalid_request", "request_too_large"),
        (429, error_body("rate_limit_error"), "rate_limited", "rate_limit_error"),
        (500, error_body("api_error"), "server_error", "api_error"),
        (504, error_body("timeout_error"), "server_error", "timeout_error"),
        (529, error_body("overloaded_error"), "overloaded", "overloaded_error"),
        (503, b"<html>secret</html>", "overloaded", None),
        (413, b"", "invalid_request", None),
        (418, b"[]", "invalid_request", None),
        *(
            (429, error_body("rate_limit_error", details={"error_code": code}), failure, code)
            for code, failure in (
                ("enforced_spend_limit_reached", "quota"),
                ("ramp_limit_exceeded", "rate_limited"),
                ("a_new_code", "rate_limited"),
            )
        ),
    ],
)
def test_what_failed_answers_mean(status: int, body: bytes, failure: str, code: str | None) -> None:
    found = read_answer(status, {}, body)
    assert (found.status, found.failure, found.code) == (status, failure, code)
    assert "secret" not in found.note


@pytest.mark.parametrize(
    ("status", "words", "failure"),
    [
        (400, "You have reached your specified API usage limits.", "quota"),
        (400, "Your credit balance is too low", "quota"),
        (429, "… batch requests in the processing queue", "capacity"),
        (400, "the processing queue", "invalid_request"),
    ],
)
def test_limits_that_only_words_tell(status: int, words: str, failure: str) -> None:
    body = json.dumps({"error": {"type": "x", "message": words}}).encode()
    assert read_answer(status, {}, body).failure == failure


def test_notes_are_short_and_on_one_line() -> None:
    body = json.dumps({"error": {"type": "x", "message": "a\nb " * 500}}).encode()
    note = read_answer(400, {}, body).note
    assert len(note) == 300 and "\n" not in note


DATE = "Mon, 30 Nov 2026 12:00:00 GMT"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        pytest.param({}, None, id="none"),
        pytest.param({"retry-after": "12"}, 12.0, id="seconds"),
        pytest.param({"retry-after": "0"}, 0.0, id="zero"),
        pytest.param({"retry-after": "1.5"}, 1.5, id="fraction"),
        pytest.param({"retry-after-ms": "250", "retry-after": "9"}, 0.25, id="milliseconds"),
        pytest.param({"retry-after": "-3"}, None, id="negative"),
        pytest.param({"retry-after": "nan"}, None, id="nan"),
        pytest.param({"retry-after": "inf"}, None, id="infinite"),
        pytest.param({"retry-after": "soon"}, None, id="words"),
        pytest.param(
            {"retry-after": "Mon, 30 Nov 2026 12:00:30 GMT", "date": DATE}, 30.0, id="date"
        ),
        pytest.param(
            {"retry-after": "Mon, 30 Nov 2026 11:00:00 GMT", "date": DATE}, 0.0, id="past-date"
        ),
        pytest.param({"retry-after": DATE}, None, id="date-without-a-now"),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert read_retry_after(headers) == seconds


def status_error(status: int, body: bytes = b"") -> anthropic.APIStatusError:
    request = httpx2.Request("POST", "http://x")
    response = httpx2.Response(status, request=request, content=body, headers={"retry-after": "4"})
    return anthropic.APIStatusError("no", response=response, body=None)


def lost(cause: Exception) -> anthropic.APIConnectionError:
    error = anthropic.APIConnectionError(request=httpx2.Request("POST", "http://x"))
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("raised", "of_creating", "of_reading"),
    [
        pytest.param(status_error(400), Refused, Refused, id="400"),
        pytest.param(status_error(401), Refused, Refused, id="401"),
        pytest.param(status_error(404), Refused, JobMissing, id="404"),
        pytest.param(status_error(408), Ambiguous, Unavailable, id="408"),
        pytest.param(status_error(409), Refused, Unavailable, id="409"),
        pytest.param(status_error(413), Refused, Refused, id="413"),
        pytest.param(status_error(429), Refused, Unavailable, id="429"),
        pytest.param(status_error(500), Ambiguous, Unavailable, id="500"),
        pytest.param(status_error(529), Ambiguous, Unavailable, id="529"),
        pytest.param(lost(httpx2.ReadError("x")), Ambiguous, Unavailable, id="read"),
        pytest.param(lost(httpx2.ReadTimeout("x")), Ambiguous, Unavailable, id="read-timeout"),
        pytest.param(lost(httpx2.WriteError("x")), Ambiguous, Unavailable, id="write"),
        pytest.param(httpx2.RemoteProtocolError("x"), Ambiguous, Unavailable, id="body-broke-off"),
    ],
)
def test_sdk_errors_as_errors_of_the_port(
    raised: Exception, of_creating: type[Exception], of_reading: type[Exception]
) -> None:
    with pytest.raises(of_creating) as created, creating():
        raise raised
    with pytest.raises(of_reading) as found, reading(JobMissing("anthropic", "j")):
        raise raised
    assert (type(created.value), type(found.value)) == (of_creating, of_reading)
    for error in (created.value, found.value):
        if isinstance(raised, anthropic.APIStatusError) and isinstance(
            error, Refused | Unavailable
        ):
            assert error.retry_after == 4.0


@pytest.mark.parametrize(
    "cause", [httpx2.ConnectError("x"), httpx2.ConnectTimeout("x"), httpx2.ProxyError("x")]
)
def test_what_was_never_sent(cause: Exception) -> None:
    assert is_unsent(lost(cause))
    with pytest.raises(Unreachable), creating():
        raise lost(cause)


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b'{"id":"x"}', b'{"id":"","processing_status":"ended"}']
)
def test_what_is_no_job(body: bytes) -> None:
    with pytest.raises(jobs.NotAJob):
        jobs.read_batch(body)


def test_an_encoded_line_is_json_of_one_line_whatever_the_text() -> None:
    body = msgspec.json.encode(message(content=[{"type": "text", "text": "a\r\n\u2028b"}]))
    line = WIRE.encode_reply("k", Reply(200, body))
    assert WIRE.read_line(line).text == "a\r\n\u2028b"
    assert b"\n" not in line and b"\r" not in line


# --- the body of a create call ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        pytest.param(b"", b'{"requests":[]}', id="empty"),
        pytest.param(b"{}\n", b'{"requests":[{}]}', id="one"),
        pytest.param(b"{}", b'{"requests":[{}]}', id="no-last-line-feed"),
        pytest.param(b"{1}\n{2}\n", b'{"requests":[{1},{2}]}', id="two"),
        pytest.param(b"{1}\n{2}", b'{"requests":[{1},{2}]}', id="two-no-last-line-feed"),
    ],
)
@pytest.mark.parametrize("block", [1, 2, 3, 4, 5, 1 << 20])
def test_lines_are_joined_whatever_the_blocks(
    content: bytes, expected: bytes, block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("resources.providers.anthropic.batch._BLOCK", block)
    path = tmp_path / "lines"
    path.write_bytes(content)
    with path.open("rb") as file:
        assert b"".join(joined(file)) == expected
    assert joined_length(path) == len(expected)


def create(path: Path, answer: httpx2.Response) -> list[httpx2.Request]:
    """Create a job of two lines at a server that always gives this answer; return its calls."""
    path.write_bytes(b'{"custom_id":"a"}\n{"custom_id":"b"}\n')
    calls: list[httpx2.Request] = []

    def serve(request: httpx2.Request) -> httpx2.Response:
        request.read()
        calls.append(request)
        return answer

    # As the SDK makes its own client: it follows redirects unless a call says otherwise.
    http = httpx2.Client(transport=httpx2.MockTransport(serve), follow_redirects=True)
    sdk = anthropic.Anthropic(api_key="k", base_url="http://x", max_retries=0, http_client=http)
    with sdk:
        AnthropicBatch(sdk).create(NewJob(INTENT, path, path.stat().st_size, 24, pytest.fail))
    return calls


def test_the_create_call_is_whole_and_has_a_length_and_a_key(tmp_path: Path) -> None:
    [call] = create(tmp_path / "requests", httpx2.Response(200, content=batch("in_progress")))
    assert (call.method, call.url.path) == ("POST", "/v1/messages/batches")
    assert call.content == b'{"requests":[{"custom_id":"a"},{"custom_id":"b"}]}'
    assert call.headers["content-length"] == str(len(call.content))
    assert "transfer-encoding" not in call.headers
    assert call.headers["content-type"] == "application/json"
    assert call.headers["authorization"] == "Bearer k"
    assert call.headers["anthropic-version"] == "2026-10-21"


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirected_create_is_not_followed(status: int, tmp_path: Path) -> None:
    with pytest.raises(Refused):
        create(tmp_path / "requests", httpx2.Response(status, headers={"location": "/elsewhere"}))


@pytest.mark.parametrize("content", [b"<html>", b"{}", b""])
def test_a_create_whose_answer_is_no_job_is_ambiguous(content: bytes, tmp_path: Path) -> None:
    with pytest.raises(Ambiguous):
        create(tmp_path / "requests", httpx2.Response(200, content=content))


def test_a_spend_limit_is_no_passing_trouble_though_it_comes_as_a_429() -> None:
    body = error_body("rate_limit_error", details={"error_code": "enforced_spend_limit_reached"})
    with pytest.raises(Refused) as caught, reading(JobMissing("anthropic", "j")):
        raise status_error(429, body)
    assert caught.value.failure == "quota"
