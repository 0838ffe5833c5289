"""Remembering which ids a listing had."""

from __future__ import annotations

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from resources.sources.seen_rows import SeenRows

NAMES = st.integers(0, 60).map(str)


@settings(max_examples=60)
@given(st.lists(st.lists(NAMES, max_size=12, unique=True), max_size=12))
def test_finds_the_first_digest_of_what_was_added(frames: list[list[str]]) -> None:
    seen = SeenRows()
    known: dict[str, int] = {}
    digest = 0
    for frame in frames:
        ids = pl.Series(frame, dtype=pl.String)
        assert seen.find(ids).to_list() == [known.get(name) for name in frame]
        fresh = ids.filter(seen.find(ids).is_null())
        digests = range(digest, digest + len(fresh))
        seen.add(fresh, pl.Series(digests, dtype=pl.UInt64))
        known |= dict(zip(fresh, digests, strict=True))
        digest += len(fresh)


def test_ids_that_share_one_of_their_hashes_are_told_apart() -> None:
    seen = SeenRows()
    ids = pl.Series(["a", "b", "c"])
    seen._seeds = (1, 2)
    seen.add(ids.head(2), pl.Series([10, 20], dtype=pl.UInt64))
    run = seen._runs[0]
    seen._runs[0] = run.with_columns(one=pl.lit(pl.Series(["c"]).hash(1).item(), pl.UInt64))
    assert seen.find(pl.Series(["c"])).to_list() == [None]
