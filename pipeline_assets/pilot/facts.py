"""What a version came to in a pilot, read from its ledger: document by document, and job by job.

Belongs here: the statements and joining them. Does not belong here: estimates (`projection.py`),
known values (`truth.py`) and the report (`report.py`). A pilot is as large as its sample, so its
documents are held in memory at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import polars as pl
from sqlalchemy import Connection

from pipeline_assets.account.standing import present_keys, standings_of
from pipeline_assets.costs.charges import jobs_of_version, listed
from pipeline_assets.costs.rates import rates_of_jobs
from pipeline_assets.costs.totals import charge_of
from pipeline_assets.known_version import KnownVersion
from pipeline_assets.pilot.population import Taken
from resources.clock import from_text
from resources.context import Context
from resources.contracts import STAGING, scan_frame
from resources.ledger.numbers import is_one_of

GONE = "gone"
"""The state of a document that was taken and that the sources did not hold any more."""
ACCEPTED_STATES = frozenset({"accepted", "published", "superseded"})
"""Accepted by the rules. Superseded is, too: another version's answer was published first."""
REVIEW_STATES = frozenset({"awaiting_review"})
_OWN_ARTIFACTS = (
    "SELECT request_artifact FROM batches WHERE version_no = ?",
    "SELECT collected_artifact FROM batches WHERE version_no = ?",
    "SELECT staging_artifact FROM batches WHERE version_no = ?",
    "SELECT places_artifact FROM batches WHERE version_no = ?",
    "SELECT f.artifact FROM result_files f JOIN batches b ON b.batch_no = f.batch_no "
    "WHERE b.version_no = ?",
)
_PARSES = (
    "SELECT p.checksum, p.wall_ms, p.cpu_ms, p.peak_rss_bytes FROM parses p WHERE p.parser_key = ?"
)
_LINES = (
    "SELECT a.record_no, SUM(a.request_length), SUM(x.bytes) FROM batches b "
    "JOIN attempts a ON a.attempt_no BETWEEN b.first_attempt_no AND b.last_attempt_no "
    "LEFT JOIN (SELECT attempt_no, SUM(line_length) AS bytes FROM results "
    "WHERE attempt_no IS NOT NULL GROUP BY attempt_no) x ON x.attempt_no = a.attempt_no "
    "WHERE b.version_no = ? GROUP BY a.record_no"
)
_CLASSES = (
    "SELECT d.failure_class, COUNT(*) FROM batches b JOIN dispositions d "
    "ON d.attempt_no BETWEEN b.first_attempt_no AND b.last_attempt_no "
    "WHERE b.version_no = ? AND d.failure_class IS NOT NULL GROUP BY d.failure_class"
)
_FINDINGS = (
    "SELECT f.rule, COUNT(DISTINCT f.record_no) FROM findings f "
    "JOIN records r ON r.record_no = f.record_no "
    "JOIN record_state s ON s.record_no = r.record_no AND s.state = 'awaiting_review' "
    "WHERE r.version_no = ? AND f.severity = 'review' GROUP BY f.rule"
)
_JOBS = (
    "SELECT b.batch_id, b.mode, b.submitted_at, (SELECT MIN(m.moved_at) FROM moves m "
    "WHERE m.machine = 'batch' AND m.subject_no = b.batch_no "
    "AND m.to_state IN ('results_available', 'reconciling')) FROM batches b "
    "WHERE b.version_no = ? AND b.submitted_at IS NOT NULL ORDER BY b.batch_no"
)
_GROUPS = (
    "SELECT g.records, g.calls, g.started_at, g.finished_at FROM online_groups g "
    "JOIN batches b ON b.batch_no = g.batch_no "
    "WHERE b.version_no = ? AND g.finished_at IS NOT NULL"
)
_TOKENS = (
    "SELECT AVG(n.tokens) FROM renderings n JOIN attempts a ON a.attempt_no = n.attempt_no "
    "JOIN batches b ON b.batch_no = a.batch_no WHERE b.version_no = ?"
)
_STAGED = (
    "SELECT staging_artifact FROM batches WHERE version_no = ? AND staging_artifact IS NOT NULL "
    "UNION SELECT w.staging_artifact FROM late_answers w JOIN batches b ON b.batch_no = w.batch_no "
    "WHERE b.version_no = ? AND w.staging_artifact IS NOT NULL"
)
_COUNTED = {"name": pl.String, "count": pl.Int64}


