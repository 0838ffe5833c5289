"""What the declared sources and the ledger say of work for versions that automation processes.

Belongs here: looking at sources within a budget of time, and the ledger's questions. Does not
belong here: the decision (`new_files.py`), alerts and Dagster (`source_sensor.py`).
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import msgspec
import polars as pl
from sqlalchemy import Connection

from partitions.processing_version import (
    InvalidSpec,
    MalformedVersionKey,
    UnknownVersion,
    find_spec,
)
from pipeline_assets.automation.new_files import (
    Found,
    Remembered,
    Waiting,
    settle_seconds,
)
from pipeline_assets.automation.pending import Pending
from pipeline_assets.ingest.look import look_at_source
from pipeline_assets.operating import operating
from resources.context import Context
from resources.ledger.engine import Ledger
from resources.ledger.versions import FrozenVersion, find, list_versions
from resources.ledger.withdrawals import removed_documents, source_numbers
from resources.sources.declared import (
    DeclaredSource,
    QueueSource,
    declared_sources,
)
from resources.sources.opening import open_source
from resources.sources.port import SourceError

BUDGET_SECONDS = 40.0
"""A sensor is given 60 s by Dagster; a tick that is cut loses its cursor."""
QUEUE_SECONDS = 20.0
"""With less left a queue has to wait: it may receive for 30 s, whatever the budget says."""
_NANOSECONDS = 1_000_000_000

# Of an open entry `e`: the version has neither a record of these bytes, nor a reason for having
# none that still holds. Parameters: version_no (2), approval asked (0 or 1), scope.
_NOT_DEALT_WITH = (
    "e.to_snapshot IS NULL AND e.excluded IS NULL AND e.source_version_no IS NOT NULL "
    "AND NOT EXISTS (SELECT 1 FROM erasures x WHERE x.document_no = e.document_no) "
    "AND NOT EXISTS (SELECT 1 FROM records r WHERE r.version_no = ? "
    "AND r.source_version_no = e.source_version_no) "
    "AND NOT EXISTS (SELECT 1 FROM exclusions n WHERE n.version_no = ? "
    "AND n.document_no = e.document_no AND n.source_version_no = e.source_version_no "
    "AND NOT (n.reason IN ('awaiting_approval', 'approval_refused') "
    "AND (? = 0 OR 'approved' = COALESCE((SELECT a.decision FROM approvals a "
    "WHERE a.source_version_no = e.source_version_no ORDER BY a.approval_no DESC LIMIT 1), ''))) "
    "AND NOT (n.reason = 'not_selected' AND ? = 'all'))"
)
_SUMS = (
    "SELECT COUNT(*), COALESCE(MAX(e.entry_no), 0), CAST(COALESCE(SUM(e.entry_no), 0) AS BIGINT) "
    "FROM source_entries e JOIN documents d ON d.document_no = e.document_no "
    "JOIN sources c ON c.source_no = d.source_no "
)
_HAS_A_RECORD = (
    "JOIN (SELECT DISTINCT document_no FROM records WHERE version_no = ?) o "
    "ON o.document_no = e.document_no "
)
_SUM_SCHEMA = {"documents": pl.Int64, "newest": pl.Int64, "sum": pl.Int64}


@dataclass
class SourceWork:
    """What a tick found.

    Attributes:
        found: of every source that was looked at.
        unreadable: sources that cannot be listed, with why.
        unusable: sources whose version cannot be used, with why.
        left: sources that the time did not allow for.
    """

    found: list[Found] = field(default_factory=list)
    unreadable: dict[str, str] = field(default_factory=dict)
    unusable: dict[str, str] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)


def automated_sources(context: Context) -> list[DeclaredSource]:
    """Declared sources that name the version which processes them.

    Raises:
        InvalidSources: the declarations cannot be used.
    """
    return [source for source in declared_sources(context.settings) if source.version is not None]


def look_at_sources(
    context: Context,
    memory: Mapping[str, Remembered],
    *,
    budget_seconds: float = BUDGET_SECONDS,
    now_ns: Callable[[], int] = time.time_ns,
    monotonic: Callable[[], float] = time.monotonic,
) -> SourceWork:
    """Look at every automated source, the one looked at longest ago first.

    A source that cannot be listed keeps no other one from being looked at, and is never taken as
    empty.

    Args:
        context: the open resources.
        memory: what the tick before remembered.
        budget_seconds: no further source is begun after so long, and a listing stops there.
        now_ns: the machine's time, which files are compared with; nanoseconds since 1970.
        monotonic: seconds that only grow.

    Raises:
        InvalidSources: the declarations cannot be used.
    """
    work = SourceWork()
    due = monotonic() + budget_seconds
    sources = sorted(
        automated_sources(context),
        key=lambda source: (memory.get(source.name, Remembered()).looked_at, source.name),
    )
    for source in sources:
        least = QUEUE_SECONDS if isinstance(source, QueueSource) else 0.0
        if due - monotonic() <= least:
            work.left.append(source.name)
            continue
        problem = _unusable(context, source)
        if problem is not None:
            work.unusable[source.name] = problem
            continue
        try:
            work.found.append(
                _look(context, source, memory.get(source.name), now_ns(), due - monotonic())
            )
        except SourceError as error:
            work.unreadable[source.name] = str(error)
    return work


def corrected_under_replays(context: Context, workloads: Iterable[str]) -> list[Pending]:
    """Versions that process only what replays select, and have records of bytes that changed."""
    found: list[Pending] = []
    wanted = set(workloads)
    asked = {source.name for source in declared_sources(context.settings) if source.approval}
    with context.ledger.read() as connection:
        for version in list_versions(context.ledger):
            if version.state != "active" or version.workload not in wanted:
                continue
            if operating(context.ledger, version.version_no).scope != "replays":
                continue
            waiting = _sums(
                connection,
                context.ledger,
                f"{_HAS_A_RECORD}WHERE {_NOT_DEALT_WITH} AND c.workload = ?",
                (
                    *[version.version_no] * 3,
                    int(bool(asked)),
                    "replays",
                    version.workload,
                ),
            )
            if waiting.documents:
                found.append(Pending(version.key, ("corrected",), waiting.mark))
    return found


def _unusable(context: Context, source: DeclaredSource) -> str | None:
    """Why a source's version can process nothing now; None where it can."""
    assert source.version is not None  # noqa: S101 - only automated sources come here
    try:
        spec = find_spec(source.version, context.settings.spec_folders)
    except (InvalidSpec, MalformedVersionKey, UnknownVersion) as error:
        return str(error)
    if spec.workload != source.workload:
        return (
            f"version {spec.key!r} is of workload {spec.workload!r}, and the source of "
            f"{source.workload!r}. Name a version of that workload in the sources file."
        )
    frozen = find(context.ledger, spec.key)
    if frozen is not None and frozen.state == "retired":
        return f"version {spec.key!r} is retired. Name another one in the sources file."
    return None


