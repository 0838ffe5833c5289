"""Reconciliation: one disposition an attempt, one account a line, whatever comes back."""

from __future__ import annotations

from typing import Any, NamedTuple

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_assets.collect.observe import OBSERVED_SCHEMA
from pipeline_assets.collect.reconcile import Reconciliation, reconcile

KEY, OTHER = "0123456789ab", "fedcba987654"
FIRST = 101
ANOMALIES = {"malformed_line", "unknown_id", "duplicate_conflict", "duplicate_identical"}


class Line(NamedTuple):
    """A line as `observe` tells it; `custom_id` None is a malformed one."""

    custom_id: str | None
    body: int = 1
    disposition: str = "succeeded"
    failure_class: str | None = None
    file: int = 1


def line(index: int, body: int = 1, disposition: str = "succeeded", **more: Any) -> Line:
    return Line(f"{KEY}-{index}", body, disposition, **more)


def bad() -> Line:
    return Line(None, 9)


def expected(count: int) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "attempt_no": range(FIRST, FIRST + count),
            "record_no": range(500, 500 + count),
            "request_digest": ["d"] * count,
        },
        schema={"attempt_no": pl.Int64, "record_no": pl.Int64, "request_digest": pl.String},
    )


def observed(lines: list[Line]) -> pl.DataFrame:
    rows = [
        {
            "result_file_no": entry.file,
            "line": number,
            "line_offset": number * 10,
            "line_length": 9,
            "custom_id": entry.custom_id,
            "disposition": None if entry.custom_id is None else entry.disposition,
            "failure_class": entry.failure_class,
            "diagnostics": "",
            "answer": f"answer {number}" if entry.disposition == "succeeded" else None,
            "body": entry.body,
            "model_revision": "m",
            "input_tokens": number,
            "output_tokens": None,
        }
        for number, entry in enumerate(lines)
    ]
    return pl.DataFrame(rows, schema=OBSERVED_SCHEMA)


def run(count: int, lines: list[Line]) -> Reconciliation:
    return reconcile(expected(count), observed(lines), KEY, FIRST)


def classes(result: Reconciliation) -> list[str]:
    """Each attempt's failure class, or its disposition where it has none."""
    frame = result.dispositions
    return frame.select(pl.coalesce("failure_class", "disposition"))["failure_class"].to_list()


OK = "succeeded"
GONE = "missing_result"
CONFLICT = "duplicate_conflict"


@pytest.mark.parametrize(
    ("lines", "attempts", "anomalies"),
    [
        pytest.param([line(0), line(1)], [OK, OK], {}, id="all-there"),
        pytest.param([line(1), line(0)], [OK, OK], {}, id="out-of-order"),
        pytest.param([line(0)], [OK, GONE], {GONE: 1}, id="one-missing"),
        pytest.param([], [GONE, GONE], {GONE: 2}, id="nothing-came"),
        pytest.param(
            [line(0), line(1), line(2)], [OK, OK], {"unknown_id": 1}, id="index-beyond-the-batch"
        ),
        pytest.param(
            [line(0), Line(f"{OTHER}-1")],
            [OK, GONE],
            {"unknown_id": 1, GONE: 1},
            id="id-of-another-batch",
        ),
        pytest.param(
            [line(0), line(1), line(1)], [OK, OK], {"duplicate_identical": 1}, id="same-line-twice"
        ),
        pytest.param(
            [line(0), line(1), line(1, file=2)],
            [OK, OK],
            {"duplicate_identical": 1},
            id="same-line-in-two-files",
        ),
        pytest.param(
            [line(0), line(1, 1), line(1, 2)], [OK, CONFLICT], {CONFLICT: 2}, id="two-bodies"
        ),
        pytest.param(
            [line(1, 1), line(0), line(1, 1), line(1, 2)],
            [OK, CONFLICT],
            {CONFLICT: 3},
            id="two-equal-and-a-third",
        ),
        pytest.param(
            [line(0), line(1, 1), line(1, 2, "retryable_failure", failure_class="server_error")],
            [OK, CONFLICT],
            {CONFLICT: 2},
            id="answer-and-error",
        ),
        pytest.param(
            [line(0), bad(), line(1)], [OK, OK], {"malformed_line": 1}, id="one-malformed-line"
        ),
        pytest.param(
            [line(0), bad(), bad()],
            [OK, GONE],
            {"malformed_line": 2, GONE: 1},
            id="malformed-instead-of-an-answer",
        ),
        pytest.param(
            [line(0, disposition="expired", failure_class="expired"), line(1)],
            ["expired", OK],
            {},
            id="expired",
        ),
        *(
            pytest.param(
                [line(0), line(1), Line(text)], [OK, OK], {"unknown_id": 1}, id=f"id-{text!a}"
            )
            for text in ("", "1", KEY, f"{KEY}-01", f"{KEY}--1", f"{KEY}-1\n", "x" * 300, "\0")
        ),
    ],
)
def test_reconcile(lines: list[Line], attempts: list[str], anomalies: dict[str, int]) -> None:
    result = run(len(attempts), lines)
    assert classes(result) == attempts
    assert result.anomalies == anomalies
    assert list(result.anomalies) == sorted(result.anomalies)
    assert_whole(result, len(attempts), lines)


