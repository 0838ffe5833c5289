"""What was mended in the form of an answer before it was usable.

Belongs here: storing it. Does not belong here: the repairs themselves
(`pipeline_assets/workloads/format_repair`).
"""

from __future__ import annotations

import polars as pl
from sqlalchemy import Connection

from resources.ledger.engine import Ledger
from resources.ledger.schema import repairs

REPAIR_SCHEMA = {
    "attempt_no": pl.Int64,
    "ordinal": pl.Int64,
    "rule": pl.String,
    "rule_version": pl.Int64,
    "before_digest": pl.String,
    "after_digest": pl.String,
}
"""One row a repair; `ordinal` counts from 0 in the order in which an answer was mended."""


def store_repairs(connection: Connection, ledger: Ledger, made: pl.DataFrame) -> None:
    """Add repairs (`REPAIR_SCHEMA`); an attempt that has some already keeps those.

    A success that was not used, because another attempt had answered its record, can come in
    again as a late result that is.
    """
    if made.is_empty():
        return
    ledger.dialect.stage(connection, "stage_repaired", made.select("attempt_no").unique())
    known = ledger.dialect.fetch(
        connection,
        "SELECT DISTINCT r.attempt_no FROM stage_repaired s "
        "JOIN repairs r ON r.attempt_no = s.attempt_no",
        {"attempt_no": pl.Int64},
    )
    fresh = made.select(list(REPAIR_SCHEMA)).join(known, on="attempt_no", how="anti")
    ledger.dialect.load(connection, repairs, fresh)
