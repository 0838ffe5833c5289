"""Kept reports: what each says is what its row says, and closed ones stand as they were closed.

Belongs here: a report's digest from its stored JSON, its outcomes against the Merkle root, and the
heads of the journal that it saw. Does not belong here: the files' digests (`artifacts.py`), and
closings against rows and journal (`ledger_rows.py`).
"""

from __future__ import annotations

from typing import Any

import msgspec
import pyarrow as pa
from sqlalchemy import select

from pipeline_assets.account.reconciliation.facts import decode_report
from pipeline_assets.account.reconciliation.outcomes import OUTCOMES, leaves_of
from pipeline_assets.audit.journal import check_heads
from pipeline_assets.audit.look import Look
from resources.artifacts import ArtifactDamaged, ArtifactMissing
from resources.contracts import ContractRefused, read_shards
from resources.ledger.journal import JournalVerdict
from resources.ledger.schema import report_closings, reports
from resources.merkle import MerkleAccumulator

REPORT = "report.content"


class _Head(msgspec.Struct):
    name: str
    moves: int
    head: str


class _Journal(msgspec.Struct):
    heads: list[_Head] = []


class _Told(msgspec.Struct):
    """What a kept report says of the journal; the first releases kept no heads."""

    journal: _Journal = msgspec.field(default_factory=_Journal)


def check_reports(look: Look, verdict: JournalVerdict) -> None:
    """Check every kept report.

    Args:
        look: the evidence.
        verdict: the journal's chains as they are now.
    """
    rows = look.connection.execute(
        select(reports, report_closings.c.closed_at)
        .join(report_closings, report_closings.c.report_no == reports.c.report_no, isouter=True)
        .order_by(reports.c.report_no)
    )
    for row in rows.mappings().all():
        if look.version_no is not None and row["version_no"] != look.version_no:
            continue
        name = f"{'closed ' if row['closed_at'] else ''}report {row['report_no']}"
        _check_json(look, name, row, verdict)
        _check_outcomes(look, name, row)


def _check_json(look: Look, name: str, row: Any, verdict: JournalVerdict) -> None:
    store = look.context.artifacts
    try:
        store.verify("report", row["artifact"])
    except (ArtifactMissing, ArtifactDamaged):
        return  # told with the artifacts
    data = store.path("report", row["artifact"]).read_bytes()
    look.findings.looked(REPORT)
    try:
        told = msgspec.json.decode(data, type=dict[str, Any])
        seen = {
            each.name: (each.moves, each.head)
            for each in msgspec.convert(told, type=_Told).journal.heads
        }
    except (msgspec.DecodeError, msgspec.ValidationError):
        look.findings.add(REPORT, name, "numbers that cannot be read", "a report's JSON")
        return
    if row["outcomes"] is not None:
        _check_digest(look, name, row, data, told)
    check_heads(look, verdict, seen, name)


def _check_digest(look: Look, name: str, row: Any, data: bytes, told: dict[str, Any]) -> None:
    try:
        digest = decode_report(data).content_digest
    except msgspec.ValidationError:
        look.findings.add(REPORT, name, "numbers of another form", "the report that was kept")
        return
    if digest != row["digest"]:
        look.findings.add(
            REPORT,
            name,
            f"numbers with digest {digest[:16]}",
            f"{row['digest'][:16]}, as it was kept",
        )
    outcomes = told.get("outcomes")
    table = outcomes if isinstance(outcomes, dict) else {}
    for column, member in (("outcomes", "artifact"), ("merkle_root", "merkle_root")):
        if table.get(member) != row[column]:
            look.findings.add(
                REPORT,
                name,
                f"{column} {str(row[column])[:16]}",
                f"{str(table.get(member))[:16]}, as its numbers say",
            )


def _check_outcomes(look: Look, name: str, row: Any) -> None:
    """The table leads to the root that proofs lead to."""
    if row["outcomes"] is None:
        return
    store = look.context.artifacts
    tree = MerkleAccumulator()
    try:
        for shard in read_shards(OUTCOMES, store.require("report", row["outcomes"])):
            for leaf in leaves_of(shard):
                tree.add(leaf)
    except ArtifactMissing:
        return
    except (ContractRefused, OSError, pa.ArrowException) as error:
        look.findings.add(
            REPORT, name, f"outcomes: {type(error).__name__}", "its table of outcomes"
        )
        return
    look.findings.looked(REPORT, tree.count)
    if (tree.root(), tree.count) != (row["merkle_root"], row["leaves"]):
        look.findings.add(
            REPORT,
            name,
            f"{tree.count} outcomes with root {tree.root()[:16]}",
            f"{row['leaves']} with root {str(row['merkle_root'])[:16]}, as it was kept",
        )
