"""Bedrock's formats: Converse bodies, request lines and result lines. Pure.

Belongs here: bytes and dictionaries. Does not belong here: boto3, S3, jobs (`batch.py`), calls
(`online.py`).

A Converse body names no model: the job, or the path of the online call, does. A row that names one
is refused as extra input (PROVIDERS.md 4.2).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from resources.providers.bedrock.schema import problem_of
from resources.providers.bedrock.statuses import finish_of
from resources.providers.port import Ask, MalformedLine, Reply, ResultLine, SchemaUnsupported

OWN_FIELDS = frozenset({"modelId", "system", "messages", "inferenceConfig", "outputConfig"})
"""Body fields that the project fills; a parameter may not name them."""

INFERENCE_PARAMETERS = frozenset({"temperature", "topP", "stopSequences"})
"""Parameters that go inside `inferenceConfig`."""


class _Request(msgspec.Struct, frozen=True):
    # `modelInput` stays raw: its digest is over the exact bytes.
    recordId: str
    modelInput: msgspec.Raw


class _Block(msgspec.Struct, frozen=True):
    text: str | None = None


class _Message(msgspec.Struct, frozen=True):
    content: list[_Block] = []


class _Output(msgspec.Struct, frozen=True):
    message: _Message | None = None


class _Usage(msgspec.Struct, frozen=True):
    inputTokens: int | None = None
    outputTokens: int | None = None
    cacheReadInputTokens: int | None = None
    cacheWriteInputTokens: int | None = None


class _Converse(msgspec.Struct, frozen=True):
    output: _Output | None = None
    stopReason: str | None = None
    usage: _Usage | None = None


class _Error(msgspec.Struct, frozen=True):
    # The documented type is a number; a text of digits has the same meaning.
    errorCode: int | str | None = None


class _Result(msgspec.Struct, frozen=True):
    # `modelInput` is left out: the whole request, never needed and by far the longest part.
    recordId: str | None = None
    modelOutput: _Converse | msgspec.UnsetType | None = msgspec.UNSET
    error: _Error | None = None


class _ErrorBody(msgspec.Struct, frozen=True):
    message: str = ""


class _WrittenError(msgspec.Struct, frozen=True):
    errorCode: int
    errorMessage: str


class _WrittenResult(msgspec.Struct, frozen=True, omit_defaults=True):
    recordId: str
    modelInput: dict[str, Any]
    modelOutput: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    error: _WrittenError | msgspec.UnsetType = msgspec.UNSET


class BedrockWire:
    """The port's `Wire` for Converse, in batch jobs of that invocation type and online."""

    name = "bedrock"
    endpoint = "converse"

    def __init__(self) -> None:
        self._requests = msgspec.json.Decoder(_Request)
        self._results = msgspec.json.Decoder(_Result)
        self._encoder = msgspec.json.Encoder()

    def body(self, ask: Ask) -> dict[str, Any]:
        """Return the Converse body.

        Raises:
            SchemaUnsupported: the output schema is outside the provider's strict subset.
            ValueError: a parameter names a field of ours.
        """
        problem = problem_of(ask.schema)
        if problem is not None:
            raise SchemaUnsupported(self.name, problem)
        inference, others = _split_parameters(ask.parameters)
        body: dict[str, Any] = {
            "system": [{"text": ask.system}],
            "messages": [{"role": "user", "content": [{"text": ask.user}]}],
            "inferenceConfig": {"maxTokens": ask.output_tokens, **inference},
            "outputConfig": {"textFormat": self._text_format(ask)},
            **others,
        }
        if not ask.system:
            del body["system"]  # a block of no text is refused
        return body

    def broken_body(self, ask: Ask) -> dict[str, Any]:
        """Return a body without any message: taken into a job, refused as a row, free of charge."""
        return {**self.body(ask), "messages": []}

    def encode_request(self, custom_id: str, body: bytes) -> bytes:
        """Return the request line (no newline) around a body."""
        return self._encoder.encode(_Request(custom_id, msgspec.Raw(body)))

    def decode_request(self, line: bytes) -> tuple[str, bytes]:
        """Return the record id and the exact body bytes of a request line.

        Raises:
            MalformedLine: not a request line of this provider.
        """
        try:
            request = self._requests.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise MalformedLine(f"not a bedrock request line: {type(error).__name__}") from None
        return request.recordId, bytes(request.modelInput)

    def encode_reply(self, custom_id: str, reply: Reply) -> bytes:
        """Return an online reply as a line (no newline) of an output file."""
        if 200 <= reply.status < 300:
            body = _one_line(reply.body) or b"null"
            written = _WrittenResult(custom_id, {}, modelOutput=msgspec.Raw(body))
        else:
            written = _WrittenResult(
                custom_id, {}, error=_WrittenError(reply.status, _message_in(reply.body))
            )
        return self._encoder.encode(written)

    def read_line(self, line: bytes) -> ResultLine:
        """Return a line of an output file in the common shape.

        Raises:
            MalformedLine: the line is not of this provider's format.
        """
        try:
            result = self._results.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise MalformedLine(f"not a bedrock result line: {type(error).__name__}") from None
        if result.error is not None:
            return _failed(result.recordId, result.error)
        if isinstance(result.modelOutput, msgspec.UnsetType):
            return ResultLine(result.recordId, status_code=0)
        if result.modelOutput is None:
            return ResultLine(result.recordId, status_code=200)
        return _answered(result.recordId, result.modelOutput)

    def _text_format(self, ask: Ask) -> dict[str, Any]:
        schema = self._encoder.encode(ask.schema).decode()
        return {
            "type": "json_schema",
            "structure": {"jsonSchema": {"name": ask.schema_name, "schema": schema}},
        }


