"""The text form of a time: fixed width, UTC, sorts as text, reads back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.clock import from_text, system_clock, to_text
from resources.ledger.schema import Time

ZONES = [UTC, timezone(timedelta(hours=-9.5)), timezone(timedelta(hours=14))]
MOMENTS = st.datetimes(
    min_value=datetime(1970, 1, 2),
    max_value=datetime(2200, 1, 1),
    timezones=st.sampled_from(
        [UTC, timezone(timedelta(hours=-9.5)), timezone(timedelta(hours=14))]
    ),
)


@given(MOMENTS)
def test_a_time_reads_back_as_the_same_moment(moment: datetime) -> None:
    assert from_text(to_text(moment)) == moment
    assert len(to_text(moment)) == Time.length


@given(MOMENTS, MOMENTS)
def test_texts_sort_as_their_moments(one: datetime, other: datetime) -> None:
    assert (to_text(one) < to_text(other)) == (one < other)


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="without a zone"):
        to_text(datetime(2030, 1, 2))


@pytest.mark.parametrize("text", ["", "2030-01-02", "2030-01-02T03:04:05Z", "2030-01-02 03:04:05"])
def test_another_form_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="does not match"):
        from_text(text)


def test_the_system_clock_is_aware() -> None:
    assert system_clock().utcoffset() == timedelta(0)
