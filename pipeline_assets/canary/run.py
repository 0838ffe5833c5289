"""A canary's way: made when one is needed, sent in the mode of its records, judged when it is back.

Belongs here: the steps and their transactions. Does not belong here: the gate's decision
(`gate.py`), the requests (`make.py`), the verdict (`judge.py`), the job's life (`provider_jobs`).
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence

import msgspec
from sqlalchemy.exc import IntegrityError

from pipeline_assets.canary.gate import Combination, GateDecision, decide_gate
from pipeline_assets.canary.judge import CanaryFinding, judge_canary
from pipeline_assets.canary.make import canary_documents, make_canary, name_documents
from pipeline_assets.costs.canaries import (
    NO_USAGE,
    unanswered_of,
    usage_of_lines,
    with_unanswered,
)
from pipeline_assets.costs.gate import BudgetGate
from pipeline_assets.costs.rates import day_rates
from pipeline_assets.online_calls.call_plan import STOPPING, CallPolicy
from pipeline_assets.online_calls.online import GroupResult, answer_group
from pipeline_assets.online_calls.window import open_window
from pipeline_assets.operating import operating
from pipeline_assets.prompting.request_maker import make_request_maker
from pipeline_assets.provider_jobs.clients import LazyClient
from pipeline_assets.provider_jobs.hand_over import hand_over
from pipeline_assets.provider_jobs.life import Submission, hold_version, write_answering
from pipeline_assets.provider_jobs.limits import capability_of, value_of, with_operating
from pipeline_assets.provider_jobs.results import NotCollectable, fetch_results
from pipeline_assets.providers import endpoint_of_version, wire_of
from pipeline_assets.versions import OpenVersion, prompt_of
from resources.clock import to_text
from resources.context import Context
from resources.ledger.alerts import clear_alerts, raise_alert
from resources.ledger.canaries import (
    CanaryPlan,
    CanaryRow,
    count_canaries,
    load_canary,
    newest_canary,
    store_canary,
    store_verdict,
)
from resources.ledger.intents import fingerprint
from resources.ledger.job_prices import CanaryUsage, add_canary_usage, store_price
from resources.ledger.jobs import JobRow, find_job, find_jobs, move_job, reload_job, update_job
from resources.ledger.leases import Lease, LeaseHeld, fenced, held
from resources.ledger.versions import state_of
from resources.providers.capabilities import Mode, find_capability
from resources.providers.port import ResultReader, split_lines
from resources.providers.registry import online_client, sdk_version
from resources.record_ids import batch_key


def combination_of(version: OpenVersion) -> Combination:
    """What a canary of this version vouches for.

    Raises:
        SdkMissing: the provider's SDK is not installed.
    """
    spec = version.spec
    return Combination(
        provider=spec.provider,
        mode=spec.mode,
        model=spec.model,
        endpoint=endpoint_of_version(version),
        sdk_version=sdk_version(spec.provider),
        schema_digest=hashlib.sha256(version.workload.output_schema).hexdigest(),
        prompt_digest=hashlib.sha256(prompt_of(version)).hexdigest(),
        parameters=spec.parameters,
    )


def gate_of(context: Context, version: OpenVersion) -> GateDecision:
    """May the version's records be sent? Asks nobody and changes nothing."""
    newest = newest_canary(context.ledger, combination_of(version).digest)
    return decide_gate(newest, context.ledger.clock())


def pass_canary(
    context: Context, version: OpenVersion, client: LazyClient, budget: BudgetGate | None = None
) -> GateDecision:
    """The gate, after whatever can be done for it now: a canary is made, sent, or answered.

    A canary is paid by the version: it is sent only if the version's budget allows it.

    Raises:
        CanaryUnmakeable: the version's limits leave no room for it.
        ProviderError: the provider cannot be used at all.
    """
    combination = combination_of(version).digest
    newest = newest_canary(context.ledger, combination)
    if newest is not None and _nobody_may_send(context, newest):
        _cancel(context, newest)
        newest = newest_canary(context.ledger, combination)
    decision = decide_gate(newest, context.ledger.clock())
    if decision.gate == "needed":
        _retire(context, newest)
        _make(context, version, combination)
    elif newest is None or newest.state not in ("prepared", "running", "submitted"):
        return decision
    newest = newest_canary(context.ledger, combination)
    if newest is not None:
        _advance(context, version, newest, client, budget)
    return decide_gate(newest_canary(context.ledger, combination), context.ledger.clock())


