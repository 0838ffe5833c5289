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
    assert "not known" in found.sentence
    assert "(no price)" in found.sentence
    assert "budget_usd 0" in found.told, "a larger one would not help"
    assert decide_budget(BudgetLimit(attempts=3), *works) is None, "nobody asks for money"


def test_the_sentence_names_the_figures() -> None:
    found = decide_budget(TEN, usd("4"), usd("3"), usd("3.5"))
    assert found is not None
    assert found.sentence == (
        "the version has cost 4.00 US dollars, what is under way or not known may cost up to 3.00 "
        "and the next step up to 3.50: 10.50 of 10.00"
    )
    assert found.told == (
        f"{found.sentence}. Nothing more is sent: wait for what is under way, or raise the budget "
        "(tallybook settings set budget_usd), then: tallybook release"
    )


def test_a_millionth_too_much_shows() -> None:
    found = decide_budget(TEN, usd("4.123456"), NO_WORK, usd("5.876545"))
    assert found is not None
    assert found.sentence.endswith("10.000001 of 10.00")
    assert "wait" not in found.remedy, "nothing is under way"


@pytest.mark.parametrize(
    ("limit", "spent", "next_", "setting", "says"),
    [
        (TEN, usd("12"), NO_WORK, "budget_usd", "the version has cost 12.00 of 10.00 US dollars"),
        (
            BudgetLimit(attempts=7),
            Work(attempts=7),
            Work(attempts=1),
            "budget_attempts",
            "the version's 7 retries are used up",
        ),
        (
            BudgetLimit(attempts=7),
            Work(attempts=5),
            Work(attempts=3),
            "budget_attempts",
            "3 more would be 8 of the version's 7 retries",
        ),
        (
            BudgetLimit(time=timedelta(hours=12)),
            Work(time=timedelta(hours=13.5)),
            NO_WORK,
            "budget_hours",
            "its first submission is 13.5 hours ago, and it may take 12",
        ),
    ],
    ids=["money", "retries-used-up", "retries", "time"],
)
def test_each_budget_names_its_setting(
    limit: BudgetLimit, spent: Work, next_: Work, setting: str, says: str
) -> None:
    found = decide_budget(limit, spent, NO_WORK, next_)
    assert found is not None
    assert (found.setting, found.sentence) == (setting, says)
    assert f"tallybook settings set {setting})" in found.told


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
    [
        ("0", "0.00"),
        ("0.5", "0.50"),
        ("0.000125", "0.000125"),
        ("0.0000004", "less than 0.000001"),
        ("12.3456", "12.35"),
    ],
)
def test_amounts_for_people(amount: str, text: str) -> None:
    assert dollars(Decimal(amount)) == text
