"""The parse cache: what (checksum, parser key) gave.

Belongs here: storing and finding parses. Does not belong here: parsing (`ingest/parsing`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl
from sqlalchemy import Connection, text

from resources.ledger.engine import Ledger
from resources.ledger.frames import json_of_texts
from resources.ledger.schema import parses

PARSE_SCHEMA = {
    "checksum": pl.String,
    "parser_key": pl.String,
    "excluded": pl.String,
    "detail": pl.String,
    "media_type": pl.String,
    "page_count": pl.Int64,
    "language": pl.String,
    "languages": pl.String,
    "partial": pl.Int64,
    "notes": pl.String,
    "text_pack": pl.String,
    "thumbnail": pl.String,
    "wall_ms": pl.Int64,
    "cpu_ms": pl.Int64,
    "peak_rss_bytes": pl.Int64,
    "cacheable": pl.Int64,
    "parsed_at": pl.String,
}


CHECKSUMS_A_QUERY = 25_000
"""Contents that are asked for at once, as a list in one parameter."""
MISSING_SCHEMA = {"source_no": pl.Int64, "source_version_no": pl.Int64}

_UNPARSED = (
    "LEFT JOIN parses p ON p.checksum = v.checksum AND p.parser_key = ? "
    "AND NOT (p.cacheable = 0 AND p.excluded IS NOT NULL)"
)
_KEPT = "NOT EXISTS (SELECT 1 FROM erasures x WHERE x.document_no = d.document_no)"


def missing_parses(ledger: Ledger, parser_key: str, workload: str) -> pl.DataFrame:
    """What a workload's sources hold and was not parsed under `parser_key`.

    Numbers only, because there may be a million of them: `missing_slice` tells more. What was
    erased is not missing, even where its source still holds it.

    Returns:
        `MISSING_SCHEMA`, sorted: one row for each content of each source, with the first version
        that has it.
    """
    with ledger.read() as connection:
        return ledger.dialect.fetch(
            connection,
            "SELECT d.source_no, MIN(v.source_version_no) FROM source_entries e "  # noqa: S608 - own names
            "JOIN documents d ON d.document_no = e.document_no "
            "JOIN sources c ON c.source_no = d.source_no "
            "JOIN source_versions v ON v.source_version_no = e.source_version_no "
            f"{_UNPARSED} WHERE e.to_snapshot IS NULL AND p.checksum IS NULL AND c.workload = ? "
            f"AND {_KEPT} GROUP BY d.source_no, v.checksum",
            MISSING_SCHEMA,
            (parser_key, workload),
        ).sort("source_no", "source_version_no")


def missing_slice(ledger: Ledger, parser_key: str, source_version_nos: pl.Series) -> pl.DataFrame:
    """The source versions of a slice that are still not parsed under `parser_key`.

    Those of documents that were erased meanwhile are left out.

    Returns:
        checksum, document_id, bytes; sorted by document id.
    """
    with ledger.read() as connection:
        return ledger.dialect.fetch(
            connection,
            "SELECT v.checksum, d.document_id, v.bytes "  # noqa: S608 - own names
            f"FROM ({ledger.dialect.texts_of_json}) s "
            "JOIN source_versions v ON v.source_version_no = CAST(s.value AS BIGINT) "
            "JOIN documents d ON d.document_no = v.document_no "
            f"{_UNPARSED} WHERE p.checksum IS NULL AND {_KEPT}",
            {"checksum": pl.String, "document_id": pl.String, "bytes": pl.Int64},
            (json_of_texts(source_version_nos), parser_key),
        ).sort("document_id")


def count_parses(ledger: Ledger, parser_key: str, workload: str) -> int:
    """How many contents of a workload's present documents are parsed under `parser_key`."""
    with ledger.read() as connection:
        return connection.execute(
            text(
                "SELECT COUNT(DISTINCT p.checksum) FROM source_entries e "
                "JOIN documents d ON d.document_no = e.document_no "
                "JOIN sources c ON c.source_no = d.source_no "
                "JOIN source_versions v ON v.source_version_no = e.source_version_no "
                "JOIN parses p ON p.checksum = v.checksum AND p.parser_key = :parser_key "
                "WHERE e.to_snapshot IS NULL AND c.workload = :workload "
                "AND NOT (p.cacheable = 0 AND p.excluded IS NOT NULL)"
            ),
            {"parser_key": parser_key, "workload": workload},
        ).scalar_one()


def store_parses(connection: Connection, ledger: Ledger, rows: pl.DataFrame) -> None:
    """Add parses (`PARSE_SCHEMA`); one that is there stays, unless it was to be tried again."""
    ledger.dialect.stage(connection, "stage_parses", rows.select(list(PARSE_SCHEMA)))
    connection.execute(
        text(
            "DELETE FROM parses WHERE cacheable = 0 AND excluded IS NOT NULL AND EXISTS "
            "(SELECT 1 FROM stage_parses s WHERE s.checksum = parses.checksum "
            "AND s.parser_key = parses.parser_key)"
        )
    )
    names = ", ".join(PARSE_SCHEMA)
    connection.execute(
        text(
            f"INSERT INTO {parses.name} ({names}) SELECT {names} FROM stage_parses WHERE true "  # noqa: S608
            "ON CONFLICT (checksum, parser_key) DO NOTHING"
        )
    )


def load_parses(ledger: Ledger, parser_key: str, columns: Sequence[str]) -> pl.DataFrame:
    """These columns of every parse under `parser_key` of a document that is present.

    All of them are in memory: for an archive of any size, `stream_parses`.
    """
    schema = {name: PARSE_SCHEMA[name] for name in columns}
    return pl.concat([pl.DataFrame(schema=schema), *stream_parses(ledger, parser_key, columns)])


def stream_parses(
    ledger: Ledger, parser_key: str, columns: Sequence[str]
) -> Iterator[pl.DataFrame]:
    """What `load_parses` gives, some tens of thousands of rows at a time."""
    names = ", ".join(f"p.{name}" for name in columns)
    with ledger.read() as connection:
        yield from ledger.dialect.stream(
            connection,
            f"SELECT {names} FROM parses p WHERE p.parser_key = ? AND p.checksum IN "  # noqa: S608
            "(SELECT v.checksum FROM source_entries e JOIN source_versions v "
            "ON v.source_version_no = e.source_version_no WHERE e.to_snapshot IS NULL)",
            {name: PARSE_SCHEMA[name] for name in columns},
            (parser_key,),
        )


def parses_of(
    ledger: Ledger, parser_key: str, checksums: pl.Series, columns: Sequence[str]
) -> pl.DataFrame:
    """These columns of the parses of some contents, whether a document has them now or not."""
    schema = {name: PARSE_SCHEMA[name] for name in columns}
    names = ", ".join(f"p.{name}" for name in columns)
    found = [pl.DataFrame(schema=schema)]
    wanted = checksums.drop_nulls().unique().sort()
    with ledger.read() as connection:
        for start in range(0, wanted.len(), CHECKSUMS_A_QUERY):
            found.append(
                ledger.dialect.fetch(
                    connection,
                    f"SELECT {names} FROM ({ledger.dialect.texts_of_json}) s "  # noqa: S608
                    "JOIN parses p ON p.checksum = s.value AND p.parser_key = ?",
                    schema,
                    (json_of_texts(wanted.slice(start, CHECKSUMS_A_QUERY)), parser_key),
                )
            )
    return pl.concat(found)
