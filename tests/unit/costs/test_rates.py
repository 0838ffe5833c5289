"""What tokens come to at the rates of a job, and what they may come to at most."""

from __future__ import annotations

from decimal import Decimal

import pytest

from pipeline_assets.costs.rates import JobRates
from resources.ledger.job_prices import JobPrice
from resources.providers.prices import Rate

READ = Rate(Decimal(1), ((200, Decimal(2)), (400, Decimal("1.5"))))
WRITTEN = Rate(Decimal(4), ((300, Decimal(6)),))


def rates(cached: Rate | None = None) -> JobRates:
    price = JobPrice("p", "m", "batch", "", "batch", "a list", "", READ, cached, WRITTEN)
    return JobRates(price, frozen=True)


def test_steps_of_every_kind() -> None:
    assert rates(Rate(Decimal(1), ((9, Decimal(2)),))).steps == (9, 200, 300, 400)


@pytest.mark.parametrize(
    ("longest", "usd"),
    [
        pytest.param(200, "140", id="before-every-step"),
        pytest.param(201, "240", id="beyond-the-first"),
        pytest.param(301, "260", id="beyond-that-of-answers"),
        pytest.param(900, "260", id="the-dearest-step-and-not-the-last"),
    ],
)
def test_at_most(longest: int, usd: str) -> None:
    """100 tokens read and 10 written, wherever a prompt up to so long may stand."""
    found = rates().at_most(100, 10, longest)
    assert found == Decimal(usd).scaleb(-6)
    for length in range(0, longest + 1, 50):
        exact = rates().amount(100, 10, 30, length)
        assert exact is not None and found is not None
        assert exact <= found


def test_without_a_price_of_its_own_a_cached_token_is_read() -> None:
    assert rates().amount(100, 0, 40, 100) == Decimal("0.000100")
    assert rates(Rate(Decimal("0.1"))).amount(100, 0, 40, 100) == Decimal("0.000064")
