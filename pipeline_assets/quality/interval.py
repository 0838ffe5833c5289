"""How far a rate that was measured on a sample may be from that of everything. Pure.

Belongs here: the interval of one slice and of all slices together. Does not belong here: what is
counted (`error_rates.py`).

The interval is Wilson's, at 95 %. It is right on average for small samples, has a width where no
error was found (0 of 20 may still be 16 %), stays between 0 and 1, and takes a sample size that
is no whole number, so that the same formula serves the weighted rate. An exact interval
(Clopper-Pearson) would never fall short, but is wider than its promise, and a weighted rate has
no exact one. See Brown, Cai and DasGupta, Statistical Science 16 (2001), 101-133.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

CONFIDENCE = 0.95
_Z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)


@dataclass(frozen=True)
class Estimate:
    """A rate and the interval that it lies in, from 0 to 1."""

    rate: float
    low: float
    high: float


@dataclass(frozen=True)
class Stratum:
    """A slice that was sampled.

    Attributes:
        population: how many records it has.
        decided: how many of them were looked at.
        errors: how many of those were wrong.
    """

    population: int
    decided: int
    errors: int


def wilson(rate: float, size: float) -> Estimate:
    """Wilson's interval of a rate seen in a sample of `size`; an infinite size leaves no doubt.

    Raises:
        ValueError: no rate, or no sample.
    """
    if not (0 <= rate <= 1 and size > 0):
        raise ValueError(f"found a rate of {rate} in {size}; expected 0 to 1 of more than nothing")
    if math.isinf(size):
        return Estimate(rate, rate, rate)
    square = _Z * _Z / size
    middle = (rate + square / 2) / (1 + square)
    half = math.sqrt(rate * (1 - rate) * square + square * square / 4) / (1 + square)
    # The bound at a rate of 0 or 1 is that rate; rounding may miss it by a hair.
    low = 0.0 if rate == 0 else max(0.0, middle - half)
    high = 1.0 if rate == 1 else min(1.0, middle + half)
    return Estimate(rate, low, high)


def estimate(stratum: Stratum) -> Estimate | None:
    """The rate of one slice; None where nothing was looked at."""
    if not stratum.decided:
        return None
    return wilson(stratum.errors / stratum.decided, _size(stratum))


def estimate_all(strata: Sequence[Stratum]) -> Estimate | None:
    """The rate of all slices together, each weighing as many records as it has.

    The stratified estimator: the sum of W·e/n, where W is a slice's share of the records. Small
    slices are sampled more densely than large ones, so that adding up errors would tell the rate
    of the sample. Its interval is Wilson's for the size that a simple sample of the same precision
    would have: the smaller of 1 / Σ(W²/n), which needs no rate (Kish), and p(1-p) / Σ(W²·p(1-p)/n),
    where the slices' own rates say that it is less.

    A slice that nobody looked at may be all right or all wrong: the interval is as much wider as
    it has records. The rate is that of the others.

    Returns:
        None where nothing was looked at.
    """
    looked_at = [stratum for stratum in strata if stratum.decided]
    if not looked_at:
        return None
    seen = sum(max(stratum.population, stratum.decided) for stratum in looked_at)
    rate = spread = variance = 0.0
    for stratum in looked_at:
        weight = max(stratum.population, stratum.decided) / seen
        own = stratum.errors / stratum.decided
        size = _size(stratum)
        rate += weight * own
        spread += weight * weight / size
        variance += weight * weight * own * (1 - own) / size
    rate = min(rate, 1.0)
    sizes = [1 / spread if spread else math.inf]
    if variance:
        sizes.append(rate * (1 - rate) / variance)
    found = wilson(rate, min(sizes))
    share = seen / (seen + sum(stratum.population for stratum in strata if not stratum.decided))
    return Estimate(rate, found.low * share, found.high * share + (1 - share))


def _size(stratum: Stratum) -> float:
    """The sample's size, grown as it nears the whole slice: a slice that was seen whole is known.

    n(N-1)/(N-n), from the variance of draws without replacement.
    """
    rest = stratum.population - stratum.decided
    if rest <= 0:
        return math.inf
    return stratum.decided * (stratum.population - 1) / rest
