"""Freezing a manifest: records, request files and exclusions of a version, in one transaction.

Belongs here: the order of the steps. Does not belong here: the decision (`candidates.py`), the
bytes (`requests.py`), the rows (`resources/ledger/manifests.py`).

Files come first: content-addressed, so a run that is killed before the transaction leaves
only files that the next run makes again, byte for byte.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

import polars as pl
from sqlalchemy import Connection, func, select

from pipeline_assets.operating import operating
from pipeline_assets.prepare.fresh_records import Found, find_fresh
from pipeline_assets.prepare.manifest_rows import manifest_rows
from pipeline_assets.prepare.plan import plan_shares, write_batches
from pipeline_assets.prepare.requests import RECORDS_AT_ONCE, with_pages, write_requests
from pipeline_assets.prepare.room import require_room
from pipeline_assets.prepare.spool import ASKED_SCHEMA, spool_bodies
from pipeline_assets.prompting.request_maker import make_request_maker
from pipeline_assets.replay.model import ReplayPlan
from pipeline_assets.replay.reasons import check_replay_reason
from pipeline_assets.versions import OpenVersion
from resources.batched import batched
from resources.context import Context
from resources.contracts import MANIFEST, store_frame
from resources.ledger.exclusions import replace_exclusions
from resources.ledger.leases import Heartbeat, Lease, fenced, held
from resources.ledger.manifests import (
    BatchPlan,
    ManifestDigest,
    ManifestPlan,
    next_manifest_id,
    store_manifest,
)
from resources.ledger.moves import Cause
from resources.ledger.replays import store_replay
from resources.ledger.schema import manifests
from resources.ledger.versions import journal_operating
from resources.record_ids import batch_key
from resources.sorted_spill import sorted_slices
from resources.spilled import SpilledFrames, spilled_frames

BY_DOCUMENT = "by document"
"""The reason of a manifest whose records each have their own."""


@dataclass(frozen=True)
class FreezeReport:
    """What was frozen.

    Attributes:
        manifest_id: the new manifest; None if no document needed a record.
        digest: its digest.
        expected: records in it.
        batches: batches in it.
        already: present documents that had a record before.
        excluded: present documents without a record, by reason.
        reasons: records in it, by why they exist.
    """

    manifest_id: str | None
    digest: str | None
    expected: int
    batches: int
    already: int
    excluded: dict[str, int]
    reasons: dict[str, int] = field(default_factory=dict)


def freeze_manifest(
    context: Context, version: OpenVersion, *, replay_reason: str | None = None
) -> FreezeReport:
    """Freeze what is new under a version.

    Args:
        context: the open resources.
        version: the processing version.
        replay_reason: why, where it is not plain from the documents and the versions before.

    Raises:
        UnknownReplayReason: not in the closed list.
        NotEnoughRoom: a disk has no room for what would be frozen; nothing was written.
        InvalidSources: the declarations cannot be read, so it is not known what needs approval.
        LeaseHeld: another worker is freezing this version.
    """
    if replay_reason is not None:
        check_replay_reason(replay_reason)
    with held(context.ledger, f"manifest:{version.key}", context.worker) as lease:
        return _freeze_split(context, version, lease, replay_reason, None)


def freeze_selected(
    context: Context, version: OpenVersion, lease: Lease, selected: ReplayPlan
) -> FreezeReport:
    """Freeze the documents of a replay that have no record under the version, and the replay.

    The caller holds the version's lease since before it selected them.

    A version that was never used before processes from then on only what replays select.

    Raises:
        see `freeze_manifest`.
    """
    return _freeze_split(context, version, lease, selected.replay.reason, selected)


def _freeze_split(
    context: Context,
    version: OpenVersion,
    lease: Lease,
    replay_reason: str | None,
    selected: ReplayPlan | None,
) -> FreezeReport:
    ledger, store = context.ledger, context.artifacts
    with ExitStack() as files:
        fresh, rows, asked, planned = (files.enter_context(spilled_frames(store)) for _ in range(4))
        chosen = None if selected is None else selected.members["document_no"]
        found = find_fresh(context, version, replay_reason, chosen, fresh.add)
        if not fresh.height:
            with fenced(ledger, lease) as connection:
                replace_exclusions(connection, ledger, version.version_no, found.excluded)
            return _report(None, found, 0)
        spooled = version.spec.mode != "embedded"
        require_room(context, version.version_no, fresh.height, spooled=spooled)
        context.progress.start("requests", fresh.height)
        for part in sorted_slices(store, fresh, "record_id", version.spec.batch_records):
            rows.add(part)
        parts = _Parts(rows, asked, planned)
        return _freeze(context, version, lease, found, parts, replay_reason, selected)


@dataclass(frozen=True)
class _Parts:
    """What waits in files until the transaction.

    Attributes:
        rows: of the records, by record_id, as many in a frame as a batch may hold.
        asked: `spool.ASKED_SCHEMA` of their requests.
        planned: of the batches, one frame each.
    """

    rows: SpilledFrames
    asked: SpilledFrames
    planned: SpilledFrames


def _freeze(
    context: Context,
    version: OpenVersion,
    lease: Lease,
    found: Found,
    parts: _Parts,
    replay_reason: str | None,
    selected: ReplayPlan | None,
) -> FreezeReport:
    spec = version.spec
    manifest_id = next_manifest_id(context.ledger, version.version_no, spec.key)
    heart = Heartbeat(context.ledger, lease)
    if spec.mode == "embedded":
        plans = list(_plan_batches(context, version, manifest_id, parts, heart))
    else:
        plans, refused = _ask(context, version, manifest_id, parts, heart)
        found = replace(found, excluded=pl.concat([found.excluded, refused]).sort("document_no"))
    context.progress.finish()
    if not plans:
        with fenced(context.ledger, lease) as connection:
            replace_exclusions(connection, context.ledger, version.version_no, found.excluded)
        return _report(None, found, 0)
    digest = ManifestDigest()
    artifact = store_frame(
        context.artifacts, "manifest", MANIFEST, manifest_rows(version, plans, digest)
    )
    plan = ManifestPlan(
        manifest_id=manifest_id,
        version_no=version.version_no,
        digest=digest.hexdigest(),
        expected=parts.planned.height,
        artifact=artifact.digest,
        replay_reason=replay_reason or BY_DOCUMENT,
        provider=spec.provider,
        mode=spec.mode,
        model=spec.model,
        schema_version=spec.schema_version,
    )
    cause = context.cause(f"frozen in {manifest_id}", "prepare")
    with fenced(context.ledger, lease) as connection:
        if selected is not None:
            plan = replace(plan, replay_no=_store_replay(connection, context, version, selected))
        store_manifest(connection, context.ledger, plan, iter(plans), cause)
        replace_exclusions(connection, context.ledger, version.version_no, found.excluded)
    reasons = Counter[str]()
    for part in parts.planned.each():
        reasons.update(dict(part["replay_reason"].value_counts().iter_rows()))
    return replace(_report(plan, found, len(plans)), reasons=dict(sorted(reasons.items())))


def _store_replay(
    connection: Connection, context: Context, version: OpenVersion, selected: ReplayPlan
) -> int:
    """The replay, and the scope of a version whose first manifest it is; returns its number."""
    ledger, at = context.ledger, context.ledger.now()
    used = connection.execute(
        select(func.count())
        .select_from(manifests)
        .where(manifests.c.version_no == version.version_no)
    ).scalar_one()
    if not used:
        cause = Cause(
            f"its first manifest is the replay {selected.replay.replay_id}",
            selected.replay.actor,
            at,
            "replay",
        )
        journal_operating(connection, version.version_no, "scope", "replays", cause)
    return store_replay(connection, ledger, selected.replay, selected.members, at)


def _ask(
    context: Context,
    version: OpenVersion,
    manifest_id: str,
    parts: _Parts,
    heart: Heartbeat,
) -> tuple[list[BatchPlan], pl.DataFrame]:
    """Batches for a model, and the documents that cannot be sent to it, with the reason."""
    maker = make_request_maker(version)
    documents = (
        document
        for part in parts.rows.each()
        for document in with_pages(
            context.artifacts, part.select("record_id", "checksum", "text_pack"), heart.beat
        )
    )
    sizes = [pl.DataFrame(schema={name: ASKED_SCHEMA[name] for name in _SIZES})]

    def keep(requests: pl.DataFrame) -> None:
        parts.asked.add(requests)
        sizes.append(requests.select(_SIZES))

    with context.artifacts.workfile() as spool:
        with spool.open("wb") as bodies:
            refused = spool_bodies(
                maker,
                batched(documents, RECORDS_AT_ONCE),
                bodies,
                keep,
                on_slice=context.progress.advance,
            )
        excluded = pl.concat(
            [
                part.join(refused, on="row").select(
                    "document_no", "source_version_no", "reason", "detail"
                )
                for part in _numbered(parts.rows)
            ]
        )
        if not parts.asked.height:
            return [], excluded
        settings = operating(context.ledger, version.version_no)
        today = context.ledger.now()[:10]
        shares = plan_shares(version, maker, pl.concat(sizes), settings, today)
        plans = write_batches(
            context.artifacts,
            version,
            maker,
            shares,
            lambda share: _asked_rows(parts, share),
            spool,
            lambda ordinal: batch_key(context.ledger.ledger_id, manifest_id, ordinal),
            on_slice=heart.beat,
            keep=parts.planned.add,
        )
        return list(plans), excluded


_SIZES = ["body_length", "input_tokens"]
"""Of a request: what the split into batches goes by."""


def _numbered(rows: SpilledFrames) -> Iterator[pl.DataFrame]:
    """The rows with their position as `row`."""
    first = 0
    for part in rows.each():
        yield part.with_columns(row=pl.int_range(pl.len(), dtype=pl.Int64) + first)
        first += part.height


def _asked_rows(parts: _Parts, share: range) -> pl.DataFrame:
    """What the manifest says of the records of some requests, in their order."""
    asked = parts.asked.slice(share.start, share.stop)
    first, last = int(asked["row"].item(0)), int(asked["row"].item(-1))
    numbered = parts.rows.slice(first, last + 1).with_columns(
        row=pl.int_range(pl.len(), dtype=pl.Int64) + first
    )
    return numbered.drop("text_pack").join(asked, on="row", maintain_order="left").drop("row")


def _plan_batches(
    context: Context,
    version: OpenVersion,
    manifest_id: str,
    parts: _Parts,
    heart: Heartbeat,
) -> Iterator[BatchPlan]:
    for ordinal, part in enumerate(parts.rows.each()):
        key = batch_key(context.ledger.ledger_id, manifest_id, ordinal)
        file = write_requests(
            context.artifacts,
            version.spec,
            key,
            part.select("record_id", "checksum", "text_pack"),
            on_slice=heart.beat,
        )
        context.progress.advance(part.height)
        yield BatchPlan(
            ordinal=ordinal,
            batch_key=key,
            request_artifact=file.stored.digest,
            request_bytes=file.stored.size,
            rows=parts.planned.add(
                pl.concat([part.drop("text_pack"), file.lines], how="horizontal")
            ),
        )


def _report(plan: ManifestPlan | None, found: Found, batches: int) -> FreezeReport:
    return FreezeReport(
        manifest_id=None if plan is None else plan.manifest_id,
        digest=None if plan is None else plan.digest,
        expected=0 if plan is None else plan.expected,
        batches=batches,
        already=found.existing,
        excluded=dict(sorted(found.excluded["reason"].value_counts().iter_rows())),
    )
