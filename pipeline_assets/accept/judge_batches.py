"""Accepting: every collected answer of a batch is judged, and the records move.

Belongs here: slices, page texts, and the one transaction a batch. Does not belong here: the
judgement (`judge.py`).
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
from resources.ledger.judgements import facts_of, store_judgements, unjudged_batches
from resources.ledger.leases import Heartbeat, Lease, fenced, held
from resources.ledger.moves import batch_chain, move_records

SLICE_RECORDS = 6_250
"""Records judged together: their quotes' pages are what decides the memory of the stage."""


@dataclass(frozen=True)
class JudgeReport:
    """What was judged: batches, records by outcome, findings by rule."""

    batches: int
    outcomes: dict[str, int]
    findings: dict[str, int]


def judge_batches(context: Context, version: OpenVersion) -> JudgeReport:
    """Judge every collected batch of the version.

    Raises:
        ArtifactDamaged: a batch's answers are not those that were collected.
        ContractRefused: a file of another contract.
        LeaseHeld: another worker is at one of the batches.
    """
    with context.ledger.read() as connection:
        open_ones = unjudged_batches(connection, context.ledger, version.version_no)["batch_no"]
    todo = [
        batch
        for batch in find_batches(context.ledger, version.version_no, COMPLETE)
        if batch.batch_no in set(open_ones)
    ]
    outcomes: Counter[str] = Counter()
    findings: Counter[str] = Counter()
    context.progress.start("judging", sum(batch.expected_records for batch in todo))
    for batch in todo:
        with (
            held(context.ledger, batch.lease_name, context.worker) as lease,
            without_garbage_collector(),
        ):
            judged = _judge_batch(context, version, lease, batch)
            _store(context, lease, batch, judged)
            outcomes.update(dict(judged.staging["outcome"].value_counts().iter_rows()))
            findings.update(dict(judged.findings["rule"].value_counts().iter_rows()))
            context.progress.advance(batch.expected_records)
    context.progress.finish()
    return JudgeReport(len(todo), dict(outcomes), dict(sorted(findings.items())))


def _judge_batch(context: Context, version: OpenVersion, lease: Lease, batch: Batch) -> Judged:
    assert batch.collected_artifact is not None  # noqa: S101 - asked for in the query
    context.artifacts.verify("frame", batch.collected_artifact)
    collected = read_frame(COLLECTED, context.artifacts.require("frame", batch.collected_artifact))
    key = parser_settings(version.spec).key
    heart = Heartbeat(context.ledger, lease)
    staging = [STAGING.empty()]
    findings: list[pl.DataFrame] = []
    with context.ledger.read() as connection:
        facts = facts_of(connection, context.ledger, key, batch)
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


def _store(context: Context, lease: Lease, batch: Batch, judged: Judged) -> None:
    stored = store_frame(context.artifacts, "frame", STAGING, [judged.staging])
    with fenced(context.ledger, lease) as connection:
        if reload_batch(connection, batch.batch_no).staging_artifact is not None:
            return
        store_judgements(connection, context.ledger, judged.staging, judged.findings)
        update_batch(connection, lease, batch.batch_no, staging_artifact=stored.digest)
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
