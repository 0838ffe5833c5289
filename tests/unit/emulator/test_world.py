"""The virtual clock, ids and the call log."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from tests.provider_emulator.world import VirtualClock, World


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    made.close()


def test_clock_is_real_time_plus_what_it_was_moved_by() -> None:
    clock = VirtualClock()
    assert abs(clock.now() - datetime.now(UTC)) < timedelta(seconds=5)
    clock.advance(86_400)
    clock.advance(1.5)
    assert abs(clock.now() - datetime.now(UTC) - timedelta(seconds=86_401.5)) < timedelta(seconds=5)
    with pytest.raises(ValueError, match="go back"):
        clock.advance(-1)


def test_ids_differ_and_are_the_same_in_every_run(world: World) -> None:
    again = World()
    ids = [world.new_id("batch_") for _ in range(50)]
    assert len(set(ids)) == 50
    assert ids == [again.new_id("batch_") for _ in range(50)]
    assert all(one.startswith("batch_") and len(one) == 30 for one in ids)
    again.close()


def test_calls_are_counted(world: World) -> None:
    world.log("openai", "create", job_id="j")
    world.log("openai", "list")
    assert world.count_calls("openai", "create") == 1
    assert world.calls[0].facts == {"job_id": "j"}


def test_folder_is_gone_after_close() -> None:
    world = World()
    (world.folder / "big").write_bytes(b"x")
    world.close()
    assert not world.folder.exists()
