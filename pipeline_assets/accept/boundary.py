"""The acceptance boundary read back from the ledger: nothing passed it without being let through.

Belongs here: the query. Does not belong here: the boundary itself, which is the code that judges
(`judge.py`), the code that decides for a reviewer (`review`) and the code that publishes only what
is accepted (`publish`).
"""

from __future__ import annotations

import polars as pl

from resources.ledger.engine import Ledger

LEAK_SCHEMA = {"record_id": pl.String, "leak": pl.String}

# An answer is let through by the rules, or by the reviewer whom the rules asked.
_LET_THROUGH = (
    "(j.outcome = 'accepted' OR EXISTS (SELECT 1 FROM reviews v "
    "WHERE v.attempt_no = j.attempt_no AND v.decision IN ('accept', 'correct')))"
)
# What counts is the record's newest answer, not one that it replaced.
_NEWEST = (
    "NOT EXISTS (SELECT 1 FROM attempts n JOIN judgements k ON k.attempt_no = n.attempt_no "
    "WHERE n.record_no = a.record_no AND n.attempt_no > a.attempt_no)"
)
# With the values that the model gave where the rules or a reviewer let them pass as they are, or
# with those that a reviewer put in their place.
_VALUES_LET_THROUGH = (
    "((j.values_digest = e.content_digest AND (j.outcome = 'accepted' OR EXISTS "
    "(SELECT 1 FROM reviews v WHERE v.attempt_no = j.attempt_no AND v.decision = 'accept'))) "
    "OR EXISTS (SELECT 1 FROM reviews v WHERE v.attempt_no = j.attempt_no "
    "AND v.decision = 'correct' AND v.corrected_digest = e.content_digest))"
)


def leaks(ledger: Ledger, version_no: int) -> pl.DataFrame:
    """Records of a version that are beyond the boundary and were never let through.

    Returns:
        `LEAK_SCHEMA`, sorted; empty where the boundary held.
    """
    with ledger.read() as connection:
        return ledger.dialect.fetch(
            connection,
            "SELECT r.record_id, 'accepted without an accepting judgement' FROM records r "  # noqa: S608
            "JOIN record_state s ON s.record_no = r.record_no "
            "WHERE r.version_no = ? AND s.state IN ('accepted', 'published') "
            "AND NOT EXISTS (SELECT 1 FROM attempts a "
            "JOIN judgements j ON j.attempt_no = a.attempt_no "
            f"WHERE a.record_no = r.record_no AND {_LET_THROUGH} AND {_NEWEST}) "
            "UNION ALL "
            "SELECT r.record_id, 'published values that were not accepted' FROM archive_entries e "
            "JOIN records r ON r.record_no = e.record_no WHERE e.version_no = ? "
            "AND NOT EXISTS (SELECT 1 FROM attempts a "
            "JOIN judgements j ON j.attempt_no = a.attempt_no "
            f"WHERE a.record_no = e.record_no AND {_VALUES_LET_THROUGH}) "
            "UNION ALL "
            "SELECT r.record_id, 'visible values that a reviewer rejected' FROM archive_heads h "
            "JOIN archive_entries e ON e.entry_no = h.entry_no "
            "JOIN records r ON r.record_no = e.record_no "
            "JOIN reviews v ON v.record_no = e.record_no AND v.decision = 'reject' "
            "AND v.kind = 'quality_sample' AND v.values_digest = e.content_digest "
            "WHERE e.version_no = ? AND NOT EXISTS (SELECT 1 FROM attempts n "
            "JOIN judgements k ON k.attempt_no = n.attempt_no "
            "WHERE n.record_no = v.record_no AND n.attempt_no > v.attempt_no)",
            LEAK_SCHEMA,
            (version_no, version_no, version_no),
        ).sort("record_id", "leak")
