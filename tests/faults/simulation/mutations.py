"""Planted bugs: at least one for each invariant, to show that an oracle would see it.

Belongs here: each bug as replacements of names, and which invariant it breaks. Does not belong
here: running them (`hunt.py`).

A planted bug that is never caught is a hole in the oracles.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import polars as pl
from sqlalchemy import Connection, text

from pipeline_assets.accept import judge_batches
from pipeline_assets.collect import collect_batches, evidence, settle
from pipeline_assets.prepare import retries
from pipeline_assets.provider_jobs import hand_over, life, monitor, results
from pipeline_assets.provider_jobs.adoption import Absent
from pipeline_assets.provider_jobs.fetch import Fetched
from pipeline_assets.publish import publish_accepted
from resources.ledger import leases, manifests, moves
from resources.ledger.errors import LedgerError
from resources.ledger.sqlite import SqliteDialect
from resources.providers.port import Ambiguous, Found, ProviderError
from tests.faults.simulation import workers
from tests.faults.simulation.provider import Client
from tests.faults.simulation.stubs import Replacement


@dataclass(frozen=True)
class Mutation:
    """A planted bug.

    Attributes:
        invariant: which one of the design it breaks.
        what: one sentence.
        plant: the replacements, made while the simulation is open.
    """

    invariant: int
    what: str
    plant: Callable[[], list[Replacement]]


def _no_fence() -> list[Replacement]:
    return [Replacement(leases, "fence", lambda *_: None)]


def _expiry_unchecked() -> list[Replacement]:
    def fence(connection: Connection, ledger: Any, lease: leases.Lease) -> None:
        if not ledger.dialect.lock_lease(connection, lease.name, lease.token):
            raise leases.LeaseLost(lease)

    return [Replacement(leases, "fence", fence)]


def _token_unchecked() -> list[Replacement]:
    def fence(connection: Connection, ledger: Any, lease: leases.Lease) -> None:
        row = connection.execute(
            text("SELECT expires_at FROM leases WHERE name = :name"), {"name": lease.name}
        ).one()
        if row.expires_at <= ledger.now():
            raise leases.LeaseExpired(lease, row.expires_at)

    return [Replacement(leases, "fence", fence)]


def _lease_stolen() -> list[Replacement]:
    real = leases.acquire

    def acquire(ledger: Any, name: str, owner: str, seconds: int = 300) -> leases.Lease:
        ledger.driver.execute("PRAGMA query_only=0")
        ledger.driver.execute(
            "UPDATE leases SET expires_at = ? WHERE name = ?", (ledger.now(), name)
        )
        return real(ledger, name, owner, seconds)

    return [Replacement(leases, "acquire", acquire)]


def _intent_after_call() -> list[Replacement]:
    real = Client.create

    def create(self: Client, job: Any) -> Any:
        job.on_uploaded.args[0].ledger.driver.execute("PRAGMA query_only=0")
        job.on_uploaded.args[0].ledger.driver.execute(
            "DELETE FROM intents WHERE intent_id = ?", (job.intent.intent_id,)
        )
        return real(self, job)

    return [Replacement(Client, "create", create)]


def _blind_resubmit() -> list[Replacement]:
    return [Replacement(hand_over, "decide_adoption", lambda *_, **__: Absent())]


def _incomplete_search_believed() -> list[Replacement]:
    real = hand_over.decide_adoption

    def decide(found: Found, **rest: Any) -> Any:
        rest["recorded_at"] -= timedelta(hours=1)
        return real(Found(found.jobs, (), complete=True), **rest)

    return [Replacement(hand_over, "decide_adoption", decide)]


def _call_repeated() -> list[Replacement]:
    """An ambiguous answer is taken for a refusal and the call is made again at once."""
    real = Client.create

    def create(self: Client, job: Any) -> Any:
        try:
            return real(self, job)
        except Ambiguous:
            return real(self, job)

    return [Replacement(Client, "create", create)]


def _call_without_renewal() -> list[Replacement]:
    return [Replacement(hand_over, "write_calling", lambda *_: None)]


def _local_failure_recalls() -> list[Replacement]:
    real = hand_over.write_accepted

    def accepted(context: Any, lease: Any, job: Any, found: Any, submission: Any, why: str) -> None:
        try:
            real(context, lease, job, found, submission, why)
        except LedgerError:
            reason = "the database failed"
            life.write_not_created(context, lease, job, "refused", reason, wait=timedelta(1))
            raise

    return [Replacement(hand_over, "write_accepted", accepted)]


def _outcome_with(change: Callable[[Any], Any]) -> list[Replacement]:
    real = evidence.reconcile

    def reconcile(*given: Any, **named: Any) -> Any:
        return change(real(*given, **named))

    return [Replacement(evidence, "reconcile", reconcile)]


def _dispositions(outcome: Any, frame: pl.DataFrame) -> Any:
    return replace(outcome, dispositions=frame)


def _missing_is_success() -> list[Replacement]:
    def change(outcome: Any) -> Any:
        missing = pl.col("failure_class") == "missing_result"
        return _dispositions(
            outcome,
            outcome.dispositions.with_columns(
                disposition=pl.when(missing).then(pl.lit("succeeded")).otherwise("disposition"),
                failure_class=pl.when(missing).then(None).otherwise("failure_class"),
            ),
        )

    return _outcome_with(change)


def _duplicate_last_wins() -> list[Replacement]:
    real = evidence.reconcile

    def reconcile(expected: Any, observed: pl.DataFrame, *given: Any, **named: Any) -> Any:
        last = observed.unique("custom_id", keep="last", maintain_order=True)
        return real(expected, last, *given, **named)

    return [Replacement(evidence, "reconcile", reconcile)]


def _one_disposition_lost() -> list[Replacement]:
    real_count = settle.count_dispositions

    def counted(connection: Connection, first: int, last: int) -> int:
        connection.execute(
            text("DELETE FROM dispositions WHERE attempt_no = :first"), {"first": first}
        )
        return real_count(connection, first, last) + 1

    return [Replacement(settle, "count_dispositions", counted)]


def _partial_output_thrown_away() -> list[Replacement]:
    real = collect_batches.fetch_results

    def fetch(context: Any, lease: Any, job: Any, client: Any) -> Any:
        return [] if job.provider_outcome == "expired" else real(context, lease, job, client)

    return [Replacement(collect_batches, "fetch_results", fetch)]


def _short_body_believed() -> list[Replacement]:
    def fetch(store: Any, client: Any, _name: str, job_id: str, file: Any, **_rest: Any) -> Any:
        with client.open_file(job_id, file, 0) as download:
            data = b"".join(download.blocks)
        return Fetched(file.kind, store.put("result", data), data.count(b"\n"))

    return [Replacement(results, "fetch_file", fetch)]


def _publish_unaccepted() -> list[Replacement]:
    real = judge_batches._judge

    def judge(*given: Any) -> Any:
        judged = real(*given)
        everything = judged.staging.with_columns(outcome=pl.lit("accepted"))
        return replace(judged, staging=everything)

    return [Replacement(judge_batches, "_judge", judge)]


def _double_delivery() -> list[Replacement]:
    real = publish_accepted.publish_entries

    def publish(
        connection: Any, ledger: Any, version: int, frame: pl.DataFrame, at: str, change: int
    ) -> int:
        real(connection, ledger, version, frame, at, change)
        again = frame.with_columns(pl.col("promotion") + 1)
        return real(connection, ledger, version, again, at, change)

    return [Replacement(publish_accepted, "publish_entries", publish)]


def _half_publication() -> list[Replacement]:
    return [Replacement(SqliteDialect, "add_search", lambda *_: None)]


def _earlier_version_hidden() -> list[Replacement]:
    """The old entry is closed in a transaction of its own before the new one is written."""
    real = publish_accepted._has_accepted

    def hide(context: Any, staged: Any) -> bool:
        with context.ledger.write() as connection:
            connection.execute(
                text(
                    "UPDATE archive_entries SET valid_to = :at WHERE version_no <> 1 "
                    "AND valid_to IS NULL"
                ),
                {"at": context.ledger.now()},
            )
        return real(context, staged)

    return [Replacement(publish_accepted, "_has_accepted", hide)]


def _manifest_changed() -> list[Replacement]:
    real = retries.due_retries

    def due(ledger: Any, version_no: int, at: str) -> pl.DataFrame:
        with ledger.write() as connection:
            connection.execute(
                text("UPDATE attempts SET request_offset = request_offset + 1 WHERE attempt_no = 1")
            )
        return real(ledger, version_no, at)

    return [Replacement(retries, "due_retries", due)]


def _manifest_digest_of_nothing() -> list[Replacement]:
    return [Replacement(manifests.ManifestDigest, "add", lambda *_: None)]


def _journal_skipped() -> list[Replacement]:
    def move(connection: Connection, dialect: Any, members: pl.Series, *rest: Any) -> None:
        if members.is_empty():
            return
        numbers = ",".join(str(number) for number in members)
        connection.execute(
            text(f"UPDATE record_state SET state = :to WHERE record_no IN ({numbers})"),
            {"to": rest[1]},
        )

    return [Replacement(judge_batches, "move_records", move)]


def _illegal_move() -> list[Replacement]:
    given = settle._TARGETS
    return [
        Replacement(moves, "require_legal", lambda *_: None),
        Replacement(settle, "_TARGETS", {**given, "retry": "accepted"}),
    ]


def _chain_broken() -> list[Replacement]:
    return [Replacement(moves, "move_digest", lambda row: f"{hash(str(row)) & (2**64 - 1):064x}")]


def _results_after_judging() -> list[Replacement]:
    """Result files are put on record in the transaction that classifies them."""
    real = results.store_result_file
    real_store = settle.store_results

    def later(connection: Connection, *rest: Any) -> None:
        real(connection, *rest)
        connection.execute(text("UPDATE result_files SET artifact = 'x' || artifact"))

    def store(connection: Connection, *rest: Any) -> None:
        connection.execute(text("UPDATE result_files SET artifact = substr(artifact, 2)"))
        real_store(connection, *rest)

    real_files = evidence.result_files_of

    def files(ledger: Any, batch_no: int) -> pl.DataFrame:
        found = real_files(ledger, batch_no)
        return found.with_columns(artifact=pl.col("artifact").str.strip_prefix("x"))

    return [
        Replacement(results, "store_result_file", later),
        Replacement(settle, "store_results", store),
        Replacement(evidence, "result_files_of", files),
    ]


def _judged_with_dispositions() -> list[Replacement]:
    """Answers are judged in the transaction that gives them their dispositions."""
    real = settle.store_results

    def store(connection: Connection, ledger: Any, lines: Any, decided: pl.DataFrame) -> None:
        real(connection, ledger, lines, decided)
        connection.execute(
            text(
                "INSERT INTO judgements SELECT p.attempt_no, a.record_no, 'accepted', '' "
                "FROM dispositions p JOIN attempts a ON a.attempt_no = p.attempt_no "
                "WHERE p.disposition = 'succeeded' AND p.attempt_no NOT IN "
                "(SELECT attempt_no FROM judgements)"
            )
        )

    return [Replacement(settle, "store_results", store)]


def _succeeded_are_retried() -> list[Replacement]:
    real = settle._failed

    def failed(batch: Any, own: pl.DataFrame) -> pl.DataFrame:
        spoilt = own.with_columns(
            disposition=pl.lit("retryable_failure"),
            failure_class=pl.coalesce("failure_class", pl.lit("transport")),
        )
        return real(batch, spoilt)

    def move(connection: Any, context: Any, batch: Any, own: pl.DataFrame, decided: Any) -> None:
        real_move(
            connection,
            context,
            batch,
            own.with_columns(disposition=pl.lit("retryable_failure")),
            decided,
        )

    real_move = settle._move
    return [Replacement(settle, "_failed", failed), Replacement(settle, "_move", move)]


def _late_line_wins_always() -> list[Replacement]:
    real = settle.choose_late

    def choose(late: pl.DataFrame, standing: pl.DataFrame, answered: pl.Series) -> pl.DataFrame:
        return real(late, standing, answered).with_columns(used=pl.lit(value=True))

    return [Replacement(settle, "choose_late", choose)]


def _records_twice() -> list[Replacement]:
    """One document gets two records, past the keys that forbid it."""
    real = workers.frame_of_documents

    def twice(rows: list[tuple[str, int]]) -> pl.DataFrame:
        frame = real(rows)
        again = frame.head(1).with_columns(
            pl.col("source_version_no") + 100, record_id=pl.col("record_id") + "x"
        )
        return pl.concat([frame, again])

    return [Replacement(workers, "frame_of_documents", twice)]


def _reservation_kept() -> list[Replacement]:
    return [
        Replacement(life, "release_reservation", lambda *_: None),
    ]


def _missing_job_is_failed_job() -> list[Replacement]:
    """A look that fails is taken for the end of the job."""
    real = monitor._write_trouble

    def trouble(context: Any, lease: Any, job: Any, error: ProviderError) -> None:
        if job.state in ("submitted", "running"):
            with leases.fenced(context.ledger, lease) as connection:
                life.release_reservation(connection, job, context.ledger.now())
                moves.move_batch(
                    connection,
                    context.ledger.dialect,
                    job.no,
                    job.state,
                    "results_available",
                    context.cause("it does not answer", "monitor"),
                )
            return
        real(context, lease, job, error)

    return [Replacement(monitor, "_write_trouble", trouble)]


MUTATIONS: dict[str, Mutation] = {
    "one_disposition_lost": Mutation(1, "an attempt has no disposition", _one_disposition_lost),
    "missing_is_success": Mutation(1, "a missing line counts as success", _missing_is_success),
    "duplicate_last_wins": Mutation(1, "the last of two answers is used", _duplicate_last_wins),
    "short_body_believed": Mutation(1, "half a file is taken for all", _short_body_believed),
    "partial_output_thrown_away": Mutation(
        1, "what an expired job answered is not fetched", _partial_output_thrown_away
    ),
    "missing_job_is_failed_job": Mutation(
        1, "a look that fails ends the job", _missing_job_is_failed_job
    ),
    "intent_after_call": Mutation(2, "no intent is on record at the call", _intent_after_call),
    "blind_resubmit": Mutation(2, "an open submission is sent again", _blind_resubmit),
    "incomplete_search_believed": Mutation(
        2, "a job that is not listed yet is taken for absent", _incomplete_search_believed
    ),
    "call_repeated": Mutation(2, "an ambiguous call is made again", _call_repeated),
    "call_without_renewal": Mutation(
        2, "a call goes out under a lease that may have run out", _call_without_renewal
    ),
    "records_twice": Mutation(3, "a document gets two records", _records_twice),
    "manifest_changed": Mutation(4, "a frozen row changes later", _manifest_changed),
    "manifest_digest_of_nothing": Mutation(
        4, "the digest does not cover the rows", _manifest_digest_of_nothing
    ),
    "results_after_judging": Mutation(
        5, "raw results are on record only with their dispositions", _results_after_judging
    ),
    "judged_with_dispositions": Mutation(
        5, "judgements come with the dispositions", _judged_with_dispositions
    ),
    "no_fence": Mutation(6, "no commit is fenced", _no_fence),
    "expiry_unchecked": Mutation(6, "an expired lease may commit", _expiry_unchecked),
    "token_unchecked": Mutation(6, "an old token may commit", _token_unchecked),
    "lease_stolen": Mutation(6, "a lease is taken before it expires", _lease_stolen),
    "double_delivery": Mutation(7, "a value is delivered twice", _double_delivery),
    "half_publication": Mutation(8, "no search entry is written", _half_publication),
    "earlier_version_hidden": Mutation(
        9, "the earlier version is closed before the new one is there", _earlier_version_hidden
    ),
    "local_failure_recalls": Mutation(
        10, "a failing commit leads to another call", _local_failure_recalls
    ),
    "succeeded_are_retried": Mutation(
        10, "what was answered is asked again", _succeeded_are_retried
    ),
    "publish_unaccepted": Mutation(0, "what nobody accepted is published", _publish_unaccepted),
    "late_line_wins_always": Mutation(0, "every late line is used", _late_line_wins_always),
    "journal_skipped": Mutation(0, "a state changes past the journal", _journal_skipped),
    "illegal_move": Mutation(0, "a move that the table does not have", _illegal_move),
    "chain_broken": Mutation(0, "a digest that does not cover its row", _chain_broken),
    "reservation_kept": Mutation(0, "a shared limit is never given back", _reservation_kept),
}
"""Name → planted bug; invariant 0 is the account itself: acceptance, transitions, journal."""
