"""Result files that came in when their batch was complete, whatever the clock said meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pytest

from tests.integration.recovery.support import Retries
from tests.integration.recovery.test_late_results import look_again, publish, result_file
from tests.integration.stages.support import Shop
from tests.support.clock import FrozenClock
from tests.support.recovery_walk import the_audit_finds_nothing

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("hours", [0, 1, -1, -48])
@pytest.mark.parametrize(
    "kept",
    [
        pytest.param((0,), id="for one that waits"),
        pytest.param((2,), id="beside an answer"),
        pytest.param((0, 2), id="both"),
    ],
)
def test_what_came_later_is_no_finding(
    shop: Shop,
    frozen_clock: FrozenClock,
    monkeypatch: pytest.MonkeyPatch,
    kept: Sequence[int],
    hours: int,
) -> None:
    retries = Retries(shop, frozen_clock, monkeypatch)
    retries.start(["missing"], ["missing"], ["good"])
    retries.step()
    frozen_clock.advance(timedelta(hours=hours))
    result_file(retries, 1, *kept)
    look_again(retries, 1)
    publish(retries)
    the_audit_finds_nothing(shop.context)
    retries.again()
    the_audit_finds_nothing(shop.context)
