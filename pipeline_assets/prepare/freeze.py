"""Freezing a manifest: records, request files and exclusions of a version, in one transaction.

Belongs here: the order of the steps. Does not belong here: the decision (`candidates.py`), the
bytes (`requests.py`), the rows (`resources/ledger/manifests.py`).

Files come first: content-addressed, so a run that is killed before the transaction leaves
only files that the next run makes again, byte for byte.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import polars as pl
from sqlalchemy import Connection, func, select

from pipeline_assets.barred_documents import barred_documents
from pipeline_assets.operating import operating
from pipeline_assets.parser_settings import parser_settings
from pipeline_assets.prepare.candidates import Split, split_documents
from pipeline_assets.prepare.divided import divisions
from pipeline_assets.prepare.document_facts import earlier_records
from pipeline_assets.prepare.manifest_rows import manifest_rows
from pipeline_assets.prepare.plan import plan_shares, write_batches
from pipeline_assets.prepare.requests import RECORDS_AT_ONCE, with_pages, write_requests
from pipeline_assets.prepare.room import require_room
from pipeline_assets.prepare.spool import spool_bodies
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
    version_records,
)
from resources.ledger.moves import Cause
from resources.ledger.replays import store_replay
from resources.ledger.schema import manifests
from resources.ledger.versions import journal_operating
from resources.one_moment import at_one_moment
from resources.record_ids import batch_key, record_id
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
    ledger = context.ledger
    split = _split(context, version, selected)
    if split.fresh.is_empty():
        with fenced(ledger, lease) as connection:
            replace_exclusions(connection, ledger, version.version_no, split.excluded)
        return _report(None, split, 0)
    require_room(
        context, version.version_no, split.fresh.height, spooled=version.spec.mode != "embedded"
    )
    context.progress.start("requests", split.fresh.height)
    store = context.artifacts
    with spilled_frames(store) as rows, spilled_frames(store) as planned:
        for part in _record_rows(version, split.fresh, replay_reason):
            rows.add(part)
        # From here on they wait in the file alone.
        split = replace(split, fresh=split.fresh.clear())
        return _freeze(context, version, lease, split, rows, planned, replay_reason, selected)


def _split(context: Context, version: OpenVersion, selected: ReplayPlan | None) -> Split:
    """What becomes of every present document; `fresh` has the text_pack of each too."""
    key = parser_settings(version.spec).key
    parts: list[Split] = []
    # One moment: a document that changes meanwhile would be split twice, or not at all.
    with at_one_moment(context) as still:
        records = version_records(still.ledger, version.version_no)
        earlier = earlier_records(still.ledger, version)
        first_use = selected is not None and records.is_empty()
        narrow = first_use or operating(still.ledger, version.version_no).scope == "replays"
        for present, parses in divisions(still, version.spec.workload, key):
            split = split_documents(
                present,
                parses,
                records,
                barred=barred_documents(still, version, present),
                earlier=earlier,
                only=None if selected is None else selected.members["document_no"],
                narrow=narrow,
            )
            packs = parses.select("checksum", "text_pack")
            parts.append(replace(split, fresh=split.fresh.join(packs, on="checksum", how="left")))
    return Split(
        fresh=pl.concat([part.fresh for part in parts]),
        existing=pl.concat([part.existing for part in parts]),
        excluded=pl.concat([part.excluded for part in parts]).sort("document_no"),
    )


def _record_rows(
    version: OpenVersion, fresh: pl.DataFrame, replay_reason: str | None
) -> Iterator[pl.DataFrame]:
    """The records that documents become, by record_id, as many at a time as a batch may hold."""
    spec = version.spec
    rows = fresh.with_columns(
        record_id=record_id(spec.workload, pl.col("document_id"), pl.col("checksum"), spec.key),
        operation=pl.lit(spec.operation),
        replay_reason=pl.lit(replay_reason) if replay_reason else pl.col("replay_reason"),
    ).sort("record_id")
    yield from rows.iter_slices(spec.batch_records)


def _freeze(
    context: Context,
    version: OpenVersion,
    lease: Lease,
    split: Split,
    rows: SpilledFrames,
    planned: SpilledFrames,
    replay_reason: str | None,
    selected: ReplayPlan | None,
) -> FreezeReport:
    spec = version.spec
    manifest_id = next_manifest_id(context.ledger, version.version_no, spec.key)
    heart = Heartbeat(context.ledger, lease)
    if spec.mode == "embedded":
        plans = list(_plan_batches(context, version, manifest_id, rows, planned, heart))
    else:
        plans, refused = _ask(context, version, manifest_id, rows, planned, heart)
        split = replace(split, excluded=pl.concat([split.excluded, refused]).sort("document_no"))
    context.progress.finish()
    if not plans:
        with fenced(context.ledger, lease) as connection:
            replace_exclusions(connection, context.ledger, version.version_no, split.excluded)
        return _report(None, split, 0)
    digest = ManifestDigest()
    artifact = store_frame(
        context.artifacts, "manifest", MANIFEST, manifest_rows(version, plans, digest)
    )
    plan = ManifestPlan(
        manifest_id=manifest_id,
        version_no=version.version_no,
        digest=digest.hexdigest(),
        expected=planned.height,
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
        replace_exclusions(connection, context.ledger, version.version_no, split.excluded)
    reasons = Counter[str]()
    for part in planned.each():
        reasons.update(dict(part["replay_reason"].value_counts().iter_rows()))
    return replace(_report(plan, split, len(plans)), reasons=dict(sorted(reasons.items())))


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
    rows: SpilledFrames,
    planned: SpilledFrames,
    heart: Heartbeat,
) -> tuple[list[BatchPlan], pl.DataFrame]:
    """Batches for a model, and the documents that cannot be sent to it, with the reason."""
    maker = make_request_maker(version)
    documents = (
        document
        for part in rows.each()
        for document in with_pages(
            context.artifacts, part.select("record_id", "checksum", "text_pack"), heart.beat
        )
    )
    with context.artifacts.workfile() as spool:
        with spool.open("wb") as bodies:
            asked, refused = spool_bodies(
                maker,
                batched(documents, RECORDS_AT_ONCE),
                bodies,
                on_slice=context.progress.advance,
            )
        excluded = pl.concat(
            [
                part.join(refused, on="row").select(
                    "document_no", "source_version_no", "reason", "detail"
                )
                for part in _numbered(rows)
            ]
        )
        if asked.is_empty():
            return [], excluded
        settings = operating(context.ledger, version.version_no)
        today = context.ledger.now()[:10]
        shares = plan_shares(version, maker, asked, settings, today)
        plans = write_batches(
            context.artifacts,
            version,
            maker,
            shares,
            lambda share: _asked_rows(rows, asked.slice(share.start, len(share))),
            spool,
            lambda ordinal: batch_key(context.ledger.ledger_id, manifest_id, ordinal),
            on_slice=heart.beat,
            keep=planned.add,
        )
        return list(plans), excluded


def _numbered(rows: SpilledFrames) -> Iterator[pl.DataFrame]:
    """The rows with their position as `row`."""
    first = 0
    for part in rows.each():
        yield part.with_columns(row=pl.int_range(pl.len(), dtype=pl.Int64) + first)
        first += part.height


def _asked_rows(rows: SpilledFrames, asked: pl.DataFrame) -> pl.DataFrame:
    """What the manifest says of the records of some requests, in their order."""
    first, last = int(asked["row"].item(0)), int(asked["row"].item(-1))
    numbered = rows.slice(first, last + 1).with_columns(
        row=pl.int_range(pl.len(), dtype=pl.Int64) + first
    )
    return numbered.drop("text_pack").join(asked, on="row", maintain_order="left").drop("row")


def _plan_batches(
    context: Context,
    version: OpenVersion,
    manifest_id: str,
    rows: SpilledFrames,
    planned: SpilledFrames,
    heart: Heartbeat,
) -> Iterator[BatchPlan]:
    for ordinal, part in enumerate(rows.each()):
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
            rows=planned.add(pl.concat([part.drop("text_pack"), file.lines], how="horizontal")),
        )


def _report(plan: ManifestPlan | None, split: Split, batches: int) -> FreezeReport:
    return FreezeReport(
        manifest_id=None if plan is None else plan.manifest_id,
        digest=None if plan is None else plan.digest,
        expected=0 if plan is None else plan.expected,
        batches=batches,
        already=split.existing.height,
        excluded=dict(sorted(split.excluded["reason"].value_counts().iter_rows())),
    )
