"""The provider port: what the pipeline may ask of a provider, and the shapes that it answers with.

Belongs here: the protocols, the shared types and the errors. Does not belong here: any provider's
wire format (a package each), limits and prices (`capabilities.py`, `prices.py`), and any decision
about a job or a result (`pipeline_assets`).

A provider has three faces. A `Wire` is pure: request bodies, request lines, result lines. A
`BatchClient` runs jobs. An `OnlineClient` answers one request at a time. Online answers are
written as the lines of the provider's own batch result files, so that one reader serves both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple, Protocol

import msgspec

Finish = Literal["stop", "truncated", "refused", "filtered", "paused", "malformed", "unknown"]
"""Why an answer ended. Only `stop` is a whole answer; a word that no table has is `unknown`."""

Phase = Literal["validating", "queued", "running", "cancelling", "ended", "unknown"]
"""Where a job is. A raw status that no table has is `unknown`, never `ended`."""

Outcome = Literal["completed", "expired", "cancelled", "provider_failed"]
"""How a job ended. Rows may have failed, or be missing, under every one of them."""

FailureClass = Literal[
    "transport",
    "rate_limited",
    "overloaded",
    "server_error",
    "capacity",
    "auth",
    "quota",
    "invalid_request",
    "unsupported",
]
"""What a refused or failed call means; a part of the failure classes of results."""


class ResultLine(msgspec.Struct, frozen=True):
    """One line that a provider returned, in the common shape.

    Attributes:
        custom_id: the attempt's id as echoed; None where the line has none.
        status_code: HTTP status of the row, 200 for success, 0 where the provider gave none.
        text: the model's answer, None where there is none.
        finish_reason: why it stopped, in the common words; None where there is no answer.
        error_code: the provider's own code of a failed row; `expired` and `cancelled` for rows
            that were never run.
        model_revision: the model that answered, where the provider says.
        input_tokens: all tokens read, cached ones included; None where unknown, never zero.
        output_tokens: all tokens written, reasoning included; None where unknown.
        cached_tokens: the part of the input that was read from a cache; None where unknown.
    """

    custom_id: str | None
    status_code: int
    text: str | None = None
    finish_reason: Finish | None = None
    error_code: str | None = None
    model_revision: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None


class MalformedLine(ValueError):
    """A line of a result or request file that is not of the provider's format."""


class SourceLine(NamedTuple):
    """A line as it stands in a file: number from 0, byte offset, bytes without the newline.

    A tuple, since a million of them are made: a frozen dataclass takes three times as long.
    """

    number: int
    offset: int
    data: bytes


def split_lines(stream: BinaryIO, block: int = 1 << 20) -> Iterator[SourceLine]:
    r"""Cut a byte stream on `\n` alone and drop one trailing `\r`; blank lines are skipped.

    Text-mode splitting also cuts at U+2028 and U+0085, which stand raw inside answers.
    """
    number, offset, rest = 0, 0, b""
    while data := stream.read(block):
        pieces = (rest + data).split(b"\n")
        rest = pieces.pop()
        for piece in pieces:
            if piece.strip():
                yield SourceLine(number, offset, piece.removesuffix(b"\r"))
            offset += len(piece) + 1
            number += 1
    if rest.strip():
        yield SourceLine(number, offset, rest.removesuffix(b"\r"))


class ResultReader(Protocol):
    """What reconciling needs of a provider: its result lines in the common shape."""

    name: str

    def read_line(self, line: bytes) -> ResultLine:
        """A result line in the common shape.

        Raises:
            MalformedLine: the line is not of this provider's format.
        """
        ...


class EmbeddedProvider(ResultReader, Protocol):
    """A provider that answers inside the run, without a network."""

    def answer_line(self, request: bytes) -> bytes:
        """The result line (no newline) for a request line.

        Raises:
            MalformedLine: the request is not one that this provider wrote.
        """
        ...


