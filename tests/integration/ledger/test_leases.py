"""Leases: one owner at a time, and no commit of an owner who lost it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from sqlalchemy import select

from resources.ledger.engine import Ledger, open_ledger
from resources.ledger.leases import (
    LEASE_SECONDS,
    Lease,
    LeaseExpired,
    LeaseHeld,
    LeaseLost,
    acquire,
    fenced,
    held,
    push_expiry,
    release,
    renew,
    require_time_left,
)
from resources.ledger.schema import leases, ledger_info
from tests.integration.ledger.support import Racers, count
from tests.support.clock import FrozenClock

NAME = "batch:1"
LIMIT_S = 30
RACERS = 3
ROUNDS = 10
RACE = """
from resources.ledger.engine import open_ledger
from resources.ledger.leases import LeaseHeld, acquire
import os
opened = {}
def step(line):
    url, name = line.split(" ")
    if url not in opened:
        opened[url] = open_ledger(url)
    if name == "-":
        return "open"
    try:
        return str(acquire(opened[url], name, str(os.getpid())).token)
    except LeaseHeld:
        return "held"
"""


def committed_token(ledger: Ledger) -> int | None:
    with ledger.read() as connection:
        return connection.execute(select(leases.c.committed_token)).scalar_one()


def write_a_row(ledger: Ledger, lease: Lease, name: str) -> None:
    with fenced(ledger, lease) as connection:
        connection.execute(ledger_info.insert().values(name=name, value=""))


def test_a_free_lease_is_taken_with_the_first_token(ledger: Ledger) -> None:
    assert acquire(ledger, NAME, "one") == Lease(NAME, "one", 1)


def test_a_held_lease_is_refused_and_tells_who_holds_it(ledger: Ledger) -> None:
    acquire(ledger, NAME, "one")
    with pytest.raises(LeaseHeld, match="by one until 2030-01-02") as refusal:
        acquire(ledger, NAME, "other")
    assert refusal.value.owner == "one"


def test_leases_of_other_names_are_free(ledger: Ledger) -> None:
    acquire(ledger, NAME, "one")
    assert acquire(ledger, "batch:2", "other").token == 1


@pytest.mark.parametrize(
    ("seconds", "taken"),
    [
        pytest.param(LEASE_SECONDS - 1, False, id="just before its end"),
        pytest.param(LEASE_SECONDS, True, id="at its end"),
        pytest.param(LEASE_SECONDS + 1, True, id="after its end"),
    ],
)
def test_an_expired_lease_is_taken_over_with_a_higher_token(
    ledger: Ledger, frozen_clock: FrozenClock, seconds: int, taken: bool
) -> None:
    acquire(ledger, NAME, "one")
    frozen_clock.advance(seconds)
    if not taken:
        with pytest.raises(LeaseHeld):
            acquire(ledger, NAME, "other")
        return
    assert acquire(ledger, NAME, "other") == Lease(NAME, "other", 2)


def test_its_owner_takes_it_again_with_a_higher_token(ledger: Ledger) -> None:
    first = acquire(ledger, NAME, "one")
    assert acquire(ledger, NAME, "one").token == first.token + 1
    with pytest.raises(LeaseLost):
        write_a_row(ledger, first, "late")


def test_a_released_lease_is_free_and_tokens_go_on_rising(ledger: Ledger) -> None:
    with held(ledger, NAME, "one") as lease:
        assert lease.token == 1
    assert acquire(ledger, NAME, "other").token == 2


def test_a_block_that_raises_gives_its_lease_back(ledger: Ledger) -> None:
    with pytest.raises(ZeroDivisionError), held(ledger, NAME, "one"):
        raise ZeroDivisionError
    assert acquire(ledger, NAME, "other").token == 2


def test_a_renewed_lease_lasts(ledger: Ledger, frozen_clock: FrozenClock) -> None:
    lease = acquire(ledger, NAME, "one")
    frozen_clock.advance(LEASE_SECONDS - 1)
    renew(ledger, lease)
    frozen_clock.advance(LEASE_SECONDS - 1)
    with pytest.raises(LeaseHeld):
        acquire(ledger, NAME, "other")


def test_a_lost_lease_is_neither_renewed_nor_released(
    ledger: Ledger, frozen_clock: FrozenClock
) -> None:
    lost = acquire(ledger, NAME, "one")
    frozen_clock.advance(LEASE_SECONDS)
    acquire(ledger, NAME, "other")
    with pytest.raises(LeaseLost, match=r"one lost batch:1 \(token 1\)"):
        renew(ledger, lost)
    release(ledger, lost)
    with pytest.raises(LeaseHeld, match="by other"):
        acquire(ledger, NAME, "third")


def test_a_commit_stores_the_token_that_it_used(ledger: Ledger, frozen_clock: FrozenClock) -> None:
    first = acquire(ledger, NAME, "one")
    assert committed_token(ledger) is None
    write_a_row(ledger, first, "first")
    assert committed_token(ledger) == 1
    frozen_clock.advance(LEASE_SECONDS)
    second = acquire(ledger, NAME, "other")
    assert committed_token(ledger) == 1
    write_a_row(ledger, second, "second")
    assert committed_token(ledger) == second.token == 2


def test_the_late_commit_of_an_old_owner_is_refused(
    ledger: Ledger, frozen_clock: FrozenClock
) -> None:
    lost = acquire(ledger, NAME, "one")
    frozen_clock.advance(LEASE_SECONDS)
    acquire(ledger, NAME, "other")
    before = count(ledger, ledger_info)
    with pytest.raises(LeaseLost, match="nothing was written"):
        write_a_row(ledger, lost, "late")
    assert count(ledger, ledger_info) == before
    assert committed_token(ledger) is None


def test_a_lease_that_never_was_does_not_fence(ledger: Ledger) -> None:
    with pytest.raises(LeaseLost):
        write_a_row(ledger, Lease("batch:9", "one", 1), "forged")


def test_a_block_that_raises_stores_no_token(ledger: Ledger) -> None:
    lease = acquire(ledger, NAME, "one")
    with pytest.raises(ZeroDivisionError), fenced(ledger, lease):
        raise ZeroDivisionError
    assert committed_token(ledger) is None


def still_waits(future: Future[Lease]) -> bool:
    threading.Event().wait(0.3)
    return not future.done()


def test_a_take_over_waits_for_a_commit_under_way(
    ledger: Ledger, frozen_clock: FrozenClock
) -> None:
    lease = acquire(ledger, NAME, "one")
    with ThreadPoolExecutor(1) as pool:
        with fenced(ledger, lease) as connection:
            connection.execute(ledger_info.insert().values(name="in time", value=""))
            frozen_clock.advance(LEASE_SECONDS)
            take_over = pool.submit(acquire, ledger, NAME, "other")
            assert still_waits(take_over)
        assert take_over.result(LIMIT_S) == Lease(NAME, "other", 2)
    assert committed_token(ledger) == 1
    with pytest.raises(LeaseLost):
        write_a_row(ledger, lease, "late")


def test_a_fence_waits_for_a_take_over_under_way_and_then_refuses(ledger: Ledger) -> None:
    lease = acquire(ledger, NAME, "one")
    with ThreadPoolExecutor(1) as pool:
        with ledger.write() as connection:
            connection.execute(leases.update().values(token=2, owner="other"))
            late = pool.submit(write_a_row, ledger, lease, "late")
            threading.Event().wait(0.3)
            assert not late.done()
        with pytest.raises(LeaseLost):
            late.result(LIMIT_S)


def test_two_commits_under_one_lease_take_turns(ledger: Ledger) -> None:
    lease = acquire(ledger, NAME, "one")
    together = threading.Barrier(2)

    def commit(name: str) -> None:
        together.wait(LIMIT_S)
        with fenced(ledger, lease) as connection:
            threading.Event().wait(0.2)
            connection.execute(ledger_info.insert().values(name=name, value=""))

    before = count(ledger, ledger_info)
    with ThreadPoolExecutor(2) as pool:
        for end in [pool.submit(commit, name) for name in ("a", "b")]:
            end.result(LIMIT_S)
    assert count(ledger, ledger_info) == before + 2


def test_expiry_is_stored_in_the_ledgers_form(ledger: Ledger) -> None:
    acquire(ledger, NAME, "one", seconds=60)
    with ledger.read() as connection:
        row = connection.execute(select(leases)).one()
    assert row.acquired_at == ledger.now() == "2030-01-02T03:04:05.000000Z"
    assert row.expires_at == "2030-01-02T03:05:05.000000Z"


@pytest.fixture(scope="module")
def racers() -> Iterator[Racers]:
    """Return processes that take a lease at the same moment."""
    started = Racers(RACE, RACERS)
    yield started
    started.close()


def test_of_processes_that_race_for_a_new_lease_exactly_one_wins(
    ledger_url: str, racers: Racers
) -> None:
    open_ledger(ledger_url).close()
    assert set(racers.run(f"{ledger_url} -")) == {"open"}
    for number in range(ROUNDS):
        answers = racers.run(f"{ledger_url} batch:{number}")
        assert sorted(answers) == ["1", *["held"] * (RACERS - 1)]


def test_a_lease_that_ran_out_is_not_renewed(ledger: Ledger, frozen_clock: FrozenClock) -> None:
    """Whoever looked meanwhile may have found it free, and acted on that."""
    lease = acquire(ledger, "batch:1", "a", seconds=60)
    frozen_clock.advance(60)
    with pytest.raises(LeaseExpired):
        renew(ledger, lease)


def test_a_renewal_that_ran_out_before_it_was_committed_is_none(
    ledger: Ledger, frozen_clock: FrozenClock
) -> None:
    lease = acquire(ledger, "batch:1", "a", seconds=60)
    with ledger.write() as connection:
        until = push_expiry(connection, ledger, lease, seconds=60)
        frozen_clock.advance(60)
    with pytest.raises(LeaseExpired):
        require_time_left(ledger, lease, until)
