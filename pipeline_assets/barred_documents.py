"""Present documents that nobody may process, and why: approvals and erasures as one frame.

Belongs here: what freezing and planning a replay ask alike. Does not belong here: deciding about a
document (`pipeline_assets/approval`, `pipeline_assets/erasure`), and what becomes of it.
"""

from __future__ import annotations

import polars as pl

from pipeline_assets.versions import OpenVersion
from resources.context import Context
from resources.ledger.approvals import decided_sources, decisions
from resources.ledger.erasures import erased_documents
from resources.sources.declared import approval_by_declaration

BARRED_SCHEMA = {"document_no": pl.Int64, "reason": pl.String, "detail": pl.String}
"""Documents that somebody, or nobody yet, has decided about: why they may not be processed."""
_UNDECIDED = "approve it with: tallybook sources approve"
_ERASED = "its content was purged; it is not processed again"


def barred_documents(context: Context, version: OpenVersion, present: pl.DataFrame) -> pl.DataFrame:
    """Present documents that may not be processed, and why (`BARRED_SCHEMA`).

    Args:
        context: the open resources.
        version: the version.
        present: `source_snapshots.PRESENT_SCHEMA`.

    Raises:
        InvalidSources: the declarations cannot be read, so it is not known what needs approval.
    """
    erased = erased_documents(context.ledger)
    gone = present.filter(pl.col("document_no").is_in(erased.implode())).select(
        "document_no", reason=pl.lit("erased"), detail=pl.lit(_ERASED)
    )
    parts = [pl.DataFrame(schema=BARRED_SCHEMA), gone]
    demanding = demanding_sources(context)
    if demanding:
        decided = decisions(context.ledger, version.spec.workload)
        of_source = pl.col("document_id").str.split_exact("/", 1).struct.field("field_0")
        asked = present.filter(
            of_source.is_in(demanding),
            pl.col("source_version_no").is_not_null(),
            ~pl.col("document_no").is_in(erased.implode()),
        ).join(decided, on="source_version_no", how="left", maintain_order="left")
        verdict = pl.col("decision").fill_null("")
        parts.append(
            asked.filter(verdict != "approved").select(
                "document_no",
                reason=pl.when(verdict == "refused")
                .then(pl.lit("approval_refused"))
                .otherwise(pl.lit("awaiting_approval")),
                detail=pl.when(verdict == "refused").then(pl.lit("")).otherwise(pl.lit(_UNDECIDED)),
            )
        )
    return pl.concat(parts)


def demanding_sources(context: Context) -> list[str]:
    """Names of the sources whose documents need approval, sorted.

    One that is not declared any more needs it still if it ever was decided about: taking a source
    out of the file must not let pass what waits.

    Raises:
        InvalidSources: the declarations cannot be read.
    """
    declared = approval_by_declaration(context.settings)
    asked = {name for name, demands in declared.items() if demands}
    return sorted(asked | (decided_sources(context.ledger) - declared.keys()))
