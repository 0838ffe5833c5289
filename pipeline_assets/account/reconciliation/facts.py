"""The reconciliation report in full: an account and everything that goes with it.

Belongs here: putting the parts together, their JSON, and the digest of what they say. Does not
belong here: the parts, how they are shown (`page.py`) and where they are kept (`kept.py`).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import Connection, select

from pipeline_assets.account.reconciliation.baseline import Difference
from pipeline_assets.account.reconciliation.batch_account import batch_account, batch_cost
from pipeline_assets.account.reconciliation.batches import BatchFacts, batch_facts
from pipeline_assets.account.reconciliation.configuration import Configuration, configuration
from pipeline_assets.account.reconciliation.errors import UnknownBatch
from pipeline_assets.account.reconciliation.outcomes import OUTCOMES, leaves_of, outcome_shards
from pipeline_assets.account.reconciliation.tally import Kind, Step, Tally
from pipeline_assets.account.report import Report, build_report
from pipeline_assets.account.status import status
from pipeline_assets.costs.account import CostReader, cost_account
from pipeline_assets.known_version import KnownVersion, known_version
from pipeline_assets.quality.error_rates import ErrorRates, error_rates
from resources.context import Context
from resources.contracts import contract_writer
from resources.ledger.engine import Ledger
from resources.ledger.schema import batches
from resources.merkle import MerkleAccumulator

CONTRACT = "reconciliation/1"
"""Grows when a part of the JSON changes its name, type or meaning."""
_OF_A_MOMENT = ("made_at", "seconds", "ages", "baseline")
"""What differs between two reports of the same content: when they were made, and what after."""


@dataclass(frozen=True)
class OutcomeTable:
    """The table of outcomes under a report.

    Attributes:
        contract: of its columns.
        artifact: SHA-256 of its file; the file's name where the report is kept.
        rows: records, and documents without one.
        records: those with a record.
        states: state → records, those of documents that changed since among them.
        merkle_root: over its rows in their order.
    """

    contract: str
    artifact: str
    rows: int
    records: int
    states: dict[str, int]
    merkle_root: str


@dataclass(frozen=True)
class Details:
    """What a report says besides the account.

    Attributes:
        contract: of the JSON.
        scope: the batch that all of it is of; None for the whole version.
        steps: where records were lost on the way from the manifest to the archive.
        kinds: every kind of outcome with its count; the names are in the table of outcomes.
        outcomes: the table of outcomes.
        batches: every batch of the scope with its dispositions and files.
        quality: the samples with their error rates by slice; None where none was drawn, and of a
            batch.
        configuration: what the version ran with.
        cost: what it cost and how long it took, as `tallybook cost --json` tells it; of a batch
            what its own attempts were charged.
        ages: how old what is open was when the report was made; empty for a batch.
        baseline: what is different from an earlier report; None for a first one.
    """

    contract: str
    scope: str | None
    steps: tuple[Step, ...]
    kinds: tuple[Kind, ...]
    outcomes: OutcomeTable
    batches: tuple[BatchFacts, ...]
    quality: ErrorRates | None
    configuration: Configuration
    cost: dict[str, Any]
    ages: dict[str, Any]
    baseline: Difference | None = None


@dataclass(frozen=True)
class FullReport:
    """A report of a version or of one of its batches: the account and the details."""

    account: Report
    details: Details

    def as_json(self) -> dict[str, Any]:
        """Plain JSON values: those of the account, and the details beside them."""
        return {**self.account.as_json(), **msgspec.to_builtins(self.details)}

    @property
    def content_digest(self) -> str:
        """SHA-256 of what it says, without when it was said."""
        content = {
            name: value for name, value in self.as_json().items() if name not in _OF_A_MOMENT
        }
        return hashlib.sha256(msgspec.json.encode(content, order="sorted")).hexdigest()

    def against(self, baseline: Difference | None) -> FullReport:
        """The same report with the difference to another one."""
        return replace(self, details=replace(self.details, baseline=baseline))


def decode_report(data: bytes) -> FullReport:
    """A report from its JSON.

    Raises:
        msgspec.DecodeError: it is none, or one of before there were details.
    """
    return FullReport(
        msgspec.json.decode(data, type=Report), msgspec.json.decode(data, type=Details)
    )


def make_report(
    context: Context,
    key: str,
    file: Path,
    batch_id: str | None = None,
    read_cost: CostReader = cost_account,
) -> FullReport:
    """Count everything, and write the table of outcomes to a file.

    Args:
        context: the open resources; of one moment, or parts may tell of different ones.
        key: the version.
        file: where the table is written.
        batch_id: only this batch and what became of its records.
        read_cost: reads what the version cost; for a caller that needs it too.

    Raises:
        MalformedVersionKey, VersionNeverUsed: there is no such version here.
        UnknownBatch: it has no such batch.
    """
    version = known_version(context, key)
    if batch_id is not None:
        return _of_batch(context, version, batch_id, file)
    account = build_report(context, key)
    ledger = context.ledger
    with ledger.read() as connection:
        every_batch = batch_facts(connection, ledger, version.version_no)
        quality = error_rates(connection, ledger, version.version_no)
        found = configuration(connection, ledger, version)
    tally, root = _write_outcomes(ledger, version, None, file)
    return FullReport(
        account,
        Details(
            contract=CONTRACT,
            scope=None,
            steps=tally.steps(),
            kinds=tally.kinds(),
            outcomes=_table(tally, root, file),
            batches=every_batch,
            quality=quality,
            configuration=found,
            cost=_plain(read_cost(context, key).as_json()),
            ages=_plain(status(context, key).ages),
        ),
    )


def _of_batch(context: Context, version: KnownVersion, batch_id: str, file: Path) -> FullReport:
    """The report of a batch, from what is the batch's alone."""
    ledger, number = context.ledger, version.version_no
    with ledger.read() as connection:
        batch_no = _batch_no(connection, version, batch_id)
        (batch,) = batch_facts(connection, ledger, number, batch_no)
        tally, root = _write_outcomes(ledger, version, batch_no, file)
        kinds = tally.kinds()
        return FullReport(
            batch_account(connection, ledger, version, batch, kinds),
            Details(
                contract=CONTRACT,
                scope=batch_id,
                steps=tally.steps(),
                kinds=kinds,
                outcomes=_table(tally, root, file),
                batches=(batch,),
                quality=None,
                configuration=configuration(connection, ledger, version, batch),
                cost=batch_cost(connection, context, number, batch_no),
                ages={},
            ),
        )


