"""OpenAI's formats: bodies, request lines, result lines, and what words, errors, schemas mean."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.providers.openai.errors import (
    MAX_NOTE,
    Trouble,
    create_error,
    duration_of,
    failure_of,
    read_error,
    retry_after_of,
    safe_note,
    trouble_in,
    upload_error,
)
from resources.providers.openai.jobs import Batch, is_newest_first, is_of, job_of
from resources.providers.openai.schema import problem_of
from resources.providers.openai.statuses import job_failure, phase_of
from resources.providers.openai.wire import CHAT, OWN_FIELDS, RESPONSES, OpenAIWire
from resources.providers.port import (
    Ambiguous,
    Ask,
    Counts,
    Intent,
    MalformedLine,
    ProviderError,
    Refused,
    Reply,
    ResultLine,
    SchemaUnsupported,
    Unavailable,
    Unreachable,
)
from tests.support.asks import SCHEMA, make_ask
from tests.support.clock import FrozenClock

WIRES = {endpoint: OpenAIWire(endpoint) for endpoint in (RESPONSES, CHAT)}
USER = "Übersicht\u2028Seite 1"


def ask(**changes: Any) -> Ask:
    return make_ask("gpt-5-mini", USER, **changes)


# Bodies


def test_responses_body() -> None:
    assert WIRES[RESPONSES].body(ask(parameters={"reasoning": {"effort": "low"}})) == {
        "model": "gpt-5-mini",
        "instructions": "Read the manual.",
        "input": USER,
        "text": {
            "format": {
                "type": "json_schema",
                "name": "equipment_manual",
                "strict": True,
                "schema": SCHEMA,
            }
        },
        "max_output_tokens": 2000,
        "reasoning": {"effort": "low"},
        "store": False,
    }


def test_chat_body() -> None:
    assert WIRES[CHAT].body(ask(parameters={"seed": 7})) == {
        "model": "gpt-5-mini",
        "messages": [
            {"role": "system", "content": "Read the manual."},
            {"role": "user", "content": USER},
        ],
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "equipment_manual", "strict": True, "schema": SCHEMA},
        },
        "max_completion_tokens": 2000,
        "seed": 7,
    }


@pytest.mark.parametrize(
    ("endpoint", "name"),
    [(place, name) for place in OWN_FIELDS for name in sorted(OWN_FIELDS[place])],
)
def test_a_parameter_of_ours_is_refused(endpoint: str, name: str) -> None:
    with pytest.raises(ValueError, match=f"'{name}'"):
        WIRES[endpoint].body(ask(parameters={name: 1}))


@pytest.mark.parametrize(
    ("endpoint", "field"), [(RESPONSES, "max_output_tokens"), (CHAT, "messages")]
)
def test_the_broken_body_differs_in_one_field(endpoint: str, field: str) -> None:
    body, broken = WIRES[endpoint].body(ask()), WIRES[endpoint].broken_body(ask())
    assert not broken[field]
    assert {**broken, field: body[field]} == body


def test_another_endpoint_is_refused() -> None:
    with pytest.raises(ValueError, match="'/v1/embeddings' is not served"):
        OpenAIWire("/v1/embeddings")


TEXT = {"type": "string"}


def an_object(properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(properties),
        "properties": properties,
        **more,
    }


def nested(levels: int) -> dict[str, Any]:
    return an_object({"a": nested(levels - 1)} if levels > 1 else {})


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        pytest.param(SCHEMA, None, id="reference-workload"),
        pytest.param({"type": "array"}, "root must be an object", id="root"),
        pytest.param(an_object({}, anyOf=[TEXT]), "no anyOf", id="root-any-of"),
        pytest.param({"type": "object"}, "additionalProperties: false at #", id="open"),
        pytest.param(
            an_object({"a": TEXT}, required=[]), "property 'a' is not required", id="optional"
        ),
        pytest.param(
            an_object({"a": {"allOf": [TEXT]}}), "'allOf' is not supported at", id="all-of"
        ),
        pytest.param(an_object({"a": {**TEXT, "format": "iri"}}), "'iri'", id="format"),
        pytest.param(an_object({"a": {"$ref": "#/$defs/b"}}), "points nowhere", id="lost-ref"),
        pytest.param(nested(10), None, id="ten-levels"),
        pytest.param(nested(11), "11 levels of objects", id="eleven-levels"),
        pytest.param(
            an_object({"a": {"enum": list(range(1001))}}), "1001 enum values", id="enum-values"
        ),
    ],
)
def test_schema_rules(schema: dict[str, Any], problem: str | None) -> None:
    found = problem_of("a", schema)
    assert (found is None) == (problem is None), found
    assert problem is None or problem in str(found)


@pytest.mark.parametrize(
    "changes", [{"schema": {"type": "array"}}, {"schema_name": "a b"}, {"schema_name": "a" * 65}]
)
def test_an_ask_outside_the_subset_has_no_body(changes: dict[str, Any]) -> None:
    with pytest.raises(SchemaUnsupported):
        WIRES[RESPONSES].body(ask(**changes))


# Request lines

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(
    endpoint=st.sampled_from([RESPONSES, CHAT]),
    custom_id=st.from_regex(r"[A-Za-z0-9_-]{1,64}", fullmatch=True),
    body=st.dictionaries(st.text(), json_values, max_size=5),
    spaced=st.booleans(),
)
def test_a_request_line_gives_back_the_exact_bytes(
    endpoint: str, custom_id: str, body: dict[str, Any], spaced: bool
) -> None:
    separators = (", ", ": ") if spaced else (",", ":")
    written = json.dumps(body, ensure_ascii=False, separators=separators).encode()
    line = WIRES[endpoint].encode_request(custom_id, written)
    assert b"\n" not in line
    assert WIRES[endpoint].decode_request(line) == (custom_id, written)
    assert json.loads(line) == {
        "custom_id": custom_id,
        "method": "POST",
        "url": endpoint,
        "body": body,
    }


def test_a_body_of_two_lines_is_refused() -> None:
    with pytest.raises(ValueError, match="one line"):
        WIRES[CHAT].encode_request("a", b"{\n}")


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"{", id="cut"),
        pytest.param(b"[]", id="list"),
        pytest.param(b'{"custom_id":"a","method":"POST","url":"/v1/responses"}', id="no-body"),
        pytest.param(
            b'{"custom_id":"a","method":"GET","url":"/v1/responses","body":{}}', id="method"
        ),
        pytest.param(
            b'{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":{}}',
            id="other-endpoint",
        ),
        pytest.param(b'{"recordId":"a","modelInput":{}}', id="another-provider"),
        pytest.param(
            b'{"custom_id":"\xff","method":"POST","url":"/v1/responses","body":{}}', id="no-utf-8"
        ),
    ],
)
def test_malformed_request_lines(line: bytes) -> None:
    with pytest.raises(MalformedLine, match="not an openai request line"):
        WIRES[RESPONSES].decode_request(line)


# Result lines


def row(status: int, body: Any, error: Any = None) -> dict[str, Any]:
    response = {"status_code": status, "request_id": "req_1", "body": body}
    return {"id": "batch_req_1", "custom_id": "r", "response": response, "error": error}


def chat(finish: str | None, content: str | None = "ä\u2028", **message: Any) -> dict[str, Any]:
    return {
        "model": "m-1",
        "choices": [{"message": {"content": content, **message}, "finish_reason": finish}],
        "usage": {
            "prompt_tokens": 10,
            "completion_tokens": 4,
            "prompt_tokens_details": {"cached_tokens": 3},
        },
    }


def response(
    status: str | None, *parts: dict[str, Any], reason: str | None = None, **more: Any
) -> dict[str, Any]:
    content = list(parts) or [{"type": "output_text", "text": "ä\u2028"}]
    return {
        "model": "m-1",
        "status": status,
        "output": [{"type": "reasoning", "summary": []}, {"type": "message", "content": content}],
        "incomplete_details": None if reason is None else {"reason": reason},
        "usage": {
            "input_tokens": 10,
            "output_tokens": 4,
            "input_tokens_details": {"cached_tokens": 3},
        },
        **more,
    }


def answer(finish: Any, text: str | None = "ä\u2028") -> ResultLine:
    return ResultLine("r", 200, text, finish, None, "m-1", 10, 4, 3)


@pytest.mark.parametrize(
    ("body", "read"),
    [
        pytest.param(chat("stop"), answer("stop"), id="stop"),
        pytest.param(chat("tool_calls", None), answer("stop", None), id="tool-calls"),
        pytest.param(chat("length"), answer("truncated"), id="length"),
        pytest.param(chat("content_filter"), answer("filtered"), id="filtered"),
        pytest.param(chat("stop", None, refusal="No."), answer("refused", None), id="refusal"),
        pytest.param(chat(None), answer("unknown"), id="no-word"),
        pytest.param(chat("STOP"), answer("unknown"), id="unlisted-word"),
        pytest.param({"choices": []}, ResultLine("r", 200), id="no-choice"),
        pytest.param({}, ResultLine("r", 200), id="empty"),
    ],
)
def test_chat_answers(body: dict[str, Any], read: ResultLine) -> None:
    assert WIRES[CHAT].read_line(json.dumps(row(200, body)).encode()) == read


@pytest.mark.parametrize(
    ("body", "read"),
    [
        pytest.param(response("completed"), answer("stop"), id="completed"),
        pytest.param(
            response("incomplete", reason="max_output_tokens"), answer("truncated"), id="truncated"
        ),
        pytest.param(
            response("incomplete", reason="content_filter"), answer("filtered"), id="filtered"
        ),
        pytest.param(response("incomplete", reason="steered"), answer("unknown"), id="steered"),
        pytest.param(response("queued"), answer("unknown"), id="queued"),
        pytest.param(response(None), answer("unknown"), id="no-word"),
        pytest.param(
            response("completed", {"type": "refusal", "refusal": "No."}),
            answer("refused", None),
            id="refusal",
        ),
        pytest.param(
            response(
                "completed",
                {"type": "output_text", "text": "a"},
                {"type": "output_text", "text": "b"},
            ),
            answer("stop", "ab"),
            id="parts-are-joined",
        ),
        pytest.param(
            response("failed", error={"code": "server_error"}),
            ResultLine("r", 500, None, None, "server_error", "m-1", 10, 4, 3),
            id="failed-under-200",
        ),
        pytest.param(
            response("failed", error={"code": "invalid_prompt"}),
            ResultLine("r", 400, None, None, "invalid_prompt", "m-1", 10, 4, 3),
            id="failed-prompt-under-200",
        ),
        pytest.param(
            {"status": "completed"}, ResultLine("r", 200, None, "stop"), id="no-usage-is-not-zero"
        ),
    ],
)
def test_responses_answers(body: dict[str, Any], read: ResultLine) -> None:
    assert WIRES[RESPONSES].read_line(json.dumps(row(200, body)).encode()) == read


@pytest.mark.parametrize("endpoint", [RESPONSES, CHAT])
@pytest.mark.parametrize(
    ("line", "read"),
    [
        pytest.param(
            row(400, {"error": {"code": "bad", "type": "t"}}),
            ResultLine("r", 400, error_code="bad"),
            id="refused-with-null-error",
        ),
        pytest.param(
            row(500, {"error": {"code": None, "type": "server_error"}}),
            ResultLine("r", 500, error_code="server_error"),
            id="type-for-a-code",
        ),
        pytest.param(row(502, "<html>"), ResultLine("r", 502), id="other-body"),
        pytest.param(row(0, {}), ResultLine("r", 0), id="status-zero"),
        pytest.param(
            {"custom_id": "r", "response": None, "error": {"code": "batch_expired"}},
            ResultLine("r", 0, error_code="expired"),
            id="expired",
        ),
        pytest.param(
            {"custom_id": "r", "response": None, "error": {"code": "batch_cancelled"}},
            ResultLine("r", 0, error_code="cancelled"),
            id="cancelled",
        ),
        pytest.param(
            row(200, {}, {"code": "odd"}),
            ResultLine("r", 0, error_code="odd"),
            id="an-error-beside-200-is-no-answer",
        ),
        pytest.param({"custom_id": "r"}, ResultLine("r", 0), id="neither"),
        pytest.param({"response": None}, ResultLine(None, 0), id="no-id"),
    ],
)
def test_rows_without_an_answer(endpoint: str, line: dict[str, Any], read: ResultLine) -> None:
    assert WIRES[endpoint].read_line(json.dumps(line).encode()) == read


@pytest.mark.parametrize("endpoint", [RESPONSES, CHAT])
@pytest.mark.parametrize(
    "line",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b'{"custom_id":"r","response":{"status', id="cut"),
        pytest.param(b'"secret"', id="text"),
        pytest.param(b'{"custom_id":["secret"]}', id="id-of-another-type"),
        pytest.param(json.dumps(row(200, "secret")).encode(), id="answer-of-another-type"),
        pytest.param(b'{"custom_id":"\xff"}', id="no-utf-8"),
        pytest.param(b'{"custom_id":"r"} secret', id="something-behind"),
        pytest.param(b'{"a":' + b"[" * 100_000, id="deep"),
    ],
)
def test_malformed_result_lines_are_told_without_their_content(endpoint: str, line: bytes) -> None:
    with pytest.raises(MalformedLine) as caught:
        WIRES[endpoint].read_line(line)
    assert "secret" not in str(caught.value)


@given(data=st.binary() | json_values.map(lambda value: json.dumps(value).encode()))
def test_any_other_line_is_malformed_or_a_line_without_an_answer(data: bytes) -> None:
    for wire in WIRES.values():
        try:
            line = wire.read_line(data)
        except MalformedLine:
            continue
        assert (line.text, line.finish_reason) == (None, None)


@given(body=json_values, endpoint=st.sampled_from([RESPONSES, CHAT]))
def test_a_success_with_any_other_body_is_never_a_whole_answer(body: Any, endpoint: str) -> None:
    try:
        line = WIRES[endpoint].read_line(json.dumps(row(200, body)).encode())
    except MalformedLine:
        return
    assert line.custom_id == "r" and line.text is None and line.finish_reason != "stop"


def test_what_the_model_says_on_the_way_is_no_answer() -> None:
    body = response("completed")
    said = {"type": "message", "phase": "commentary", "content": [{"type": "output_text"}]}
    said["content"][0]["text"] = "I shall look at page 2."
    body["output"].insert(1, said)
    assert WIRES[RESPONSES].read_line(json.dumps(row(200, body)).encode()) == answer("stop")


@pytest.mark.parametrize(
    ("reply", "read"),
    [
        pytest.param(
            Reply(200, json.dumps(response("completed"), indent=2).encode()),
            answer("stop"),
            id="answer-over-several-lines",
        ),
        pytest.param(Reply(200, b""), ResultLine("r", 200), id="empty"),
        pytest.param(Reply(200, b'{"a'), ResultLine("r", 200), id="cut"),
        pytest.param(
            Reply(429, b'{"error":{"code":"rate_limit_exceeded"}}'),
            ResultLine("r", 429, error_code="rate_limit_exceeded"),
            id="refused",
        ),
        pytest.param(Reply(502, b"<html>\n"), ResultLine("r", 502), id="page"),
        pytest.param(Reply(0), ResultLine("r", 0), id="none"),
    ],
)
def test_replies_become_result_lines(reply: Reply, read: ResultLine) -> None:
    line = WIRES[RESPONSES].encode_reply("r", reply)
    assert b"\n" not in line
    assert WIRES[RESPONSES].read_line(line) == read


# Jobs


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("validating", ("validating", None)),
        ("in_progress", ("running", None)),
        ("finalizing", ("running", None)),
        ("cancelling", ("cancelling", None)),
        ("completed", ("ended", "completed")),
        ("expired", ("ended", "expired")),
        ("cancelled", ("ended", "cancelled")),
        ("failed", ("ended", "provider_failed")),
        ("Completed", ("unknown", None)),
        ("", ("unknown", None)),
    ],
)
def test_statuses(word: str, expected: tuple[str, str | None]) -> None:
    assert phase_of(word) == expected


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        pytest.param([], None, id="none"),
        pytest.param([("token_limit_exceeded", None)], (0, "capacity"), id="capacity"),
        pytest.param([("invalid_request", "file_id")], (0, "transport"), id="file-race"),
        pytest.param([("invalid_request", None)], (0, "invalid_request"), id="invalid"),
        pytest.param([("model_not_found", None)], (0, "unsupported"), id="model"),
        pytest.param([(None, None)], (0, "invalid_request"), id="no-code"),
        pytest.param(
            [("token_limit_exceeded", None), ("invalid_json_line", None)],
            (1, "invalid_request"),
            id="what-would-fail-again-decides",
        ),
    ],
)
def test_job_failures(errors: list[tuple[str | None, str | None]], expected: Any) -> None:
    assert job_failure(errors) == expected


def test_an_empty_file_id_is_no_file_and_only_seven_fields_are_needed() -> None:
    job = job_of(Batch("b", "completed", output_file_id="o", error_file_id=""))
    assert [file.ref for file in job.files] == ["o"]
    assert (job.remote, job.counts, job.created_at) == (("o",), None, None)


def test_files_are_read_only_when_a_job_has_ended() -> None:
    assert job_of(Batch("b", "finalizing", output_file_id="o")).files == ()


def test_a_job_that_failed_without_a_word_is_no_fault_of_the_request() -> None:
    assert job_of(Batch("b", "failed")).error_class == "server_error"


def test_counts_that_are_partly_missing() -> None:
    data = b'{"id":"b","status":"in_progress","request_counts":{"total":5}}'
    assert job_of(msgspec.json.decode(data, type=Batch)).counts == Counts(5)


@pytest.mark.parametrize(
    ("metadata", "file", "expected"),
    [
        pytest.param({"tallybook_intent": "b-2"}, "x", True, id="metadata"),
        pytest.param({"tallybook_intent": "b-1"}, "f", False, id="an-earlier-intent-of-this-file"),
        pytest.param({"tallybook_intent": "b-10"}, "x", True, id="a-later-one-that-was-forgotten"),
        pytest.param({"tallybook_intent": "c-3"}, "f", False, id="another-batch-of-this-file"),
        pytest.param({"tallybook_intent": "b-x"}, "f", False, id="no-intent-of-ours"),
        pytest.param(None, "f", True, id="file"),
        pytest.param({}, "x", False, id="neither"),
    ],
)
def test_whose_job_it_is(metadata: dict[str, Any] | None, file: str, expected: bool) -> None:
    intent = Intent("b-2", "b", "m", 1, FrozenClock()(), "f")
    assert (
        is_of(Batch("j", "validating", input_file_id=file, metadata=metadata), intent) is expected
    )


@pytest.mark.parametrize(
    ("times", "shown"),
    [
        pytest.param([3.0, 2.0, 2.0, 1.0], True, id="falling"),
        pytest.param([1.0, 2.0], False, id="rising"),
        pytest.param([3.0, 1.0, 2.0], False, id="mixed"),
        pytest.param([2.0, 2.0], False, id="equal-times-show-nothing"),
        pytest.param([1.0], False, id="one"),
        pytest.param([], False, id="none"),
    ],
)
def test_the_order_of_a_list_has_to_be_seen(times: list[float], shown: bool) -> None:
    assert is_newest_first(times) is shown


def test_a_job_without_a_file_is_not_that_of_an_intent_without_one() -> None:
    intent = Intent("b-1", "b", "m", 1, FrozenClock()())
    assert not is_of(Batch("j", "validating"), intent)


# Errors


@pytest.mark.parametrize(
    ("status", "code", "message", "failure"),
    [
        pytest.param(0, None, "", "transport", id="no-answer"),
        pytest.param(400, None, "", "invalid_request", id="400"),
        pytest.param(401, "invalid_api_key", "", "auth", id="401"),
        pytest.param(403, None, "", "auth", id="403"),
        pytest.param(404, "model_not_found", "", "unsupported", id="model"),
        pytest.param(409, None, "", "transport", id="409"),
        pytest.param(429, "rate_limit_exceeded", "", "rate_limited", id="429"),
        pytest.param(429, "insufficient_quota", "", "quota", id="quota"),
        pytest.param(429, None, "Enqueued token limit reached", "capacity", id="enqueued-429"),
        pytest.param(400, None, "Enqueued token limit reached", "capacity", id="enqueued-400"),
        pytest.param(500, None, "", "server_error", id="500"),
        pytest.param(503, "slow_down", "", "overloaded", id="503"),
    ],
)
def test_failure_classes(status: int, code: str | None, message: str, failure: str) -> None:
    assert failure_of(Trouble(status, True, "x", code=code, message=message)) == failure


@pytest.mark.parametrize(
    ("trouble", "created", "read", "uploaded"),
    [
        pytest.param(Trouble(0, False, "x"), Unreachable, Unreachable, Unreachable, id="unsent"),
        pytest.param(Trouble(0, True, "x"), Ambiguous, Unavailable, Refused, id="no-answer"),
        pytest.param(Trouble(500, True, "x"), Ambiguous, Unavailable, Refused, id="500"),
        pytest.param(Trouble(408, True, "x"), Ambiguous, Unavailable, Refused, id="408"),
        pytest.param(Trouble(429, True, "x"), Refused, Unavailable, Refused, id="429"),
        pytest.param(Trouble(400, True, "x"), Refused, Refused, Refused, id="400"),
    ],
)
def test_what_a_failed_call_raises(
    trouble: Trouble,
    created: type[ProviderError],
    read: type[ProviderError],
    uploaded: type[ProviderError],
) -> None:
    found = (create_error(trouble), read_error(trouble), upload_error(trouble))
    assert tuple(map(type, found)) == (created, read, uploaded)


@pytest.mark.parametrize(
    ("headers", "status", "seconds"),
    [
        pytest.param({"retry-after": "7"}, 429, 7.0, id="seconds"),
        pytest.param({"retry-after-ms": "250", "retry-after": "7"}, 429, 0.25, id="milliseconds"),
        pytest.param(
            {
                "retry-after": "Tue, 06 Jan 2026 10:00:30 GMT",
                "date": "Tue, 06 Jan 2026 10:00:00 GMT",
            },
            503,
            30.0,
            id="date",
        ),
        pytest.param({"retry-after": "soon"}, 429, None, id="unreadable"),
        pytest.param(
            {"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "6m0s"},
            429,
            360.0,
            id="used-up",
        ),
        pytest.param(
            {"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "6m0s"},
            500,
            None,
            id="rate-limits-of-another-error",
        ),
        pytest.param({}, 429, None, id="nothing"),
    ],
)
def test_retry_after(headers: dict[str, str], status: int, seconds: float | None) -> None:
    assert retry_after_of(status, headers) == seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1s", 1.0), ("20ms", 0.02), ("6m0s", 360.0), ("1h2m3.5s", 3723.5), ("", None), ("x", None)],
)
def test_durations(text: str, seconds: float | None) -> None:
    found = duration_of(text)
    assert found is None if seconds is None else found == pytest.approx(seconds)


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"error":"text"}', b"\xff"])
def test_an_error_body_of_another_form_says_nothing(body: bytes) -> None:
    trouble = trouble_in(502, {}, body)
    assert (trouble.status, trouble.code, trouble.message) == (502, None, "")


@pytest.mark.parametrize(
    ("status", "message", "param", "code"),
    [
        pytest.param(404, "file-1 was not found", None, "input_not_found", id="404"),
        pytest.param(
            400, "No such File object: file-1", "input_file_id", "input_not_found", id="400"
        ),
        pytest.param(400, "no access to it", "file_id", "input_not_found", id="400-param"),
        pytest.param(404, "Invalid URL (POST /batches)", None, None, id="wrong-path"),
        pytest.param(404, "", None, None, id="nobody-speaks"),
        pytest.param(400, "Invalid 'metadata'.", "metadata", None, id="another-field"),
    ],
)
def test_which_refusals_are_of_an_input_not_known_yet(
    status: int, message: str, param: str | None, code: str | None
) -> None:
    error = create_error(Trouble(status, True, "x", message=message, param=param))
    assert isinstance(error, Refused)
    failure = "transport" if code else "invalid_request"
    assert (error.code, error.failure) == (code, failure)


@pytest.mark.parametrize(
    ("code", "told"),
    [
        pytest.param("token_limit_exceeded", True, id="limit"),
        pytest.param("model_not_found", True, id="model"),
        pytest.param("invalid_json_line", False, id="line"),
        pytest.param("new_code", False, id="unlisted"),
    ],
)
def test_a_note_never_quotes_the_request_file(code: str, told: bool) -> None:
    error = {"code": code, "message": "It says: secret text", "line": 3, "param": "body.model"}
    data = {"id": "b", "status": "failed", "errors": {"data": [error, error]}}
    note = job_of(msgspec.convert(data, Batch)).error_note or ""
    assert ("secret text" in note) is told
    assert note.endswith("; line 3; param body.model; 2 errors in all")


def test_notes_hold_no_key_and_are_bounded() -> None:
    assert safe_note("key sk-abc*def\nof org-12 is bad") == "key [removed] of [removed] is bad"
    assert len(safe_note("x" * 1000)) == MAX_NOTE
