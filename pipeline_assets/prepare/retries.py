"""Retry manifests: another attempt at records that failed, and only at those.

Belongs here: freezing records that are due, or that an operator asks for, into a manifest of their
own, in one transaction. Does not belong here: whether a record is tried again
(`pipeline_assets/recovery/retry.py`, decided when its result was collected) and its bytes
(`again.py`).

A retry manifest is a manifest like any other: frozen, digested, with batches of its own. Its
attempts are new, each names the one that it follows, and its batches name their parents.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import polars as pl
from sqlalchemy import Connection

from pipeline_assets.operating import operating
from pipeline_assets.parser_settings import parser_settings
from pipeline_assets.prepare.again import frozen_bodies, spool_again
from pipeline_assets.prepare.manifest_rows import manifest_rows
from pipeline_assets.prepare.plan import least_records, plan_shares, write_batches
from pipeline_assets.prepare.requests import RECORDS_AT_ONCE
from pipeline_assets.prepare.room import require_room
from pipeline_assets.prompting.request_maker import RequestMaker, make_request_maker
from pipeline_assets.recovery.retry import LARGER_OUTPUT, REPLAY, REQUEUE, SMALLER_BATCH
from pipeline_assets.replay.model import ReplayPlan
from pipeline_assets.versions import OpenVersion
from resources.artifacts import ArtifactWriter
from resources.clock import to_text
from resources.context import Context
from resources.contracts import MANIFEST, store_frame
from resources.ledger.dead_letters import close_dead_letters, open_dead_letters
from resources.ledger.leases import Heartbeat, Lease, fenced, held
from resources.ledger.manifests import (
    BatchPlan,
    ManifestDigest,
    ManifestPlan,
    next_manifest_id,
    store_manifest,
)
from resources.ledger.moves import Cause, batch_chain, move_records
from resources.ledger.parses import parses_of
from resources.ledger.replays import store_replay
from resources.ledger.retries import due_retries, newest_attempts, set_not_before
from resources.providers.baseline import decode_request, encode_request
from resources.record_ids import batch_key, custom_id
from resources.spilled import rows_of

RETRY, BY_OPERATOR = "transient_retry", "operator"
REQUEUED = "requeued: "
TOO_FEW_PAUSE = timedelta(hours=1)
"""Records too few for the provider's smallest batch are looked at again after so long."""
REQUEUEABLE = ("dead_letter", "discarded", "cancelled", "rejected", "awaiting_review")


class NotRequeueable(Exception):
    """A record is in a state from which no other attempt is made by request."""

    def __init__(self, record_id: str, state: str) -> None:
        super().__init__(
            f"{record_id} is {state}; expected one of {', '.join(REQUEUEABLE)}. Nothing was "
            "requeued."
        )


class TooFewToRetry(Exception):
    """The provider takes no batch of so few records."""

    def __init__(self, found: int, least: int) -> None:
        super().__init__(
            f"{found} records are to be tried again, and the provider takes no batch below "
            f"{least}. "
            "Ask for more of them together, or use a version whose request says `tail: online`."
        )


@dataclass(frozen=True)
class RetryReport:
    """What was frozen for another attempt.

    Attributes:
        manifest_id: the retry manifest; None if nothing was frozen.
        records: records in it.
        batches: batches in it.
        paths: what the attempts do differently → records.
        refused: records whose changed request could not be made; they are dead letters now.
        waiting: why records that are due were left; None if none were.
    """

    manifest_id: str | None = None
    records: int = 0
    batches: int = 0
    paths: dict[str, int] = field(default_factory=dict)
    refused: int = 0
    waiting: str | None = None


