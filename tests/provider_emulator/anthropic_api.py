"""What every emulated Anthropic call has in common: error bodies, headers, keys, versions, rates.

Belongs here: the provider's form of answers. Does not belong here: jobs (`anthropic_jobs.py`) and
what a model does with a request (`anthropic_messages.py`).
"""

from __future__ import annotations

import json
from collections import defaultdict, deque
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from tests.provider_emulator.faults import Fault
from tests.provider_emulator.http import json_response
from tests.provider_emulator.world import World

NAME = "anthropic"
OLD_VERSION, NEW_VERSION = "2023-06-01", "2026-10-21"
VERSIONS = (OLD_VERSION, NEW_VERSION)
MEGABYTE = 1_000_000

DEFAULTS: dict[str, Any] = {
    "anthropic.max_rows": 100_000,
    "anthropic.max_bytes": 256 * MEGABYTE,
    "anthropic.message_bytes": 32 * MEGABYTE,
    "anthropic.batch_requests_per_minute": 1_000,
    "anthropic.queued_rows": 200_000,
    "anthropic.online_requests_per_minute": 1_000_000,
    "anthropic.window_hours": 24,
    "anthropic.retention_days": 29,
    "anthropic.context_tokens": 200_000,
    "anthropic.cached_tokens": 0,
}
"""Limits as documented for the Start tier (A-G, A-RL), and what tests may move besides."""

TYPE_OF_STATUS = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}
STATUS_OF_TYPE = {kind: status for status, kind in TYPE_OF_STATUS.items()}


def setting(world: World, name: str) -> Any:
    """Return a limit: what a test has set, or the documented one."""
    return world.settings.get(name, DEFAULTS[name])


@dataclass(eq=False)
class Problem(Exception):
    """A refused request: what the provider's error body says."""

    status: int
    message: str
    type: str | None = None
    code: str | None = None
    retry_after: float | None = None

    def body(self, request_id: str) -> dict[str, Any]:
        """Return the error body."""
        kind = self.type or TYPE_OF_STATUS.get(self.status, "api_error")
        error: dict[str, Any] = {"type": kind, "message": self.message}
        if self.code is not None:
            error["details"] = {"error_code": self.code}
        return {"type": "error", "error": error, "request_id": request_id}


def planted_problem(fault: Fault, default_status: int = 500) -> Problem:
    """Return the problem of a `status` or `error` fault (args status, code, message, retry_after).

    A code that is an error type stands as the type; any other goes into the details.
    """
    code = fault.args.get("code")
    is_type = code in STATUS_OF_TYPE
    status = fault.args.get("status", STATUS_OF_TYPE.get(code or "", default_status))
    return Problem(
        status=int(status),
        message=str(fault.args.get("message", "Planted fault")),
        type=code if is_type else None,
        code=None if is_type else code,
        retry_after=fault.args.get("retry_after"),
    )


def refuse(world: World, problem: Problem) -> Response:
    """Return the response of a problem."""
    request_id = world.new_id("req_")
    headers = {"request-id": request_id}
    if problem.retry_after is not None:
        headers["retry-after"] = f"{problem.retry_after:g}"
    return json_response(problem.body(request_id), problem.status, headers)


def account_of(request: Request) -> str:
    """Return whose request it is: the key's text and the workspace.

    Raises:
        Problem: there is no key.
    """
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    key = token.strip() if scheme.lower() == "bearer" else ""
    key = key or request.headers.get("x-api-key", "").strip()
    if not key:
        raise Problem(401, "invalid x-api-key")
    return f"{key}\n{request.headers.get('anthropic-workspace-id', '')}"


def version_of(request: Request) -> str:
    """Return the API version that a request asks for.

    Raises:
        Problem: it names none, or one that is not served.
    """
    version = request.headers.get("anthropic-version", "")
    if not version:
        raise Problem(400, "anthropic-version: header is required")
    if version not in VERSIONS:
        raise Problem(400, f"anthropic-version: {version!r} is not a valid version")
    return version


class Meter:
    """Requests of the last minute by account and pool."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], deque[datetime]] = defaultdict(deque)

    def charge(self, account: str, pool: str, limit: int, now: datetime) -> dict[str, str]:
        """Count a request and return its rate headers.

        Raises:
            Problem: the minute is full.
        """
        seen = self._seen[account, pool]
        while seen and seen[0] <= now - timedelta(minutes=1):
            seen.popleft()
        if len(seen) >= limit:
            wait = (seen[0] + timedelta(minutes=1) - now).total_seconds() if seen else 60.0
            raise Problem(
                429,
                f"This request would exceed your rate limit of {limit} requests per minute.",
                retry_after=max(1.0, round(wait)),
            )
        seen.append(now)
        return {
            "anthropic-ratelimit-requests-limit": str(limit),
            "anthropic-ratelimit-requests-remaining": str(limit - len(seen)),
            "anthropic-ratelimit-requests-reset": stamp(seen[0] + timedelta(minutes=1)),
        }


def stamp(moment: datetime) -> str:
    """Return a moment in RFC 3339."""
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


async def read_body(request: Request, limit: int) -> bytes:
    """Return a request's body.

    What is too large is read to its end all the same: a client that is still sending would see a
    broken connection instead of the answer.

    Raises:
        Problem: it is too large.
    """
    kept: list[bytes] = []
    size = 0
    async for block in request.stream():
        size += len(block)
        if size <= limit:
            kept.append(block)
    if size > limit:
        raise Problem(413, "Request exceeds the maximum size")
    return b"".join(kept)


def read_json(body: bytes) -> dict[str, Any]:
    """Return a request's JSON object.

    Raises:
        Problem: it is not one.
    """
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        raise Problem(400, "The request body is not valid JSON") from None
    if not isinstance(value, dict):
        raise Problem(400, "The request body must be a JSON object")
    return value
