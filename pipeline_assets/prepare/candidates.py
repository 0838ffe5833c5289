"""Which present documents become records of a version, why, and why the others do not.

Belongs here: the pure decision over frames. Does not belong here: reading the ledger
(`document_facts.py`), making requests (`requests.py`), freezing (`freeze.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from pipeline_assets.barred_documents import BARRED_SCHEMA
from pipeline_assets.replay.reasons import CORRECTED_SOURCE, NEW_SOURCE

NOT_PARSED = "its bytes changed or vanished after the scan; run again"
NOT_SELECTED = "not_selected"
_OUT_OF_SCOPE = "the version's setting `scope` is `replays`, and no replay has selected it"

EARLIER_SCHEMA = {"document_no": pl.Int64, "source_version_no": pl.Int64, "reason": pl.String}
"""Source versions that were processed under another version of the workload: the newest such
record of each, and why this version processes them again (`replay.reasons.derive_reason`)."""


@dataclass(frozen=True)
class Split:
    """The present documents of a version, each in exactly one of three frames.

    Attributes:
        fresh: become records now: document_no, document_id, source_version_no, checksum,
            replay_reason.
        existing: have a record for their present bytes: document_no.
        excluded: document_no, source_version_no, reason, detail.
    """

    fresh: pl.DataFrame
    existing: pl.DataFrame
    excluded: pl.DataFrame


def split_documents(
    present: pl.DataFrame,
    parses: pl.DataFrame,
    records: pl.DataFrame,
    *,
    barred: pl.DataFrame | None = None,
    earlier: pl.DataFrame | None = None,
    only: pl.Series | None = None,
    narrow: bool = False,
) -> Split:
    """Decide for every present document.

    Args:
        present: document_no, document_id, source_version_no, checksum, excluded, detail.
        parses: checksum, excluded, detail under the version's parser key.
        records: document_no, source_version_no, checksum of every record of the version.
        barred: `BARRED_SCHEMA`; none by default.
        earlier: `EARLIER_SCHEMA`; nothing was processed under another version by default.
        only: document_no of the documents that a replay has selected; of the others none becomes
            a record now. All by default.
        narrow: does the version process only what replays select? Documents that it has a record
            of are in: their corrected bytes are processed like those of any other version.

    Of several documents with the same bytes one is processed: the one that already has a record,
    else a selected one, else one that is in scope, else the first by id; the others are excluded
    as duplicates of it.
    """
    joined = _with_verdicts(present, parses, records, barred)
    existing = joined.filter(pl.col("recorded"))
    unusable = joined.filter(~pl.col("recorded") & pl.col("reason").is_not_null())
    usable = joined.filter(~pl.col("recorded") & pl.col("reason").is_null())
    # An erased document's record holds no bytes: a copy of them elsewhere is none's duplicate.
    holding = existing.filter(pl.col("bar").ne_missing("erased"))
    ranks = _ranks(records, only, narrow=narrow)
    fresh, duplicates = _tell_duplicates(usable, holding, ranks)
    fresh = _with_reason(fresh, records, earlier)
    fresh, outside = _in_scope(fresh, records, only, narrow=narrow)
    return Split(
        fresh=fresh if only is None else fresh.filter(_is_one_of("document_no", only)),
        existing=existing.select("document_no"),
        excluded=pl.concat(
            [
                unusable.select("document_no", "source_version_no", "reason", detail="why"),
                duplicates,
                outside,
            ]
        ).sort("document_no"),
    )


def _with_verdicts(
    present: pl.DataFrame,
    parses: pl.DataFrame,
    records: pl.DataFrame,
    barred: pl.DataFrame | None,
) -> pl.DataFrame:
    """The documents with `recorded`, and `reason` and `why` of what cannot be used."""
    barred = pl.DataFrame(schema=BARRED_SCHEMA) if barred is None else barred
    joined = (
        present.join(
            parses.select(
                "checksum", parse_excluded="excluded", parse_detail="detail", parsed=True
            ),
            on="checksum",
            how="left",
            maintain_order="left",
        )
        .join(
            records.select("document_no", "source_version_no", recorded=pl.lit(value=True)),
            on=["document_no", "source_version_no"],
            how="left",
            maintain_order="left",
        )
        .join(
            barred.select("document_no", bar="reason", bar_detail="detail"),
            on="document_no",
            how="left",
            maintain_order="left",
        )
    )
    return joined.with_columns(
        recorded=pl.col("recorded").fill_null(value=False),
        reason=pl.coalesce(
            "excluded",
            "bar",
            "parse_excluded",
            pl.when(pl.col("parsed").is_null()).then(pl.lit("unreadable")),
        ),
        why=pl.when(pl.col("excluded").is_not_null())
        .then(pl.col("detail"))
        .when(pl.col("bar").is_not_null())
        .then(pl.col("bar_detail"))
        .when(pl.col("parse_excluded").is_not_null())
        .then(pl.col("parse_detail"))
        .otherwise(pl.lit(NOT_PARSED)),
    )


def _ranks(records: pl.DataFrame, only: pl.Series | None, *, narrow: bool) -> pl.Expr:
    """Which of several documents with the same bytes stands for them: the lowest rank.

    One that no replay selected must not stand for one that is processed: neither would be.
    """
    rank = pl.when(pl.lit(value=False)).then(pl.lit(1))
    if only is not None:
        rank = rank.when(_is_one_of("document_no", only)).then(pl.lit(1))
    if narrow:
        rank = rank.when(_is_one_of("document_no", records["document_no"])).then(pl.lit(2))
    return rank.otherwise(pl.lit(3))


def _tell_duplicates(
    usable: pl.DataFrame, existing: pl.DataFrame, ranks: pl.Expr
) -> tuple[pl.DataFrame, pl.DataFrame]:
    holders = (
        pl.concat(
            [
                existing.select("checksum", "document_id", rank=pl.lit(0)),
                usable.select(
                    "checksum",
                    "document_id",
                    rank=ranks,
                ),
            ]
        )
        .sort("rank", "document_id")
        .unique("checksum", keep="first", maintain_order=True)
    )
    judged = usable.join(
        holders.select("checksum", holder="document_id"), on="checksum", maintain_order="left"
    )
    duplicates = judged.filter(pl.col("holder") != pl.col("document_id")).select(
        "document_no",
        "source_version_no",
        reason=pl.lit("duplicate_content"),
        detail=pl.format("same bytes as {}", pl.col("holder")),
    )
    fresh = judged.filter(pl.col("holder") == pl.col("document_id"))
    return fresh, duplicates


def _with_reason(
    fresh: pl.DataFrame, records: pl.DataFrame, earlier: pl.DataFrame | None
) -> pl.DataFrame:
    """Why each becomes a record.

    Other bytes than in a record of the version mean a correction, whatever other versions made of
    the present ones meanwhile; the same bytes under another version mean what differs between the
    versions; other bytes than another version had are a correction too; a document without any
    record is new.
    """
    earlier = pl.DataFrame(schema=EARLIER_SCHEMA) if earlier is None else earlier
    had = earlier.select("document_no").unique()
    return (
        fresh.join(
            earlier.select("document_no", "source_version_no", again="reason"),
            on=["document_no", "source_version_no"],
            how="left",
            maintain_order="left",
        )
        .join(
            had.with_columns(had=pl.lit(value=True)),
            on="document_no",
            how="left",
            maintain_order="left",
        )
        .select(
            "document_no",
            "document_id",
            "source_version_no",
            "checksum",
            replay_reason=pl.coalesce(
                pl.when(_is_one_of("document_no", records["document_no"])).then(
                    pl.lit(CORRECTED_SOURCE)
                ),
                "again",
                pl.when(pl.col("had")).then(pl.lit(CORRECTED_SOURCE)),
                pl.lit(NEW_SOURCE),
            ),
        )
    )


def _in_scope(
    fresh: pl.DataFrame, records: pl.DataFrame, only: pl.Series | None, *, narrow: bool
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """What a version that processes only selected documents takes, and what it leaves out."""
    if not narrow:
        return fresh, _excluded(fresh.clear())
    inside = _is_one_of("document_no", records["document_no"])
    if only is not None:
        inside |= _is_one_of("document_no", only)
    return fresh.filter(inside), _excluded(fresh.filter(~inside))


def _excluded(outside: pl.DataFrame) -> pl.DataFrame:
    return outside.select(
        "document_no",
        "source_version_no",
        reason=pl.lit(NOT_SELECTED),
        detail=pl.lit(_OUT_OF_SCOPE),
    )


def _is_one_of(column: str, numbers: pl.Series) -> pl.Expr:
    return pl.col(column).is_in(numbers.unique().implode())
