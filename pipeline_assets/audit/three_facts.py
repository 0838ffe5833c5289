"""The three facts that the account of a version stands on, proven from stored evidence.

Belongs here: which checks prove which fact. Does not belong here: the checks.

1. Every id of every manifest has exactly one terminal disposition.
2. Every accepted output passes the business schema.
3. Replaying reconciliation and delivery writes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from pipeline_assets.audit import answers, archive, ledger_rows, manifests, redelivery
from pipeline_assets.audit.findings import Finding, Findings
from pipeline_assets.audit.frozen_versions import version_as_frozen
from pipeline_assets.audit.look import Look, looking
from pipeline_assets.known_version import known_version
from resources.context import Context
from resources.ledger.versions import FrozenVersion

ONE_DISPOSITION = "every manifest id has exactly one terminal disposition"
OF_THE_SCHEMA = "every accepted output passes the business schema"
WRITES_NOTHING = "replaying reconciliation and delivery writes nothing"

CHECKS: dict[str, tuple[str, ...]] = {
    ONE_DISPOSITION: (
        manifests.DIGEST,
        manifests.ROWS,
        manifests.SHARES,
        ledger_rows.DISPOSITION,
    ),
    OF_THE_SCHEMA: (answers.SCHEMA, answers.VALUES, archive.CONTENT, archive.FORM),
    WRITES_NOTHING: (answers.AGAIN, answers.ANSWERS, redelivery.REDELIVERY),
}

_UNDECIDED = (
    "SELECT b.batch_id, b.state, b.expected_records FROM batches b "
    "WHERE b.state NOT IN ('completed', 'completed_with_errors', 'retry_required', 'cancelled') "
    "AND "
)


@dataclass(frozen=True)
class Fact:
    """One of the three.

    Attributes:
        name: what it says.
        checked: how many things were looked at.
        open: what is not decided yet, or could not be looked at, a sentence each.
        findings: what speaks against it.
    """

    name: str
    checked: int
    open: tuple[str, ...]
    findings: tuple[Finding, ...]

    @property
    def holds(self) -> bool:
        """Is it proven?"""
        return not self.findings and not self.open

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "fact": self.name,
            "holds": self.holds,
            "checked": self.checked,
            "open": list(self.open),
            "findings": [finding.as_json() for finding in self.findings],
        }


@dataclass(frozen=True)
class ThreeFacts:
    """The three facts of a version."""

    key: str
    facts: tuple[Fact, ...]

    @property
    def holds(self) -> bool:
        """Are all three proven?"""
        return all(fact.holds for fact in self.facts)

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "processing_version": self.key,
            "holds": self.holds,
            "facts": [fact.as_json() for fact in self.facts],
        }


def prove_three_facts(context: Context, key: str) -> ThreeFacts:
    """Prove the three facts of a version; writes nothing and asks nobody.

    Raises:
        MalformedVersionKey, VersionNeverUsed: there is no such version here.
    """
    version = known_version(context, key)
    frozen = FrozenVersion(
        version.version_no,
        version.key,
        version.workload,
        version.digest,
        version.state,
        version.state_reason,
    )
    findings = Findings()
    with looking(context, findings, version.version_no, 100, 0) as look:
        manifests.check_manifests(look)
        ledger_rows.check_rows(look)
        archive.check_archive(look)
        judged_again = check_version(look, context, frozen)
        undecided = open_batches(look)
    return ThreeFacts(key, facts_of(findings, undecided, judged_again))


def check_version(look: Look, context: Context, frozen: FrozenVersion) -> tuple[str, ...]:
    """The checks that need a version's own code and files; returns what they leave out."""
    version = version_as_frozen(look.context, frozen)
    if isinstance(version, str):
        left_out = f"the answers of version {frozen.key}: {version}"
        look.findings.leave_out(left_out)
        return (left_out,)
    if answers.check_answers(look, version):
        redelivery.check_redelivery(look, context, version)
    return ()


def open_batches(look: Look) -> tuple[str, ...]:
    """Batches whose records have no disposition yet, a sentence each."""
    found = look.rows(
        _UNDECIDED + look.of_version("b.version_no") + " ORDER BY b.batch_no",
        {"batch_id": pl.String, "state": pl.String, "expected": pl.Int64},
    )
    return tuple(
        f"batch {batch_id} is {state}: {expected} records have no disposition yet"
        for batch_id, state, expected in found.iter_rows()
    )


def facts_of(
    findings: Findings, undecided: tuple[str, ...], left_out: tuple[str, ...]
) -> tuple[Fact, ...]:
    """The facts, by what was found.

    Args:
        findings: of all checks.
        undecided: what has no disposition yet.
        left_out: what could not be judged again.
    """
    return tuple(
        Fact(
            name=name,
            checked=sum(findings.checked[check] for check in checks),
            open=undecided if name == ONE_DISPOSITION else left_out,
            findings=tuple(findings.of(checks)),
        )
        for name, checks in CHECKS.items()
    )
