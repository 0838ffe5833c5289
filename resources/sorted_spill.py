"""Sorting frames that do not fit into memory together.

Belongs here: only that. Does not belong here: the file that frames wait in (`spilled.py`).

The rows are dealt out by their key into ranges that fit, which are then sorted one by one. Where
the ranges lie is read from a sample: their size depends on it, the order never.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from contextlib import ExitStack

import polars as pl

from resources.artifacts import ArtifactStore
from resources.spilled import SpilledFrames, spilled_frames

AT_ONCE = 100_000
"""So many rows are sorted in memory: some tens of megabytes."""
_SAMPLED = 100
"""One key of so many is looked at to lay out the ranges."""


def sorted_slices(
    store: ArtifactStore, frames: SpilledFrames, key: str, rows: int, *, at_once: int = AT_ONCE
) -> Iterator[pl.DataFrame]:
    """The rows of all frames by a text column, in the order of its code points.

    Args:
        store: on whose file system the ranges wait.
        frames: the rows.
        key: the column; without nulls.
        rows: so many are in each slice, but for the last.
        at_once: so many are sorted in memory, about.
    """
    if not frames.height:
        return
    if frames.height <= at_once:
        yield from pl.concat(frames.each()).sort(key).iter_slices(rows)
        return
    with ExitStack() as files:
        ranges = [
            files.enter_context(spilled_frames(store)) for _ in range(-(-frames.height // at_once))
        ]
        _deal_out(frames, key, ranges)
        rest: pl.DataFrame | None = None
        for part in ranges:
            if not part.height:
                continue
            sorted_part = pl.concat(part.each()).sort(key)
            whole = sorted_part if rest is None else pl.concat([rest, sorted_part])
            full = whole.height // rows * rows
            yield from whole.slice(0, full).iter_slices(rows)
            rest = whole.slice(full)
        if rest is not None and not rest.is_empty():
            yield rest


def _deal_out(frames: SpilledFrames, key: str, ranges: list[SpilledFrames]) -> None:
    sample = sorted(name for part in frames.each() for name in part[key].gather_every(_SAMPLED))
    starts = [sample[len(sample) * number // len(ranges)] for number in range(1, len(ranges))]
    for part in frames.each():
        place = pl.Series([bisect_right(starts, name) for name in part[key]], dtype=pl.Int64)
        for number, kept in enumerate(ranges):
            chosen = part.filter(place == number)
            if not chosen.is_empty():
                kept.add(chosen)
