"""What an emulated OpenAI model does with a request body: refuse it, or answer it.

Belongs here: the rules of a body of both endpoints, and the response that comes back. Does not
belong here: where the body came from and how its result is wrapped.
"""

from __future__ import annotations

from typing import Any

from tests.provider_emulator import answers
from tests.provider_emulator.faults import Fault
from tests.provider_emulator.openai_http import ApiError, invalid
from tests.provider_emulator.openai_schema import BadSchema, check_strict
from tests.provider_emulator.world import World

RESPONSES, CHAT = "/v1/responses", "/v1/chat/completions"
MODELS = {
    "gpt-5-mini": "gpt-5-mini-2025-08-07",
    "gpt-5.4-nano": "gpt-5.4-nano-2026-03-17",
    "gpt-4.1-mini": "gpt-4.1-mini-2025-04-14",
}
"""Known names and the ids that they resolve to."""
MAX_OUTPUT = {"gpt-5-mini": 128_000, "gpt-5.4-nano": 128_000, "gpt-4.1-mini": 32_768}
CONTEXT_TOKENS = 400_000
_FIELDS = {
    # As the SDK's parameter types have them.
    RESPONSES: frozenset(
        """
        access_programs background background_options context_management conversation image
        include input instructions max_output_tokens max_tool_calls metadata model moderation
        parallel_tool_calls previous_response_id prompt prompt_cache_key prompt_cache_options
        prompt_cache_retention reasoning safety_identifier service_tier store stream
        stream_options temperature text tool_choice tools top_logprobs top_p truncation user
        """.split()
    ),
    CHAT: frozenset(
        """
        audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens
        max_tokens messages metadata modalities model moderation n parallel_tool_calls prediction
        presence_penalty prompt_cache_key prompt_cache_options prompt_cache_retention
        reasoning_effort response_format safety_identifier seed service_tier stop store stream
        stream_options temperature tool_choice tools top_logprobs top_p user verbosity
        web_search_options
        """.split()
    ),
}


def require_model(name: Any) -> str:
    """Return a known model's name.

    Raises:
        ApiError: there is none of that name.
    """
    if not isinstance(name, str) or not name:
        raise invalid("you must provide a model parameter", "model", "missing_required_parameter")
    if name not in MODELS and name not in MODELS.values():
        raise ApiError(
            404,
            f"The model `{name}` does not exist or you do not have access to it.",
            param="model",
            code="model_not_found",
        )
    return name


def check_body(endpoint: str, body: Any) -> dict[str, Any]:
    """Return a body that the endpoint takes.

    Raises:
        ApiError: what is wrong with it.
    """
    if not isinstance(body, dict):
        raise invalid("Invalid type for 'body': expected an object.", None, "invalid_type")
    unknown = sorted(set(body) - _FIELDS.get(endpoint, frozenset(body)))
    if unknown:
        raise invalid(f"Unknown parameter: '{unknown[0]}'.", unknown[0], "unknown_parameter")
    require_model(body.get("model"))
    if body.get("stream"):
        raise invalid("Streaming is not supported here.", "stream", "unsupported_value")
    if not user_text(endpoint, body).strip():
        field = "input" if endpoint == RESPONSES else "messages"
        raise invalid(
            f"Missing required parameter: '{field}'.", field, "missing_required_parameter"
        )
    _check_limit(endpoint, body)
    _check_format(endpoint, body)
    if _prompt_tokens(endpoint, body) > CONTEXT_TOKENS:
        raise invalid(
            "Your input exceeds the context window of this model.",
            "input",
            "context_length_exceeded",
        )
    return body


def user_text(endpoint: str, body: dict[str, Any]) -> str:
    """Return the text of the last message of the user."""
    if endpoint == RESPONSES:
        given = body.get("input", "")
        return given if isinstance(given, str) else _last_user(given)
    return _last_user(body.get("messages", []))


def prompt_tokens(endpoint: str, body: dict[str, Any]) -> int:
    """Return a plausible number of prompt tokens, for limits on what is enqueued."""
    return _prompt_tokens(endpoint, body)


def add_usage(total: dict[str, Any] | None, used: dict[str, Any]) -> dict[str, Any]:
    """Return the usage of a batch with that of one more response, in the words of a batch."""
    read = used.get("input_tokens", used.get("prompt_tokens", 0))
    written = used.get("output_tokens", used.get("completion_tokens", 0))
    details = used.get("output_tokens_details") or used.get("completion_tokens_details") or {}
    before = total or {"input_tokens": 0, "output_tokens": 0, "output_tokens_details": {}}
    reasoned = before["output_tokens_details"].get("reasoning_tokens", 0)
    return {
        "input_tokens": before["input_tokens"] + read,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": before["output_tokens"] + written,
        "output_tokens_details": {"reasoning_tokens": reasoned + details["reasoning_tokens"]},
        "total_tokens": before["input_tokens"] + before["output_tokens"] + read + written,
    }


