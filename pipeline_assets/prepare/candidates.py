"""Which present documents become records of a version, and why the others do not.

Belongs here: the pure decision over frames. Does not belong here: reading the ledger, making
requests (`requests.py`), freezing (`freeze.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

NOT_PARSED = "its bytes changed or vanished after the scan; run again"


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


def split_documents(present: pl.DataFrame, parses: pl.DataFrame, records: pl.DataFrame) -> Split:
    """Decide for every present document.

    Args:
        present: document_no, document_id, source_version_no, checksum, excluded, detail.
        parses: checksum, excluded, detail under the version's parser key.
        records: document_no, source_version_no, checksum of every record of the version.

    Of several documents with the same bytes one is processed: the one that already has a record,
    else the first by id; the others are excluded as duplicates of it.
    """
    joined = present.join(
        parses.select("checksum", parse_excluded="excluded", parse_detail="detail", parsed=True),
        on="checksum",
        how="left",
        maintain_order="left",
    ).join(
        records.select("document_no", "source_version_no", recorded=pl.lit(value=True)),
        on=["document_no", "source_version_no"],
        how="left",
        maintain_order="left",
    )
    joined = joined.with_columns(
        recorded=pl.col("recorded").fill_null(value=False),
        reason=pl.coalesce(
            "excluded",
            "parse_excluded",
            pl.when(pl.col("parsed").is_null()).then(pl.lit("unreadable")),
        ),
        why=pl.when(pl.col("excluded").is_not_null())
        .then(pl.col("detail"))
        .when(pl.col("parse_excluded").is_not_null())
        .then(pl.col("parse_detail"))
        .otherwise(pl.lit(NOT_PARSED)),
    )
    existing = joined.filter(pl.col("recorded"))
    unusable = joined.filter(~pl.col("recorded") & pl.col("reason").is_not_null())
    usable = joined.filter(~pl.col("recorded") & pl.col("reason").is_null())
    fresh, duplicates = _tell_duplicates(usable, existing)
    return Split(
        fresh=_with_reason(fresh, records),
        existing=existing.select("document_no"),
        excluded=pl.concat(
            [
                unusable.select("document_no", "source_version_no", "reason", detail="why"),
                duplicates,
            ]
        ).sort("document_no"),
    )


def _tell_duplicates(
    usable: pl.DataFrame, existing: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame]:
    holders = (
        pl.concat(
            [
                existing.select("checksum", "document_id", rank=pl.lit(0)),
                usable.select("checksum", "document_id", rank=pl.lit(1)),
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


def _with_reason(fresh: pl.DataFrame, records: pl.DataFrame) -> pl.DataFrame:
    """A document that had a record for other bytes was corrected; else it is new."""
    earlier = records.select("document_no").unique().with_columns(had=pl.lit(value=True))
    return fresh.join(earlier, on="document_no", how="left", maintain_order="left").select(
        "document_no",
        "document_id",
        "source_version_no",
        "checksum",
        replay_reason=pl.when(pl.col("had"))
        .then(pl.lit("corrected_source"))
        .otherwise(pl.lit("new_source")),
    )
