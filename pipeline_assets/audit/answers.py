"""What came back, decided again: reconciliation, answers, judged values and the output schema.

Belongs here: reconciling every complete batch once more from its raw results, in memory, and
comparing with what is stored; the frames of answers and values against it; each accepted answer
against the frozen schema. Does not belong here: the decision itself (`collect/reconcile.py`), the
rules that need a document's text, and what was published (`archive.py`).

Lines that came in after a batch was complete changed nothing but their own rows, so attempts that
have one are compared without them. What an erasure blanked cannot be decided again, and is left to
the digests.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace

import polars as pl

from pipeline_assets.audit.findings import Findings
from pipeline_assets.audit.look import Look
from pipeline_assets.collect.evidence import EVIDENCE_DAMAGED, Verified, reconcile_batch
from pipeline_assets.collect.reconcile import Reconciliation
from pipeline_assets.versions import OpenVersion
from pipeline_assets.workloads.frame_checks import FrameBroken
from pipeline_assets.workloads.workload import AnswerInvalid, AnswerMalformed, Decoded, Shard
from resources.artifacts import ArtifactDamaged, ArtifactMissing, ArtifactPruned
from resources.contracts import COLLECTED, STAGING, ContractRefused, FrameContract, read_frame
from resources.ledger.batches import COMPLETE, Batch, find_batches
from resources.ledger.results import DISPOSITION_SCHEMA, RESULT_SCHEMA

AGAIN, ANSWERS, VALUES, SCHEMA = (
    "reconcile.again",
    "answers.collected",
    "values.judged",
    "schema.accepted",
)

FRAME_RULE = "frame"
"""The rule of every workload that checks types, limits and cross-field rules, without the text."""

_JUDGED = {
    "attempt_no": pl.Int64,
    "record_no": pl.Int64,
    "outcome": pl.String,
    "values_digest": pl.String,
}
_SLICE = 5_000
"""Answers that are decoded at once."""


@dataclass(frozen=True)
class _Set:
    """Answers that were collected and judged together: a batch's own, or late ones.

    Attributes:
        name: for people.
        collected: the artifact of the answers; None before they are collected.
        staging: the artifact of the values; None before they are judged.
        own: False for late answers.
    """

    name: str
    collected: str | None
    staging: str | None
    own: bool


def check_answers(look: Look, version: OpenVersion) -> bool:
    """Check every complete batch of a version; returns whether its batches can be read at all."""
    verified = Verified()
    try:
        batches = find_batches(look.context.ledger, version.version_no, COMPLETE)
    except (ValueError, IndexError):
        look.findings.add(
            AGAIN, f"version {version.key}", "batches whose names have no number", "their names"
        )
        return False
    late = look.rows(
        "SELECT l.batch_no, l.late_no, l.collected_artifact, l.staging_artifact "
        "FROM late_answers l JOIN batches b ON b.batch_no = l.batch_no "
        "WHERE b.version_no = ? ORDER BY l.late_no",
        {
            "batch_no": pl.Int64,
            "late_no": pl.Int64,
            "collected": pl.String,
            "staging": pl.String,
        },
        version.version_no,
    )
    for batch in batches:
        erased = _erased_attempts(look, batch)
        outcome = _reconciled(look, version, batch, verified)
        touched = erased
        if outcome is not None:
            touched = _compare_by_either_clock(look, batch, outcome, erased)
        sets = [
            _Set(f"batch {batch.batch_id}", batch.collected_artifact, batch.staging_artifact, True),
            *(
                _Set(f"late answers {row['late_no']}", row["collected"], row["staging"], False)
                for row in late.filter(pl.col("batch_no") == batch.batch_no).iter_rows(named=True)
            ),
        ]
        for answers in sets:
            _check_set(look, version, batch, answers, outcome, touched, erased)
    return True


def _erased_attempts(look: Look, batch: Batch) -> pl.Series:
    """Attempts at erased documents, in any batch that this one's lines may be for."""
    if look.erased.is_empty():
        return pl.Series("attempt_no", [], dtype=pl.Int64)
    return look.rows(
        "SELECT n.attempt_no FROM erasures x JOIN records r ON r.document_no = x.document_no "
        "JOIN attempts n ON n.record_no = r.record_no AND n.attempt_no <= ?",
        {"attempt_no": pl.Int64},
        batch.last_attempt_no,
    )["attempt_no"]