def _table(tally: Tally, root: str, file: Path) -> OutcomeTable:
    return OutcomeTable(
        contract=OUTCOMES.tag,
        artifact=_digest_of(file),
        rows=tally.rows,
        records=tally.records,
        states=dict(sorted(tally.states.items())),
        merkle_root=root,
    )


def _plain(value: Any) -> dict[str, Any]:
    """What JSON makes of it, so that a report is the same before and after it was kept."""
    return msgspec.json.decode(msgspec.json.encode(value))


def _batch_no(connection: Connection, version: KnownVersion, batch_id: str) -> int:
    named = batches.c.version_no == version.version_no
    number = connection.execute(
        select(batches.c.batch_no).where(named, batches.c.batch_id == batch_id)
    ).scalar()
    if number is not None:
        return int(number)
    newest = select(batches.c.batch_id).where(named).order_by(batches.c.batch_no.desc())
    known = connection.execute(newest.limit(UnknownBatch.SHOWN)).scalars().all()
    raise UnknownBatch(version.key, batch_id, tuple(reversed(known)))


def _write_outcomes(
    ledger: Ledger, version: KnownVersion, batch_no: int | None, file: Path
) -> tuple[Tally, str]:
    tally, tree = Tally(), MerkleAccumulator()
    with (
        ledger.read() as connection,
        contract_writer(OUTCOMES, file) as writer,
    ):
        for shard in outcome_shards(connection, ledger, version, batch_no):
            writer.write(shard)
            tally.add(shard)
            for leaf in leaves_of(shard):
                tree.add(leaf)
    return tally, tree.root()


def _digest_of(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
