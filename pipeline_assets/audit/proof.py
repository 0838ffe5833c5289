"""The proof that one outcome is in a kept report, as a page that needs no database.

Belongs here: making such a page from a report, its form, and verifying one. Does not belong here:
the tree (`resources/merkle.py`) and what a leaf says (`account/reconciliation/outcomes.py`).

Whoever has the page and trusts the root (it stands in the closed report, which somebody vouches
for) can check with SHA-256 alone that the outcome was in the report; docs/audit.md tells how.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import msgspec
import polars as pl
from sqlalchemy import Connection

from pipeline_assets.account.documents import find_document
from pipeline_assets.account.reconciliation.outcomes import OUTCOMES, leaves_of
from resources.context import Context
from resources.contracts import read_shards, scan_frame
from resources.ledger.kept_reports import KeptReport, find_report, list_reports
from resources.merkle import MerkleAccumulator, Proof, proof_of, root_by

FORMAT = "tallybook-proof/1"
LARGEST_PAGE = 1 << 20
"""Bytes; a proof has some thousands."""


class NoReportToProve(LookupError):
    """No kept report has the outcomes that a proof is made of."""

    def __init__(self, report_no: int | None) -> None:
        what = "no kept report has" if report_no is None else f"report {report_no} has no"
        super().__init__(
            f"{what} outcomes to prove anything by. Keep one with `tallybook report`, or name "
            "another one with --report."
        )


class NotInReport(LookupError):
    """The outcome is not in the report."""

    def __init__(self, given: str, report_no: int | None, versions: tuple[str, ...] = ()) -> None:
        where = "any kept report" if report_no is None else f"report {report_no}"
        hint = (
            f"it is a document of several records: give one record's id ({', '.join(versions)})"
            if versions
            else "give a record's or a document's id, as `tallybook explain` shows it, or another "
            "report with --report"
        )
        super().__init__(f"{given!r} names no single outcome in {where}: {hint}.")


class ReportNotWhole(Exception):
    """A report's outcomes do not lead to the root that was kept with it."""

    def __init__(self, report_no: int) -> None:
        super().__init__(
            f"the outcomes of report {report_no} do not lead to its root: they were changed after "
            "it was kept, so nothing can be proven by it. `tallybook audit` tells more."
        )


class NoProof(ValueError):
    """A file that holds no proof."""

    def __init__(self, why: str) -> None:
        super().__init__(
            f"this is no proof ({why}); expected a file as `tallybook audit prove --out` writes it."
        )


class ProofPage(msgspec.Struct, frozen=True):
    """A proof with everything that is needed to check it.

    Attributes:
        format: `FORMAT`.
        leaf: the leaf's text; its UTF-8 bytes are hashed.
        outcome: the same as names and values, for people.
        index: number of the leaf, from 0.
        count: leaves of the tree.
        path: hashes to combine with, in hexadecimal, from the leaf to the root.
        root: what they lead to.
        report: which report it is: report_no, processing_version, digest, made_at.
        closing: who vouches for it: digest, closed_by, reason, closed_at; null for an open one.
    """

    format: str
    leaf: str
    outcome: dict[str, Any]
    index: int
    count: int
    path: tuple[str, ...]
    root: str
    report: dict[str, Any]
    closing: dict[str, Any] | None = None


@dataclass(frozen=True)
class Verdict:
    """What a proof comes to.

    Attributes:
        holds: does the leaf lead to the root?
        why: in one sentence.
        page: the proof.
    """

    holds: bool
    why: str
    page: ProofPage


def prove(context: Context, given: str, report_no: int | None = None) -> ProofPage:
    """The proof of one outcome.

    Args:
        context: the open resources.
        given: a record's or document's id, or the end of a document's.
        report_no: the report; by default the newest closed one that has the outcome, else the
            newest kept one.

    Raises:
        NoReportToProve: there is no such report with outcomes.
        NotInReport: it does not have exactly one such outcome.
        ReportNotWhole: its outcomes were changed.
        UnknownDocument, AmbiguousDocument: nothing has this id.
        ArtifactMissing, ArtifactDamaged, ContractRefused: its outcomes cannot be read.
    """
    with context.ledger.read() as connection:
        candidates = _candidates(connection, report_no)
    several: tuple[str, ...] = ()
    for report in candidates:
        context.artifacts.verify("report", str(report.outcomes))
        found = _subjects(context, report, given)
        if len(found) == 1:
            return _page(context, report, found[0])
        several = several or tuple(found)
    raise NotInReport(given, report_no, several[:3])


