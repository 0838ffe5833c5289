"""A record's life as spans: one trace a record, its stages and attempts nested in it.

Belongs here: which spans there are, their ids, times and attributes. Does not belong here: reading
the life (`lives.py`) and any wire format (`otlp_json.py`, `collector.py`).

Ids are digests of the record's id and of the place in its life, so that telling a life again gives
the same ids. Attributes are ids, times, counts and categories; never text of a document, of an
answer or of a person. A document's id holds the name of its file and is told as an id.

The journal's times may go back, where a clock was set: every time is at least the one before it, so
that no span is negative and every child lies within its parent.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from pipeline_assets.tracing.life import (
    ENDS,
    FAILURES,
    Attempt,
    Delivery,
    Life,
    Review,
    Step,
    episodes,
)
from resources.record_ids import reference

Value = str | int | bool

ROOT, ATTEMPT = "record", "attempt"
QUEUE, PROVIDER, COLLECT = "queue at provider", "provider", "collect"
STAGES: Mapping[str, str] = {
    "queued": "prepare",
    "prepared": "hand over",
    "submitted": PROVIDER,
    "collected": "accept",
    "awaiting_review": "review",
    "accepted": "publish",
    "retry_wait": "wait for retry",
}
"""State of a record → what happens to it there."""
_IN_ATTEMPT = ("prepared", "submitted")
_PREFIX = "tallybook."


@dataclass(frozen=True)
class Event:
    """Something that took no time; `at` in microseconds since 1970, UTC."""

    name: str
    at: int
    attributes: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True)
class Span:
    """One span.

    Attributes:
        trace_id: 32 hexadecimal digits, the record's.
        span_id: 16 hexadecimal digits.
        parent_id: of the span that it lies in; None for a root.
        name: one of few.
        start: in microseconds since 1970, UTC.
        end: the same; never before the start.
        attributes: ids, counts and categories.
        error: the category of what went wrong; None where nothing did.
        events: within it.
    """

    trace_id: str
    span_id: str
    parent_id: str | None
    name: str
    start: int
    end: int
    attributes: Mapping[str, Value] = field(default_factory=dict)
    error: str | None = None
    events: tuple[Event, ...] = ()


def trace_id_of(record_id: str) -> str:
    """The trace of a record: 32 hexadecimal digits."""
    return _digest(record_id, "trace")[:32]


def spans_of(
    life: Life, *, until: int | None = None, why: Mapping[int, str] | None = None
) -> list[Span]:
    """The spans of a life, each after the one that it lies in, by time.

    Args:
        life: the record's.
        until: an episode that has not ended is told up to this time (microseconds since 1970); None
            leaves it out.
        why: first move → why its episode was chosen; only these are told. None tells all.
    """
    times = _forward(life.steps)
    told: list[Span] = []
    for number, (first, last) in enumerate(episodes(life.steps), start=1):
        start_move = life.steps[first].move_no
        ended = life.steps[last - 1].to_state in ENDS
        if (why is not None and start_move not in why) or (not ended and until is None):
            continue
        chosen = None if why is None else why[start_move]
        told += _Episode(life, times, number, first, last, until, chosen).spans()
    return told


def _forward(steps: Sequence[Step]) -> list[int]:
    """The times of the steps, none before the one before it."""
    return list(accumulate((step.at for step in steps), max))


@dataclass(frozen=True)
class _Stretch:
    """The time that a record stands in one state: a step and when the next one came."""

    index: int
    step: Step
    start: int
    end: int
    next_step: Step | None

    @property
    def state(self) -> str:
        return self.step.to_state


class _Episode:
    """Makes the spans of one episode."""

    def __init__(
        self,
        life: Life,
        times: Sequence[int],
        number: int,
        first: int,
        last: int,
        until: int | None,
        chosen: str | None,
    ) -> None:
        self._life = life
        self._number = number
        self._chosen = chosen
        self._steps = life.steps[first:last]
        self._ended = self._steps[-1].to_state in ENDS
        self._start = times[first]
        end = times[last - 1]
        self._end = end if self._ended else max(end, until or end)
        moments = [*times[first:last], self._end]
        self._stretches = [
            _Stretch(
                first + index,
                step,
                moments[index],
                moments[index + 1],
                self._steps[index + 1] if index + 1 < len(self._steps) else None,
            )
            for index, step in enumerate(self._steps)
            if step.to_state not in ENDS
        ]
        self._root_id = self._id(f"{ROOT} {number}")

    def spans(self) -> Iterator[Span]:
        """The root, then its stages, the attempts with theirs inside."""
        yield self._root()
        index = 0
        while index < len(self._stretches):
            stretch = self._stretches[index]
            if stretch.state in _IN_ATTEMPT:
                within = self._of_one_attempt(index)
                yield from self._attempt(within)
                index += len(within)
            else:
                yield self._stage(stretch, self._root_id)
                index += 1

    def _root(self) -> Span:
        states = {step.to_state for step in self._steps}
        end = self._steps[-1].to_state
        failed = self._attempts_within()
        attributes: dict[str, Value | None] = {
            "record_no": self._life.record_no,
            "record_id": self._life.record_id,
            "reference": reference(self._life.record_id),
            "version": self._life.version,
            "episode": self._number,
            "state": end,
            "open": None if self._ended else True,
            "attempts": len(failed),
            "retries": sum(1 for step in self._steps if step.to_state == "retry_wait"),
            "failed": bool(states & FAILURES) or any(map(_went_wrong, failed)),
            "chosen": self._chosen,
        }
        return self._span(
            self._root_id,
            None,
            ROOT,
            (self._start, self._end),
            attributes,
            error=end if self._ended and end in FAILURES else None,
        )

    def _attempts_within(self) -> list[Attempt]:
        batches = {
            stretch.step.batch_no for stretch in self._stretches if stretch.state in _IN_ATTEMPT
        }
        return [attempt for attempt in self._life.attempts if attempt.batch_no in batches]

    def _of_one_attempt(self, index: int) -> list[_Stretch]:
        """The stretches from this one on that are of the same batch."""
        batch_no = self._stretches[index].step.batch_no
        within = []
        for stretch in self._stretches[index:]:
            if stretch.state not in _IN_ATTEMPT or stretch.step.batch_no != batch_no:
                break
            within.append(stretch)
        return within

    def _attempt(self, within: Sequence[_Stretch]) -> Iterator[Span]:
        batch_no = within[0].step.batch_no
        attempt = next((one for one in self._life.attempts if one.batch_no == batch_no), None)
        span_id = self._id(f"{ATTEMPT} {within[0].index}")
        yield self._span(
            span_id,
            self._root_id,
            ATTEMPT,
            (within[0].start, within[-1].end),
            {} if attempt is None else _attempt_attributes(attempt),
            error=None if attempt is None else _error_of(attempt),
        )
        for stretch in within:
            if stretch.state == "submitted":
                yield from self._at_provider(stretch, span_id)
            else:
                yield self._stage(stretch, span_id)

    def _at_provider(self, stretch: _Stretch, parent: str) -> Iterator[Span]:
        """What the batch's own moves say of the time between handing over and collecting."""
        running, available = self._batch_moments(stretch)
        marks: list[tuple[str, int]] = [(PROVIDER, stretch.start)]
        if running is not None:
            marks = [(QUEUE, stretch.start), (PROVIDER, running)]
        if available is not None:
            marks.append((COLLECT, available))
        ends = [*(start for _, start in marks[1:]), stretch.end]
        for (name, start), end in zip(marks, ends, strict=True):
            span_id = self._id(f"{name} {stretch.index}")
            yield self._span(span_id, parent, name, (start, end), {})

    def _batch_moments(self, stretch: _Stretch) -> tuple[int | None, int | None]:
        """When the batch ran and when its results were there, both within the stretch."""
        steps = self._life.batch_steps.get(stretch.step.batch_no or 0, ())
        before = None if stretch.next_step is None else stretch.next_step.move_no
        within = [
            step
            for step in steps
            if step.move_no > stretch.step.move_no and (before is None or step.move_no < before)
        ]
        running = next((step.at for step in within if step.to_state == "running"), None)
        available = next(
            (step.at for step in within if step.to_state in ("results_available", "reconciling")),
            None,
        )
        if running is not None:
            running = min(max(running, stretch.start), stretch.end)
        if available is not None:
            available = min(max(available, running or stretch.start), stretch.end)
        return running, available

    def _stage(self, stretch: _Stretch, parent: str) -> Span:
        name = STAGES[stretch.state]
        attributes: dict[str, Value | None] = {
            "next_state": None if stretch.next_step is None else stretch.next_step.to_state
        }
        events: list[Event] = []
        if stretch.state == "awaiting_review":
            review = _newest(self._life.reviews, stretch.start)
            if review is not None:
                attributes |= {"review.kind": review.kind, "review.decision": review.decision}
                events += _taken(review)
        if stretch.state == "accepted":
            events += [_delivered(one) for one in _within(self._life.deliveries, stretch)]
        kept = tuple(event for event in events if stretch.start <= event.at <= stretch.end)
        return self._span(
            self._id(f"{name} {stretch.index}"),
            parent,
            name,
            (stretch.start, stretch.end),
            attributes,
            events=kept,
        )

    def _span(
        self,
        span_id: str,
        parent: str | None,
        name: str,
        times: tuple[int, int],
        attributes: Mapping[str, Value | None],
        *,
        error: str | None = None,
        events: tuple[Event, ...] = (),
    ) -> Span:
        return Span(
            trace_id=trace_id_of(self._life.record_id),
            span_id=span_id,
            parent_id=parent,
            name=name,
            start=times[0],
            end=times[1],
            attributes=_named(attributes),
            error=error,
            events=events,
        )

    def _id(self, place: str) -> str:
        return _digest(self._life.record_id, place)[:16]


