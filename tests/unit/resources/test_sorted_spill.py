"""Rows that do not fit into memory come out sorted, none lost."""

from __future__ import annotations

import random
from pathlib import Path

import polars as pl
import pytest

from resources.artifacts import ArtifactStore
from resources.sorted_spill import sorted_slices
from resources.spilled import spilled_frames


def names(count: int, seed: int) -> list[str]:
    rng = random.Random(seed)
    return [f"{rng.choice('aÄb.@/-')}{rng.randrange(count * 3)}" for _ in range(count)]


@pytest.mark.parametrize("rows", [1, 7, 50, 1_000])
@pytest.mark.parametrize("at_once", [10, 64, 10_000], ids=["many ranges", "some", "one"])
def test_rows_come_in_the_order_of_code_points(tmp_path: Path, rows: int, at_once: int) -> None:
    store = ArtifactStore(tmp_path)
    found = names(317, seed=rows)
    frame = pl.DataFrame({"name": found, "number": range(len(found))})
    with spilled_frames(store) as frames:
        for part in frame.iter_slices(23):
            frames.add(part)
        slices = list(sorted_slices(store, frames, "name", rows, at_once=at_once))
    assert [part.height for part in slices[:-1]] == [rows] * (len(slices) - 1)
    together = pl.concat(slices)
    assert together["name"].to_list() == sorted(found)
    assert together.sort("number").equals(frame)


def test_one_key_for_all(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path)
    with spilled_frames(store) as frames:
        frames.add(pl.DataFrame({"name": ["x"] * 50, "number": range(50)}))
        slices = list(sorted_slices(store, frames, "name", 20, at_once=10))
    assert [part.height for part in slices] == [20, 20, 10]


def test_nothing(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path)
    with spilled_frames(store) as frames:
        frames.add(pl.DataFrame({"name": []}, schema={"name": pl.String}))
        assert list(sorted_slices(store, frames, "name", 20)) == []


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path)
    with spilled_frames(store) as frames:
        frames.add(pl.DataFrame({"name": names(100, 1)}))
        list(sorted_slices(store, frames, "name", 20, at_once=10))
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
