"""What attempts are charged, read from the ledger: which of them cost tokens, which nobody knows.

Belongs here: the one rule of what a stored result means for money, as SQL, and the statements that
group or list by it. Does not belong here: rates (`rates.py`) and sums in money (`account.py`,
`totals.py`).

The key of a charge is the attempt, that is (batch, record, attempt). An attempt has at most one
disposition, and its tokens are one charge. A line that came in after that for the same attempt is
another answer, made by another run of the request, and one more charge; unless it is the same line
delivered again (`repeats.py`), which is charged once. Reading the same files again writes no row,
so it charges nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl
from sqlalchemy import Connection, select

from pipeline_assets.costs.repeats import NO_REPEATS, Repeats, as_condition
from pipeline_assets.slices import LANGUAGES, MEDIUM_PAGES, SHORT_PAGES, SLICE_FACTS
from resources.ledger.engine import Ledger
from resources.ledger.schema import batches

TOKENS = "tokens"
"""It reports its tokens; they are charged."""
NOTHING = "nothing"
"""Nothing was run, or what was run is not paid: known, and nought."""
NOT_SETTLED = "not_settled"
NO_ANSWER = "no_answer"
WITHOUT_USAGE = "answer_without_usage"
IMPOSSIBLE = "impossible_usage"
CONFLICT = "conflicting_answers"
GIVEN_UP = "submission_given_up"
CALL_UNANSWERED = "call_without_answer"
PERHAPS_REPEATED = "perhaps_repeated"
CANARY_UNANSWERED = "canary_without_usage"
NOT_KEPT = "canary_usage_not_kept"
PRICE = "price_unknown"
NOT_HANDED_OVER = ("prepared", "cancelled")
"""States of jobs that no provider has; one may have had a job that was given up."""
NO_RESULT = "no result yet"
"""Stands for the failure class of an attempt without a disposition."""
MEANINGS: Mapping[str, str] = {
    NOT_SETTLED: "handed over, and its results are not settled yet",
    NO_ANSWER: "its job was done and no line came back; whether it was run is not known",
    WITHOUT_USAGE: "a model answered, and the answer does not say its tokens",
    IMPOSSIBLE: "the answer says token counts that cannot be",
    CONFLICT: "several different answers under one id; which of them were paid is not known",
    GIVEN_UP: "its submission was given up before it was known whether the provider had it",
    CALL_UNANSWERED: "an online call that may have been paid though no answer was stored",
    PERHAPS_REPEATED: "a further answer, or the same line delivered again: its bytes are gone",
    CANARY_UNANSWERED: "requests of a canary that may have been paid; their tokens are not known",
    NOT_KEPT: "answers to a canary that was judged before its tokens were kept",
    PRICE: "its tokens are known and the price of its model is not",
}
"""Reason why an amount is not known → what it means. None of them counts as nought."""
MODEL_ANSWERED = (
    *("truncated", "content_filtered", "refused"),
    *("malformed_json", "schema_violation", "misrouted"),
)
"""Failure classes by which a model did answer, and is paid, though the answer is of no use."""
SHARD_ATTEMPTS = 100_000
"""Attempts that one statement groups: it bounds what the database sorts in memory."""

CHARGE_SCHEMA = {
    "batch_no": pl.Int64,
    "path": pl.String,
    "again": pl.Int64,
    "late": pl.Int64,
    "class": pl.String,
    "state": pl.String,
    "kind": pl.String,
    "rows": pl.Int64,
    "input": pl.Int64,
    "output": pl.Int64,
    "cached": pl.Int64,
    "longest": pl.Int64,
}
"""A group of charges: `rows` of them, with their tokens; `again` is 0 for a record's first attempt,
`late` 1 for answers beside the disposition, `class` the failure class (empty for a success,
`NO_RESULT` before there is any),
`state` the record's, `kind` `TOKENS`, `NOTHING` or a reason of `MEANINGS`. All prompts of a group
are on the same side of every price step as `longest`. Token sums are of kind `TOKENS` alone."""
LISTED_SCHEMA = {
    "batch_no": pl.Int64,
    "batch_id": pl.String,
    "record_no": pl.Int64,
    "record_id": pl.String,
    "attempt_no": pl.Int64,
    "ordinal": pl.Int64,
    "path": pl.String,
    "late": pl.Int64,
    "class": pl.String,
    "kind": pl.String,
    "input": pl.Int64,
    "output": pl.Int64,
    "cached": pl.Int64,
}
"""One charge, or one attempt that has none; by attempt, answers beside the disposition last."""

_OUT = (
    "('submitting', 'quarantined', 'submitted', 'running', 'results_available', 'reconciling', "
    "'incident')"
)
_NAMED = ",".join(f"'{name}'" for name in MODEL_ANSWERED)


def _kind(row: str, *, line: str, otherwise: str) -> str:
    """The rule for a row with tokens: a disposition, or a late result."""
    return (
        f"WHEN {row}.input_tokens IS NOT NULL AND {row}.output_tokens IS NOT NULL THEN "
        f"CASE WHEN {row}.output_tokens < 0 OR COALESCE({row}.cached_tokens, 0) < 0 "
        f"OR COALESCE({row}.cached_tokens, 0) > {row}.input_tokens "
        f"THEN '{IMPOSSIBLE}' ELSE '{TOKENS}' END "
        f"WHEN {line} AND ({row}.disposition = 'succeeded' OR {row}.input_tokens IS NOT NULL "
        f"OR {row}.output_tokens IS NOT NULL OR {row}.failure_class IN ({_NAMED})) "
        f"THEN '{WITHOUT_USAGE}' {otherwise} ELSE '{NOTHING}' END"
    )


_SUBMISSION_GIVEN_UP = (
    "b.state = 'cancelled' AND EXISTS (SELECT 1 FROM intents i WHERE i.machine = 'batch' "
    "AND i.subject_no = b.batch_no AND i.outcome = 'discarded')"
)
_NOTHING_CAME = (
    "p.line IS NULL AND p.failure_class = 'missing_result' AND NOT EXISTS "
    "(SELECT 1 FROM late_results x WHERE x.attempt_no = a.attempt_no)"
)
# Embedded answers are settled as they are made: nobody is paid for one, whatever it says.
_MAIN_KIND = (
    "CASE WHEN b.mode = 'embedded' THEN CASE WHEN p.input_tokens IS NOT NULL "
    f"AND p.output_tokens IS NOT NULL THEN '{TOKENS}' ELSE '{NOTHING}' END "
    f"WHEN p.attempt_no IS NULL THEN CASE WHEN b.state IN {_OUT} "
    f"THEN '{NOT_SETTLED}' WHEN {_SUBMISSION_GIVEN_UP} THEN '{GIVEN_UP}' ELSE '{NOTHING}' END "
    + _kind(
        "p",
        line="p.line IS NOT NULL",
        otherwise=(
            f"WHEN p.failure_class = 'duplicate_conflict' THEN '{CONFLICT}' "
            f"WHEN {_NOTHING_CAME} THEN '{NO_ANSWER}'"
        ),
    )
)
_LATE_KIND = (
    f"CASE WHEN {{same}} THEN '{NOTHING}' WHEN {{perhaps}} THEN '{PERHAPS_REPEATED}' "
    f"WHEN b.mode = 'embedded' AND l.input_tokens IS NULL THEN '{NOTHING}' "
    + _kind("l", line="1 = 1", otherwise="")
)
_OF_RECORDS = "b.version_no = ? AND a.record_no BETWEEN ? AND ?"
_OF_PART = "b.version_no = ? AND b.batch_no BETWEEN ? AND ?"
_ATTEMPTS = (
    "FROM batches b JOIN attempts a "
    "ON a.attempt_no BETWEEN b.first_attempt_no AND b.last_attempt_no "
    "AND a.batch_no = b.batch_no "
)
_MAIN = (
    "0",
    _MAIN_KIND,
    f"{_ATTEMPTS}LEFT JOIN dispositions p ON p.attempt_no = a.attempt_no",
)
_KNOWN = ",".join(f"'{name}'" for name in LANGUAGES)
# As coarse as slices are (`pipeline_assets/slices.py`): a longest page count of each class, any
# language without a slice of its own under one name.
COARSE_FACTS = (
    "CASE WHEN f.language IS NULL OR f.language = '' THEN '' "
    f"WHEN f.language IN ({_KNOWN}) THEN f.language ELSE 'xx' END AS language, "
    f"CASE WHEN f.page_count <= {SHORT_PAGES} THEN {SHORT_PAGES} "
    f"WHEN f.page_count <= {MEDIUM_PAGES} THEN {MEDIUM_PAGES} "
    f"WHEN f.page_count IS NOT NULL THEN {MEDIUM_PAGES + 1} END AS page_count, "
    "CASE WHEN ' ' || f.notes || ' ' LIKE '% ocr %' THEN 'ocr' ELSE '' END AS notes, "
    "f.partial AS partial"
)
"""The facts of a parse `f` that a slice is named from."""


@dataclass(frozen=True)
class ChargedJob:
    """A batch as its charges need it; times are the ledger's text."""

    no: int
    id: str
    provider: str
    model: str
    mode: str
    state: str
    submitted_at: str | None
    expected_records: int
    input_tokens: int | None
    first_attempt_no: int
    last_attempt_no: int


