"""Corrections: the values that a reviewer gave are those that were decided on.

Belongs here: content against the digest that stands with the decision. Does not belong here:
reviews against their acts and the journal (`ledger_rows.py`).
"""

from __future__ import annotations

import hashlib

import polars as pl

from pipeline_assets.audit.ledger_rows import REVIEW
from pipeline_assets.audit.look import Look


def check_corrections(look: Look) -> None:
    """Check every correction; one whose document was erased is empty."""
    statement = (
        "SELECT w.review_no, w.corrected_digest, w.corrected_content FROM reviews w "  # noqa: S608
        "JOIN records r ON r.record_no = w.record_no WHERE w.corrected_digest IS NOT NULL "
        "AND r.document_no NOT IN (SELECT document_no FROM erasures) "
        f"AND {look.of_version('w.version_no')} ORDER BY w.review_no"
    )
    schema = {"review_no": pl.Int64, "digest": pl.String, "content": pl.String}
    for part in look.stream(statement, schema):
        look.findings.looked(REVIEW, part.height)
        for review_no, digest, content in part.iter_rows():
            found = hashlib.sha256((content or "").encode()).hexdigest()
            if content is None or found != digest:
                look.findings.add(
                    REVIEW,
                    f"review {review_no}",
                    "no corrected values" if content is None else f"values {found[:16]}",
                    f"values with digest {digest[:16]}, which were decided on",
                )
