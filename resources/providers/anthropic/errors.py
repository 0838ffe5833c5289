"""What a failed call to Anthropic means: tables, and the way from SDK errors to port errors.

Belongs here: reading an error answer and choosing the port's error. Does not belong here: the
calls, and what a failed row of a result file means (`wire.py`).

Source of the tables: PROVIDERS.md 2.4 and 2.5 (A-E, A-RL, A-T), November 2026.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from types import MappingProxyType

import anthropic
import httpx2
import msgspec

from resources.providers.port import (
    Ambiguous,
    FailureClass,
    ProviderError,
    Refused,
    Unavailable,
    Unreachable,
)

NAME = "anthropic"

FAILURE_OF_CODE: MappingProxyType[str, FailureClass] = MappingProxyType(
    {
        "enforced_spend_limit_reached": "quota",
        "contract_spend_limit_reached": "quota",
        "linked_organization_spend_limit_reached": "quota",
        "linked_organization_billing_unavailable": "quota",
        "organization_on_hold": "auth",
        "workspace_human_review_disabled": "auth",
        "claude_code_key_creator_not_member": "auth",
        "ramp_limit_exceeded": "rate_limited",
    }
)
"""`details.error_code`, which says more than the status: the first two come as a 429."""

FAILURE_OF_STATUS: MappingProxyType[int, FailureClass] = MappingProxyType(
    {
        401: "auth",
        402: "quota",
        403: "auth",
        408: "transport",
        409: "server_error",
        429: "rate_limited",
        503: "overloaded",
        529: "overloaded",
    }
)
"""The rest of 4xx is `invalid_request`, the rest of 5xx `server_error`."""

# Two limits have no code of their own. Their wording may change; then they count as their status.
_FAILURE_OF_WORDS: tuple[tuple[int, str, FailureClass], ...] = (
    (400, "usage limit", "quota"),
    (400, "spend limit", "quota"),
    (400, "credit balance", "quota"),
    (429, "processing queue", "capacity"),
)

# Nothing of the request was on the wire when these came.
_UNSENT = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.ProxyError,
    httpx2.UnsupportedProtocol,
    httpx2.InvalidURL,
)
TRANSPORT = (anthropic.APIConnectionError, httpx2.HTTPError)
"""What the SDK raises where no whole answer came; it lets errors of a body's rest through."""

_NOTE_LENGTH = 300


class _Error(msgspec.Struct, frozen=True):
    type: str
    message: str = ""
    details: dict[str, object] | None = None


class _Envelope(msgspec.Struct, frozen=True):
    error: _Error


_ENVELOPES = msgspec.json.Decoder(_Envelope)


@dataclass(frozen=True)
class FailedAnswer:
    """An answer that is no success.

    Attributes:
        status: the HTTP status.
        code: `details.error_code`, else the error's type; None where the body has neither.
        note: the provider's sentence, at most 300 characters on one line.
        failure: what it means.
        retry_after: seconds that the provider asks to wait.
    """

    status: int
    code: str | None
    note: str
    failure: FailureClass
    retry_after: float | None


def read_answer(status: int, headers: Mapping[str, str], body: bytes) -> FailedAnswer:
    """What a failed answer says; a body of another format (a proxy's page) is not quoted."""
    retry_after = read_retry_after(headers)
    try:
        error = _ENVELOPES.decode(body).error
    except (msgspec.MsgspecError, RecursionError):
        note = f"HTTP {status} without an error in Anthropic's form"
        return FailedAnswer(status, None, note, _failure_of_status(status), retry_after)
    code = (error.details or {}).get("error_code")
    code = code if isinstance(code, str) else error.type
    note = " ".join(error.message.split())[:_NOTE_LENGTH]
    return FailedAnswer(status, code, note, _failure(status, code, note), retry_after)


def read_retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait: `retry-after-ms`, or `retry-after` in seconds or as a date.

    A date counts from the answer's own `date` header, so that this machine's clock has no part.
    """
    milliseconds = _seconds(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    plain = _seconds(value)
    if plain is not None or value is None:
        return plain
    try:
        wait = parsedate_to_datetime(value) - parsedate_to_datetime(headers.get("date", ""))
    except (TypeError, ValueError):  # not dates, or one with a zone and one without
        return None
    return max(0.0, wait.total_seconds())


def is_unsent(error: Exception) -> bool:
    """Is it certain that nothing of the request left this machine?"""
    return isinstance(error, _UNSENT) or isinstance(error.__cause__, _UNSENT)


def problem_of(error: Exception) -> str:
    """A transport error in words that name no address and no header."""
    return type(error.__cause__ or error).__name__


@contextmanager
def reading(missing: ProviderError) -> Iterator[None]:
    """Turn the SDK's errors of a call that may be repeated into errors of the port.

    Args:
        missing: what a 404 means here.

    Raises:
        Refused: the credentials or the request are not accepted.
        Unavailable: asking again later is right.
    """
    try:
        yield
    except anthropic.APIStatusError as error:
        raise _of_reading(_answer_of(error), missing) from error
    except TRANSPORT as error:
        raise Unavailable(NAME, problem_of(error)) from error


@contextmanager
def creating() -> Iterator[None]:
    """Turn the SDK's errors of a create into errors of the port.

    A 5xx is ambiguous: it may come from a proxy in front of a provider that did its work.

    Raises:
        Refused: there is no job.
        Unreachable: nothing was sent.
        Ambiguous: there may be a job.
    """
    try:
        yield
    except anthropic.APIStatusError as error:
        answer = _answer_of(error)
        if answer.status >= 500 or answer.status == 408:
            raise Ambiguous(NAME, f"HTTP {answer.status}") from error
        raise _refused(answer) from error
    except TRANSPORT as error:
        problem = problem_of(error)
        raise (Unreachable if is_unsent(error) else Ambiguous)(NAME, problem) from error


def _answer_of(error: anthropic.APIStatusError) -> FailedAnswer:
    return read_answer(error.status_code, error.response.headers, error.response.content)


def _of_reading(answer: FailedAnswer, missing: ProviderError) -> ProviderError:
    if answer.status == 404:
        return missing
    if answer.failure == "quota":  # it may come as a 429, and waiting does not help
        return _refused(answer)
    passing = answer.status >= 500 or answer.status in (408, 409, 429) or answer.status < 400
    if passing:
        return Unavailable(NAME, f"HTTP {answer.status}", answer.retry_after)
    return _refused(answer)


def _refused(answer: FailedAnswer) -> Refused:
    return Refused(NAME, answer.failure, answer.code, answer.note, answer.retry_after)


def _failure(status: int, code: str, note: str) -> FailureClass:
    known = FAILURE_OF_CODE.get(code)
    if known is not None:
        return known
    folded = note.casefold()
    for for_status, words, failure in _FAILURE_OF_WORDS:
        if status == for_status and words in folded:
            return failure
    return _failure_of_status(status)


def _failure_of_status(status: int) -> FailureClass:
    known = FAILURE_OF_STATUS.get(status)
    if known is not None:
        return known
    return "server_error" if status >= 500 else "invalid_request"


def _seconds(value: str | None) -> float | None:
    try:
        seconds = float(value or "")
    except ValueError:
        return None
    return seconds if 0 <= seconds < float("inf") else None