def freeze_retries(context: Context, version: OpenVersion) -> RetryReport:
    """Freeze the records of a version that are due for another attempt.

    Raises:
        ArtifactDamaged, RequestChanged: stored requests are not those that were frozen.
        JobRefused: the provider cannot be asked for them.
        NotEnoughRoom: a disk has no room for them; nothing was written.
        LeaseHeld: another worker is freezing this version.
    """
    if version.held is not None:
        return RetryReport(waiting=f"the version is held: {version.held}")
    with held(context.ledger, f"manifest:{version.key}", context.worker) as lease:
        rows = due_retries(context.ledger, version.version_no, context.ledger.now())
        least = least_records(version)
        if rows.is_empty():
            return RetryReport()
        if rows.height < least:
            _leave(context, lease, rows["record_no"])
            return RetryReport(waiting=str(TooFewToRetry(rows.height, least)))
        cause = context.cause("another attempt after a failure", "prepare")
        return _Again(context, version, lease, rows, RETRY, cause).freeze()


def requeue(
    context: Context, version: OpenVersion, records: pl.Series, reason: str, actor: str
) -> RetryReport:
    """Make another attempt at records that an operator asks for; their limits start anew.

    Raises:
        NotRequeueable: one is in another state; nothing was requeued.
        TooFewToRetry: the provider takes no batch of so few.
        ArtifactDamaged, RequestChanged: stored requests are not those that were frozen.
        JobRefused: the provider cannot be asked for them.
        LeaseHeld: another worker is freezing this version.
    """
    with held(context.ledger, f"manifest:{version.key}", context.worker) as lease:
        # A set is staged in a temporary table, which a reader may not make.
        with fenced(context.ledger, lease) as connection:
            rows = newest_attempts(connection, context.ledger, version.version_no, records)
        unfit = rows.filter(~pl.col("state").is_in(REQUEUEABLE))
        if not unfit.is_empty():
            raise NotRequeueable(unfit["record_id"][0], unfit["state"][0])
        least = least_records(version)
        if rows.height < least:
            raise TooFewToRetry(rows.height, least)
        rows = rows.with_columns(path=pl.lit(REQUEUE))
        cause = Cause(f"{REQUEUED}{reason}", actor, context.ledger.now(), "requeue")
        return _Again(context, version, lease, rows, BY_OPERATOR, cause).freeze()


def attempt_again(
    context: Context, version: OpenVersion, lease: Lease, plan: ReplayPlan
) -> RetryReport:
    """Make another attempt at the records of a replay of the same version, and store the replay.

    The caller holds the version's lease since before it selected them. What was published stays
    visible until another answer is.

    Raises:
        TooFewToRetry: the provider takes no batch of so few.
        ArtifactDamaged, RequestChanged: stored requests are not those that were frozen.
        JobRefused: the provider cannot be asked for them.
    """
    # A set is staged in a temporary table, which a reader may not make.
    with fenced(context.ledger, lease) as connection:
        rows = newest_attempts(
            connection, context.ledger, version.version_no, plan.members["record_no"]
        )
    least = least_records(version)
    if rows.height < least:
        raise TooFewToRetry(rows.height, least)
    rows = rows.with_columns(path=pl.lit(REPLAY))
    cause = Cause(
        f"replay {plan.replay.replay_id}: {plan.replay.note}",
        plan.replay.actor,
        context.ledger.now(),
        "replay",
    )
    return _Again(context, version, lease, rows, plan.replay.reason, cause, plan).freeze()


def _leave(context: Context, lease: Lease, records: pl.Series) -> None:
    until = to_text(context.ledger.clock() + TOO_FEW_PAUSE)
    with fenced(context.ledger, lease) as connection:
        set_not_before(connection, context.ledger, records, until)