def _look(
    context: Context,
    source: DeclaredSource,
    before: Remembered | None,
    now_ns: int,
    seconds: float,
) -> Found:
    assert source.version is not None  # noqa: S101 - only automated sources come here
    listed = open_source(source, context.ledger)
    settle = settle_seconds(source.settle_seconds, before, now_ns / _NANOSECONDS)
    look = look_at_source(
        context, listed, source, now_ns=now_ns, settle_seconds=settle, seconds=seconds
    )
    frozen = find(context.ledger, source.version)
    stamp, pending, withdrawal = _of_ledger(context, source, frozen, before)
    return Found(
        source.name,
        source.version,
        look,
        settle,
        events=_events(context.ledger, source) if isinstance(source, QueueSource) else 0,
        pending=pending,
        withdrawal=withdrawal,
        stamp=stamp,
    )


def _of_ledger(
    context: Context,
    source: DeclaredSource,
    version: FrozenVersion | None,
    before: Remembered | None,
) -> tuple[str, Waiting, Waiting]:
    """The stamp of the ledger's answers, what is pending, and what is to be withdrawn.

    Where nothing was written since it had nothing, it is not asked again: the questions look at
    every document.
    """
    ledger = context.ledger
    version_no = -1 if version is None else version.version_no
    scope = "all" if version is None else operating(ledger, version_no).scope
    stamp = _stamp(ledger, source, version_no, scope)
    if before is not None and before.stamp == stamp:
        return stamp, Waiting(), Waiting()
    with ledger.read() as connection:
        pending = _sums(
            connection,
            ledger,
            f"WHERE {_NOT_DEALT_WITH} AND c.name = ? AND c.workload = ?",
            (version_no, version_no, int(source.approval), scope, source.name, source.workload),
        )
        withdrawal = Waiting()
        if source.removed == "withdraw":
            numbers = source_numbers(connection, ledger, [source.name], source.workload)
            gone, _ = removed_documents(connection, ledger, numbers)
            if not gone.is_empty():
                withdrawal = Waiting(gone.len(), f"w{gone.len()}.{gone.max()}")
    return stamp, pending, withdrawal


def _stamp(ledger: Ledger, source: DeclaredSource, version_no: int, scope: str) -> str:
    """Another text whenever something was written that the answers may depend on."""
    with ledger.read() as connection:
        row = ledger.dialect.fetch(
            connection,
            "SELECT (SELECT COALESCE(MAX(snapshot_no), 0) FROM snapshots), "
            "(SELECT COALESCE(MAX(approval_no), 0) FROM approvals), "
            "(SELECT COALESCE(MAX(erasure_no), 0) FROM erasures), "
            "(SELECT COALESCE(MAX(move_no), 0) FROM moves), "
            "(SELECT COUNT(*) FROM exclusions WHERE version_no = ?)",
            dict.fromkeys(("snapshots", "approvals", "erasures", "moves", "exclusions"), pl.Int64),
            (version_no,),
        ).row(0)
    told = (row, version_no, scope, source.model_dump_json())
    return hashlib.sha256(msgspec.json.encode(told)).hexdigest()[:16]


def _sums(
    connection: Connection, ledger: Ledger, condition: str, parameters: tuple[object, ...]
) -> Waiting:
    documents, newest, total = ledger.dialect.fetch(
        connection, _SUMS + condition, _SUM_SCHEMA, parameters
    ).row(0)
    return Waiting(documents, f"p{documents}.{newest}.{total}" if documents else "")


def _events(ledger: Ledger, source: QueueSource) -> int:
    with ledger.read() as connection:
        return ledger.dialect.fetch(
            connection,
            "SELECT COUNT(*) FROM source_events v JOIN sources c ON c.source_no = v.source_no "
            "WHERE c.name = ? AND v.state = 'waiting'",
            {"events": pl.Int64},
            (source.name,),
        ).item()
