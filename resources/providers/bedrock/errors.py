"""From boto3's errors to the port's.

Belongs here: what an error code and a status mean, and which port error says so for a call that
reads, one that creates a job and one that uploads. Does not belong here: the calls themselves.

Messages of refused signatures are never passed on: they can quote the request's headers, the
session token among them. For the same reason nothing is chained to the error that is raised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from resources.providers.port import (
    Ambiguous,
    FailureClass,
    FileMissing,
    JobMissing,
    ProviderError,
    Refused,
    Unavailable,
    Unreachable,
)

PROVIDER = "bedrock"
NOTE_LENGTH = 300

# PROVIDERS.md 4.4; the S3 and the signature codes are those of the AWS API references.
_CLASSES: dict[str, FailureClass] = {
    "AccessDenied": "auth",
    "AccessDeniedException": "auth",
    "ExpiredToken": "auth",
    "ExpiredTokenException": "auth",
    "IncompleteSignatureException": "auth",
    "InvalidAccessKeyId": "auth",
    "InvalidClientTokenId": "auth",
    "InvalidSignatureException": "auth",
    "InvalidToken": "auth",
    "MissingAuthenticationToken": "auth",
    "MissingAuthenticationTokenException": "auth",
    "RequestTimeTooSkewed": "auth",
    "SignatureDoesNotMatch": "auth",
    "UnrecognizedClientException": "auth",
    "ServiceQuotaExceededException": "capacity",
    "ThrottlingException": "rate_limited",
    "TooManyRequestsException": "rate_limited",
    "ModelNotReadyException": "overloaded",
    "ServiceUnavailableException": "overloaded",
    "ServiceUnavailable": "overloaded",
    "SlowDown": "overloaded",
    "InternalServerException": "server_error",
    "InternalError": "server_error",
    "ModelErrorException": "server_error",
    "ModelTimeoutException": "server_error",
    "RequestTimeout": "transport",
    "ResourceNotFoundException": "unsupported",
    "ValidationException": "invalid_request",
    "ConflictException": "invalid_request",
}
_STATUS_CLASSES: dict[int, FailureClass] = {
    401: "auth",
    402: "quota",
    403: "auth",
    408: "transport",
    424: "server_error",
    429: "rate_limited",
    503: "overloaded",
    529: "overloaded",
}
_LOCAL_CLASSES: dict[str, FailureClass] = {"unsigned": "auth", "local": "invalid_request"}
# Classes whose cause may be over by the next call.
_PASSING: frozenset[FailureClass] = frozenset(
    {"rate_limited", "overloaded", "server_error", "transport", "capacity"}
)
_UNKNOWN_MODEL = "model identifier"


@dataclass(frozen=True)
class Trouble:
    """An error of boto3, without its text where that may hold secrets.

    Attributes:
        kind: `unconnected` no connection came about; `broken` it ended without a readable
            answer; `answered` the service said no; `unsigned` and `local`: boto3 itself did,
            before sending, for want of credentials or for another reason.
        status: HTTP status, 0 without an answer.
        code: the service's code, or the error's name.
        note: what people may read.
        retry_after: seconds that the service asks to wait.
        detail: further elements of an S3 error.
    """

    kind: Literal["unconnected", "broken", "answered", "unsigned", "local"]
    status: int
    code: str
    note: str
    retry_after: float | None = None
    detail: dict[str, Any] | None = None

    @property
    def failure(self) -> FailureClass:
        """What it means."""
        if self.kind == "answered":
            return failure_of(self.status, self.code, self.note)
        return _LOCAL_CLASSES.get(self.kind, "transport")


def failure_of(status: int, code: str, message: str = "") -> FailureClass:
    """Return what a refused or failed call means: by its code, else by its status."""
    if code == "ValidationException" and _UNKNOWN_MODEL in message:
        return "unsupported"
    failure = _CLASSES.get(code) or _STATUS_CLASSES.get(status)
    if failure is not None:
        return failure
    return "server_error" if status >= 500 else "invalid_request"


def read_trouble(error: Exception) -> Trouble:
    """Return what an error of botocore says."""
    from botocore import exceptions as boto

    name = type(error).__name__
    if isinstance(error, boto.ClientError):
        return _read_answer(error.response)
    unconnected = (
        boto.EndpointConnectionError,
        boto.ConnectTimeoutError,
        boto.ProxyConnectionError,
    )
    if isinstance(error, unconnected):
        return Trouble("unconnected", 0, name, name)
    unsigned = (
        boto.NoCredentialsError,
        boto.PartialCredentialsError,
        boto.CredentialRetrievalError,
        boto.TokenRetrievalError,
        boto.NoAuthTokenError,
        boto.LoginError,
        boto.SSOError,
    )
    if isinstance(error, unsigned):
        return Trouble("unsigned", 0, name, "the SDK has no valid credentials to sign with")
    local = (
        boto.ParamValidationError,
        boto.EndpointProviderError,
        boto.InvalidEndpointConfigurationError,
    )
    if isinstance(error, local):
        return Trouble("local", 0, name, "the SDK could not make the request")
    return Trouble("broken", 0, name, name)


def _read_answer(response: Any) -> Trouble:
    error = response.get("Error", {})
    meta = response.get("ResponseMetadata", {})
    status = int(meta.get("HTTPStatusCode", 0))
    code = str(error.get("Code") or status)[:100]
    note = str(error.get("Message", ""))[:NOTE_LENGTH]
    if failure_of(status, code) == "auth":
        note = "check the credentials, their region, and what they may do"
    retry_after = seconds_of(meta.get("HTTPHeaders", {}).get("retry-after"))
    return Trouble("answered", status, code, note, retry_after, dict(error))


def seconds_of(header: str | None) -> float | None:
    """Return a `retry-after` header's seconds; None without one, or where it is a date."""
    try:
        seconds = float(header or "")
    except ValueError:
        return None
    return seconds if 0 <= seconds < float("inf") else None


