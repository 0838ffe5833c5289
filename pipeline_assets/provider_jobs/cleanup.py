"""Deleting a job's files at its provider, once its results are safe here.

Belongs here: the policy and the order. Does not belong here: how a provider deletes.
"""

from __future__ import annotations

from collections.abc import Iterable

from pipeline_assets.operating import Operating
from pipeline_assets.provider_jobs.life import remote_files
from resources.context import Context
from resources.ledger.jobs import JobRow, update_job
from resources.ledger.leases import LeaseHeld, fenced, held
from resources.providers.port import BatchClient, ProviderError

JOBS_AT_ONCE = 50


def delete_remote(
    context: Context, jobs: Iterable[JobRow], client: BatchClient, settings: Operating
) -> dict[str, str]:
    """Delete the remote files of jobs whose results were collected and verified.

    Args:
        context: the open resources.
        jobs: complete ones.
        client: their provider, under their account.
        settings: `delete_remote` says whether at all.

    Returns:
        Jobs whose files could not be deleted now, with why; they are tried again next time.
    """
    troubles: dict[str, str] = {}
    if not settings.delete_remote:
        return troubles
    todo = [job for job in jobs if job.remote_files and job.remote_deleted_at is None]
    for job in todo[:JOBS_AT_ONCE]:
        files = remote_files(job)
        if files is None or job.provider_job_id is None:
            continue
        try:
            client.delete(job.provider_job_id, tuple(files.refs))
            with (
                held(context.ledger, job.lease_name, context.worker) as lease,
                fenced(context.ledger, lease) as connection,
            ):
                update_job(connection, lease, job, remote_deleted_at=context.ledger.now())
        except ProviderError as error:
            troubles[job.id] = str(error)
        except LeaseHeld:
            continue
    return troubles
