"""Message batches as the API shows them, and what they are in the common words.

Belongs here: the answer's shape, the status table, which job may be an intent's. Pure. Does not
belong here: the calls (`batch.py`).

Source: PROVIDERS.md 2.2 and 5.1 (A-T, A-G), November 2026.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from types import MappingProxyType

import msgspec

from resources.providers.port import Counts, Intent, Job, Outcome, Phase, RemoteFile

PHASES: MappingProxyType[str, Phase] = MappingProxyType(
    {"in_progress": "running", "canceling": "cancelling", "ended": "ended"}
)
"""`processing_status` in the common words; any other word is `unknown`."""

CLOCK_TOLERANCE = timedelta(seconds=60)
"""How far the two clocks may be apart for a job that has not ended to be taken for an intent's."""
SEARCH_MARGIN = timedelta(minutes=15)
"""How far before the intent the list is searched: ended jobs name their batch themselves."""
LINES_TO_READ = 20
"""Result lines that are read of an ended job to tell whose it is."""


class RequestCounts(msgspec.Struct, frozen=True):
    """Rows by what became of them; all but `processing` stay 0 until the job has ended."""

    processing: int = 0
    succeeded: int = 0
    errored: int = 0
    canceled: int = 0
    expired: int = 0

    def total(self) -> int:
        """All rows of the job."""
        return self.processing + self.succeeded + self.errored + self.canceled + self.expired


class MessageBatch(msgspec.Struct, frozen=True):
    """A job as the API shows it."""

    id: str
    processing_status: str
    request_counts: RequestCounts | None = None
    created_at: datetime | None = None
    expires_at: datetime | None = None
    cancel_initiated_at: datetime | None = None


class BatchPage(msgspec.Struct, frozen=True):
    """One page of the list, newest first."""

    data: list[MessageBatch]
    has_more: bool = False
    last_id: str | None = None


class _LineId(msgspec.Struct, frozen=True):
    custom_id: str | None = None


_BATCHES = msgspec.json.Decoder(MessageBatch)
_PAGES = msgspec.json.Decoder(BatchPage)
_LINE_IDS = msgspec.json.Decoder(_LineId)


class NotAJob(ValueError):
    """An answer that should be a job, or a page of jobs, and is not."""


def read_batch(body: bytes) -> MessageBatch:
    """A job out of an answer.

    Raises:
        NotAJob: the answer is something else.
    """
    try:
        batch = _BATCHES.decode(body)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise NotAJob(f"an answer that is no job: {type(error).__name__}") from error
    if not batch.id:
        raise NotAJob("a job without an id")
    return batch


def read_page(body: bytes) -> BatchPage:
    """A page of jobs out of an answer.

    Raises:
        NotAJob: the answer is something else.
    """
    try:
        return _PAGES.decode(body)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise NotAJob(f"an answer that is no list of jobs: {type(error).__name__}") from error


def to_job(batch: MessageBatch) -> Job:
    """A job in the common shape.

    An ended job always has its result file, even where the API does not give it any more: the
    download then says so, while no file at all would look like rows that never came.
    """
    phase = PHASES.get(batch.processing_status, "unknown")
    ended = phase == "ended"
    return Job(
        job_id=batch.id,
        raw_status=batch.processing_status,
        phase=phase,
        outcome=_outcome(batch) if ended else None,
        counts=_counts(batch.request_counts, ended),
        created_at=_aware(batch.created_at),
        expires_at=_aware(batch.expires_at),
        files=(RemoteFile("output", batch.id),) if ended else (),
        remote=(batch.id,) if ended else (),
    )


def is_older(batch: MessageBatch, intent: Intent) -> bool:
    """Was the job made so long before the intent that neither it nor an older one matters?"""
    created = _aware(batch.created_at)
    return created is not None and created < intent.recorded_at - SEARCH_MARGIN


def may_be(batch: MessageBatch, intent: Intent) -> bool:
    """May the job be the intent's, as far as row total and time tell?

    What a job does not say speaks for it: an unknown total or time is no proof of anything.
    """
    counts = batch.request_counts
    if counts is not None and counts.total() != intent.records:
        return False
    created = _aware(batch.created_at)
    if created is None:
        return True
    ended = batch.processing_status == "ended"
    return created >= intent.recorded_at - (SEARCH_MARGIN if ended else CLOCK_TOLERANCE)


def names_batch(lines: Iterable[bytes], batch_key: str) -> bool | None:
    """Do the first result lines belong to the batch? None where none of them has an id."""
    told: bool | None = None
    for number, line in enumerate(lines):
        custom_id = _custom_id(line)
        if custom_id is not None and custom_id.startswith(f"{batch_key}-"):
            return True
        told = told if custom_id is None else False
        if number + 1 >= LINES_TO_READ:
            break
    return told


def _custom_id(line: bytes) -> str | None:
    try:
        return _LINE_IDS.decode(line).custom_id
    except (msgspec.MsgspecError, RecursionError):
        return None


def _outcome(batch: MessageBatch) -> Outcome:
    counts = batch.request_counts
    if counts is None:
        return "completed" if batch.cancel_initiated_at is None else "cancelled"
    if counts.canceled:
        return "cancelled"
    return "expired" if counts.expired else "completed"


def _counts(counts: RequestCounts | None, ended: bool) -> Counts | None:
    if counts is None:
        return None
    total = counts.total()
    if not ended:
        return Counts(total=total, pending=counts.processing)
    failed = counts.errored + counts.canceled + counts.expired
    return Counts(total, counts.succeeded, failed, counts.processing)


def _aware(moment: datetime | None) -> datetime | None:
    if moment is None or moment.tzinfo is not None:
        return moment
    return moment.replace(tzinfo=UTC)