def _reconciled(
    look: Look, version: OpenVersion, batch: Batch, verified: Verified
) -> Reconciliation | None:
    look.findings.looked(AGAIN, batch.expected_records)
    try:
        return reconcile_batch(look.context, version, batch, verified)
    except ArtifactPruned:
        return None
    except EVIDENCE_DAMAGED as error:
        look.findings.add(
            AGAIN,
            f"batch {batch.batch_id}",
            f"{type(error).__name__}: it cannot be reconciled again",
            "the manifest and results that it was reconciled from",
        )
    except pl.exceptions.PolarsError as error:
        # A row that names what is not there, or the same thing twice, breaks a join.
        look.findings.add(
            AGAIN,
            f"batch {batch.batch_id}",
            f"{type(error).__name__}: its attempts and lines do not fit each other",
            "attempts and lines that can be matched",
        )
    return None


def _compare_by_either_clock(
    look: Look, batch: Batch, outcome: Reconciliation, erased: pl.Series
) -> pl.Series:
    """Compare, with the files that came in later told by the clock or, failing that, by their rows.

    A clock that was put back in between gives a later file an earlier time.
    """
    later = _later_files(look, batch)
    told = replace(look, findings=Findings())
    touched = _compare(told, batch, outcome, erased, later)
    by_rows = pl.concat([later, _files_that_decided_nothing(look, batch)]).unique(
        maintain_order=True
    )
    if told.findings.total and by_rows.len() > later.len():
        again = replace(look, findings=Findings())
        touched_again = _compare(again, batch, outcome, erased, by_rows)
        if not again.findings.total:
            return touched_again
    look.findings.take(told.findings)
    return touched


def _compare(
    look: Look, batch: Batch, outcome: Reconciliation, erased: pl.Series, later: pl.Series
) -> pl.Series:
    """Compare what is stored with what it comes to again; returns attempts that cannot be."""
    stored = look.rows(
        f"SELECT {', '.join(DISPOSITION_SCHEMA)} FROM dispositions "  # noqa: S608 - own names
        "WHERE attempt_no BETWEEN ? AND ? ORDER BY attempt_no",
        DISPOSITION_SCHEMA,
        batch.first_attempt_no,
        batch.last_attempt_no,
    )
    lines = look.rows(
        "SELECT l.result_file_no, l.line, l.attempt_no, l.line_offset, l.line_length, l.anomaly "
        "FROM results l JOIN result_files f ON f.result_file_no = l.result_file_no "
        "WHERE f.batch_no = ? ORDER BY l.result_file_no, l.line",
        RESULT_SCHEMA,
        batch.batch_no,
    )
    blank = _blanked(look, batch)
    came_later = pl.col("result_file_no").is_in(later.implode())
    # Attempts that a later line speaks of: what was decided stays as it was then.
    touched = pl.concat(
        [
            lines.filter(came_later)["attempt_no"],
            outcome.lines.filter(came_later)["attempt_no"],
            _blanked_lines(stored, outcome, blank),
            erased,
        ]
    )
    touched = touched.drop_nulls().unique()
    again = outcome.dispositions.select(list(DISPOSITION_SCHEMA))
    stands_with_late = _as_late(look, batch)
    _tell_rows(
        look,
        "attempt",
        again.filter(~pl.col("attempt_no").is_in(touched.implode())),
        stored.filter(~pl.col("attempt_no").is_in(touched.implode())),
        ["attempt_no"],
        f"of batch {batch.batch_id}",
    )
    read = lines["result_file_no"].unique()
    told = outcome.lines.filter(
        pl.col("result_file_no").is_in(read.implode())
        & ~pl.col("result_file_no").is_in(blank.implode())
    )
    kept = lines.filter(~pl.col("result_file_no").is_in(blank.implode()))
    if not later.is_empty():
        # Told again, a line that came in later is no late one but the attempt's own.
        own = pl.col("attempt_no").is_in(touched.implode())
        told, kept = (
            frame.with_columns(
                anomaly=pl.when(~own | pl.col("attempt_no").is_null()).then("anomaly")
            )
            for frame in (told, kept)
        )
    _tell_rows(look, "line", told, kept, ["result_file_no", "line"], f"of batch {batch.batch_id}")
    _tell_late(look, batch, outcome, stands_with_late, erased)
    _tell_plain(look, batch, lines.filter(came_later & pl.col("anomaly").is_null()))
    return touched


def _blanked_lines(stored: pl.DataFrame, outcome: Reconciliation, blank: pl.Series) -> pl.Series:
    """Attempts whose line an erasure blanked, as the answer in it was about an erased document."""
    gone = outcome.dispositions.filter(pl.col("line").is_null())["attempt_no"]
    return stored.filter(
        pl.col("result_file_no").is_in(blank.implode()) & pl.col("attempt_no").is_in(gone.implode())
    )["attempt_no"]


