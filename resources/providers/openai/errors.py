"""What a failed call to OpenAI means: SDK errors as facts, facts as errors of the port.

Belongs here: reading status, headers and error body, and the table of classes. Does not belong
here: which call it was and what follows (`batch.py`, `online.py`).

Words of an error body may name a key or quote a request: only the provider's code and a cleaned,
cut message leave this module, and of refused credentials not even that.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

import msgspec

from resources.providers.openai.statuses import CODES
from resources.providers.port import (
    Ambiguous,
    FailureClass,
    ProviderError,
    Refused,
    Unavailable,
    Unreachable,
)

if TYPE_CHECKING:
    from openai import APIConnectionError, APIError

NAME = "openai"
MAX_NOTE = 300
"""Characters of a provider's message that are kept (`port.Job.error_note`)."""

_KEY = re.compile(r"\b(?:sk|sess|org|proj)-[\w*.-]+")
_DURATION = re.compile(
    r"(?:(?P<d>\d+)d)?(?:(?P<h>\d+)h)?(?:(?P<m>\d+)m(?!s))?"
    r"(?:(?P<s>\d+(?:\.\d+)?)s)?(?:(?P<ms>\d+(?:\.\d+)?)ms)?"
)
_SECONDS = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0, "ms": 0.001}

# 408 and 409 are passing: the SDK repeats both (PROVIDERS.md 1.6).
_STATUSES: dict[int, FailureClass] = {
    0: "transport",
    401: "auth",
    402: "quota",
    403: "auth",
    408: "transport",
    409: "transport",
    429: "rate_limited",
    503: "overloaded",
    529: "overloaded",
}
_NOT_FOUND = ("not found", "no such", "no access", "does not exist", "could not find")


class _Error(msgspec.Struct, frozen=True):
    message: str | None = None
    type: str | None = None
    param: str | None = None
    code: str | int | None = None


class _ErrorBody(msgspec.Struct, frozen=True):
    error: _Error | None = None


@dataclass(frozen=True)
class Trouble:
    """What is known of a failed call.

    Attributes:
        status: HTTP status; 0 where none came.
        sent: whether the request may have reached the provider.
        what: the failure in closed words, free of anything that was sent or received.
        code: the provider's code, else its type.
        param: the field that the provider names.
        message: the provider's message as it came; never shown as it is.
        retry_after: seconds that the provider asks to wait.
    """

    status: int
    sent: bool
    what: str
    code: str | None = None
    param: str | None = None
    message: str = ""
    retry_after: float | None = None


def trouble_of(error: APIError) -> Trouble:
    """Return the facts of an error that the SDK raised."""
    from openai import APIConnectionError, APIStatusError

    if isinstance(error, APIStatusError):
        return trouble_in(error.status_code, error.response.headers, error.response.content)
    if isinstance(error, APIConnectionError):
        return Trouble(0, _was_sent(error), type(error.__cause__ or error).__name__)
    return Trouble(0, sent=True, what=type(error).__name__)


def _was_sent(error: APIConnectionError) -> bool:
    import httpx2

    # None of these comes after the first byte of a request.
    before = (
        httpx2.ConnectError,
        httpx2.ConnectTimeout,
        httpx2.PoolTimeout,
        httpx2.ProxyError,
        httpx2.UnsupportedProtocol,
    )
    return not isinstance(error.__cause__, before)


def trouble_in(status: int, headers: Mapping[str, str], body: bytes) -> Trouble:
    """Return the facts of an answer that is no success; a body of another form says nothing."""
    try:
        error = msgspec.json.decode(body, type=_ErrorBody).error or _Error()
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        error = _Error()
    code = error.type if error.code is None else error.code
    return Trouble(
        status,
        sent=True,
        what=f"HTTP {status}",
        code=None if code is None else str(code)[:100],
        param=error.param,
        message=error.message or "",
        retry_after=retry_after_of(status, headers),
    )


def failure_of(trouble: Trouble) -> FailureClass:
    """Return the class of a failed call: by code, then by message, then by HTTP status."""
    by_code = CODES.get(trouble.code or "")
    if by_code is not None:
        return by_code
    if trouble.status in (400, 429) and "enqueued" in trouble.message.lower():
        return "capacity"
    by_status = _STATUSES.get(trouble.status)
    if by_status is not None:
        return by_status
    return "server_error" if trouble.status >= 500 else "invalid_request"


