"""A live canary: made-up documents that go the whole way of real ones, at a version's provider.

Belongs here: which documents, what they cost at the most, and taking them through every stage with
failures forced on the way. Does not belong here: the folder (`proof_place.py`), the verdict
(`prove.py`), and the canary that opens the gate for records (`run.py`), which is sent first here as
anywhere: it has the request that the provider must refuse.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Literal, cast

from sqlalchemy import text

from pipeline_assets.accept.judge_batches import judge_batches
from pipeline_assets.canary.forced import Failure, forced
from pipeline_assets.canary.make import canary_documents, make_canary
from pipeline_assets.canary.proof_place import ProofPlace
from pipeline_assets.collect.collect_batches import collect_batches
from pipeline_assets.ingest.parse_documents import parse_documents
from pipeline_assets.ingest.scan import scan_declared
from pipeline_assets.parser_settings import parser_settings
from pipeline_assets.prepare.freeze import freeze_manifest
from pipeline_assets.prepare.retries import freeze_retries
from pipeline_assets.prompting.request_maker import make_request_maker
from pipeline_assets.provider_jobs.clients import job_client
from pipeline_assets.provider_jobs.limits import value_of
from pipeline_assets.provider_jobs.monitor import look_at_due_jobs
from pipeline_assets.providers import endpoint_of_version
from pipeline_assets.publish.publish_accepted import publish_accepted
from pipeline_assets.recovery.holds import hold_of
from pipeline_assets.recovery.releases import look_at_holds
from pipeline_assets.submit.submit_batches import EVERY_BATCH, submit_batches
from pipeline_assets.versions import OpenVersion
from pipeline_assets.workloads.workload import CanaryDocument
from resources.clock import from_text, is_loopback
from resources.context import Context
from resources.ledger.retries import first_retry
from resources.ledger.schema import deliveries, dispositions, result_files
from resources.providers.capabilities import find_capability
from resources.providers.prices import TokenUsage, price_of
from resources.providers.registry import online_client

DOUBTFUL = "no title"
"""The document that no rule may let pass: it is there to fail."""
MOST_RECORDS = 1_000
ROUNDS = 50
LONGEST_PAUSE = timedelta(seconds=30)
SHORTEST_PAUSE = timedelta(seconds=1)
PERSISTED = Failure("reconciliation ended after the raw results were stored", result_files, True)
UNDONE = Failure("reconciliation ended before its dispositions were committed", dispositions, False)
UNACKNOWLEDGED = Failure("delivery ended after its commit, unacknowledged", deliveries, True)
_MOVING = "'queued', 'prepared', 'submitted', 'collected'"
_COUNTS = (
    "SELECT COUNT(*), COUNT(CASE WHEN t.state = 'retry_wait' THEN 1 END), "  # noqa: S608
    f"COUNT(CASE WHEN t.state IN ({_MOVING}) THEN 1 END) "
    "FROM records r JOIN record_state t ON t.record_no = r.record_no "
    "WHERE r.version_no = :version"
)
_JOBS = (
    "SELECT state, next_poll_at FROM batches WHERE version_no = :version UNION ALL "
    "SELECT state, next_poll_at FROM canaries WHERE version_no = :version"
)
_POLLED = ("prepared", "submitting", "submitted", "running")
_DOUBTFUL_TEXT = (
    "it should be wiped with a dry cloth after every use, and stored where it is neither damp nor "
    "hot. whoever takes it apart loses more time than is saved. small parts wear out first, and "
    "they are cheap; have them on the shelf before you need them. nothing here needs oil.\n"
)


@dataclass(frozen=True)
class Plan:
    """What a proof would send.

    Attributes:
        documents: file name → text.
        requests: of the documents and of the canary before them.
        input_tokens: of all of them, on the side of too many.
        output_tokens: that they may write together, at the most.
        at_most: US dollars for these tokens, each request made once; None where the price is not
            known, 0 for nothing.
        basis: where the price comes from.
        place: the provider's address; None where nobody is asked.
    """

    documents: Mapping[str, str]
    requests: int
    input_tokens: int
    output_tokens: int
    at_most: Decimal | None
    basis: str
    place: str | None

    @property
    def needs_a_word(self) -> bool:
        """Would anybody outside this machine be asked?"""
        return self.place is not None and not is_loopback(self.place)


@dataclass(frozen=True)
class _Standing:
    """Where the records stand.

    Attributes:
        records: how many there are.
        moving: of them, those that a job or a stage moves on.
        retrying: of them, those that wait for the time of another attempt.
        jobs: states of batches and canaries, sorted.
        due_at: when there is something to do next, UTC text; None: by a person, or never.
        waits: why nothing goes on now, in the words of the stages.
    """

    records: int
    moving: int
    retrying: int
    jobs: tuple[str, ...]
    due_at: str | None
    waits: str | None


@dataclass(frozen=True)
class Reached:
    """How far the work came.

    Attributes:
        settled: has everything an end that needs no waiting?
        due_at: when there is something to do next, UTC text.
        why: what it waits for; None where it is settled.
    """

    settled: bool
    due_at: str | None = None
    why: str | None = None


def failures_of(version: OpenVersion) -> tuple[Failure, ...]:
    """What is forced in a proof: answers that come inside the run are stored as they come."""
    if version.spec.mode == "batch":
        return (PERSISTED, UNDONE, UNACKNOWLEDGED)
    return (UNDONE, UNACKNOWLEDGED)


def plan(context: Context, version: OpenVersion, records: int | None) -> Plan:
    """What would be sent, and where; asks the provider nothing.

    Args:
        context: of the proof.
        version: to prove.
        records: documents at the least; by default as many as the workload has, or as many as the
            provider takes at the least.

    Raises:
        CanaryUnmakeable: the version's limits leave no room for the documents.
        CredentialsMissing, SdkMissing: the provider cannot be used here.
    """
    if version.spec.mode == "embedded":
        documents = [*version.workload.canary()]
        texts = texts_of(documents, records or 0)
        return Plan(texts, 0, 0, 0, Decimal(0), "the built-in rules cost nothing", None)
    maker = make_request_maker(version)
    least = _least(version)
    documents = canary_documents(maker, 0)
    texts = texts_of(documents, max(records or 0, least))
    canary = make_canary(maker, "0" * 64, "0" * 12, least)
    # The canary's prompts are those of the documents; repeats are short ones.
    each = -(-canary.input_tokens // len(canary.lines))
    requests = len(canary.lines) + len(texts)
    read = canary.input_tokens + max(canary.input_tokens, each * len(texts))
    request = version.spec.request
    assert request is not None  # noqa: S101 - the spec's own check
    written = request.output_tokens * requests
    mode: Literal["batch", "online"] = "online" if version.spec.mode == "online" else "batch"
    price = price_of(
        version.spec.provider,
        version.spec.model,
        mode,
        TokenUsage(read // requests, request.output_tokens),
        context.clock(),
    )
    return Plan(
        documents=texts,
        requests=requests,
        input_tokens=read,
        output_tokens=written,
        at_most=None if price.amount is None else price.amount * requests,
        basis=price.basis,
        place=_place(context, version),
    )


def texts_of(documents: list[CanaryDocument], least: int) -> dict[str, str]:
    """Documents as text files, pages apart by form feeds; one more that must not pass, and repeats.

    Repeats are other products: their names get a number, since equal documents are one record.
    """
    texts = {_file(document.name): "\f".join(document.pages) for document in documents}
    texts[_file(DOUBTFUL)] = _DOUBTFUL_TEXT
    short = documents[:-1] or documents
    number = 0
    while len(texts) < least:
        number += 1
        for document in short:
            if len(texts) < least:
                name = _file(f"{document.name} {number}")
                texts[name] = _renamed("\f".join(document.pages), document, number)
    return texts


def run_live(
    context: Context,
    version: OpenVersion,
    place: ProofPlace,
    *,
    until: datetime,
    sleep: Callable[[float], None],
    tell: Callable[[str], None],
) -> Reached:
    """Take the documents through every stage, as far as it goes until a time.

    Every step may be repeated: the ledger decides what is left to do, so an interrupted proof goes
    on from there, and nothing is sent twice.

    Args:
        context: of the proof.
        version: to prove.
        place: where failures that were forced are noted.
        until: no longer is waited for the provider.
        sleep: waits so many seconds.
        tell: says what is waited for.

    Raises:
        ProviderError: the provider cannot be used at all.
        what else the stages raise.
    """
    scan_declared(context)
    parse_documents(context, parser_settings(version.spec), version.spec.workload)
    told = None
    while True:
        now = _advance(context, version, place)
        reached = _reached(now, until)
        if reached.settled or reached.due_at is None:
            return reached
        # What is due all the time, and never gets done, ends with the time too.
        if from_text(reached.due_at) > until or context.clock() >= until:
            return reached
        if reached.why is not None and reached.why != told:
            told = reached.why
            tell(reached.why)
        sleep(_pause(context.clock(), reached.due_at))


def collect(context: Context, version: OpenVersion, place: ProofPlace) -> None:
    """Fetch and reconcile what the provider has answered."""
    failures = [failure for failure in failures_of(version) if failure is not UNACKNOWLEDGED]
    _forcing(context, place, failures, lambda given: collect_batches(given, version))


def publish(context: Context, version: OpenVersion, place: ProofPlace) -> None:
    """Publish what was accepted, inside the proof."""
    _forcing(context, place, [UNACKNOWLEDGED], lambda given: publish_accepted(given, version))


def replay(context: Context, version: OpenVersion) -> None:
    """Every step behind the manifest once more, as any run would do it."""
    freeze_manifest(context, version)
    submit_batches(context, version)
    collect_batches(context, version)
    judge_batches(context, version)
    publish_accepted(context, version)


def _advance(context: Context, version: OpenVersion, place: ProofPlace) -> _Standing:
    """Rounds over the stages until nothing goes on by itself now."""
    before: _Standing | None = None
    for _ in range(ROUNDS):
        look_at_due_jobs(context)
        look_at_holds(context)
        freeze_manifest(context, version)
        freeze_retries(context, version)
        waiting = submit_batches(context, version).waiting
        collect(context, version, place)
        judge_batches(context, version)
        publish(context, version, place)
        now = _standing(context, version, waiting)
        is_due = now.due_at is not None and now.due_at <= context.ledger.now()
        if now == before and not is_due:
            return now
        before = now
    assert before is not None  # noqa: S101 - there is at least one round
    return before


def _standing(context: Context, version: OpenVersion, waiting: Mapping[str, str]) -> _Standing:
    wanted = {"version": version.version_no}
    with context.ledger.read() as connection:
        records, retrying, moving = connection.execute(text(_COUNTS), wanted).one()
        jobs = connection.execute(text(_JOBS), wanted).all()
        hold = hold_of(connection, version.version_no)
    polls = [job.next_poll_at for job in jobs if job.state in _POLLED]
    times = [moment for moment in (*polls, first_retry(context.ledger, version.version_no))]
    known = [moment for moment in times if moment is not None]
    held = None if hold is None else f"the version is held: {hold.reason}"
    return _Standing(
        records=int(records),
        moving=int(moving),
        retrying=int(retrying),
        jobs=tuple(sorted(job.state for job in jobs)),
        due_at=None if held else min(known, default=None),
        waits=held or waiting.get(EVERY_BATCH) or next(iter(waiting.values()), None),
    )


def _reached(now: _Standing, until: datetime) -> Reached:
    if now.moving:
        at_work = "the provider is at work" if now.due_at else f"jobs are {', '.join(now.jobs)}"
        return Reached(False, now.due_at, now.waits or at_work)
    late = now.due_at is None or from_text(now.due_at) > until
    if now.retrying and not late:
        return Reached(False, now.due_at, "another attempt is due")
    # Every attempt has its end; what only waits for another one proves as much.
    return Reached(True, why="another attempt is due later" if now.retrying else None)


def _pause(now: datetime, due: str) -> float:
    wait = min(max(from_text(due) - now, SHORTEST_PAUSE), LONGEST_PAUSE)
    return wait.total_seconds()


def _forcing(
    context: Context,
    place: ProofPlace,
    failures: Sequence[Failure],
    step: Callable[[Context], object],
) -> None:
    """Do a step, with the failures that were never forced in this proof."""
    left = [failure for failure in failures if failure.name not in place.forced()]
    forced(context, left, step, place.note_forced)


def _least(version: OpenVersion) -> int:
    """Requests that the provider wants in a job at least."""
    spec = version.spec
    mode: Literal["batch", "online"] = "online" if spec.mode == "online" else "batch"
    row = find_capability(spec.provider, spec.model, endpoint_of_version(version), mode)
    return value_of(row.min_records) or 1


def _place(context: Context, version: OpenVersion) -> str:
    spec = version.spec
    if spec.mode == "online":
        client = online_client(context.settings, spec.provider, spec.endpoint)
        address = _address(client)
        asyncio.run(client.close())
        return address
    with job_client(context, version) as lazy:
        return _address(lazy.get())


def _address(client: object) -> str:
    # Every client has it, though the port does not ask for it.
    return str(cast(Any, client).base_url)


def _file(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") + ".txt"


def _renamed(text: str, document: CanaryDocument, number: int) -> str:
    """The document of another product: each expected value with digits in it gets a number more."""
    names = {
        value
        for values in document.expect.values()
        for value in values
        if re.search(r"\d", value) and " " not in value
    }
    renamed = text
    for name in sorted(names, key=len, reverse=True):
        renamed = renamed.replace(name, f"{name}{number:02d}")
    return renamed if renamed != text else f"{text}\n({number})\n"
