"""Bedrock's formats: bodies, request lines, result lines, and what words, errors, schemas mean."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.providers.bedrock.errors import (
    Trouble,
    failure_of,
    for_creation,
    for_file,
    for_job,
    for_reading,
    for_upload,
    read_trouble,
    seconds_of,
)
from resources.providers.bedrock.schema import MAX_OPTIONAL, MAX_UNIONS, problem_of
from resources.providers.bedrock.session import BadSetting, location_of, split_uri
from resources.providers.bedrock.statuses import finish_of, job_failure_of, phase_of
from resources.providers.bedrock.wire import BedrockWire
from resources.providers.port import Ask, MalformedLine, Reply, ResultLine, SchemaUnsupported
from tests.support.asks import SCHEMA, make_ask

MODEL = "anthropic.claude-haiku-4-5-20251001-v1:0"
WIRE = BedrockWire()


def output_schema() -> dict[str, Any]:
    return deepcopy(SCHEMA)


def ask(**changes: Any) -> Ask:
    return make_ask(MODEL, "Übersicht\u2028Seite 1", **changes)


# Bodies


def test_body_is_the_converse_body() -> None:
    body = WIRE.body(ask(parameters={"temperature": 0, "serviceTier": {"type": "flex"}}))

    schema = body["outputConfig"]["textFormat"]["structure"]["jsonSchema"].pop("schema")
    assert json.loads(schema) == output_schema()
    assert list(json.loads(schema)["properties"]) == list(output_schema()["properties"])
    assert body == {
        "system": [{"text": "Read the manual."}],
        "messages": [{"role": "user", "content": [{"text": "Übersicht\u2028Seite 1"}]}],
        "inferenceConfig": {"maxTokens": 2000, "temperature": 0},
        "outputConfig": {
            "textFormat": {
                "type": "json_schema",
                "structure": {"jsonSchema": {"name": "equipment_manual"}},
            }
        },
        "serviceTier": {"type": "flex"},
    }


def test_body_of_the_same_ask_has_the_same_bytes() -> None:
    assert msgspec.json.encode(WIRE.body(ask())) == msgspec.json.encode(WIRE.body(ask()))


def test_body_leaves_an_empty_system_text_out() -> None:
    assert "system" not in WIRE.body(ask(system=""))


@pytest.mark.parametrize(
    "name", ["modelId", "system", "messages", "inferenceConfig", "outputConfig", "maxTokens"]
)
def test_parameter_of_ours_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"'{name}'"):
        WIRE.body(ask(parameters={name: 1}))


def test_broken_body_has_no_message_and_is_the_same_else() -> None:
    body, broken = WIRE.body(ask()), WIRE.broken_body(ask())
    assert broken["messages"] == []
    assert {**broken, "messages": body["messages"]} == body


def test_schema_outside_the_subset_is_refused_with_its_place() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "minLength": 1}}}
    schema["additionalProperties"] = False
    with pytest.raises(SchemaUnsupported, match="'minLength' is not supported at #/properties/a"):
        WIRE.body(ask(schema=schema))


def an_object(properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(properties),
        "properties": properties,
        **more,
    }


TEXT = {"type": "string"}
NULLABLE = {"type": ["string", "null"]}


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        pytest.param(output_schema(), None, id="the reference workload"),
        pytest.param(an_object({"a": {"enum": ["x", 1]}}), None, id="enum"),
        pytest.param(an_object({"a": {"type": "array", "minItems": 1}}), None, id="minItems 1"),
        pytest.param(an_object({"a": {**TEXT, "format": "date"}}), None, id="format"),
        pytest.param(an_object({"minimum": TEXT}), None, id="a property named as a keyword"),
        pytest.param({"type": "object"}, "additionalProperties: false at #", id="open object"),
        pytest.param(
            an_object({"a": {"type": ["object", "null"]}}),
            "additionalProperties: false at #/properties/a",
            id="open nullable object",
        ),
        pytest.param(
            an_object({"a": an_object({}, additionalProperties=TEXT)}),
            "additionalProperties: false at #/properties/a",
            id="typed additional properties",
        ),
        pytest.param(
            an_object({"a": {"type": "integer", "minimum": 1}}), "'minimum'", id="minimum"
        ),
        pytest.param(
            an_object({"a": {"type": "array", "items": {**TEXT, "maxLength": 9}}}),
            "'maxLength' is not supported at #/properties/a/items",
            id="within items",
        ),
        pytest.param(an_object({"a": {"oneOf": [TEXT]}}), "'oneOf'", id="oneOf"),
        pytest.param(
            an_object({"a": {"anyOf": [{**TEXT, "minLength": 2}]}}),
            "at #/properties/a/anyOf/0",
            id="within anyOf",
        ),
        pytest.param(an_object({"a": {"type": "array", "minItems": 2}}), "minItems", id="minItems"),
        pytest.param(an_object({"a": {**TEXT, "format": "iri"}}), "'iri'", id="unknown format"),
        pytest.param(
            an_object({"a": {"$ref": "https://example.org/a"}}), "does not point", id="far $ref"
        ),
        pytest.param(an_object({"a": {"$ref": "#/$defs/b"}}), "points nowhere", id="lost $ref"),
        pytest.param(
            an_object({"a": {"allOf": [{"$ref": "#/$defs/b"}]}}, **{"$defs": {"b": TEXT}}),
            "allOf may not hold a $ref",
            id="$ref in allOf",
        ),
        pytest.param(
            an_object(
                {"a": {"$ref": "#/$defs/b"}},
                **{
                    "$defs": {
                        "b": {"type": "array", "items": {"$ref": "#/$defs/c"}},
                        "c": an_object({"d": {"$ref": "#/$defs/b"}}),
                    }
                },
            ),
            "'b' refers to itself",
            id="recursion over two definitions",
        ),
        pytest.param(
            an_object({f"p{n}": TEXT for n in range(MAX_OPTIONAL + 1)}, required=[]),
            "25 optional properties, 24 are allowed",
            id="optional properties",
        ),
        pytest.param(
            an_object({f"p{n}": TEXT for n in range(MAX_OPTIONAL)}, required=[]),
            None,
            id="as many optional properties as allowed",
        ),
        pytest.param(
            an_object({f"p{n}": NULLABLE for n in range(MAX_UNIONS + 1)}),
            "17 union-typed places, 16 are allowed",
            id="unions",
        ),
    ],
)
def test_schema_rules(schema: dict[str, Any], problem: str | None) -> None:
    found = problem_of(schema)
    assert (found is None) == (problem is None), found
    assert problem is None or problem in str(found)


# Request lines

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(
    custom_id=st.from_regex(r"[A-Za-z0-9_-]{1,64}", fullmatch=True),
    body=st.dictionaries(st.text(), json_values, max_size=5),
    spaced=st.booleans(),
)
def test_request_line_gives_back_the_exact_bytes(
    custom_id: str, body: dict[str, Any], spaced: bool
) -> None:
    separators = (", ", ": ") if spaced else (",", ":")
    written = json.dumps(body, ensure_ascii=False, separators=separators).encode()
    line = WIRE.encode_request(custom_id, written)
    assert b"\n" not in line
    assert WIRE.decode_request(line) == (custom_id, written)
    assert json.loads(line) == {"recordId": custom_id, "modelInput": body}


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"{", id="cut"),
        pytest.param(b"[]", id="list"),
        pytest.param(b'{"recordId":"a"}', id="no body"),
        pytest.param(b'{"modelInput":{}}', id="no id"),
        pytest.param(b'{"recordId":1,"modelInput":{}}', id="id of another type"),
        pytest.param(b'{"recordId":"\xff","modelInput":{}}', id="not UTF-8"),
        pytest.param(b'{"custom_id":"a","body":{}}', id="another provider's"),
    ],
)
def test_malformed_request_lines(line: bytes) -> None:
    with pytest.raises(MalformedLine, match="not a bedrock request line"):
        WIRE.decode_request(line)


# Result lines


def result(text: Any = "{}", stop: Any = "end_turn", **usage: int) -> dict[str, Any]:
    output: dict[str, Any] = {"usage": usage}
    if text is not None:
        output["output"] = {"message": {"role": "assistant", "content": [{"text": text}]}}
    if stop is not None:
        output["stopReason"] = stop
    return {"recordId": "r", "modelInput": {"messages": [1, "a"]}, "modelOutput": output}


USAGE = {"inputTokens": 10, "outputTokens": 4, "totalTokens": 14}


@pytest.mark.parametrize(
    ("line", "read"),
    [
        pytest.param(
            result("ä\u2028", **USAGE),
            ResultLine("r", 200, "ä\u2028", "stop", input_tokens=10, output_tokens=4),
            id="answer",
        ),
        pytest.param(
            result(**USAGE, cacheReadInputTokens=30, cacheWriteInputTokens=2),
            ResultLine("r", 200, "{}", "stop", input_tokens=42, output_tokens=4, cached_tokens=30),
            id="cached tokens are counted beside the input",
        ),
        pytest.param(result(), ResultLine("r", 200, "{}", "stop"), id="no usage is not zero"),
        pytest.param(
            result(cacheReadInputTokens=3),
            ResultLine("r", 200, "{}", "stop", cached_tokens=3),
            id="cache without input is no total",
        ),
        pytest.param(
            result(None, "content_filtered"),
            ResultLine("r", 200, None, "filtered"),
            id="filtered without text",
        ),
        pytest.param(result(stop=None), ResultLine("r", 200, "{}", "unknown"), id="no finish"),
        pytest.param(
            {
                "recordId": "r",
                "modelOutput": {
                    "output": {
                        "message": {
                            "content": [
                                {"reasoningContent": {"reasoningText": {"text": "hm"}}},
                                {"text": "a"},
                                {"text": "b"},
                            ]
                        }
                    },
                    "stopReason": "end_turn",
                    "later": {"field": [1]},
                },
            },
            ResultLine("r", 200, "ab", "stop"),
            id="texts are joined, reasoning and unknown fields passed over",
        ),
        pytest.param(
            {"recordId": "r", "modelOutput": {}},
            ResultLine("r", 200, None, "unknown"),
            id="empty answer",
        ),
        pytest.param(
            {"recordId": "r", "modelOutput": None}, ResultLine("r", 200), id="null answer"
        ),
        pytest.param({"recordId": "r"}, ResultLine("r", 0), id="neither answer nor error"),
        pytest.param(
            {"recordId": "r", "error": {"errorCode": 400, "errorMessage": "secret text"}},
            ResultLine("r", 400, error_code="400"),
            id="row error",
        ),
        pytest.param(
            {"recordId": "r", "error": {"errorCode": "503"}},
            ResultLine("r", 503, error_code="503"),
            id="code as text",
        ),
        pytest.param(
            {"recordId": "r", "error": {"errorCode": "Throttled"}},
            ResultLine("r", 0, error_code="Throttled"),
            id="a word for a code",
        ),
        pytest.param({"recordId": "r", "error": {}}, ResultLine("r", 0), id="error without code"),
        pytest.param(
            {**result(), "error": {"errorCode": 500}},
            ResultLine("r", 500, error_code="500"),
            id="an error beside an answer is an error",
        ),
        pytest.param(
            {**result(), "error": None},
            ResultLine("r", 200, "{}", "stop"),
            id="a null error is none",
        ),
        pytest.param(
            {"modelOutput": {}}, ResultLine(None, 200, None, "unknown"), id="no record id"
        ),
    ],
)
def test_result_lines(line: dict[str, Any], read: ResultLine) -> None:
    assert WIRE.read_line(json.dumps(line, ensure_ascii=False).encode()) == read


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b'{"recordId":"r","modelOutput":{"output"', id="cut"),
        pytest.param(b'"text"', id="text"),
        pytest.param(b'{"recordId":["r"]}', id="id of another type"),
        pytest.param(b'{"recordId":"r","modelOutput":"prose"}', id="answer of another type"),
        pytest.param(b'{"recordId":"\xff"}', id="not UTF-8"),
        pytest.param(b'{"recordId":"r","modelOutput":{}} x', id="something behind"),
        pytest.param(b'{"a":' + b"[" * 100_000, id="deep nesting"),
    ],
)
def test_malformed_result_lines_are_told_without_their_content(line: bytes) -> None:
    with pytest.raises(MalformedLine) as caught:
        WIRE.read_line(line)
    assert "prose" not in str(caught.value)
    assert len(str(caught.value)) < 80


@pytest.mark.parametrize(
    ("word", "finish"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("tool_use", "stop"),
        ("max_tokens", "truncated"),
        ("model_context_window_exceeded", "truncated"),
        ("content_filtered", "filtered"),
        ("guardrail_intervened", "filtered"),
        ("malformed_model_output", "malformed"),
        ("malformed_tool_use", "malformed"),
        ("refusal", "refused"),
        ("END_TURN", "unknown"),
        ("", "unknown"),
        (None, "unknown"),
    ],
)
def test_finish_words(word: str | None, finish: str) -> None:
    assert finish_of(word) == finish


# Replies as lines

BODY = json.dumps(result("a")["modelOutput"]).encode()


@pytest.mark.parametrize(
    ("reply", "read"),
    [
        pytest.param(Reply(200, BODY), ResultLine("r", 200, "a", "stop"), id="answer"),
        pytest.param(
            Reply(200, json.dumps(json.loads(BODY), indent=2).encode()),
            ResultLine("r", 200, "a", "stop"),
            id="answer over several lines",
        ),
        pytest.param(Reply(200, b""), ResultLine("r", 200), id="empty body"),
        pytest.param(Reply(200, BODY[:-5]), ResultLine("r", 200), id="cut body"),
        pytest.param(Reply(200, b'{"a":"\xff"}'), ResultLine("r", 200), id="not UTF-8"),
        pytest.param(
            Reply(429, b'{"message":"slow\\ndown"}'),
            ResultLine("r", 429, error_code="429"),
            id="refused",
        ),
        pytest.param(
            Reply(502, b"<html>"), ResultLine("r", 502, error_code="502"), id="a proxy's error"
        ),
        pytest.param(Reply(0), ResultLine("r", 0, error_code="0"), id="no answer"),
    ],
)
def test_replies_are_lines_of_an_output_file(reply: Reply, read: ResultLine) -> None:
    line = WIRE.encode_reply("r", reply)
    assert b"\n" not in line
    assert set(json.loads(line)) >= {"recordId", "modelInput"}
    assert WIRE.read_line(line) == read


def test_reply_keeps_the_bytes_of_the_answer() -> None:
    assert BODY in WIRE.encode_reply("r", Reply(200, BODY))


# Words of jobs


@pytest.mark.parametrize(
    ("word", "phase", "outcome"),
    [
        ("Submitted", "validating", None),
        ("Validating", "validating", None),
        ("Scheduled", "queued", None),
        ("InProgress", "running", None),
        ("Stopping", "cancelling", None),
        ("Completed", "ended", "completed"),
        ("PartiallyCompleted", "ended", "expired"),
        ("Stopped", "ended", "cancelled"),
        ("Failed", "ended", "provider_failed"),
        ("Expired", "ended", "expired"),
        ("completed", "unknown", None),
        ("Archived", "unknown", None),
        ("", "unknown", None),
    ],
)
def test_job_statuses(word: str, phase: str, outcome: str | None) -> None:
    assert phase_of(word) == (phase, outcome)


@pytest.mark.parametrize(
    ("message", "failure"),
    [
        (
            "Batch job contains less records (99) than the required minimum of: 100",
            "invalid_request",
        ),
        ("The role is not authorized to perform s3:GetObject", "auth"),
        ("Access denied to the bucket", "auth"),
        ("The provided model identifier is invalid.", "unsupported"),
        ("Account quota exceeded", "capacity"),
        ("An internal error happened, try again.", "server_error"),
        ("", "server_error"),
        (None, "server_error"),
    ],
)
def test_messages_of_failed_jobs(message: str | None, failure: str) -> None:
    assert job_failure_of(message) == failure


# Errors


@pytest.mark.parametrize(
    ("status", "code", "failure"),
    [
        (400, "ValidationException", "invalid_request"),
        (400, "ConflictException", "invalid_request"),
        (400, "ServiceQuotaExceededException", "capacity"),
        (403, "AccessDeniedException", "auth"),
        (403, "UnrecognizedClientException", "auth"),
        (400, "ExpiredToken", "auth"),
        (404, "ResourceNotFoundException", "unsupported"),
        (408, "ModelTimeoutException", "server_error"),
        (424, "ModelErrorException", "server_error"),
        (429, "ThrottlingException", "rate_limited"),
        (429, "ModelNotReadyException", "overloaded"),
        (500, "InternalServerException", "server_error"),
        (503, "ServiceUnavailableException", "overloaded"),
        (503, "SlowDown", "overloaded"),
        (401, "Odd", "auth"),
        (402, "Odd", "quota"),
        (429, "Odd", "rate_limited"),
        (502, "Odd", "server_error"),
        (418, "Odd", "invalid_request"),
    ],
)
def test_codes_and_statuses(status: int, code: str, failure: str) -> None:
    assert failure_of(status, code) == failure


def test_an_unknown_model_is_unsupported() -> None:
    message = "The provided model identifier is invalid."
    assert failure_of(400, "ValidationException", message) == "unsupported"


def client_error(status: int, code: str, message: str = "m", **headers: str) -> Exception:
    from botocore.exceptions import ClientError

    answer: Any = {
        "Error": {"Code": code, "Message": message},
        "ResponseMetadata": {"HTTPStatusCode": status, "HTTPHeaders": headers},
    }
    return ClientError(answer, "AnyCall")


def transport_errors() -> list[Any]:
    from botocore import exceptions as boto
    from botocore.parsers import ResponseParserError

    url = "http://127.0.0.1/"
    refused = boto.EndpointConnectionError(endpoint_url=url)
    slow = boto.ConnectTimeoutError(endpoint_url=url)
    none = "Unreachable"
    broken = ("Unavailable", "Ambiguous", "Refused transport")
    return [
        pytest.param(refused, none, none, none, id="refused connection"),
        pytest.param(slow, none, none, none, id="connect timeout"),
        pytest.param(boto.ReadTimeoutError(endpoint_url=url), *broken, id="read timeout"),
        pytest.param(boto.ConnectionClosedError(endpoint_url=url), *broken, id="closed"),
        pytest.param(boto.SSLError(endpoint_url=url, error="e"), *broken, id="tls"),
        pytest.param(
            boto.IncompleteReadError(actual_bytes=1, expected_bytes=2), *broken, id="cut body"
        ),
        pytest.param(ResponseParserError("x"), *broken, id="unreadable answer"),
        pytest.param(
            boto.NoCredentialsError(), *["Refused auth"] * 3, id="no credentials any more"
        ),
        pytest.param(
            boto.ParamValidationError(report="r"),
            *["Refused invalid_request"] * 3,
            id="refused by the SDK",
        ),
        pytest.param(
            boto.InvalidEndpointConfigurationError(msg="m"),
            *["Refused invalid_request"] * 3,
            id="an endpoint that cannot be used",
        ),
        pytest.param(
            client_error(400, "ValidationException"),
            *["Refused invalid_request"] * 3,
            id="invalid",
        ),
        pytest.param(
            client_error(400, "ConflictException"),
            "Refused invalid_request",
            "Ambiguous",
            "Refused invalid_request",
            id="conflict: a job of this token exists",
        ),
        pytest.param(
            client_error(403, "AccessDeniedException"), *["Refused auth"] * 3, id="forbidden"
        ),
        pytest.param(
            client_error(429, "ThrottlingException"),
            "Unavailable",
            *["Refused rate_limited"] * 2,
            id="throttled",
        ),
        pytest.param(
            client_error(400, "ServiceQuotaExceededException"),
            "Unavailable",
            *["Refused capacity"] * 2,
            id="too many jobs",
        ),
        pytest.param(
            client_error(500, "InternalServerException"),
            "Unavailable",
            "Ambiguous",
            "Refused server_error",
            id="500",
        ),
        pytest.param(
            client_error(503, "ServiceUnavailableException"),
            "Unavailable",
            "Ambiguous",
            "Refused overloaded",
            id="503",
        ),
        pytest.param(
            client_error(404, "NoSuchBucket"),
            "Refused invalid_request",
            "Refused invalid_request",
            "Refused invalid_request",
            id="no bucket",
        ),
    ]


@pytest.mark.parametrize(("error", "read", "created", "uploaded"), transport_errors())
def test_errors_of_calls(error: Exception, read: str, created: str, uploaded: str) -> None:
    trouble = read_trouble(error)
    found = [decide(trouble) for decide in (for_reading, for_creation, for_upload)]
    told = [f"{type(one).__name__} {getattr(one, 'failure', '')}".strip() for one in found]
    assert told == [read, created, uploaded]


def test_a_404_is_a_missing_job_or_file() -> None:
    trouble = read_trouble(client_error(404, "ResourceNotFoundException"))
    assert type(for_job("j")(trouble)).__name__ == "JobMissing"
    assert type(for_file("s3://b/k")(trouble)).__name__ == "FileMissing"


def test_a_refused_signature_is_told_without_its_text() -> None:
    message = "The Canonical String should have been x-amz-security-token:SECRET"
    trouble = read_trouble(client_error(403, "InvalidSignatureException", message))
    assert "SECRET" not in str(for_reading(trouble))
    assert "SECRET" not in repr(for_creation(trouble))


def test_retry_after_is_passed_on() -> None:
    trouble = read_trouble(client_error(429, "ThrottlingException", **{"retry-after": "7"}))
    assert getattr(for_creation(trouble), "retry_after", None) == 7
    assert getattr(for_reading(trouble), "retry_after", None) == 7


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("3", 3.0),
        ("0.5", 0.5),
        (None, None),
        ("", None),
        ("-1", None),
        ("inf", None),
        ("nan", None),
        ("Wed, 21 Oct 2026 07:28:00 GMT", None),
    ],
)
def test_retry_after_headers(header: str | None, seconds: float | None) -> None:
    assert seconds_of(header) == seconds


def test_note_is_bounded() -> None:
    trouble: Trouble = read_trouble(client_error(400, "ValidationException", "x" * 1000))
    assert len(trouble.note) == 300


# Places


@pytest.mark.parametrize(
    ("uri", "key"),
    [
        ("s3://bucket", "in/a"),
        ("s3://bucket/", "in/a"),
        ("s3://bucket/pre/fix", "pre/fix/in/a"),
        ("s3://bucket/pre/fix//", "pre/fix/in/a"),
    ],
)
def test_places(uri: str, key: str) -> None:
    location = location_of(uri)
    assert (location.bucket, location.key("in", "a")) == ("bucket", key)
    assert location.uri("in", "a") == f"s3://bucket/{key}"
    assert split_uri(location.uri("in", "a")) == ("bucket", key)


@pytest.mark.parametrize("uri", ["bucket/prefix", "https://bucket", "s3://", "s3://B_/x", ""])
def test_a_place_of_another_form_is_refused(uri: str) -> None:
    with pytest.raises(BadSetting, match="expected s3://bucket/prefix"):
        location_of(uri)


@pytest.mark.parametrize("uri", ["/a/b", "s3://bucket", "s3://bucket/", "http://b/k"])
def test_an_address_of_no_object_is_refused(uri: str) -> None:
    with pytest.raises(ValueError, match="expected s3://bucket/key"):
        split_uri(uri)
