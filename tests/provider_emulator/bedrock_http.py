"""What Bedrock and S3 have in common on the wire: accounts, errors, planted faults.

Belongs here: whose request it is, error bodies in either form, and taking a fault of an operation.
Does not belong here: what an operation does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape

from starlette.requests import Request
from starlette.responses import Response

from tests.provider_emulator.faults import Fault
from tests.provider_emulator.http import failed_transport, json_response
from tests.provider_emulator.world import World

PROVIDER = "bedrock"

# Code by HTTP status, for a planted `status` that names none.
_CODES = {
    400: "ValidationException",
    403: "AccessDeniedException",
    404: "ResourceNotFoundException",
    408: "ModelTimeoutException",
    424: "ModelErrorException",
    429: "ThrottlingException",
    500: "InternalServerException",
    503: "ServiceUnavailableException",
}
_S3_CODES = {
    400: "InvalidRequest",
    403: "AccessDenied",
    404: "NoSuchKey",
    429: "SlowDown",
    500: "InternalError",
    503: "SlowDown",
}
_CREDENTIAL = re.compile(
    r"AWS4-HMAC-SHA256 Credential=(?P<key>[^/,\s]+)/\d{8}/(?P<region>[a-z0-9-]+)/"
    r"(?P<service>[a-z0-9-]+)/aws4_request"
)


class AwsError(Exception):
    """An answer that says no."""

    def __init__(
        self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.headers = dict(headers or {})


@dataclass(frozen=True)
class Caller:
    """Who asks.

    Attributes:
        account: the access key id, or the bearer token: each is an account of its own.
        region: of the signature; a bearer token has none and is taken to be in us-east-1.
    """

    account: str
    region: str


def caller_of(request: Request) -> Caller:
    """Return who signed a request; the signature itself is not verified.

    Raises:
        AwsError: nobody did.
    """
    header = request.headers.get("authorization", "")
    found = _CREDENTIAL.match(header)
    if found is not None:
        return Caller(found["key"], found["region"])
    scheme, _, token = header.partition(" ")
    if scheme == "Bearer" and token.strip():
        return Caller(token.strip(), "us-east-1")
    raise AwsError(403, "MissingAuthenticationTokenException", "Missing Authentication Token")


def error_response(world: World, error: AwsError) -> Response:
    """Return Bedrock's form of an error."""
    headers = {
        "x-amzn-errortype": error.code,
        "x-amzn-requestid": world.new_id("req-"),
        **error.headers,
    }
    return json_response({"message": error.message}, error.status, headers)


def s3_error_response(
    world: World, error: AwsError, more: Mapping[str, Any] | None = None
) -> Response:
    """Return S3's form of an error."""
    fields = {"Code": error.code, "Message": error.message, **(more or {})}
    inner = "".join(f"<{name}>{escape(str(value))}</{name}>" for name, value in fields.items())
    return xml_response(world, f"<Error>{inner}</Error>", error.status, error.headers)


def xml_response(
    world: World, body: str, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Return an XML answer of S3."""
    text = f'<?xml version="1.0" encoding="UTF-8"?>\n{body}'
    return Response(text.encode(), status, s3_headers(world, headers), media_type="application/xml")


def s3_headers(world: World, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the headers of every answer of S3, and more."""
    return {"x-amz-request-id": world.new_id("").upper()[:16], **(more or {})}


def planted(
    world: World, request: Request, op: str, **facts: Any
) -> tuple[Response | None, Fault | None]:
    """Take the fault of an operation, and log the call.

    Returns:
        The response where the connection is dropped at once, and the fault where the operation
        has to carry it out itself (`cut`, `truncate_at_newline`).

    Raises:
        AwsError: a planted `status`.
    """
    world.log(PROVIDER, op, **facts)
    fault = world.faults.take(PROVIDER, op, **facts)
    if fault is None:
        return None, None
    if fault.kind == "status":
        raise _planted_error(request, fault)
    return failed_transport(request, fault), fault


def _planted_error(request: Request, fault: Fault) -> AwsError:
    status = int(fault.args.get("status", 500))
    codes = _S3_CODES if request.url.path.startswith("/s3/") else _CODES
    code = fault.args.get("code") or codes.get(status) or "InternalServerException"
    message = fault.args.get("message", "a planted error")
    retry_after = fault.args.get("retry_after")
    headers = {} if retry_after is None else {"retry-after": str(retry_after)}
    return AwsError(status, code, message, headers)
