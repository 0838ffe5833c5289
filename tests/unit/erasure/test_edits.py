"""Edited copies: what is meant is gone, and nothing else moved."""

from __future__ import annotations

from pathlib import Path

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from pipeline_assets.erasure.edits import (
    blank_ranges,
    count_rows,
    marked_ranges,
    unblanked,
    without_rows,
)
from resources.artifacts import ArtifactStore
from resources.contracts import COLLECTED, read_shards, store_frame
from resources.providers.port import split_lines

LINES = st.lists(
    st.binary(min_size=1, max_size=30)
    .map(lambda data: data.replace(b"\n", b"n"))
    .filter(lambda data: data.strip()),
    min_size=1,
    max_size=8,
)


@given(lines=LINES, data=st.data())
def test_other_lines_stay_where_they_are(
    lines: list[bytes], data: st.DataObject, tmp_path_factory: object
) -> None:
    folder = tmp_path_factory.mktemp("lines")  # pyright: ignore[reportAttributeAccessIssue]
    source, target = folder / "source", folder / "target"
    source.write_bytes(b"\n".join(lines) + b"\n")
    with source.open("rb") as stream:
        found = list(split_lines(stream))
    chosen = data.draw(st.sets(st.sampled_from(range(len(found)))))
    ranges = [(found[at].offset, len(found[at].data)) for at in chosen]
    blank_ranges(source, target, ranges)
    assert target.stat().st_size == source.stat().st_size
    with target.open("rb") as stream:
        left = list(split_lines(stream))
    assert left == [line for at, line in enumerate(found) if at not in chosen]
    assert unblanked(target, ranges) == []
    assert sorted(unblanked(source, ranges)) == sorted(ranges)


def test_lines_that_name_a_document_are_found(tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_bytes(b'{"id":"k-1","r":"doc-1"}\n{"id":"k-10","r":"doc-2"}\n\n{"id":"k-1"\n')
    assert marked_ranges(file, [b"doc-2"]) == [(25, 25)]
    assert marked_ranges(file, [b'"k-1"']) == [(0, 24), (52, 11)]
    assert marked_ranges(file, []) == []


def test_rows_are_left_out_and_the_rest_is_the_same(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path)
    shards = [
        pl.DataFrame(
            [(number, number, f"answer {number}") for number in part],
            schema=dict(COLLECTED.schema),
            orient="row",
        )
        for part in ((1, 2), (3,), (4, 5))
    ]
    stored = store_frame(store, "frame", COLLECTED, shards)
    assert count_rows(stored.path, "attempt_no", [2, 3, 9]) == (2, 5)
    target = tmp_path / "target"
    without_rows(stored.path, target, "attempt_no", [2, 3, 9])
    # Of the same contract, and in the same shards.
    left = [shard["attempt_no"].to_list() for shard in read_shards(COLLECTED, target)]
    assert [part for part in left if part] == [[1], [4, 5]]
    without_rows(stored.path, target, "attempt_no", [1, 2, 3, 4, 5])
    assert sum(shard.height for shard in read_shards(COLLECTED, target)) == 0
