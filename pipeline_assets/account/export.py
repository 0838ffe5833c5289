"""The published archive as rows: every visible entry with where it comes from.

Belongs here: the rows of `tallybook export`. Does not belong here: their forms
(`export_tables.py`). Nothing in a row depends on the machine or on how
often a run was interrupted, so two archives of the same documents export the same rows but for
`published_at`.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, NamedTuple

import msgspec
import polars as pl
from sqlalchemy import Connection

from pipeline_assets.account.known_workload import only_workload, require_used
from pipeline_assets.account.shards import shards
from pipeline_assets.known_version import known_version, parser_key_of
from resources.clock import to_text
from resources.context import Context
from resources.ledger.engine import Ledger
from resources.ledger.numbers import is_one_of

_ENTRY_SCHEMA = {
    "entry_no": pl.Int64,
    "document_id": pl.String,
    "archive_version": pl.Int64,
    "content": pl.String,
    "thumbnail": pl.String,
    "valid_from": pl.String,
    "record_no": pl.Int64,
    "record_id": pl.String,
    "checksum": pl.String,
    "key": pl.String,
    "workload": pl.String,
    "digest": pl.String,
    "spec": pl.String,
    "request_digest": pl.String,
    "accepted_digest": pl.String,
    "delivered_at": pl.String,
}
_ATTEMPT_SCHEMA = {
    "record_no": pl.Int64,
    "attempt_no": pl.Int64,
    "values_digest": pl.String,
    "manifest_id": pl.String,
    "manifest_digest": pl.String,
    "provider": pl.String,
    "model": pl.String,
    "model_revision": pl.String,
}


def export_entries(
    context: Context,
    key: str | None = None,
    as_of: datetime | None = None,
    workload: str | None = None,
) -> Iterator[dict[str, Any]]:
    """Every visible entry, sorted by document_id.

    A row is document_id, archive_version, record_id, workload, the fields of that workload,
    thumbnail, provenance, published_at. Fields are `{value, status, evidence: [{page, quote}]}`
    or a list of those. Memory holds one shard.

    Args:
        context: the open resources.
        key: only entries of this processing version.
        as_of: what was visible at this (aware) time; what is visible now by default.
        workload: only entries of this workload.

    Raises:
        MalformedVersionKey, VersionNeverUsed: there is no such version here.
        WorkloadNeverUsed: there is no such workload here.
    """
    wanted = _wanted(context, key, workload)
    ledger = context.ledger
    with ledger.read() as connection:
        heads = _shown(connection, ledger, wanted, as_of)
        for part in shards(context, heads, "document_id"):
            yield from entries_of(connection, ledger, part["entry_no"]).values()


def exported_workload(
    context: Context,
    key: str | None = None,
    as_of: datetime | None = None,
    workload: str | None = None,
) -> str:
    """The one workload of the entries that `export_entries` gives, for a table's columns.

    Raises:
        MalformedVersionKey, VersionNeverUsed, WorkloadNeverUsed: as `export_entries`.
        SeveralWorkloads: there are entries of more than one.
    """
    if key is not None:
        return known_version(context, key).workload
    wanted = _wanted(context, key, workload)
    if workload is not None:
        return workload
    with context.ledger.read() as connection:
        shown = _shown(connection, context.ledger, wanted, as_of)
    return only_workload(context, shown["workload"].unique().to_list())


class _Wanted(NamedTuple):
    """Which entries are meant; None: all."""

    version_no: int | None
    workload: str | None


def _wanted(context: Context, key: str | None, workload: str | None) -> _Wanted:
    if workload is not None:
        require_used(context, workload)
    return _Wanted(None if key is None else known_version(context, key).version_no, workload)


def _shown(
    connection: Connection, ledger: Ledger, wanted: _Wanted, as_of: datetime | None
) -> pl.DataFrame:
    """entry_no, document_id, workload of the entries that are visible, or were at a time."""
    # An entry is visible from its publication up to, and without, the moment at which it ended.
    at = None if as_of is None else to_text(as_of)
    shown = ledger.dialect.fetch(
        connection,
        "SELECT e.entry_no, d.document_id, e.version_no, v.workload FROM archive_entries e "
        "JOIN documents d ON d.document_no = e.document_no "
        "JOIN processing_versions v ON v.version_no = e.version_no "
        "WHERE e.valid_from <= ? AND (e.valid_to IS NULL OR e.valid_to > ?) "
        "AND e.document_no NOT IN (SELECT document_no FROM erasures)"
        if at is not None
        else "SELECT h.entry_no, d.document_id, e.version_no, v.workload FROM archive_heads h "
        "JOIN archive_entries e ON e.entry_no = h.entry_no "
        "JOIN documents d ON d.document_no = h.document_no "
        "JOIN processing_versions v ON v.version_no = e.version_no",
        {
            "entry_no": pl.Int64,
            "document_id": pl.String,
            "version_no": pl.Int64,
            "workload": pl.String,
        },
        () if at is None else (at, at),
    )
    if wanted.version_no is not None:
        shown = shown.filter(pl.col("version_no") == wanted.version_no)
    if wanted.workload is not None:
        shown = shown.filter(pl.col("workload") == wanted.workload)
    return shown.select("entry_no", "document_id", "workload")


def entry_of(connection: Connection, ledger: Ledger, entry_no: int) -> dict[str, Any]:
    """One visible or former entry in the shape of an exported row."""
    return entries_of(connection, ledger, pl.Series([entry_no], dtype=pl.Int64))[entry_no]


def entries_of(
    connection: Connection, ledger: Ledger, numbers: pl.Series
) -> dict[int, dict[str, Any]]:
    """A shard of visible or former entries in the shape of exported rows, by document_id."""
    entries = (
        ledger.dialect.fetch(
            connection,
            "SELECT e.entry_no, d.document_id, e.archive_version, e.content, "  # noqa: S608
            "e.thumbnail, e.valid_from, r.record_no, r.record_id, r.checksum, v.key, v.workload, "
            "v.digest, v.spec, y.request_digest, y.accepted_digest, y.delivered_at "
            "FROM archive_entries e JOIN documents d ON d.document_no = e.document_no "
            "JOIN records r ON r.record_no = e.record_no "
            "JOIN processing_versions v ON v.version_no = e.version_no "
            "LEFT JOIN deliveries y ON y.record_no = e.record_no AND y.entry_no = e.entry_no "
            f"WHERE {is_one_of('e.entry_no', numbers)}",
            _ENTRY_SCHEMA,
        )
        .sort("document_id", "delivered_at")
        .unique("entry_no", keep="last", maintain_order=True)
    )
    attempts = _attempts(connection, ledger, entries)
    parsers = {
        key: parser_key_of(spec)
        for key, spec in entries.select("key", "spec").unique("key").iter_rows()
    }
    return {
        row["entry_no"]: _row(row, attempts.get(row["record_no"], {}), parsers[row["key"]])
        for row in entries.iter_rows(named=True)
    }


def _attempts(
    connection: Connection, ledger: Ledger, entries: pl.DataFrame
) -> dict[int, dict[str, Any]]:
    """record_no → the attempt whose values were published, else the newest judged one."""
    judged = ledger.dialect.fetch(
        connection,
        "SELECT a.record_no, a.attempt_no, j.values_digest, m.manifest_id, m.digest, "  # noqa: S608
        "b.provider, b.model, p.model_revision FROM attempts a "
        "JOIN judgements j ON j.attempt_no = a.attempt_no "
        "JOIN batches b ON b.batch_no = a.batch_no "
        "JOIN manifests m ON m.manifest_no = b.manifest_no "
        "LEFT JOIN dispositions p ON p.attempt_no = a.attempt_no "
        f"WHERE {is_one_of('a.record_no', entries['record_no'])}",
        _ATTEMPT_SCHEMA,
    )
    chosen = (
        judged.join(entries.select("record_no", "accepted_digest"), on="record_no")
        .with_columns(
            published=(pl.col("values_digest") == pl.col("accepted_digest")).fill_null(value=False)
        )
        .sort("published", "attempt_no")
        .unique("record_no", keep="last", maintain_order=True)
    )
    return {row["record_no"]: row for row in chosen.iter_rows(named=True)}


def _row(row: dict[str, Any], attempt: dict[str, Any], parser: str) -> dict[str, Any]:
    return {
        "document_id": row["document_id"],
        "archive_version": row["archive_version"],
        "record_id": row["record_id"],
        "workload": row["workload"],
        **msgspec.json.decode(row["content"]),
        "thumbnail": row["thumbnail"],
        "provenance": {
            "processing_version": row["key"],
            "digest": row["digest"],
            "workload": row["workload"],
            "source_checksum": row["checksum"],
            "parser": parser,
            "provider": attempt.get("provider"),
            "model": attempt.get("model"),
            "model_revision": attempt.get("model_revision"),
            "manifest_id": attempt.get("manifest_id"),
            "manifest_digest": attempt.get("manifest_digest"),
            "request_digest": row["request_digest"],
            "accepted_digest": row["accepted_digest"],
        },
        "published_at": row["valid_from"],
    }
