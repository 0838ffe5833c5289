"""A whole audit: every check over the evidence of one moment, and its row in the ledger.

Belongs here: the order of the checks and what an audit comes to. Does not belong here: any check,
and printing (`cli/audit.py`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec
from sqlalchemy import Connection

from pipeline_assets.audit import archive
from pipeline_assets.audit.artifacts import check_artifacts
from pipeline_assets.audit.corrections import check_corrections
from pipeline_assets.audit.findings import Finding, Findings
from pipeline_assets.audit.journal import (
    HEADS,
    check_heads,
    check_journal,
    head_then,
    heads_of,
)
from pipeline_assets.audit.ledger_rows import check_rows
from pipeline_assets.audit.look import Look, looking, removals
from pipeline_assets.audit.manifests import check_manifests
from pipeline_assets.audit.reports import check_reports
from pipeline_assets.audit.requests import check_requests
from pipeline_assets.audit.result_lines import check_result_lines
from pipeline_assets.audit.three_facts import Fact, check_version, facts_of, open_batches
from pipeline_assets.audit.trails import Trail, check_trails, read_trails, seen_now
from pipeline_assets.known_version import known_version
from resources.context import Context
from resources.ledger.audits import (
    HEAD_DIGITS,
    EarlierAudit,
    Scope,
    audit_with_digest,
    heads_digest,
    newest_audit,
    store_audit,
)
from resources.ledger.journal import JournalVerdict
from resources.ledger.versions import list_versions

_SEEDS = 2**32
_AGAIN = 2
"""How often an audit looks again, where something was removed while it looked."""
_DIGEST = re.compile("[0-9a-f]{64}")


class SampleRefused(ValueError):
    """A share that is none."""

    def __init__(self, percent: float) -> None:
        super().__init__(
            f"--sample {percent:g} is no share; give a percentage from 0 to 100, such as 5. "
            "Nothing was audited."
        )


class NoSuchDigest(ValueError):
    """What is to be held against is no digest."""

    def __init__(self, given: str) -> None:
        super().__init__(
            f"--since {given[:80]!r} is no digest; give the 64 hexadecimal digits that an earlier "
            "audit printed last. Nothing was audited."
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
        journal_digest: SHA-256 over their heads, and over rows that only grow.
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


def audit(
    context: Context, key: str | None = None, sample: float = 100, since: str | None = None
) -> AuditReport:
    """Audit a state folder; nothing is mended, nobody is asked, only the audit's row is written.

    An erasure or a pruning that goes on meanwhile changes files under the audit, so that what it
    finds may be of its own making: it looks once more then.

    Args:
        context: the open resources.
        key: the version to audit; all of them by default. The journal is checked whole either way.
        sample: percent of sources, texts and thumbnails whose bytes are read.
        since: the digest that an earlier audit ended with, to be held against.

    Raises:
        MalformedVersionKey, VersionNeverUsed: there is no such version here.
        SampleRefused: `sample` is no percentage.
        NoSuchDigest: `since` is no digest.
    """
    if not (math.isfinite(sample) and 0 <= sample <= 100):
        raise SampleRefused(sample)
    if since is not None:
        since = since.strip().lower()
        if not _DIGEST.fullmatch(since):
            raise NoSuchDigest(since)
    began = context.clock()
    version = None if key is None else known_version(context, key)
    wanted = _Wanted(
        None if version is None else version.version_no,
        key,
        sample,
        context.rng.randrange(_SEEDS),
        since,
    )
    seen = _look(context, wanted)
    for _ in range(_AGAIN):
        if not (seen.findings.total and seen.removals != _removals_now(context)):
            break
        seen = _look(context, wanted)
    findings, verdict = seen.findings, seen.verdict
    heads = {chain.chain: chain.head for chain in verdict.chains}
    digest = heads_digest(heads | {name: trail.digest for name, trail in seen.trails.items()})
    before = None if seen.earlier is None else seen.earlier.scope
    number = store_audit(
        context.ledger,
        version_no=wanted.version_no,
        scope=Scope(
            version=key,
            sample=sample,
            seed=wanted.seed,
            left_out=tuple(findings.left_out),
            heads=_longest(heads_of(verdict), {} if before is None else before.heads),
            trails=_longest(seen_now(seen.trails), {} if before is None else before.trails),
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
        facts=facts_of(findings, seen.undecided, seen.left_out),
        findings=tuple(findings.all()),
        counts=dict(sorted(findings.counts.items())),
        checked=dict(sorted(findings.checked.items())),
        open=seen.undecided,
        left_out=tuple(findings.left_out),
        chains=len(verdict.chains),
        journal_digest=digest,
        seconds=round((context.clock() - began).total_seconds(), 3),
    )


@dataclass(frozen=True)
class _Wanted:
    """What is audited; see `audit`."""

    version_no: int | None
    key: str | None
    sample: float
    seed: int
    since: str | None


@dataclass(frozen=True)
class _Seen:
    """What one look at everything came to.

    Attributes:
        findings: what was found.
        verdict: the journal's chains.
        trails: rows that only grow.
        earlier: the audit before.
        undecided: what has no disposition yet.
        left_out: versions that could not be judged again.
        removals: erasures and prunings that had been made when the look began.
    """

    findings: Findings
    verdict: JournalVerdict
    trails: dict[str, Trail]
    earlier: EarlierAudit | None
    undecided: tuple[str, ...]
    left_out: tuple[str, ...]
    removals: tuple[int, ...]


def _look(context: Context, wanted: _Wanted) -> _Seen:
    findings = Findings()
    with looking(context, findings, wanted.version_no, wanted.sample, wanted.seed) as look:
        earlier = _read(look, "the audit before this one", newest_audit)
        verdict, trails = _check_all(look, earlier, wanted.since)
        left_out: tuple[str, ...] = ()
        for frozen in list_versions(look.context.ledger):
            if wanted.key is None or frozen.key == wanted.key:
                left_out += check_version(look, context, frozen)
        return _Seen(
            findings,
            verdict,
            trails,
            earlier,
            open_batches(look),
            left_out,
            removals(look.connection),
        )


def _removals_now(context: Context) -> tuple[int, ...]:
    with context.ledger.read() as connection:
        return removals(connection)


def _read(
    look: Look, what: str, read: Callable[[Connection], EarlierAudit | None]
) -> EarlierAudit | None:
    try:
        return read(look.connection)
    except (msgspec.DecodeError, msgspec.ValidationError):
        look.findings.add(HEADS, what, "a scope that cannot be read", "what it saw")
        return None


def _check_all(
    look: Look, earlier: EarlierAudit | None, since: str | None
) -> tuple[JournalVerdict, dict[str, Trail]]:
    """Every check that needs no version's own code."""
    progress = look.context.progress
    progress.start("auditing the journal", None)
    verdict = check_journal(look)
    trails = _check_grown(look, verdict, earlier, since)
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
    return verdict, trails