@dataclass(frozen=True)
class DocumentFact:
    """What one taken document came to under a version.

    Attributes:
        document_id: its id.
        stratum: its stratum.
        bytes: its size; as listed where it is gone.
        state: its record's state, `excluded`, `pending` or `gone`.
        reason: why it is excluded; None where it is not.
        changed: its bytes are not those that the archive, or the listing, knew.
        parse_wall_s: seconds that its parse took in a worker.
        parse_cpu_s: seconds of processor time of that.
        request_bytes: of all requests for it.
        result_bytes: of all lines that came back for it.
        usd: what its answers cost; None where a part is not known.
    """

    document_id: str
    stratum: str
    bytes: int
    state: str
    reason: str | None
    changed: bool
    parse_wall_s: float
    parse_cpu_s: float
    request_bytes: int
    result_bytes: int
    usd: Decimal | None

    @property
    def accepted(self) -> bool:
        """Did the rules accept it?"""
        return self.state in ACCEPTED_STATES

    @property
    def to_review(self) -> bool:
        """Does it wait for a person?"""
        return self.state in REVIEW_STATES


@dataclass(frozen=True)
class ProviderFact:
    """What a provider took for a version.

    Attributes:
        job_seconds: of each job that is done, from its submission to its results.
        elapsed_s: from the first submission to the last result; None where nothing came back.
        calls: online calls.
        call_seconds: mean seconds of one; None where none was made.
    """

    job_seconds: tuple[float, ...]
    elapsed_s: float | None
    calls: int
    call_seconds: float | None


def document_facts(
    connection: Connection, context: Context, version: KnownVersion, taken: Sequence[Taken]
) -> list[DocumentFact]:
    """What every taken document came to, by id."""
    ledger = context.ledger
    keys = present_keys(connection, ledger, version.workload)
    standings = standings_of(connection, ledger, version, keys["document_no"])
    parses = ledger.dialect.fetch(
        connection,
        _PARSES,
        {"checksum": pl.String, "wall_ms": pl.Int64, "cpu_ms": pl.Int64, "rss": pl.Int64},
        (version.parser_key,),
    )
    lines = ledger.dialect.fetch(
        connection,
        _LINES,
        {"record_no": pl.Int64, "requests": pl.Int64, "results": pl.Int64},
        (version.version_no,),
    )
    found = {
        row["document_id"]: row
        for row in standings.join(parses, on="checksum", how="left")
        .join(lines, on="record_no", how="left")
        .iter_rows(named=True)
    }
    costs = record_costs(connection, context, version.version_no)
    return [_fact(one, found.get(one.document_id), costs) for one in taken]


def _fact(
    taken: Taken, row: dict[str, object] | None, costs: dict[int, Decimal | None]
) -> DocumentFact:
    if row is None:
        return DocumentFact(
            document_id=taken.document_id,
            stratum=taken.stratum,
            bytes=taken.bytes,
            state=GONE,
            reason=None,
            changed=False,
            parse_wall_s=0.0,
            parse_cpu_s=0.0,
            request_bytes=0,
            result_bytes=0,
            usd=Decimal(0),
        )
    record_no, checksum = row["record_no"], row["checksum"]
    return DocumentFact(
        document_id=taken.document_id,
        stratum=taken.stratum,
        bytes=_number(row["size"]),
        state=str(row["state"]),
        reason=None if row["reason"] is None else str(row["reason"]),
        changed=None not in (checksum, taken.checksum) and checksum != taken.checksum,
        parse_wall_s=_number(row["wall_ms"]) / 1000,
        parse_cpu_s=_number(row["cpu_ms"]) / 1000,
        request_bytes=_number(row["requests"]),
        result_bytes=_number(row["results"]),
        # A document without a record was never asked about.
        usd=Decimal(0) if record_no is None else costs.get(_number(record_no), Decimal(0)),
    )


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def record_costs(
    connection: Connection, context: Context, version_no: int
) -> dict[int, Decimal | None]:
    """record_no → what its answers cost in US dollars; None where a part is not known."""
    jobs = jobs_of_version(connection, version_no)
    if not jobs:
        return {}
    rates = rates_of_jobs(connection, "batch", jobs, context.clock)
    found: dict[int, Decimal | None] = {}
    rows = listed(connection, context.ledger, version_no, jobs[0].no, jobs[-1].no)
    for row in rows.iter_rows(named=True):
        usd = charge_of(row, rates[row["batch_no"]]).usd
        before = found.get(row["record_no"], Decimal(0))
        found[row["record_no"]] = None if usd is None or before is None else before + usd
    return found


def parser_peak(connection: Connection, context: Context, parser_key: str) -> int:
    """Highest resident memory of a parser process, in bytes; 0 where nothing was parsed."""
    found = context.ledger.dialect.fetch(
        connection,
        "SELECT COALESCE(MAX(peak_rss_bytes), 0) FROM parses WHERE parser_key = ?",
        {"rss": pl.Int64},
        (parser_key,),
    )
    return int(found.item())


def failure_classes(connection: Connection, context: Context, version_no: int) -> dict[str, int]:
    """Failure class → attempts that ended so, by name."""
    return _counted(connection, context, _CLASSES, version_no)


