"""From a sample to the archive: arithmetic that was done by hand."""

from __future__ import annotations

import math

import pytest

from pipeline_assets.pilot.projection import Range, count_of, exactly, share_of, total_of

Z = 1.959963984540054


def test_a_share_weighs_strata_by_their_documents() -> None:
    # 0.9 * 1/2 + 0.1 * 2/2 = 0.55
    found = share_of({"a": 90, "b": 10}, {"a": [True, False], "b": [True, True]})
    assert found is not None
    assert found.value == pytest.approx(0.55)
    assert found.low < 0.55 < found.high
    counted = count_of({"a": 90, "b": 10}, {"a": [True, False], "b": [True, True]})
    assert counted is not None
    assert counted.value == pytest.approx(55)
    assert (counted.low, counted.high) == (
        pytest.approx(found.low * 100),
        pytest.approx(found.high * 100),
    )


def test_an_archive_that_was_taken_whole_is_known() -> None:
    found = share_of({"a": 2, "b": 1}, {"a": [True, False], "b": [True]})
    assert found is not None
    assert (found.low, found.value, found.high) == pytest.approx((2 / 3, 2 / 3, 2 / 3))
    assert total_of({"a": 2}, {"a": [1.5, 2.5]}) == Range(4.0, 4.0, 4.0)


def test_nothing_sampled_is_not_nothing() -> None:
    assert share_of({"a": 5}, {}) is None
    assert count_of({"a": 5}, {}) is None
    assert total_of({"a": 5}, {}) is None
    assert total_of({}, {}) is None


def test_a_total_by_hand() -> None:
    # a: 100 documents, 4 taken, mean 2, s2 = ((1-2)^2 + 0 + 0 + (3-2)^2) / 3 = 2/3
    # b: 10 documents, 2 taken, mean 10, s2 = (9-10)^2 + (11-10)^2 = 2
    # total = 200 + 100; var = 100^2*(1-4/100)*(2/3)/4 + 10^2*(1-2/10)*2/2 = 1600 + 80
    found = total_of({"a": 100, "b": 10}, {"a": [1, 2, 2, 3], "b": [9, 11]})
    assert found is not None
    half = Z * math.sqrt(1680)
    assert found.value == pytest.approx(300)
    assert found.low == pytest.approx(300 - half)
    assert found.high == pytest.approx(300 + half)


def test_a_stratum_of_one_takes_the_variance_of_all() -> None:
    # all values 1, 3, 5: s2 = 4; a: 10 of 10 documents are not: var = 10^2*(1-1/10)*4/1 = 360
    # b is taken whole: no variance
    found = total_of({"a": 10, "b": 2}, {"a": [1], "b": [3, 5]})
    assert found is not None
    assert found.value == pytest.approx(10 + 8)
    assert found.high == pytest.approx(18 + Z * math.sqrt(360))
    assert found.low == 9.0, "never less than what the sample alone came to"


def test_one_document_in_all() -> None:
    assert total_of({"a": 7}, {"a": [2.0]}) == Range(14.0, 14.0, 14.0)


@pytest.mark.parametrize(
    "values",
    [
        pytest.param({"a": [1.0, None]}, id="one-unknown"),
        pytest.param({"a": [None]}, id="all-unknown"),
        pytest.param({"b": [1.0]}, id="a-stratum-without-sample"),
    ],
)
def test_what_is_not_known_stays_so(values: dict[str, list[float | None]]) -> None:
    assert total_of({"a": 10}, values) is None


def test_ranges() -> None:
    found = Range(2.0, 1.0, 4.0)
    assert found.times(0.5) == Range(1.0, 0.5, 2.0)
    assert found.plus(exactly(3.0)) == Range(5.0, 4.0, 7.0)
