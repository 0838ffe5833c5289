"""Why present documents have no record under a version: a view of now.

Belongs here: rewriting and reading it. Does not belong here: deciding it (`prepare`).
"""

from __future__ import annotations

import polars as pl
from sqlalchemy import Connection, delete

from resources.ledger.engine import Ledger
from resources.ledger.schema import exclusions

EXCLUSION_SCHEMA = {
    "document_no": pl.Int64,
    "source_version_no": pl.Int64,
    "reason": pl.String,
    "detail": pl.String,
}


def read_exclusions(connection: Connection, ledger: Ledger, version_no: int) -> pl.DataFrame:
    """The exclusions of a version (`EXCLUSION_SCHEMA`), by document number."""
    return ledger.dialect.fetch(
        connection,
        "SELECT document_no, source_version_no, reason, detail FROM exclusions "
        "WHERE version_no = ?",
        EXCLUSION_SCHEMA,
        (version_no,),
    ).sort("document_no")


def replace_exclusions(
    connection: Connection, ledger: Ledger, version_no: int, rows: pl.DataFrame
) -> bool:
    """Make `rows` the exclusions of a version; False if they already are."""
    rows = rows.select(list(EXCLUSION_SCHEMA)).sort("document_no")
    if read_exclusions(connection, ledger, version_no).equals(rows, null_equal=True):
        return False
    connection.execute(delete(exclusions).where(exclusions.c.version_no == version_no))
    ledger.dialect.load(
        connection,
        exclusions,
        rows.with_columns(version_no=pl.lit(version_no, dtype=pl.Int64)),
    )
    return True
