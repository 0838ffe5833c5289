"""The `baseline` provider: deterministic rules over the request's pages, inside the run.

Belongs here: its wire format and the call of the rules that it is given. Does not belong here:
the rules themselves, which a workload owns (`workloads/*/baseline`).
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from resources.providers.port import Finish, MalformedLine, ResultLine


class RequestPage(msgspec.Struct, frozen=True):
    """A page of the document in a request: its number from 1 and its text."""

    number: int
    text: str


class RequestBody(msgspec.Struct, frozen=True):
    """What the model is asked: the reference to echo and the pages."""

    model: str
    document: str
    pages: list[RequestPage]


class Request(msgspec.Struct, frozen=True):
    """A request line. `body` is kept raw, since its digest is over the exact bytes."""

    custom_id: str
    body: msgspec.Raw


class _ResultBody(msgspec.Struct, frozen=True):
    model: str
    text: str
    finish_reason: Finish


class _Result(msgspec.Struct, frozen=True):
    custom_id: str
    status_code: int
    body: _ResultBody | None = None
    error_code: str | None = None


Answer = Callable[[str, list[RequestPage]], bytes]
"""(document reference, pages) → the answer as JSON bytes."""


class BaselineProvider:
    """Rules behind the provider port.

    Args:
        model: the version of the rules, echoed as the model revision.
        answer: the workload's rules.
    """

    name = "baseline"

    def __init__(self, model: str, answer: Answer) -> None:
        self._model = model
        self._answer = answer
        self._requests = msgspec.json.Decoder(Request)
        self._bodies = msgspec.json.Decoder(RequestBody)
        self._results = msgspec.json.Decoder(_Result)
        self._encoder = msgspec.json.Encoder()

    def answer_line(self, request: bytes) -> bytes:
        """The result line for a request line.

        Raises:
            MalformedLine: the request is not one of ours.
        """
        try:
            asked = self._requests.decode(request)
            body = self._bodies.decode(asked.body)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise MalformedLine(f"not a baseline request: {type(error).__name__}") from error
        text = self._answer(body.document, body.pages).decode()
        return self._encoder.encode(
            _Result(asked.custom_id, 200, _ResultBody(self._model, text, "stop"))
        )

    def read_line(self, line: bytes) -> ResultLine:
        """A result line in the common shape.

        Raises:
            MalformedLine: the line is not of this format.
        """
        try:
            result = self._results.decode(line)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise MalformedLine(f"not a baseline result: {type(error).__name__}") from error
        body = result.body
        return ResultLine(
            custom_id=result.custom_id,
            status_code=result.status_code,
            text=None if body is None else body.text,
            finish_reason=None if body is None else body.finish_reason,
            error_code=result.error_code,
            model_revision=None if body is None else body.model,
        )


def encode_body(model: str, document: str, pages: list[tuple[int, str]]) -> bytes:
    """The exact bytes of a request body."""
    body = RequestBody(model, document, [RequestPage(number, text) for number, text in pages])
    return msgspec.json.encode(body)


def encode_request(custom_id: str, body: bytes) -> bytes:
    """A request line around a body, without the newline."""
    return msgspec.json.encode(Request(custom_id, msgspec.Raw(body)))


def decode_request(line: bytes) -> tuple[str, bytes]:
    """The custom id and the exact body bytes of a request line.

    Raises:
        MalformedLine: it is not one of ours.
    """
    try:
        request = msgspec.json.decode(line, type=Request)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise MalformedLine(f"not a baseline request: {type(error).__name__}") from error
    return request.custom_id, bytes(request.body)
