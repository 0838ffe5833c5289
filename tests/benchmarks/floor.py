"""The floor: the same durable rows, search entries and files as the pipeline, without any logic.

Belongs here: writing what is already known. It loads the same tables through the same bulk
loads and commits a shard at a time, so what the pipeline takes above it is the price of
reading, reconciling, judging, moving and fencing.
"""

from __future__ import annotations

import time

import polars as pl
from sqlalchemy import BigInteger, Connection, Integer, Table

from pipeline_assets.workloads.fields import searched
from pipeline_assets.workloads.registry import load_workload
from resources.artifacts import Kind
from resources.context import Context
from resources.ledger.archive_content import search_entries_of
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

WORKLOAD = "equipment_manuals"
TABLES = (
    record_state,
    results,
    dispositions,
    judgements,
    findings,
    move_members,
    archive_entries,
    archive_heads,
    deliveries,
)
"""Every table that the stages from submit to publish give a row a record."""


def write_floor(source: Context, target: Context, shard: int) -> tuple[float, int]:
    """Copy what a finished pipeline in `source` wrote into the empty ledger `target`.

    Returns:
        Seconds that writing took, reading left out, and the rows written.
    """
    seconds, rows = 0.0, 0
    with source.ledger.read() as connection:
        highest = connection.exec_driver_sql("SELECT MAX(record_no) FROM records").scalar_one()
    for low in range(1, highest + 1, shard):
        frames, search = _read_rows(source, low, low + shard - 1)
        files = _read_files(source, low)
        started = time.perf_counter()
        for kind, data in files:
            target.artifacts.put(kind, data)
        with target.ledger.write() as connection:
            for table, frame in frames.items():
                target.ledger.dialect.load(connection, table, frame)
                rows += frame.height
            target.ledger.dialect.add_search(connection, search)
            rows += search.height
        seconds += time.perf_counter() - started
    return seconds, rows


def _read_rows(
    source: Context, low: int, high: int
) -> tuple[dict[Table, pl.DataFrame], pl.DataFrame]:
    """The rows of a range of records by table, and the search entries among them."""
    with source.ledger.read() as connection:
        frames = {table: _fetch(source, connection, table, low, high) for table in TABLES}
    contents = frames[archive_entries].select("entry_no", "content")
    return frames, search_entries_of(contents, searched(load_workload(WORKLOAD).fields))


def _fetch(
    source: Context, connection: Connection, table: Table, low: int, high: int
) -> pl.DataFrame:
    schema = {
        column.name: pl.Int64 if isinstance(column.type, BigInteger | Integer) else pl.String
        for column in table.c
    }
    records = f"record_no BETWEEN {low} AND {high}"
    condition = records
    if table in (results, dispositions):
        condition = f"attempt_no IN (SELECT attempt_no FROM attempts WHERE {records})"
    elif table is archive_heads:
        condition = f"entry_no IN (SELECT entry_no FROM archive_entries WHERE {records})"
    query = f"SELECT {', '.join(schema)} FROM {table.name} WHERE {condition}"
    return source.ledger.dialect.fetch(connection, query, schema)


def _read_files(source: Context, low: int) -> list[tuple[Kind, bytes]]:
    """The files of the batch that begins with this record: results, collected, staging."""
    with source.ledger.read() as connection:
        row = connection.exec_driver_sql(
            "SELECT b.collected_artifact, b.staging_artifact, f.artifact FROM batches b "
            "JOIN attempts a ON a.attempt_no = b.first_attempt_no "
            f"JOIN result_files f ON f.batch_no = b.batch_no WHERE a.record_no = {low}"
        ).one()
    kinds: tuple[Kind, Kind, Kind] = ("frame", "frame", "result")
    return [
        (kind, source.artifacts.require(kind, digest).read_bytes())
        for kind, digest in zip(kinds, row, strict=True)
    ]