def jobs_of_version(
    connection: Connection, version_no: int, batch_no: int | None = None, *, first: int = 0
) -> list[ChargedJob]:
    """Every batch of a version, oldest first; one of them alone, or those from a number on."""
    table = batches.c
    wanted = (table.version_no == version_no) & (table.batch_no >= first)
    if batch_no is not None:
        wanted &= table.batch_no == batch_no
    rows = connection.execute(
        select(
            table.batch_no,
            table.batch_id,
            table.provider,
            table.model,
            table.mode,
            table.state,
            table.submitted_at,
            table.expected_records,
            table.input_tokens,
            table.first_attempt_no,
            table.last_attempt_no,
        )
        .where(wanted)
        .order_by(table.batch_no)
    )
    return [ChargedJob(*row) for row in rows]


def shards(
    jobs: Sequence[ChargedJob], steps: Mapping[int, tuple[int, ...]]
) -> Iterator[tuple[list[ChargedJob], tuple[int, ...]]]:
    """Jobs of a version in runs that one statement groups: of the same price steps, not too many.

    Args:
        jobs: oldest first.
        steps: job → prompt lengths beyond which another price holds.
    """
    part: list[ChargedJob] = []
    size = 0
    for job in jobs:
        if part and (
            steps[job.no] != steps[part[0].no] or size + job.expected_records > SHARD_ATTEMPTS
        ):
            yield part, steps[part[0].no]
            part, size = [], 0
        part.append(job)
        size += job.expected_records
    if part:
        yield part, steps[part[0].no]


