"""The account of every expected record of a version, and whether it adds up.

Belongs here: putting counts and violations together. Does not belong here: the checks
(`violations.py`), the rows behind the counts, and the report in full, which is kept and closed
(`reconciliation/`).
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from typing import Any

import msgspec
import polars as pl
from sqlalchemy import Connection

from pipeline_assets.account.standing import count_standings
from pipeline_assets.account.violations import find_violations
from pipeline_assets.known_version import KnownVersion, known_version
from pipeline_assets.quality.error_rates import SampleSummary, sample_summary
from resources.context import Context
from resources.ledger.engine import Ledger
from resources.ledger.moves import version_chain

DISPOSITIONS = (
    "succeeded",
    "retryable_failure",
    "permanent_failure",
    "cancelled",
    "expired",
)
_TIMES = ("made_at", "seconds")


@dataclass(frozen=True)
class BatchAccount:
    """A batch in a report."""

    batch_id: str
    state: str
    provider: str
    provider_outcome: str | None
    expected: int
    reconciled: int


@dataclass(frozen=True)
class ManifestAccount:
    """A manifest in a report.

    Attributes:
        manifest_id: its name.
        digest: frozen with it.
        expected: records in it.
        dispositions: each of the five → attempts; together `expected` once every batch is
            complete.
        batches: its batches, oldest first.
    """

    manifest_id: str
    digest: str
    expected: int
    dispositions: dict[str, int]
    batches: tuple[BatchAccount, ...]


@dataclass(frozen=True)
class ChainHead:
    """A hash chain of the journal as it was read.

    Attributes:
        name: the chain.
        moves: its journal rows.
        head: the digest of the last of them.
    """

    name: str
    moves: int
    head: str


@dataclass(frozen=True)
class JournalAccount:
    """The journal of a version, its batches and its canaries.

    Attributes:
        moves: journal rows.
        digest: SHA-256 over the names and heads of its hash chains; a later report with fewer
            moves, or another digest for as many, shows that the journal was changed.
        heads: each of the chains, by name: one that was cut at its end has fewer moves than here.
    """

    moves: int
    digest: str
    heads: tuple[ChainHead, ...] = ()


@dataclass(frozen=True)
class Report:
    """The account of a version.

    Attributes:
        processing_version: its key.
        digest: its frozen digest.
        state: active, held or retired.
        manifests: oldest first.
        documents: what the sources hold now.
        expected: documents with a record for their present bytes.
        states: state → such records.
        former: state → records of documents that were removed or changed since.
        excluded: reason → documents without a record.
        pending: documents that were scanned after the last freeze; not accounted for yet.
        attempts: what an attempt did differently → attempts; `first` ones among them.
        late_results: lines that came back after their attempt was given up, and how many of them
            became their record's answer.
        sample: its quality samples and the error rate found in them; None where none was drawn.
        invariant_holds: nothing is in `violations`.
        violations: what does not add up, a sentence each.
        journal: the heads of the journal.
        made_at: UTC.
        seconds: how long it took to count.
    """

    processing_version: str
    digest: str
    state: str
    manifests: tuple[ManifestAccount, ...]
    documents: int
    expected: int
    states: dict[str, int]
    former: dict[str, int]
    excluded: dict[str, int]
    pending: int
    attempts: dict[str, int]
    late_results: dict[str, int]
    sample: SampleSummary | None
    invariant_holds: bool
    violations: tuple[str, ...]
    journal: JournalAccount
    made_at: str
    seconds: float

    def as_json(self) -> dict[str, Any]:
        """The report as plain JSON values, in this order."""
        return msgspec.to_builtins(self)

    @property
    def content_digest(self) -> str:
        """SHA-256 of the report without the times of its making."""
        content = {name: value for name, value in self.as_json().items() if name not in _TIMES}
        return hashlib.sha256(msgspec.json.encode(content, order="sorted")).hexdigest()


def build_report(context: Context, key: str) -> Report:
    """Count everything of a version in one consistent view of the ledger.

    Raises:
        MalformedVersionKey, VersionNeverUsed: there is no such version here.
    """
    started = time.monotonic()
    version = known_version(context, key)
    ledger = context.ledger
    with ledger.read() as connection:
        standings = count_standings(connection, ledger, version)
        all_states = _states(connection, ledger, version)
        manifests = _manifests(connection, ledger, version)
        journal = journal_account(connection, ledger, version)
        attempts = _attempts(connection, ledger, version)
        late = _late_results(connection, ledger, version)
        sample = sample_summary(connection, ledger, version.version_no)
        violations = find_violations(connection, ledger, version, standings)
    former = {state: count - standings.states.get(state, 0) for state, count in all_states.items()}
    if standings.documents != standings.expected + sum(standings.excluded.values()) + (
        standings.pending
    ):
        violations.append("documents are not the sum of expected, excluded and pending ones")
    return Report(
        processing_version=version.key,
        digest=version.digest,
        state=version.state,
        manifests=manifests,
        documents=standings.documents,
        expected=standings.expected,
        states=standings.states,
        former={state: count for state, count in former.items() if count},
        excluded=standings.excluded,
        pending=standings.pending,
        attempts=attempts,
        late_results=late,
        sample=sample,
        invariant_holds=not violations,
        violations=tuple(violations),
        journal=journal,
        made_at=ledger.now(),
        seconds=round(time.monotonic() - started, 3),
    )


def _states(connection: Connection, ledger: Ledger, version: KnownVersion) -> dict[str, int]:
    rows = ledger.dialect.fetch(
        connection,
        "SELECT COALESCE(s.state, 'unknown'), COUNT(*) FROM records r "
        "LEFT JOIN record_state s ON s.record_no = r.record_no WHERE r.version_no = ? GROUP BY 1",
        {"state": pl.String, "records": pl.Int64},
        (version.version_no,),
    )
    return dict(rows.sort("state").iter_rows())


def _manifests(
    connection: Connection, ledger: Ledger, version: KnownVersion
) -> tuple[ManifestAccount, ...]:
    manifests = ledger.dialect.fetch(
        connection,
        "SELECT manifest_no, manifest_id, digest, expected FROM manifests "
        "WHERE version_no = ? ORDER BY manifest_no",
        {
            "manifest_no": pl.Int64,
            "manifest_id": pl.String,
            "digest": pl.String,
            "expected": pl.Int64,
        },
        (version.version_no,),
    )
    batches = _batches(connection, ledger, version)
    counts = _dispositions(connection, ledger, version)
    return tuple(
        ManifestAccount(
            manifest_id=row["manifest_id"],
            digest=row["digest"],
            expected=row["expected"],
            dispositions={name: counts.get((row["manifest_no"], name), 0) for name in DISPOSITIONS},
            batches=tuple(batches.get(row["manifest_no"], [])),
        )
        for row in manifests.iter_rows(named=True)
    )


def _batches(
    connection: Connection, ledger: Ledger, version: KnownVersion
) -> dict[int, list[BatchAccount]]:
    rows = ledger.dialect.fetch(
        connection,
        "SELECT manifest_no, batch_id, state, provider, provider_outcome, expected_records, "
        "reconciled_records FROM batches WHERE version_no = ? ORDER BY batch_no",
        {
            "manifest_no": pl.Int64,
            "batch_id": pl.String,
            "state": pl.String,
            "provider": pl.String,
            "provider_outcome": pl.String,
            "expected": pl.Int64,
            "reconciled": pl.Int64,
        },
        (version.version_no,),
    )
    found: dict[int, list[BatchAccount]] = {}
    for row in rows.iter_rows(named=True):
        found.setdefault(row.pop("manifest_no"), []).append(BatchAccount(**row))
    return found


def _dispositions(
    connection: Connection, ledger: Ledger, version: KnownVersion
) -> dict[tuple[int, str], int]:
    rows = ledger.dialect.fetch(
        connection,
        "SELECT b.manifest_no, p.disposition, COUNT(*) FROM batches b JOIN dispositions p "
        "ON p.attempt_no BETWEEN b.first_attempt_no AND b.last_attempt_no "
        "WHERE b.version_no = ? GROUP BY b.manifest_no, p.disposition",
        {"manifest_no": pl.Int64, "disposition": pl.String, "attempts": pl.Int64},
        (version.version_no,),
    )
    return {(manifest, name): count for manifest, name, count in rows.iter_rows()}


def _attempts(connection: Connection, ledger: Ledger, version: KnownVersion) -> dict[str, int]:
    rows = ledger.dialect.fetch(
        connection,
        "SELECT a.recovery_path, COUNT(*) FROM batches b JOIN attempts a "
        "ON a.attempt_no BETWEEN b.first_attempt_no AND b.last_attempt_no "
        "WHERE b.version_no = ? GROUP BY a.recovery_path",
        {"path": pl.String, "attempts": pl.Int64},
        (version.version_no,),
    )
    return dict(rows.sort("path").iter_rows())


def _late_results(connection: Connection, ledger: Ledger, version: KnownVersion) -> dict[str, int]:
    came, used = ledger.dialect.fetch(
        connection,
        "SELECT COUNT(*), COUNT(CASE WHEN l.used = 1 THEN 1 END) FROM batches b "
        "JOIN late_results l ON l.batch_no = b.batch_no WHERE b.version_no = ?",
        {"came": pl.Int64, "used": pl.Int64},
        (version.version_no,),
    ).row(0)
    return {"came": came, "used": used} if came else {}


def journal_account(
    connection: Connection, ledger: Ledger, version: KnownVersion
) -> JournalAccount:
    """The heads of a version's chains as they are now."""
    chains = ledger.dialect.fetch(
        connection,
        "SELECT m.chain, n.moves, m.digest FROM (SELECT chain, MAX(move_no) AS newest, "
        "COUNT(*) AS moves FROM moves GROUP BY chain) n JOIN moves m ON m.move_no = n.newest",
        {"chain": pl.String, "moves": pl.Int64, "digest": pl.String},
    )
    names = chain_names(connection, ledger, version.version_no)
    own = chains.filter(pl.col("chain").is_in(names)).sort("chain")
    digest = hashlib.sha256()
    for chain, _, head in own.iter_rows():
        digest.update(f"{chain} {head}\n".encode())
    return JournalAccount(
        moves=int(own["moves"].sum()),
        digest=digest.hexdigest(),
        heads=tuple(ChainHead(*row) for row in own.iter_rows()),
    )


def chain_names(connection: Connection, ledger: Ledger, version_no: int) -> list[str]:
    """The hash chains of a version, its batches and its canaries."""
    names = [version_chain(version_no)]
    for machine, sql in (
        ("batch", "SELECT batch_no FROM batches WHERE version_no = ?"),
        ("canary", "SELECT canary_no FROM canaries WHERE version_no = ?"),
    ):
        numbers = ledger.dialect.fetch(connection, sql, {"no": pl.Int64}, (version_no,))["no"]
        names += [f"{machine}:{number}" for number in numbers]
    return names
