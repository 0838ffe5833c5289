"""From Gemini's error answers and httpx2's errors to the port's.

Belongs here: what an error body, a status and a broken connection mean, by the kind of call.
Does not belong here: the calls themselves, and errors of single rows (`wire.py`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import httpx2

from resources.providers.gemini.statuses import PROVIDER
from resources.providers.port import (
    Ambiguous,
    FailureClass,
    ProviderError,
    Refused,
    Unavailable,
    Unreachable,
)

NOTE_LENGTH = 300

NOT_SENT = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.UnsupportedProtocol,
    httpx2.ProxyError,
)
"""Errors of httpx2 that come before a byte of the request is sent."""

MISSING_FILE = "or it may not exist"
"""A file that is gone, or another account's, is answered with 403 and these words
(python-genai#1218)."""

LONG_FILE_ID = "cannot be more than 40 characters"
"""Result files have ids of 42 characters, which the Files API then refuses (python-genai#1613)."""

NOT_ACTIVE = "not in an ACTIVE state"

_FAILURES: dict[int, FailureClass] = {
    401: "auth",
    402: "quota",
    403: "auth",
    404: "unsupported",
    408: "transport",
    501: "unsupported",
    503: "overloaded",
    529: "overloaded",
}
_DELAY = re.compile(r"(\d+(?:\.\d+)?)s")
_KEY_LIKE = re.compile(r"AIza[\w-]+")


@dataclass(frozen=True)
class CallProblem:
    """An error answer.

    Attributes:
        status: HTTP status.
        name: the provider's word, such as RESOURCE_EXHAUSTED.
        note: its message: one line, at most 300 characters, keys taken out.
        retry_after: seconds that it asks to wait.
        bad_key: it says that the key is none.
        per_day: a quota of the day is used up.
    """

    status: int
    name: str | None
    note: str
    retry_after: float | None = None
    bad_key: bool = False
    per_day: bool = False

    @property
    def file_gone(self) -> bool:
        """The file that was asked for, or named, is not there for this account."""
        return self.status in (403, 404) and MISSING_FILE in self.note

    @property
    def long_file_id(self) -> bool:
        """The Files API refuses the id of a file that the provider itself named."""
        return self.status == 400 and LONG_FILE_ID in self.note

    @property
    def passing(self) -> bool:
        """Asking again later is right."""
        return self.status in (408, 429) or self.status >= 500


def read_problem(status: int, headers: Mapping[str, str], body: bytes) -> CallProblem:
    """What an error answer says; one without the provider's error body has only its status."""
    error = _error_of(body)
    details = [entry for entry in _listed(error.get("details")) if isinstance(entry, dict)]
    message = error.get("message")
    name = error.get("status")
    return CallProblem(
        status=status,
        name=name if isinstance(name, str) else None,
        note=clean_note(message if isinstance(message, str) else f"HTTP {status}"),
        retry_after=_retry_after(headers, details),
        bad_key=any(str(entry.get("reason")).startswith("API_KEY_") for entry in details),
        per_day=any("PerDay" in quota for quota in _quota_ids(details)),
    )


def clean_note(message: str) -> str:
    """A message that may be shown: the service can quote the key of a suspended project."""
    line = " ".join(message.split())
    return _KEY_LIKE.sub("[key]", line)[:NOTE_LENGTH]


def failure_of(problem: CallProblem) -> FailureClass:
    """What an error answer means for a call of any kind.

    FAILED_PRECONDITION is documented for accounts without billing or outside the regions served:
    it needs a person, and no request is at fault.
    """
    if problem.bad_key:
        return "auth"
    if problem.status == 429:
        return "quota" if problem.per_day else "rate_limited"
    if problem.status == 400 and problem.name == "FAILED_PRECONDITION":
        return "quota"
    known = _FAILURES.get(problem.status)
    if known is not None:
        return known
    if problem.status < 400:
        return "transport"  # something between here and there answered
    return "server_error" if problem.status >= 500 else "invalid_request"


def refusal(problem: CallProblem) -> Refused:
    """The port's error for a call that was refused."""
    return Refused(PROVIDER, failure_of(problem), problem.name, problem.note, problem.retry_after)


def of_creation(problem: CallProblem) -> ProviderError:
    """The port's error for an upload's, or a creation's, definite no (4xx).

    A 429 is a matter of capacity here: it names enqueued tokens, jobs at once, or storage, and
    the documented answer is the same for each. An input file that is gone, or is not ready yet,
    is no fault of the requests.
    """
    if problem.file_gone:
        return _input_trouble("input_not_found", problem)
    if NOT_ACTIVE in problem.note:
        return _input_trouble("input_not_ready", problem)
    if problem.status == 429 and not problem.per_day:
        return Refused(PROVIDER, "capacity", problem.name, problem.note, problem.retry_after)
    return refusal(problem)


def of_reading(problem: CallProblem, missing: ProviderError | None = None) -> ProviderError:
    """The port's error for a call that only reads, or may be repeated.

    Args:
        problem: what was answered.
        missing: says that the thing asked for is not there, where it is a thing.
    """
    if missing is not None and (problem.status in (404, 410) or problem.file_gone):
        return missing
    if problem.passing or problem.status < 400:
        return Unavailable(PROVIDER, _in_short(problem), problem.retry_after)
    return refusal(problem)


def of_transport(error: httpx2.HTTPError) -> ProviderError:
    """The port's error for a call that may be repeated and got no answer."""
    if isinstance(error, NOT_SENT):
        return Unreachable(PROVIDER, type(error).__name__)
    return Unavailable(PROVIDER, type(error).__name__)


def of_transport_at_create(error: httpx2.HTTPError) -> ProviderError:
    """The port's error for a creation that got no answer."""
    if isinstance(error, NOT_SENT):
        return Unreachable(PROVIDER, type(error).__name__)
    return Ambiguous(PROVIDER, type(error).__name__)


def ambiguous(problem: CallProblem) -> Ambiguous:
    """The port's error for a creation whose answer leaves open whether it was done (5xx)."""
    return Ambiguous(PROVIDER, _in_short(problem))


def _in_short(problem: CallProblem) -> str:
    return f"HTTP {problem.status} {problem.name or ''}".rstrip()


def _input_trouble(code: str, problem: CallProblem) -> Refused:
    return Refused(PROVIDER, "transport", code, problem.note, problem.retry_after)


def _error_of(body: bytes) -> dict[str, Any]:
    try:
        told = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    if isinstance(told, list) and len(told) == 1:
        told = told[0]
    error = told.get("error") if isinstance(told, dict) else None
    return error if isinstance(error, dict) else {}


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _quota_ids(details: list[dict[str, Any]]) -> Iterator[str]:
    for entry in details:
        for violation in _listed(entry.get("violations")):
            if isinstance(violation, dict):
                yield f"{violation.get('quotaId')} {violation.get('quotaMetric')}"


def _retry_after(headers: Mapping[str, str], details: list[dict[str, Any]]) -> float | None:
    """RetryInfo's delay (`34s`), else the header's seconds; the longer one where both are."""
    told = [str(entry.get("retryDelay")) for entry in details if "retryDelay" in entry]
    header = headers.get("retry-after", "")
    delays = [float(found[1]) for found in map(_DELAY.fullmatch, [*told, f"{header}s"]) if found]
    return max(delays, default=None)
