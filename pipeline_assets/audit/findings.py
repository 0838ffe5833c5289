"""What an audit finds, and what it counts while it looks.

Belongs here: one finding, and the collection that all checks write into. Does not belong here: any
check, and how findings are printed (`cli/audit.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

KEPT = 10_000
"""Findings of one check that are kept; more of them are only counted, so that memory is bounded."""


@dataclass(frozen=True)
class Finding:
    """One thing that is not what the evidence says it must be.

    Attributes:
        check: which check found it.
        subject: the row or file, by name.
        found: what is there.
        expected: what should be.
    """

    check: str
    subject: str
    found: str
    expected: str

    def as_json(self) -> dict[str, Any]:
        """The finding as plain values."""
        return {
            "check": self.check,
            "subject": self.subject,
            "found": self.found,
            "expected": self.expected,
        }


class Findings:
    """Collects what checks find, and how many things they looked at."""

    def __init__(self) -> None:
        self._kept: dict[str, list[Finding]] = {}
        self._seen: set[Finding] = set()
        self.counts: Counter[str] = Counter()
        self.checked: Counter[str] = Counter()
        self.left_out: list[str] = []

    def looked(self, check: str, count: int = 1) -> None:
        """A check looked at so many things."""
        self.checked[check] += count

    def add(self, check: str, subject: str, found: str, expected: str) -> None:
        """A check found something; the same thing told twice counts once."""
        finding = Finding(check, subject, found, expected)
        if finding in self._seen:
            return
        self.counts[check] += 1
        kept = self._kept.setdefault(check, [])
        if len(kept) < KEPT:
            kept.append(finding)
            self._seen.add(finding)

    def take(self, others: Findings) -> None:
        """Add what was found elsewhere."""
        self.checked.update(others.checked)
        for finding in others.all():
            self.add(finding.check, finding.subject, finding.found, finding.expected)
        for check, count in others.counts.items():
            self.counts[check] += count - len(others.of([check]))

    def leave_out(self, why: str) -> None:
        """Something could not be checked; said once."""
        if why not in self.left_out:
            self.left_out.append(why)

    @property
    def total(self) -> int:
        """How many findings there are, those that were not kept included."""
        return sum(self.counts.values())

    def all(self) -> list[Finding]:
        """The findings that were kept, by check, in the order that they were found."""
        return [finding for check in sorted(self._kept) for finding in self._kept[check]]

    def of(self, checks: Iterable[str]) -> list[Finding]:
        """The findings that were kept of some checks."""
        wanted = set(checks)
        return [finding for finding in self.all() if finding.check in wanted]