def settle_canaries(context: Context, version: OpenVersion, client: LazyClient) -> dict[str, str]:
    """Fetch and judge the version's canaries that are back; name → what became of them."""
    outcomes: dict[str, str] = {}
    waiting = find_jobs(
        context.ledger,
        ("results_available",),
        version_no=version.version_no,
        machine="canary",
    )
    for job in waiting:
        try:
            with held(context.ledger, job.lease_name, context.worker) as lease:
                fetched = (
                    []
                    if job.remote_files is None
                    else fetch_results(context, lease, job, client.get())
                )
                artifacts = [file.stored.digest for file in fetched]
                outcomes[job.id] = _judge(context, version, lease, job, artifacts)
        except (NotCollectable, LeaseHeld) as error:
            outcomes[job.id] = str(error)
    return outcomes


def _nobody_may_send(context: Context, canary: CanaryRow) -> bool:
    """Is it unsent, and of a version that may send nothing: held, perhaps by its budget?"""
    if canary.state != "prepared":
        return False
    with context.ledger.read() as connection:
        return state_of(connection, canary.version_no) != "active"


def _cancel(context: Context, canary: CanaryRow) -> None:
    """A version that may send makes a canary of its own: the one whose canary it is pays for it."""
    job = find_job(context.ledger, canary.canary_id)
    assert job is not None  # noqa: S101 - it was just found
    with (
        held(context.ledger, job.lease_name, context.worker) as lease,
        fenced(context.ledger, lease) as connection,
    ):
        if reload_job(connection, job).state == "prepared":
            cause = context.cause("the version whose canary it is may send nothing", "canary")
            move_job(connection, context.ledger, job, "prepared", "cancelled", cause)


def _retire(context: Context, newest: CanaryRow | None) -> None:
    """A canary that passed long ago makes room for the next one."""
    if newest is None or newest.state != "passed":
        return
    job = find_job(context.ledger, newest.canary_id)
    assert job is not None  # noqa: S101 - it was just found
    with (
        held(context.ledger, job.lease_name, context.worker) as lease,
        fenced(context.ledger, lease) as connection,
    ):
        if reload_job(connection, job).state == "passed":
            cause = context.cause("too old to vouch for the provider", "canary")
            move_job(connection, context.ledger, job, "passed", "expired", cause)


def _make(context: Context, version: OpenVersion, combination: str) -> None:
    spec = version.spec
    number = count_canaries(context.ledger, combination) + 1
    key = batch_key(context.ledger.ledger_id, f"canary:{combination}", number)
    maker = make_request_maker(version)
    canary = make_canary(maker, combination, key, _minimum(version))
    stored = context.artifacts.put("request", b"".join(line + b"\n" for line in canary.lines))
    plan = CanaryPlan(
        batch_key=key,
        combination=combination,
        version_no=version.version_no,
        provider=spec.provider,
        mode=spec.mode,
        model=spec.model,
        endpoint=endpoint_of_version(version),
        sdk_version=sdk_version(spec.provider),
        request_artifact=stored.digest,
        request_bytes=stored.size,
        records=len(canary.lines),
        input_tokens=canary.input_tokens,
    )
    try:
        with context.ledger.write() as connection:
            cause = context.cause("a combination that nobody vouched for", "canary")
            store_canary(connection, context.ledger, plan, number, cause)
    except IntegrityError:
        return  # another worker made it first


def _minimum(version: OpenVersion) -> int:
    spec = version.spec
    mode: Mode = "online" if spec.mode == "online" else "batch"
    row = find_capability(spec.provider, spec.model, endpoint_of_version(version), mode)
    return value_of(row.min_records) or 1


def _advance(
    context: Context,
    version: OpenVersion,
    canary: CanaryRow,
    client: LazyClient,
    budget: BudgetGate | None,
) -> None:
    job = find_job(context.ledger, canary.canary_id)
    assert job is not None  # noqa: S101 - it was just found
    if job.mode == "batch" and (
        job.state != "prepared" or (job.next_poll_at or "") > context.ledger.now()
    ):
        return
    try:
        with held(context.ledger, job.lease_name, context.worker) as lease:
            if job.mode == "online":
                _answer_online(context, version, lease, job, budget)
                return
            assert version.spec.request is not None  # noqa: S101 - the spec's own check
            settings = operating(context.ledger, version.version_no)
            submission = Submission(
                client.get(),
                with_operating(capability_of(job), settings, context.ledger.now()[:10]),
                settings,
                version.spec.request.window_hours,
                budget,
            )
            hand_over(context, lease, job, submission)
    except LeaseHeld:
        return  # another worker is at it


