"""Reading OpenAI's batch objects: their fields in the common words.

Belongs here: the shapes of a batch, a list of them and a file, and their meaning. Does not belong
here: calls (`batch.py`).

Only seven fields of a batch are promised (PROVIDERS.md 1.1). Bodies are read here and not by the
SDK's models, which pass a body of any other form through as it came.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import msgspec

from resources.providers.openai.errors import safe_note
from resources.providers.openai.statuses import job_failure, phase_of
from resources.providers.port import Counts, FailureClass, Intent, Job, RemoteFile

BATCH_KEY = "tallybook_batch"
"""Metadata key that holds the batch's key."""

INTENT_KEY = "tallybook_intent"
"""Metadata key that holds the intent's id."""

# Messages of these codes speak of limits, models and files; those of every other code may quote
# a line of the request file.
_TOLD = frozenset(
    {
        "token_limit_exceeded",
        "model_not_found",
        "mismatched_model",
        "empty_file",
        "too_many_tasks",
        "insufficient_quota",
        "billing_hard_limit_reached",
    }
)


class _Counts(msgspec.Struct, frozen=True):
    total: int | None = None
    completed: int | None = None
    failed: int | None = None


class _BatchError(msgspec.Struct, frozen=True):
    code: str | None = None
    message: str | None = None
    param: str | None = None
    line: int | None = None


class _Errors(msgspec.Struct, frozen=True):
    data: list[_BatchError] | None = None


class Batch(msgspec.Struct, frozen=True):
    """A batch object: the fields that are used."""

    id: str
    status: str
    created_at: int | float | None = None
    expires_at: int | float | None = None
    input_file_id: str | None = None
    output_file_id: str | None = None
    error_file_id: str | None = None
    request_counts: _Counts | None = None
    errors: _Errors | None = None
    metadata: dict[str, Any] | None = None


class BatchPage(msgspec.Struct, frozen=True):
    """A page of the list of batches."""

    data: list[Batch]
    has_more: bool = False


class File(msgspec.Struct, frozen=True):
    """A file object: the fields that are used."""

    id: str
    bytes: int | None = None


def job_of(batch: Batch) -> Job:
    """Return a batch in the common words."""
    phase, outcome = phase_of(batch.status)
    ended = phase == "ended"
    failure = _failure(batch) if outcome == "provider_failed" else (None, None, None)
    return Job(
        job_id=batch.id,
        raw_status=batch.status,
        phase=phase,
        outcome=outcome,
        counts=_counts(batch.request_counts),
        created_at=_moment(batch.created_at),
        expires_at=_moment(batch.expires_at),
        files=_result_files(batch) if ended else (),
        remote=_remote(batch),
        error_class=failure[0],
        error_code=failure[1],
        error_note=failure[2],
    )


def is_newest_first(times: Sequence[float]) -> bool:
    """Return whether the times of a list's beginning show that it is ordered newest first.

    Equal times show nothing: the order has to be seen, since a search that stops too early would
    take a job that is there for absent.
    """
    return all(a >= b for a, b in pairwise(times)) and bool(times) and times[0] > times[-1]


def is_of(batch: Batch, intent: Intent) -> bool:
    """Return whether a batch was created for an intent: by its metadata, else by its input file.

    A batch that names another intent is that one's, whatever file it reads. But one that names a
    later intent of ours than this one was made by what this ledger has forgotten, being restored
    from a backup: it is the same requests, and they are paid.
    """
    named = (batch.metadata or {}).get(INTENT_KEY)
    if named:
        return named == intent.intent_id or _is_later(named, intent)
    return bool(intent.input_ref) and batch.input_file_id == intent.input_ref


def _is_later(named: str, intent: Intent) -> bool:
    key, _, number = named.rpartition("-")
    own = intent.intent_id.rpartition("-")[2]
    return key == intent.batch_key and number.isdecimal() and int(number) > int(own)


def _result_files(batch: Batch) -> tuple[RemoteFile, ...]:
    # An empty id means that there is no such file (PROVIDERS.md 1.1).
    files: list[RemoteFile] = []
    if batch.output_file_id:
        files.append(RemoteFile("output", batch.output_file_id))
    if batch.error_file_id:
        files.append(RemoteFile("error", batch.error_file_id))
    return tuple(files)


def _remote(batch: Batch) -> tuple[str, ...]:
    refs = (batch.input_file_id, batch.output_file_id, batch.error_file_id)
    return tuple(ref for ref in refs if ref)


def _counts(counts: _Counts | None) -> Counts | None:
    if counts is None:
        return None
    return Counts(counts.total, counts.completed, counts.failed, _pending(counts))


def _pending(counts: _Counts) -> int | None:
    if counts.total is None or counts.completed is None or counts.failed is None:
        return None
    return max(0, counts.total - counts.completed - counts.failed)


def _moment(seconds: float | None) -> datetime | None:
    """Return Unix seconds as a moment; 0 and what no calendar holds are no moment."""
    if not seconds or not 0 < seconds < 253_402_300_800:  # the year 10000
        return None
    return datetime.fromtimestamp(seconds, UTC)


def _failure(batch: Batch) -> tuple[FailureClass, str | None, str | None]:
    errors = (batch.errors and batch.errors.data) or []
    decided = job_failure((error.code, error.param) for error in errors)
    if decided is None:
        # Failed without a word: nothing says that the request file is at fault.
        return "server_error", None, "the batch failed and the provider gave no reason"
    place, failure = decided
    return failure, errors[place].code, _note(errors[place], failure, len(errors))


def _note(error: _BatchError, failure: FailureClass, number: int) -> str:
    where = [
        *([f"line {error.line}"] if error.line is not None else []),
        *([f"param {safe_note(error.param)}"] if error.param else []),
        *([f"{number} errors in all"] if number > 1 else []),
    ]
    told = failure == "transport" or error.code in _TOLD
    message = error.message if told and error.message else (error.code or "no code")
    return safe_note("; ".join([message, *where]))
