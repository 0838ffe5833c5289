"""Dying at a chosen statement: nothing that comes after it reaches the database.

Run as a program it publishes, promotes or rolls back in forks of itself that are killed for real.
"""

from __future__ import annotations

import os
import signal
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
from tests.support.dying_forks import serve_orders

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


if __name__ == "__main__":
    serve_orders(_operate)
