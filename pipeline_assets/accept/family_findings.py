"""How many judged records the rules of each family doubted.

Belongs here: the counts and when they are too many. Does not belong here: reporting them
(`checks.py`) and the rules (`workloads`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

import polars as pl
from sqlalchemy import Connection

from pipeline_assets.quality.interval import wilson
from pipeline_assets.workloads.workload import Acceptance, Family
from resources.ledger.engine import Ledger

FAMILIES: tuple[str, ...] = get_args(Family)
DOUBTED_AT_MOST = 0.2
"""Share of the judged records that one family may doubt. Where it doubts more, even at the low end
of the interval, something is wrong with the prompt, the model or the parser, and not with
documents one by one."""
_COUNTS = {"family": pl.String, "findings": pl.Int64, "records": pl.Int64, "doubted": pl.Int64}


@dataclass(frozen=True)
class FamilyFindings:
    """What the rules of a family found in a version.

    Attributes:
        family: its name.
        rules: the version's rules of the family.
        judged: records that have a judgement.
        findings: findings of the family.
        records: records with such a finding.
        doubted: those of them that it sent to a person or back to the provider.
    """

    family: str
    rules: tuple[str, ...]
    judged: int
    findings: int = 0
    records: int = 0
    doubted: int = 0

    @property
    def share(self) -> float:
        """Of the judged records, those with a finding; 0 where nothing was judged."""
        return self.records / self.judged if self.judged else 0.0

    @property
    def doubted_share(self) -> float:
        """Of the judged records, those that are doubted; 0 where nothing was judged."""
        return self.doubted / self.judged if self.judged else 0.0

    @property
    def too_many(self) -> bool:
        """Are more doubted than can be chance? A few records never say so."""
        return self.judged > 0 and wilson(self.doubted_share, self.judged).low > DOUBTED_AT_MOST


def rules_by_family(acceptance: Acceptance) -> dict[str, tuple[str, ...]]:
    """Family → ids of its rules; every family is there."""
    rules = (*acceptance.rules, *acceptance.batch_rules)
    return {
        family: tuple(rule.id for rule in rules if rule.family == family) for family in FAMILIES
    }


def family_findings(
    connection: Connection,
    ledger: Ledger,
    version_no: int,
    families: Mapping[str, Sequence[str]],
) -> tuple[FamilyFindings, ...]:
    """What each family found in a version, in the order of `families`.

    Args:
        connection: a transaction.
        ledger: the ledger.
        version_no: the version.
        families: family → ids of its rules.
    """
    judged = ledger.dialect.fetch(
        connection,
        "SELECT COUNT(DISTINCT j.record_no) FROM batches b JOIN judgements j "
        "ON j.attempt_no BETWEEN b.first_attempt_no AND b.last_attempt_no WHERE b.version_no = ?",
        {"judged": pl.Int64},
        (version_no,),
    ).item()
    named = [(rule, family) for family, rules in families.items() for rule in rules]
    counts = pl.DataFrame(schema=_COUNTS)
    if named:
        whens = " ".join("WHEN ? THEN ?" for _ in named)
        counts = ledger.dialect.fetch(
            connection,
            "SELECT n.family, COUNT(*), COUNT(DISTINCT n.record_no), COUNT(DISTINCT CASE "  # noqa: S608
            "WHEN n.severity <> 'note' THEN n.record_no END) FROM (SELECT f.record_no, "
            f"f.severity, CASE f.rule {whens} END AS family FROM records r "
            "JOIN findings f ON f.record_no = r.record_no WHERE r.version_no = ?) n "
            "WHERE n.family IS NOT NULL GROUP BY n.family",
            _COUNTS,
            (*(word for pair in named for word in pair), version_no),
        )
    by_family = {row["family"]: row for row in counts.iter_rows(named=True)}
    return tuple(
        FamilyFindings(
            family,
            tuple(rules),
            judged,
            **{
                name: by_family[family][name] if family in by_family else 0
                for name in ("findings", "records", "doubted")
            },
        )
        for family, rules in families.items()
    )
