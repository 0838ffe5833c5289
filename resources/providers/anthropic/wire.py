"""Anthropic's formats: Messages bodies, batch request lines and batch result lines.

Belongs here: building and reading bytes, and the tables of words. Does not belong here: calls
(`batch.py`, `online.py`), what a failed call means (`errors.py`) and the schema rules
(`schema.py`).

Source of the tables: PROVIDERS.md 2.3, 2.5, 2.6 and 5.2 (A-G, A-E, A-T), November 2026.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, NoReturn

import msgspec

from resources.providers.anthropic.schema import check_schema
from resources.providers.port import (
    Ask,
    Finish,
    MalformedLine,
    ProviderError,
    Reply,
    ResultLine,
)

FINISHES: MappingProxyType[str, Finish] = MappingProxyType(
    {
        "end_turn": "stop",
        "stop_sequence": "stop",
        "tool_use": "stop",
        "max_tokens": "truncated",
        "model_context_window_exceeded": "truncated",
        "refusal": "refused",
        "pause_turn": "paused",
    }
)
"""`stop_reason` in the common words; anything else, or none, is `unknown`."""

STATUS_OF_TYPE = MappingProxyType(
    {
        "invalid_request_error": 400,
        "authentication_error": 401,
        "billing_error": 402,
        "permission_error": 403,
        "not_found_error": 404,
        "conflict_error": 409,
        "request_too_large": 413,
        "rate_limit_error": 429,
        "api_error": 500,
        "timeout_error": 504,
        "overloaded_error": 529,
    }
)
"""The HTTP status that an error's type stands for."""

_TYPE_OF_STATUS = {status: kind for kind, status in STATUS_OF_TYPE.items()}
_STATUS_OF_UNKNOWN_TYPE = 500  # "other inner types may be resubmitted"
_NOT_RUN = {"expired": "expired", "canceled": "cancelled"}
_RESERVED = frozenset(
    {"model", "max_tokens", "system", "messages", "output_format", "stream", "betas"}
)


