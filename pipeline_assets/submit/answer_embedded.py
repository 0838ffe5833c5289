"""Batches that the built-in provider answers inside the run.

Belongs here: the order of intent, answers and record of the answers. Does not belong here: the
rules behind the answers, providers elsewhere (`hand_over` of `provider_jobs`,
`answer_online.py`), and what becomes of the results (`collect`).

An embedded provider costs nothing and gives the same bytes again, so a batch that was left
between intent and results is simply answered again. The states it passes are those of every batch.
"""

from __future__ import annotations

from pipeline_assets.providers import embedded_provider
from pipeline_assets.versions import OpenVersion
from resources.artifacts import ArtifactWriter, Stored
from resources.batched import batched
from resources.context import Context
from resources.ledger.batches import Batch, find_batches, records_of, reload_batch, update_batch
from resources.ledger.leases import Heartbeat, Lease, LeaseHeld, fenced, held
from resources.ledger.moves import batch_chain, move_batch, move_records
from resources.ledger.results import store_result_file
from resources.providers.port import EmbeddedProvider, split_lines

WRITTEN_AT_ONCE = 100
"""Result lines that are written and counted together."""
_OPEN = ("prepared", "submitting", "submitted", "running")


def answer_embedded(
    context: Context, version: OpenVersion, most: int | None = None
) -> tuple[list[Batch], dict[str, str]]:
    """Answer the batches of the version that have no results yet.

    Args:
        context: the open resources.
        version: the version, not held.
        most: answer no more batches than this; None for all.

    Returns:
        The batches answered, and why others were not (batch id → reason).

    Raises:
        ArtifactDamaged: a request file's bytes are not those that were frozen.
    """
    todo = find_batches(context.ledger, version.version_no, _OPEN)[:most]
    provider = embedded_provider(version)
    answered: list[Batch] = []
    waiting: dict[str, str] = {}
    context.progress.start("answers", sum(batch.expected_records for batch in todo))
    for batch in todo:
        try:
            with held(context.ledger, batch.lease_name, context.worker) as lease:
                if not _still_open(context, batch):
                    continue
                _record_intent(context, lease, batch)
                stored, lines = _answer(context, lease, provider, batch)
                _record_results(context, lease, batch, stored, lines)
        except LeaseHeld as error:
            # Not its failure and not ours: the other one goes on with it.
            waiting[batch.batch_id] = str(error)
            continue
        answered.append(batch)
    context.progress.finish()
    return answered, waiting


def _still_open(context: Context, batch: Batch) -> bool:
    """Another worker may have answered it between the look and the lease."""
    with context.ledger.read() as connection:
        return reload_batch(connection, batch.batch_no).state in _OPEN


def _record_intent(context: Context, lease: Lease, batch: Batch) -> None:
    """Intent, submission and start: durable before the first answer."""
    ledger = context.ledger
    with fenced(ledger, lease) as connection:
        state = reload_batch(connection, batch.batch_no).state
        if state != "prepared":
            return
        cause = context.cause(f"answered by {batch.provider} inside the run", "submit")
        update_batch(
            connection,
            lease,
            batch.batch_no,
            intent_id=batch.batch_key,
            provider_job_id=f"{batch.provider}-{batch.batch_key}",
            submitted_at=cause.at,
            raw_status="answering",
        )
        for from_state, to_state in (
            ("prepared", "submitting"),
            ("submitting", "submitted"),
            ("submitted", "running"),
        ):
            move_batch(connection, ledger.dialect, batch.batch_no, from_state, to_state, cause)
        members = records_of(connection, ledger, batch)
        move_records(
            connection,
            ledger.dialect,
            members,
            "prepared",
            "submitted",
            cause,
            batch_chain(batch.batch_no),
        )


def _answer(
    context: Context, lease: Lease, provider: EmbeddedProvider, batch: Batch
) -> tuple[Stored, int]:
    lines = 0
    heart = Heartbeat(context.ledger, lease)

    # What is answered must be what was frozen.
    context.artifacts.verify("request", batch.request_artifact)

    def fill(writer: ArtifactWriter) -> None:
        nonlocal lines
        with context.artifacts.open("request", batch.request_artifact) as stream:
            for answers in batched(
                (provider.answer_line(line.data) for line in split_lines(stream)), WRITTEN_AT_ONCE
            ):
                writer.write(b"\n".join(answers) + b"\n")
                lines += len(answers)
                heart.beat()
                context.progress.advance(len(answers))

    return context.artifacts.write("result", fill), lines


def _record_results(
    context: Context, lease: Lease, batch: Batch, stored: Stored, lines: int
) -> None:
    with fenced(context.ledger, lease) as connection:
        if reload_batch(connection, batch.batch_no).state != "running":
            return
        cause = context.cause("every request was answered", "submit")
        store_result_file(
            connection, batch.batch_no, "output", stored.digest, stored.size, lines, cause.at
        )
        update_batch(
            connection,
            lease,
            batch.batch_no,
            provider_outcome="completed",
            raw_status="answered",
            last_counts=f'{{"lines":{lines}}}',
        )
        move_batch(
            connection,
            context.ledger.dialect,
            batch.batch_no,
            "running",
            "results_available",
            cause,
        )
