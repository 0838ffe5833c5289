"""What OpenAI's words mean in the common words: job statuses, ends of answers, codes of failures.

Belongs here: the tables and their look-up. Does not belong here: where the words are read from
(`jobs.py`, `results.py`, `errors.py`), and what is done about them (the pipeline).
"""

from __future__ import annotations

from collections.abc import Iterable

from resources.providers.port import FailureClass, Finish, Outcome, Phase

# PROVIDERS.md 1.1 and 5.1.
_PHASES: dict[str, Phase] = {
    "validating": "validating",
    "in_progress": "running",
    "finalizing": "running",
    "cancelling": "cancelling",
}
_OUTCOMES: dict[str, Outcome] = {
    "completed": "completed",
    "expired": "expired",
    "cancelled": "cancelled",
    "failed": "provider_failed",
}

# PROVIDERS.md 1.7 and 5.2: `finish_reason` of Chat Completions.
_CHAT_FINISHES: dict[str, Finish] = {
    "stop": "stop",
    "tool_calls": "stop",
    "function_call": "stop",
    "length": "truncated",
    "content_filter": "filtered",
}
# PROVIDERS.md 1.7: `incomplete_details.reason` of Responses.
_INCOMPLETE: dict[str, Finish] = {
    "max_output_tokens": "truncated",
    "content_filter": "filtered",
}

# A Responses object may say `failed` under HTTP 200 (PROVIDERS.md 1.7). The HTTP status that the
# code stands for; the codes of this table are passing troubles, all others name the request.
_FAILED_RESPONSES: dict[str, int] = {"server_error": 500, "rate_limit_exceeded": 429}

# PROVIDERS.md 1.2: rows that were never run.
_NEVER_RUN: dict[str, str] = {"batch_expired": "expired", "batch_cancelled": "cancelled"}

CODES: dict[str, FailureClass] = {
    "insufficient_quota": "quota",
    "billing_hard_limit_reached": "quota",
    "token_limit_exceeded": "capacity",
    "model_not_found": "unsupported",
}
"""Codes that say more than the HTTP status that they come with (PROVIDERS.md 1.4 and 1.6)."""

# Which of several errors of a failed job decides: what would fail again comes first.
_ORDER: tuple[FailureClass, ...] = (
    "invalid_request",
    "unsupported",
    "quota",
    "capacity",
    "transport",
)


def phase_of(raw_status: str) -> tuple[Phase, Outcome | None]:
    """Return where a job is and how it ended; a word of no table is `unknown`, never an end."""
    outcome = _OUTCOMES.get(raw_status)
    if outcome is not None:
        return "ended", outcome
    return _PHASES.get(raw_status, "unknown"), None


def chat_finish(reason: str | None) -> Finish:
    """Return why a chat answer ended; a missing or unlisted word is `unknown`, never `stop`."""
    return _CHAT_FINISHES.get(reason or "", "unknown")


def response_finish(status: str | None, incomplete_reason: str | None) -> Finish:
    """Return why a Responses answer ended; a missing or unlisted word is `unknown`."""
    if status == "completed":
        return "stop"
    if status == "incomplete":
        return _INCOMPLETE.get(incomplete_reason or "", "unknown")
    return "unknown"


def failed_response_status(code: str | None) -> int:
    """Return the HTTP status that the error code of a failed Responses object stands for."""
    return _FAILED_RESPONSES.get(code or "", 400)


def row_error_code(code: str | None) -> str | None:
    """Return the common code of a row that was never run, else the provider's own code."""
    return _NEVER_RUN.get(code or "", code)


def job_failure(errors: Iterable[tuple[str | None, str | None]]) -> tuple[int, FailureClass] | None:
    """Return which error of a failed job decides, and what it means; None where there is none.

    Args:
        errors: code and param of each error, in the provider's order.
    """
    classes: list[FailureClass] = [_job_error_class(code, param) for code, param in errors]
    if not classes:
        return None
    chosen: FailureClass = min(classes, key=_ORDER.index)
    return classes.index(chosen), chosen


def _job_error_class(code: str | None, param: str | None) -> FailureClass:
    # "Not found or no access" for a file that was just uploaded is a race (PROVIDERS.md 1.4).
    if code == "invalid_request" and param == "file_id":
        return "transport"
    return CODES.get(code or "", "invalid_request")
