"""The floor: the same durable rows, search entries and files as the pipeline, without any logic.

Belongs here: writing what is already known. It loads the same tables through the same bulk
loads and commits a shard at a time, so what the pipeline takes above it is the price of
reconciling, judging, moving and fencing.
"""

from __future__ import annotations

import hashlib
import time

import polars as pl

from resources.context import Context
from resources.ledger.schema import (
    archive_entries,
    archive_heads,
    deliveries,
    dispositions,
    findings,
    judgements,
    move_members,
    record_state,
    results,
)

MOVES = 4
"""Set-based moves of a record from the frozen manifest to the archive."""
TABLES = (
    results,
    dispositions,
    judgements,
    findings,
    move_members,
    archive_entries,
    archive_heads,
    deliveries,
)


def write_floor(source: Context, target: Context, shard: int) -> tuple[float, int]:
    """Copy what a finished pipeline in `source` wrote into the empty ledger `target`.

    Returns:
        Seconds that writing took, reading left out, and the rows written.
    """
    seconds, rows = 0.0, 0
    with source.ledger.read() as connection:
        highest = connection.exec_driver_sql("SELECT MAX(record_no) FROM records").scalar_one()
    for low in range(1, highest + 1, shard):
        frames, search = _read(source, low, low + shard - 1)
        files = _read_files(source, low)
        started = time.perf_counter()
        for data in files:
            target.artifacts.put("frame", data)
        with target.ledger.write() as connection:
            for table, frame in frames.items():
                target.ledger.dialect.load(connection, table, frame)
                rows += frame.height
            target.ledger.dialect.add_search(connection, search)
            rows += search.height
        seconds += time.perf_counter() - started
    return seconds, rows


def _read(source: Context, low: int, high: int) -> tuple[dict, pl.DataFrame]:
    """The rows of a shard of records, by table."""
    frames = {}
    with source.ledger.read() as connection:
        for table in (record_state, *TABLES):
            condition = _condition(table.name, low, high)
            frame = _fetch(source, connection, table, condition)
            frames[table] = frame
        entries = frames[archive_entries]
        search = _search_rows(source, connection, entries)
    return frames, search


def _condition(name: str, low: int, high: int) -> str:
    attempts = (
        f"attempt_no IN (SELECT attempt_no FROM attempts WHERE record_no BETWEEN {low} AND {high})"
    )
    if name in ("results", "dispositions"):
        return attempts
    if name == "archive_heads":
        return (
            "entry_no IN (SELECT entry_no FROM archive_entries "
            f"WHERE record_no BETWEEN {low} AND {high})"
        )
    return f"record_no BETWEEN {low} AND {high}"


def _fetch(source: Context, connection, table, condition: str) -> pl.DataFrame:
    from sqlalchemy import BigInteger, Integer

    schema = {
        column.name: pl.Int64 if isinstance(column.type, BigInteger | Integer) else pl.String
        for column in table.c
    }
    return source.ledger.dialect.fetch(
        connection, f"SELECT {', '.join(schema)} FROM {table.name} WHERE {condition}", schema
    )


def _search_rows(source: Context, connection, entries: pl.DataFrame) -> pl.DataFrame:
    """Search tokens as the pipeline made them, from the published content."""
    from resources.ledger.search_text import tokens

    fields = pl.Struct({"value": pl.String})
    decoded = entries.select(
        "entry_no",
        content=pl.col("content").str.json_decode(
            pl.Struct(
                {
                    "title": fields,
                    "product_identifiers": pl.List(fields),
                    "language": fields,
                    "description": fields,
                }
            )
        ),
    ).unnest("content")
    return decoded.select(
        "entry_no",
        title=tokens(pl.col("title").struct.field("value")),
        identifiers=tokens(
            pl.col("product_identifiers")
            .list.eval(pl.element().struct.field("value"))
            .list.join(" ")
        ),
        description=tokens(pl.col("description").struct.field("value")),
        language=pl.col("language").struct.field("value"),
    )


def _read_files(source: Context, low: int) -> list[bytes]:
    """The files of the batch that begins with this record: results, collected, staging."""
    with source.ledger.read() as connection:
        row = connection.exec_driver_sql(
            "SELECT b.collected_artifact, b.staging_artifact, f.artifact FROM batches b "
            "JOIN attempts a ON a.attempt_no = b.first_attempt_no "
            f"JOIN result_files f ON f.batch_no = b.batch_no WHERE a.record_no = {low}"
        ).first()
    if row is None:
        return []
    kinds = ("frame", "frame", "result")
    data = [source.artifacts.require(kind, name).read_bytes() for kind, name in zip(kinds, row)]
    assert all(hashlib.sha256(d).hexdigest() == n for d, n in zip(data, row))
    return data
