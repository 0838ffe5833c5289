"""Gemini's answers: JSON as it indents it, and its errors.

Belongs here: the error body with its details, the documented names, and the refusals that several
parts of the emulated API share.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from tests.provider_emulator.faults import Fault

NAME = "gemini"
NAMES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "ABORTED",
    413: "INVALID_ARGUMENT",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
CODES = {
    "CANCELLED": 1,
    "UNKNOWN": 2,
    "INVALID_ARGUMENT": 3,
    "DEADLINE_EXCEEDED": 4,
    "NOT_FOUND": 5,
    "PERMISSION_DENIED": 7,
    "RESOURCE_EXHAUSTED": 8,
    "FAILED_PRECONDITION": 9,
    "ABORTED": 10,
    "UNIMPLEMENTED": 12,
    "INTERNAL": 13,
    "UNAVAILABLE": 14,
    "UNAUTHENTICATED": 16,
}
"""gRPC numbers, which rows and jobs carry where a call's error has an HTTP status."""

TYPE = "type.googleapis.com/google.rpc."


def answer_json(
    value: Any, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Return a JSON response with indentation, as the service sends it by default."""
    data = json.dumps(value, ensure_ascii=False, indent=2).encode() + b"\n"
    return Response(data, status, headers, "application/json; charset=UTF-8")


class ApiError(Exception):
    """A call that is refused, as the provider would say it."""

    def __init__(
        self,
        status: int,
        message: str,
        name: str | None = None,
        details: list[dict[str, Any]] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.name = name or NAMES.get(status, "UNKNOWN")
        self.details = details or []

    def response(self) -> Response:
        """Return the HTTP answer."""
        error: dict[str, Any] = {
            "code": self.status,
            "message": self.message,
            "status": self.name,
        }
        if self.details:
            error["details"] = self.details
        return answer_json({"error": error}, self.status)


def planted_error(fault: Fault) -> ApiError:
    """Return the error of a `status` fault.

    Args of the fault: `status`, `code` (the name), `message`, `retry_after` (seconds, told in
    RetryInfo: no header carries it), `quota_id` (told in QuotaFailure), `reason` (in ErrorInfo).
    """
    args = fault.args
    status = int(args.get("status", 500))
    details: list[dict[str, Any]] = []
    if "reason" in args:
        details.append({"@type": TYPE + "ErrorInfo", "reason": args["reason"]})
    if "quota_id" in args:
        details.append(quota_failure(str(args["quota_id"])))
    if args.get("retry_after") is not None:
        details.append(retry_info(float(args["retry_after"])))
    message = str(args.get("message", f"Emulated error {status}."))
    return ApiError(status, message, args.get("code"), details)


def quota_failure(quota_id: str) -> dict[str, Any]:
    """Return the detail that names an exhausted quota."""
    metric = "generativelanguage.googleapis.com/batch_enqueued_tokens"
    return {
        "@type": TYPE + "QuotaFailure",
        "violations": [{"quotaMetric": metric, "quotaId": quota_id}],
    }


def retry_info(seconds: float) -> dict[str, Any]:
    """Return the detail that says how long to wait."""
    return {"@type": TYPE + "RetryInfo", "retryDelay": f"{seconds:g}s"}


def exhausted(quota_id: str, retry_after: float = 34.0) -> ApiError:
    """Return the refusal of a call that goes over a limit of the account."""
    return ApiError(
        429,
        "You exceeded your current quota, please check your plan and billing details. For more "
        "information on this error, head to: https://ai.google.dev/gemini-api/docs/rate-limits.",
        details=[quota_failure(quota_id), retry_info(retry_after)],
    )


def no_such_file(name: str) -> ApiError:
    """Return what is said of a file that is gone, expired, or another account's."""
    file_id = name.removeprefix("files/")
    return ApiError(
        403, f"You do not have permission to access the File {file_id} or it may not exist."
    )


def not_found() -> ApiError:
    """Return what is said of anything else that is not there."""
    return ApiError(404, "Requested entity was not found.")
