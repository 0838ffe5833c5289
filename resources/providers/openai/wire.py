"""OpenAI's formats: request bodies of two endpoints, request lines and result lines. Pure.

Belongs here: bytes and dictionaries. Does not belong here: the SDK, jobs (`batch.py`), calls
(`online.py`), the shapes of answers (`results.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from resources.providers.openai.results import ResultLines
from resources.providers.openai.schema import problem_of
from resources.providers.port import Ask, MalformedLine, Reply, ResultLine, SchemaUnsupported

RESPONSES = "/v1/responses"
CHAT = "/v1/chat/completions"

OWN_FIELDS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        RESPONSES: frozenset(
            {"model", "instructions", "input", "text", "max_output_tokens", "store", "stream"}
        ),
        CHAT: frozenset(
            {"model", "messages", "response_format", "max_completion_tokens", "stream"}
        ),
    }
)
"""Body fields by endpoint that no parameter may name: the project fills them, and rows of a batch
may not stream (PROVIDERS.md 1.5)."""


class _Request(msgspec.Struct, frozen=True):
    # `body` stays raw: its digest is over the exact bytes.
    custom_id: str
    method: str
    url: str
    body: msgspec.Raw


class _Envelope(msgspec.Struct, frozen=True):
    status_code: int
    request_id: str
    body: msgspec.Raw


class _Result(msgspec.Struct, frozen=True):
    id: str
    custom_id: str
    response: _Envelope
    error: None = None


class OpenAIWire:
    """The port's `Wire` for one endpoint, in batch files and online.

    Args:
        endpoint: `/v1/responses` or `/v1/chat/completions`.

    Raises:
        ValueError: another endpoint.
    """

    name = "openai"

    def __init__(self, endpoint: str) -> None:
        if endpoint not in OWN_FIELDS:
            raise ValueError(
                f"the endpoint {endpoint!r} is not served; expected one of {', '.join(OWN_FIELDS)}"
            )
        self.endpoint = endpoint
        self._requests = msgspec.json.Decoder(_Request)
        self._results = ResultLines(chat=endpoint == CHAT)
        self._encoder = msgspec.json.Encoder()

    def body(self, ask: Ask) -> dict[str, Any]:
        """Return the request body.

        Raises:
            SchemaUnsupported: the output schema is outside the provider's strict subset.
            ValueError: a parameter names a field that no parameter may name.
        """
        problem = problem_of(ask.schema_name, ask.schema)
        if problem is not None:
            raise SchemaUnsupported(self.name, problem)
        taken = sorted(OWN_FIELDS[self.endpoint].intersection(ask.parameters))
        if taken:
            raise ValueError(
                f"the parameter {taken[0]!r} names a field that is filled from the workload and "
                "the settings. Take it out of the spec's parameters."
            )
        return _chat_body(ask) if self.endpoint == CHAT else _responses_body(ask)

    def broken_body(self, ask: Ask) -> dict[str, Any]:
        """Return a body that passes a batch's validation and fails as a row, free of charge.

        Its model is the asked one, since an unknown model fails the whole batch. What is wrong is
        a bound that the endpoint checks itself: at least one message, at least 16 output tokens.
        """
        if self.endpoint == CHAT:
            return {**self.body(ask), "messages": []}
        return {**self.body(ask), "max_output_tokens": 0}

    def encode_request(self, custom_id: str, body: bytes) -> bytes:
        """Return the request line (no newline) around a body.

        Raises:
            ValueError: the body holds a newline and would be cut into two lines.
        """
        if b"\n" in body or b"\r" in body:
            raise ValueError("a body of a batch row must be one line of JSON, without newlines")
        request = _Request(custom_id, "POST", self.endpoint, msgspec.Raw(body))
        return self._encoder.encode(request)

    def decode_request(self, line: bytes) -> tuple[str, bytes]:
        """Return the custom id and the exact body bytes of a request line.

        Raises:
            MalformedLine: not a request line of this provider and endpoint.
        """
        try:
            request = self._requests.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise MalformedLine(f"not an openai request line: {type(error).__name__}") from None
        if request.method != "POST" or request.url != self.endpoint:
            raise MalformedLine(f"not an openai request line for POST {self.endpoint}")
        return request.custom_id, bytes(request.body)

    def encode_reply(self, custom_id: str, reply: Reply) -> bytes:
        """Return an online reply as a line (no newline) of an output or error file.

        A body that is no JSON (a gateway's page) is left out: such a line never has an answer.
        """
        body = _one_line(reply.body) or (b"null" if reply.status else b"{}")
        request_id = reply.request_id or ""
        envelope = _Envelope(reply.status, request_id, msgspec.Raw(body))
        return self._encoder.encode(_Result(request_id, custom_id, envelope))

    def read_line(self, line: bytes) -> ResultLine:
        """Return a line of an output or error file in the common shape.

        Raises:
            MalformedLine: the line is not of this provider's format.
        """
        return self._results.read(line)


def _responses_body(ask: Ask) -> dict[str, Any]:
    return {
        "model": ask.model,
        "instructions": ask.system,
        "input": ask.user,
        "text": {"format": {"type": "json_schema", **_format(ask)}},
        "max_output_tokens": ask.output_tokens,
        **ask.parameters,
        # Otherwise answers are kept at the provider for thirty days.
        "store": False,
    }


def _chat_body(ask: Ask) -> dict[str, Any]:
    return {
        "model": ask.model,
        "messages": [
            {"role": "system", "content": ask.system},
            {"role": "user", "content": ask.user},
        ],
        "response_format": {"type": "json_schema", "json_schema": _format(ask)},
        "max_completion_tokens": ask.output_tokens,
        **ask.parameters,
    }


def _format(ask: Ask) -> dict[str, Any]:
    return {"name": ask.schema_name, "strict": True, "schema": ask.schema}


def _one_line(body: bytes) -> bytes | None:
    """Return a JSON body without line ends, or None where it is no JSON."""
    try:
        msgspec.json.decode(body.decode())
        # Answers of online calls are written over several lines.
        return msgspec.json.format(body, indent=-1) if b"\n" in body or b"\r" in body else body
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
