"""The result files of a job that has ended: all of them fetched, or none stored.

Belongs here: the files of one job together, and what a job that cannot be fetched means. Does not
belong here: one file (`fetch.py`), their lines (`collect`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import timedelta

from sqlalchemy import Connection

from pipeline_assets.provider_jobs.fetch import DownloadFailed, Fetched, fetch_file
from pipeline_assets.provider_jobs.life import remote_files
from pipeline_assets.provider_jobs.polling import next_delay
from resources.clock import to_text
from resources.context import Context
from resources.ledger.alerts import raise_alert
from resources.ledger.jobs import JobRow, reload_job, update_job
from resources.ledger.leases import Heartbeat, Lease, fenced
from resources.ledger.results import store_result_file
from resources.providers.port import BatchClient, ProviderError


class NotCollectable(Exception):
    """A job is done at its provider, and its results cannot be fetched now.

    It is a state of its own: nothing is taken for missing while it lasts.
    """


def fetch_results(
    context: Context,
    lease: Lease,
    job: JobRow,
    client: BatchClient,
    *,
    sleep: Callable[[float], None] = time.sleep,
    later: bool = True,
) -> list[Fetched]:
    """Fetch every result file of a job; the artifacts are stored, the ledger is not changed.

    Args:
        context: the open resources.
        lease: the job's.
        job: done at its provider.
        client: its provider's.
        sleep: waits between connections.
        later: on failure an alert is raised and a later run tries again; else nothing is written.

    Raises:
        NotCollectable: a file could not be fetched whole.
    """
    files = remote_files(job)
    if files is None or job.provider_job_id is None:
        return []
    heart = Heartbeat(context.ledger, lease)
    try:
        return [
            fetch_file(
                context.artifacts,
                client,
                job.id,
                job.provider_job_id,
                file,
                rng=context.rng,
                sleep=sleep,
                on_block=heart.beat,
            )
            for file in files.files
        ]
    except (ProviderError, DownloadFailed) as error:
        if later:
            _write_not_collectable(context, lease, job, str(error))
        raise NotCollectable(f"the results of {job.id} cannot be fetched now: {error}") from error


def write_fetched(
    connection: Connection, batch_no: int, fetched: Sequence[Fetched], at: str
) -> None:
    """Note fetched files beside their batch, all together; a file that is known stays as it is."""
    for file in fetched:
        store_result_file(
            connection,
            batch_no,
            file.kind,
            file.stored.digest,
            file.stored.size,
            file.lines,
            at,
        )


def _write_not_collectable(context: Context, lease: Lease, job: JobRow, problem: str) -> None:
    with fenced(context.ledger, lease) as connection:
        now = reload_job(connection, job)
        failures = (now.poll_failures or 0) + 1
        delay = max(timedelta(minutes=1), next_delay(failures, context.rng))
        moment = context.ledger.clock()
        update_job(
            connection,
            lease,
            now,
            poll_failures=failures,
            next_poll_at=to_text(moment + delay),
        )
        raise_alert(connection, "not_collectable", now.id, problem, to_text(moment))
