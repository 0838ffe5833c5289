"""What Converse takes and says: checks of a body, answers, and rows that go wrong.

Belongs here: one request and one answer. Does not belong here: jobs, HTTP.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from typing import Any

from tests.provider_emulator import answers
from tests.provider_emulator.faults import Fault
from tests.provider_emulator.world import World

MODELS = ("anthropic.claude-haiku-4-5-20251001-v1:0", "amazon.nova-lite-v1:0")
OUTPUT_LIMITS = {MODELS[0]: 64_000, MODELS[1]: 10_000}
"""Most output tokens that a model gives."""

_PROFILE = re.compile(r"(?:us|eu|apac|jp|au|global)\.(.+)")
_FIELDS = frozenset(
    "messages system inferenceConfig toolConfig guardrailConfig additionalModelRequestFields "
    "promptVariables additionalModelResponseFieldPaths requestMetadata performanceConfig "
    "serviceTier outputConfig".split()
)
_INFERENCE_FIELDS = frozenset({"maxTokens", "temperature", "topP", "stopSequences"})
_SCHEMA_REFUSED = frozenset(
    "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength maxItems "
    "uniqueItems patternProperties oneOf not if then else prefixItems".split()
)
STRUCTURED_SETTING = "bedrock.structured_output_models"
"""Models with structured output; by default all that there are."""


class Invalid(Exception):
    """A body that Converse refuses with 400; the text is the message."""


@dataclass(frozen=True)
class Outcome:
    """What came of a row: an answer, an error, or nothing (it was not run)."""

    answer: dict[str, Any] | None = None
    status: int = 200
    message: str = ""
    code: str | None = None

    @property
    def was_run(self) -> bool:
        """Whether the model was run, which is paid for."""
        return self.answer is not None


def base_model(model_id: str) -> str | None:
    """Return the model behind a model id or an inference profile's, None where there is none."""
    name = model_id.rpartition("/")[2] if model_id.startswith("arn:") else model_id
    profile = _PROFILE.fullmatch(name)
    base = profile[1] if profile else name
    return base if base in MODELS else None


def is_profile(model_id: str) -> bool:
    """Return whether an id is that of an inference profile."""
    name = model_id.rpartition("/")[2]
    return _PROFILE.fullmatch(name) is not None and base_model(model_id) is not None


def prompt_of(body: dict[str, Any]) -> str:
    """Return the text of a checked body's user messages."""
    blocks = [
        block for one in body["messages"] if one["role"] == "user" for block in one["content"]
    ]
    return "\n".join(block["text"] for block in blocks if "text" in block)


def row_id_online(body: dict[str, Any]) -> str:
    """Return what a single call is counted under: the document's reference, else a digest."""
    text = prompt_of(body)
    prompt = answers.read_prompt(text)
    return prompt[0] if prompt else hashlib.sha256(text.encode()).hexdigest()[:16]


def check_body(world: World, body: Any, model: str, *, batch: bool) -> dict[str, Any]:
    """Return a body that Converse takes.

    Raises:
        Invalid: it does not.
    """
    if not isinstance(body, dict):
        raise Invalid("Malformed input request: expected type: JSONObject, found: other")
    extra = sorted(set(body) - _FIELDS)
    if extra:
        raise Invalid(
            f"Malformed input request: #: extraneous key [{extra[0]}] is not permitted, please "
            "reformat your input and try again."
        )
    _check_messages(body.get("messages"))
    for block in body.get("system", []):
        _check_text(block, "system")
    limit = int(world.settings.get("bedrock.max_output_tokens", OUTPUT_LIMITS[model]))
    _check_inference(body.get("inferenceConfig", {}), limit)
    if batch and "toolConfig" in body and not world.settings.get("bedrock.batch_tools"):
        raise Invalid("Tool use is not supported with batch inference of the type Converse.")
    _check_output(world, body.get("outputConfig", {}), model, batch=batch)
    return body


def _check_messages(messages: Any) -> None:
    if not isinstance(messages, list) or not messages:
        raise Invalid(
            "A conversation must start with a user message. Try again with a conversation that "
            "starts with a user message."
        )
    for number, message in enumerate(messages):
        wanted = ("user", "assistant")[number % 2]
        if not isinstance(message, dict) or message.get("role") != wanted:
            raise Invalid(
                "A conversation must alternate between user and assistant roles. Make sure the "
                "conversation alternates between user and assistant roles and try again."
            )
        content = message.get("content")
        if not isinstance(content, list) or not content:
            raise Invalid(f"The content field in the Message object at messages.{number} is empty.")
        for place, block in enumerate(content):
            _check_text(block, f"messages.{number}.content.{place}")


def _check_text(block: Any, place: str) -> None:
    if not isinstance(block, dict) or len(block) != 1:
        raise Invalid(f"The ContentBlock object at {place} must set one of the following keys.")
    if "text" in block and (not isinstance(block["text"], str) or not block["text"].strip()):
        raise Invalid(
            f"The text field in the ContentBlock object at {place} is blank. Add text to the text "
            "field, and try again."
        )


