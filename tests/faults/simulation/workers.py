"""What a worker does: look what the ledger has for it, do one step, look again.

Belongs here: the steps, as near to the stages as files and SDKs allow. Does not belong here: who
is disturbed where (`gate.py`) and who goes on (`schedule.py`).

A worker knows nothing that the ledger does not tell it, as a new process would.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

import polars as pl

from pipeline_assets.accept.judge_batches import judge_batches
from pipeline_assets.collect.collect_batches import collect_batches
from pipeline_assets.operating import operating
from pipeline_assets.prepare.manifest_rows import manifest_rows
from pipeline_assets.prepare.retries import freeze_retries
from pipeline_assets.provider_jobs.hand_over import hand_over
from pipeline_assets.provider_jobs.life import Submission
from pipeline_assets.provider_jobs.monitor import look_at_due_jobs
from pipeline_assets.provider_jobs.operate import attach, cancel, discard, require_job
from pipeline_assets.publish.publish_accepted import publish_accepted
from resources.clock import to_text
from resources.context import Context
from resources.ledger.jobs import find_jobs
from resources.ledger.leases import LeaseHeld, fenced, held
from resources.ledger.manifests import (
    ManifestDigest,
    ManifestPlan,
    next_manifest_id,
    store_manifest,
    version_records,
)
from resources.providers.capabilities import find_capability
from resources.providers.port import BatchClient
from tests.faults.simulation.plan import Plan
from tests.faults.simulation.provider import ENDPOINT, MODEL, NAME
from tests.faults.simulation.stubs import batch_of
from tests.faults.simulation.world import KEY, World, checksum

Step = Callable[[World, Context, Plan], None]
UNDECIDED = ("submitting", "quarantined")
AT_PROVIDER = ("submitted", "running")
_STATES = (
    "SELECT COUNT(*), COALESCE(SUM(state = 'retry_wait' AND COALESCE(not_before, '') <= ?), 0), "
    "COALESCE(SUM(state = 'retry_wait'), 0), COALESCE(SUM(state = 'accepted'), 0), "
    "COALESCE(SUM(state IN ('prepared', 'submitted')), 0) FROM record_state s "
    "JOIN records r ON r.record_no = s.record_no WHERE r.version_no = 1"
)
_UNSENT = (
    "SELECT 1 FROM batches WHERE state IN ('prepared','submitting','quarantined') UNION ALL "
    "SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM batches)"
)
_ACTIVE = "SELECT 1 FROM processing_versions WHERE version_no = 1 AND state = 'active'"


def freeze(world: World, context: Context, plan: Plan) -> None:
    """Prepare: as `freeze_manifest` commits, with request files of one word a document."""
    ledger = context.ledger
    with held(ledger, f"manifest:{KEY}", context.worker) as lease:
        known = set(version_records(ledger, world.version.version_no)["document_no"])
        fresh = [no for no in range(1, plan.documents + 1) if no not in known]
        if not fresh:
            return
        manifest_id = next_manifest_id(ledger, world.version.version_no, KEY)
        rows = sorted((_record_id(no), no) for no in fresh)
        digest = ManifestDigest()
        plans = [
            batch_of(world.store, ledger.ledger_id, manifest_id, ordinal, frame_of_documents(part))
            for ordinal, part in enumerate(_parts(rows, plan.batch_records))
        ]
        shards = list(manifest_rows(world.version, plans, digest))
        artifact = world.store.put_frame("manifest", pl.concat(shards))
        with fenced(ledger, lease) as connection:
            store_manifest(
                connection,
                ledger,
                ManifestPlan(
                    manifest_id=manifest_id,
                    version_no=world.version.version_no,
                    digest=digest.hexdigest(),
                    expected=len(rows),
                    artifact=artifact.digest,
                    replay_reason="by document",
                    provider=NAME,
                    mode="batch",
                    model=MODEL,
                    schema_version=1,
                ),
                iter(plans),
                context.cause(f"frozen in {manifest_id}", "prepare"),
            )


def _record_id(no: int) -> str:
    return f"simulated:s/{no}.pdf@{checksum(no)[:12]}:{KEY}"


def _parts(rows: list[tuple[str, int]], most: int) -> Iterator[list[tuple[str, int]]]:
    for start in range(0, len(rows), most):
        yield rows[start : start + most]


def frame_of_documents(rows: list[tuple[str, int]]) -> pl.DataFrame:
    """What a manifest says of documents: rows of record id and number."""
    numbers = [no for _, no in rows]
    return pl.DataFrame(
        {
            "document_no": numbers,
            "source_version_no": numbers,
            "document_id": [f"s/{no}.pdf" for no in numbers],
            "checksum": [checksum(no) for no in numbers],
            "record_id": [name for name, _ in rows],
            "operation": ["extract"] * len(rows),
            "replay_reason": ["new_source"] * len(rows),
        }
    )


def submit(world: World, context: Context, _plan: Plan) -> None:
    """Submit: as `submit_batches` does for jobs, without its canary and its look at the model."""
    now = context.ledger.now()
    jobs = find_jobs(
        context.ledger, ("prepared",), version_no=world.version.version_no, machine="batch"
    )
    for job in jobs:
        if job.next_poll_at is not None and job.next_poll_at > now:
            continue
        with held(context.ledger, job.lease_name, context.worker) as lease:
            hand_over(context, lease, job, submission(world))


def submission(world: World) -> Submission:
    """What a job is handed over with."""
    capability = find_capability(NAME, MODEL, ENDPOINT, "batch")
    return Submission(cast(BatchClient, world.client), capability, world.settings, 24)


def monitor(world: World, context: Context, _plan: Plan) -> None:
    """One tick of the sensor."""
    look_at_due_jobs(
        context, connect=lambda _job: cast(BatchClient, world.client), monotonic=lambda: 0.0
    )


def collect(world: World, context: Context, _plan: Plan) -> None:
    """The asset of collect."""
    collect_batches(context, world.version)


def accept(world: World, context: Context, _plan: Plan) -> None:
    """The asset of accept."""
    judge_batches(context, world.version)


def retry(world: World, context: Context, _plan: Plan) -> None:
    """Freeze what is due for another attempt."""
    freeze_retries(context, world.version_now())


def publish(world: World, context: Context, _plan: Plan) -> None:
    """The asset of publish."""
    publish_accepted(context, world.version)


STEPS: dict[str, Step] = {
    "freeze": freeze,
    "submit": submit,
    "monitor": monitor,
    "collect": collect,
    "accept": accept,
    "publish": publish,
    "retry": retry,
}


PARTS: dict[str, tuple[str, ...]] = {
    "submitted": ("freeze", "submit", "monitor"),
    "ended": ("freeze", "submit", "monitor"),
    "collected": ("monitor", "collect"),
    "judged": ("freeze", "submit", "monitor", "collect", "accept"),
    "refrozen": ("retry",),
    "published": ("accept", "publish"),
    "settled": ("freeze", "submit", "monitor", "collect", "retry"),
    "archived": tuple(STEPS),
}
"""Steps of each part of the pipeline."""
_FINISHED = "'completed','completed_with_errors','retry_required','cancelled'"
_LEFT: dict[str, str] = {
    "submitted": _UNSENT,
    "ended": "SELECT 1 FROM batches WHERE state IN "
    "('submitting','quarantined','submitted','running')",
    "collected": f"SELECT 1 FROM batches WHERE state NOT IN ({_FINISHED})",
    "judged": f"SELECT 1 FROM batches WHERE state NOT IN ({_FINISHED}) "
    "OR (collected_artifact IS NOT NULL AND staging_artifact IS NULL)",
    "refrozen": "SELECT 1 FROM record_state WHERE state = 'retry_wait'",
    "published": "SELECT 1 FROM record_state WHERE state IN ('collected','accepted')",
}
"""What finds a row as long as a part may have something to do later."""


def eligible(world: World, plan: Plan) -> list[str]:
    """What the ledger has to do now, in the order of the pipeline."""
    driver, now, documents = world.driver, world.ledger.now(), plan.documents
    rows = driver.execute(
        "SELECT state, next_poll_at, collected_artifact, staging_artifact FROM batches"
    ).fetchall()
    records, due, waiting, accepted, under_way = driver.execute(_STATES, (now,)).fetchone()
    active = driver.execute(_ACTIVE).fetchone() is not None
    steps = {step for row in rows for step in _steps_of(row, now)}
    if plan.until == "submitted" and not any(
        row[0] in UNDECIDED and (row[1] is None or row[1] <= now) for row in rows
    ):
        steps.discard("monitor")
    if records < documents:
        steps.add("freeze")
    if due and active:
        steps.add("retry")
    if not active:
        steps.discard("submit")
    if accepted:
        steps.add("publish")
    if driver.execute("SELECT 1 FROM late_answers WHERE staging_artifact IS NULL").fetchone():
        steps.add("accept")
    if not waiting and not under_way and any(row[0] == "retry_required" for row in rows):
        steps.add("collect")
    return [name for name in PARTS[plan.until] if name in steps]


def _steps_of(row: tuple[Any, ...], now: str) -> list[str]:
    state, next_poll_at, collected, staged = row
    due = next_poll_at is None or next_poll_at <= now
    if state == "prepared" and due:
        return ["submit"]
    if state in UNDECIDED or state in AT_PROVIDER:
        return ["monitor"] if due else []
    if state in ("results_available", "reconciling"):
        return ["collect"] if due or state == "reconciling" else []
    if collected is not None and staged is None:
        return ["accept"]
    return []


def grant_wish(world: World, context: Context, wish: str) -> bool:
    """What an operator does, if it can be done now; False if not."""
    wanted = {"cancel": AT_PROVIDER, "discard": ("prepared", "quarantined", *AT_PROVIDER)}
    states = wanted.get(wish, UNDECIDED)
    marks = ",".join("?" * len(states))
    row = world.driver.execute(
        f"SELECT batch_id, batch_key FROM batches WHERE state IN ({marks}) LIMIT 1", states
    ).fetchone()
    if row is None:
        return False
    job = require_job(context, row[0])
    client = cast(BatchClient, world.client)
    try:
        if wish == "cancel":
            cancel(context, job, client, "not wanted", "operator")
        elif wish == "discard":
            world.oracles.operator_said(row[1])
            discard(context, job, "given up", "operator")
        else:
            made = world.provider.jobs_of(row[1])
            if not made:
                return False
            attach(context, job, made[0].job_id, client, "found by hand", "operator")
    except LeaseHeld:
        return False
    return True


def next_moment(world: World, plan: Plan, *, patient: bool) -> str | None:
    """The next time at which something can go on by itself; None if nothing ever will.

    Args:
        world: this process's world.
        plan: what is worked at.
        patient: look at running jobs as often as they are due, not only when one has ended.
    """
    left = _LEFT.get(plan.until)
    if (
        left is not None
        and world.driver.execute(left).fetchone() is None
        and not eligible(world, plan)
    ):
        return None
    now = world.ledger.now()
    rows = world.driver.execute(
        "SELECT next_poll_at FROM batches WHERE next_poll_at > ? AND state IN "
        "('prepared','submitting','quarantined','submitted','running','results_available') "
        "UNION ALL SELECT not_before FROM record_state WHERE state = 'retry_wait' "
        "AND not_before > ? "
        "UNION ALL SELECT expires_at FROM leases WHERE expires_at > ?",
        (now, now, now),
    ).fetchall()
    first = min((row[0] for row in rows), default=None)
    # A job that an operator gave up is never looked at again.
    ends = [
        job.ends_at
        for job in world.provider.jobs.values()
        if not job.ended and job.ends_at > world.clock()
    ]
    over = f"{_FINISHED},'results_available'" if plan.until == "ended" else _FINISHED
    unfinished = world.driver.execute(
        f"SELECT SUM(state NOT IN ('submitted','running')) FROM batches WHERE state NOT IN ({over})"
    ).fetchone()[0]
    if first is None or not ends or unfinished != 0 or patient:
        return first
    return max(first, to_text(min(ends)))


def settings_of(world: World) -> Any:
    """Operating settings, read once: nobody changes them in a schedule."""
    return operating(world.ledger, 1)
