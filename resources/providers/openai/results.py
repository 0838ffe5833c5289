"""Reading OpenAI's result lines: the envelope of a batch row around an answer or an error.

Belongs here: the shapes of output and error files and their meaning in the common words. Does not
belong here: request lines and bodies (`wire.py`), jobs (`jobs.py`).

The provider publishes no schema for these lines (PROVIDERS.md 1.2), so every field is optional.
A row is told by `error` first (it was never run), then by `response.status_code`: looking at
`error` alone counts refused requests as answers.
"""

from __future__ import annotations

from typing import Any

import msgspec

from resources.providers.openai.statuses import (
    chat_finish,
    failed_response_status,
    response_finish,
    row_error_code,
)
from resources.providers.port import Finish, MalformedLine, ResultLine

MAX_CODE = 100
"""Characters of an error code that are kept; a longer one is no code."""


class _Details(msgspec.Struct, frozen=True):
    cached_tokens: int | None = None


class _Usage(msgspec.Struct, frozen=True):
    # Chat Completions speak of prompt and completion, Responses of input and output.
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _Details | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_details: _Details | None = None


class _Message(msgspec.Struct, frozen=True):
    content: str | None = None
    refusal: str | None = None


class _Choice(msgspec.Struct, frozen=True):
    message: _Message | None = None
    finish_reason: str | None = None


class _Chat(msgspec.Struct, frozen=True):
    model: str | None = None
    choices: list[_Choice] = []
    usage: _Usage | None = None


class _Part(msgspec.Struct, frozen=True):
    type: str | None = None
    text: str | None = None
    refusal: str | None = None


class _Item(msgspec.Struct, frozen=True):
    type: str | None = None
    # Other items (reasoning, calls of tools) may have a content of another shape, or none.
    content: list[_Part] | None = None
    phase: str | None = None


class _Incomplete(msgspec.Struct, frozen=True):
    reason: str | None = None


class _Error(msgspec.Struct, frozen=True):
    code: str | int | None = None
    type: str | None = None


class _Response(msgspec.Struct, frozen=True):
    status: str | None = None
    model: str | None = None
    output: list[_Item] = []
    incomplete_details: _Incomplete | None = None
    error: _Error | None = None
    usage: _Usage | None = None


class _ErrorBody(msgspec.Struct, frozen=True):
    error: _Error | None = None


class _Envelope(msgspec.Struct, frozen=True):
    status_code: int | None = None
    body: msgspec.Raw = msgspec.Raw(b"null")


class _Row(msgspec.Struct, frozen=True):
    custom_id: str | None = None
    response: _Envelope | None = None
    error: _Error | None = None


class ResultLines:
    """A reader of the lines of both endpoints' output and error files.

    Args:
        chat: whether answers are of Chat Completions; else of Responses.
    """

    def __init__(self, *, chat: bool) -> None:
        self._rows = msgspec.json.Decoder(_Row)
        self._errors = msgspec.json.Decoder(_ErrorBody)
        self._chats = msgspec.json.Decoder(_Chat)
        self._responses = msgspec.json.Decoder(_Response)
        self._answered = self._chat if chat else self._response

    def read(self, line: bytes) -> ResultLine:
        """Return a line in the common shape.

        Raises:
            MalformedLine: the line, or the answer in it, is not of the provider's format.
        """
        row = _decode(self._rows, line, "result line")
        envelope = row.response
        if row.error is not None:
            return _not_run(row.custom_id, envelope, row.error)
        if envelope is None:
            return ResultLine(row.custom_id, status_code=0)
        status = envelope.status_code or 0
        if status != 200:
            return ResultLine(row.custom_id, status, error_code=self._code_in(bytes(envelope.body)))
        if _is_empty(bytes(envelope.body)):
            return ResultLine(row.custom_id, status)
        return self._answered(row.custom_id, envelope.body)

    def _code_in(self, body: bytes) -> str | None:
        """Return the error code in the body of a failed row; a body of any other form has none."""
        try:
            error = self._errors.decode(body).error
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return None
        return None if error is None else _code(error)

    def _chat(self, custom_id: str | None, body: msgspec.Raw) -> ResultLine:
        chat = _decode(self._chats, body, "chat completion")
        choice = chat.choices[0] if chat.choices else None
        message = (choice and choice.message) or _Message()
        usage = chat.usage or _Usage()
        finish: Finish | None = None if choice is None else chat_finish(choice.finish_reason)
        return ResultLine(
            custom_id,
            status_code=200,
            text=message.content,
            finish_reason="refused" if message.refusal else finish,
            model_revision=chat.model,
            input_tokens=usage.prompt_tokens,
            output_tokens=usage.completion_tokens,
            cached_tokens=_cached(usage.prompt_tokens_details),
        )

    def _response(self, custom_id: str | None, body: msgspec.Raw) -> ResultLine:
        response = _decode(self._responses, body, "response")
        usage = response.usage or _Usage()
        if response.status == "failed" or response.error is not None:
            code = _code(response.error) if response.error else None
            return ResultLine(
                custom_id,
                status_code=failed_response_status(code),
                error_code=code,
                model_revision=response.model,
                input_tokens=usage.input_tokens,
                output_tokens=usage.output_tokens,
                cached_tokens=_cached(usage.input_tokens_details),
            )
        parts = _answer_parts(response.output)
        texts = [
            part.text for part in parts if part.type == "output_text" and part.text is not None
        ]
        refused = any(part.type == "refusal" for part in parts)
        reason = response.incomplete_details and response.incomplete_details.reason
        return ResultLine(
            custom_id,
            status_code=200,
            text="".join(texts) if texts else None,
            finish_reason="refused" if refused else response_finish(response.status, reason),
            model_revision=response.model,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cached_tokens=_cached(usage.input_tokens_details),
        )


def _decode(decoder: msgspec.json.Decoder[Any], data: bytes | msgspec.Raw, what: str) -> Any:
    # `from None`: the library's message may quote what stands in the line.
    try:
        return decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedLine(f"not an openai {what}: {type(error).__name__}") from None


def _is_empty(body: bytes) -> bool:
    return body in (b"", b"null", b'""') or body.translate(None, b" \t\r\n") == b"{}"


def _not_run(custom_id: str | None, envelope: _Envelope | None, error: _Error) -> ResultLine:
    status = (envelope and envelope.status_code) or 0
    # 200 beside an error is no answer.
    return ResultLine(
        custom_id,
        status_code=0 if status == 200 else status,
        error_code=row_error_code(_code(error)),
    )


def _code(error: _Error) -> str | None:
    code = error.type if error.code is None else error.code
    return None if code is None else str(code)[:MAX_CODE]


def _cached(details: _Details | None) -> int | None:
    return None if details is None else details.cached_tokens


def _answer_parts(items: list[_Item]) -> list[_Part]:
    """Return the parts of the answer; what the model says on the way (`commentary`) is none."""
    messages = [item for item in items if item.type == "message" and item.phase != "commentary"]
    return [part for item in messages for part in item.content or ()]
