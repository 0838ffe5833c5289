"""The acceptance boundary read back from the ledger: nothing passed it without a judgement.

Belongs here: the query. Does not belong here: the boundary itself, which is the code that judges
(`judge.py`) and the code that publishes only what is accepted (`publish`).
"""

from __future__ import annotations

import polars as pl

from resources.ledger.engine import Ledger

LEAK_SCHEMA = {"record_id": pl.String, "leak": pl.String}


def leaks(ledger: Ledger, version_no: int) -> pl.DataFrame:
    """Records of a version that are beyond the boundary and were never let through.

    Returns:
        `LEAK_SCHEMA`, sorted; empty where the boundary held.
    """
    with ledger.read() as connection:
        return ledger.dialect.fetch(
            connection,
            "SELECT r.record_id, 'accepted without an accepting judgement' FROM records r "
            "JOIN record_state s ON s.record_no = r.record_no "
            "WHERE r.version_no = ? AND s.state IN ('accepted', 'published') "
            "AND NOT EXISTS (SELECT 1 FROM attempts a "
            "JOIN judgements j ON j.attempt_no = a.attempt_no "
            "WHERE a.record_no = r.record_no AND j.outcome = 'accepted') "
            "UNION ALL "
            "SELECT r.record_id, 'published values that were not accepted' FROM archive_entries e "
            "JOIN records r ON r.record_no = e.record_no WHERE e.version_no = ? "
            "AND NOT EXISTS (SELECT 1 FROM attempts a "
            "JOIN judgements j ON j.attempt_no = a.attempt_no "
            "WHERE a.record_no = e.record_no AND j.outcome = 'accepted' "
            "AND j.values_digest = e.content_digest)",
            LEAK_SCHEMA,
            (version_no, version_no),
        ).sort("record_id", "leak")