@contextmanager
def translated(decide: Callable[[Trouble], ProviderError]) -> Iterator[None]:
    """Turn any error of boto3 inside into the port error that `decide` makes of it."""
    from botocore.exceptions import BotoCoreError, ClientError
    from botocore.parsers import ResponseParserError

    try:
        yield
    except (BotoCoreError, ClientError, ResponseParserError) as error:
        raise decide(read_trouble(error)) from None


def for_reading(trouble: Trouble) -> ProviderError:
    """Return the error for a call that changes nothing, or that may be repeated freely."""
    if trouble.kind == "unconnected":
        return Unreachable(PROVIDER, trouble.note)
    if trouble.kind == "broken" or (trouble.kind == "answered" and trouble.failure in _PASSING):
        return Unavailable(PROVIDER, trouble.code, trouble.retry_after)
    return _refused(trouble)


def for_job(job_id: str) -> Callable[[Trouble], ProviderError]:
    """Return the rule for a call that names a job."""

    def decide(trouble: Trouble) -> ProviderError:
        if trouble.status == 404:
            return JobMissing(PROVIDER, job_id)
        return for_reading(trouble)

    return decide


def for_file(ref: str) -> Callable[[Trouble], ProviderError]:
    """Return the rule for a call that names a file."""

    def decide(trouble: Trouble) -> ProviderError:
        if trouble.status == 404:
            return FileMissing(PROVIDER, ref, trouble.code)
        return for_reading(trouble)

    return decide


def for_creation(trouble: Trouble) -> ProviderError:
    """Return the error for the call that creates a job.

    A conflict says that the token was used with other parameters: there is a job.
    """
    if trouble.kind == "unconnected":
        return Unreachable(PROVIDER, trouble.note)
    unsure = trouble.status >= 500 or trouble.status == 408 or trouble.code == "ConflictException"
    if trouble.kind == "broken" or unsure:
        return Ambiguous(PROVIDER, trouble.code)
    return _refused(trouble)


def for_upload(trouble: Trouble) -> ProviderError:
    """Return the error for the upload, after which there is no job in any case."""
    if trouble.kind == "unconnected":
        return Unreachable(PROVIDER, trouble.note)
    if trouble.kind == "broken":
        note = f"the upload of the input broke off ({trouble.code}); no job was created"
        return Refused(PROVIDER, "transport", None, note)
    if trouble.status == 404:
        note = f"the bucket of bedrock_s3_uri cannot be used ({trouble.code})"
        return Refused(PROVIDER, "invalid_request", trouble.code, note)
    return _refused(trouble)


def _refused(trouble: Trouble) -> Refused:
    return Refused(PROVIDER, trouble.failure, trouble.code, trouble.note, trouble.retry_after)
