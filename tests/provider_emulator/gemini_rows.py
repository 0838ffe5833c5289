"""One emulated `generateContent`: checking a request, answering it, and what faults do to it.

Belongs here: what is the same online and in a batch. Does not belong here: HTTP and jobs.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from tests.provider_emulator.answers import read_prompt, spoil
from tests.provider_emulator.faults import Fault
from tests.provider_emulator.gemini_http import CODES, NAMES
from tests.provider_emulator.gemini_schema import BadSchema, check_schema
from tests.provider_emulator.http import json_bytes
from tests.provider_emulator.world import World

CONTEXT_TOKENS = 1_048_576
SCHEMA_DEPTH = 32
"""The service documents that very deep schemas are refused, without a number: this one is ours."""

REQUEST_FIELDS = frozenset(
    "contents systemInstruction generationConfig tools toolConfig safetySettings cachedContent "
    "model".split()
)
CONFIG_FIELDS = frozenset(
    "stopSequences responseMimeType responseSchema responseJsonSchema responseModalities "
    "candidateCount maxOutputTokens temperature topP topK seed presencePenalty frequencyPenalty "
    "responseLogprobs logprobs enableEnhancedCivicAnswers speechConfig thinkingConfig "
    "mediaResolution".split()
)
RANGES = {
    "temperature": (0, 2),
    "topP": (0, 1),
    "topK": (1, 1000),
    "maxOutputTokens": (1, 65_536),
    "candidateCount": (1, 8),
}
CUT_KINDS = ("truncated", "repetition")
REFUSAL = "I can't help with that request."


class BadRequest(ValueError):
    """A request that is refused with INVALID_ARGUMENT; the message is the provider's."""


@dataclass(frozen=True)
class Outcome:
    """What came of a request.

    Attributes:
        response: a GenerateContentResponse.
        error: `{code, message}` with a gRPC code, where it failed.
        executed: it was run, and is billed.
        status: HTTP status, where it is asked for online.
    """

    response: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    executed: bool = False
    status: int = 200


def tokens(text: str) -> int:
    """Return a plausible number of tokens."""
    return (len(text) + 3) // 4


def request_tokens(request: dict[str, Any]) -> int:
    """Return the tokens of everything that is read for a request."""
    config = request.get("generationConfig") or {}
    schema = config.get("responseSchema") or config.get("responseJsonSchema") or ""
    return tokens(system_text(request)) + tokens(user_text(request)) + tokens(str(schema))


def user_text(request: dict[str, Any]) -> str:
    """Return the text of the last content."""
    contents = request.get("contents")
    return _parts_text(contents[-1]) if isinstance(contents, list) and contents else ""


def system_text(request: dict[str, Any]) -> str:
    """Return the instructions."""
    return _parts_text(request.get("systemInstruction"))


def online_id(request: dict[str, Any]) -> str:
    """Return what an online call is counted under: the document's reference, else a digest."""
    prompt = read_prompt(user_text(request))
    return prompt[0] if prompt else hashlib.sha256(json_bytes(request)).hexdigest()[:24]


def run_request(world: World, model: str, request: Any, fault: Fault | None) -> Outcome:
    """Return what the emulated model makes of a request, with a row fault done to it."""
    try:
        check_request(world, request)
    except (BadRequest, BadSchema) as refused:
        return Outcome(error={"code": 3, "message": str(refused)}, status=400)
    kind = fault.kind if fault is not None else ""
    if fault is not None and kind == "error":
        return failed(fault)
    if kind in ("not_executed", "status_zero"):
        return Outcome()
    if fault is not None and kind == "filtered" and fault.args.get("prompt"):
        return Outcome(_blocked(world, model, request), executed=True)
    return Outcome(_answered(world, model, request, kind), executed=True)


def failed(fault: Fault) -> Outcome:
    """Return the outcome of an `error` fault: args `status`, `code` (a name), `message`."""
    status = int(fault.args.get("status", 500))
    name = str(fault.args.get("code", NAMES.get(status, "INTERNAL")))
    error = {
        "code": CODES.get(name, 13),
        "message": str(fault.args.get("message", f"Emulated row error {name}.")),
    }
    return Outcome(error=error, status=status)