def verify_page(data: bytes, root: str | None = None) -> Verdict:
    """Check a proof without anything but itself.

    Args:
        data: the file's bytes.
        root: the root that is trusted, such as the one that a closed report tells; by default the
            page's own, which shows only that the page fits together.

    Raises:
        NoProof: it is none.
    """
    page = _decode(data)
    proof = Proof(page.index, page.count, page.path)
    leads_to = root_by(page.leaf.encode(), proof)
    if leads_to is None:
        return Verdict(False, "the path does not fit the leaf's place in the tree", page)
    if page.outcome != _named(page.leaf):
        return Verdict(False, "the outcome that it shows is not what its leaf says", page)
    if leads_to != page.root:
        return Verdict(False, "the leaf does not lead to the root that the page names", page)
    if root is not None and leads_to != root.strip().lower():
        return Verdict(False, "it leads to another root than the one that was given", page)
    told = "the root that was given" if root is not None else "the root that the page names"
    return Verdict(True, f"the outcome leads to {told}", page)


def _candidates(connection: Connection, report_no: int | None) -> list[KeptReport]:
    """Reports to look into, the one to prefer first."""
    if report_no is not None:
        report = find_report(connection, report_no)
        known = [] if report is None else [report]
    else:
        # A whole version's before one batch's: there may be hundreds of those.
        known = sorted(
            list_reports(connection),
            key=lambda each: (each.closed, each.batch_id is None, each.report_no),
            reverse=True,
        )
    found = [report for report in known if report.outcomes is not None]
    if not found:
        raise NoReportToProve(report_no)
    return found


def _subjects(context: Context, report: KeptReport, given: str) -> list[str]:
    """The subjects in a report that are meant: an exact id, else the records of a document."""
    table = scan_frame(OUTCOMES, context.artifacts.require("report", str(report.outcomes)))
    exact = table.filter(pl.col("subject") == given).select("subject").collect()
    if not exact.is_empty():
        return [given]
    named = table.filter(pl.col("document_id") == given).select("subject").collect()["subject"]
    if named.is_empty():
        document = find_document(context, given).document_id
        named = (
            table.filter(pl.col("document_id") == document).select("subject").collect()["subject"]
        )
    return named.to_list()


def _page(context: Context, report: KeptReport, subject: str) -> ProofPage:
    path = context.artifacts.require("report", str(report.outcomes))
    tree, index, leaf, at = MerkleAccumulator(), -1, b"", 0
    for shard in read_shards(OUTCOMES, path):
        for name, each in zip(shard["subject"], leaves_of(shard), strict=True):
            if name == subject:
                index, leaf = at, each
            tree.add(each)
            at += 1
    if tree.root() != report.merkle_root or index < 0:
        raise ReportNotWhole(report.report_no)
    leaves = (each for shard in read_shards(OUTCOMES, path) for each in leaves_of(shard))
    proof = proof_of(leaves, index)
    return ProofPage(
        format=FORMAT,
        leaf=leaf.decode(),
        outcome=_named(leaf.decode()),
        index=proof.index,
        count=proof.count,
        path=proof.path,
        root=tree.root(),
        report={
            "report_no": report.report_no,
            "processing_version": report.key,
            "batch": report.batch_id,
            "digest": report.digest,
            "made_at": report.made_at,
        },
        closing=None
        if not report.closed
        else {
            "digest": report.closed_digest,
            "closed_by": report.closed_by,
            "reason": report.closing_reason,
            "closed_at": report.closed_at,
        },
    )


def _named(leaf: str) -> dict[str, Any]:
    """A leaf as names and values; empty where it is of another contract."""
    try:
        values = json.loads(leaf)
    except ValueError:
        return {}
    names = list(OUTCOMES.schema)
    if not isinstance(values, list) or len(values) != len(names) + 1 or values[0] != OUTCOMES.tag:
        return {}
    return dict(zip(names, values[1:], strict=True))


def _decode(data: bytes) -> ProofPage:
    if len(data) > LARGEST_PAGE:
        raise NoProof(f"{len(data)} bytes are too many")
    try:
        page = msgspec.json.decode(data, type=ProofPage)
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise NoProof(type(error).__name__) from None
    if page.format != FORMAT:
        raise NoProof(f"its format is {page.format[:40]!r}, expected {FORMAT!r}")
    return page
