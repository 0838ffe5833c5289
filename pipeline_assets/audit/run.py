"""A whole audit: every check over the evidence of one moment, and its row in the ledger.

Belongs here: the order of the checks and what an audit comes to. Does not belong here: any check,
and printing (`cli/audit.py`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import msgspec

from pipeline_assets.audit import archive
from pipeline_assets.audit.artifacts import check_artifacts
from pipeline_assets.audit.corrections import check_corrections
from pipeline_assets.audit.findings import Finding, Findings
from pipeline_assets.audit.journal import HEADS, check_heads, check_journal, heads_of
from pipeline_assets.audit.ledger_rows import check_rows
from pipeline_assets.audit.look import Look, looking
from pipeline_assets.audit.manifests import check_manifests
from pipeline_assets.audit.reports import check_reports
from pipeline_assets.audit.requests import check_requests
from pipeline_assets.audit.result_lines import check_result_lines
from pipeline_assets.audit.three_facts import Fact, check_version, facts_of, open_batches
from pipeline_assets.known_version import known_version
from resources.context import Context
from resources.ledger.audits import EarlierAudit, Scope, heads_digest, newest_audit, store_audit
from resources.ledger.journal import JournalVerdict
from resources.ledger.versions import list_versions

_SEEDS = 2**32


class SampleRefused(ValueError):
    """A share that is none."""

    def __init__(self, percent: float) -> None:
        super().__init__(
            f"--sample {percent:g} is no share; give a percentage from 0 to 100, such as 5. "
            "Nothing was audited."
        )


@dataclass(frozen=True)
class AuditReport:
    """What an audit came to.

    Attributes:
        audit_no: its number.
        key: the version that was audited; None for all.
        sample: percent of the bulky artifacts whose bytes were read.
        facts: the three facts, over what was audited.
        findings: every finding that was kept.
        counts: check → findings, those that were not kept included.
        checked: check → how many things were looked at.
        open: what is not decided yet, a sentence each.
        left_out: what could not be checked, a sentence each.
        chains: hash chains of the journal.
        journal_digest: SHA-256 over their heads.
        seconds: how long it took.
    """

    audit_no: int
    key: str | None
    sample: float
    facts: tuple[Fact, ...]
    findings: tuple[Finding, ...]
    counts: dict[str, int]
    checked: dict[str, int]
    open: tuple[str, ...]
    left_out: tuple[str, ...]
    chains: int
    journal_digest: str
    seconds: float

    @property
    def clean(self) -> bool:
        """Was nothing found?"""
        return not self.counts

    def as_json(self) -> dict[str, Any]:
        """Plain values, without the findings, which stand in lines of their own."""
        return {
            "audit_no": self.audit_no,
            "processing_version": self.key,
            "sample": self.sample,
            "clean": self.clean,
            "findings": sum(self.counts.values()),
            "by_check": self.counts,
            "checked": self.checked,
            "facts": [
                {
                    "fact": fact.name,
                    "holds": fact.holds,
                    "checked": fact.checked,
                    "open": list(fact.open),
                    "findings": len(fact.findings),
                }
                for fact in self.facts
            ],
            "open": list(self.open),
            "left_out": list(self.left_out),
            "chains": self.chains,
            "journal_digest": self.journal_digest,
            "seconds": self.seconds,
        }


def audit(context: Context, key: str | None = None, sample: float = 100) -> AuditReport:
    """Audit a state folder; nothing is mended, nobody is asked, only the audit's row is written.

    Args:
        context: the open resources.
        key: the version to audit; all of them by default. The journal is checked whole either way.
        sample: percent of sources, texts and thumbnails whose bytes are read.

    Raises:
        MalformedVersionKey, VersionNeverUsed: there is no such version here.
        SampleRefused: `sample` is no percentage.
    """
    if not (math.isfinite(sample) and 0 <= sample <= 100):
        raise SampleRefused(sample)
    began = context.clock()
    version = None if key is None else known_version(context, key)
    seed = context.rng.randrange(_SEEDS)
    findings = Findings()
    version_no = None if version is None else version.version_no
    with looking(context, findings, version_no, sample, seed) as look:
        earlier = _earlier(look)
        verdict = _check_all(look, earlier)
        left_out: tuple[str, ...] = ()
        for frozen in list_versions(look.context.ledger):
            if key is None or frozen.key == key:
                left_out += check_version(look, context, frozen)
        undecided = open_batches(look)
    heads = {chain.chain: chain.head for chain in verdict.chains}
    digest = heads_digest(heads)
    number = store_audit(
        context.ledger,
        version_no=version_no,
        scope=Scope(
            version=key,
            sample=sample,
            seed=seed,
            left_out=tuple(findings.left_out),
            heads=_kept_heads(verdict, earlier),
        ),
        checked=sum(findings.checked.values()),
        findings=findings.total,
        journal_digest=digest,
        actor=context.settings.owner,
    )
    return AuditReport(
        audit_no=number,
        key=key,
        sample=sample,
        facts=facts_of(findings, undecided, left_out),
        findings=tuple(findings.all()),
        counts=dict(sorted(findings.counts.items())),
        checked=dict(sorted(findings.checked.items())),
        open=undecided,
        left_out=tuple(findings.left_out),
        chains=len(verdict.chains),
        journal_digest=digest,
        seconds=round((context.clock() - began).total_seconds(), 3),
    )


def _earlier(look: Look) -> EarlierAudit | None:
    try:
        return newest_audit(look.connection)
    except (msgspec.DecodeError, msgspec.ValidationError):
        look.findings.add(
            HEADS, "the audit before this one", "a scope that cannot be read", "what it saw"
        )
        return None


def _check_all(look: Look, earlier: EarlierAudit | None) -> JournalVerdict:
    """Every check that needs no version's own code."""
    progress = look.context.progress
    progress.start("auditing the journal", None)
    verdict = check_journal(look)
    if earlier is not None:
        check_heads(look, verdict, earlier.scope.heads, f"audit {earlier.audit_no}")
    progress.start("auditing rows and files", None)
    check_rows(look)
    check_corrections(look)
    check_manifests(look)
    check_artifacts(look)
    check_requests(look)
    check_result_lines(look)
    archive.check_archive(look)
    check_reports(look, verdict)
    progress.start("auditing answers", None)
    return verdict


def _kept_heads(
    verdict: JournalVerdict, earlier: EarlierAudit | None
) -> dict[str, tuple[int, str]]:
    """The heads that a later audit is held against: of a chain that was cut, the longer one."""
    heads = heads_of(verdict)
    for name, (count, head) in ({} if earlier is None else earlier.scope.heads).items():
        if heads.get(name, (0, ""))[0] < count:
            heads[name] = (count, head)
    return heads