def _split_parameters(parameters: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what goes inside `inferenceConfig`, and what stands beside it."""
    ours = sorted((OWN_FIELDS | {"maxTokens"}).intersection(parameters))
    if ours:
        raise ValueError(
            f"the parameter {ours[0]!r} names a field that is filled from the workload and the "
            "settings. Take it out of the spec's parameters."
        )
    inference = {key: value for key, value in parameters.items() if key in INFERENCE_PARAMETERS}
    return inference, {key: value for key, value in parameters.items() if key not in inference}


def _failed(record_id: str | None, error: _Error) -> ResultLine:
    code = error.errorCode
    digits = str(code).isdecimal() and len(str(code)) <= 3
    return ResultLine(
        record_id,
        status_code=int(code) if code is not None and digits else 0,
        error_code=None if code is None else str(code)[:64],
    )


def _answered(record_id: str | None, converse: _Converse) -> ResultLine:
    message = converse.output.message if converse.output else None
    texts = [block.text for block in message.content if block.text is not None] if message else []
    usage = converse.usage or _Usage()
    return ResultLine(
        record_id,
        status_code=200,
        text="".join(texts) if texts else None,
        finish_reason=finish_of(converse.stopReason),
        input_tokens=_all_input(usage),
        output_tokens=usage.outputTokens,
        cached_tokens=usage.cacheReadInputTokens,
    )


def _all_input(usage: _Usage) -> int | None:
    # What was read from, or written to, the cache is counted beside `inputTokens` (5.3).
    if usage.inputTokens is None:
        return None
    return (
        usage.inputTokens + (usage.cacheReadInputTokens or 0) + (usage.cacheWriteInputTokens or 0)
    )


def _one_line(body: bytes) -> bytes | None:
    """Return a JSON body without raw newlines, or None where it is no JSON."""
    try:
        text = body.decode()
        msgspec.json.decode(text, type=msgspec.Raw)
        return msgspec.json.format(body, indent=-1) if "\n" in text or "\r" in text else body
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _message_in(body: bytes) -> str:
    try:
        return msgspec.json.decode(body, type=_ErrorBody).message[:300]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ""
