"""What `tallybook sources list` tells of each source: declared, scanned, and what is wrong with it.

Belongs here: putting declaration and ledger side by side, and the problems that show without
opening a source. Does not belong here: printing, and listing a source (`ingest/scan.py`).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from partitions.processing_version import (
    InvalidSpec,
    MalformedVersionKey,
    UnknownVersion,
    find_spec,
)
from pipeline_assets.approval.decide import waiting_for_approval
from pipeline_assets.workloads.registry import (
    InvalidWorkload,
    UnknownWorkload,
    WorkloadNamedTwice,
    load_workload,
)
from resources.context import Context
from resources.settings import Settings
from resources.sources.declared import (
    BucketPlace,
    BucketSource,
    DeclaredSource,
    FolderSource,
    QueueSource,
    SqlSource,
    TableSource,
    declared_sources,
)

_HELD_SCHEMA = {
    "name": pl.String,
    "kind": pl.String,
    "location": pl.String,
    "workload": pl.String,
    "documents": pl.Int64,
    "excluded": pl.Int64,
    "snapshot_at": pl.String,
    "dead_events": pl.Int64,
}
_HELD = (
    "SELECT s.name, s.kind, s.location, s.workload, "
    "(SELECT COUNT(*) FROM source_entries e JOIN documents d ON d.document_no = e.document_no "
    "WHERE d.source_no = s.source_no AND e.to_snapshot IS NULL), "
    "(SELECT COUNT(e.excluded) FROM source_entries e JOIN documents d "
    "ON d.document_no = e.document_no WHERE d.source_no = s.source_no AND e.to_snapshot IS NULL), "
    "(SELECT MAX(n.taken_at) FROM snapshots n WHERE n.source_no = s.source_no), "
    "(SELECT COUNT(*) FROM source_events v WHERE v.source_no = s.source_no AND v.state = 'dead') "
    "FROM sources s ORDER BY s.name"
)
_UNDECLARED = "it is not declared any more: its documents stay as they are"


@dataclass(frozen=True)
class SourceRow:
    """One source.

    Attributes:
        name: what its document ids start with.
        declared: is it declared now?
        kind: folder, table, sql, bucket or queue.
        place: where it is, for people; free of credentials.
        workload: what is extracted from its documents.
        version: the processing version under which automation processes what is new.
        removed: what becomes of published documents that it no longer holds.
        approval: must somebody approve each document?
        documents: how many it holds, those that are excluded included.
        excluded: how many of them are excluded by the scan.
        waiting: how many wait for approval.
        snapshot_at: when something about it was last found changed (UTC); None: never scanned.
        problems: a sentence each.
    """

    name: str
    declared: bool
    kind: str
    place: str
    workload: str
    version: str | None
    removed: str
    approval: bool
    documents: int
    excluded: int
    waiting: int
    snapshot_at: str | None
    problems: tuple[str, ...]


def overview(settings: Settings, context: Context | None) -> list[SourceRow]:
    """Every source that is declared or was scanned, by name.

    Args:
        settings: what is declared.
        context: the open ledger; None where there is none yet.

    Raises:
        InvalidSources: the file of sources cannot be used.
    """
    declared = {source.name: source for source in declared_sources(settings)}
    scanned, waiting = _scanned(context), {}
    if context is not None:
        waiting = waiting_for_approval(context.ledger, settings)
    rows = [
        _row(source, scanned.get(name), waiting.get(name, 0), settings)
        for name, source in declared.items()
    ]
    rows += [_left_over(held) for name, held in scanned.items() if name not in declared]
    return sorted(rows, key=lambda row: row.name)


def _scanned(context: Context | None) -> dict[str, dict[str, Any]]:
    if context is None:
        return {}
    with context.ledger.read() as connection:
        found = context.ledger.dialect.fetch(connection, _HELD, _HELD_SCHEMA)
    return {row["name"]: row for row in found.iter_rows(named=True)}


def _row(
    source: DeclaredSource, held: dict[str, Any] | None, waiting: int, settings: Settings
) -> SourceRow:
    return SourceRow(
        name=source.name,
        declared=True,
        kind=source.kind,
        place=place_of(source),
        workload=source.workload,
        version=source.version,
        removed=source.removed,
        approval=source.approval,
        documents=0 if held is None else held["documents"],
        excluded=0 if held is None else held["excluded"],
        waiting=waiting,
        snapshot_at=None if held is None else held["snapshot_at"],
        problems=(
            *_of_workload(source, settings),
            *_of_place(source),
            *([] if held is None else _of_ledger(source, held)),
        ),
    )


def _left_over(held: dict[str, Any]) -> SourceRow:
    return SourceRow(
        name=held["name"],
        declared=False,
        kind="folder" if held["kind"] == "directory" else held["kind"],
        place=held["location"],
        workload=held["workload"],
        version=None,
        removed="keep",
        approval=False,
        documents=held["documents"],
        excluded=held["excluded"],
        waiting=0,
        snapshot_at=held["snapshot_at"],
        problems=(_UNDECLARED,),
    )


def place_of(source: DeclaredSource) -> str:
    """Where a declared source is, in one line; never with credentials."""
    if isinstance(source, SqlSource):
        return f"{source.table or 'a query'} in ${source.url_env}"
    if isinstance(source, BucketSource):
        return source.url
    if isinstance(source, QueueSource):
        documents = source.documents
        place = documents.url if isinstance(documents, BucketPlace) else str(documents.path)
        return f"events of {source.path or source.queue_url} about {place}"
    return str(source.path)


def _of_workload(source: DeclaredSource, settings: Settings) -> list[str]:
    try:
        load_workload(source.workload, settings.workload_folder)
        if source.version is None:
            return []
        spec = find_spec(source.version, settings.spec_folders)
    except (
        InvalidSpec,
        InvalidWorkload,
        MalformedVersionKey,
        UnknownVersion,
        UnknownWorkload,
        WorkloadNamedTwice,
    ) as error:
        return [str(error)]
    if spec.workload != source.workload:
        return [f"its version {source.version} is of workload {spec.workload}, not of its own"]
    return []


def _of_place(source: DeclaredSource) -> list[str]:
    if isinstance(source, SqlSource):
        unset = not os.environ.get(source.url_env)
        return [f"the environment variable {source.url_env} is not set"] if unset else []
    looked: Path | None = None
    if isinstance(source, FolderSource | TableSource | QueueSource):
        looked = source.path
    return [] if looked is None or looked.exists() else [f"{looked} is not there"]


def _of_ledger(source: DeclaredSource, held: dict[str, Any]) -> list[str]:
    found = []
    if held["workload"] != source.workload:
        found.append(
            f"it was scanned for workload {held['workload']}, and a source belongs to one: give it "
            "another name"
        )
    if held["dead_events"]:
        found.append(f"{held['dead_events']} of its events were given up")
    return found
