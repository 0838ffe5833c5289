"""Accepting: every collected answer is judged, and the records move.

Belongs here: slices, page texts, and the one transaction a set of answers. Does not belong here:
the judgement (`judge.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import polars as pl

from pipeline_assets.accept.judge import Judged, judge_slice, open_slice
from pipeline_assets.parser_settings import parser_settings
from pipeline_assets.versions import OpenVersion
from resources.ahead import one_ahead
from resources.context import Context
from resources.contracts import COLLECTED, PARSED_TEXT, STAGING, read_frame, scan_frame, store_frame
from resources.garbage import without_garbage_collector
from resources.ledger.batches import COMPLETE, Batch, find_batches, reload_batch, update_batch
from resources.ledger.judgements import (
    facts_of,
    facts_of_late,
    store_judgements,
    unjudged_batches,
)
from resources.ledger.late import find_late_answers, set_staged, staged_of
from resources.ledger.leases import Heartbeat, Lease, LeaseHeld, fenced, held
from resources.ledger.moves import batch_chain, move_records

SLICE_RECORDS = 6_250
"""Records judged together: their quotes' pages are what decides the memory of the stage."""


@dataclass(frozen=True)
class JudgeReport:
    """What was judged.

    Attributes:
        batches: batches, and sets of late answers.
        outcomes: outcome → records.
        findings: rule → findings.
        busy: batches that another worker is at.
    """

    batches: int
    outcomes: dict[str, int]
    findings: dict[str, int]
    busy: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Answers:
    """A set of answers that is judged together: a batch's own, or late ones that came in with it.

    Attributes:
        batch: whose lease and chain are used.
        collected: the answers' artifact.
        records: how many there are, at most.
        late_no: the number of a set of late answers; None for a batch's own.
    """

    batch: Batch
    collected: str
    records: int
    late_no: int | None = None


def judge_batches(context: Context, version: OpenVersion) -> JudgeReport:
    """Judge every collected batch of the version.

    Raises:
        ArtifactDamaged: a batch's answers are not those that were collected.
        ContractRefused: a file of another contract.
    """
    todo = _unjudged(context, version)
    outcomes: Counter[str] = Counter()
    findings: Counter[str] = Counter()
    busy = []
    context.progress.start("judging", sum(answers.records for answers in todo))
    for answers in todo:
        try:
            with (
                held(context.ledger, answers.batch.lease_name, context.worker) as lease,
                without_garbage_collector(),
            ):
                judged = _judge(context, version, lease, answers)
                if not _store(context, lease, answers, judged):
                    continue
        except LeaseHeld:
            busy.append(answers.batch.batch_id)
            continue
        outcomes.update(dict(judged.staging["outcome"].value_counts().iter_rows()))
        findings.update(dict(judged.findings["rule"].value_counts().iter_rows()))
        context.progress.advance(answers.records)
    context.progress.finish()
    return JudgeReport(
        len(todo) - len(busy), dict(outcomes), dict(sorted(findings.items())), tuple(busy)
    )


def _unjudged(context: Context, version: OpenVersion) -> list[_Answers]:
    with context.ledger.read() as connection:
        open_ones = unjudged_batches(connection, context.ledger, version.version_no)["batch_no"]
    batches = {
        batch.batch_no: batch
        for batch in find_batches(context.ledger, version.version_no, COMPLETE)
    }
    own = [
        _Answers(
            batches[number],
            str(batches[number].collected_artifact),
            batches[number].expected_records,
        )
        for number in open_ones
        if number in batches
    ]
    late = [
        _Answers(batches[entry.batch_no], entry.collected_artifact, entry.records, entry.late_no)
        for entry in find_late_answers(context.ledger, version.version_no, judged=False)
        if entry.batch_no in batches
    ]
    return own + late


def _judge(context: Context, version: OpenVersion, lease: Lease, answers: _Answers) -> Judged:
    context.artifacts.verify("frame", answers.collected)
    collected = read_frame(COLLECTED, context.artifacts.require("frame", answers.collected))
    key = parser_settings(version.spec).key
    heart = Heartbeat(context.ledger, lease)
    staging = [STAGING.empty()]
    findings: list[pl.DataFrame] = []
    with context.ledger.read() as connection:
        if answers.late_no is None:
            facts = facts_of(connection, context.ledger, key, answers.batch)
        else:
            facts = facts_of_late(connection, context.ledger, key, answers.late_no)
    openers = [
        partial(open_slice, version.workload, part, _page_reader(context, part, facts))
        for part in collected.iter_slices(SLICE_RECORDS)
    ]
    for opened in one_ahead(openers):
        judged = judge_slice(version.workload, opened, facts)
        staging.append(STAGING.conform(judged.staging))
        findings.append(judged.findings)
        heart.beat()
    empty = pl.DataFrame(
        schema={
            "rule": pl.String,
            "rule_version": pl.Int64,
            "severity": pl.String,
            "field": pl.String,
            "note": pl.String,
            "attempt_no": pl.Int64,
            "record_no": pl.Int64,
        }
    )
    return Judged(pl.concat(staging), pl.concat([empty, *findings]))


def _page_reader(
    context: Context, part: pl.DataFrame, facts: pl.DataFrame
) -> Callable[[pl.DataFrame], pl.DataFrame]:
    """Reads the pages that quotes name, pack by pack, and nothing else of a pack."""
    rows = (
        part.select("record_no")
        .with_row_index("row")
        .with_columns(pl.col("row").cast(pl.Int64))
        .join(facts.select("record_no", "checksum", "text_pack"), on="record_no", how="left")
    )

    def read(wanted: pl.DataFrame) -> pl.DataFrame:
        named = wanted.join(rows, on="row").with_columns(pl.col("page").cast(pl.Int32))
        found = [
            pl.DataFrame(schema={"row": pl.Int64, "page": pl.Int64, "text": pl.String}),
        ]
        for (pack,), keys in named.group_by("text_pack"):
            if pack is None:
                continue
            pages = scan_frame(PARSED_TEXT, context.artifacts.require("text", str(pack))).select(
                "checksum", "page", "text"
            )
            texts = pages.join(
                keys.select("checksum", "page").unique().lazy(), on=["checksum", "page"], how="semi"
            ).collect()
            found.append(
                keys.join(texts, on=["checksum", "page"]).select(
                    "row", pl.col("page").cast(pl.Int64), "text"
                )
            )
        return pl.concat(found)

    return read


def _store(context: Context, lease: Lease, answers: _Answers, judged: Judged) -> bool:
    """Write a judgement; False if another worker did already."""
    stored = store_frame(context.artifacts, "frame", STAGING, [judged.staging])
    batch = answers.batch
    with fenced(context.ledger, lease) as connection:
        if answers.late_no is None:
            if reload_batch(connection, batch.batch_no).staging_artifact is not None:
                return False
            update_batch(connection, lease, batch.batch_no, staging_artifact=stored.digest)
        else:
            if staged_of(connection, answers.late_no) is not None:
                return False
            set_staged(connection, answers.late_no, stored.digest)
        store_judgements(connection, context.ledger, judged.staging, judged.findings)
        for outcome, reason in (
            ("accepted", "every rule passed"),
            ("awaiting_review", "a finding needs a person"),
        ):
            move_records(
                connection,
                context.ledger.dialect,
                judged.staging.filter(pl.col("outcome") == outcome)["record_no"],
                "collected",
                outcome,
                context.cause(reason, "accept"),
                batch_chain(batch.batch_no),
            )
    return True
