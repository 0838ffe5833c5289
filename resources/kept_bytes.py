"""Which source versions' bytes are kept: as a copy of the file, or as the text of the row.

Belongs here: only that question. Does not belong here: keeping (`pipeline_assets/ingest`).

A row of a table is a document whose bytes are its text, so the text pack is the kept copy and no
file for each row is written.
"""

from __future__ import annotations

import polars as pl
from sqlalchemy import Connection

from resources.artifacts import ArtifactStore
from resources.ledger.engine import Ledger
from resources.ledger.frames import json_of_texts

ROW_KINDS = ("table", "sql")
"""Kinds of sources whose documents are rows."""
_SLICE = 50_000


def kept(
    connection: Connection, ledger: Ledger, artifacts: ArtifactStore, checksums: pl.Series
) -> pl.Series:
    """Whether the bytes of each checksum are kept, as booleans in the same order."""
    found = pl.Series(
        [artifacts.has("source", checksum) for checksum in checksums], dtype=pl.Boolean
    )
    missing = checksums.filter(~found)
    if missing.is_empty():
        return found
    return found | checksums.is_in(_kept_as_text(connection, ledger, artifacts, missing).implode())


def _kept_as_text(
    connection: Connection, ledger: Ledger, artifacts: ArtifactStore, checksums: pl.Series
) -> pl.Series:
    """Of these checksums those of rows whose text pack is in the store."""
    kinds = ", ".join(f"'{kind}'" for kind in ROW_KINDS)
    parts = [pl.DataFrame(schema={"checksum": pl.String, "text_pack": pl.String})]
    for start in range(0, checksums.len(), _SLICE):
        parts.append(
            ledger.dialect.fetch(
                connection,
                "SELECT DISTINCT p.checksum, p.text_pack "  # noqa: S608 - own names
                f"FROM ({ledger.dialect.texts_of_json}) s "
                "JOIN parses p ON p.checksum = s.value AND p.text_pack IS NOT NULL "
                "WHERE EXISTS (SELECT 1 FROM source_versions v "
                "JOIN documents d ON d.document_no = v.document_no "
                "JOIN sources c ON c.source_no = d.source_no "
                f"WHERE v.checksum = p.checksum AND c.kind IN ({kinds}))",
                {"checksum": pl.String, "text_pack": pl.String},
                (json_of_texts(checksums.slice(start, _SLICE)),),
            )
        )
    told = pl.concat(parts)
    packs = [pack for pack in told["text_pack"].unique() if artifacts.has("text", pack)]
    return told.filter(pl.col("text_pack").is_in(packs))["checksum"]
