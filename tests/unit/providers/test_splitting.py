"""Cutting records into jobs: nothing lost, no limit passed, the minimum wherever it can be."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.providers.splitting import RecordTooLarge, Split, TailPolicy, split_sizes

SIZES = st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), max_size=25)
LIMIT = st.one_of(st.none(), st.integers(9, 40))
TAIL = st.sampled_from(["merge", "online", "refuse"])


def ends(split: Split) -> list[int]:
    return [part.stop for part in split.slices]


@pytest.mark.parametrize(
    ("count", "most", "least", "tail", "stops", "too_small"),
    [
        pytest.param(0, 10, 3, "merge", [], None, id="nothing"),
        pytest.param(10, 10, 3, "merge", [10], None, id="one-job"),
        pytest.param(25, 10, 3, "merge", [10, 20, 25], None, id="last-job-large-enough"),
        pytest.param(21, 10, 3, "merge", [10, 18, 21], None, id="tail-is-shared-out"),
        pytest.param(21, 10, 3, "online", [10, 20], range(20, 21), id="tail-is-left-to-online"),
        pytest.param(21, 10, 3, "refuse", [10, 20], range(20, 21), id="tail-is-left-to-refuse"),
        pytest.param(21, 10, None, "refuse", [10, 20, 21], None, id="no-minimum"),
        pytest.param(2, 10, 3, "merge", [], range(2), id="all-of-it-too-small"),
        pytest.param(2, None, 3, "merge", [], range(2), id="all-of-it-too-small-and-no-limit"),
        pytest.param(3, 2, 2, "merge", [2], range(2, 3), id="no-cut-reaches-the-minimum"),
        pytest.param(7, 4, 3, "merge", [4, 7], None, id="cut-falls-right-by-itself"),
        pytest.param(9, 4, 3, "merge", [3, 6, 9], None, id="more-than-the-last-two-give-way"),
    ],
)
def test_cuts(
    count: int,
    most: int | None,
    least: int | None,
    tail: TailPolicy,
    stops: list[int],
    too_small: range | None,
) -> None:
    split = split_sizes([1] * count, [1] * count, max_records=most, min_records=least, tail=tail)
    assert (ends(split), split.too_small) == (stops, too_small)


def test_every_limit_cuts() -> None:
    lengths, tokens = [4, 4, 4, 1, 1, 1], [1, 1, 1, 5, 5, 1]
    assert ends(split_sizes(lengths, tokens, max_bytes=9)) == [2, 6]
    assert ends(split_sizes(lengths, tokens, max_tokens=8)) == [4, 6]
    assert ends(split_sizes(lengths, tokens, max_bytes=9, max_tokens=6, max_records=2)) == [2, 4, 6]


@pytest.mark.parametrize(
    ("limit", "message"),
    [
        (
            {"max_bytes": 8},
            "record 1 alone has 9 bytes, a whole job may have 8. Send less of the document, or "
            "exclude it with that reason.",
        ),
        (
            {"max_tokens": 6},
            "record 2 alone has 7 tokens, a whole job may have 6. Send less of the document, or "
            "exclude it with that reason.",
        ),
    ],
    ids=["bytes", "tokens"],
)
def test_a_record_above_a_limit_is_named(limit: dict[str, int], message: str) -> None:
    with pytest.raises(RecordTooLarge) as raised:
        split_sizes([1, 9, 1], [1, 1, 7], **limit)  # pyright: ignore[reportArgumentType]
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("lengths", "most", "message"),
    [
        ([1, 1], 5, "2 lengths and 1 token counts, expected as many"),
        ([1], 0, "max_records is 0, expected at least 1"),
    ],
    ids=["uneven", "no-record-allowed"],
)
def test_bad_arguments_are_refused(lengths: list[int], most: int, message: str) -> None:
    with pytest.raises(ValueError) as raised:
        split_sizes(lengths, [1], max_records=most)
    assert str(raised.value) == message


@given(SIZES, st.one_of(st.none(), st.integers(1, 8)), LIMIT, LIMIT, st.integers(1, 5), TAIL)
def test_every_record_is_in_one_place_and_no_limit_is_passed(
    sizes: list[tuple[int, int]],
    most: int | None,
    most_bytes: int | None,
    most_tokens: int | None,
    least: int,
    tail: TailPolicy,
) -> None:
    lengths, tokens = [size for size, _ in sizes], [count for _, count in sizes]
    split = split_sizes(
        lengths,
        tokens,
        max_records=most,
        max_bytes=most_bytes,
        max_tokens=most_tokens,
        min_records=least,
        tail=tail,
    )
    parts = [*split.slices, *([] if split.too_small is None else [split.too_small])]
    assert [index for part in parts for index in part] == list(range(len(sizes)))
    assert all(before.stop == after.start for before, after in pairwise(parts))
    for part in split.slices:
        assert len(part) >= least
        assert most is None or len(part) <= most
        assert most_bytes is None or sum(lengths[part.start : part.stop]) <= most_bytes
        assert most_tokens is None or sum(tokens[part.start : part.stop]) <= most_tokens


@given(SIZES, st.one_of(st.none(), st.integers(1, 8)), LIMIT, st.integers(1, 5))
def test_merging_reaches_the_minimum_whenever_any_cut_does(
    sizes: list[tuple[int, int]], most: int | None, most_bytes: int | None, least: int
) -> None:
    lengths = [size for size, _ in sizes]

    @cache
    def can_be_cut_from(start: int) -> bool:
        return start == len(lengths) or any(
            can_be_cut_from(end)
            for end in range(start + least, len(lengths) + 1)
            if (most is None or end - start <= most)
            and (most_bytes is None or sum(lengths[start:end]) <= most_bytes)
        )

    split = split_sizes(
        lengths,
        [1] * len(lengths),
        max_records=most,
        max_bytes=most_bytes,
        min_records=least,
        tail="merge",
    )
    assert (split.too_small is None) == can_be_cut_from(0)