def _tell_plain(look: Look, batch: Batch, lines: pl.DataFrame) -> None:
    """A line that came in later is never the plain result of an attempt."""
    for file_no, line in lines.select("result_file_no", "line").iter_rows():
        look.findings.add(
            AGAIN,
            f"line {line} of file {file_no} of batch {batch.batch_id}",
            "a plain result",
            "a late, repeated or unknown one: it came in when the batch was complete",
        )


def _later_files(look: Look, batch: Batch) -> pl.Series:
    """Result files that came in after the batch was complete for the first time.

    A file that a disposition names was there before, whatever the clocks of two machines say.
    """
    return look.rows(
        "SELECT f.result_file_no FROM result_files f WHERE f.batch_no = ? AND f.stored_at >= "
        "(SELECT MIN(m.moved_at) FROM moves m WHERE m.chain = ? AND m.machine = 'batch' "
        "AND m.to_state IN ('completed', 'completed_with_errors', 'retry_required')) "
        "AND NOT EXISTS (SELECT 1 FROM dispositions p WHERE p.attempt_no BETWEEN ? AND ? "
        "AND p.result_file_no = f.result_file_no) ORDER BY f.result_file_no",
        {"result_file_no": pl.Int64},
        batch.batch_no,
        f"batch:{batch.batch_no}",
        batch.first_attempt_no,
        batch.last_attempt_no,
    )["result_file_no"]


def _files_that_decided_nothing(look: Look, batch: Batch) -> pl.Series:
    """Result files that no disposition names, and none of whose lines is a plain result."""
    return look.rows(
        "SELECT f.result_file_no FROM result_files f WHERE f.batch_no = ? "
        "AND EXISTS (SELECT 1 FROM results l WHERE l.result_file_no = f.result_file_no) "
        "AND NOT EXISTS (SELECT 1 FROM results l WHERE l.result_file_no = f.result_file_no "
        "AND l.anomaly IS NULL) "
        "AND NOT EXISTS (SELECT 1 FROM dispositions p WHERE p.attempt_no BETWEEN ? AND ? "
        "AND p.result_file_no = f.result_file_no) ORDER BY f.result_file_no",
        {"result_file_no": pl.Int64},
        batch.batch_no,
        batch.first_attempt_no,
        batch.last_attempt_no,
    )["result_file_no"]


def _blanked(look: Look, batch: Batch) -> pl.Series:
    """Result files that an erasure took something out of."""
    files = look.rows(
        "SELECT result_file_no, artifact FROM result_files WHERE batch_no = ?",
        {"result_file_no": pl.Int64, "artifact": pl.String},
        batch.batch_no,
    )
    return files.filter(
        pl.Series(
            [look.was_redacted("result", name) for name in files["artifact"]], dtype=pl.Boolean
        )
    )["result_file_no"]


def _as_late(look: Look, batch: Batch) -> pl.DataFrame:
    return look.rows(
        f"SELECT {', '.join(DISPOSITION_SCHEMA)} FROM late_results WHERE batch_no = ? "  # noqa: S608 - own names
        "ORDER BY result_file_no, line",
        DISPOSITION_SCHEMA,
        batch.batch_no,
    )


def _tell_late(
    look: Look, batch: Batch, outcome: Reconciliation, stored: pl.DataFrame, erased: pl.Series
) -> None:
    """Late results: what a line that came too late says is what its row says."""
    known = pl.concat(
        [
            outcome.dispositions.select(list(DISPOSITION_SCHEMA)).filter(
                pl.col("line").is_not_null()
            ),
            outcome.late.select(list(DISPOSITION_SCHEMA)),
        ]
    )
    blank = _blanked(look, batch)
    wanted = stored.filter(
        ~pl.col("attempt_no").is_in(erased.implode())
        & ~pl.col("result_file_no").is_in(blank.implode())
    )
    told = known.join(wanted, on=["result_file_no", "line"], how="semi")
    # A line beside another of the same attempt is a conflict when all are read at once.
    twice = wanted.join(told, on=["result_file_no", "line"], how="anti")["attempt_no"]
    _tell_rows(
        look,
        "late line",
        told,
        wanted.filter(~pl.col("attempt_no").is_in(twice.implode())),
        ["result_file_no", "line"],
        f"of batch {batch.batch_id}",
    )


