"""What the ledger says of present documents before they become records.

Belongs here: what other versions made of the same documents, as a frame for the decision. Does not
belong here: the decision (`candidates.py`), approvals and erasures
(`pipeline_assets/barred_documents.py`).
"""

from __future__ import annotations

import msgspec
import polars as pl

from pipeline_assets.prepare.candidates import EARLIER_SCHEMA
from pipeline_assets.replay.reasons import derive_reason
from pipeline_assets.versions import OpenVersion
from resources.ledger.engine import Ledger


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
