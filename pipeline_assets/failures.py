"""Failure classes, and the pure function that gives a result one.

Belongs here: the table of DESIGN section 6 as far as an envelope and the output schema show it,
and what a row without an answer means by how its job ended. Does not belong here: whether and
when to try again (a decision of its own), and meaning (`accept`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import msgspec

from pipeline_assets.workloads.format_repair.repairs import RepairMade, mend
from pipeline_assets.workloads.workload import AnswerInvalid, AnswerMalformed, Repair
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
        "auth",
        "quota",
    }
)
"""Classes that another attempt may mend, each within limits of its own. For `auth` and `quota` it
waits until the account is usable again: the version is held, and no record is buried for it.

Of the others, `too_large`, `malformed_json` and `schema_violation` can be mended by a changed
request alone, where a recovery path is chosen for them."""

_BY_FINISH: Mapping[str | None, tuple[str, str]] = {
    "truncated": ("truncated", "the answer was cut at the output limit"),
    "filtered": ("content_filtered", "the provider withheld the answer"),
    "refused": ("refused", "the model refused"),
    "paused": ("truncated", "the provider paused and wants to be asked to go on"),
    "malformed": ("malformed_json", "the provider says that its own answer has no usable form"),
}
"""Common word for how an answer ended → class and diagnostics. Anything but `stop` that is not
here, a missing word too, is not taken for a whole answer."""

_BY_CODE = {
    "token_limit_exceeded": "capacity",
    "insufficient_capacity": "capacity",
    "insufficient_quota": "quota",
    "billing_hard_limit_reached": "quota",
    "model_not_found": "unsupported",
    "unsupported_parameter": "unsupported",
    "context_length_exceeded": "too_large",
    "request_too_large": "too_large",
    "string_above_max_length": "too_large",
}
"""A provider's own codes that say more than the status. Where only a message tells that a request
is too large (a 400 of Anthropic's, Gemini's or Bedrock's), it stays `invalid_request`: messages
are not kept."""

_BY_STATUS = {
    0: "transport",
    401: "auth",
    402: "quota",
    403: "auth",
    408: "transport",
    413: "too_large",
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
        repairs: what was mended in its form first; empty for one that was usable as it came.
    """

    disposition: Disposition
    failure_class: str | None = None
    diagnostics: str = ""
    answer: str | None = None
    repairs: tuple[RepairMade, ...] = ()


def classify(
    line: ResultLine, check_answer: Callable[[str], str], repairs: Sequence[Repair] = ()
) -> Verdict:
    """The verdict on a result line, from its envelope and the output schema alone.

    Args:
        line: the line.
        check_answer: the workload's (`Workload.check_answer`).
        repairs: those of the version's acceptance, tried on a whole answer that is not usable as
            it came. One that cannot be mended has the verdict that it would have without them.
    """
    if line.error_code == "expired":
        return Verdict("expired", "expired", "the provider's window ended before this request")
    if line.error_code == "cancelled":
        return Verdict("cancelled", "cancelled", "the provider job was cancelled")
    if line.status_code != 200:
        return _failure(_class_of_status(line), f"status {line.status_code}")
    # First of all why it ended: a withheld answer has no text and is paid again for nothing.
    if line.finish_reason in _BY_FINISH:
        return _failure(*_BY_FINISH[line.finish_reason])
    if line.text is None:
        return _failure("transport", "status 200 without an answer")
    if line.finish_reason != "stop":
        return _failure("truncated", "the answer does not say that it is whole")
    return _judge_text(line.text, check_answer, repairs)


def unanswered(
    provider_outcome: str | None, error_class: str | None, error_code: str | None
) -> Verdict:
    """The verdict on an attempt for which no line came back, by how its job ended.

    Args:
        provider_outcome: completed, expired, cancelled or provider_failed; None for embedded ones.
        error_class: why the job failed as a whole.
        error_code: the provider's own code of that.
    """
    if provider_outcome == "expired":
        return Verdict("expired", "expired", "the provider's window ended before this request")
    if provider_outcome == "cancelled":
        return Verdict("cancelled", "cancelled", "the provider job was cancelled before it")
    if provider_outcome == "provider_failed":
        # Nothing of it was run; what is not understood is not buried.
        return _failure(
            error_class or "server_error", f"the job failed as a whole ({error_code or 'no code'})"
        )
    return _failure("missing_result", "no line came back for this attempt")


def _judge_text(
    text: str, check_answer: Callable[[str], str], repairs: Sequence[Repair]
) -> Verdict:
    try:
        return Verdict("succeeded", answer=check_answer(text))
    except AnswerMalformed:
        failure = _failure("malformed_json", "the answer is not JSON")
    except AnswerInvalid as error:
        failure = _failure("schema_violation", str(error))
    mended = mend(text, repairs, check_answer)
    if mended is None:
        return failure
    return Verdict("succeeded", answer=mended.answer, repairs=mended.made)


def _class_of_status(line: ResultLine) -> str:
    if 200 <= line.status_code < 300:
        return "transport"  # no answer in it, or a status that is no whole answer
    known = _BY_CODE.get(line.error_code or "") or _BY_STATUS.get(line.status_code)
    if known is not None:
        return known
    return "server_error" if line.status_code >= 500 else "invalid_request"


def _failure(failure_class: str, diagnostics: str) -> Verdict:
    disposition: Disposition = (
        "retryable_failure" if failure_class in RETRYABLE else "permanent_failure"
    )
    return Verdict(disposition, failure_class, diagnostics)