def review_findings(connection: Connection, context: Context, version_no: int) -> dict[str, int]:
    """Rule → records that wait for a reviewer because of it, by name."""
    return _counted(connection, context, _FINDINGS, version_no)


def _counted(connection: Connection, context: Context, sql: str, version_no: int) -> dict[str, int]:
    found = context.ledger.dialect.fetch(connection, sql, _COUNTED, (version_no,))
    return dict(found.sort("name").iter_rows())


def mean_tokens(connection: Connection, context: Context, version_no: int) -> float | None:
    """Estimated prompt tokens of a request; None for requests that leave no estimate."""
    found = context.ledger.dialect.fetch(connection, _TOKENS, {"tokens": pl.Float64}, (version_no,))
    return found.item()


def provider_facts(
    connection: Connection, context: Context, version_no: int, calls_at_once: int
) -> ProviderFact:
    """How long a provider took.

    Args:
        connection: of one moment.
        context: the pilot, open.
        version_no: the version.
        calls_at_once: online calls that could be under way at once.
    """
    dialect = context.ledger.dialect
    jobs = dialect.fetch(
        connection,
        _JOBS,
        {"id": pl.String, "mode": pl.String, "begun": pl.String, "done": pl.String},
        (version_no,),
    ).filter((pl.col("mode") == "batch") & pl.col("done").is_not_null())
    groups = dialect.fetch(
        connection,
        _GROUPS,
        {"records": pl.Int64, "calls": pl.Int64, "begun": pl.String, "done": pl.String},
        (version_no,),
    )
    spans = [_seconds(*span) for span in jobs.select("begun", "done").iter_rows()]
    if groups.is_empty():
        elapsed = None if jobs.is_empty() else _seconds(*_ends(jobs))
        return ProviderFact(tuple(spans), elapsed, 0, None)
    busy = [_seconds(*span) for span in groups.select("begun", "done").iter_rows()]
    calls = int(groups["calls"].sum())
    slots = [
        seconds * min(calls_at_once, max(1, count))
        for seconds, count in zip(busy, groups["calls"], strict=True)
    ]
    return ProviderFact((), sum(busy), calls, sum(slots) / calls if calls else None)


def _ends(jobs: pl.DataFrame) -> tuple[str, str]:
    return str(jobs["begun"].min()), str(jobs["done"].max())


def _seconds(begun: str, done: str) -> float:
    return max(0.0, (from_text(done) - from_text(begun)).total_seconds())


def own_bytes(connection: Connection, context: Context, version_no: int) -> int:
    """Bytes of the artifacts that a version alone has: requests, results and frames."""
    names: Counter[str] = Counter()
    for sql in _OWN_ARTIFACTS:
        found = context.ledger.dialect.fetch(
            connection, sql, {"artifact": pl.String}, (version_no,)
        )
        names.update(found["artifact"].drop_nulls())
    return sum(_size(context, name) for name in names)


def _size(context: Context, digest: str) -> int:
    for kind in ("request", "result", "frame"):
        path = context.artifacts.path(kind, digest)
        if path.is_file():
            return path.stat().st_size
    return 0


def kind_bytes(context: Context, *kinds: str) -> int:
    """Bytes of all artifacts of some kinds."""
    root = Path(context.artifacts.root)
    return sum(
        file.stat().st_size for kind in kinds for file in (root / kind).rglob("*") if file.is_file()
    )


def answers_of(connection: Connection, context: Context, version: KnownVersion) -> pl.DataFrame:
    """The newest judged answer of every record: document_id, state, content (JSON); by id."""
    dialect = context.ledger.dialect
    names = dialect.fetch(
        connection, _STAGED, {"artifact": pl.String}, (version.version_no, version.version_no)
    )["artifact"]
    schema = {"record_no": pl.Int64, "attempt_no": pl.Int64, "content": pl.String}
    parts = [pl.DataFrame(schema=schema)]
    for name in names.unique().sort():
        path = context.artifacts.require("frame", name)
        parts.append(scan_frame(STAGING, path).select(list(schema)).collect())
    newest = pl.concat(parts).sort("attempt_no").unique("record_no", keep="last")
    documents = dialect.fetch(
        connection,
        "SELECT r.record_no, d.document_id, s.state FROM records r "  # noqa: S608 - numbers alone
        "JOIN documents d ON d.document_no = r.document_no "
        "JOIN record_state s ON s.record_no = r.record_no "
        f"WHERE {is_one_of('r.record_no', newest['record_no'])}",
        {"record_no": pl.Int64, "document_id": pl.String, "state": pl.String},
    )
    return (
        newest.join(documents, on="record_no")
        .select("document_id", "state", "content")
        .sort("document_id")
    )
