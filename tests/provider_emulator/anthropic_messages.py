"""What an emulated Anthropic model does with a Messages body: refuse it, or answer it.

Belongs here: the rules of a body, online and in a batch, and the message that comes back. Does
not belong here: where the body came from and how its result is wrapped.
"""

from __future__ import annotations

from typing import Any

from tests.provider_emulator import answers
from tests.provider_emulator.anthropic_api import NEW_VERSION, OLD_VERSION, Problem, setting
from tests.provider_emulator.anthropic_schema import schema_problem
from tests.provider_emulator.faults import Fault
from tests.provider_emulator.world import World

MODELS = {
    "claude-haiku-4-5": "claude-haiku-4-5-20251001",
    "claude-opus-5": "claude-opus-5",
    "claude-sonnet-4-5": "claude-sonnet-4-5-20250929",
}
"""Known names and the ids that they resolve to."""
MAX_OUTPUT = 64_000
MAX_OUTPUT_BETA = 300_000
BETA_LONG_OUTPUT = "output-300k-2026-03-24"
SAMPLING = {"temperature": 1.0, "top_p": None, "top_k": None}
NO_SAMPLING_MODELS = ("claude-opus-5",)
EFFORTS = ("low", "medium", "high", "xhigh", "max")
FIELDS = frozenset(
    "model max_tokens messages system output_config output_format stop_sequences stream metadata "
    "temperature top_p top_k thinking tools tool_choice service_tier container inference_geo "
    "cache_control speed diagnostics user_profile_id".split()
)


def check_body(
    world: World, params: Any, *, version: str, batch: bool, betas: str = ""
) -> dict[str, Any]:
    """Return a body that the models take.

    Raises:
        Problem: what is wrong with it.
    """
    if not isinstance(params, dict):
        raise Problem(400, "Input should be a valid dictionary")
    extra = sorted(set(params) - FIELDS)
    if extra:
        raise Problem(400, f"{extra[0]}: Extra inputs are not permitted")
    _check_model(params)
    _check_output_limit(params, batch, betas)
    _check_messages(params.get("messages"), version)
    _check_sampling(params, version)
    _check_mode(params, batch)
    _check_output_format(params)
    if (tokens := _input_tokens(params)) > (limit := setting(world, "anthropic.context_tokens")):
        raise Problem(400, f"prompt is too long: {tokens} tokens > {limit} maximum")
    return params


def user_text(params: dict[str, Any]) -> str:
    """Return the text of the last message."""
    return _text(params["messages"][-1]["content"])


def run(world: World, params: dict[str, Any], tier: str, fault: Fault | None) -> dict[str, Any]:
    """Return the message that answers a checked body, as a planted `row` fault leaves it."""
    text = world.answer(user_text(params))
    kind = fault.kind if fault is not None else ""
    text = answers.spoil(text, kind)
    stop: str | None = "end_turn"
    details = None
    if kind in ("truncated", "repetition"):
        stop = "max_tokens"
    elif kind in ("refused", "filtered"):  # Anthropic has no filter that is not a refusal
        text, stop = "", "refusal"
        details = {"type": "refusal", "category": None, "explanation": None}
    elif kind == "no_finish":
        stop = None
    elif tokens_of(text) > params["max_tokens"]:
        text, stop = text[: params["max_tokens"] * 4], "max_tokens"
    return {
        "id": world.new_id("msg_"),
        "type": "message",
        "role": "assistant",
        "model": MODELS[params["model"]],
        "content": [{"type": "text", "text": text}] if text else [],
        "stop_reason": stop,
        "stop_sequence": None,
        "stop_details": details,
        "usage": _usage(world, params, text, tier),
    }


