"""The provider emulator inside a test process: one server in a thread, one world to look into."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from starlette.types import ASGIApp

from tests.provider_emulator.environment import environment
from tests.provider_emulator.server import EmulatorServer, base_url, build_app, listen
from tests.provider_emulator.world import World

STOP_LIMIT_S = 10.0


class EmulatorBroken(AssertionError):
    """The emulator itself failed: a test that saw its answers proves nothing."""


class RunningEmulator:
    """A started emulator.

    Attributes:
        base_url: `http://127.0.0.1:PORT`.
        world: what it knows; tests move its clock, plant faults and read what was run.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.base_url = world.base_url

    def environment(self) -> dict[str, str]:
        """Return the variables that send every SDK to this emulator."""
        return environment(self.base_url)

    def use(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Set these variables for the rest of the test."""
        for name, value in self.environment().items():
            monkeypatch.setenv(name, value)


@contextmanager
def serving(app: ASGIApp) -> Iterator[str]:
    """Serve an application on a free loopback port while the block runs; give its address."""
    with listen() as listener:
        server = EmulatorServer(app)
        thread = threading.Thread(
            target=asyncio.run, args=(server.serve([listener]),), name="emulator", daemon=True
        )
        thread.start()
        try:
            yield base_url(listener)
        finally:
            server.stop()
            thread.join(STOP_LIMIT_S)


@contextmanager
def running_emulator() -> Iterator[RunningEmulator]:
    """Serve a fresh world while the block runs.

    Raises:
        EmulatorBroken: an error inside the emulator, told when the block ends without another.
    """
    world = World()
    try:
        with serving(build_app(world)) as url:
            world.base_url = url
            yield RunningEmulator(world)
    finally:
        world.close()
    if world.errors:
        raise EmulatorBroken(f"the emulator itself failed: {world.errors[0]!r}") from world.errors[
            0
        ]
