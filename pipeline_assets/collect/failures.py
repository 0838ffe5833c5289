"""Failure classes, and the pure function that gives a result one.

Belongs here: the table of DESIGN section 6 as far as an envelope and the output schema show it.
Does not belong here: whether and when to try again (a decision of its own), and meaning
(`accept`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from pipeline_assets.workloads.workload import AnswerInvalid, AnswerMalformed
from resources.providers.port import ResultLine

Disposition = Literal["succeeded", "retryable_failure", "permanent_failure", "cancelled", "expired"]

RETRYABLE = frozenset(
    {
        "transport",
        "rate_limited",
        "overloaded",
        "server_error",
        "capacity",
        "missing_result",
        "truncated",
        "misrouted",
    }
)
"""Classes that another attempt may mend, each within limits of its own."""

WHOLE = frozenset({"stop", "end_turn", "stop_sequence", "STOP", "completed"})
"""Finish reasons of a whole answer; anything else, or none, is not taken for one."""
TRUNCATED = frozenset({"length", "max_tokens", "MAX_TOKENS", "max_output_tokens", "incomplete"})
FILTERED = frozenset({"content_filter", "SAFETY", "PROHIBITED_CONTENT", "RECITATION", "BLOCKLIST"})
REFUSED = frozenset({"refusal"})

_BY_STATUS = {
    0: "transport",
    401: "auth",
    402: "quota",
    403: "auth",
    408: "transport",
    429: "rate_limited",
    503: "overloaded",
    529: "overloaded",
}


class Verdict(msgspec.Struct, frozen=True):
    """What one result line means for its attempt; a struct, since a million of them are made.

    Attributes:
        disposition: one of the five.
        failure_class: None for a success.
        diagnostics: closed wording or a place in the schema, never text of the document.
        answer: a success's answer in the workload's normal form.
    """

    disposition: Disposition
    failure_class: str | None = None
    diagnostics: str = ""
    answer: str | None = None


def classify(line: ResultLine, check_answer: Callable[[str], str]) -> Verdict:
    """The verdict on a result line, from its envelope and the output schema alone."""
    if line.error_code in {"batch_expired", "expired"}:
        return Verdict("expired", "expired", "the provider's window ended before this request")
    if line.error_code in {"batch_cancelled", "cancelled", "canceled"}:
        return Verdict("cancelled", "cancelled", "the provider job was cancelled")
    if line.status_code != 200 or line.text is None:
        return _failure(_class_of_status(line), f"status {line.status_code}")
    return _judge_text(line.text, line.finish_reason, check_answer)


def failed(failure_class: str, diagnostics: str) -> Verdict:
    """A failure of the class, retryable or permanent as the table says."""
    return _failure(failure_class, diagnostics)


def _judge_text(
    text: str, finish_reason: str | None, check_answer: Callable[[str], str]
) -> Verdict:
    if finish_reason in TRUNCATED:
        return _failure("truncated", "the answer was cut at the output limit")
    if finish_reason in FILTERED:
        return _failure("content_filtered", "the provider withheld the answer")
    if finish_reason in REFUSED:
        return _failure("refused", "the model refused")
    if finish_reason not in WHOLE:
        return _failure("truncated", "the answer does not say that it is whole")
    try:
        return Verdict("succeeded", answer=check_answer(text))
    except AnswerMalformed:
        return _failure("malformed_json", "the answer is not JSON")
    except AnswerInvalid as error:
        return _failure("schema_violation", str(error))


def _class_of_status(line: ResultLine) -> str:
    if 200 <= line.status_code < 300:
        return "transport"  # no answer in it, or a status that is no whole answer
    if line.error_code in {"token_limit_exceeded", "insufficient_capacity"}:
        return "capacity"
    if line.error_code in {"insufficient_quota", "billing_hard_limit_reached"}:
        return "quota"
    known = _BY_STATUS.get(line.status_code)
    if known is not None:
        return known
    return "server_error" if line.status_code >= 500 else "invalid_request"


def _failure(failure_class: str, diagnostics: str) -> Verdict:
    disposition: Disposition = (
        "retryable_failure" if failure_class in RETRYABLE else "permanent_failure"
    )
    return Verdict(disposition, failure_class, diagnostics)