@dataclass(frozen=True)
class Ask:
    """One request before it has a provider's form.

    Attributes:
        model: the provider's name of the model.
        system: the instructions; the same for every record of a version.
        user: the document's reference and its page-marked text.
        schema_name: names the output schema, `[a-zA-Z0-9_-]{1,64}`.
        schema: the workload's output schema (JSON Schema).
        output_tokens: at most so many tokens may be answered.
        parameters: what the spec declares besides; keys are the provider's own body fields.
    """

    model: str
    system: str
    user: str
    schema_name: str
    schema: Mapping[str, Any]
    output_tokens: int
    parameters: Mapping[str, Any]


class Wire(ResultReader, Protocol):
    """A provider's formats. Pure: no network, no clock, no files.

    A body is the exact request body of the online endpoint; the same bytes go into a batch.
    """

    endpoint: str
    """The endpoint that bodies are made for, as the capability table names it."""

    def body(self, ask: Ask) -> dict[str, Any]:
        """The request body.

        Raises:
            SchemaUnsupported: the output schema is outside the provider's strict subset.
        """
        ...

    def broken_body(self, ask: Ask) -> dict[str, Any]:
        """A body that the provider takes into a batch and must answer with an invalid request."""
        ...

    def encode_request(self, custom_id: str, body: bytes) -> bytes:
        """The request line (no newline) around a body."""
        ...

    def decode_request(self, line: bytes) -> tuple[str, bytes]:
        """The custom id and the exact body bytes of a request line.

        Raises:
            MalformedLine: not a request line of this provider.
        """
        ...

    def encode_reply(self, custom_id: str, reply: Reply) -> bytes:
        """An online reply as a line (no newline) of the provider's batch result file."""
        ...


@dataclass(frozen=True)
class Intent:
    """A submission that is durable before the provider is called.

    Attributes:
        intent_id: `<batch_key>-<n>`, n grows with each deliberate submission of the batch.
        batch_key: twelve hexadecimal digits; every custom id of the batch starts with them.
        model: the provider's name of the model.
        records: lines in the request file.
        recorded_at: when the intent was written.
        input_ref: the uploaded input, once it is known.
    """

    intent_id: str
    batch_key: str
    model: str
    records: int
    recorded_at: datetime
    input_ref: str | None = None


@dataclass(frozen=True)
class NewJob:
    """A job to be created.

    Attributes:
        intent: what was recorded.
        request_file: lines made by the provider's `Wire`.
        size: bytes of the file.
        window_hours: how long the provider may take, where it lets one choose.
        on_uploaded: called with the input's reference as soon as the input is there, before the
            job is created; what it raises ends the call.
    """

    intent: Intent
    request_file: Path
    size: int
    window_hours: int
    on_uploaded: Callable[[str], None]


@dataclass(frozen=True)
class RemoteFile:
    """A result file at the provider.

    Attributes:
        kind: `output` or `error`; both are read.
        ref: how the provider's client finds it.
        size: bytes, where the provider says so before the download.
    """

    kind: Literal["output", "error"]
    ref: str
    size: int | None = None


@dataclass(frozen=True)
class Counts:
    """What a job says of its rows; never trusted for an outcome, only shown."""

    total: int | None = None
    succeeded: int | None = None
    failed: int | None = None
    pending: int | None = None


@dataclass(frozen=True)
class Job:
    """A provider's job as it is now.

    Attributes:
        job_id: the provider's name of it.
        raw_status: the provider's own word.
        phase: the same in the common words.
        outcome: how it ended; None while it has not.
        counts: its rows, None where it says nothing.
        created_at: by the provider's clock, None where it does not say.
        expires_at: when its window ends, None where it does not say.
        files: result files to fetch; empty while there are none.
        remote: references of everything that may be deleted once the results are safe.
        error_class: why the whole job failed, where it did.
        error_code: the provider's own code of that.
        error_note: the provider's message of that, at most 300 characters. It names limits and
            models; it is shown to operators and never holds a line of the request file.
    """

    job_id: str
    raw_status: str
    phase: Phase
    outcome: Outcome | None = None
    counts: Counts | None = None
    created_at: datetime | None = None
    expires_at: datetime | None = None
    files: tuple[RemoteFile, ...] = ()
    remote: tuple[str, ...] = ()
    error_class: FailureClass | None = None
    error_code: str | None = None
    error_note: str | None = None


