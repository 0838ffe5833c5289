"""Frames that wait in a file come back as they were."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from resources.artifacts import ArtifactStore
from resources.spilled import SpilledFrames, rows_of, spilled_frames

SCHEMA = {"number": pl.Int64, "name": pl.String, "kind": pl.Categorical, "small": pl.Int32}


def frame(*rows: tuple[int | None, str | None, str | None, int | None]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), schema=SCHEMA, orient="row")


FIRST = frame((1, "a", "x", 1), (2, None, "y", None))
SECOND = frame((3, "ж" * 40, "y", 3), (None, "", None, 4), (5, "e", "z", 5))


@pytest.fixture
def frames(tmp_path: Path) -> Iterator[SpilledFrames]:
    with spilled_frames(ArtifactStore(tmp_path)) as found:
        yield found


def test_frames_come_back_each_by_itself(frames: SpilledFrames) -> None:
    first, second = frames.add(FIRST), frames.add(SECOND)
    assert (first.height, second.height, frames.height) == (2, 3, 5)
    assert second.read().equals(SECOND)
    assert first.read().equals(FIRST)
    assert second.read().schema == SECOND.schema
    assert [part.rows() for part in frames.each()] == [FIRST.rows(), SECOND.rows()]


@pytest.mark.parametrize("place", [0, 1, 2], ids=["first", "between", "last"])
def test_an_empty_frame_is_one_too(frames: SpilledFrames, place: int) -> None:
    parts = [FIRST, SECOND]
    parts.insert(place, FIRST.clear())
    added = [frames.add(part) for part in parts]
    assert [rows.read().rows() for rows in added] == [part.rows() for part in parts]


def test_nothing_but_empty_frames(frames: SpilledFrames) -> None:
    rows = frames.add(FIRST.clear())
    assert rows.read().schema == FIRST.schema
    assert [part.height for part in frames.each()] == [0]


def test_other_columns_are_refused(frames: SpilledFrames) -> None:
    frames.add(FIRST)
    with pytest.raises(ValueError, match="expected"):
        frames.add(FIRST.drop("small"))


def test_nothing_is_added_once_it_is_read(frames: SpilledFrames) -> None:
    frames.add(FIRST).read()
    with pytest.raises(ValueError, match="after reading began"):
        frames.add(SECOND)


@pytest.mark.parametrize(("start", "stop"), [(0, 5), (0, 2), (1, 3), (2, 5), (4, 5), (0, 1)])
def test_rows_by_their_position(frames: SpilledFrames, start: int, stop: int) -> None:
    for part in (FIRST, FIRST.clear(), SECOND):
        frames.add(part)
    whole = pl.concat([FIRST, SECOND])
    assert frames.slice(start, stop).rows() == whole.slice(start, stop - start).rows()


@pytest.mark.parametrize(("start", "stop"), [(0, 3), (-1, 1), (1, 1), (2, 1)])
def test_positions_that_are_not_there(frames: SpilledFrames, start: int, stop: int) -> None:
    frames.add(FIRST)
    with pytest.raises(ValueError, match="expected some of 2"):
        frames.slice(start, stop)


def test_the_file_is_gone_afterwards(tmp_path: Path) -> None:
    with spilled_frames(ArtifactStore(tmp_path)) as frames:
        frames.add(FIRST).read()
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_rows_in_memory() -> None:
    assert rows_of(FIRST).height == 2
    assert rows_of(FIRST).read() is FIRST
