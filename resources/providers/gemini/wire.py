"""Gemini's formats: `generateContent` bodies, batch request lines, batch result lines.

Belongs here: bytes in, common shapes out, and back. Does not belong here: jobs (`jobs.py`), the
network (`batch.py`, `online.py`) and the schema's dialects (`schema.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from resources.providers.gemini.schema import DIALECT_PARAMETER, DIALECTS, dialect_fields
from resources.providers.gemini.statuses import (
    CANCELLED_CODE,
    GRPC_NAMES,
    PROVIDER,
    code_of_http,
    finish_of,
    http_of_code,
)
from resources.providers.port import (
    Ask,
    Finish,
    MalformedLine,
    Reply,
    ResultLine,
)

TOP_LEVEL = frozenset({"safetySettings", "cachedContent", "tools", "toolConfig"})
"""Parameters that stand beside `generationConfig`; every other one stands inside it."""

ABSENT = msgspec.Raw()
"""The default of raw fields: a union of `Raw` and None takes no value at all."""

_OURS = frozenset({"responseMimeType", "responseSchema", "responseJsonSchema", "maxOutputTokens"})


class _Part(msgspec.Struct, frozen=True):
    text: str | None = None
    thought: bool = False


class _Content(msgspec.Struct, frozen=True):
    parts: list[_Part] = []


class _Candidate(msgspec.Struct, frozen=True, rename="camel"):
    content: _Content | None = None
    finish_reason: str | None = None


class _Feedback(msgspec.Struct, frozen=True, rename="camel"):
    block_reason: str | None = None


class _Usage(msgspec.Struct, frozen=True, rename="camel"):
    prompt_token_count: int = 0
    tool_use_prompt_token_count: int = 0
    cached_content_token_count: int = 0
    candidates_token_count: int = 0
    thoughts_token_count: int = 0


class _Response(msgspec.Struct, frozen=True, rename="camel"):
    candidates: list[_Candidate] = []
    prompt_feedback: _Feedback | None = None
    usage_metadata: _Usage | None = None
    model_version: str | None = None


class _Error(msgspec.Struct, frozen=True):
    code: int = 0
    status: str | None = None


class _Metadata(msgspec.Struct, frozen=True):
    key: str | None = None


class _Line(msgspec.Struct, frozen=True):
    key: str | None = None
    metadata: _Metadata | None = None
    response: _Response | None = None
    error: _Error | None = None


class _Request(msgspec.Struct, frozen=True):
    key: str
    request: msgspec.Raw


class _CallError(msgspec.Struct, frozen=True):
    code: int = 0
    message: str = ""
    status: str | None = None
    details: msgspec.Raw = ABSENT


class _CallErrorBody(msgspec.Struct, frozen=True):
    error: _CallError


_REFUSED_TEXT = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)


class GeminiWire:
    """The formats of `generateContent`, the same for every model."""

    name = PROVIDER
    endpoint = "generateContent"

    def __init__(self) -> None:
        self._lines = msgspec.json.Decoder(_Line)
        self._requests = msgspec.json.Decoder(_Request)
        self._errors = msgspec.json.Decoder(_CallErrorBody)
        self._encoder = msgspec.json.Encoder()
        self._last: tuple[Mapping[str, Any], object, dict[str, Any]] | None = None

    def body(self, ask: Ask) -> dict[str, Any]:
        """The request body.

        Parameters are fields of `generationConfig`, save the few of `TOP_LEVEL`;
        `schema_dialect` is ours and chooses the field of the schema.

        Raises:
            SchemaUnsupported: the dialect is unknown or cannot say the schema.
            ValueError: a parameter sets a field that the request itself sets.
        """
        parameters = dict(ask.parameters)
        dialect = parameters.pop(DIALECT_PARAMETER, DIALECTS[0])
        _check_parameters(parameters)
        config: dict[str, Any] = {
            "responseMimeType": "application/json",
            **self._schema_fields(ask.schema, dialect),
            "maxOutputTokens": ask.output_tokens,
        }
        config.update({k: v for k, v in parameters.items() if k not in TOP_LEVEL})
        return {
            "contents": [{"role": "user", "parts": [{"text": ask.user}]}],
            "systemInstruction": {"parts": [{"text": ask.system}]},
            "generationConfig": config,
            **{k: v for k, v in parameters.items() if k in TOP_LEVEL},
        }

    def broken_body(self, ask: Ask) -> dict[str, Any]:
        """A body without contents: of the right form, and refused with INVALID_ARGUMENT."""
        return {**self.body(ask), "contents": []}

    def encode_request(self, custom_id: str, body: bytes) -> bytes:
        """The request line (no newline) around a body."""
        return self._encoder.encode(_Request(custom_id, msgspec.Raw(body)))

    def decode_request(self, line: bytes) -> tuple[str, bytes]:
        """The custom id and the exact body bytes of a request line.

        Raises:
            MalformedLine: not a request line of this provider.
        """
        try:
            asked = self._requests.decode(line)
        except _REFUSED_TEXT as error:
            raise MalformedLine(f"not a Gemini request line: {type(error).__name__}") from error
        return asked.key, bytes(asked.request)

    def encode_reply(self, custom_id: str, reply: Reply) -> bytes:
        """An online reply as a line (no newline) of a batch result file.

        A 2xx whose body cannot be read becomes a line without a response, which reads as status
        0: it cannot be told from an answer that was cut on its way.
        """
        if 200 <= reply.status < 300:
            return self._encoder.encode({"key": custom_id, **_response(reply.body)})
        return self._encoder.encode({"key": custom_id, "error": self._row_error(reply)})

    def read_line(self, line: bytes) -> ResultLine:
        """A result line in the common shape.

        Raises:
            MalformedLine: the line is not of this provider's format.
        """
        try:
            result = self._lines.decode(line)
        except _REFUSED_TEXT as error:
            raise MalformedLine(f"not a Gemini result line: {type(error).__name__}") from error
        key = result.key
        if key is None and result.metadata is not None:
            key = result.metadata.key
        if result.error is not None:
            return _failed(key, result.error)
        if result.response is None:
            return ResultLine(custom_id=key, status_code=0)
        return _answered(key, result.response)

    def _schema_fields(self, schema: Mapping[str, Any], dialect: object) -> dict[str, Any]:
        """The schema's field, kept for the next request: all of a version share one schema object.

        Made anew, it is most of the time that a body takes (0.1 ms).
        """
        if self._last is None or self._last[0] is not schema or self._last[1] != dialect:
            self._last = (schema, dialect, dialect_fields(schema, dialect))
        return self._last[2]

    def _row_error(self, reply: Reply) -> dict[str, Any]:
        """The error of a call as rows carry it: a gRPC number, name, message and details."""
        if reply.status == 0:
            return {"code": 0, "message": "no answer came"}
        try:
            told = self._errors.decode(reply.body).error
        except _REFUSED_TEXT:
            told = _CallError(message=f"HTTP {reply.status} without an error body")
        code = code_of_http(reply.status, told.status)
        made: dict[str, Any] = {"code": code, "message": told.message}
        if told.status is not None:
            made["status"] = told.status
        if present(told.details):
            made["details"] = compact(told.details)
        return made


def present(raw: msgspec.Raw) -> bool:
    """Is there a value in a raw field?"""
    return bytes(raw) not in (b"", b"null")


def compact(text: msgspec.Raw | bytes) -> msgspec.Raw:
    """JSON on one line: the provider indents what it sends. Strings and numbers stay as they are.

    Raises:
        msgspec.MsgspecError: not JSON.
    """
    # `format` looks only at the brackets and commas; decoding proves that the text is JSON.
    msgspec.json.decode(text, type=msgspec.Raw)
    return msgspec.Raw(msgspec.json.format(bytes(text), indent=-1))


def _response(body: bytes) -> dict[str, msgspec.Raw]:
    try:
        msgspec.json.decode(body, type=_Response)
        return {"response": compact(body)}
    except _REFUSED_TEXT:
        return {}


def _check_parameters(parameters: Mapping[str, Any]) -> None:
    taken = sorted(_OURS.intersection(parameters))
    if taken:
        raise ValueError(
            f"the parameters set {', '.join(taken)}, which the output schema and the output limit "
            "of the version fill. Take them out of the spec's parameters."
        )


def _failed(key: str | None, error: _Error) -> ResultLine:
    if error.code == CANCELLED_CODE:
        return ResultLine(custom_id=key, status_code=0, error_code="cancelled")
    name = error.status or GRPC_NAMES.get(error.code)
    if name is None and error.code != 0:
        name = str(error.code)
    return ResultLine(custom_id=key, status_code=http_of_code(error.code), error_code=name)


def _answered(key: str | None, response: _Response) -> ResultLine:
    usage = response.usage_metadata
    text, finish = _text_and_finish(response)
    read = usage and usage.prompt_token_count + usage.tool_use_prompt_token_count
    return ResultLine(
        custom_id=key,
        status_code=200,
        text=text,
        finish_reason=finish,
        model_revision=response.model_version,
        input_tokens=read or None,  # no request is empty: zero means that nothing was said
        output_tokens=usage and usage.candidates_token_count + usage.thoughts_token_count,
        cached_tokens=usage and usage.cached_content_token_count,
    )


def _text_and_finish(response: _Response) -> tuple[str | None, Finish | None]:
    """The answer of the first candidate; a blocked prompt has none and was filtered."""
    if not response.candidates:
        feedback = response.prompt_feedback
        blocked = feedback is not None and feedback.block_reason is not None
        return None, "filtered" if blocked else None
    first = response.candidates[0]
    parts = first.content.parts if first.content is not None else []
    texts = [part.text for part in parts if part.text is not None and not part.thought]
    return "".join(texts) if texts else None, finish_of(first.finish_reason)
