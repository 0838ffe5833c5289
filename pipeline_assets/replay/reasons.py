"""Why a record exists: the closed list of reasons, and telling them from two declarations.

Belongs here: the words and the pure comparison. Does not belong here: what is processed for a
reason (`prepare`), and an operator's own words, which are kept beside the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

NEW_SOURCE, CORRECTED_SOURCE = "new_source", "corrected_source"
NEW_PARSER, NEW_SCHEMA, NEW_PROMPT, NEW_MODEL = (
    "new_parser",
    "new_schema",
    "new_prompt",
    "new_model",
)
TRANSIENT_RETRY, OPERATOR = "transient_retry", "operator"

REPLAY_REASONS: Mapping[str, str] = MappingProxyType(
    {
        NEW_SOURCE: "the document was not known before",
        CORRECTED_SOURCE: "the document has other bytes than before",
        NEW_PROMPT: "another prompt, or another share of the text, is asked",
        NEW_SCHEMA: "another output schema is asked for",
        NEW_PARSER: "another parser makes the text",
        NEW_MODEL: "another provider, mode, model or parameters answer",
        TRANSIENT_RETRY: "an attempt failed in a way that another may mend",
        OPERATOR: "an operator asked for it",
    }
)

# The one furthest up the stream is the reason where several changed: it changes all the rest.
_PARTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (NEW_PARSER, ("parser",)),
    (NEW_SCHEMA, ("schema_version",)),
    (NEW_PROMPT, ("request.prompt", "request.document_tokens", "request.redaction")),
    (
        NEW_MODEL,
        (
            "provider",
            "mode",
            "model",
            "endpoint",
            "parameters",
            "request.output_tokens",
            "request.window_hours",
        ),
    ),
    (OPERATOR, ("acceptance", "rules", "repairs", "operation", "request.recovery")),
)


class UnknownReplayReason(ValueError):
    """A replay reason outside the closed list."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"{reason!r} is no replay reason; give one of {', '.join(REPLAY_REASONS)}")


def check_replay_reason(reason: str) -> str:
    """`reason` unchanged, if it is one.

    Raises:
        UnknownReplayReason: it is not.
    """
    if reason not in REPLAY_REASONS:
        raise UnknownReplayReason(reason)
    return reason


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Every reason that two declared specs give, the one furthest up the stream first.

    Args:
        before: a spec as `Spec.declared()` gives it.
        after: another one.
    """
    return [
        reason
        for reason, members in _PARTS
        if any(_member(before, name) != _member(after, name) for name in members)
    ]


def derive_reason(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Why a document that was processed under `before` is processed under `after`.

    `operator` where only rules differ, or nothing does.
    """
    return next(iter(differences(before, after)), OPERATOR)


def _member(spec: Mapping[str, Any], name: str) -> Any:
    value: Any = spec
    for part in name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value
