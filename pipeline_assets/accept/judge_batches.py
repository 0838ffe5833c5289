"""Accepting: every collected answer is judged, and the records move.

Belongs here: slices, and the one transaction a set of answers. Does not belong here: the judgement
(`judge.py`), reading texts (`texts.py`), and another attempt (`ask_again.py`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import partial

import polars as pl
from sqlalchemy import Connection

from pipeline_assets.accept.ask_again import ask_again
from pipeline_assets.accept.judge import (
    ACCEPTED,
    AWAITING_REVIEW,
    Judged,
    conclude,
    judge_slice,
    open_slice,
)
from pipeline_assets.accept.texts import texts_of
from pipeline_assets.operating import operating
from pipeline_assets.parser_settings import parser_settings
from pipeline_assets.slices import slices_of_records
from pipeline_assets.versions import OpenVersion
from resources.ahead import one_ahead
from resources.catalogue import NO_CATALOGUE, Catalogue, load_catalogue
from resources.context import Context
from resources.contracts import COLLECTED, PLACES, STAGING, read_frame, store_frame
from resources.garbage import without_garbage_collector
from resources.ledger.alerts import raise_alert
from resources.ledger.batches import (
    COMPLETE,
    Batch,
    find_batches,
    has_parents,
    reload_batch,
    update_batch,
)
from resources.ledger.engine import Ledger
from resources.ledger.judgements import (
    facts_of,
    facts_of_late,
    store_judgements,
    unjudged_batches,
)
from resources.ledger.late import find_late_answers, set_staged, staged_of
from resources.ledger.leases import Heartbeat, Lease, LeaseHeld, fenced, held
from resources.ledger.moves import batch_chain, move_records
from resources.ledger.reviews import FINDINGS, close_overtaken, open_reviews

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
        CatalogueUnreadable: the catalogue of known products cannot be read.
    """
    todo = _unjudged(context, version)
    known = load_catalogue(context.settings) if todo else NO_CATALOGUE
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
                judged = _judge(context, version, lease, answers, known)
                if not _store(context, version, lease, answers, judged, known):
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


def _judge(
    context: Context, version: OpenVersion, lease: Lease, answers: _Answers, known: Catalogue
) -> Judged:
    context.artifacts.verify("frame", answers.collected)
    collected = read_frame(COLLECTED, context.artifacts.require("frame", answers.collected))
    key = parser_settings(version.spec).key
    heart = Heartbeat(context.ledger, lease)
    with context.ledger.read() as connection:
        if answers.late_no is None:
            facts = facts_of(connection, context.ledger, key, answers.batch)
        else:
            facts = facts_of_late(connection, context.ledger, key, answers.late_no)
    openers = [
        partial(open_slice, version.workload, part, texts_of(context, part, facts))
        for part in collected.iter_slices(SLICE_RECORDS)
    ]
    judged = []
    for opened in one_ahead(openers):
        judged.append(judge_slice(version.acceptance, opened, facts, known.products))
        heart.beat()
    return conclude(version.acceptance, judged, texts_of(context, collected, facts))


def _store(
    context: Context,
    version: OpenVersion,
    lease: Lease,
    answers: _Answers,
    judged: Judged,
    known: Catalogue,
) -> bool:
    """Write a judgement; False if another worker did already."""
    ledger = context.ledger
    artifacts = {
        "staging_artifact": store_frame(
            context.artifacts, "frame", STAGING, [judged.staging]
        ).digest,
        "places_artifact": store_frame(context.artifacts, "frame", PLACES, [judged.places]).digest
        if version.acceptance.places
        else None,
        "catalogue_digest": known.digest,
    }
    batch = answers.batch
    settings = operating(ledger, version.version_no)
    with fenced(ledger, lease) as connection:
        if answers.late_no is None:
            if reload_batch(connection, batch.batch_no).staging_artifact is not None:
                return False
            update_batch(connection, lease, batch.batch_no, **artifacts)
        else:
            if staged_of(connection, answers.late_no) is not None:
                return False
            set_staged(connection, answers.late_no, **artifacts)
        store_judgements(connection, ledger, judged.staging, judged.findings)
        for outcome, reason in (
            (ACCEPTED, "every rule passed"),
            (AWAITING_REVIEW, "a finding needs a person"),
        ):
            move_records(
                connection,
                ledger.dialect,
                judged.staging.filter(pl.col("outcome") == outcome)["record_no"],
                "collected",
                outcome,
                context.cause(reason, "accept"),
                batch_chain(batch.batch_no),
            )
        at = ledger.now()
        close_overtaken(connection, ledger, _judged_before(connection, batch, judged), at)
        _open_reviews(connection, ledger, version, judged, at)
        ask_again(connection, context, version, batch, settings, judged.staging)
        _alert(connection, batch, judged, at)
    return True


def _judged_before(connection: Connection, batch: Batch, judged: Judged) -> pl.Series:
    """Records that may have a review of an earlier answer; none of them in most batches."""
    records = judged.staging["record_no"]
    return records if has_parents(connection, batch.batch_no) else records.clear()


def _open_reviews(
    connection: Connection, ledger: Ledger, version: OpenVersion, judged: Judged, at: str
) -> None:
    waiting = judged.staging.filter(pl.col("outcome") == AWAITING_REVIEW).select(
        "record_no",
        "attempt_no",
        "values_digest",
        version_no=pl.lit(version.version_no, dtype=pl.Int64),
    )
    if waiting.is_empty():
        return
    named = slices_of_records(
        connection, ledger, waiting["record_no"], parser_settings(version.spec).key
    )
    open_reviews(
        connection,
        ledger,
        waiting.join(named, on="record_no", how="left"),
        kind=FINDINGS,
        at=at,
    )


def _alert(connection: Connection, batch: Batch, judged: Judged, at: str) -> None:
    if judged.patterns:
        raise_alert(connection, "answers_astray", batch.batch_id, "; ".join(judged.patterns), at)
