"""Giving the spans of what has ended to the exporter that the settings name.

Belongs here: the steps, and that nothing is given twice. Does not belong here: the choice
(`choose.py`), the spans (`spans.py`) and the places they go to.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version as installed_version

import polars as pl
from sqlalchemy import Connection

from pipeline_assets.known_version import known_version
from pipeline_assets.tracing.choose import choose
from pipeline_assets.tracing.collector import Collector
from pipeline_assets.tracing.ended import ended_since
from pipeline_assets.tracing.exporter import Exporter, ExportFailed, resource_of
from pipeline_assets.tracing.lives import RECORDS_AT_ONCE, lives_of
from pipeline_assets.tracing.spans import Span, spans_of
from pipeline_assets.tracing.trace_file import TraceFile
from resources.context import Context
from resources.ledger.engine import Ledger
from resources.ledger.errors import LedgerError
from resources.ledger.leases import BackgroundHeartbeat, LeaseHeld, LeaseLost, fenced, held
from resources.ledger.trace_marks import read_mark, set_mark, settled_up_to


@dataclass(frozen=True)
class TraceReport:
    """What an export came to.

    Attributes:
        exporter: where the spans went; `off` where tracing is off.
        ended: episodes that ended since the export before.
        told: how many of them were chosen.
        spans: that were handed over.
        problem: why nothing counts as exported, in closed wording; None where all went well.
    """

    exporter: str
    ended: int = 0
    told: int = 0
    spans: int = 0
    problem: str | None = None


def export_traces(context: Context, key: str, exporter: Exporter | None = None) -> TraceReport:
    """Export the records of a version that ended since the last time.

    Every failing one, the slowest hundredth and a share of the rest. What cannot be exported now is
    exported next time, and is no reason for a run to fail: the report says what was in the way.

    Args:
        context: the open resources.
        key: of the version.
        exporter: where to; by default the one that the settings name.

    Raises:
        MalformedVersionKey, VersionNeverUsed: there is no such version here.
    """
    place = exporter or exporter_of(context)
    if place is None:
        return TraceReport("off")
    version_no = known_version(context, key).version_no
    lease_name = f"traces:{place.name}:{version_no}"
    try:
        with held(context.ledger, lease_name, context.worker) as lease:
            with BackgroundHeartbeat(context.ledger, lease):
                report, up_to = _export(context, version_no, place)
            if up_to is not None:
                with fenced(context.ledger, lease) as connection:
                    set_mark(connection, place.name, version_no, up_to, context.ledger.now())
            return report
    except LeaseHeld:
        return TraceReport(place.name, problem="another worker is exporting this version's traces")
    except LeaseLost:
        return TraceReport(
            place.name, problem="the export took longer than its lease; it is repeated next time"
        )
    except ExportFailed as error:
        return TraceReport(place.name, problem=str(error))
    except LedgerError as error:
        return TraceReport(
            place.name, problem=f"the ledger could not be asked ({type(error).__name__})"
        )


def exporter_of(context: Context) -> Exporter | None:
    """The exporter that the settings name; None where tracing is off."""
    wanted = context.settings.traces
    if wanted == "off":
        return None
    resource = resource_of(installed_version("tallybook"))
    if wanted == "file":
        return TraceFile(context.settings.state_folder, resource)
    return Collector(resource)


def _export(context: Context, version_no: int, place: Exporter) -> tuple[TraceReport, int | None]:
    """The report, and up to which move everything was told; None where nothing is new."""
    ledger, share = context.ledger, context.settings.trace_share
    with ledger.read() as connection:
        mark = read_mark(connection, place.name, version_no)
        up_to = settled_up_to(connection, ledger.dialect, mark, ledger.clock())
        if up_to == mark:
            return TraceReport(place.name), None
        shard = context.settings.shard_records
        ended = ended_since(
            connection, ledger.dialect, version_no, (mark, up_to), shard=shard, share=share
        )
        chosen = choose(ended, share)
    spans = place.export(_traces(ledger, chosen)) if chosen.height else 0
    return TraceReport(place.name, ended.height, chosen.height, spans), up_to


def _traces(ledger: Ledger, chosen: pl.DataFrame) -> Iterator[list[Span]]:
    """The spans of the chosen episodes, a record at a time.

    Each page is read in a transaction of its own, so that a slow collector holds none open; what
    has ended does not change any more.
    """
    numbers = chosen["record_no"].unique().sort()
    for start in range(0, numbers.len(), RECORDS_AT_ONCE):
        page = numbers.slice(start, RECORDS_AT_ONCE)
        with ledger.read() as connection:
            traces = _traces_of(connection, ledger, page, chosen)
        yield from traces


def _traces_of(
    connection: Connection, ledger: Ledger, numbers: pl.Series, chosen: pl.DataFrame
) -> list[list[Span]]:
    wanted = chosen.filter(pl.col("record_no").is_in(numbers.implode()))
    why: dict[int, dict[int, str]] = {}
    for row in wanted.select("record_no", "first_move", "why").iter_rows():
        why.setdefault(row[0], {})[row[1]] = row[2]
    return [
        spans_of(life, why=why[life.record_no])
        for life in lives_of(connection, ledger.dialect, numbers)
    ]