def _tell_rows(
    look: Look, what: str, again: pl.DataFrame, stored: pl.DataFrame, key: list[str], where: str
) -> None:
    """Tell every row that is not what it comes to again."""
    names = again.columns
    again, stored = again.sort(key), stored.select(names).sort(key)
    if again.equals(stored):
        return
    both = again.with_columns(again_=pl.lit(value=True)).join(
        stored.with_columns(stored_=pl.lit(value=True)),
        on=key,
        how="full",
        suffix="_stored",
        coalesce=True,
    )
    for row in both.sort(key).iter_rows(named=True):
        subject = f"{what} {' of file '.join(str(row[name]) for name in reversed(key))} {where}"
        if row["stored_"] is None:
            look.findings.add(AGAIN, subject, "no row", "the row that its evidence gives")
        elif row["again_"] is None:
            look.findings.add(AGAIN, subject, "a row", "none: nothing in the evidence gives it")
        else:
            wrong = [
                name for name in names if name not in key and row[name] != row[f"{name}_stored"]
            ]
            if wrong:
                look.findings.add(
                    AGAIN,
                    subject,
                    "; ".join(f"{name} {row[f'{name}_stored']}" for name in wrong),
                    "; ".join(f"{name} {row[name]}" for name in wrong) + ", as the evidence says",
                )


def _check_set(
    look: Look,
    version: OpenVersion,
    batch: Batch,
    answers: _Set,
    outcome: Reconciliation | None,
    touched: pl.Series,
    erased: pl.Series,
) -> None:
    collected = _frame(look, COLLECTED, answers.collected)
    if collected is not None and outcome is not None and answers.own:
        _check_collected(look, answers, collected, outcome, touched)
    staging = _frame(look, STAGING, answers.staging)
    if staging is None:
        return
    _check_judged(look, batch, answers, staging, erased)
    if collected is not None:
        _check_values(look, version, answers, collected, staging, erased)


def _frame(look: Look, contract: FrameContract, artifact: str | None) -> pl.DataFrame | None:
    """The rows of a frame; None where it is not there or not whole, which is told elsewhere."""
    if artifact is None:
        return None
    store = look.context.artifacts
    try:
        store.verify("frame", artifact)
        return read_frame(contract, store.require("frame", artifact))
    except (ArtifactMissing, ArtifactDamaged, ContractRefused):
        return None


def _check_collected(
    look: Look,
    answers: _Set,
    collected: pl.DataFrame,
    outcome: Reconciliation,
    touched: pl.Series,
) -> None:
    """Each collected answer is that of its line; not every line's answer was wanted."""
    look.findings.looked(ANSWERS, collected.height)
    known = collected.join(
        outcome.answers.select("attempt_no", again="answer"), on="attempt_no", how="left"
    ).filter(~pl.col("attempt_no").is_in(touched.implode()))
    wrong = known.filter(pl.col("answer").ne_missing(pl.col("again")))
    for attempt_no in wrong["attempt_no"].sort():
        look.findings.add(
            ANSWERS,
            f"attempt {attempt_no} of {answers.name}",
            "another answer among those that were collected",
            "the answer in its result line",
        )


def _check_judged(
    look: Look, batch: Batch, answers: _Set, staging: pl.DataFrame, erased: pl.Series
) -> None:
    """Judgement and staged values say the same; the digest is that of the values."""
    look.findings.looked(VALUES, staging.height)
    if answers.own:
        stored = look.rows(
            "SELECT j.attempt_no, j.record_no, j.outcome, j.values_digest FROM judgements j "
            "WHERE j.attempt_no BETWEEN ? AND ? AND NOT EXISTS (SELECT 1 FROM late_results l "
            "WHERE l.attempt_no = j.attempt_no AND l.used = 1) ORDER BY j.attempt_no",
            _JUDGED,
            batch.first_attempt_no,
            batch.last_attempt_no,
        )
    else:
        stored = look.rows(
            "SELECT j.attempt_no, j.record_no, j.outcome, j.values_digest FROM late_results l "
            "JOIN judgements j ON j.attempt_no = l.attempt_no "
            "WHERE l.batch_no = ? AND l.used = 1 ORDER BY j.attempt_no",
            _JUDGED,
            batch.batch_no,
        )
        stored = stored.join(staging, on="attempt_no", how="semi")
    gone = pl.col("attempt_no").is_in(erased.implode())
    staged, judged = staging.select(list(_JUDGED)).filter(~gone), stored.filter(~gone)
    both = staged.with_columns(staged_=pl.lit(value=True)).join(
        judged.with_columns(judged_=pl.lit(value=True)),
        on="attempt_no",
        how="full",
        suffix="_judged",
        coalesce=True,
    )
    differ = pl.any_horizontal(
        pl.col(name).ne_missing(pl.col(f"{name}_judged")) for name in list(_JUDGED)[1:]
    )
    for row in both.filter(differ).sort("attempt_no").iter_rows(named=True):
        look.findings.add(
            VALUES,
            f"judgement of attempt {row['attempt_no']} of {answers.name}",
            "none"
            if row["judged_"] is None
            else f"{row['outcome_judged']} of values {str(row['values_digest_judged'])[:16]}",
            "none: nothing was judged"
            if row["staged_"] is None
            else f"{row['outcome']} of values "
            f"{str(row['values_digest'])[:16]}, as they were staged",
        )
    for attempt_no, content, digest in staging.select(
        "attempt_no", "content", "values_digest"
    ).iter_rows():
        if hashlib.sha256(content.encode()).hexdigest() != digest:
            look.findings.add(
                VALUES,
                f"staged values of attempt {attempt_no} of {answers.name}",
                "values that do not have their digest",
                f"values with digest {digest[:16]}",
            )


