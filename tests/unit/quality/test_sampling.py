"""Which records are drawn: shares, order, and that drawing in parts is as fair as at once."""

from __future__ import annotations

import random
from collections import Counter
from decimal import Decimal

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline_assets.quality.sampling import STANDING_SCHEMA, draw, new_seed, place_of

DIGEST = "d" * 64


def records(count: int, name: str = "a", first: int = 0) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "record_id": [f"{name}{number}" for number in range(first, first + count)],
            "slice": [name] * count,
        },
        schema={"record_id": pl.String, "slice": pl.String},
    )


def standing(*rows: tuple[str, int, int]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), schema=STANDING_SCHEMA, orient="row")


def drawn(
    candidates: pl.DataFrame,
    *rows: tuple[str, int, int],
    percent: str = "0",
    least: int = 0,
    seed: int = 1,
) -> list[str]:
    found = draw(
        [candidates],
        standing(*rows),
        percent=Decimal(percent),
        least=least,
        seed=seed,
        version_digest=DIGEST,
    )
    return found["record_id"].to_list()


@pytest.mark.parametrize(
    ("population", "sampled", "percent", "least", "expected"),
    [
        pytest.param(100, 0, "0", 5, 5, id="the-least"),
        pytest.param(100, 3, "0", 5, 2, id="topped-up"),
        pytest.param(100, 7, "0", 5, 0, id="enough-before"),
        pytest.param(3, 0, "0", 5, 3, id="all-of-a-few"),
        pytest.param(0, 0, "2", 5, 0, id="none"),
        pytest.param(50, 0, "0", 0, 0, id="switched-off"),
        pytest.param(50, 0, "100", 0, 50, id="everything"),
        pytest.param(50, 40, "100", 5, 10, id="the-rest-of-everything"),
    ],
)
def test_sizes_that_are_sure(
    population: int, sampled: int, percent: str, least: int, expected: int
) -> None:
    left = records(population - sampled)
    row = ("a", population, sampled)
    assert len(drawn(left, row, percent=percent, least=least)) == expected


@pytest.mark.parametrize(("percent", "share"), [("2", 0.02), ("12.5", 0.125), ("60", 0.6)])
def test_the_share_is_met_on_average(percent: str, share: float) -> None:
    count = 20_000
    found = len(drawn(records(count), ("a", count, 0), percent=percent))
    assert abs(found - count * share) < 4 * (count * share * (1 - share)) ** 0.5


def test_each_slice_is_topped_up_with_what_comes_next() -> None:
    both = pl.concat([records(400), records(6, "b")])
    found = drawn(both, ("a", 400, 0), ("b", 6, 0), percent="5", least=4)
    limit = 2**63 // 20
    for name, count in (("a", 400), ("b", 6)):
        order = sorted(
            (f"{name}{number}" for number in range(count)), key=lambda one: place_of(1, DIGEST, one)
        )
        below = sum(place_of(1, DIGEST, one) < limit for one in order)
        assert [one for one in found if one[0] == name] == order[: max(below, 4)]


def test_places_are_those_of_earlier_releases() -> None:
    """Another order would draw other records into the samples that are under way."""
    assert place_of(1, DIGEST, "a record") == 4664024554622145569


def test_seeds_come_from_the_generator_that_is_given() -> None:
    assert new_seed(random.Random(3)) == new_seed(random.Random(3)) != new_seed(random.Random(4))
    assert all(0 <= new_seed(random.Random(number)) < 2**62 for number in range(20))


@settings(max_examples=40)
@given(
    st.integers(0, 60),
    st.integers(0, 8),
    st.integers(1, 25),
    st.integers(0, 2**62),
    st.sampled_from(["0", "10", "100"]),
)
def test_what_is_drawn_does_not_depend_on_shards(
    count: int, least: int, shard: int, seed: int, percent: str
) -> None:
    everything = pl.concat([records(count), records(count, "b")])
    stand = standing(("a", count, 0), ("b", count, 2))
    mixed = everything.sample(fraction=1, shuffle=True, seed=1)
    in_shards, at_once = (
        draw(
            parts,
            stand,
            percent=Decimal(percent),
            least=least,
            seed=seed,
            version_digest=DIGEST,
        )
        for parts in (mixed.iter_slices(shard), [everything])
    )
    assert in_shards.equals(at_once)
    again = everything.filter(~pl.col("record_id").is_in(at_once["record_id"].implode()))
    sizes = Counter(at_once["slice"])
    rows = (("a", count, sizes["a"]), ("b", count, sizes["b"] + 2))
    assert drawn(again, *rows, percent=percent, least=least, seed=seed) == []


def test_nothing_to_draw_from() -> None:
    assert drawn(records(0), ("a", 3, 3), percent="100", least=3) == []


def test_what_comes_late_is_drawn_as_often_as_what_came_early() -> None:
    """Ten draws while a slice grows, over many seeds: every tenth of it has its share."""
    counts: Counter[int] = Counter()
    rounds, step, parts = 30, 50, 10
    for seed in range(rounds):
        taken: set[str] = set()
        for part in range(1, parts + 1):
            left = records(step * part).filter(~pl.col("record_id").is_in(sorted(taken)))
            taken |= set(drawn(left, ("a", step * part, len(taken)), percent="10", seed=seed))
        counts.update(int(record[1:]) // step for record in taken)
    expected = rounds * step * 0.1
    for part in range(parts):
        # Four standard deviations of independent draws.
        assert abs(counts[part] - expected) < 4 * (expected * 0.9) ** 0.5, (part, counts)
