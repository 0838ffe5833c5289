"""What OpenAI's calls have in common on the wire: accounts, errors, headers, planted faults.

Belongs here: whose request it is, the error body, and taking a fault of an operation. Does not
belong here: what an operation does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from tests.provider_emulator.faults import Fault
from tests.provider_emulator.http import failed_transport
from tests.provider_emulator.world import World

PROVIDER = "openai"

# Type and code by HTTP status, for an error that names none.
_KINDS: dict[int, tuple[str, str | None]] = {
    400: ("invalid_request_error", None),
    401: ("invalid_request_error", "invalid_api_key"),
    403: ("invalid_request_error", "unsupported_country_region_territory"),
    404: ("invalid_request_error", None),
    409: ("invalid_request_error", None),
    429: ("requests", "rate_limit_exceeded"),
    500: ("server_error", None),
    503: ("server_error", "slow_down"),
}


class ApiError(Exception):
    """An answer that says no.

    Attributes:
        status: HTTP status.
        message, type, param, code: the fields of the error body.
        headers: more headers of the answer.
        beside: more fields beside `error`.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        kind: str | None = None,
        headers: Mapping[str, str] | None = None,
        beside: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.param = param
        self.code = code
        self.type = kind or _KINDS.get(status, ("server_error", None))[0]
        self.headers = dict(headers or {})
        self.beside = dict(beside or {})

    def body(self) -> dict[str, Any]:
        """Return the error body."""
        error = {
            "message": self.message,
            "type": self.type,
            "param": self.param,
            "code": self.code,
        }
        return {"error": error, **self.beside}


def invalid(message: str, param: str | None = None, code: str | None = None) -> ApiError:
    """Return a refusal of a request that is not right."""
    return ApiError(400, message, param=param, code=code)


def account_of(request: Request) -> str:
    """Return whose request it is: any key is an account of its own.

    Raises:
        ApiError: there is no key.
    """
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not key.strip():
        message = (
            "You didn't provide an API key. You need to provide your API key in an Authorization "
            "header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY)."
        )
        raise ApiError(401, message)
    return key.strip()


def planted(
    world: World, request: Request, op: str, **facts: Any
) -> tuple[Response | None, Fault | None]:
    """Take the fault of an operation, and log the call.

    Returns:
        The response where the connection is dropped at once, and the fault where the operation
        has to carry it out itself (`cut`, `truncate_at_newline`).

    Raises:
        ApiError: a planted `status`.
    """
    world.log(PROVIDER, op, **facts)
    fault = world.faults.take(PROVIDER, op, **facts)
    if fault is None:
        return None, None
    if fault.kind == "status":
        raise planted_error(fault)
    return failed_transport(request, fault), fault


def planted_error(fault: Fault, default_status: int = 500) -> ApiError:
    """Return the error of a planted fault (args `status`, `code`, `message`, `retry_after`)."""
    status = int(fault.args.get("status", default_status))
    kind, usual = _KINDS.get(status, ("server_error", None))
    code = fault.args.get("code", usual)
    retry_after = fault.args.get("retry_after")
    return ApiError(
        status,
        str(fault.args.get("message", "a planted error")),
        param=fault.args.get("param"),
        code=code,
        # A used-up quota has one word for both (`insufficient_quota`).
        kind=code if code == "insufficient_quota" else kind,
        headers={} if retry_after is None else {"retry-after": str(retry_after)},
    )


def standard_headers(world: World) -> dict[str, str]:
    """Return the headers of every answer."""
    return {
        "x-request-id": world.new_id("req_"),
        "openai-version": "2020-10-01",
        "openai-organization": "org-emulated",
        "openai-processing-ms": "12",
    }


def answer(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a JSON answer as OpenAI writes it: over several lines, non-ASCII characters raw."""
    body = json.dumps(value, ensure_ascii=False, indent=2).encode()
    return Response(body, status, headers, "application/json")


def error_answer(error: ApiError) -> Response:
    """Return an error in OpenAI's form."""
    return answer(error.body(), error.status, error.headers)