@dataclass(frozen=True)
class _Again:
    """One freezing of another attempt."""

    context: Context
    version: OpenVersion
    lease: Lease
    rows: pl.DataFrame
    replay_reason: str
    cause: Cause
    replay: ReplayPlan | None = None

    def freeze(self) -> RetryReport:
        context, version = self.context, self.version
        manifest_id = next_manifest_id(context.ledger, version.version_no, version.key)
        heart = Heartbeat(context.ledger, self.lease)
        rows = self._numbered()
        spooled = version.spec.mode != "embedded"
        require_room(context, version.version_no, rows.height, spooled=spooled)
        if version.spec.mode == "embedded":
            plans = list(self._embedded(manifest_id, rows, heart))
            refused = pl.DataFrame(schema={"row": pl.Int64, "detail": pl.String})
        else:
            plans, refused = self._asked(manifest_id, rows, heart)
        self._store(manifest_id, plans, rows.join(refused, on="row"))
        frozen = rows.join(refused, on="row", how="anti")
        return RetryReport(
            manifest_id=manifest_id if plans else None,
            records=frozen.height,
            batches=len(plans),
            paths=dict(sorted(frozen["path"].value_counts().iter_rows())),
            refused=refused.height,
        )

    def _numbered(self) -> pl.DataFrame:
        parses = parses_of(
            self.context.ledger,
            parser_settings(self.version.spec).key,
            self.rows["checksum"],
            ["checksum", "text_pack"],
        )
        return (
            self.rows.sort("record_id")
            .join(parses, on="checksum", how="left", maintain_order="left")
            .with_columns(
                row=pl.int_range(pl.len(), dtype=pl.Int64),
                replay_reason=pl.lit(self.replay_reason),
                recovery_path="path",
                ordinal=pl.col("parent_ordinal") + 1,
            )
        )

    def _asked(
        self, manifest_id: str, rows: pl.DataFrame, heart: Heartbeat
    ) -> tuple[list[BatchPlan], pl.DataFrame]:
        context, version = self.context, self.version
        maker = make_request_maker(version)
        with context.artifacts.workfile() as spool:
            with spool.open("wb") as file:
                bodies = spool_again(
                    context.artifacts, version, maker, rows, file, on_slice=heart.beat
                )
            if bodies.asked.is_empty():
                return [], bodies.refused
            plans = self._plan(manifest_id, rows, bodies.asked, maker, spool, heart)
            return list(plans), bodies.refused

    def _plan(
        self,
        manifest_id: str,
        rows: pl.DataFrame,
        asked: pl.DataFrame,
        maker: RequestMaker,
        spool: Path,
        heart: Heartbeat,
    ) -> Iterator[BatchPlan]:
        context, version = self.context, self.version
        settings = operating(context.ledger, version.version_no)
        shares = plan_shares(
            version,
            maker,
            # A request of the smallest size may be a share of its own now.
            asked,
            settings,
            context.ledger.now()[:10],
            max_records=self._most_records(rows),
            output_tokens=self._largest_output(rows),
        )
        about = rows.drop("pages", "pages_sent", "tokens", "redactions", "request_digest")
        chosen = about.join(asked, on="row", maintain_order="left").filter(
            pl.col("body_length").is_not_null()
        )
        return write_batches(
            context.artifacts,
            version,
            maker,
            shares,
            lambda share: chosen.slice(share.start, len(share)),
            spool,
            self._key_of(manifest_id),
            on_slice=heart.beat,
        )

    def _most_records(self, rows: pl.DataFrame) -> int | None:
        """Half of the smallest batch that found no room, as far as the provider takes so few."""
        smaller = rows.filter(pl.col("path") == SMALLER_BATCH)["parent_records"].min()
        if smaller is None:
            return None
        # From twice the least (less one) on, any number of records can be shared out.
        return max(int(str(smaller)) // 2, 2 * least_records(self.version) - 1)

    def _largest_output(self, rows: pl.DataFrame) -> int | None:
        request = self.version.spec.request
        recovery = None if request is None else request.recovery
        # A repeated request may be one that an earlier path made larger.
        once = (rows["larger_output"] > 0).any() or (rows["path"] == LARGER_OUTPUT).any()
        return recovery.output_tokens if recovery is not None and once else None

    def _embedded(
        self, manifest_id: str, rows: pl.DataFrame, heart: Heartbeat
    ) -> Iterator[BatchPlan]:
        context = self.context
        verified: set[str] = set()
        for ordinal, part in enumerate(rows.iter_slices(self.version.spec.batch_records)):
            key = self._key_of(manifest_id)(ordinal)
            places: list[tuple[int, int]] = []

            def fill(
                writer: ArtifactWriter,
                part: pl.DataFrame = part,
                key: str = key,
                places: list[tuple[int, int]] = places,
            ) -> None:
                # A replay may be of a whole version: no more bodies than these are held at once.
                for slice_ in part.iter_slices(RECORDS_AT_ONCE):
                    bodies = dict(
                        frozen_bodies(context.artifacts, slice_, decode_request, verified)
                    )
                    for row in slice_["row"]:
                        line = encode_request(custom_id(key, len(places)), bodies[row])
                        places.append((writer.size, len(line)))
                        writer.write(line + b"\n")
                    heart.beat()

            stored = context.artifacts.write("request", fill)
            lines = pl.DataFrame(
                places, schema={"offset": pl.Int64, "length": pl.Int64}, orient="row"
            )
            about = part.drop("pages", "pages_sent", "tokens", "redactions")
            yield BatchPlan(
                ordinal=ordinal,
                batch_key=key,
                request_artifact=stored.digest,
                request_bytes=stored.size,
                rows=rows_of(pl.concat([about, lines], how="horizontal")),
            )

    def _key_of(self, manifest_id: str):  # noqa: ANN202 - a function of the ordinal
        return lambda ordinal: batch_key(self.context.ledger.ledger_id, manifest_id, ordinal)

    def _store(self, manifest_id: str, plans: list[BatchPlan], refused: pl.DataFrame) -> None:
        context, spec = self.context, self.version.spec
        digest = ManifestDigest()
        plan = None
        if plans:
            artifact = store_frame(
                context.artifacts,
                "manifest",
                MANIFEST,
                manifest_rows(self.version, plans, digest),
            )
            plan = ManifestPlan(
                manifest_id=manifest_id,
                version_no=self.version.version_no,
                digest=digest.hexdigest(),
                expected=sum(part.rows.height for part in plans),
                artifact=artifact.digest,
                replay_reason=self.replay_reason,
                provider=spec.provider,
                mode=spec.mode,
                model=spec.model,
                schema_version=spec.schema_version,
            )
        with fenced(context.ledger, self.lease) as connection:
            if plan is not None:
                if self.replay is not None or self.replay_reason == BY_OPERATOR:
                    self._close(connection)
                if self.replay is not None:
                    asked, members = self.replay.replay, self.replay.members
                    number = store_replay(connection, context.ledger, asked, members, self.cause.at)
                    plan = replace(plan, replay_no=number)
                store_manifest(connection, context.ledger, plan, iter(plans), self.cause)
            if not refused.is_empty():
                self._bury(connection, refused)

    def _close(self, connection: Connection) -> None:
        close_dead_letters(
            connection,
            self.context.ledger,
            self.rows["record_no"],
            closing="requeued",
            reason=self.cause.reason.removeprefix(REQUEUED),
            by=self.cause.actor,
            at=self.cause.at,
        )

    def _bury(self, connection: Connection, refused: pl.DataFrame) -> None:
        """A changed request that cannot be made: what is left is an owner's."""
        ledger = self.context.ledger
        cause = self.context.cause("its changed request cannot be made", "prepare")
        owner = operating(ledger, self.version.version_no).dead_letter_owner
        for (batch_no,), part in refused.group_by("parent_batch_no", maintain_order=True):
            move_records(
                connection,
                ledger.dialect,
                part["record_no"],
                "retry_wait",
                "dead_letter",
                cause,
                batch_chain(int(str(batch_no))),
            )
        open_dead_letters(
            connection,
            ledger,
            refused.select(
                "record_no",
                attempt_no="parent_attempt_no",
                version_no=pl.lit(self.version.version_no, dtype=pl.Int64),
                failure_class=pl.lit("too_large"),
                reason="detail",
                owner=pl.lit(owner),
                opened_at=pl.lit(cause.at),
            ),
        )
