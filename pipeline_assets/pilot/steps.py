"""The steps of a pilot: the stages of the pipeline over its own ledger, each measured.

Belongs here: which stage functions a step calls, and when a version has come to its end. Does not
belong here: the process that a step runs in (`process.py`) and the order of steps (`run.py`).

Every step may be repeated: the ledger decides what is left to do. The sources are scanned once, so
a document that changes later is never asked about, and paid, a second time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import polars as pl
from sqlalchemy import Connection, text

from pipeline_assets.accept.judge_batches import judge_batches
from pipeline_assets.collect.collect_batches import collect_batches
from pipeline_assets.ingest.parse_documents import parse_documents
from pipeline_assets.ingest.scan import scan_source
from pipeline_assets.parser_settings import parser_settings
from pipeline_assets.pilot.measure import FILE, Stopwatch
from pipeline_assets.pilot.plan import Plan
from pipeline_assets.prepare.freeze import freeze_manifest
from pipeline_assets.prepare.retries import freeze_retries
from pipeline_assets.provider_jobs.monitor import look_at_due_jobs
from pipeline_assets.publish.publish_accepted import publish_accepted
from pipeline_assets.recovery.breaker import look_at_breaker
from pipeline_assets.recovery.dead_letter_alerts import look_at_dead_letters
from pipeline_assets.recovery.holds import hold_of
from pipeline_assets.recovery.releases import look_at_holds
from pipeline_assets.submit.submit_batches import EVERY_BATCH, submit_batches
from pipeline_assets.versions import OpenVersion, open_version
from resources.context import Context
from resources.ledger.approvals import record, standing_of
from resources.ledger.retries import first_retry
from resources.ledger.versions import journal_operating, operating_value
from resources.sources.declared import declared_sources
from resources.sources.sampled import SampledSource, open_to_look

SCAN, PARSE, PROCESS, PUBLISH = "scan", "parse", "process", "publish"
MOVING = ("queued", "prepared", "submitted", "collected", "retry_wait")
"""Record states that the pipeline itself moves on; what is accepted waits for `publish` alone."""
ROUNDS = 50
"""More rounds than any version needs while nothing has to be waited for."""
APPROVED = "approved in the archive that the pilot was made for"
TAKEN_OVER = "taken over by the pilot"
"""The reason of settings that came from the archive, and the mark that they did."""
ASKED_FOR = "asked for with the pilot"
BUDGET, NO_BUDGET = "budget_usd", "0"
_TAKEN_OVER = (
    "SELECT COUNT(*) FROM operating_settings WHERE version_no = :version AND reason = :reason"
)
_DUE = (
    "SELECT MIN(next_poll_at) FROM (SELECT next_poll_at FROM batches WHERE version_no = :version "
    "AND state IN ('prepared', 'submitting', 'submitted', 'running') UNION ALL "
    "SELECT next_poll_at FROM canaries WHERE version_no = :version "
    "AND state IN ('prepared', 'submitting', 'submitted', 'running')) j"
)
_STATES = (
    "SELECT t.state, COUNT(*) FROM records r JOIN record_state t ON t.record_no = r.record_no "
    "WHERE r.version_no = :version GROUP BY t.state"
)
_JOBS = (
    "SELECT b.batch_id, b.state FROM batches b WHERE b.version_no = :version UNION ALL "
    "SELECT c.canary_id, c.state FROM canaries c WHERE c.version_no = :version"
)


class Standing(msgspec.Struct, frozen=True):
    """Where a version of a pilot stands.

    Attributes:
        key: the version.
        moving: records that the pipeline itself moves on.
        due_at: when there is something to do for it next, UTC text; None: by a person, or never.
        waits: why it does not go on now, in the words of the stages; None where it does.
    """

    key: str
    moving: int
    due_at: str | None = None
    waits: str | None = None

    @property
    def settled(self) -> bool:
        """Has it nothing left to do but to publish?"""
        return not self.moving


@dataclass(frozen=True)
class Work:
    """What a step is told.

    Attributes:
        plan: the pilot.
        operating: of every version, the settings that it takes over, once.
        budgets: version → what it may cost, where that is asked for now.
    """

    plan: Plan
    operating: Mapping[str, Mapping[str, str]]
    budgets: Mapping[str, str] = field(default_factory=dict)


def scan_step(context: Context, work: Work) -> None:
    """Scan the sources for the documents that were taken, and for nothing else.

    Raises:
        SourceError, SourceMoved, LeaseHeld, InvalidSources: as a scan.
    """
    plan = work.plan
    chosen: dict[str, list[str]] = {}
    for taken in plan.taken:
        chosen.setdefault(taken.source, []).append(taken.document_id)
    with _watch(context, SCAN, "") as watch, watch.stage(SCAN):
        for declared in declared_sources(context.settings):
            if declared.name in chosen:
                source = SampledSource(open_to_look(declared), chosen[declared.name])
                scan_source(context, source, declared)
                if declared.approval:
                    _approve(context, plan)


def _approve(context: Context, plan: Plan) -> None:
    """Only approved documents are taken; those whose bytes are still the same stay approved."""
    ledger = context.ledger
    same = {taken.document_id: taken.checksum for taken in plan.taken}
    with ledger.write() as connection:
        found = standing_of(connection, ledger, list(same))
        kept = [
            row["source_version_no"]
            for row in found.iter_rows(named=True)
            if row["checksum"] == same[row["document_id"]] and row["decision"] is None
        ]
        numbers = pl.Series(kept, dtype=pl.Int64).drop_nulls().unique()
        record(connection, ledger, numbers, "approved", APPROVED, context.settings.owner)


def parse_step(context: Context, work: Work, key: str) -> None:
    """Parse the documents as a version declares; its parses are shared by all that declare it so.

    Raises:
        ParserUnavailable, ArtifactDamaged, SourceError: as parsing.
    """
    version = _open(context, work, key)
    settings = parser_settings(version.spec)
    with _watch(context, PARSE, settings.key) as watch, watch.stage(PARSE):
        parse_documents(context, settings, version.spec.workload)


def process_step(context: Context, work: Work, key: str) -> Standing:
    """Bring a version as far as it goes now: freeze, submit, collect, judge.

    Raises:
        ProviderError: the provider cannot be used at all.
        what else the stages raise.
    """
    version = _open(context, work, key)
    stages: dict[str, Callable[[], object]] = {
        "poll": lambda: _look(context),
        "prepare": lambda: _prepare(context, version),
        "collect": lambda: _collect(context, version),
        "accept": lambda: judge_batches(context, version),
    }
    waiting: dict[str, str] = {}
    with _watch(context, PROCESS, key) as watch:
        for _ in range(ROUNDS):
            before = _mark(context, version)
            for name in ("poll", "prepare"):
                with watch.stage(name):
                    stages[name]()
            with watch.stage("submit"):
                waiting = submit_batches(context, version).waiting
            for name in ("collect", "accept"):
                with watch.stage(name):
                    stages[name]()
            if _mark(context, version) == before and not _is_due(context, version):
                break
    return standing(context, key, version.version_no, waiting)


def publish_step(context: Context, work: Work, key: str) -> None:
    """Publish what a version's rules accepted, inside the pilot; nobody outside sees it.

    Raises:
        what publishing raises.
    """
    version = _open(context, work, key)
    with _watch(context, PUBLISH, key) as watch, watch.stage(PUBLISH):
        publish_accepted(context, version)


def standing(
    context: Context, key: str, version_no: int, waiting: Mapping[str, str] | None = None
) -> Standing:
    """Where a version stands.

    Args:
        context: the pilot, open.
        key: the version.
        version_no: its number.
        waiting: what submitting said of batches that it left.
    """
    with context.ledger.read() as connection:
        states = {
            row.state: int(row[1])
            for row in connection.execute(text(_STATES), {"version": version_no})
        }
        hold = hold_of(connection, version_no)
    moving = sum(states.get(state, 0) for state in MOVING)
    if not moving:
        return Standing(key, 0)
    if hold is not None:
        # Nothing is due while it is held: waiting for it here could be without end.
        return Standing(key, moving, None, f"held: {hold.reason}")
    return Standing(key, moving, due_at(context, version_no), _why(waiting or {}))


def due_at(context: Context, version_no: int) -> str | None:
    """When something is to be done for a version next, UTC text; None: nothing by itself."""
    with context.ledger.read() as connection:
        job = connection.execute(text(_DUE), {"version": version_no}).scalar()
    times = [moment for moment in (job, first_retry(context.ledger, version_no)) if moment]
    return min(times, default=None)


def _why(waiting: Mapping[str, str]) -> str | None:
    return waiting.get(EVERY_BATCH) or next(iter(waiting.values()), None)


def _is_due(context: Context, version: OpenVersion) -> bool:
    due = due_at(context, version.version_no)
    return due is not None and due <= context.ledger.now()


def _look(context: Context) -> None:
    look_at_due_jobs(context)
    look_at_holds(context)


def _prepare(context: Context, version: OpenVersion) -> None:
    freeze_manifest(context, version)
    freeze_retries(context, version)


def _collect(context: Context, version: OpenVersion) -> None:
    collect_batches(context, version)
    look_at_breaker(context, version)
    look_at_dead_letters(context, version.version_no, version.key)


def _mark(context: Context, version: OpenVersion) -> tuple[object, ...]:
    """What changes whenever something went on."""
    wanted = {"version": version.version_no}
    with context.ledger.read() as connection:
        states = [tuple(row) for row in connection.execute(text(_STATES), wanted)]
        jobs = [tuple(row) for row in connection.execute(text(_JOBS), wanted)]
    return (sorted(states), sorted(jobs))


def _watch(context: Context, step: str, subject: str) -> Stopwatch:
    return Stopwatch(Path(context.settings.state_folder) / FILE, step, subject)


def _open(context: Context, work: Work, key: str) -> OpenVersion:
    """The version, with the settings that it takes over from the archive and the budget it has.

    They are taken over once: a budget that was given for the pilot, and what a person set in it
    since, would else be overruled by the archive's at the next call.
    """
    version = open_version(context, key)
    ledger, number = context.ledger, version.version_no
    budget = work.budgets.get(key)
    with ledger.write() as connection:
        if not _was_taken_over(connection, number):
            cause = context.cause(TAKEN_OVER, "pilot")
            for name, value in sorted(work.operating.get(key, {}).items()):
                journal_operating(connection, number, name, value, cause)
        if budget is not None and budget != operating_value(connection, number, BUDGET, NO_BUDGET):
            cause = context.cause(ASKED_FOR, "pilot")
            journal_operating(connection, number, BUDGET, budget, cause)
    return version


def _was_taken_over(connection: Connection, version_no: int) -> bool:
    wanted = {"version": version_no, "reason": TAKEN_OVER}
    return bool(connection.execute(text(_TAKEN_OVER), wanted).scalar())
