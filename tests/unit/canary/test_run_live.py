"""How long a live proof waits: never longer than it was told to."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pipeline_assets.canary import live
from pipeline_assets.canary.live import Reached, run_live
from pipeline_assets.canary.proof_place import ProofPlace
from pipeline_assets.versions import OpenVersion
from resources.clock import to_text
from resources.context import Context
from tests.support.clock import FrozenClock


def go(
    monkeypatch: pytest.MonkeyPatch, *, moving: int, retrying: int, due_in: timedelta | None
) -> tuple[Reached, list[float]]:
    """Wait for something for a minute, while every round comes to the same."""
    clock, slept = FrozenClock(), []
    due = None if due_in is None else to_text(clock() + due_in)
    standing = live._Standing(3, moving, retrying, ("running",), due, None)

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        assert len(slept) < 1000, "it waits for ever"
        clock.advance(seconds)

    for step in ("scan_declared", "parse_documents", "parser_settings"):
        monkeypatch.setattr(live, step, lambda *_: None)
    monkeypatch.setattr(live, "_advance", lambda *_: standing)
    version = SimpleNamespace(spec=SimpleNamespace(workload="w"))
    reached = run_live(
        cast(Context, SimpleNamespace(clock=clock)),
        cast(OpenVersion, version),
        cast(ProofPlace, cast(Any, None)),
        until=clock() + timedelta(minutes=1),
        sleep=sleep,
        tell=lambda _: None,
    )
    return reached, slept


@pytest.mark.parametrize(
    ("moving", "retrying"),
    [pytest.param(1, 0, id="a-job"), pytest.param(0, 1, id="another-attempt")],
)
def test_what_is_due_all_the_time_ends_with_the_time(
    monkeypatch: pytest.MonkeyPatch, moving: int, retrying: int
) -> None:
    reached, slept = go(monkeypatch, moving=moving, retrying=retrying, due_in=timedelta(seconds=-5))
    assert not reached.settled
    assert sum(slept) == 60


@pytest.mark.parametrize(
    ("moving", "retrying", "due_in", "settled", "waited"),
    [
        pytest.param(1, 0, timedelta(hours=1), False, 0, id="a-job-that-takes-longer"),
        pytest.param(1, 0, timedelta(seconds=45), False, 60, id="a-job-that-is-not-done-then"),
        pytest.param(0, 1, timedelta(hours=1), True, 0, id="an-attempt-that-is-due-later"),
        pytest.param(0, 0, None, True, 0, id="nothing-is-left"),
        pytest.param(1, 0, None, False, 0, id="nothing-goes-on"),
    ],
)
def test_how_long_is_waited(
    monkeypatch: pytest.MonkeyPatch,
    moving: int,
    retrying: int,
    due_in: timedelta | None,
    settled: bool,
    waited: int,
) -> None:
    reached, slept = go(monkeypatch, moving=moving, retrying=retrying, due_in=due_in)
    assert (reached.settled, sum(slept)) == (settled, waited)
