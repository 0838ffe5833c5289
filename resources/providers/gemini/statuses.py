"""Tables of Gemini's words: job states, finish reasons, gRPC codes.

Belongs here: words and numbers of the provider against the common ones. Does not belong here:
the JSON that they stand in (`jobs.py`, `wire.py`) and HTTP (`errors.py`).
"""

from __future__ import annotations

from resources.providers.port import FailureClass, Finish, Outcome, Phase

PROVIDER = "gemini"

STATE_PREFIXES = ("BATCH_STATE_", "JOB_STATE_")
"""The wire uses the first; some documented samples and the SDK use the second."""

PHASES: dict[str, tuple[Phase, Outcome | None]] = {
    "PENDING": ("queued", None),
    "QUEUED": ("queued", None),
    "PAUSED": ("queued", None),
    "RUNNING": ("running", None),
    "UPDATING": ("running", None),
    "CANCELLING": ("cancelling", None),
    "SUCCEEDED": ("ended", "completed"),
    "PARTIALLY_SUCCEEDED": ("ended", "completed"),
    "FAILED": ("ended", "provider_failed"),
    "CANCELLED": ("ended", "cancelled"),
    "EXPIRED": ("ended", "expired"),
}
"""Job state without its prefix → (phase, outcome). The words that only Vertex AI documents are
here because the SDK's enum has them."""

FINISH: dict[str, Finish] = {
    "STOP": "stop",
    "MAX_TOKENS": "truncated",
    "SAFETY": "filtered",
    "RECITATION": "filtered",
    "BLOCKLIST": "filtered",
    "PROHIBITED_CONTENT": "filtered",
    "SPII": "filtered",
    "IMAGE_SAFETY": "filtered",
    "IMAGE_PROHIBITED_CONTENT": "filtered",
    "IMAGE_RECITATION": "filtered",
    "MALFORMED_FUNCTION_CALL": "malformed",
    "MALFORMED_RESPONSE": "malformed",
}
"""`finishReason` → the common word. Every other word, and none at all, is `unknown`."""

CANCELLED_CODE = 1
"""gRPC code of a row that was not run because its job was cancelled."""

GRPC_NAMES: dict[int, str] = {
    1: "CANCELLED",
    2: "UNKNOWN",
    3: "INVALID_ARGUMENT",
    4: "DEADLINE_EXCEEDED",
    5: "NOT_FOUND",
    6: "ALREADY_EXISTS",
    7: "PERMISSION_DENIED",
    8: "RESOURCE_EXHAUSTED",
    9: "FAILED_PRECONDITION",
    10: "ABORTED",
    11: "OUT_OF_RANGE",
    12: "UNIMPLEMENTED",
    13: "INTERNAL",
    14: "UNAVAILABLE",
    15: "DATA_LOSS",
    16: "UNAUTHENTICATED",
}
"""google.rpc.Code, which rows and jobs carry as a number and HTTP errors as a name."""

GRPC_HTTP: dict[int, int] = {
    1: 499,
    2: 500,
    3: 400,
    4: 504,
    5: 404,
    6: 409,
    7: 403,
    8: 429,
    9: 400,
    10: 409,
    11: 400,
    12: 501,
    13: 500,
    14: 503,
    15: 500,
    16: 401,
}
"""gRPC code → the HTTP status that google.rpc.Code documents for it."""

JOB_FAILURES: dict[int, FailureClass] = {
    3: "invalid_request",
    5: "unsupported",
    7: "auth",
    8: "capacity",
    9: "invalid_request",
    11: "invalid_request",
    12: "unsupported",
    16: "auth",
}
"""Why a whole job failed, by gRPC code. Every other code is a `server_error`."""


def bare_state(raw: str) -> str:
    """The state without the prefix of either spelling."""
    for prefix in STATE_PREFIXES:
        if raw.startswith(prefix):
            return raw.removeprefix(prefix)
    return raw


def finish_of(raw: str | None) -> Finish:
    """The common word of a `finishReason`; a missing one proves no whole answer."""
    return FINISH.get(raw or "", "unknown")


def http_of_code(code: int) -> int:
    """The HTTP status of an error's code: gRPC numbers by table, HTTP numbers as they are.

    Batch rows carry gRPC numbers, the error body of a call carries HTTP numbers. 0 stays 0, and
    a number of neither kind is a 500.
    """
    if code == 0 or 100 <= code < 600:
        return code
    return GRPC_HTTP.get(code, 500)


def code_of_http(status: int, name: str | None) -> int:
    """The gRPC number for a call's error: by its name, else by its status, else the status."""
    for code, known in GRPC_NAMES.items():
        if known == name:
            return code
    for code in (3, 16, 7, 5, 8, 13, 14, 4):
        if GRPC_HTTP[code] == status:
            return code
    return status