class ParameterReserved(ProviderError):
    """A declared parameter stands where the request itself says something, or cannot be asked."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"the parameter {name!r} cannot be declared for anthropic: Tallybook writes that part "
            "of a request itself, or a batch does not take it. Take it out of the new version's "
            "spec."
        )


class _Request(msgspec.Struct, frozen=True):
    """A line of `requests`; `params` is kept raw, since digests are over the exact bytes."""

    custom_id: str
    params: msgspec.Raw


class _Error(msgspec.Struct, frozen=True):
    type: str
    details: Any = None  # an object of a shape of each code's own


class _Envelope(msgspec.Struct, frozen=True):
    error: _Error


class _Block(msgspec.Struct, frozen=True):
    type: str
    text: str | None = None


class _Usage(msgspec.Struct, frozen=True):
    # Any: a number of an unexpected form must not cost the paid answer beside it.
    input_tokens: Any = None
    cache_creation_input_tokens: Any = None
    cache_read_input_tokens: Any = None
    output_tokens: Any = None


class _Message(msgspec.Struct, frozen=True):
    content: list[_Block] | None = None
    stop_reason: str | None = None
    model: str | None = None
    usage: _Usage | None = None


class _Result(msgspec.Struct, frozen=True):
    type: str
    message: _Message | None = None
    error: _Envelope | None = None


class _Line(msgspec.Struct, frozen=True):
    result: _Result
    custom_id: str | None = None
    # Only in lines that `encode_reply` wrote: the status of an online call. Anthropic's lines
    # have none, and the type of an error does not tell a lost connection from a failed server.
    http_status: int | None = None


class _RawResult(msgspec.Struct, frozen=True, omit_defaults=True):
    type: str
    message: msgspec.Raw | None = None
    error: msgspec.Raw | None = None


class _RawLine(msgspec.Struct, frozen=True, omit_defaults=True):
    custom_id: str
    result: _RawResult
    http_status: int | None = None


class AnthropicWire:
    """The formats behind the provider port."""

    name = "anthropic"
    endpoint = "/v1/messages"

    def __init__(self) -> None:
        self._encoder = msgspec.json.Encoder()
        self._requests = msgspec.json.Decoder(_Request)
        self._lines = msgspec.json.Decoder(_Line)
        self._messages = msgspec.json.Decoder(_Message)
        self._envelopes = msgspec.json.Decoder(_Envelope)

    def body(self, ask: Ask) -> dict[str, Any]:
        """The Messages body.

        `output_config` may be declared for its other fields, as `effort`; `format` is ours.

        Raises:
            SchemaUnsupported: the output schema is outside the strict subset.
            ParameterReserved: a declared parameter would replace a part of the request.
        """
        check_schema(ask.schema)
        parameters = dict(ask.parameters)
        for name in parameters:
            if name in _RESERVED:
                raise ParameterReserved(name)
        output = parameters.pop("output_config", {})
        if not isinstance(output, dict) or "format" in output:
            raise ParameterReserved("output_config.format")
        return {
            "model": ask.model,
            "max_tokens": ask.output_tokens,
            "system": ask.system,
            "messages": [{"role": "user", "content": ask.user}],
            "output_config": {
                **output,
                "format": {"type": "json_schema", "schema": dict(ask.schema)},
            },
            **parameters,
        }

    def broken_body(self, ask: Ask) -> dict[str, Any]:
        """A body without a message: taken into a batch, then errored as an invalid request."""
        return {**self.body(ask), "messages": []}

    def encode_request(self, custom_id: str, body: bytes) -> bytes:
        """The request line (no newline) around a body."""
        return self._encoder.encode(_Request(custom_id, msgspec.Raw(body)))

    def decode_request(self, line: bytes) -> tuple[str, bytes]:
        """The custom id and the exact body bytes of a request line.

        Raises:
            MalformedLine: not a request line of this provider.
        """
        try:
            request = self._requests.decode(line)
        except (msgspec.MsgspecError, RecursionError) as error:
            _refuse("request", error)
        body = bytes(request.params)
        if not body.startswith(b"{"):
            raise MalformedLine("not an anthropic request line: its params are no object")
        return request.custom_id, body

    def encode_reply(self, custom_id: str, reply: Reply) -> bytes:
        """An online reply as a line (no newline) of a batch result file.

        The body stands in the line as it came. A body that is not of Anthropic's format (none at
        all, or a page of a proxy) is left out and the status is kept instead.
        """
        if 200 <= reply.status < 300 and _decodes(self._messages, reply.body):
            result = _RawResult("succeeded", message=_one_line(reply.body))
            return self._encoder.encode(_RawLine(custom_id, result))
        if reply.status >= 400 and _decodes(self._envelopes, reply.body):
            result = _RawResult("errored", error=_one_line(reply.body))
            return self._encoder.encode(_RawLine(custom_id, result, reply.status))
        kind = _TYPE_OF_STATUS.get(reply.status, "no_answer")
        error = {"type": "error", "error": {"type": kind, "message": "no body could be kept"}}
        result = _RawResult("errored", error=msgspec.Raw(self._encoder.encode(error)))
        return self._encoder.encode(_RawLine(custom_id, result, reply.status))

    def read_line(self, line: bytes) -> ResultLine:
        """A result line in the common shape.

        A result type that no table has is status 0: nothing says what became of the row.

        Raises:
            MalformedLine: the line is not of this provider's format.
        """
        try:
            row = self._lines.decode(line)
        except (msgspec.MsgspecError, RecursionError) as error:
            _refuse("result", error)
        result = row.result
        if result.type == "succeeded":
            return _succeeded(row.custom_id, result.message)
        if result.type == "errored":
            return _errored(row, result.error)
        code = _NOT_RUN.get(result.type, "unknown_result_type")
        return ResultLine(row.custom_id, 0, error_code=code)


def _succeeded(custom_id: str | None, message: _Message | None) -> ResultLine:
    if message is None or message.content is None:
        return ResultLine(custom_id, 200)
    usage = message.usage or _Usage()
    fresh = _count(usage.input_tokens)
    cached = _count(usage.cache_read_input_tokens)
    written = _count(usage.cache_creation_input_tokens)
    return ResultLine(
        custom_id=custom_id,
        status_code=200,
        # A refusal may come without any block: an empty answer with a reason, not a lost one.
        text="".join(block.text or "" for block in message.content if block.type == "text"),
        finish_reason=FINISHES.get(message.stop_reason or "", "unknown"),
        model_revision=message.model,
        input_tokens=None if fresh is None else fresh + (cached or 0) + (written or 0),
        output_tokens=_count(usage.output_tokens),
        cached_tokens=cached,
    )


def _errored(row: _Line, envelope: _Envelope | None) -> ResultLine:
    error = None if envelope is None else envelope.error
    kind = "" if error is None else error.type
    details = None if error is None else error.details
    code = details.get("error_code") if isinstance(details, dict) else None
    status = row.http_status
    if status is None:
        status = STATUS_OF_TYPE.get(kind, _STATUS_OF_UNKNOWN_TYPE)
    return ResultLine(row.custom_id, status, error_code=str(code or kind or "unknown_error"))


def _count(value: Any) -> int | None:
    is_count = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return value if is_count else None


def _decodes(decoder: msgspec.json.Decoder[Any], body: bytes) -> bool:
    try:
        decoder.decode(body)
    except (msgspec.MsgspecError, RecursionError):
        return False
    return True


def _one_line(body: bytes) -> msgspec.Raw:
    # In valid JSON a raw newline stands between values only, never in a text.
    return msgspec.Raw(body.replace(b"\n", b" ").replace(b"\r", b" ").strip())


def _refuse(kind: str, error: Exception) -> NoReturn:
    raise MalformedLine(f"not an anthropic {kind} line: {type(error).__name__}") from error