def read_error(trouble: Trouble) -> ProviderError:
    """Return what a call that only reads, or may be repeated freely, fails with."""
    if not trouble.sent:
        return Unreachable(NAME, trouble.what)
    failure = failure_of(trouble)
    passing = failure in ("transport", "rate_limited", "overloaded", "server_error", "capacity")
    if passing:
        return Unavailable(NAME, trouble.what, trouble.retry_after)
    return refusal(trouble, failure)


def create_error(trouble: Trouble) -> ProviderError:
    """Return what creating a job fails with: refused, not asked, or unknown."""
    if not trouble.sent:
        return Unreachable(NAME, trouble.what)
    if trouble.status in (0, 408) or trouble.status >= 500:
        return Ambiguous(NAME, trouble.what)
    if _is_missing_input(trouble):
        return Refused(NAME, "transport", "input_not_found", _note_of(trouble))
    return refusal(trouble, failure_of(trouble))


def upload_error(trouble: Trouble) -> ProviderError:
    """Return what uploading the input fails with: whatever came of it, there is no job."""
    if not trouble.sent:
        return Unreachable(NAME, trouble.what)
    return refusal(trouble, failure_of(trouble))


def refusal(trouble: Trouble, failure: FailureClass) -> Refused:
    """Return a refusal with the provider's code and what may be told of its message."""
    note = "the credentials are not accepted" if failure == "auth" else _note_of(trouble)
    return Refused(NAME, failure, trouble.code, note, trouble.retry_after)


def is_unknown(trouble: Trouble) -> bool:
    """Return whether the API itself says that it does not know a thing.

    A wrong base URL is a 404 as well: there nobody speaks, or the path is what is not known.
    """
    said = trouble.message.lower()
    return trouble.status == 404 and bool(said) and "invalid url" not in said


def _is_missing_input(trouble: Trouble) -> bool:
    # A file that was just uploaded may be unknown for a while (PROVIDERS.md 1.4).
    message = trouble.message.lower()
    if trouble.status == 404:
        return is_unknown(trouble)
    about_file = "file" in message or (trouble.param or "").endswith("file_id")
    return trouble.status == 400 and about_file and any(word in message for word in _NOT_FOUND)


def _note_of(trouble: Trouble) -> str:
    return safe_note(f"{trouble.what}: {trouble.message}" if trouble.message else trouble.what)


def safe_note(text: str) -> str:
    """Return a provider's words on one line, without keys or account ids, cut to `MAX_NOTE`."""
    return _KEY.sub("[removed]", " ".join(text.split()))[:MAX_NOTE]


def retry_after_of(status: int, headers: Mapping[str, str]) -> float | None:
    """Return the seconds that the headers of an answer ask to wait, None where they ask nothing.

    A date is counted from the answer's own `Date`, so that no clock is needed. Without the header
    a 429 is read from the rate limits that it reports as used up (PROVIDERS.md 1.6).
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    asked = headers.get("retry-after")
    if asked is not None:
        seconds = _number(asked)
        return _seconds_until(asked, headers.get("date")) if seconds is None else seconds
    return _longest_reset(headers) if status == 429 else None


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return max(0.0, value) if math.isfinite(value) else None


def _seconds_until(moment: str, now: str | None) -> float | None:
    try:
        left = parsedate_to_datetime(moment) - parsedate_to_datetime(now or "")
    except (ValueError, TypeError):
        return None
    return max(0.0, left.total_seconds())


def _longest_reset(headers: Mapping[str, str]) -> float | None:
    waits = [
        duration_of(headers.get(f"x-ratelimit-reset-{what}", ""))
        for what in ("requests", "tokens", "project-tokens")
        if headers.get(f"x-ratelimit-remaining-{what}") == "0"
    ]
    return max((wait for wait in waits if wait is not None), default=None)


def duration_of(text: str) -> float | None:
    """Return the seconds of a duration such as `1s`, `6m0s` or `20ms`, None for any other text."""
    found = _DURATION.fullmatch(text) if text else None
    if found is None:
        return None
    parts = found.groupdict()
    return sum(float(parts[unit] or 0) * seconds for unit, seconds in _SECONDS.items())
