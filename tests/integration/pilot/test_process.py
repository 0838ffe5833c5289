"""The process of a step: its start, its end, and what is told of it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess

import pytest

from pipeline_assets.pilot import process
from pipeline_assets.pilot.errors import StepDied
from pipeline_assets.pilot.process import run_step
from pipeline_assets.pilot.steps import SCAN, Work
from tests.integration.pilot.support import PilotPlace

pytestmark = pytest.mark.slow


def interrupts_are_blocked() -> bool:
    return signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, set())


@pytest.fixture
def blocked() -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    yield
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


def test_an_interrupt_while_it_loads_is_no_traceback(
    place: PilotPlace, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    started = SpawnProcess.start

    def interrupted(self: SpawnProcess) -> None:
        started(self)
        assert self.pid is not None
        os.kill(self.pid, signal.SIGINT)

    monkeypatch.setattr(SpawnProcess, "start", interrupted)
    plan = place.plan("manuals-baseline-2")
    with pytest.raises(StepDied, match="exit status 0"):
        run_step(place.settings, Work(plan, {}), SCAN, "")
    assert capfd.readouterr().err == ""
    assert not interrupts_are_blocked(), "only while a process is started"


@pytest.mark.usefixtures("blocked")
def test_an_interrupt_that_came_while_it_loaded_ends_it_without_a_word(
    place: PilotPlace,
) -> None:
    plan = place.plan("manuals-baseline-2")
    ours, theirs = multiprocessing.get_context("spawn").Pipe(duplex=False)
    assert isinstance(theirs, Connection)
    # To this thread: another one, of whoever runs the tests, would not hold it back.
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)
    process._in_process(theirs, place.settings, Work(plan, {}), SCAN, "")
    assert not interrupts_are_blocked()
    theirs.close()
    with pytest.raises(EOFError):
        ours.recv()
    assert not (place.settings.state_folder / "ledger.sqlite").exists()