def grouped(
    connection: Connection,
    ledger: Ledger,
    version_no: int,
    part: Sequence[ChargedJob],
    steps: Sequence[int],
    repeats: Repeats = NO_REPEATS,
    parser_key: str | None = None,
) -> pl.DataFrame:
    """The charges of some batches, added up in the database.

    Args:
        connection: of one moment.
        ledger: the ledger.
        version_no: whose batches they are.
        part: the batches, consecutive ones of the version.
        steps: prompt lengths beyond which another price holds for them.
        repeats: late lines that are no further answer.
        parser_key: whose parses slices are named from; None where nobody asks for slices.

    Returns:
        `CHARGE_SCHEMA`; with a parser key also `SLICE_FACTS`, coarse enough that few differ.
    """
    sliced = parser_key is not None
    schema = CHARGE_SCHEMA | (SLICE_FACTS if sliced else {})
    facts = "".join(f", g.{name}" for name in SLICE_FACTS) if sliced else ""
    keys = f"g.batch_no, g.path, g.again, g.late, g.class, g.state, g.kind{facts}"
    sql = (
        "SELECT g.batch_no, g.path, g.again, g.late, g.class, g.state, g.kind, COUNT(*), "  # noqa: S608
        "COALESCE(SUM(g.input), 0), COALESCE(SUM(g.output), 0), COALESCE(SUM(g.cached), 0), "
        f"COALESCE(MAX(g.input), 0){facts} FROM ("
        f"{_charges('p', _MAIN, steps, sliced=sliced)} UNION ALL "
        f"{_charges('l', _late(repeats), steps, sliced=sliced)}) g GROUP BY {keys}, g.side"
    )
    asked = ([parser_key] if sliced else []) + [version_no, part[0].no, part[-1].no]
    found = ledger.dialect.fetch(connection, sql, schema, asked * 2)
    return found.with_columns(
        pl.when(pl.col("kind") == TOKENS).then(name).otherwise(0).alias(name)
        for name in ("input", "output", "cached")
    )