def _check_inference(config: Any, limit: int) -> None:
    if not isinstance(config, dict) or set(config) - _INFERENCE_FIELDS:
        raise Invalid("Malformed input request: #/inferenceConfig: extraneous key")
    tokens = config.get("maxTokens", 1)
    if not isinstance(tokens, int) or isinstance(tokens, bool) or tokens < 1:
        raise Invalid("The maxTokens value in inferenceConfig must be at least 1.")
    if tokens > limit:
        raise Invalid(
            f"The maximum tokens you requested exceeds the model limit of {limit}. Try again with "
            f"a maximum tokens value that is lower than {limit}."
        )
    for name in ("temperature", "topP"):
        value = config.get(name, 0)
        if not isinstance(value, int | float) or not 0 <= value <= 1:
            raise Invalid(f"The {name} value in inferenceConfig must be between 0 and 1.")
    stops = config.get("stopSequences", [])
    if not isinstance(stops, list) or not all(isinstance(one, str) and one for one in stops):
        raise Invalid("The stopSequences value in inferenceConfig must hold texts.")


def _check_output(world: World, config: Any, model: str, *, batch: bool) -> None:
    text_format = config.get("textFormat") if isinstance(config, dict) else None
    if text_format is None:
        return
    if batch and not world.settings.get("bedrock.batch_structured_output", True):
        raise Invalid("Structured output is not supported with batch inference.")
    if model not in world.settings.get(STRUCTURED_SETTING, MODELS):
        raise Invalid("This model doesn't support the outputConfig.textFormat field.")
    try:
        if text_format["type"] != "json_schema":
            raise Invalid("The type in outputConfig.textFormat must be json_schema.")
        schema = json.loads(text_format["structure"]["jsonSchema"]["schema"])
    except (KeyError, TypeError, ValueError):
        raise Invalid("The schema in outputConfig.textFormat must be a JSON text.") from None
    _check_schema(schema, schema, "$", ())


def _check_schema(node: Any, root: Any, place: str, within: tuple[str, ...]) -> None:
    """Refuse what is outside the strict subset, following references as a compiler would."""
    if not isinstance(node, dict):
        raise Invalid(f"output_config.format.schema: {place} is no object")
    refused = sorted(_SCHEMA_REFUSED & set(node))
    if refused:
        raise Invalid(f"output_config.format.schema: {place}: {refused[0]} is not supported")
    is_object = "object" in (node.get("type"), *_as_list(node.get("type")))
    if is_object and node.get("additionalProperties") is not False:
        raise Invalid(
            f"output_config.format.schema: For 'object' type, 'additionalProperties' must be "
            f"explicitly set to false ({place})"
        )
    reference = node.get("$ref")
    if reference is not None:
        _check_reference(reference, root, place, within)
    for name, child in {**node.get("properties", {}), **node.get("$defs", {})}.items():
        _check_schema(child, root, f"{place}.{name}", within)
    for child in [*_as_list(node.get("anyOf")), *_as_list(node.get("allOf"))]:
        _check_schema(child, root, f"{place}[]", within)
    if "items" in node:
        _check_schema(node["items"], root, f"{place}[]", within)


def _check_reference(reference: Any, root: Any, place: str, within: tuple[str, ...]) -> None:
    name = str(reference).removeprefix("#/$defs/")
    if name not in root.get("$defs", {}) or not str(reference).startswith("#/$defs/"):
        raise Invalid(f"output_config.format.schema: {place}: $ref must point into $defs")
    if name in within:
        raise Invalid(f"output_config.format.schema: {place}: recursive schemas are not supported")
    _check_schema(root["$defs"][name], root, place, (*within, name))


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


_ENDS = {
    "truncated": "max_tokens",
    "repetition": "max_tokens",
    "filtered": "content_filtered",
    "refused": "refusal",
}


def run_row(world: World, body: Any, model: str, fault: Fault | None, *, batch: bool) -> Outcome:
    """Return what the model makes of a body, with a planted fault of the row."""
    kind = fault.kind if fault else ""
    if kind == "not_executed":
        return Outcome()
    if kind == "status_zero":
        return Outcome(status=0)
    if fault is not None and kind == "error":
        return planted_error(fault)
    try:
        checked = check_body(world, body, model, batch=batch)
    except Invalid as invalid:
        return Outcome(status=400, message=str(invalid), code="ValidationException")
    return Outcome(answer=_answer(world, checked, kind))


def planted_error(fault: Fault) -> Outcome:
    """Return the error of a planted fault (args `status`, `code`, `message`)."""
    return Outcome(
        status=int(fault.args.get("status", 400)),
        message=str(fault.args.get("message", "a planted error of a row")),
        code=fault.args.get("code"),
    )


def _answer(world: World, body: dict[str, Any], kind: str) -> dict[str, Any]:
    prompt = prompt_of(body)
    text = answers.spoil(world.answer(prompt), kind)
    limit = body.get("inferenceConfig", {}).get("maxTokens", 4096)
    stop = _ENDS.get(kind, "end_turn")
    if len(text) // 4 > limit and kind != "repetition":
        text, stop = text[: limit * 4], "max_tokens"
    if kind in ("refused", "filtered"):
        text = "This cannot be answered."
    system = "".join(block.get("text", "") for block in body.get("system", []))
    read = max(1, (len(prompt) + len(system)) // 4)
    written = max(1, len(text) // 4)
    answer = {
        "metrics": {"latencyMs": 400 + written},
        "output": {"message": {"content": [{"text": text}], "role": "assistant"}},
        "stopReason": stop,
        "usage": {
            "cacheReadInputTokens": 0,
            "cacheWriteInputTokens": 0,
            "inputTokens": read,
            "outputTokens": written,
            "totalTokens": read + written,
        },
    }
    if kind == "no_finish":
        del answer["stopReason"]
    return answer
