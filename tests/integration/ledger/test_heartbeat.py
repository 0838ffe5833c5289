"""A long step keeps its lease by beating; one that does not is refused at the commit."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from resources.ledger.engine import Ledger, open_ledger
from resources.ledger.leases import (
    Heartbeat,
    LeaseExpired,
    LeaseLost,
    acquire,
    fenced,
)
from resources.ledger.schema import ledger_info
from tests.support.clock import FrozenClock


@pytest.fixture
def ledger(ledger_url: str, frozen_clock: FrozenClock) -> Iterator[Ledger]:
    opened = open_ledger(ledger_url, clock=frozen_clock)
    yield opened
    opened.close()


def _commit(ledger: Ledger, lease: object) -> None:
    with fenced(ledger, lease) as connection:  # pyright: ignore[reportArgumentType]
        connection.execute(ledger_info.insert().values(name="mark", value="1"))


def _marks(ledger: Ledger) -> int:
    with ledger.read() as connection:
        found = connection.exec_driver_sql("SELECT COUNT(*) FROM ledger_info WHERE name = 'mark'")
        return found.scalar_one()


def test_an_expired_lease_may_not_commit_though_nobody_took_it(
    ledger: Ledger, frozen_clock: FrozenClock
) -> None:
    lease = acquire(ledger, "step", "one", seconds=60)
    frozen_clock.advance(61)
    with pytest.raises(LeaseExpired, match="ran out"):
        _commit(ledger, lease)
    assert _marks(ledger) == 0


def test_a_beating_step_may_commit_after_any_time(
    ledger: Ledger, frozen_clock: FrozenClock
) -> None:
    lease = acquire(ledger, "step", "one", seconds=60)
    heart = Heartbeat(ledger, lease, seconds=60)
    for _ in range(20):
        frozen_clock.advance(25)
        heart.beat()
    _commit(ledger, lease)
    assert _marks(ledger) == 1


def test_a_beat_before_it_is_due_writes_nothing(ledger: Ledger, frozen_clock: FrozenClock) -> None:
    lease = acquire(ledger, "step", "one", seconds=60)
    heart = Heartbeat(ledger, lease, seconds=60)
    frozen_clock.advance(10)
    heart.beat()
    frozen_clock.advance(51)
    with pytest.raises(LeaseExpired):
        _commit(ledger, lease)


def test_a_beat_notices_that_the_lease_was_taken_over(
    ledger: Ledger, frozen_clock: FrozenClock
) -> None:
    lease = acquire(ledger, "step", "one", seconds=60)
    heart = Heartbeat(ledger, lease, seconds=60)
    frozen_clock.advance(61)
    acquire(ledger, "step", "two", seconds=60)
    with pytest.raises(LeaseLost):
        heart.beat()
