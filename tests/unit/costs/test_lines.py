"""What the lines of a batch cost before the ledger has them: the rule of charges, over a frame."""

from __future__ import annotations

from decimal import Decimal

import polars as pl
import pytest

from pipeline_assets.costs.lines import TOKEN_COLUMNS, cost_of_lines
from pipeline_assets.costs.rates import JobRates
from resources.ledger.job_prices import JobPrice
from resources.providers.prices import Rate

SCHEMA = {
    "disposition": pl.String,
    "failure_class": pl.String,
    **dict.fromkeys(TOKEN_COLUMNS, pl.Int64),
}
Row = tuple[str, str | None, int | None, int | None, int | None]


STEP = Rate(Decimal(1), ((200, Decimal(2)),))


def rates(read: Rate | None = STEP) -> JobRates:
    written = None if read is None else Rate(Decimal(4))
    price = JobPrice("p", "m", "batch", "", "batch", "a list", "", read, None, written)
    return JobRates(price, frozen=True)


def cost(*rows: Row, at: JobRates | None = None) -> tuple[Decimal | None, int]:
    return cost_of_lines(pl.DataFrame(list(rows), schema=SCHEMA, orient="row"), at or rates())


GOOD: Row = ("succeeded", None, 100, 10, None)
"""0.000140 US dollars."""


def test_each_line_is_on_its_own_side_of_a_step() -> None:
    long: Row = ("succeeded", None, 300, 10, 50)
    assert cost(GOOD, GOOD, long) == (Decimal("0.000920"), 0)


@pytest.mark.parametrize(
    ("row", "unsized"),
    [
        pytest.param(("succeeded", None, None, None, None), 1, id="no-usage"),
        pytest.param(("succeeded", None, 100, None, None), 1, id="half-a-usage"),
        pytest.param(("permanent_failure", "refused", None, None, None), 1, id="a-model-refused"),
        pytest.param(("permanent_failure", "x", None, 5, None), 1, id="something-was-written"),
        pytest.param(("succeeded", None, 10, 5, 11), 1, id="more-cached-than-read"),
        pytest.param(("succeeded", None, 10, -5, 0), 1, id="less-than-nothing"),
        pytest.param(("retryable_failure", "server_error", None, None, None), 0, id="an-error"),
    ],
)
def test_what_has_no_tokens_is_counted_apart(row: Row, unsized: int) -> None:
    assert cost(row, GOOD) == (Decimal("0.000140"), unsized)


def test_without_a_price_nothing_is_known() -> None:
    assert cost(GOOD, ("succeeded", None, None, None, None), at=rates(None)) == (None, 1)
    assert cost(at=rates(None)) == (Decimal(0), 0)