def check_request(world: World, request: Any) -> None:
    """Check a request as the service does before it is run.

    Raises:
        BadRequest, BadSchema: it is refused.
    """
    if not isinstance(request, dict):
        raise BadRequest("Invalid JSON payload received. Expected an object.")
    _check_fields(request, REQUEST_FIELDS, "")
    _check_contents(request.get("contents"))
    config = request.get("generationConfig", {})
    if not isinstance(config, dict):
        raise BadRequest("Invalid value at 'generation_config'.")
    _check_fields(config, CONFIG_FIELDS, " at 'generation_config'")
    for name, (low, high) in RANGES.items():
        value = config.get(name, low)
        if not isinstance(value, int | float) or not low <= value <= high:
            raise BadRequest(
                f"Unable to submit request because it has a {name} value of {value} but the "
                f"supported range is from {low} to {high}."
            )
    check_schema(config, int(world.settings.get("gemini.schema_depth", SCHEMA_DEPTH)))
    limit = int(world.settings.get("gemini.context_tokens", CONTEXT_TOKENS))
    if (found := request_tokens(request)) > limit:
        raise BadRequest(
            f"The input token count ({found}) exceeds the maximum number of tokens allowed "
            f"({limit})."
        )


def _check_fields(value: dict[str, Any], known: frozenset[str], place: str) -> None:
    for field in value:
        if field not in known:
            raise BadRequest(
                f'Invalid JSON payload received. Unknown name "{field}"{place}: Cannot find field.'
            )


def _check_contents(contents: Any) -> None:
    if not isinstance(contents, list) or not contents:
        raise BadRequest("* GenerateContentRequest.contents: contents is not specified\n")
    for number, content in enumerate(contents):
        if not isinstance(content, dict) or content.get("role", "user") not in ("user", "model"):
            raise BadRequest("Please use a valid role: user, model.")
        if not _parts_text(content):
            raise BadRequest(
                f"* GenerateContentRequest.contents[{number}].parts: contents.parts must not be "
                "empty.\n"
            )


def _parts_text(content: Any) -> str:
    parts = content.get("parts") if isinstance(content, dict) else None
    if not isinstance(parts, list):
        return ""
    return "".join(part["text"] for part in parts if isinstance(part, dict) and "text" in part)


def _answered(world: World, model: str, request: dict[str, Any], kind: str) -> dict[str, Any]:
    config = request.get("generationConfig") or {}
    text = spoil(world.answer(user_text(request)), kind)
    finish: str | None = "MAX_TOKENS" if kind in CUT_KINDS else "STOP"
    limit = config.get("maxOutputTokens")
    if limit is not None and tokens(text) > limit:
        text, finish = text[: limit * 4], "MAX_TOKENS"
    if kind == "refused":
        text = REFUSAL
    candidate: dict[str, Any] = {"content": {"parts": [{"text": text}], "role": "model"}}
    if kind == "filtered":
        candidate, text, finish = {}, "", "SAFETY"
    if finish is not None and kind != "no_finish":
        candidate["finishReason"] = finish
    candidate["index"] = 0
    written = tokens(text)
    thinking = (config.get("thinkingConfig") or {}).get("thinkingBudget") != 0 and written > 0
    return {
        "candidates": [candidate],
        "usageMetadata": usage(request, written, 16 + written // 4 if thinking else 0),
        "modelVersion": model,
        "responseId": world.new_id("resp"),
    }


def _blocked(world: World, model: str, request: dict[str, Any]) -> dict[str, Any]:
    return {
        "promptFeedback": {"blockReason": "PROHIBITED_CONTENT"},
        "usageMetadata": usage(request, 0, 0),
        "modelVersion": model,
        "responseId": world.new_id("resp"),
    }


def usage(request: dict[str, Any], written: int, thoughts: int) -> dict[str, Any]:
    """Return usage metadata; fields that are zero are left out."""
    read = request_tokens(request)
    counts = {
        "promptTokenCount": read,
        "candidatesTokenCount": written,
        "thoughtsTokenCount": thoughts,
        "totalTokenCount": read + written + thoughts,
    }
    found: dict[str, Any] = {name: count for name, count in counts.items() if count}
    found["promptTokensDetails"] = [{"modality": "TEXT", "tokenCount": read}]
    return found