def _check_values(
    look: Look,
    version: OpenVersion,
    answers: _Set,
    collected: pl.DataFrame,
    staging: pl.DataFrame,
    erased: pl.Series,
) -> None:
    """Each judged answer is of the frozen schema, and its values are what it decodes to.

    What the rules accepted must pass the checks of the frame too.
    """
    rows = collected.join(
        staging.select("attempt_no", "outcome", "values_digest"), on="attempt_no"
    ).filter(~pl.col("attempt_no").is_in(erased.implode()))
    look.findings.looked(SCHEMA, rows.height)
    for part in rows.iter_slices(_SLICE):
        good = _valid(look, version, answers, part)
        if good.is_empty():
            continue
        decoded = version.workload.decode(good["answer"].to_list())
        digests = [hashlib.sha256(text.encode()).hexdigest() for text in decoded.content["content"]]
        named = good.with_columns(again=pl.Series(digests, dtype=pl.String))
        for row in named.filter(pl.col("again") != pl.col("values_digest")).iter_rows(named=True):
            look.findings.add(
                VALUES,
                f"staged values of attempt {row['attempt_no']} of {answers.name}",
                f"values with digest {row['values_digest'][:16]}",
                f"{row['again'][:16]}, which its answer decodes to",
            )
        for row_no, field, note in _broken(version, decoded, named):
            look.findings.add(
                SCHEMA,
                f"attempt {named['attempt_no'][row_no]} of {answers.name}",
                f"accepted with {field}: {note}",
                "values that pass the checks of the frame",
            )


def _valid(look: Look, version: OpenVersion, answers: _Set, part: pl.DataFrame) -> pl.DataFrame:
    """The answers that are of the frozen output schema; the others are told."""
    kept = []
    for attempt_no, answer in part.select("attempt_no", "answer").iter_rows():
        try:
            kept.append(version.workload.check_answer(answer) == answer)
        except (AnswerInvalid, AnswerMalformed):
            kept.append(False)
        if not kept[-1]:
            look.findings.add(
                SCHEMA,
                f"attempt {attempt_no} of {answers.name}",
                "an answer that is not of the frozen output schema",
                "an answer of the schema, in its normal form",
            )
    return part.filter(pl.Series(kept, dtype=pl.Boolean))


def _broken(
    version: OpenVersion, decoded: Decoded, named: pl.DataFrame
) -> Iterator[tuple[int, str, str]]:
    """row, field, note of accepted answers that do not pass the checks of the frame."""
    rules = [rule for rule in version.acceptance.rules if rule.id == FRAME_RULE]
    accepted = named.with_row_index("row").filter(pl.col("outcome") == "accepted")["row"]
    wanted = pl.col("row").is_in(accepted.cast(pl.Int64).implode())
    shard = Shard(
        records=pl.DataFrame({"row": range(named.height)}, schema={"row": pl.Int64}),
        values=decoded.values.filter(wanted),
        items=decoded.items.filter(wanted),
        evidence=decoded.evidence.filter(wanted),
        uncertain=decoded.uncertain.filter(wanted),
        page_texts=lambda rows: rows,
    )
    for rule in rules:
        try:
            found = rule.check(shard)
        except FrameBroken:
            yield 0, "all", "the values do not fit the acceptance schema"
            continue
        for row, field, note in found.select("row", "field", "note").iter_rows():
            yield int(row), field, note
