"""May work be done within a version's budget: a pure decision, taken before it is done.

Belongs here: the comparison and its sentence. Does not belong here: what was spent and what work
may cost (`pipeline_assets/costs`), and the hold that follows (`holds.py`).

A budget is a promise, so it is held against the worst case: what results cost, what is out may
still cost at most, and what the next step may cost at most. What is not known is never taken for
nought.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal

_SMALL = Decimal(1)
_SMALLEST = Decimal("0.000001")


@dataclass(frozen=True)
class BudgetLimit:
    """What a version may use up; None where there is no limit.

    Attributes:
        money: US dollars.
        attempts: retries.
        time: since its first submission.
    """

    money: Decimal | None = None
    attempts: int | None = None
    time: timedelta | None = None

    @property
    def any(self) -> bool:
        """Is there a limit at all?"""
        return (self.money, self.attempts, self.time) != (None, None, None)


@dataclass(frozen=True)
class Work:
    """What was used up, is promised, or is about to be.

    Attributes:
        money: US dollars; None where that is not known.
        attempts: retries.
        time: since the first submission; None before it.
        unknown: why the money is not known.
    """

    money: Decimal | None = Decimal(0)
    attempts: int = 0
    time: timedelta | None = None
    unknown: str = ""


NO_WORK = Work()


@dataclass(frozen=True)
class OverBudget:
    """Why work may not be done, and what a person can do about it.

    Attributes:
        setting: the operating setting that stands in the way.
        sentence: with the figures.
        remedy: what lets the version go on.
    """

    setting: str
    sentence: str
    remedy: str

    @property
    def told(self) -> str:
        """All of it, as the reason of a hold."""
        return f"{self.sentence}. Nothing more is sent: {self.remedy}, then: tallybook release"


def decide_budget(
    limit: BudgetLimit, spent: Work, committed: Work, next_: Work
) -> OverBudget | None:
    """Why work may not be done; None where it may.

    A budget that is used up to the last cent allows nothing more, and one that the next step would
    use up exactly allows it.

    Args:
        limit: the budget.
        spent: what results have cost, retries that were made, the time that has passed.
        committed: what work that is out may cost at most, and what nobody knows the amount of.
        next_: what the next step may cost at most.
    """
    return (
        _over_attempts(limit, spent, committed, next_)
        or _over_money(limit, spent, committed, next_)
        or _over_time(limit, spent)
    )


def dollars(amount: Decimal) -> str:
    """An amount for people: two places, or six where it is less than a dollar."""
    if not amount or amount >= _SMALL:
        return f"{amount:.2f}"
    if amount < _SMALLEST:
        return f"less than {_SMALLEST}"
    return _exact(amount)


def _exact(amount: Decimal) -> str:
    """To the millionth, which is as far as a budget can be set."""
    whole, _, places = f"{amount:.6f}".rstrip("0").partition(".")
    return f"{whole}.{places:0<2}"


def _over_attempts(
    limit: BudgetLimit, spent: Work, committed: Work, next_: Work
) -> OverBudget | None:
    # A step without a retry is not stopped by retries, however many there were.
    if limit.attempts is None or not next_.attempts:
        return None
    total = spent.attempts + committed.attempts + next_.attempts
    if total <= limit.attempts:
        return None
    if spent.attempts >= limit.attempts:
        sentence = f"the version's {limit.attempts} retries are used up"
    else:
        sentence = (
            f"{next_.attempts} more would be {total} of the version's {limit.attempts} retries"
        )
    return OverBudget("budget_attempts", sentence, _raise("budget_attempts"))


def _over_money(limit: BudgetLimit, spent: Work, committed: Work, next_: Work) -> OverBudget | None:
    if limit.money is None:
        return None
    for work, what in (
        (spent, "what the version has cost is not known"),
        (committed, "what is under way may cost is not known"),
        (next_, "what the next step may cost is not known"),
    ):
        if work.money is None:
            why = f" ({work.unknown})" if work.unknown else ""
            sentence = f"{what}, and its budget is limited{why}"
            return OverBudget(
                "budget_usd",
                sentence,
                "no budget can be kept; lift it (tallybook settings set budget_usd 0)",
            )
    known = [work.money for work in (spent, committed, next_) if work.money is not None]
    gone, total = known[0] + known[1], sum(known, Decimal(0))
    if gone < limit.money and total <= limit.money:
        return None
    if known[0] >= limit.money:
        sentence = f"the version has cost {_exact(known[0])} of {_exact(limit.money)} US dollars"
        return OverBudget("budget_usd", sentence, _raise("budget_usd"))
    sentence = (
        f"the version has cost {_exact(known[0])} US dollars, what is under way or not known may "
        f"cost up to {_exact(known[1])} and the next step up to {_exact(known[2])}: "
        f"{_exact(total)} of {_exact(limit.money)}"
    )
    wait = "wait for what is under way, or " if known[1] else ""
    return OverBudget("budget_usd", sentence, wait + _raise("budget_usd"))


def _over_time(limit: BudgetLimit, spent: Work) -> OverBudget | None:
    if limit.time is None or spent.time is None or spent.time < limit.time:
        return None
    sentence = (
        f"its first submission is {spent.time / timedelta(hours=1):.1f} hours ago, and it may take "
        f"{limit.time / timedelta(hours=1):g}"
    )
    return OverBudget("budget_hours", sentence, _raise("budget_hours"))


def _raise(setting: str) -> str:
    return f"raise the budget (tallybook settings set {setting})"
