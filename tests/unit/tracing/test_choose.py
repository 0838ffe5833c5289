"""Which records are traced."""

from __future__ import annotations

import hashlib

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_assets.tracing.choose import ENDED, choose, sample_of

Episode = tuple[int, int, bool, bool, float]
"""Record, microseconds, worked, failing, sample."""
EPISODES = st.lists(
    st.tuples(
        st.integers(1, 10**6),
        # Few different durations: sets of records share one.
        st.integers(0, 5),
        st.booleans(),
        st.booleans(),
        st.floats(0, 1, exclude_max=True),
    ),
    max_size=250,
    unique_by=lambda episode: episode[0],
)


def frame(episodes: list[Episode]) -> pl.DataFrame:
    rows = [
        (record, 2 * record, 2 * record + 1, took, worked, failing, sample)
        for record, took, worked, failing, sample in episodes
    ]
    return pl.DataFrame(rows, schema=ENDED, orient="row")


def why(episodes: list[Episode], share: float) -> dict[int, str]:
    chosen = choose(frame(episodes), share)
    return dict(chosen.select("record_no", "why").iter_rows())


@pytest.mark.parametrize(
    ("episodes", "share", "expected"),
    [
        pytest.param([], 1.0, {}, id="nothing ended"),
        pytest.param([(1, 5, True, False, 0.5)], 0.0, {1: "slow"}, id="one is the slowest"),
        pytest.param(
            [(1, 5, True, True, 0.5), (2, 4, True, False, 0.5)],
            0.0,
            {1: "failing"},
            id="the slowest failed",
        ),
        pytest.param(
            [(number, 7, True, False, 0.5) for number in range(1, 102)],
            0.0,
            {1: "slow", 2: "slow"},
            id="all tie: the first by number, no more than a hundredth",
        ),
        pytest.param(
            [(1, 0, False, False, 0.5), (2, 9, True, False, 0.5)],
            0.0,
            {2: "slow"},
            id="a move from end to end is not slow",
        ),
        pytest.param([(1, 0, False, False, 0.2)], 0.2, {}, id="a sample at the share"),
        pytest.param([(1, 0, False, False, 0.19)], 0.2, {1: "sampled"}, id="a sample below it"),
        pytest.param(
            [(number, 0, False, False, 0.999999) for number in (1, 2)],
            1.0,
            {1: "sampled", 2: "sampled"},
            id="all of the rest",
        ),
    ],
)
def test_the_choice(episodes: list[Episode], share: float, expected: dict[int, str]) -> None:
    assert why(episodes, share) == expected


@given(EPISODES, st.sampled_from([0.0, 0.01, 0.5, 1.0]))
def test_the_choice_is_exact(episodes: list[Episode], share: float) -> None:
    failing = {record for record, _, _, bad, _ in episodes if bad}
    ranked = sorted(
        ((-took, record) for record, took, worked, _, _ in episodes if worked),
    )
    slow = {record for _, record in ranked[: (len(ranked) + 99) // 100]}
    sampled = {record for record, _, _, _, sample in episodes if sample < share}
    found = why(episodes, share)
    assert set(found) == failing | slow | sampled
    assert {record for record, reason in found.items() if reason == "failing"} == failing
    assert {record for record, reason in found.items() if reason == "slow"} == slow - failing


@given(st.text())
def test_a_sample_is_below_one_and_the_same_everywhere(record_id: str) -> None:
    assert 0 <= sample_of(record_id) < 1
    digest = hashlib.sha256(record_id.encode("utf-8", "surrogatepass")).hexdigest()
    assert sample_of(record_id) == pytest.approx(int(digest[:16], 16) / 2**64)


def test_samples_are_spread_evenly() -> None:
    below = sum(sample_of(f"record {number}") < 0.1 for number in range(10_000))
    assert 900 < below < 1100
