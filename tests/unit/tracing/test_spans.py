"""A life as spans: which there are, and what holds of any life."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from pipeline_assets.tracing.life import (
    ENDS,
    Attempt,
    BatchStep,
    Delivery,
    Life,
    Review,
    Step,
    episodes,
)
from pipeline_assets.tracing.otlp_json import LineUnreadable, decode_line, encode_line
from pipeline_assets.tracing.spans import Span, spans_of
from resources.ledger.transitions import RECORD, START

SECOND = 1_000_000


def attempt(batch_no: int, failure_class: str | None = None) -> Attempt:
    return Attempt(
        ordinal=batch_no,
        recovery_path="first",
        batch_no=batch_no,
        batch_id=f"b{batch_no}",
        provider="openai",
        mode="batch",
        model="m",
        provider_job_id="job",
        disposition="succeeded" if failure_class is None else "retryable_failure",
        failure_class=failure_class,
        model_revision=None,
        input_tokens=7,
        output_tokens=None,
    )


def life_of(
    states: list[tuple[str, int, int | None]],
    attempts: tuple[Attempt, ...] = (),
    batch_steps: dict[int, tuple[BatchStep, ...]] | None = None,
    reviews: tuple[Review, ...] = (),
    deliveries: tuple[Delivery, ...] = (),
) -> Life:
    """A life from (state, second, batch) of each move; its numbers are 10, 20, ..."""
    steps, before = [], START
    for index, (state, second, batch_no) in enumerate(states, start=1):
        steps.append(Step(10 * index, second * SECOND, before, state, batch_no))
        before = state
    return Life(
        record_no=1,
        record_id="w:shop/a.txt@0123456789ab:v-1",
        version="v-1",
        steps=tuple(steps),
        attempts=attempts,
        batch_steps=batch_steps or {},
        reviews=reviews,
        deliveries=deliveries,
    )


def told(spans: list[Span]) -> list[tuple[str, str | None, int, int]]:
    """(name, parent's name, start, end) in seconds."""
    names = {span.span_id: span.name for span in spans}
    return [
        (
            span.name,
            None if span.parent_id is None else names[span.parent_id],
            span.start // SECOND,
            span.end // SECOND,
        )
        for span in spans
    ]


RETRIED = life_of(
    [
        ("queued", 0, 1),
        ("prepared", 1, 1),
        ("submitted", 5, 1),
        ("retry_wait", 60, 1),
        ("prepared", 100, 2),
        ("submitted", 110, 2),
        ("collected", 200, 2),
        ("awaiting_review", 210, 2),
        ("accepted", 300, 2),
        ("published", 310, 2),
    ],
    (attempt(1, "overloaded"), attempt(2)),
    {
        1: (BatchStep(31, 20 * SECOND, "running"), BatchStep(32, 50 * SECOND, "results_available")),
        2: (BatchStep(61, 190 * SECOND, "results_available"),),
    },
    (Review("findings", "accept", 210 * SECOND, 250 * SECOND),),
    (Delivery("publish", 1, "delivered", 310 * SECOND),),
)


def test_the_spans_of_a_retried_record() -> None:
    spans = spans_of(RETRIED)
    assert told(spans) == [
        ("record", None, 0, 310),
        ("prepare", "record", 0, 1),
        ("attempt", "record", 1, 60),
        ("hand over", "attempt", 1, 5),
        ("queue at provider", "attempt", 5, 20),
        ("provider", "attempt", 20, 50),
        ("collect", "attempt", 50, 60),
        ("wait for retry", "record", 60, 100),
        ("attempt", "record", 100, 200),
        ("hand over", "attempt", 100, 110),
        ("provider", "attempt", 110, 190),
        ("collect", "attempt", 190, 200),
        ("accept", "record", 200, 210),
        ("review", "record", 210, 300),
        ("publish", "record", 300, 310),
    ]
    root, first, second = spans[0], spans[2], spans[8]
    assert root.error is None
    assert root.attributes["tallybook.record_id"] == RETRIED.record_id
    assert root.attributes["tallybook.failed"] is True
    assert root.attributes["tallybook.retries"] == 1
    assert (first.error, second.error) == ("overloaded", None)
    assert first.attributes["tallybook.batch"] == "b1"
    assert "tallybook.attempt.output_tokens" not in first.attributes, "unknown is left out"
    review, publish = spans[13], spans[14]
    assert review.attributes["tallybook.review.decision"] == "accept"
    assert [event.name for event in (*review.events, *publish.events)] == ["taken", "delivered"]


def test_a_failed_end_is_an_error() -> None:
    life = life_of(
        [("queued", 0, 1), ("prepared", 0, 1), ("submitted", 1, 1), ("dead_letter", 2, 1)],
        (attempt(1, "refused"),),
    )
    assert [span.error for span in spans_of(life)] == [
        "dead_letter",
        None,
        "refused",
        None,
        None,
    ]


def test_each_end_begins_another_episode() -> None:
    states = [("queued", 0, 1), ("prepared", 1, 1), ("submitted", 2, 1), ("dead_letter", 3, 1)]
    life = life_of([*states, ("prepared", 50, 2), ("submitted", 60, 2), ("collected", 70, 2)])
    assert episodes(life.steps) == [(0, 4), (4, 7)]
    ended = spans_of(life)
    assert {span.attributes["tallybook.episode"] for span in ended if not span.parent_id} == {1}
    everything = spans_of(life, until=100 * SECOND)
    assert everything[: len(ended)] == ended
    second = everything[len(ended)]
    assert (second.start, second.end) == (50 * SECOND, 100 * SECOND)
    assert second.attributes["tallybook.open"] is True
    assert second.trace_id == ended[0].trace_id
    only_second = spans_of(life, until=100 * SECOND, why={life.steps[4].move_no: "slow"})
    assert [span.span_id for span in only_second] == [
        span.span_id for span in everything[len(ended) :]
    ]


def test_a_move_from_end_to_end_takes_no_time() -> None:
    states = [("queued", 0, 1), ("cancelled", 1, 1), ("withdrawn", 90, None)]
    first, *_, last = spans_of(life_of(states))
    assert (first.start, first.end) == (0, SECOND)
    assert (last.name, last.start, last.end) == ("record", 90 * SECOND, 90 * SECOND)


@st.composite
def lives(draw: st.DrawFn) -> Life:
    """Any walk over the legal moves, on a clock that may go back, with any batch moves."""
    state, before, batch_no, at = START, START, 0, 10**15
    states, steps = [], []
    for number in range(draw(st.integers(1, 25))):
        following = sorted(RECORD.get(state, {}))
        if not following:
            break
        before, state = state, draw(st.sampled_from(following))
        if state == "prepared" and before != "submitted":
            batch_no += 1
        at += draw(st.integers(-5000, 10_000)) * 1000
        states.append(state)
        steps.append(Step(10 * number + 10, at, before, state, batch_no or None))
    moments = st.integers(10**15 - 10**10, 10**15 + 10**10)
    batch_steps = {
        number: tuple(
            BatchStep(draw(st.integers(0, 300)), draw(moments), word)
            for word in ("running", "results_available", "reconciling")
            if draw(st.booleans())
        )
        for number in range(1, batch_no + 1)
    }
    return Life(
        record_no=1,
        record_id=draw(st.text(min_size=1).filter(lambda text: text.isprintable())),
        version="v-1",
        steps=tuple(steps),
        attempts=tuple(
            attempt(number, draw(st.sampled_from([None, "refused"])))
            for number in range(1, batch_no + 1)
        ),
        batch_steps=batch_steps,
        reviews=(Review("findings", None, draw(moments), draw(moments)),),
        deliveries=(Delivery("publish", 1, "delivered", draw(moments)),),
    )


def test_a_quality_sample_is_not_the_review_that_a_record_waits_for() -> None:
    life = life_of(
        [("queued", 0, None), ("prepared", 1, 1), ("awaiting_review", 9, 1), ("accepted", 20, 1)],
        reviews=(
            Review("findings", "accept", 9 * SECOND, None),
            Review("quality_sample", "reject", 9 * SECOND, None),
            Review("findings", "correct", 15 * SECOND, None),
        ),
    )
    (review,) = [span for span in spans_of(life, until=30 * SECOND) if span.name == "review"]
    assert review.attributes["tallybook.review.decision"] == "accept"


@given(lives(), st.one_of(st.none(), st.integers(10**15 - 10**10, 10**15 + 10**10)))
def test_spans_nest_and_are_never_negative(life: Life, until: int | None) -> None:
    spans = spans_of(life, until=until)
    known = {span.span_id: span for span in spans}
    assert len(known) == len(spans), "each id once"
    assert spans == spans_of(life, until=until), "the same ids again"
    open_ends = life.steps[-1].to_state not in ENDS
    whole = len(episodes(life.steps))
    roots = [span for span in spans if span.parent_id is None]
    assert len(roots) == whole - (1 if open_ends and until is None else 0)
    for span in spans:
        assert span.start <= span.end
        for event in span.events:
            assert span.start <= event.at <= span.end
        if span.parent_id is not None:
            parent = known[span.parent_id]
            assert spans.index(parent) < spans.index(span)
            assert parent.start <= span.start <= span.end <= parent.end
    for parent in (*roots, *(span for span in spans if span.name == "attempt")):
        inside = [span for span in spans if span.parent_id == parent.span_id]
        # Stages follow each other without a gap: their times add up to the whole.
        assert sum(span.end - span.start for span in inside) == parent.end - parent.start


@given(lives())
def test_a_line_of_spans_reads_back(life: Life) -> None:
    spans = spans_of(life, until=10**15)
    line = encode_line(spans, {"service.name": "tallybook"})
    assert b"\n" not in line
    assert decode_line(line) == spans


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"{}", id="no spans"),
        pytest.param(b'{"resourceSpans": [{"scopeSpans": [{"spans": [{}]}]}]}', id="no ids"),
        pytest.param(
            b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "a", "spanId": "b", '
            b'"name": "n", "startTimeUnixNano": "1", "endTimeUnixNano": "1", "attributes": [], '
            b'"status": "bad"}]}]}]}',
            id="another shape",
        ),
        pytest.param(b"\xff", id="not text"),
    ],
)
def test_another_program_s_line_is_told_from_ours(line: bytes) -> None:
    with pytest.raises(LineUnreadable):
        decode_line(line)