def _digest(record_id: str, place: str) -> str:
    return hashlib.sha256(f"tallybook\0{record_id}\0{place}".encode()).hexdigest()


def _named(attributes: Mapping[str, Value | None]) -> dict[str, Value]:
    return {_PREFIX + name: value for name, value in attributes.items() if value is not None}


def _went_wrong(attempt: Attempt) -> bool:
    return attempt.disposition not in (None, "succeeded")


def _error_of(attempt: Attempt) -> str | None:
    return (attempt.failure_class or attempt.disposition) if _went_wrong(attempt) else None


def _attempt_attributes(attempt: Attempt) -> dict[str, Value | None]:
    return {
        "attempt.ordinal": attempt.ordinal,
        "attempt.path": attempt.recovery_path,
        "attempt.disposition": attempt.disposition,
        "attempt.failure_class": attempt.failure_class,
        "attempt.input_tokens": attempt.input_tokens,
        "attempt.output_tokens": attempt.output_tokens,
        "batch": attempt.batch_id,
        "provider": attempt.provider,
        "provider.mode": attempt.mode,
        "provider.job": attempt.provider_job_id,
        "model": attempt.model,
        "model.revision": attempt.model_revision,
    }


def _newest(reviews: Sequence[Review], at: int) -> Review | None:
    """The review that was opened last when a record began to wait for one."""
    found = [one for one in reviews if one.kind == "findings" and one.opened_at <= at]
    return max(found, key=lambda one: one.opened_at, default=None)


def _taken(review: Review) -> list[Event]:
    return [] if review.taken_at is None else [Event("taken", review.taken_at)]


def _within(deliveries: Sequence[Delivery], stretch: _Stretch) -> list[Delivery]:
    return [one for one in deliveries if stretch.start <= one.at <= stretch.end]


def _delivered(delivery: Delivery) -> Event:
    attributes: dict[str, Value | None] = {
        "operation": delivery.operation,
        "promotion": delivery.promotion,
        "disposition": delivery.disposition,
    }
    return Event("delivered", delivery.at, _named(attributes))