@dataclass(frozen=True)
class Found:
    """What a search for the job of an intent came to.

    Attributes:
        jobs: jobs that are this intent's batch without doubt, oldest first.
        maybe: jobs that may be it and cannot be told yet.
        complete: everything that could be the job was looked at; without it an empty answer
            proves nothing.
    """

    jobs: tuple[Job, ...]
    maybe: tuple[Job, ...]
    complete: bool


@dataclass(frozen=True)
class Download:
    """An open result file.

    Attributes:
        blocks: its bytes from `offset` on.
        offset: where the bytes start: what was asked for, or 0 where the provider cannot resume.
        length: bytes that should still come, None where the provider does not say.
    """

    blocks: Iterator[bytes]
    offset: int
    length: int | None


class BatchClient(Protocol):
    """Jobs of one provider, under one account. Blocking; no call is repeated inside.

    Every method may raise the errors of this module and no other: `Unreachable`, `Unavailable`,
    `Refused`, and what each one names.
    """

    name: str

    def account(self) -> str:
        """What the credentials in use identify, as text that must be digested before it is kept."""
        ...

    def check_model(self, model: str) -> None:
        """Ask whether the model can be used.

        Raises:
            ModelUnavailable: the provider does not know it, or not for this account.
        """
        ...

    def create(self, job: NewJob) -> Job:
        """Upload the input, unless the intent has a reference to it, and create the job.

        Raises:
            Refused: the provider said no: there is no job.
            Unreachable: no connection came about: there is no job.
            Ambiguous: there may be a job.
        """
        ...

    def find(self, intent: Intent) -> Found:
        """Look for the job of an intent among the account's jobs."""
        ...

    def retrieve(self, job_id: str) -> Job:
        """The job as it is now.

        Raises:
            JobMissing: the provider does not have it, or not now.
        """
        ...

    def cancel(self, job_id: str) -> None:
        """Ask the provider to end the job; finished rows stay available where it keeps them."""
        ...

    def open_file(
        self, job_id: str, file: RemoteFile, offset: int
    ) -> AbstractContextManager[Download]:
        """Stream a result file from a byte offset on, or from the start where it cannot resume.

        Raises:
            FileMissing: the file is not there (any more, or yet).
        """
        ...

    def delete(self, job_id: str, refs: tuple[str, ...]) -> None:
        """Delete remote files of a job; those that are gone already are no error."""
        ...

    def close(self) -> None:
        """Give connections back."""
        ...


@dataclass(frozen=True)
class Reply:
    """What came of one online call.

    Attributes:
        status: HTTP status; 0 where none came.
        body: the response body as it came; empty where none came.
        request_id: the provider's name of the call.
        retry_after: seconds that the provider asks to wait.
        failure: None for a 2xx with a body, else what it means.
        ambiguous: the call may have been run, and paid, though no answer came.
    """

    status: int
    body: bytes = b""
    request_id: str | None = None
    retry_after: float | None = None
    failure: FailureClass | None = None
    ambiguous: bool = False


class OnlineClient(Protocol):
    """One request at a time, many at once. Never raises for a failed call: a `Reply` says it."""

    name: str

    def account(self) -> str:
        """As `BatchClient.account`."""
        ...

    def check_model(self, model: str) -> None:
        """As `BatchClient.check_model`."""
        ...

    async def answer(self, custom_id: str, model: str, body: bytes) -> Reply:
        """Send one body, exactly as it is, once."""
        ...

    async def close(self) -> None:
        """Give connections back."""
        ...


