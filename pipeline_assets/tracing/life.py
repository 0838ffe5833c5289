"""What the ledger knows of one record's life, as plain values.

Belongs here: the shapes, and the parts that a life falls into. Does not belong here: reading them
(`lives.py`) and turning them into spans (`spans.py`).

A record may end more than once: a dead letter that is requeued, a published one that is replayed.
An episode is what lies between two ends. Where a record goes from one end to another (published,
then withdrawn), the move is an episode of its own that took no time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from pipeline_assets.stage_facts import SETTLED
from resources.clock import from_text, to_text
from resources.ledger.transitions import START

ENDS = SETTLED | {"dead_letter"}
"""States in which a record is traced: nothing more happens to it by itself."""
FAILURES = frozenset({"dead_letter", "rejected", "retry_wait"})
"""States that no record reaches that went well."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Step:
    """One move of the record.

    Attributes:
        move_no: in the journal.
        at: in microseconds since 1970, UTC.
        from_state: before it.
        to_state: after it.
        batch_no: of the batch on whose chain it stands; None for another chain.
    """

    move_no: int
    at: int
    from_state: str
    to_state: str
    batch_no: int | None


@dataclass(frozen=True)
class BatchStep:
    """One move of a batch that the record was in; `at` as in `Step`."""

    move_no: int
    at: int
    to_state: str


@dataclass(frozen=True)
class Attempt:
    """One try at the record, categories and ids only."""

    ordinal: int
    recovery_path: str
    batch_no: int
    batch_id: str
    provider: str
    mode: str
    model: str
    provider_job_id: str | None
    disposition: str | None
    failure_class: str | None
    model_revision: str | None
    input_tokens: int | None
    output_tokens: int | None


@dataclass(frozen=True)
class Review:
    """One time that a person was asked; times as in `Step`."""

    kind: str
    decision: str | None
    opened_at: int
    taken_at: int | None


@dataclass(frozen=True)
class Delivery:
    """One business effect; `at` as in `Step`."""

    operation: str
    promotion: int
    disposition: str
    at: int


@dataclass(frozen=True)
class Life:
    """All that is told of a record, in order."""

    record_no: int
    record_id: str
    version: str
    steps: tuple[Step, ...]
    attempts: tuple[Attempt, ...]
    batch_steps: dict[int, tuple[BatchStep, ...]]
    reviews: tuple[Review, ...]
    deliveries: tuple[Delivery, ...]


# Records move by sets: thousands of moves have one time.
@lru_cache(maxsize=4096)
def microseconds(moment: str) -> int:
    """A time of the ledger in microseconds since 1970, UTC."""
    return (from_text(moment) - _EPOCH) // timedelta(microseconds=1)


def moment(since_1970: int) -> str:
    """Microseconds since 1970 as a time of the ledger."""
    return to_text(_EPOCH + timedelta(microseconds=since_1970))


def episodes(steps: Sequence[Step]) -> list[tuple[int, int]]:
    """The parts of a life as ranges of its steps: from the first, up to but not with the last."""
    starts = [
        index
        for index, step in enumerate(steps)
        if index == 0 or step.from_state == START or step.from_state in ENDS
    ]
    return list(zip(starts, [*starts[1:], len(steps)], strict=True))
