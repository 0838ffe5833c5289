"""What a replay would process: selected records, those that can be, and why the others cannot.

Belongs here: the pure decision, and reading what it needs. Does not belong here: the filter
(`pipeline_assets/selection`), freezing (`prepare`), what it would cost (`estimate.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import msgspec
import polars as pl

from pipeline_assets.barred_documents import barred_documents
from pipeline_assets.known_version import KnownVersion, known_version
from pipeline_assets.parser_settings import parser_settings
from pipeline_assets.replay.model import ReplayPlan, ReplayRefused, ReplayRequest
from pipeline_assets.replay.reasons import (
    OPERATOR,
    REPLAY_REASONS,
    check_replay_reason,
    derive_reason,
    differences,
)
from pipeline_assets.selection.parse import parse_where
from pipeline_assets.selection.select import select_records
from pipeline_assets.versions import OpenVersion
from resources.context import Context
from resources.ledger.parses import load_parses
from resources.ledger.replays import MEMBER_SCHEMA, NewReplay
from resources.ledger.source_snapshots import present_documents

ATTEMPTED_AGAIN = (
    "published",
    "accepted",
    "awaiting_review",
    "rejected",
    "dead_letter",
    "discarded",
    "cancelled",
)
"""States in which a record's attempts are over, so that another one may be made."""
UNDER_WAY, REMOVED, CHANGED, RECORDED, WITHDRAWN, UNUSABLE = (
    "an attempt at it is under way or due",
    "its source no longer holds the document",
    "its document has other bytes now; those are another record",
    "the version has a record of its document already",
    "it was withdrawn",
    "its document is excluded by the source",
)
SUPERSEDED, DUPLICATE, NO_TEXT, NOT_RECORDED = (
    "another record of its document was published meanwhile",
    "another document with the same bytes stands for it",
    "its text cannot be used",
    "listed, and there is no record of the document to select",
)
BARRED: Mapping[str, str] = MappingProxyType(
    {
        "erased": "its content was erased",
        "awaiting_approval": "its source asks for approval, and nobody has approved it yet",
        "approval_refused": "its approval was refused",
    }
)
"""Why a document may not be processed (`barred_documents`), as it is told of a selected one."""
LONGEST_NOTE = 2_000


def plan_replay(context: Context, version: OpenVersion, request: ReplayRequest) -> ReplayPlan:
    """Select, and tell what can be processed.

    Args:
        context: the open resources.
        version: under which it is to be processed.
        request: what is asked for.

    Raises:
        ReplayRefused: no note, or the versions are of two workloads.
        UnknownReplayReason: a reason outside the closed list.
        WhereError: the filter cannot be read.
        VersionNeverUsed: nothing was processed under the version to select from.
        InvalidSources: the declarations cannot be read, so it is not known what needs approval.
    """
    if not request.note.strip():
        raise ReplayRefused(
            "a replay needs a reason: it stays beside every record that it processes. Say why."
        )
    if request.reason is not None:
        check_replay_reason(request.reason)
    before = known_version(context, request.from_key)
    if before.workload != version.spec.workload:
        raise ReplayRefused(
            f"{before.key} extracts {before.workload} and {version.key} {version.spec.workload}: "
            "a document belongs to one workload. Choose two versions of the same one."
        )
    where = None if request.where is None else parse_where(request.where)
    listed = None if request.documents is None else pl.Series(request.documents, dtype=pl.String)
    selected = select_records(context, before, where, listed)
    same = before.version_no == version.version_no
    facts = _facts(context, before, version, selected)
    judged = judge_members(facts, same=same)
    members = judged.filter(pl.col("why_not").is_null())
    changes = () if same else tuple(_differences(context, before, version))
    return ReplayPlan(
        replay=NewReplay(
            replay_id=request.replay_id,
            from_version_no=before.version_no,
            to_version_no=version.version_no,
            reason=_reason(context, request, before, version, same=same),
            note=request.note.strip()[:LONGEST_NOTE],
            actor=request.actor,
            expression=request.where,
            listed=None if request.documents is None else len(set(request.documents)),
        ),
        same=same,
        members=members.select(list(MEMBER_SCHEMA)).sort("document_id"),
        skipped=_counts(judged["why_not"]) | _unrecorded(context, before, request.documents),
        corrected=int(members["corrected"].sum()),
        changes=changes,
    )


def judge_members(facts: pl.DataFrame, *, same: bool) -> pl.DataFrame:
    """Which selected records can be processed: `why_not` is null for those.

    Args:
        facts: `MEMBER_SCHEMA` and state, present_checksum (null: the source no longer holds it),
            excluded (by the source now), barred (why nobody may process the document, one of
            `BARRED`; null: nothing), recorded (the version has a record of its present bytes),
            held (the version has a record of the same bytes of another present document), unusable
            (the version's parser could make no text of them).
        same: are other attempts at the same records meant?

    For a document with several selected records, of former bytes for example, the newest stands
    for all; the others count as changed. Of several documents with the same bytes the first by id
    stands for all.
    """
    gone = pl.col("present_checksum").is_null()
    why = (
        pl.when(gone & pl.col("excluded"))
        .then(pl.lit(UNUSABLE))
        .when(gone)
        .then(pl.lit(REMOVED))
        .when(pl.col("barred").is_not_null())
        .then(pl.col("barred").replace(BARRED))
    )
    if same:
        why = (
            why.when(pl.col("state") == "withdrawn")
            .then(pl.lit(WITHDRAWN))
            .when(pl.col("present_checksum") != pl.col("checksum"))
            .then(pl.lit(CHANGED))
            .when(pl.col("state") == "superseded")
            .then(pl.lit(SUPERSEDED))
            .when(~pl.col("state").is_in(ATTEMPTED_AGAIN))
            .then(pl.lit(UNDER_WAY))
        )
    else:
        newest = pl.col("record_no") == pl.col("record_no").max().over("document_no")
        why = (
            why.when(pl.col("recorded"))
            .then(pl.lit(RECORDED))
            .when(~newest)
            .then(pl.lit(CHANGED))
            .when(pl.col("unusable"))
            .then(pl.lit(NO_TEXT))
            .when(pl.col("held"))
            .then(pl.lit(DUPLICATE))
        )
    judged = facts.with_columns(why_not=why.otherwise(pl.lit(None, dtype=pl.String)))
    if not same:
        judged = judged.with_columns(why_not=_without_twins())
    # What is processed are the document's present bytes, whatever the selected record was of.
    return judged.with_columns(checksum=pl.coalesce("present_checksum", "checksum"))


