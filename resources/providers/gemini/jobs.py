"""Gemini's batch operations as the port's jobs.

Belongs here: the JSON of one operation and of one page of them, pure. Does not belong here: how
it is fetched (`batch.py`) and what states mean (`statuses.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import msgspec

from resources.providers.gemini.errors import clean_note
from resources.providers.gemini.statuses import (
    GRPC_NAMES,
    JOB_FAILURES,
    PHASES,
    bare_state,
)
from resources.providers.gemini.wire import ABSENT, compact, present
from resources.providers.port import Counts, FailureClass, Job, Outcome, Phase, RemoteFile

INLINE = "inline:"
"""Before a job's name: its results stand in the operation itself, not in a file."""

_NO_RESULTS = frozenset({"EXPIRED"})
"""G-G: an expired job has no results, whatever its operation says."""


class NotAnOperation(ValueError):
    """An answer that is not of the form of a batch operation."""


class _Stats(msgspec.Struct, frozen=True, rename="camel"):
    request_count: str | int | None = None
    successful_request_count: str | int | None = None
    failed_request_count: str | int | None = None
    pending_request_count: str | int | None = None


class _Output(msgspec.Struct, frozen=True, rename="camel"):
    responses_file: str | None = None
    inlined_responses: msgspec.Raw = ABSENT


class _InputConfig(msgspec.Struct, frozen=True, rename="camel"):
    file_name: str | None = None


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    display_name: str | None = None
    state: str | None = None
    create_time: str | None = None
    batch_stats: _Stats | None = None
    input_config: _InputConfig | None = None
    output: _Output | None = None


class _Status(msgspec.Struct, frozen=True):
    code: int = 0
    message: str = ""
    details: msgspec.Raw = ABSENT


class Operation(msgspec.Struct, frozen=True):
    """One operation as it came, of what the port needs."""

    name: str
    metadata: _Metadata = _Metadata()
    error: _Status | None = None
    response: _Output | None = None

    @property
    def display_name(self) -> str | None:
        """The name that the job was created under; None where the operation does not say."""
        return self.metadata.display_name or None

    @property
    def created_at(self) -> datetime | None:
        """When it was created, by the provider's clock."""
        return read_time(self.metadata.create_time)

    @property
    def responses_file(self) -> str | None:
        """The result file. It is told twice; either place will do."""
        for place in (self.response, self.metadata.output):
            if place is not None and place.responses_file:
                return place.responses_file
        return None

    @property
    def inlined(self) -> msgspec.Raw | None:
        """The results in the operation itself: told twice too, and read once."""
        for place in (self.response, self.metadata.output):
            if place is not None and present(place.inlined_responses):
                return place.inlined_responses
        return None


class _Page(msgspec.Struct, frozen=True, rename="camel"):
    operations: list[msgspec.Raw] = []
    next_page_token: str | None = None


class _Key(msgspec.Struct, frozen=True):
    key: str | None = None


class _Inlined(msgspec.Struct, frozen=True):
    metadata: _Key | None = None
    response: msgspec.Raw = ABSENT
    error: msgspec.Raw = ABSENT


class _InlinedList(msgspec.Struct, frozen=True, rename="camel"):
    inlined_responses: list[_Inlined] = []


def read_operation(data: bytes | msgspec.Raw) -> Operation:
    """One operation.

    Raises:
        NotAnOperation: it is none.
    """
    try:
        operation = msgspec.json.decode(data, type=Operation)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise NotAnOperation(f"not a batch operation: {type(error).__name__}") from error
    if not operation.name:
        raise NotAnOperation("not a batch operation: its name is empty")
    return operation


def read_page(data: bytes) -> tuple[list[Operation], bool, str | None]:
    """(operations of one page, whether all of them could be read, token of the next page).

    Raises:
        NotAnOperation: it is no page of operations.
    """
    try:
        page = msgspec.json.decode(data, type=_Page)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise NotAnOperation(f"not a page of operations: {type(error).__name__}") from error
    operations: list[Operation] = []
    for raw in page.operations:
        try:
            operations.append(read_operation(raw))
        except NotAnOperation:
            continue  # told by the second value: the search is then not complete
    return operations, len(operations) == len(page.operations), page.next_page_token or None


