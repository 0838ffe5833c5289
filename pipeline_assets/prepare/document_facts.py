"""What the ledger and the declarations say of present documents before they become records.

Belongs here: approvals, erasures, and what other versions made of the same documents, as frames
for the decision. Does not belong here: the decision (`candidates.py`).
"""

from __future__ import annotations

import msgspec
import polars as pl

from pipeline_assets.prepare.candidates import BARRED_SCHEMA, EARLIER_SCHEMA
from pipeline_assets.replay.reasons import derive_reason
from pipeline_assets.versions import OpenVersion
from resources.context import Context
from resources.ledger.approvals import decisions
from resources.ledger.engine import Ledger
from resources.ledger.erasures import erased_documents
from resources.sources.declared import declared_sources

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
    demanding = [source.name for source in declared_sources(context.settings) if source.approval]
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


def earlier_records(ledger: Ledger, version: OpenVersion) -> pl.DataFrame:
    """Source versions with a record under another version of the workload (`EARLIER_SCHEMA`)."""
    declared = version.spec.declared()
    with ledger.read() as connection:
        others = ledger.dialect.fetch(
            connection,
            "SELECT version_no, spec FROM processing_versions WHERE workload = ? "
            "AND version_no <> ?",
            {"version_no": pl.Int64, "spec": pl.String},
            (version.spec.workload, version.version_no),
        )
        if others.is_empty():
            return pl.DataFrame(schema=EARLIER_SCHEMA)
        newest = ledger.dialect.fetch(
            connection,
            "SELECT r.document_no, r.source_version_no, r.version_no FROM records r JOIN ("
            "SELECT MAX(o.record_no) AS record_no FROM records o "
            "JOIN processing_versions p ON p.version_no = o.version_no "
            "WHERE p.workload = ? AND o.version_no <> ? GROUP BY o.source_version_no) n "
            "ON n.record_no = r.record_no",
            {
                "document_no": pl.Int64,
                "source_version_no": pl.Int64,
                "version_no": pl.Int64,
            },
            (version.spec.workload, version.version_no),
        )
    reasons = pl.DataFrame(
        [
            (number, derive_reason(msgspec.json.decode(spec), declared))
            for number, spec in others.iter_rows()
        ],
        schema={"version_no": pl.Int64, "reason": pl.String},
        orient="row",
    )
    return newest.join(reasons, on="version_no").select(list(EARLIER_SCHEMA))