def _check_grown(
    look: Look, verdict: JournalVerdict, earlier: EarlierAudit | None, since: str | None
) -> dict[str, Trail]:
    """What was seen earlier is there still: by the audit before, and by the one that is named."""
    told = None if since is None else f"the audit that ended with {since[:HEAD_DIGITS]}"
    named = None
    if since is not None and told is not None:
        named = _read(look, told, partial(audit_with_digest, digest=since))
        if named is None:
            look.findings.add(HEADS, told, "no such audit on record", "its row, with what it saw")
    known = [each for each in (earlier, named) if each is not None]
    trails = read_trails(look, [each.scope.trails for each in known])
    for each in known:
        check_heads(look, verdict, each.scope.heads, f"audit {each.audit_no}")
        check_trails(look, trails, each.scope.trails, f"audit {each.audit_no}")
    if named is not None and _digest_then(look, trails, named.scope) != since:
        look.findings.add(
            HEADS,
            f"audit {named.audit_no}",
            "heads that do not have this digest now",
            f"those that it ended with, {named.journal_digest[:HEAD_DIGITS]}",
        )
    return trails


def _digest_then(look: Look, trails: dict[str, Trail], scope: Scope) -> str:
    """The digest over the heads as they were at an earlier audit, by what is stored now."""
    heads = {
        name: head_then(look, name, count) or "" for name, (count, _) in scope.heads.items()
    } | {
        name: trails[name].at.get(count, "") if name in trails else ""
        for name, (count, _) in scope.trails.items()
    }
    return heads_digest(heads)


def _longest(
    now: dict[str, tuple[int, str]], before: dict[str, tuple[int, str]]
) -> dict[str, tuple[int, str]]:
    """What a later audit is held against: of what was cut, the longer one."""
    kept = dict(now)
    for name, (count, head) in before.items():
        if kept.get(name, (0, ""))[0] < count:
            kept[name] = (count, head)
    return kept