def job_of(operation: Operation) -> Job:
    """The operation in the port's shape."""
    raw = operation.metadata.state or ""
    state = bare_state(raw)
    files = () if state in _NO_RESULTS else _files_of(operation)
    phase, outcome = _phase_of(state, files)
    error_class, error_code, error_note = _failure_of(operation, outcome)
    source = operation.metadata.input_config
    references = (source and source.file_name, operation.responses_file, operation.name)
    return Job(
        job_id=operation.name,
        raw_status=raw,
        phase=phase,
        outcome=outcome,
        counts=counts_of(operation.metadata.batch_stats),
        created_at=operation.created_at,
        files=files if phase == "ended" else (),
        remote=tuple(filter(None, references)),
        error_class=error_class,
        error_code=error_code,
        error_note=error_note,
    )


def counts_of(stats: _Stats | None) -> Counts | None:
    """The rows by what became of them. Counts are strings, and a zero is left out."""
    if stats is None:
        return None
    return Counts(
        total=_number(stats.request_count),
        succeeded=_number(stats.successful_request_count),
        failed=_number(stats.failed_request_count),
        pending=_number(stats.pending_request_count),
    )


def inline_lines(operation: Operation) -> Iterator[bytes]:
    """Inline results as lines (with newlines) of a result file, in the order they came.

    Raises:
        NotAnOperation: the results are not of the provider's form.
    """
    raw = operation.inlined
    if raw is None:
        return
    for entry in _inlined(raw):
        line: dict[str, object] = {"key": entry.metadata and entry.metadata.key}
        if present(entry.error):
            line["error"] = compact(entry.error)
        elif present(entry.response):
            line["response"] = compact(entry.response)
        yield msgspec.json.encode(line) + b"\n"


def read_time(text: str | None) -> datetime | None:
    """A time of the wire, which has up to nine decimals; None where it is no time."""
    try:
        time = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return time.astimezone(UTC) if time.tzinfo is not None else time.replace(tzinfo=UTC)


def _inlined(raw: msgspec.Raw) -> list[_Inlined]:
    """The list, which stands inside an object of the same name, or alone."""
    try:
        if bytes(raw).lstrip().startswith(b"["):
            return msgspec.json.decode(raw, type=list[_Inlined])
        return msgspec.json.decode(raw, type=_InlinedList).inlined_responses
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise NotAnOperation(f"not inline results: {type(error).__name__}") from error


def _phase_of(state: str, files: tuple[RemoteFile, ...]) -> tuple[Phase, Outcome | None]:
    """The phase by the table.

    A job can be SUCCEEDED a while before its results are named (tidyverse/ellmer#926). It is
    still running then: taken for ended, every row would look missing, and be paid again.
    """
    phase, outcome = PHASES.get(state, ("unknown", None))
    if outcome == "completed" and not files:
        return "running", None
    return phase, outcome


def _files_of(operation: Operation) -> tuple[RemoteFile, ...]:
    if operation.responses_file is not None:
        return (RemoteFile("output", operation.responses_file),)
    if operation.inlined is not None:
        return (RemoteFile("output", f"{INLINE}{operation.name}"),)
    return ()


def _failure_of(
    operation: Operation, outcome: Outcome | None
) -> tuple[FailureClass | None, str | None, str | None]:
    """(class, code, note) of a job that failed as a whole."""
    error = operation.error
    if outcome != "provider_failed":
        return None, None, None
    if error is None:
        return "server_error", None, None
    failure = JOB_FAILURES.get(error.code, "server_error")
    if failure == "capacity" and b"PerDay" in bytes(error.details):
        failure = "quota"
    return failure, GRPC_NAMES.get(error.code, str(error.code)), clean_note(error.message)


def _number(text: str | int | None) -> int | None:
    """A count: 0 where it is left out, None where it is no number."""
    try:
        return int(text or 0)
    except ValueError:
        return None
