"""Dying at a chosen statement: nothing that comes after it reaches the database.

Run as a program it publishes, promotes or rolls back in forks of itself that are killed for real.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import event

from pipeline_assets.publish.promote import promote
from pipeline_assets.publish.publish_accepted import publish_accepted
from pipeline_assets.publish.rollback import rollback_version
from pipeline_assets.versions import OpenVersion, open_version
from resources.context import Context, open_context
from resources.settings import load_settings
from tests.integration.publish.support import TWO

OPERATIONS: dict[str, Callable[[Context, OpenVersion], object]] = {
    "publish": publish_accepted,
    "promote": lambda context, version: promote(context, version, "for the test"),
    "rollback": lambda context, version: rollback_version(
        context, version.version_no, "for the test"
    ),
}


class Killed(BaseException):
    """The process is gone."""


def give_up() -> None:
    """Die as a test can survive it."""
    raise Killed


def kill_this_process() -> None:
    """Die as a process does that somebody kills."""
    os.kill(os.getpid(), signal.SIGKILL)


class Executioner:
    """Counts what is sent to the database; from a certain one on, each ends in death."""

    def __init__(self, die_at: int | None, die: Callable[[], None] = give_up) -> None:
        self.sent = 0
        self._die_at = die_at
        self._die = die

    def look(self, *_: object, **__: object) -> None:
        """One more statement, or a commit."""
        self.sent += 1
        if self._die_at is not None and self.sent >= self._die_at:
            self._die()


@contextmanager
def watched(context: Context, executioner: Executioner) -> Iterator[None]:
    """Every statement and commit on the ledger for the length of a block, bulk ones included."""
    engine, kind = context.ledger.engine, type(context.ledger.dialect)
    driver: Any = vars(kind)["_driver"]

    def counted(connection: object) -> object:
        executioner.look()
        return driver.__func__(connection)

    for name in ("before_cursor_execute", "commit"):
        event.listen(engine, name, executioner.look)
    kind._driver = staticmethod(counted)  # pyright: ignore[reportAttributeAccessIssue]
    try:
        yield
    finally:
        kind._driver = driver  # pyright: ignore[reportAttributeAccessIssue]
        for name in ("before_cursor_execute", "commit"):
            event.remove(engine, name, executioner.look)


class Reaper:
    """The program below, from the test's side."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def die(self, **order: Any) -> int:
        """Do an operation in a fork that dies; the signal that ended it, 0 if it lived."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


@contextmanager
def reaper() -> Iterator[Reaper]:
    """Start the program for the length of a block."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.integration.publish.killing"],
        cwd=Path(__file__).resolve().parents[3],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield Reaper(process)
    finally:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.close()
        process.wait(30)
        process.stdout.close()


def _operate(order: dict[str, Any]) -> None:
    moment = datetime.fromisoformat(order["now"])
    settings = load_settings(
        state=Path(order["state"]), ledger_url=order["ledger_url"], source_name="shop"
    ).model_copy(update={"specs": Path(order["specs"])})
    executioner = Executioner(order["die_at"], kill_this_process)
    with open_context(settings, clock=lambda: moment) as context:
        version = open_version(context, TWO)
        with watched(context, executioner):
            OPERATIONS[order["operation"]](context, version)


def _main() -> None:
    """Fork for each order: importing once is most of the time that a process takes."""
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            _operate(json.loads(line))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        print(os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0, flush=True)


if __name__ == "__main__":
    _main()
