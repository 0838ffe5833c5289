"""Reconciliation: one disposition an attempt, one account a line, whatever comes back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple, get_args

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_assets.collect.observe import OBSERVED_SCHEMA
from pipeline_assets.collect.reconcile import (
    DIFFERENT,
    DISTRUSTED,
    MISROUTED,
    LineAnomaly,
    Reconciliation,
    reconcile,
)
from pipeline_assets.failures import Disposition

KEY, OTHER, EARLIER = "0123456789ab", "fedcba987654", "a0a0a0a0a0a0"
FIRST, FIRST_RECORD = 101, 500
EARLIER_FIRST, EARLIER_RECORD, EARLIER_COUNT = 11, 503, 5
ANOMALIES = set(get_args(LineAnomaly))


class Line(NamedTuple):
    """A line as `observe` tells it; `custom_id` None is a malformed one."""

    custom_id: str | None
    body: int = 1
    disposition: str = "succeeded"
    failure_class: str | None = None
    file: int = 1
    echo: str | None = None


def line(index: int, body: int = 1, disposition: str = "succeeded", **more: Any) -> Line:
    return Line(f"{KEY}-{index}", body, disposition, **more)


def bad() -> Line:
    return Line(None, 9)


def doc(record_no: int) -> str:
    return f"doc-{record_no}"


def expected(count: int) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "attempt_no": range(FIRST, FIRST + count),
            "record_no": range(FIRST_RECORD, FIRST_RECORD + count),
            "request_digest": ["d"] * count,
            "reference": [doc(FIRST_RECORD + index) for index in range(count)],
        },
        schema={
            "attempt_no": pl.Int64,
            "record_no": pl.Int64,
            "request_digest": pl.String,
            "reference": pl.String,
        },
    )


def earlier() -> pl.DataFrame:
    """Attempts of the batch before; a batch of more than three has some of their records."""
    indexes = range(EARLIER_COUNT)
    return pl.DataFrame(
        {
            "custom_id": [f"{EARLIER}-{index}" for index in indexes],
            "attempt_no": [EARLIER_FIRST + index for index in indexes],
            "record_no": [EARLIER_RECORD + index for index in indexes],
            "reference": [doc(EARLIER_RECORD + index) for index in indexes],
        }
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
            "answer": f"answer {entry.body}" if entry.disposition == "succeeded" else None,
            "reference": entry.echo,
            "body": entry.body,
            "model_revision": "m",
            "input_tokens": entry.body,
            "output_tokens": None,
        }
        for number, entry in enumerate(lines)
    ]
    return pl.DataFrame(rows, schema=OBSERVED_SCHEMA)


def run(count: int, lines: list[Line], *, late: bool = False, trust: bool = True) -> Reconciliation:
    return reconcile(
        expected(count),
        observed(lines),
        KEY,
        FIRST,
        earlier=earlier() if late else None,
        count_identical_once=trust,
    )


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
    assert row["diagnostics"] == DIFFERENT


def test_a_missing_result_is_not_inferred_as_success() -> None:
    row = run(1, []).dispositions.row(0, named=True)
    assert (row["disposition"], row["failure_class"]) == ("retryable_failure", GONE)


def test_the_first_of_equal_lines_counts() -> None:
    result = run(1, [bad(), line(0), line(0)])
    assert result.dispositions["line"].to_list() == [1]
    assert result.answers.rows() == [(FIRST, 500, "answer 1")]


def test_the_first_file_comes_before_the_first_line() -> None:
    row = run(1, [line(0, file=2), line(0, file=1)]).dispositions.row(0, named=True)
    assert (row["result_file_no"], row["line"]) == (1, 1)


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
    assert set(dispositions["disposition"]) <= set(get_args(Disposition))
    failed = dispositions.filter(pl.col("disposition") != "succeeded")
    assert failed["failure_class"].null_count() == 0
    succeeded = dispositions.filter(pl.col("disposition") == "succeeded")
    assert result.answers["attempt_no"].to_list() == succeeded["attempt_no"].to_list()
    assert result.answers["answer"].null_count() == 0
    places = result.lines.select("result_file_no", "line").rows()
    assert places == sorted((entry.file, number) for number, entry in enumerate(lines))
    told = set(result.lines["anomaly"].drop_nulls())
    assert told <= ANOMALIES
    counted = {name: total for name, total in result.anomalies.items() if name != GONE}
    assert counted == dict(result.lines["anomaly"].drop_nulls().value_counts().iter_rows())
    assert_own_and_late(result, wanted)


def assert_own_and_late(result: Reconciliation, wanted: pl.DataFrame) -> None:
    """A line decides one attempt, and alone: its own, or a late one."""
    own = result.dispositions.filter(pl.col("line").is_not_null())
    used = pl.concat(
        [own.select("line", "attempt_no"), result.late.select("line", "attempt_no")]
    ).sort("line")
    speaking = result.lines.filter(
        pl.col("anomaly").is_null() | pl.col("anomaly").is_in(["misrouted", "late_result"])
    )
    assert used.equals(speaking.select("line", "attempt_no").sort("line"))
    assert used["attempt_no"].is_unique().all()
    assert used["attempt_no"].null_count() == 0
    assert not set(result.late["attempt_no"]) & set(wanted["attempt_no"])
    plain = result.lines.filter(pl.col("anomaly").is_null())
    assert set(plain["attempt_no"]) <= set(wanted["attempt_no"])
    succeeded = result.late.filter(pl.col("disposition") == "succeeded")
    assert succeeded["answer"].null_count() == 0
    assert result.late["answer"].count() == succeeded.height
    assert result.late["disposition"].null_count() == 0


IN_TIME, LATE = f"{KEY}-0", f"{EARLIER}-0"


@pytest.mark.parametrize(
    ("echo", "outcome"),
    [
        pytest.param(doc(FIRST_RECORD), OK, id="own"),
        pytest.param(None, OK, id="none"),
        pytest.param("doc-of-nobody", OK, id="of-nobody"),
        pytest.param("", OK, id="empty"),
        pytest.param(doc(FIRST_RECORD + 1), "misrouted", id="of-this-batch"),
        pytest.param(doc(EARLIER_RECORD), "misrouted", id="of-an-earlier-attempt"),
    ],
)
def test_an_echo(echo: str | None, outcome: str) -> None:
    result = run(2, [line(0, echo=echo), line(1)], late=True)
    assert classes(result) == [outcome, OK]
    assert result.anomalies == ({} if outcome == OK else {"misrouted": 1})
    assert result.lines["anomaly"].to_list() == [None if outcome == OK else "misrouted", None]
    answered = [FIRST, FIRST + 1] if outcome == OK else [FIRST + 1]
    assert result.answers["attempt_no"].to_list() == answered


def test_a_misrouted_line_is_named_and_counted_but_its_answer_is_dropped() -> None:
    result = run(2, [line(1), line(0, echo=doc(FIRST_RECORD + 1))])
    row = result.dispositions.row(0, named=True)
    assert (row["disposition"], row["failure_class"]) == ("retryable_failure", "misrouted")
    assert row["diagnostics"] == MISROUTED.diagnostics
    assert doc(FIRST_RECORD + 1) not in row["diagnostics"]
    assert (row["line"], row["input_tokens"], row["model_revision"]) == (1, 1, "m")
    assert result.answers.rows() == [(FIRST + 1, FIRST_RECORD + 1, "answer 1")]


def test_only_a_success_is_misrouted() -> None:
    # The echo of a failure is nobody's word: there is no answer that could be put anywhere.
    failed = line(
        0, disposition="permanent_failure", failure_class="refused", echo=doc(FIRST_RECORD + 1)
    )
    result = run(2, [failed, line(1)])
    assert classes(result) == ["refused", OK]
    assert result.anomalies == {}


def test_answers_to_attempts_without_a_reference_are_not_misrouted() -> None:
    result = reconcile(
        expected(2).drop("reference"),
        observed([line(0, echo=doc(FIRST_RECORD + 1)), line(1), Line(LATE, echo=doc(504))]),
        KEY,
        FIRST,
        earlier=earlier(),
    )
    assert classes(result) == [OK, OK]
    # The earlier attempts' are known all the same.
    assert result.late["failure_class"].to_list() == ["misrouted"]


@pytest.mark.parametrize(
    ("lines", "late", "anomalies"),
    [
        pytest.param([Line(LATE)], [("succeeded", None)], {"late_result": 1}, id="success"),
        pytest.param(
            [Line(LATE, echo=doc(EARLIER_RECORD))],
            [("succeeded", None)],
            {"late_result": 1},
            id="own-echo",
        ),
        pytest.param(
            [Line(LATE, disposition="permanent_failure", failure_class="refused")],
            [("permanent_failure", "refused")],
            {"late_result": 1},
            id="failure",
        ),
        pytest.param(
            [Line(LATE), Line(LATE, file=2)],
            [("succeeded", None)],
            {"late_result": 1, "duplicate_identical": 1},
            id="twice",
        ),
        pytest.param(
            [Line(LATE, 1), Line(LATE, 2)], [], {"duplicate_conflict": 2}, id="two-bodies"
        ),
        pytest.param(
            [Line(LATE, echo=doc(EARLIER_RECORD + 1))],
            [("retryable_failure", "misrouted")],
            {"misrouted": 1},
            id="echo-of-another-earlier-one",
        ),
        pytest.param(
            [Line(LATE, echo=doc(FIRST_RECORD))],
            [("retryable_failure", "misrouted")],
            {"misrouted": 1},
            id="echo-of-this-batch",
        ),
        pytest.param(
            [Line(f"{EARLIER}-{EARLIER_COUNT}")], [], {"unknown_id": 1}, id="of-no-attempt"
        ),
    ],
)
def test_late_results(
    lines: list[Line], late: list[tuple[str, str | None]], anomalies: dict[str, int]
) -> None:
    result = run(1, [line(0), *lines], late=True)
    assert result.late.select("disposition", "failure_class").rows() == late
    assert result.anomalies == anomalies
    assert classes(result) == [OK]
    assert_whole(result, 1, [line(0), *lines])
    # Without knowing the earlier attempts their lines are anybody's.
    assert run(1, [line(0), *lines]).anomalies == {"unknown_id": len(lines)}


def test_a_late_result_has_its_attempt_its_answer_and_its_cost() -> None:
    result = run(1, [line(0), Line(f"{EARLIER}-3", file=2)], late=True)
    assert result.lines["attempt_no"].to_list() == [FIRST, EARLIER_FIRST + 3]
    assert result.late.rows(named=True) == [
        {
            "result_file_no": 2,
            "line": 1,
            "attempt_no": EARLIER_FIRST + 3,
            "record_no": EARLIER_RECORD + 3,
            "disposition": "succeeded",
            "failure_class": None,
            "diagnostics": "",
            "answer": "answer 1",
            "model_revision": "m",
            "input_tokens": 1,
            "output_tokens": None,
            "cached_tokens": None,
        }
    ]
    assert result.answers["attempt_no"].to_list() == [FIRST]


def test_a_late_result_is_no_answer_to_the_attempt_of_now() -> None:
    result = run(4, [line(0), line(1), line(2), Line(LATE)], late=True)
    assert result.dispositions["record_no"].to_list()[3] == EARLIER_RECORD
    assert classes(result) == [OK, OK, OK, GONE]
    assert result.anomalies == {"late_result": 1, GONE: 1}


@pytest.mark.parametrize(
    ("lines", "diagnostics"),
    [
        pytest.param([line(0), line(0)], DISTRUSTED, id="equal"),
        pytest.param([line(0), line(0, file=2)], DISTRUSTED, id="equal-in-two-files"),
        pytest.param([line(0, 1), line(0, 2)], DIFFERENT, id="different"),
        pytest.param([line(0, 1), line(0, 1), line(0, 2)], DIFFERENT, id="equal-and-different"),
    ],
)
def test_a_workload_may_trust_no_repeated_answer(lines: list[Line], diagnostics: str) -> None:
    result = run(2, [*lines, line(1)], trust=False)
    assert classes(result) == [CONFLICT, OK]
    assert result.dispositions["diagnostics"].to_list() == [diagnostics, ""]
    assert result.anomalies == {CONFLICT: len(lines)}
    assert result.answers["attempt_no"].to_list() == [FIRST + 1]


def test_no_earlier_attempts() -> None:
    result = reconcile(expected(1), observed([Line(LATE)]), KEY, FIRST, earlier=earlier().clear())
    assert result.anomalies == {"unknown_id": 1, GONE: 1}
    assert result.late.is_empty()


def test_two_custom_ids_alike_among_earlier_attempts_are_refused() -> None:
    twice = pl.concat([earlier(), earlier()])
    with pytest.raises(pl.exceptions.ComputeError):
        reconcile(expected(1), observed([Line(LATE)]), KEY, FIRST, earlier=twice)


@st.composite
def batches(draw: st.DrawFn) -> tuple[int, list[Line]]:
    """Anything that may come back, without a thought of what is likely."""
    count = draw(st.integers(0, 6))
    ids = st.one_of(
        st.none(),
        st.integers(0, 8).map(lambda index: f"{KEY}-{index}"),
        st.integers(0, 8).map(lambda index: f"{EARLIER}-{index}"),
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
    echoes = st.none() | st.integers(FIRST_RECORD, FIRST_RECORD + 9).map(doc)
    lines = draw(
        st.lists(st.tuples(ids, st.integers(0, 2), kinds, st.integers(1, 2), echoes), max_size=12)
    )
    return count, [Line(name, body, *kind, file, echo) for name, body, kind, file, echo in lines]


@given(batches(), st.booleans(), st.booleans())
def test_every_attempt_and_every_line_is_accounted_for(
    batch: tuple[int, list[Line]], late: bool, trust: bool
) -> None:
    count, lines = batch
    result = run(count, lines, late=late, trust=trust)
    assert_whole(result, count, lines)
    # The same decision, made one attempt at a time.
    known = set(expected(count)["reference"]) | (set(earlier()["reference"]) if late else set())
    names = {f"{KEY}-{index}": doc(FIRST_RECORD + index) for index in range(count)}
    decided = [decide(lines, name, own, known, trust) for name, own in names.items()]
    assert classes(result) == [outcome or GONE for outcome in decided]
    if late:
        rows = zip(earlier()["custom_id"], earlier()["reference"], strict=True)
        outcomes = [decide(lines, name, own, known, trust) for name, own in rows]
        attempts = zip(earlier()["attempt_no"], outcomes, strict=True)
        told = result.late.select("attempt_no", outcome=pl.coalesce("failure_class", "disposition"))
        assert dict(told.iter_rows()) == {
            attempt: outcome for attempt, outcome in attempts if outcome not in (None, CONFLICT)
        }


def decide(lines: list[Line], name: str, own: str, known: set[str], trust: bool) -> str | None:
    """What the lines of one attempt mean; None if there is none."""
    mine = sorted((entry for entry in lines if entry.custom_id == name), key=lambda e: e.file)
    if not mine:
        return None
    if len({entry.body for entry in mine}) > 1 or (len(mine) > 1 and not trust):
        return CONFLICT
    first = mine[0]
    if first.disposition == OK and first.echo not in (None, own) and first.echo in known:
        return "misrouted"
    return first.failure_class or first.disposition


class Planted(NamedTuple):
    """Lines with what must be reported of them.

    `anomalies` has an entry a line; `outcomes` one an attempt of the batch; `late` one a late
    result.
    """

    attempts: int
    lines: list[Line]
    anomalies: list[str | None]
    outcomes: list[str]
    late: dict[int, str]


KINDS = ("answered", "mute", "stranger", "failed", "gone", "twice", "conflict", "misrouted", "both")


def lines_of(kind: str, name: str, own: str, body: int) -> tuple[list[Line], list[str], str]:
    """The lines of one attempt, the anomaly of each, and the attempt's outcome.

    The anomaly is empty for a plain line, and `twin` for the later ones of equal lines.
    """
    other = next(text for text in earlier()["reference"] if text != own)
    good, astray = Line(name, body, echo=own), Line(name, body, echo=other)
    failed = Line(name, body, "retryable_failure", "transport")
    table: dict[str, tuple[list[Line], list[str], str]] = {
        "answered": ([good], [""], OK),
        "mute": ([good._replace(echo=None)], [""], OK),
        "stranger": ([good._replace(echo="doc-of-nobody")], [""], OK),
        "failed": ([failed], [""], "transport"),
        "gone": ([], [], GONE),
        "twice": ([good, good, good], ["", "twin", "twin"], OK),
        "conflict": ([good, failed._replace(body=body + 1)], [CONFLICT, CONFLICT], CONFLICT),
        "misrouted": ([astray], ["misrouted"], "misrouted"),
        "both": ([astray, astray], ["misrouted", "twin"], "misrouted"),
    }
    return table[kind]


@st.composite
def planted(draw: st.DrawFn) -> Planted:
    """A manifest and lines, each anomaly planted and counted."""
    kinds = draw(st.lists(st.sampled_from(KINDS), max_size=6))
    late_kinds = draw(st.lists(st.sampled_from(KINDS), max_size=EARLIER_COUNT))
    entries: list[tuple[Line, str]] = []
    outcomes: list[str] = []
    for index, kind in enumerate(kinds):
        own = doc(FIRST_RECORD + index)
        lines, told, outcome = lines_of(kind, f"{KEY}-{index}", own, 10 + 2 * index)
        entries += zip(lines, told, strict=True)
        outcomes.append(outcome)
    late: dict[int, str] = {}
    for index, kind in enumerate(late_kinds):
        own = doc(EARLIER_RECORD + index)
        lines, told, outcome = lines_of(kind, f"{EARLIER}-{index}", own, 110 + 2 * index)
        entries += zip(lines, [name or "late_result" for name in told], strict=True)
        if outcome not in (GONE, CONFLICT):
            late[EARLIER_FIRST + index] = outcome
    for number in range(draw(st.integers(0, 3))):
        entries.append((bad(), "malformed_line"))
        entries.append((Line(f"{OTHER}-{number}", 200 + number), "unknown_id"))
    ordered = [
        (entry._replace(file=draw(st.integers(1, 2))), told)
        for entry, told in draw(st.permutations(entries))
    ]
    ordered.sort(key=lambda pair: pair[0].file)
    return Planted(
        len(kinds), [entry for entry, _ in ordered], one_of_twins(ordered), outcomes, late
    )


def one_of_twins(ordered: Sequence[tuple[Line, str]]) -> list[str | None]:
    """Of equal lines the first one has what they are without each other, whichever it is."""
    alone = {(entry.custom_id, entry.body): told for entry, told in ordered if told != "twin"}
    twins = {(entry.custom_id, entry.body) for entry, told in ordered if told == "twin"}
    seen: set[tuple[str | None, int]] = set()
    found: list[str | None] = []
    for entry, told in ordered:
        key = (entry.custom_id, entry.body)
        name = told if key not in twins else "duplicate_identical" if key in seen else alone[key]
        found.append(name or None)
        seen.add(key)
    return found


@given(planted())
def test_exactly_the_planted_anomalies(batch: Planted) -> None:
    result = run(batch.attempts, batch.lines, late=True)
    assert_whole(result, batch.attempts, batch.lines)
    assert classes(result) == batch.outcomes
    assert result.lines.sort("line")["anomaly"].to_list() == batch.anomalies
    counts = Counter(name for name in batch.anomalies if name)
    counts.update({GONE: batch.outcomes.count(GONE)})
    assert result.anomalies == {name: count for name, count in counts.items() if count}
    told = result.late.select("attempt_no", outcome=pl.coalesce("failure_class", "disposition"))
    assert dict(told.iter_rows()) == batch.late


def parts(result: Reconciliation) -> tuple[object, ...]:
    """Everything of a result, comparable."""
    frames = (result.dispositions, result.lines, result.answers, result.late)
    return (*(frame.sort(frame.columns).rows() for frame in frames), result.anomalies)


@given(planted(), st.randoms(use_true_random=False))
def test_the_order_of_rows_changes_nothing(batch: Planted, rng: Any) -> None:
    def shuffled(frame: pl.DataFrame) -> pl.DataFrame:
        order = list(range(frame.height))
        rng.shuffle(order)
        return frame[order]

    plain = run(batch.attempts, batch.lines, late=True)
    mixed = reconcile(
        shuffled(expected(batch.attempts)),
        shuffled(observed(batch.lines)),
        KEY,
        FIRST,
        earlier=shuffled(earlier()),
    )
    assert parts(mixed) == parts(plain)
    assert mixed.lines.equals(plain.lines)
    assert mixed.late.equals(plain.late)


@given(planted(), st.randoms(use_true_random=False))
def test_the_order_in_the_files_changes_only_places(batch: Planted, rng: Any) -> None:
    def without_places(result: Reconciliation) -> tuple[object, ...]:
        place = ("result_file_no", "line", "line_offset", "line_length")
        frames = (result.dispositions, result.lines, result.answers, result.late)
        rows = [frame.drop(place, strict=False) for frame in frames]
        return (*(Counter(frame.iter_rows()) for frame in rows), result.anomalies)

    lines = [entry._replace(file=3 - entry.file) for entry in batch.lines]
    rng.shuffle(lines)
    mixed = run(batch.attempts, lines, late=True)
    assert without_places(mixed) == without_places(run(batch.attempts, batch.lines, late=True))


@given(planted(), st.sets(st.integers(0, 20)))
def test_lines_under_other_ids_change_nothing(batch: Planted, numbers: set[int]) -> None:
    names = sorted({str(entry.custom_id) for entry in batch.lines})
    chosen = {name for number, name in enumerate(names) if number in numbers}
    whole = observed(batch.lines)
    left = pl.col("custom_id").is_in(sorted(chosen)).fill_null(value=False)
    first, second = (
        reconcile(expected(batch.attempts), whole.filter(part), KEY, FIRST, earlier=earlier())
        for part in (left, ~left)
    )
    both = run(batch.attempts, batch.lines, late=True)
    mine = pl.Series(
        [f"{KEY}-{index}" in chosen for index in range(batch.attempts)], dtype=pl.Boolean
    )
    assert both.dispositions.filter(mine).equals(first.dispositions.filter(mine))
    assert both.dispositions.filter(~mine).equals(second.dispositions.filter(~mine))
    assert both.late.equals(pl.concat([first.late, second.late]).sort("result_file_no", "line"))
    added = Counter(first.anomalies) + Counter(second.anomalies)
    lost = both.anomalies.get(GONE, 0)
    assert {**added, GONE: lost} == {**both.anomalies, GONE: lost}


@given(planted(), st.booleans())
def test_reconciling_what_was_chosen_gives_the_same(batch: Planted, trust: bool) -> None:
    result = run(batch.attempts, batch.lines, late=True, trust=trust)
    chosen = pl.concat([result.dispositions["line"].drop_nulls(), result.late["line"]])
    again = reconcile(
        expected(batch.attempts),
        observed(batch.lines).filter(pl.col("line").is_in(chosen.implode())),
        KEY,
        FIRST,
        earlier=earlier(),
        count_identical_once=trust,
    )
    answered = pl.col("line").is_not_null()
    assert again.dispositions.filter(answered).equals(result.dispositions.filter(answered))
    assert again.answers.equals(result.answers)
    assert again.late.equals(result.late)
    assert set(again.anomalies) <= {"late_result", "misrouted", GONE}
