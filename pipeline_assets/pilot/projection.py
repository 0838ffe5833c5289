"""From a stratified sample to the whole archive, with the interval that it lies in. Pure.

Belongs here: the two estimators. Does not belong here: what is counted (`facts.py`) and what the
figures are used for (`report.py`).

Documents that something holds of (accepted, to be reviewed) are counted with the stratified rate
and Wilson's interval of `quality/interval.py`. Amounts (money, seconds, bytes) are the stratified
total: the sum over strata of documents times the sample's mean. Its variance is the sum of
N²·(1 - n/N)·s²/n, with s² the stratum's own sample variance; the interval is 1.96 of its roots to
either side, never below what the sample alone came to. A stratum of which one document was taken
has no variance of its own: that of all sampled documents stands for it. See Cochran, Sampling
Techniques, 3rd edition, chapter 5.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist, variance

from pipeline_assets.quality.interval import CONFIDENCE, Stratum, estimate_all

_Z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)


@dataclass(frozen=True)
class Range:
    """An estimate and its 95 % interval."""

    value: float
    low: float
    high: float

    def times(self, factor: float) -> Range:
        """The same in another unit, or for each of so many."""
        return Range(self.value * factor, self.low * factor, self.high * factor)

    def plus(self, other: Range) -> Range:
        """Both together; ends are added up, so the interval is rather too wide than too narrow."""
        return Range(self.value + other.value, self.low + other.low, self.high + other.high)


def exactly(value: float) -> Range:
    """A figure that is known."""
    return Range(value, value, value)


def share_of(populations: Mapping[str, int], holds: Mapping[str, Sequence[bool]]) -> Range | None:
    """The share of all documents that something holds of; None where nothing was sampled.

    Args:
        populations: stratum → documents.
        holds: stratum → does it hold, for each sampled document.
    """
    found = estimate_all(
        [
            Stratum(documents, len(holds.get(name, ())), sum(holds.get(name, ())))
            for name, documents in populations.items()
        ]
    )
    return None if found is None else Range(found.rate, found.low, found.high)


def count_of(populations: Mapping[str, int], holds: Mapping[str, Sequence[bool]]) -> Range | None:
    """The number of all documents that something holds of."""
    share = share_of(populations, holds)
    return None if share is None else share.times(sum(populations.values()))


def total_of(
    populations: Mapping[str, int], values: Mapping[str, Sequence[float | None]]
) -> Range | None:
    """The total of an amount over all documents.

    Args:
        populations: stratum → documents.
        values: stratum → the amount, for each sampled document; None where it is not known.

    Returns:
        None where a value is not known, or a stratum was not sampled: what is not known is not
        taken for nothing.
    """
    known = {name: _all_known(values.get(name, ())) for name in populations}
    if not known or any(part is None for part in known.values()):
        return None
    every = [value for part in known.values() for value in part or ()]
    pooled = variance(every) if len(every) > 1 else 0.0
    total = spread = 0.0
    for name, part in known.items():
        sampled = part or []
        size, taken = max(populations[name], len(sampled)), len(sampled)
        total += size * math.fsum(sampled) / taken
        own = variance(sampled) if taken > 1 else pooled
        spread += size * size * (1 - taken / size) * own / taken
    half = _Z * math.sqrt(spread)
    return Range(total, max(math.fsum(every), total - half), total + half)


def _all_known(values: Sequence[float | None]) -> list[float] | None:
    known = [value for value in values if value is not None]
    return known if known and len(known) == len(values) else None
