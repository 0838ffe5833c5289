"""Cutting a list of request lines into jobs that a provider takes.

Belongs here: the arithmetic of limits and of a tail that is too small. Does not belong here: the
limits themselves (`capabilities.yaml`) and what becomes of records that fit no job (`prepare`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

TailPolicy = Literal["merge", "online", "refuse"]
"""What becomes of records too few for a job: shared out with the jobs before, answered online, or
refused. `online` and `refuse` cut alike; the caller does the one or the other."""


class RecordTooLarge(ValueError):
    """One record that is above the limit of a whole job.

    Attributes:
        index: which one, from 0.
    """

    def __init__(self, index: int, what: str, found: int, allowed: int) -> None:
        self.index = index
        super().__init__(
            f"record {index} alone has {found} {what}, a whole job may have {allowed}. Send less "
            "of the document, or exclude it with that reason."
        )


@dataclass(frozen=True)
class Split:
    """Records, by position, cut into jobs.

    Attributes:
        slices: the jobs: each within all limits, and no smaller than the minimum.
        too_small: the records at the end that fit no job, or None.
    """

    slices: list[range]
    too_small: range | None


@dataclass(frozen=True)
class _Limits:
    """Running totals, so that the end of a job is found by bisection."""

    count: int
    records: int
    totals: tuple[tuple[list[int], int], ...]

    def end(self, start: int) -> int:
        """The farthest end of a job that starts here."""
        farthest = min(self.count, start + self.records)
        for running, most in self.totals:
            farthest = min(farthest, bisect_right(running, running[start] + most) - 1)
        return farthest


def split_sizes(
    lengths: Sequence[int],
    tokens: Sequence[int],
    *,
    max_records: int | None = None,
    max_bytes: int | None = None,
    max_tokens: int | None = None,
    min_records: int | None = None,
    tail: TailPolicy = "merge",
) -> Split:
    """Cut records into contiguous jobs, each as full as the limits let it be.

    `merge` moves the last cuts so that every job reaches the minimum, wherever any cut does that.
    Where none does, and under the other policies, the records from the first job below the
    minimum on are `too_small`.

    Args:
        lengths: bytes of each request line, its newline included.
        tokens: tokens of each, as estimated.
        max_records: of one job; None for no limit, here and below.
        max_bytes: of one job's file.
        max_tokens: of one job.
        min_records: of one job.
        tail: what becomes of too few records.

    Raises:
        RecordTooLarge: a record is above a limit by itself.
        ValueError: `lengths` and `tokens` differ in number, or a limit on records is not positive.
    """
    count = len(lengths)
    if count != len(tokens):
        raise ValueError(f"{count} lengths and {len(tokens)} token counts, expected as many")
    if max_records is not None and max_records < 1:
        raise ValueError(f"max_records is {max_records}, expected at least 1")
    totals = []
    for what, sizes, most in (("bytes", lengths, max_bytes), ("tokens", tokens, max_tokens)):
        if most is not None:
            _refuse_too_large(what, sizes, most)
            totals.append(([*accumulate(sizes, initial=0)], most))
    limits = _Limits(count, max_records or count, tuple(totals))
    least = min_records or 1
    slices = _greedy(limits)
    if all(len(part) >= least for part in slices):
        return Split(slices, None)
    if tail == "merge" and (shared := _shared_out(limits, least)) is not None:
        return Split(shared, None)
    full = next(place for place, part in enumerate(slices) if len(part) < least)
    return Split(slices[:full], range(slices[full].start, count))


def _refuse_too_large(what: str, sizes: Sequence[int], most: int) -> None:
    largest = max(sizes, default=0)
    if largest > most:
        raise RecordTooLarge(sizes.index(largest), what, largest, most)


def _greedy(limits: _Limits) -> list[range]:
    slices, start = [], 0
    while start < limits.count:
        end = limits.end(start)
        slices.append(range(start, end))
        start = end
    return slices


def _shared_out(limits: _Limits, least: int) -> list[range] | None:
    """Jobs that all reach the minimum, the first ones as full as that allows; None if none do."""
    count = limits.count
    # next_cut[i]: the nearest place at or behind i from which the rest can be cut; one more than
    # the last place means none.
    next_cut = [count + 1] * (count + 1)
    next_cut[count] = count
    for start in range(count - 1, -1, -1):
        nearest = start + least
        works = nearest <= count and next_cut[nearest] <= limits.end(start)
        next_cut[start] = start if works else next_cut[start + 1]
    if next_cut[0] != 0:
        return None
    slices, start = [], 0
    while start < count:
        end = limits.end(start)
        while next_cut[end] != end:
            end -= 1
        slices.append(range(start, end))
        start = end
    return slices
