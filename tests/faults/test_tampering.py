"""Every kind of planted tampering is named, and nothing is found where nothing was planted."""

from __future__ import annotations

import pytest

from tests.faults.tampering.plants import PLANTS
from tests.faults.tampering.series import Outcome, run_series
from tests.support.postgres import PostgresServer


@pytest.mark.slow
def test_on_sqlite() -> None:
    check(run_series(["sqlite"], None, print), len(PLANTS))


@pytest.mark.slow
@pytest.mark.postgres
def test_on_postgresql(postgres: PostgresServer) -> None:
    check(run_series(["postgresql"], postgres, print), sum(plant.in_sql for plant in PLANTS))


def check(outcomes: list[Outcome], planted: int) -> None:
    assert [outcome for outcome in outcomes if not outcome.right] == []
    assert sum(outcome.planted for outcome in outcomes) == planted >= 20
    assert sum(not outcome.planted for outcome in outcomes) == 3
