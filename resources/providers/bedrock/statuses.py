"""What Bedrock's words mean in the common words: job statuses, ends of answers, job failures.

Belongs here: the tables. Does not belong here: where the words are read from (`wire.py`,
`batch.py`), and what is done about them (the pipeline).
"""

from __future__ import annotations

from resources.providers.port import FailureClass, Finish, Outcome, Phase

# PROVIDERS.md 4.1 and 5.1. Two tables, since a word of the second is only ever an end.
_PHASES: dict[str, Phase] = {
    "Submitted": "validating",
    "Validating": "validating",
    "Scheduled": "queued",
    "InProgress": "running",
    "Stopping": "cancelling",
}
_OUTCOMES: dict[str, Outcome] = {
    "Completed": "completed",
    "PartiallyCompleted": "expired",
    "Stopped": "cancelled",
    "Failed": "provider_failed",
    "Expired": "expired",
}

# PROVIDERS.md 4.5 and 5.2. `refusal` is no word of the service model: some models say it.
_FINISHES: dict[str, Finish] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "stop",
    "max_tokens": "truncated",
    "model_context_window_exceeded": "truncated",
    "content_filtered": "filtered",
    "guardrail_intervened": "filtered",
    "malformed_model_output": "malformed",
    "malformed_tool_use": "malformed",
    "refusal": "refused",
}

# A failed job has no code, only a sentence. The first row with a part of it decides; the order
# matters, since a sentence about a model may also speak of access.
_JOB_FAILURES: tuple[tuple[tuple[str, ...], FailureClass], ...] = (
    (("access denied", "accessdenied", "not authorized", "permission", "assume role"), "auth"),
    (("model identifier", "model id", "not supported", "does not support"), "unsupported"),
    (("quota", "throttl", "too many requests", "capacity"), "capacity"),
    (("internal", "service unavailable", "try again", "try your request"), "server_error"),
)


def phase_of(raw_status: str) -> tuple[Phase, Outcome | None]:
    """Return where a job is and how it ended; a word of no table is `unknown`, never an end."""
    outcome = _OUTCOMES.get(raw_status)
    if outcome is not None:
        return "ended", outcome
    return _PHASES.get(raw_status, "unknown"), None


def finish_of(stop_reason: str | None) -> Finish:
    """Return why an answer ended; a missing or unlisted word is `unknown`, never `stop`."""
    return _FINISHES.get(stop_reason or "", "unknown")


def job_failure_of(message: str | None) -> FailureClass:
    """Return what the message of a failed job means.

    A sentence of no row speaks of the input (too few records, broken lines): `invalid_request`.
    """
    text = (message or "").lower()
    for parts, failure in _JOB_FAILURES:
        if any(part in text for part in parts):
            return failure
    return "invalid_request" if text else "server_error"