def test_a_conflict_keeps_nothing_of_either_line() -> None:
    row = run(1, [line(0, 1), line(0, 2)]).dispositions.row(0, named=True)
    assert row["disposition"] == "permanent_failure"
    assert (row["line"], row["model_revision"], row["input_tokens"]) == (None, None, None)
    assert "neither is trusted" in row["diagnostics"]


def test_a_missing_result_is_not_inferred_as_success() -> None:
    row = run(1, []).dispositions.row(0, named=True)
    assert (row["disposition"], row["failure_class"]) == ("retryable_failure", GONE)


def test_the_first_of_equal_lines_counts() -> None:
    result = run(1, [bad(), line(0), line(0)])
    assert result.dispositions["line"].to_list() == [1]
    assert result.answers.rows() == [(FIRST, 500, "answer 1")]


def test_a_batch_without_attempts() -> None:
    result = run(0, [line(0), bad()])
    assert result.dispositions.is_empty()
    assert result.anomalies == {"malformed_line": 1, "unknown_id": 1}


def assert_whole(result: Reconciliation, count: int, lines: list[Line]) -> None:
    """What must hold whatever came back."""
    dispositions = result.dispositions
    wanted = expected(count)
    assert dispositions["attempt_no"].to_list() == wanted["attempt_no"].to_list()
    assert dispositions["record_no"].to_list() == wanted["record_no"].to_list()
    assert dispositions["disposition"].null_count() == 0
    failed = dispositions.filter(pl.col("disposition") != "succeeded")
    assert failed["failure_class"].null_count() == 0
    succeeded = dispositions.filter(pl.col("disposition") == "succeeded")
    assert result.answers["attempt_no"].to_list() == succeeded["attempt_no"].to_list()
    assert result.answers["answer"].null_count() == 0
    places = result.lines.select("result_file_no", "line").sort("line").rows()
    assert places == [(entry.file, number) for number, entry in enumerate(lines)]
    told = set(result.lines["anomaly"].drop_nulls())
    assert told <= ANOMALIES
    counted = {name: total for name, total in result.anomalies.items() if name != GONE}
    assert counted == dict(result.lines["anomaly"].drop_nulls().value_counts().iter_rows())
    plain = result.lines.filter(pl.col("anomaly").is_null())
    assert plain["attempt_no"].is_unique().all(), "a line decides one attempt, and alone"
    assert plain["attempt_no"].null_count() == 0
    chosen = dispositions.filter(pl.col("line").is_not_null()).sort("line")
    assert chosen["line"].to_list() == plain.sort("line")["line"].to_list()


@st.composite
def batches(draw: st.DrawFn) -> tuple[int, list[Line]]:
    count = draw(st.integers(0, 6))
    ids = st.one_of(
        st.none(),
        st.integers(0, 8).map(lambda index: f"{KEY}-{index}"),
        st.integers(0, 8).map(lambda index: f"{OTHER}-{index}"),
        st.text(max_size=4),
    )
    kinds = st.sampled_from(
        [
            ("succeeded", None),
            ("retryable_failure", "transport"),
            ("permanent_failure", "refused"),
            ("expired", "expired"),
            ("cancelled", "cancelled"),
        ]
    )
    lines = draw(st.lists(st.tuples(ids, st.integers(0, 2), kinds, st.integers(1, 2)), max_size=12))
    return count, [Line(name, body, *kind, file) for name, body, kind, file in lines]


@given(batches())
def test_every_attempt_and_every_line_is_accounted_for(batch: tuple[int, list[Line]]) -> None:
    count, lines = batch
    result = run(count, lines)
    assert_whole(result, count, lines)
    # The same decision, made one attempt at a time.
    for index, found in enumerate(classes(result)):
        own = [entry for entry in lines if entry.custom_id == f"{KEY}-{index}"]
        if not own:
            assert found == GONE
        elif len({entry.body for entry in own}) > 1:
            assert found == CONFLICT
        else:
            ordered = sorted(own, key=lambda entry: entry.file)
            assert found == (ordered[0].failure_class or ordered[0].disposition)
