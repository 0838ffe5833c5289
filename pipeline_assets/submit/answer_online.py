"""Batches whose requests are answered one by one, online, inside the run.

Belongs here: a batch's states around the calls, and its groups in the ledger. Does not belong
here: the calls (`pipeline_assets/online_calls`), and what becomes of the results (`collect`).

Answers are stored in small groups as lines of the provider's own batch format. A run that dies
costs the calls of one group, which are counted as possibly paid; everything else is kept.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import timedelta
from io import BytesIO

from pipeline_assets.costs.gate import BudgetGate
from pipeline_assets.online_calls.call_plan import STOPPING, CallPolicy
from pipeline_assets.online_calls.online import answer_batch
from pipeline_assets.online_calls.window import open_window
from pipeline_assets.operating import Operating
from pipeline_assets.provider_jobs.life import (
    hold_version,
    write_answering,
    write_later,
)
from pipeline_assets.providers import wire_of
from pipeline_assets.versions import OpenVersion
from resources.clock import to_text
from resources.context import Context
from resources.ledger.intents import fingerprint
from resources.ledger.jobs import JobRow, move_job, reload_job, update_job
from resources.ledger.leases import Heartbeat, Lease, fenced
from resources.ledger.online_groups import (
    end_group,
    finished_groups,
    start_group,
)
from resources.ledger.results import result_files_of, store_result_file
from resources.providers.port import Wire, split_lines
from resources.providers.registry import online_client

PAUSE = timedelta(minutes=1)
"""Calls that ended early without a wish of the provider's go on after so long at the soonest."""


class BudgetReached(Exception):
    """A group of calls could pass the version's budget; none of them was made."""


def answer_online(
    context: Context,
    lease: Lease,
    version: OpenVersion,
    job: JobRow,
    settings: Operating,
    budget: BudgetGate | None = None,
) -> str | None:
    """Answer what is not answered of a batch; before each group of calls its budget is asked.

    Returns:
        None once every request has a line; else why the calls ended early. The rest is called in
        a later run.

    Raises:
        ArtifactDamaged: the request file's bytes are not those that were frozen.
        CredentialsMissing, SdkMissing: the provider cannot be called; nothing was sent.
    """
    context.artifacts.verify("request", job.request_artifact)
    client = online_client(context.settings, job.provider, job.endpoint)
    account = fingerprint(context.ledger, client.account())
    write_answering(context, lease, job, account, "submit")
    wire = wire_of(version)
    store = _Groups(context, lease, job, wire, Heartbeat(context.ledger, lease), budget)
    context.progress.start("online answers", job.expected_records)
    try:
        with context.artifacts.open("request", job.request_artifact) as requests:
            answers = answer_batch(
                client,
                wire,
                requests,
                model=job.model,
                store=store,
                window=open_window(settings.online_concurrency),
                policy=CallPolicy(),
                rng=context.rng,
                now=context.clock,
            )
    except BudgetReached as reached:
        write_later(context, lease, job, context.ledger.now())
        return str(reached)
    finally:
        context.progress.finish()
    if answers.stopped is None:
        _finish(context, lease, job)
        return None
    if answers.stopped in STOPPING:
        hold_version(
            context,
            job.version_no,
            f"{job.provider} ended the online calls: {answers.stopped}",
            kind="auth" if answers.stopped == "auth" else "quota",
        )
    later = answers.window.blocked_until or context.ledger.clock() + PAUSE
    write_later(context, lease, job, to_text(later))
    return f"the online calls ended early ({answers.stopped}); what is answered is kept"


def _finish(context: Context, lease: Lease, job: JobRow) -> None:
    with fenced(context.ledger, lease) as connection:
        now = reload_job(connection, job)
        if now.state != "running":
            return
        cause = context.cause("every request was answered", "submit")
        update_job(
            connection,
            lease,
            now,
            provider_outcome="completed",
            raw_status="answered",
            next_poll_at=None,
        )
        move_job(connection, context.ledger, now, "running", "results_available", cause)


@dataclass
class _Groups:
    """The groups of a batch in the ledger, behind the engine's `GroupStore`."""

    context: Context
    lease: Lease
    job: JobRow
    wire: Wire
    heart: Heartbeat
    budget: BudgetGate | None
    _parts: dict[int, int] = field(default_factory=dict)

    def finished(self) -> set[int]:
        return finished_groups(self.context.ledger, self.job.no)

    def answered(self, group: int) -> Collection[str]:
        found: set[str] = set()
        files = result_files_of(self.context.ledger, self.job.no)
        for _, kind, artifact, *_ in files.iter_rows():
            if kind == _kind(group):
                with self.context.artifacts.open("result", artifact) as stream:
                    names = (
                        self.wire.read_line(line.data).custom_id for line in split_lines(stream)
                    )
                    found.update(name for name in names if name is not None)
        return found

    def start(self, group: int, first: int, count: int) -> None:
        with fenced(self.context.ledger, self.lease) as connection:
            over = self.budget and self.budget.hold_before_calls(connection, self.job, first, count)
            if not over:
                at = self.context.ledger.now()
                start_group(connection, self.job.no, group, first, count, at)
        if over:
            raise BudgetReached(over)

    def finish(self, group: int, lines: bytes, calls: int, possibly_paid: int) -> None:
        self._end(group, lines, calls, possibly_paid, whole=True)

    def keep(self, group: int, lines: bytes, calls: int, possibly_paid: int) -> None:
        self._end(group, lines, calls, possibly_paid, whole=False)

    def beat(self) -> None:
        self.heart.beat()

    def _end(
        self, group: int, lines: bytes, calls: int, possibly_paid: int, *, whole: bool
    ) -> None:
        stored = self.context.artifacts.put("result", lines) if lines else None
        count = sum(1 for _ in split_lines(BytesIO(lines)))
        with fenced(self.context.ledger, self.lease) as connection:
            at = self.context.ledger.now()
            if stored is not None:
                store_result_file(
                    connection, self.job.no, _kind(group), stored.digest, stored.size, count, at
                )
            end_group(connection, self.job.no, group, calls, possibly_paid, at, whole=whole)
        self.context.progress.advance(count)


def _kind(group: int) -> str:
    return f"online-{group}"
