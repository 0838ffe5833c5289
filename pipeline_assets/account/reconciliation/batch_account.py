"""The account of one batch: its share of a manifest, and what became of those records.

Belongs here: what only a batch's report says, read from the batch alone: a version may have
hundreds, and each is accounted for when it is complete. Does not belong here: the account of a
version (`pipeline_assets/account/report.py`), and what both reports share (`facts.py`).
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from typing import Any

import polars as pl
from sqlalchemy import Connection

from pipeline_assets.account.reconciliation.batches import BatchFacts
from pipeline_assets.account.reconciliation.tally import Kind
from pipeline_assets.account.report import (
    BatchAccount,
    ChainHead,
    JournalAccount,
    ManifestAccount,
    Report,
)
from pipeline_assets.account.violations import batch_violations
from pipeline_assets.costs.charges import jobs_of_version
from pipeline_assets.costs.rates import rates_of_jobs
from pipeline_assets.costs.totals import Sum, charges_of_version
from pipeline_assets.known_version import KnownVersion
from resources.context import Context
from resources.ledger.engine import Ledger

_HEAD = (
    "SELECT m.chain, n.moves, m.digest FROM (SELECT MAX(move_no) AS newest, COUNT(*) AS moves "
    "FROM moves WHERE chain = ?) n JOIN moves m ON m.move_no = n.newest"
)
_PATHS = (
    "SELECT a.recovery_path, COUNT(*) FROM batches b JOIN attempts a "
    "ON a.attempt_no BETWEEN b.first_attempt_no AND b.last_attempt_no "
    "WHERE b.batch_no = ? GROUP BY a.recovery_path"
)
_LATE = "SELECT COUNT(*), COUNT(CASE WHEN used = 1 THEN 1 END) FROM late_results WHERE batch_no = ?"


def batch_account(
    connection: Connection,
    ledger: Ledger,
    version: KnownVersion,
    batch: BatchFacts,
    kinds: tuple[Kind, ...],
) -> Report:
    """The account of a batch, in the form of a version's.

    Its documents are those of its records, as far as the sources still hold their bytes; nothing is
    excluded or pending in a batch, and no sample is drawn of one.

    Args:
        connection: a read transaction.
        ledger: the ledger.
        version: the batch's version.
        batch: the batch.
        kinds: every kind of outcome of its records.
    """
    started = time.monotonic()
    present, former = _states(kinds)
    violations = batch_violations(connection, ledger, batch.batch_no)
    return Report(
        processing_version=version.key,
        digest=version.digest,
        state=version.state,
        manifests=(_share(connection, ledger, version, batch),),
        documents=sum(present.values()),
        expected=sum(present.values()),
        states=present,
        former=former,
        excluded={},
        pending=0,
        attempts=_attempts(connection, ledger, batch.batch_no),
        late_results=_late_results(connection, ledger, batch.batch_no),
        sample=None,
        invariant_holds=not violations,
        violations=tuple(violations),
        journal=_journal(connection, ledger, batch.batch_no),
        made_at=ledger.now(),
        seconds=round(time.monotonic() - started, 3),
    )


def batch_cost(
    connection: Connection, context: Context, version_no: int, batch_no: int
) -> dict[str, Any]:
    """What a batch's attempts were charged, as plain JSON values; amounts are text.

    What its records cost in other batches is not in it, so it tells nothing of an accepted item.
    """
    jobs = jobs_of_version(connection, version_no, batch_no)
    rates = rates_of_jobs(connection, "batch", jobs, context.clock)
    total = Sum()
    for _, charge in charges_of_version(connection, context, version_no, jobs, rates):
        total.add(charge)
    return {
        "attempts": total.rows,
        "tokens": {"input": total.input, "cached": total.cached, "output": total.output},
        "provider_usd": format(total.usd, "f"),
        "unknown": dict(sorted(total.unknown.items())),
        "prices": [
            {"basis": one.price.basis, "package": one.price.package, "rates": one.as_text()}
            for one in rates.values()
        ],
    }


def _states(kinds: tuple[Kind, ...]) -> tuple[dict[str, int], dict[str, int]]:
    """Records of present documents by state, and those of others."""
    present: Counter[str] = Counter()
    former: Counter[str] = Counter()
    for kind in kinds:
        present[kind.what] += kind.present
        former[kind.what] += kind.subjects - kind.present
    return (
        {state: count for state, count in sorted(present.items()) if count},
        {state: count for state, count in sorted(former.items()) if count},
    )


def _share(
    connection: Connection, ledger: Ledger, version: KnownVersion, batch: BatchFacts
) -> ManifestAccount:
    digest = ledger.dialect.fetch(
        connection,
        "SELECT digest FROM manifests WHERE version_no = ? AND manifest_id = ?",
        {"digest": pl.String},
        (version.version_no, batch.manifest_id),
    ).item()
    account = BatchAccount(
        batch_id=batch.batch_id,
        state=batch.state,
        provider=batch.provider,
        provider_outcome=batch.provider_outcome,
        expected=batch.expected,
        reconciled=batch.reconciled,
    )
    return ManifestAccount(
        batch.manifest_id, digest, batch.expected, dict(batch.dispositions), (account,)
    )


def _attempts(connection: Connection, ledger: Ledger, batch_no: int) -> dict[str, int]:
    rows = ledger.dialect.fetch(
        connection, _PATHS, {"path": pl.String, "attempts": pl.Int64}, (batch_no,)
    )
    return dict(rows.sort("path").iter_rows())


def _late_results(connection: Connection, ledger: Ledger, batch_no: int) -> dict[str, int]:
    came, used = ledger.dialect.fetch(
        connection, _LATE, {"came": pl.Int64, "used": pl.Int64}, (batch_no,)
    ).row(0)
    return {"came": came, "used": used} if came else {}


def _journal(connection: Connection, ledger: Ledger, batch_no: int) -> JournalAccount:
    """The head of the batch's own chain."""
    rows = ledger.dialect.fetch(
        connection,
        _HEAD,
        {"chain": pl.String, "moves": pl.Int64, "digest": pl.String},
        (f"batch:{batch_no}",),
    )
    heads = tuple(ChainHead(*row) for row in rows.iter_rows())
    digest = hashlib.sha256()
    for head in heads:
        digest.update(f"{head.name} {head.head}\n".encode())
    return JournalAccount(sum(head.moves for head in heads), digest.hexdigest(), heads)