def run(world: World, endpoint: str, body: dict[str, Any], fault: Fault | None) -> dict[str, Any]:
    """Return the response to a checked body, as a planted `row` fault leaves it."""
    kind = fault.kind if fault is not None else ""
    text = answers.spoil(world.answer(user_text(endpoint, body)), kind)
    if kind not in ("truncated", "repetition") and _tokens(text) > _limit(endpoint, body):
        text, kind = text[: _limit(endpoint, body) * 4], "truncated"
    model = MODELS.get(str(body["model"]), str(body["model"]))
    used = (_prompt_tokens(endpoint, body), _tokens(text))
    shape = _response if endpoint == RESPONSES else _completion
    return shape(world, model, text, kind, used)


def _response(
    world: World, model: str, text: str, kind: str, used: tuple[int, int]
) -> dict[str, Any]:
    content: dict[str, Any] = {"type": "output_text", "text": text, "annotations": []}
    status: str | None = "completed"
    incomplete = None
    if kind in ("truncated", "repetition"):
        status, incomplete = "incomplete", {"reason": "max_output_tokens"}
    elif kind == "filtered":
        status, incomplete = "incomplete", {"reason": "content_filter"}
    elif kind == "refused":
        content = {"type": "refusal", "refusal": "I cannot help with that."}
    elif kind == "no_finish":
        status = None
    read, written = used
    return {
        "id": world.new_id("resp_"),
        "object": "response",
        "created_at": int(world.clock.now().timestamp()),
        "status": status,
        "error": None,
        "incomplete_details": incomplete,
        "model": model,
        "output": [
            {"id": world.new_id("rs_"), "type": "reasoning", "summary": []},
            {
                "id": world.new_id("msg_"),
                "type": "message",
                "status": status,
                "role": "assistant",
                "content": [content],
            },
        ],
        "service_tier": "default",
        "usage": {
            "input_tokens": read,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": written,
            "output_tokens_details": {"reasoning_tokens": written // 4},
            "total_tokens": read + written,
        },
    }


def _completion(
    world: World, model: str, text: str, kind: str, used: tuple[int, int]
) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None}
    finish: str | None = "stop"
    if kind in ("truncated", "repetition"):
        finish = "length"
    elif kind == "filtered":
        finish = "content_filter"
    elif kind == "refused":
        message |= {"content": None, "refusal": "I cannot help with that."}
    elif kind == "no_finish":
        finish = None
    read, written = used
    return {
        "id": world.new_id("chatcmpl-"),
        "object": "chat.completion",
        "created": int(world.clock.now().timestamp()),
        "model": model,
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": finish}],
        "usage": {
            "prompt_tokens": read,
            "completion_tokens": written,
            "total_tokens": read + written,
            "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
        },
        "service_tier": "default",
        "system_fingerprint": "fp_emulated",
    }


def _last_user(messages: Any) -> str:
    texts = [
        _text(message.get("content", ""))
        for message in messages
        if isinstance(message, dict) and message.get("role") == "user"
    ]
    return texts[-1] if texts else ""


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content or () if isinstance(part, dict))


def _tokens(text: str) -> int:
    return max(1, len(text) // 4)


def _prompt_tokens(endpoint: str, body: dict[str, Any]) -> int:
    if endpoint == RESPONSES:
        return _tokens(f"{body.get('instructions') or ''}{user_text(endpoint, body)}")
    given = body.get("messages") or ()
    texts = (_text(one.get("content", "")) for one in given if isinstance(one, dict))
    return _tokens("".join(texts))


def _limit_field(endpoint: str, body: dict[str, Any]) -> str:
    if endpoint == RESPONSES:
        return "max_output_tokens"
    return "max_tokens" if "max_tokens" in body else "max_completion_tokens"


def _limit(endpoint: str, body: dict[str, Any]) -> int:
    most = MAX_OUTPUT.get(str(body["model"]), 32_768)
    return int(body.get(_limit_field(endpoint, body)) or most)


def _check_limit(endpoint: str, body: dict[str, Any]) -> None:
    field = _limit_field(endpoint, body)
    value = body.get(field)
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int):
        raise invalid(
            f"Invalid type for '{field}': expected an integer, but got something else instead.",
            field,
            "invalid_type",
        )
    least = 16 if endpoint == RESPONSES else 1
    if value < least:
        raise invalid(
            f"Invalid '{field}': integer below minimum value. Expected a value >= {least}, but "
            f"got {value} instead.",
            field,
            "integer_below_min_value",
        )
    most = MAX_OUTPUT.get(str(body["model"]), 32_768)
    if value > most:
        raise invalid(
            f"{field} is too large: {value}. This model supports at most {most} completion tokens.",
            field,
            "invalid_value",
        )


def _check_format(endpoint: str, body: dict[str, Any]) -> None:
    if endpoint == RESPONSES:
        asked = (body.get("text") or {}).get("format") or {}
        given, at = asked, "text.format"
    else:
        asked = body.get("response_format") or {}
        given, at = asked.get("json_schema") or {}, "response_format"
    if asked.get("type") != "json_schema":
        return
    if "name" not in given or "schema" not in given:
        missing = "name" if "name" not in given else "schema"
        raise invalid(
            f"Missing required parameter: '{at}.{missing}'.",
            f"{at}.{missing}",
            "missing_required_parameter",
        )
    if not given.get("strict"):
        return
    try:
        check_strict(given["schema"])
    except BadSchema as problem:
        raise invalid(
            f"Invalid schema for response_format '{given['name']}': {problem}",
            f"{at}.schema",
            "invalid_json_schema",
        ) from None