def tokens_of(text: str) -> int:
    """Return a plausible number of tokens."""
    return max(1, len(text) // 4)


def _usage(world: World, params: dict[str, Any], text: str, tier: str) -> dict[str, Any]:
    tokens = _input_tokens(params)
    cached = min(setting(world, "anthropic.cached_tokens"), tokens - 1)
    return {
        "input_tokens": tokens - cached,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": cached,
        "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
        "output_tokens": tokens_of(text),
        "service_tier": tier,
        "inference_geo": "not_available",
    }


def _input_tokens(params: dict[str, Any]) -> int:
    parts = [_text(params.get("system", "")), *(_text(m["content"]) for m in params["messages"])]
    return tokens_of("".join(parts))


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(block.get("text", "") for block in content if isinstance(block, dict))


def _check_model(params: dict[str, Any]) -> None:
    model = params.get("model")
    if not isinstance(model, str):
        raise Problem(400, "model: Field required")
    if model not in MODELS:
        raise Problem(404, f"model: {model}")


def _check_output_limit(params: dict[str, Any], batch: bool, betas: str) -> None:
    limit = params.get("max_tokens")
    if not isinstance(limit, int) or isinstance(limit, bool):
        raise Problem(400, "max_tokens: Field required")
    if limit < (1 if batch else 0):
        raise Problem(400, "max_tokens: Input should be greater than or equal to 1")
    most = MAX_OUTPUT_BETA if batch and BETA_LONG_OUTPUT in betas else MAX_OUTPUT
    if limit > most:
        raise Problem(
            400,
            f"max_tokens: {limit} > {most}, which is the maximum allowed number of output tokens "
            f"for {params['model']}",
        )


def _check_messages(messages: Any, version: str) -> None:
    if not isinstance(messages, list) or not messages:
        raise Problem(400, "messages: at least one message is required")
    for number, message in enumerate(messages):
        if not isinstance(message, dict) or message.get("role") not in ("user", "assistant"):
            raise Problem(400, f"messages.{number}.role: Input should be 'user' or 'assistant'")
        content = message.get("content")
        if not isinstance(content, str | list) or not _text(content).strip():
            raise Problem(400, f"messages.{number}: text content blocks must be non-empty")
        if isinstance(content, list) and version == NEW_VERSION:
            _check_blocks(number, message["role"], content)


def _check_blocks(number: int, role: str, blocks: list[Any]) -> None:
    for place, block in enumerate(blocks):
        at = f"messages.{number}.content.{place}"
        if role == "assistant" and block.get("type") == "document":
            raise Problem(400, f"{at}: document blocks are not permitted in assistant messages")
        if role == "user" and block.get("type") == "text" and block.get("citations"):
            raise Problem(400, f"{at}.citations: Extra inputs are not permitted")


def _check_sampling(params: dict[str, Any], version: str) -> None:
    for name, usual in SAMPLING.items():
        if name not in params:
            continue
        if version != OLD_VERSION:
            raise Problem(400, f"{name}: is not supported in this API version")
        if params["model"] in NO_SAMPLING_MODELS and params[name] != usual:
            raise Problem(400, f"{name}: is not supported by {params['model']}")


def _check_mode(params: dict[str, Any], batch: bool) -> None:
    if params.get("stream"):
        where = "in a batch" if batch else "by this emulator"
        raise Problem(400, f"stream: streaming is not supported {where}")
    if batch and "speed" in params:
        raise Problem(400, "speed: fast mode is not supported in a batch")


def _check_output_format(params: dict[str, Any]) -> None:
    config = params.get("output_config") or {}
    if config.get("effort") is not None and config["effort"] not in EFFORTS:
        raise Problem(400, f"output_config.effort: Input should be one of {', '.join(EFFORTS)}")
    asked = config.get("format")
    if asked is not None and params.get("output_format") is not None:
        raise Problem(400, "output_format: cannot be combined with output_config.format")
    asked = asked or params.get("output_format")
    if asked is None:
        return
    if asked.get("type") != "json_schema" or "schema" not in asked:
        raise Problem(400, "output_config.format: Input should be of type 'json_schema'")
    if (problem := schema_problem(asked["schema"])) is not None:
        raise Problem(400, f"output_config.format.schema: {problem}")
    if params["messages"][-1]["role"] == "assistant":
        raise Problem(400, "output_config.format: cannot be combined with a prefilled message")
