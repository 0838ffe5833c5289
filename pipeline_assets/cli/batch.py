"""`tallybook batch`: provider jobs as an operator sees and settles them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from pipeline_assets.cli.options import (
    JsonOption,
    StateOption,
    counted,
    make_settings,
    open_existing,
)

if TYPE_CHECKING:
    from resources.context import Context
    from resources.ledger.jobs import JobRow
    from resources.providers.port import BatchClient

batch_app = typer.Typer(
    help="Show provider jobs, poll them, and settle those that are in doubt.",
    no_args_is_help=True,
)
JobArgument = Annotated[
    str, typer.Argument(metavar="JOB", help="A batch, a canary, or the provider's name of a job.")
]
ReasonOption = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it is kept.")]
ALL_STATES = (
    "prepared",
    "submitting",
    "quarantined",
    "submitted",
    "running",
    "results_available",
    "reconciling",
    "incident",
    "retry_required",
    "completed_with_errors",
    "completed",
    "cancelled",
    "passed",
    "failed",
    "expired",
)
OPEN_STATES = ALL_STATES[:8]


@batch_app.command("list")
def list_command(
    everything: Annotated[
        bool, typer.Option("--all", help="Also those that nothing has to be done for.")
    ] = False,
    state: StateOption = None,
    json: JsonOption = False,
) -> int:
    """List open jobs, and what operators have to know."""
    from pipeline_assets.cli import output
    from resources.ledger.alerts import open_alerts
    from resources.ledger.jobs import find_jobs

    with open_existing(make_settings(state=state)) as context:
        jobs = find_jobs(context.ledger, ALL_STATES if everything else OPEN_STATES)
        rows = [_row(job) for job in jobs if job.mode != "embedded" or everything]
        alerts = open_alerts(context.ledger)
    if json:
        output.emit_json_lines(rows)
        return 0
    columns = ("job", "state", "provider", "mode", "records", "says", "submitted", "next look")
    output.table(
        "Provider jobs",
        columns,
        (
            (
                row["id"],
                row["state"],
                row["provider"],
                row["mode"],
                row["records"],
                row["raw_status"],
                output.local(row["submitted_at"]),
                output.local(row["next_poll_at"]),
            )
            for row in rows
        ),
    )
    for alert in alerts:
        output.say(f"Alert: {alert.kind} of {alert.subject}: {alert.message}")
    return 0


@batch_app.command("show")
def show_command(name: JobArgument, state: StateOption = None, json: JsonOption = False) -> int:
    """Show everything about one job: intents, account, deadlines, files, cost."""
    from pipeline_assets.account.job_facts import job_facts
    from pipeline_assets.cli import output
    from pipeline_assets.provider_jobs.operate import require_job

    with open_existing(make_settings(state=state)) as context:
        job = require_job(context, name)
        facts = job_facts(context, job)
    if json:
        output.emit_json(facts)
        return 0
    output.facts(
        [
            (label.replace("_", " "), _shown(value))
            for label, value in facts.items()
            if not isinstance(value, list)
        ]
    )
    output.table(
        "Intents",
        ("intent", "account", "recorded", "outcome", "job", "detail"),
        (
            (
                entry["intent_id"],
                entry["account"],
                output.local(entry["recorded_at"]),
                entry["outcome"],
                entry["provider_job_id"],
                entry["detail"],
            )
            for entry in facts["intents"]
        ),
    )
    output.table(
        "Result files",
        ("kind", "lines", "bytes", "artifact"),
        (
            (entry["kind"], entry["lines"], entry["bytes"], entry["artifact"])
            for entry in facts["result_files"]
        ),
    )
    return 0


@batch_app.command("poll")
def poll_command(state: StateOption = None, json: JsonOption = False) -> int:
    """Look once at every job that is due, as the sensor does."""
    from pipeline_assets.cli import output
    from pipeline_assets.provider_jobs.monitor import look_at_due_jobs

    with open_existing(make_settings(state=state)) as context:
        report = look_at_due_jobs(context)
    if json:
        output.emit_json(vars(report))
        return 0
    output.say(
        f"{counted(report.looked, 'job')} looked at, {len(report.ended)} done, "
        f"{report.left} left for the next look."
    )
    for name, what in {**report.settled, **report.troubles}.items():
        output.say(f"{name}: {what}")
    if report.ended:
        output.say(f"Collect them with: {output.command('run')}")
    return 0


@batch_app.command("attach")
def attach_command(
    name: JobArgument,
    provider_job: Annotated[
        str, typer.Argument(metavar="PROVIDER_JOB", help="The provider's name of the job.")
    ],
    reason: ReasonOption,
    state: StateOption = None,
) -> int:
    """Say that a job of the provider is a batch that is in doubt."""
    from pipeline_assets.cli import output
    from pipeline_assets.provider_jobs.operate import attach, require_job

    with open_existing(make_settings(state=state)) as context:
        job = require_job(context, name)
        client = _client(context, job)
        try:
            attach(context, job, provider_job, client, reason, context.settings.owner)
        finally:
            client.close()
    output.say(f"{job.id} is submitted as {provider_job}.")
    return 0


@batch_app.command("discard")
def discard_command(name: JobArgument, reason: ReasonOption, state: StateOption = None) -> int:
    """Give a job up: a batch in doubt is cancelled, a lost one counts as unanswered."""
    from pipeline_assets.cli import output
    from pipeline_assets.provider_jobs.operate import discard, require_job

    with open_existing(make_settings(state=state)) as context:
        job = require_job(context, name)
        now = discard(context, job, reason, context.settings.owner)
    output.say(f"{job.id} is {now}.")
    return 0


@batch_app.command("reconcile")
def reconcile_command(name: JobArgument, reason: ReasonOption, state: StateOption = None) -> int:
    """Reconcile an incident again, or look for late results of a batch that is complete."""
    from pipeline_assets.cli import output
    from pipeline_assets.collect.reconcile_again import reconcile_again
    from pipeline_assets.provider_jobs.clients import job_client
    from pipeline_assets.provider_jobs.operate import require_job
    from pipeline_assets.versions import open_version
    from resources.ledger.versions import key_of

    with open_existing(make_settings(state=state)) as context:
        job = require_job(context, name)
        with context.ledger.read() as connection:
            key = key_of(connection, job.version_no)
        version = open_version(context, key)
        with job_client(context, version) as client:
            said = reconcile_again(context, version, job, client, reason, context.settings.owner)
    output.say(f"{job.id}: {said}.")
    return 0


@batch_app.command("cancel")
def cancel_command(name: JobArgument, reason: ReasonOption, state: StateOption = None) -> int:
    """Ask the provider to end a job; what it has finished is collected and paid."""
    from pipeline_assets.cli import output
    from pipeline_assets.provider_jobs.operate import cancel, require_job

    with open_existing(make_settings(state=state)) as context:
        job = require_job(context, name)
        client = _client(context, job)
        try:
            cancel(context, job, client, reason, context.settings.owner)
        finally:
            client.close()
    output.say(f"{job.id} is being cancelled; finished rows are collected when it has ended.")
    return 0


def _client(context: Context, job: JobRow) -> BatchClient:
    from resources.providers.registry import batch_client

    return batch_client(context.settings, job.provider, job.endpoint)


def _row(job: JobRow) -> dict[str, Any]:
    return {
        "id": job.id,
        "kind": job.machine,
        "state": job.state,
        "provider": job.provider,
        "mode": job.mode,
        "model": job.model,
        "records": job.expected_records,
        "raw_status": job.raw_status,
        "provider_job_id": job.provider_job_id,
        "submitted_at": job.submitted_at,
        "next_poll_at": job.next_poll_at,
        "provider_outcome": job.provider_outcome,
        "error_class": job.error_class,
    }


def _shown(value: object) -> object:
    from pipeline_assets.cli import output

    if isinstance(value, str) and len(value) == 27 and value.endswith("Z"):
        return output.local(value)
    return value