def _without_twins() -> pl.Expr:
    """`why_not` with all but one of the members whose documents have the same bytes now."""
    # Null for those that are out already, and so never unlike the first.
    name = pl.when(pl.col("why_not").is_null()).then(pl.col("document_id"))
    twin = name != name.min().over("present_checksum")
    return pl.when(twin).then(pl.lit(DUPLICATE)).otherwise(pl.col("why_not"))


def _facts(
    context: Context, before: KnownVersion, version: OpenVersion, selected: pl.DataFrame
) -> pl.DataFrame:
    ledger = context.ledger
    present = present_documents(ledger, version.spec.workload)
    barred = barred_documents(context, version, present).select("document_no", barred="reason")
    parses = load_parses(ledger, parser_settings(version.spec).key, ["checksum", "excluded"])
    with ledger.read() as connection:
        recorded = ledger.dialect.fetch(
            connection,
            "SELECT source_version_no FROM records WHERE version_no = ?",
            {"source_version_no": pl.Int64},
            (version.version_no,),
        )["source_version_no"]
        corrected = ledger.dialect.fetch(
            connection,
            "SELECT DISTINCT w.record_no FROM reviews w WHERE w.version_no = ? "
            "AND w.decision = 'correct'",
            {"record_no": pl.Int64},
            (before.version_no,),
        )["record_no"]
    documents = (
        present.select(
            "document_no",
            present_checksum="checksum",
            excluded=pl.col("excluded").is_not_null(),
            recorded=pl.col("source_version_no").is_in(recorded.implode()).fill_null(value=False),
        )
        .join(barred, on="document_no", how="left", maintain_order="left")
        .with_columns(unusable=_is_one_of(parses.filter(pl.col("excluded").is_not_null())))
    )
    # An erased document's record holds no bytes: a copy of them elsewhere is none's duplicate.
    holders = documents.filter("recorded", pl.col("barred").ne_missing("erased"))
    return selected.join(
        documents.with_columns(held=_is_one_of(holders.select(checksum="present_checksum"))),
        on="document_no",
        how="left",
        maintain_order="left",
    ).with_columns(
        pl.col("excluded", "recorded", "unusable", "held").fill_null(value=False),
        corrected=pl.col("record_no").is_in(corrected.implode()),
    )


def _is_one_of(of: pl.DataFrame) -> pl.Expr:
    """Has a present document the bytes of one of these?"""
    known = of["checksum"].unique().implode()
    return pl.col("present_checksum").is_in(known).fill_null(value=False)


def _unrecorded(
    context: Context, before: KnownVersion, documents: Sequence[str] | None
) -> dict[str, int]:
    """Listed documents that nothing can be selected of, told like what is left out."""
    if documents is None:
        return {}
    with context.ledger.read() as connection:
        known = context.ledger.dialect.fetch(
            connection,
            "SELECT DISTINCT d.document_id FROM records r "
            "JOIN documents d ON d.document_no = r.document_no WHERE r.version_no = ?",
            {"document_id": pl.String},
            (before.version_no,),
        )["document_id"]
    missing = len(set(documents) - set(known))
    return {NOT_RECORDED: missing} if missing else {}


def _reason(
    context: Context,
    request: ReplayRequest,
    before: KnownVersion,
    version: OpenVersion,
    *,
    same: bool,
) -> str:
    if request.reason is not None:
        return request.reason
    return OPERATOR if same else derive_reason(_spec(context, before), version.spec.declared())


def _differences(context: Context, before: KnownVersion, version: OpenVersion) -> list[str]:
    return differences(_spec(context, before), version.spec.declared())


def _spec(context: Context, version: KnownVersion) -> dict[str, object]:
    """The spec as it was frozen; its file may be gone."""
    with context.ledger.read() as connection:
        frozen = context.ledger.dialect.fetch(
            connection,
            "SELECT spec FROM processing_versions WHERE version_no = ?",
            {"spec": pl.String},
            (version.version_no,),
        ).item()
    return msgspec.json.decode(frozen)


def _counts(reasons: pl.Series) -> dict[str, int]:
    return dict(sorted(reasons.drop_nulls().value_counts().iter_rows()))


def split_reason(given: str) -> tuple[str | None, str]:
    """What `--reason` says: one of the closed list, or words of the operator's own.

    Returns:
        The reason if it is one of the list, and the note that is kept beside it.
    """
    words: Sequence[str] = given.strip().split(":", 1)
    if words[0] in REPLAY_REASONS:
        return words[0], (words[1].strip() if len(words) > 1 else "") or REPLAY_REASONS[words[0]]
    return None, given.strip()