def _answer_online(
    context: Context,
    version: OpenVersion,
    lease: Lease,
    job: JobRow,
    budget: BudgetGate | None,
) -> None:
    """Answer a canary by online calls and judge it at once; one that broke off starts again."""
    context.artifacts.verify("request", job.request_artifact)
    if budget is not None:
        with fenced(context.ledger, lease) as connection:
            over = budget.hold_before(connection, job)
        if over is not None:
            return
    client = online_client(context.settings, job.provider, job.endpoint)
    wire = wire_of(version)
    account = fingerprint(context.ledger, client.account())
    write_answering(context, lease, job, account, "canary")
    with context.artifacts.open("request", job.request_artifact) as stream:
        requests = [wire.decode_request(line.data) for line in split_lines(stream)]
    limit = operating(context.ledger, version.version_no).online_concurrency
    # Until what came back is stored, each of them may have been paid.
    _add_usage(context, lease, job, with_unanswered(NO_USAGE, len(requests)))

    async def call() -> GroupResult:
        try:
            return await answer_group(
                client,
                wire,
                requests,
                model=job.model,
                window=open_window(limit),
                policy=CallPolicy(),
                rng=context.rng,
                now=context.clock,
            )
        finally:
            await client.close()

    answers = asyncio.run(call())
    usage = with_unanswered(
        usage_of_lines(wire, answers.lines), answers.possibly_paid - len(requests)
    )
    if answers.stopped in STOPPING:
        _add_usage(context, lease, job, usage)
        # It says nothing of the combination: the canary is answered anew after a release.
        why = f"{job.provider} ended the online calls of {job.id}: {answers.stopped}"
        kind = "auth" if answers.stopped == "auth" else "quota"
        hold_version(context, job.version_no, why, kind=kind)
        return
    stored = context.artifacts.put("result", b"".join(line + b"\n" for line in answers.lines))
    with fenced(context.ledger, lease) as connection:
        cause = context.cause("every request was answered or given up", "canary")
        add_canary_usage(connection, job.no, usage, cause.at)
        update_job(connection, lease, job, provider_outcome="completed", raw_status="answered")
        move_job(connection, context.ledger, job, "running", "results_available", cause)
    _judge(context, version, lease, job, [stored.digest])


def _add_usage(context: Context, lease: Lease, job: JobRow, usage: CanaryUsage) -> None:
    with fenced(context.ledger, lease) as connection:
        add_canary_usage(connection, job.no, usage, context.ledger.now())


def _usage_of_job(reader: ResultReader, job: JobRow, lines: Sequence[bytes]) -> CanaryUsage:
    """What a canary's answers report; that of online calls is kept as they are made."""
    if job.mode != "batch":
        return NO_USAGE
    lost = unanswered_of(reader, lines, job.expected_records, job.provider_outcome)
    return with_unanswered(usage_of_lines(reader, lines), lost)


def _judge(
    context: Context, version: OpenVersion, lease: Lease, job: JobRow, artifacts: Sequence[str]
) -> str:
    """Judge the answers of a canary and store the verdict."""
    row = load_canary(context.ledger, job.no)
    maker = make_request_maker(version)
    documents = canary_documents(maker, _minimum(version))
    asked = name_documents(documents, row.combination, job.batch_key)
    lines: list[bytes] = []
    for artifact in artifacts:
        with context.artifacts.open("result", artifact) as stream:
            lines += [line.data for line in split_lines(stream)]
    wire = wire_of(version)
    findings = judge_canary(version.workload, version.acceptance, wire, asked, lines)
    usage = _usage_of_job(wire, job, lines)
    price = day_rates(job, context.ledger.clock())
    if not artifacts:
        note = f"the job ended as {job.provider_outcome} ({job.error_code or 'no code'})"
        findings.insert(0, CanaryFinding("job", "no_results", note))
    verdict = "failed" if findings else "passed"
    with fenced(context.ledger, lease) as connection:
        if reload_job(connection, job).state != "results_available":
            return "another worker judged it"
        moment = context.ledger.clock()
        age = operating(context.ledger, version.version_no).canary_age
        cause = context.cause(
            f"{len(findings)} findings" if findings else "every answer was right", "canary"
        )
        store_verdict(
            connection,
            lease,
            job.no,
            results=msgspec.json.encode(list(artifacts)).decode(),
            findings=msgspec.json.encode(findings).decode(),
            judged_at=cause.at,
            expires_at=to_text(moment + age),
        )
        add_canary_usage(connection, job.no, usage, cause.at)
        store_price(connection, "canary", job.no, price)
        clear_alerts(connection, job.id, cause.at)
        if findings:
            raise_alert(
                connection,
                "canary_failed",
                job.id,
                f"{len(findings)} findings; no record of its combination is sent",
                cause.at,
            )
        move_job(connection, context.ledger, job, "results_available", verdict, cause)
    return verdict
