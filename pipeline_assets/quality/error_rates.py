"""How often the rules accepted what is wrong, as far as reviewers looked.

Belongs here: putting decisions, slices and intervals together. Does not belong here: the
formulas (`interval.py`) and the decisions (`review`).

An error is a sampled answer that a reviewer corrected or rejected. What nobody decided is told
and never counts as right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import polars as pl
from sqlalchemy import Connection

from pipeline_assets.quality.interval import CONFIDENCE, Stratum, estimate, estimate_all
from resources.context import Context
from resources.contracts import STAGING, scan_frame
from resources.ledger.engine import Ledger
from resources.ledger.quality_samples import (
    corrections_of_samples,
    decisions_of_samples,
    newest_sample,
    slices_of_sample,
    staged_artifacts,
)

_EVIDENCE = "evidence"
_DIGITS = 6


@dataclass(frozen=True)
class SliceRate:
    """A slice of a version's samples.

    Attributes:
        slice: its name.
        population: records of it that the rules had accepted at the newest draw.
        drawn: answers of it that were drawn, in all samples.
        waiting: of these, not decided yet.
        right: a reviewer left them as they are.
        corrected: a reviewer changed them.
        rejected: a reviewer took them out.
        rate: errors among the decided ones, 0 to 1; None where nothing is decided.
        low: of its interval.
        high: of its interval.
    """

    slice: str
    population: int
    drawn: int
    waiting: int
    right: int
    corrected: int
    rejected: int
    rate: float | None
    low: float | None
    high: float | None

    @property
    def decided(self) -> int:
        """How many were decided."""
        return self.right + self.errors

    @property
    def errors(self) -> int:
        """How many were wrong."""
        return self.corrected + self.rejected


@dataclass(frozen=True)
class ErrorRates:
    """The error rate of a version, as far as reviewers looked.

    Attributes:
        drawn_at: when the newest sample was drawn, UTC.
        confidence: of the intervals.
        population: records that the rules had accepted then.
        looked_at: those in slices of which something was decided; the rate is theirs.
        drawn: sampled answers.
        waiting: of these, not decided yet.
        right: a reviewer left them as they are.
        corrected: a reviewer changed them.
        rejected: a reviewer took them out.
        rate: of these slices, each weighing as many records as it has; None before any decision.
        low: of its interval, which the slices without a decision make wider.
        high: of its interval.
        by_slice: by name.
    """

    drawn_at: str
    confidence: float
    population: int
    looked_at: int
    drawn: int
    waiting: int
    right: int
    corrected: int
    rejected: int
    rate: float | None
    low: float | None
    high: float | None
    by_slice: tuple[SliceRate, ...]

    @property
    def decided(self) -> int:
        """How many were decided."""
        return self.right + self.errors

    @property
    def errors(self) -> int:
        """How many were wrong."""
        return self.corrected + self.rejected

    def as_json(self) -> dict[str, Any]:
        """The rates as plain JSON values."""
        return {
            **msgspec.to_builtins(self),
            "decided": self.decided,
            "errors": self.errors,
            "by_slice": [
                {**msgspec.to_builtins(entry), "decided": entry.decided, "errors": entry.errors}
                for entry in self.by_slice
            ],
        }


@dataclass(frozen=True)
class SampleSummary:
    """The samples of a version in a few numbers.

    Attributes:
        drawn: sampled answers.
        waiting: of these, not decided yet.
        decided: of these, decided.
        errors: of the decided ones, wrong.
        rate: the error rate, slices weighing as many records as they have; None before any
            decision.
        low: of its 95 % interval.
        high: of its 95 % interval.
    """

    drawn: int
    waiting: int
    decided: int
    errors: int
    rate: float | None
    low: float | None
    high: float | None


def sample_summary(connection: Connection, ledger: Ledger, version_no: int) -> SampleSummary | None:
    """The samples of a version; None where none was drawn."""
    rates = error_rates(connection, ledger, version_no)
    if rates is None:
        return None
    return SampleSummary(
        rates.drawn, rates.waiting, rates.decided, rates.errors, rates.rate, rates.low, rates.high
    )


def error_rates(connection: Connection, ledger: Ledger, version_no: int) -> ErrorRates | None:
    """The error rates of a version; None where no sample was drawn.

    Slices weigh what they held at the newest draw: that is what the samples stand for.
    """
    newest = newest_sample(connection, version_no)
    if newest is None:
        return None
    populations = dict(
        slices_of_sample(connection, ledger, newest.sample_no)
        .select("slice", "population")
        .iter_rows()
    )
    decisions: dict[str, Counter[str]] = {name: Counter() for name in populations}
    for name, decision, count in decisions_of_samples(connection, ledger, version_no).iter_rows():
        decisions.setdefault(name, Counter())[decision or ""] += count
    return summarise(newest.drawn_at, populations, decisions)


def summarise(
    drawn_at: str, populations: Mapping[str, int], decisions: Mapping[str, Mapping[str, int]]
) -> ErrorRates:
    """Rates of counts.

    Args:
        drawn_at: when the newest sample was drawn.
        populations: slice → records.
        decisions: slice → decision → sampled answers; the empty text where nobody decided.
    """
    found = tuple(
        _slice_rate(name, populations.get(name, 0), decisions[name]) for name in sorted(decisions)
    )
    whole = estimate_all([_stratum(entry) for entry in found])
    return ErrorRates(
        drawn_at=drawn_at,
        confidence=CONFIDENCE,
        population=sum(entry.population for entry in found),
        looked_at=sum(entry.population for entry in found if entry.decided),
        drawn=sum(entry.drawn for entry in found),
        waiting=sum(entry.waiting for entry in found),
        right=sum(entry.right for entry in found),
        corrected=sum(entry.corrected for entry in found),
        rejected=sum(entry.rejected for entry in found),
        rate=None if whole is None else round(whole.rate, _DIGITS),
        low=None if whole is None else round(whole.low, _DIGITS),
        high=None if whole is None else round(whole.high, _DIGITS),
        by_slice=found,
    )


def _slice_rate(name: str, population: int, decisions: Mapping[str, int]) -> SliceRate:
    right, corrected, rejected, waiting = (
        decisions.get(word, 0) for word in ("accept", "correct", "reject", "")
    )
    errors = corrected + rejected
    found = estimate(Stratum(population, right + errors, errors))
    return SliceRate(
        slice=name,
        population=population,
        drawn=waiting + right + errors,
        waiting=waiting,
        right=right,
        corrected=corrected,
        rejected=rejected,
        rate=None if found is None else round(found.rate, _DIGITS),
        low=None if found is None else round(found.low, _DIGITS),
        high=None if found is None else round(found.high, _DIGITS),
    )


def _stratum(entry: SliceRate) -> Stratum:
    return Stratum(entry.population, entry.decided, entry.errors)


def corrected_fields(context: Context, version_no: int) -> dict[str, int]:
    """Field → sampled answers whose correction changed it; a rejected answer names no field.

    Raises:
        ArtifactMissing: the judged values of a corrected answer are gone.
        ContractRefused: they lie in a file of another contract.
    """
    ledger = context.ledger
    with ledger.read() as connection:
        corrections = corrections_of_samples(connection, ledger, version_no)
        artifacts = staged_artifacts(connection, ledger, version_no)
    found: Counter[str] = Counter()
    if corrections.is_empty():
        return {}
    held = artifacts.filter(
        (pl.col("late") == 1) | pl.col("batch_no").is_in(corrections["batch_no"].implode())
    )
    for artifact in held["staging_artifact"]:
        path = context.artifacts.require("frame", artifact)
        before = (
            scan_frame(STAGING, path)
            .select("attempt_no", "content")
            .join(corrections.lazy(), on="attempt_no")
            .collect()
        )
        for content, corrected in before.select("content", "corrected_content").iter_rows():
            found.update(changed_fields(content, corrected))
    return dict(sorted(found.items()))


def changed_fields(before: str, after: str) -> list[str]:
    """The fields of two contents (JSON objects) that differ in more than their evidence."""
    old, new = (_without_evidence(msgspec.json.decode(text)) for text in (before, after))
    return sorted(name for name in {*old, *new} if old.get(name) != new.get(name))


def _without_evidence(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: _without_evidence(inner) for name, inner in value.items() if name != _EVIDENCE
        }
    if isinstance(value, list):
        return [_without_evidence(inner) for inner in value]
    return value
