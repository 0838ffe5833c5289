"""Names that fold to one id are found across frames, and all others keep their ids and order."""

from __future__ import annotations

import unicodedata

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from resources.sources.document_id import document_id
from resources.sources.folding import held_back

NAMES = st.lists(
    st.text(alphabet="u\u0308üΩ\u2126eé日", min_size=1, max_size=4),
    unique=True,
    max_size=12,
)


def row(name: str) -> tuple[object, ...]:
    place = name.encode()
    return (document_id("s", place), place, 1, 0, "0", "0", None, None, None, "")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(names=NAMES)
def test_exactly_the_names_that_fold_alike_collide(
    names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("resources.sources.folding.LISTED_ROWS", 3)
    with held_back() as rows:
        for name in names:
            rows.add(row(name))
        frames = list(rows.frames("s"))
    assert all(frame.height <= 3 for frame in frames)
    if not names:
        assert frames == []
        return
    whole = pl.concat(frames)
    assert whole["place"].to_list() == [name.encode() for name in names]
    folded = [unicodedata.normalize("NFC", name) for name in names]
    clashes = [folded.count(name) > 1 for name in folded]
    assert whole["excluded"].to_list() == ["id_collision" if c else None for c in clashes]
    assert whole["document_id"].n_unique() == len(names)
    kept = whole.filter(pl.col("excluded").is_null())
    assert kept["document_id"].to_list() == [
        document_id("s", place) for place in kept["place"].to_list()
    ]