def listed(
    connection: Connection,
    ledger: Ledger,
    version_no: int,
    first: int,
    last: int,
    repeats: Repeats = NO_REPEATS,
    *,
    by_record: bool = False,
) -> pl.DataFrame:
    """Charges one by one (`LISTED_SCHEMA`).

    Args:
        connection: of one moment.
        ledger: the ledger.
        version_no: whose.
        first: the first batch, or the first record.
        last: the last one.
        repeats: late lines that are no further answer.
        by_record: the range is one of records, and so is the order; else both are of batches and
            attempts.
    """
    of_part = _OF_RECORDS if by_record else _OF_PART
    order = "record_no, attempt_no, late" if by_record else "attempt_no, late"
    columns = (
        "SELECT b.batch_no, b.batch_id, a.record_no AS record_no, r.record_id, "
        "a.attempt_no AS attempt_no, a.ordinal, a.recovery_path, {late} AS late, "
        "COALESCE({row}.failure_class, t.failure_class, ''), {kind}, "
        "{row}.input_tokens, {row}.output_tokens, {row}.cached_tokens {source} "
        "LEFT JOIN retry_decisions t ON t.attempt_no = a.attempt_no "
        "JOIN records r ON r.record_no = a.record_no WHERE {of_part}"
    )
    main, late = (
        columns.format(late=late, row=row, kind=kind, source=source, of_part=of_part)
        for row, (late, kind, source) in (("p", _MAIN), ("l", _late(repeats)))
    )
    return ledger.dialect.fetch(
        connection,
        f"{main} UNION ALL {late} ORDER BY {order}",
        LISTED_SCHEMA,
        (version_no, first, last) * 2,
    )


def calls_without_answer(connection: Connection, ledger: Ledger, version_no: int) -> dict[int, int]:
    """Online calls that may have been paid though no answer was stored: batch → calls."""
    found = ledger.dialect.fetch(
        connection,
        "SELECT g.batch_no, SUM(g.possibly_paid) FROM batches b "
        "JOIN online_groups g ON g.batch_no = b.batch_no WHERE b.version_no = ? "
        "AND g.possibly_paid > 0 GROUP BY g.batch_no",
        {"batch_no": pl.Int64, "calls": pl.Int64},
        (version_no,),
    )
    return dict(found.iter_rows())


def _late(repeats: Repeats) -> tuple[str, str, str]:
    kind = _LATE_KIND.format(
        same=as_condition(repeats.same, "l"), perhaps=as_condition(repeats.perhaps, "l")
    )
    return "1", kind, f"{_ATTEMPTS}JOIN late_results l ON l.attempt_no = a.attempt_no"


def _charges(row: str, of: tuple[str, str, str], steps: Sequence[int], *, sliced: bool) -> str:
    late, kind, source = of
    side = " + ".join(
        f"CASE WHEN {row}.input_tokens > {int(start)} THEN 1 ELSE 0 END" for start in steps
    )
    facts, parses = "", ""
    if sliced:
        facts = f", {COARSE_FACTS}"
        parses = (
            "JOIN records r ON r.record_no = a.record_no "
            "LEFT JOIN parses f ON f.checksum = r.checksum AND f.parser_key = ? "
        )
    return (
        "SELECT b.batch_no, a.recovery_path AS path, "
        f"CASE WHEN a.ordinal > 1 THEN 1 ELSE 0 END AS again, {late} AS late, "
        f"COALESCE({row}.failure_class, t.failure_class, CASE WHEN {row}.disposition IS NULL "
        f"THEN '{NO_RESULT}' ELSE '' END) AS class, s.state, {kind} AS kind, "
        f"{row}.input_tokens AS input, {row}.output_tokens AS output, "
        f"{row}.cached_tokens AS cached, {side or '0'} AS side{facts} {source} "
        "LEFT JOIN retry_decisions t ON t.attempt_no = a.attempt_no "
        f"JOIN record_state s ON s.record_no = a.record_no {parses}WHERE {_OF_PART}"
    )
