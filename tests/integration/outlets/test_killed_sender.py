"""A sender that is killed in the middle of its work: the next one goes on, with the same keys."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import timedelta
from typing import Any

import pytest

from tests.integration.outlets.conftest import SECRET, World
from tests.support.command import REPOSITORY, environment
from tests.support.outlet_receiver import Answer

SENDER = (
    "from resources.context import open_context\n"
    "from resources.settings import load_settings\n"
    "from pipeline_assets.outlets.deliver import send_changes\n"
    "with open_context(load_settings()) as context:\n"
    "    send_changes(context)\n"
)


def start(world: World) -> subprocess.Popen[bytes]:
    settings = world.context.settings
    return subprocess.Popen(
        [sys.executable, "-c", SENDER],
        cwd=REPOSITORY,
        env=environment(
            TALLYBOOK_STATE=str(settings.state_folder),
            TALLYBOOK_LEDGER_URL=settings.ledger_place,
            TALLYBOOK_OUTLET_WEBHOOK_URL=world.receiver.url,
            TALLYBOOK_OUTLET_WEBHOOK_SECRET=SECRET,
            TALLYBOOK_OUTLET_CONCURRENCY="2",
        ),
    )


@pytest.mark.slow
@pytest.mark.parametrize("taken", [True, False], ids=["after it was taken", "before"])
@pytest.mark.parametrize("at", [1, 40, 70, 99])
@pytest.mark.parametrize(
    "module_context",
    [
        pytest.param("sqlite", id="sqlite"),
        pytest.param("postgresql", id="postgresql", marks=pytest.mark.postgres),
    ],
    indirect=True,
)
def test_each_effect_once(world: World, at: int, taken: bool) -> None:
    for number in range(100):
        world.shelf.put(f"d{number}", f"v{number}")
    sender: list[subprocess.Popen[bytes]] = []

    def kill(number: int, message: dict[str, Any]) -> Answer:
        if number < at:
            return 204
        if number == at:
            os.kill(sender[0].pid, signal.SIGKILL)
        return "drop" if taken else "lose"

    world.receiver.answer = kill
    sender.append(start(world))
    assert sender[0].wait(60) == -signal.SIGKILL
    states = [state for _, _, _, state, _ in world.shelf.rows()]
    assert "due" in states

    world.receiver.answer = lambda _number, _message: 204
    world.shelf.clock.advance(timedelta(hours=1))
    assert world.send().delivered == states.count("due")
    holder = world.receiver.holder
    assert holder.held == world.shelf.visible()
    assert len(holder.effects) == 100, "each effect once"
    assert {state for _, _, _, state, _ in world.shelf.rows()} == {"delivered"}
