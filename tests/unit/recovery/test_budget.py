"""A budget stops work before it is passed, and never stops what fits."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_assets.recovery.budget import (
    NO_WORK,
    BudgetLimit,
    Work,
    decide_budget,
    dollars,
)

TEN = BudgetLimit(money=Decimal(10))
CENTS = st.integers(0, 2_000).map(lambda cents: Decimal(cents) / 100)


def usd(amount: str) -> Work:
    return Work(Decimal(amount))


@pytest.mark.parametrize(
    ("spent", "committed", "next_", "allowed"),
    [
        pytest.param("0", "0", "10", True, id="the-whole-budget-at-once"),
        pytest.param("0", "0", "10.000001", False, id="a-millionth-too-much"),
        pytest.param("4", "3", "3", True, id="to-the-last-cent"),
        pytest.param("4", "3", "3.01", False, id="what-is-out-counts"),
        pytest.param("10", "0", "0", False, id="used-up"),
        pytest.param("4", "6", "0", False, id="used-up-by-what-is-out"),
        pytest.param("9.999999", "0", "0", True, id="a-millionth-left"),
    ],
)
def test_money(spent: str, committed: str, next_: str, allowed: bool) -> None:
    found = decide_budget(TEN, usd(spent), usd(committed), usd(next_))
    assert (found is None) == allowed


@pytest.mark.parametrize("place", [0, 1, 2])
def test_what_is_not_known_is_never_nought(place: int) -> None:
    works = [NO_WORK, NO_WORK, NO_WORK]
    works[place] = Work(None, unknown="no price")
    found = decide_budget(TEN, *works)
    assert found is not None
    assert "not known" in found
    assert "(no price)" in found
    assert decide_budget(BudgetLimit(attempts=3), *works) is None, "nobody asks for money"


def test_the_sentence_names_the_figures() -> None:
    found = decide_budget(TEN, usd("4"), usd("3"), usd("3.5"))
    assert found == (
        "the version has cost 4.00 US dollars, what is under way may cost up to 3.00 and the next "
        "step up to 3.50: 10.50 of 10.00"
    )
    assert decide_budget(TEN, usd("12"), NO_WORK, NO_WORK) == (
        "the version has cost 12.00 of 10.00 US dollars"
    )


@pytest.mark.parametrize(
    ("made", "more", "allowed"),
    [(6, 1, True), (7, 1, False), (5, 3, False), (7, 0, True), (9, 0, True)],
)
def test_retries(made: int, more: int, allowed: bool) -> None:
    found = decide_budget(
        BudgetLimit(attempts=7), Work(attempts=made), NO_WORK, Work(attempts=more)
    )
    assert (found is None) == allowed


@pytest.mark.parametrize(
    ("hours", "allowed"), [(None, True), (11.99, True), (12, False), (40, False)]
)
def test_time(hours: float | None, allowed: bool) -> None:
    elapsed = None if hours is None else timedelta(hours=hours)
    found = decide_budget(
        BudgetLimit(time=timedelta(hours=12)), Work(time=elapsed), NO_WORK, NO_WORK
    )
    assert (found is None) == allowed


def test_no_limit_allows_everything() -> None:
    endless = Work(None, 10**6, timedelta(days=999))
    assert not BudgetLimit().any
    assert decide_budget(BudgetLimit(), endless, endless, endless) is None


@given(limit=CENTS, steps=st.lists(st.tuples(CENTS, CENTS), max_size=12))
def test_it_is_never_passed(limit: Decimal, steps: list[tuple[Decimal, Decimal]]) -> None:
    """Whatever steps cost in the end, as long as none costs more than was said."""
    spent = Decimal(0)
    for at_most, share in steps:
        real = min(at_most, share)
        if decide_budget(BudgetLimit(money=limit), Work(spent), NO_WORK, Work(at_most)) is None:
            spent += real
        assert spent <= limit


@pytest.mark.parametrize(
    ("amount", "text"),
    [("0", "0.00"), ("0.5", "0.50"), ("0.000125", "0.000125"), ("12.3456", "12.35")],
)
def test_amounts_for_people(amount: str, text: str) -> None:
    assert dollars(Decimal(amount)) == text