@dataclass(frozen=True)
class ProviderOptions:
    """What a client needs besides the SDK's own environment variables; nothing of it is secret.

    Attributes:
        timeout_seconds: for one call; downloads: between two blocks.
        bedrock_role_arn: the service role that reads the input and writes the output.
        bedrock_s3_uri: `s3://bucket/prefix` for inputs and outputs.
    """

    timeout_seconds: float = 120.0
    bedrock_role_arn: str | None = None
    bedrock_s3_uri: str | None = None


class ProviderError(Exception):
    """Any trouble with a provider. Messages hold no key and no line of a request."""


class SdkMissing(ProviderError):
    """A provider's SDK is not installed."""

    def __init__(self, provider: str, extra: str) -> None:
        super().__init__(
            f"the provider {provider!r} needs an SDK that is not installed. Install the extra: "
            f"pip install 'tallybook[{extra}]'."
        )


class CredentialsMissing(ProviderError):
    """No credentials, or a needed setting, in the environment."""

    def __init__(self, provider: str, wanted: str) -> None:
        super().__init__(
            f"the provider {provider!r} cannot be used: {wanted} is not set. Set it in the "
            "environment; keys never go into a spec or a setting of Tallybook."
        )


class SchemaUnsupported(ProviderError):
    """An output schema that a provider's structured output cannot take."""

    def __init__(self, provider: str, problem: str) -> None:
        super().__init__(
            f"the output schema cannot be asked of {provider!r}: {problem}. Nothing is trimmed to "
            "pass: change the workload's schema under a new version, or use another provider."
        )


class ModelUnavailable(ProviderError):
    """The provider does not offer the model to this account."""

    def __init__(self, provider: str, model: str) -> None:
        super().__init__(
            f"{provider} does not offer the model {model!r} to this account. Check the name in a "
            "new version's spec, or the account's access; nothing was uploaded."
        )


class Refused(ProviderError):
    """The provider said no, definitely: nothing was created or changed.

    Attributes:
        failure: what the refusal means.
        code: the provider's own code.
        retry_after: seconds that it asks to wait.
    """

    def __init__(
        self,
        provider: str,
        failure: FailureClass,
        code: str | None,
        note: str,
        retry_after: float | None = None,
    ) -> None:
        self.failure = failure
        self.code = code
        self.retry_after = retry_after
        super().__init__(f"{provider} refused the call ({failure}, {code or 'no code'}): {note}")


class Unreachable(ProviderError):
    """No connection came about, so nothing was asked."""

    def __init__(self, provider: str, problem: str) -> None:
        super().__init__(f"{provider} cannot be reached ({problem}); nothing was sent.")


class Unavailable(ProviderError):
    """A call that only reads failed for now; asking again later is right.

    Attributes:
        retry_after: seconds that the provider asks to wait.
    """

    def __init__(self, provider: str, problem: str, retry_after: float | None = None) -> None:
        self.retry_after = retry_after
        super().__init__(f"{provider} did not answer as it should ({problem}); try again later.")


class Ambiguous(ProviderError):
    """A job may or may not have been created."""

    def __init__(self, provider: str, problem: str) -> None:
        super().__init__(
            f"it is not known whether {provider} created the job ({problem}). It is looked for "
            "before anything is sent again."
        )


class JobMissing(ProviderError):
    """The provider does not know a job by this id, at least not now."""

    def __init__(self, provider: str, job_id: str) -> None:
        super().__init__(
            f"{provider} does not know the job {job_id!r} under this account. It may show up "
            "again, or belong to another account."
        )


class FileMissing(ProviderError):
    """A result file cannot be had, at least not now."""

    def __init__(self, provider: str, ref: str, problem: str) -> None:
        super().__init__(f"{provider} does not give the file {ref!r} ({problem}).")
