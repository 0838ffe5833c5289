"""A real `dagster dev` for a test that lives: started, asked, waited for, and ended by its process.

Beside `dagster_ui.py`, which starts it, here is what tests of automation need: a query with
variables, waiting until something is so, and the state of the switches.
"""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline_assets.cli.dagster_instance import open_instance
from resources.settings import Settings
from tests.support.command import tallybook
from tests.support.dagster_ui import UserInterface, UserInterfaceDown, place_of, user_interface

_SWITCHES = """
query($where: RepositorySelector!) {
  repositoryOrError(repositorySelector: $where) {
    ... on Repository {
      sensors { name sensorState { status } }
      schedules { name scheduleState { status } }
    }
  }
}
"""
WHERE = {"repositoryLocationName": "tallybook", "repositoryName": "__repository__"}


class NotInTime(AssertionError):
    """Something did not become so."""


@dataclass(frozen=True)
class LivingDagster:
    """A running `dagster dev`, with the state folder that it works on.

    Attributes:
        ui: its web server.
        settings: whose state, sources and versions it uses.
        log: where its output goes.
    """

    ui: UserInterface
    settings: Settings
    log: Path

    def graphql(self, query: str, variables: dict[str, Any] | None = None) -> dict[str, Any]:
        """Ask its GraphQL interface.

        Raises:
            UserInterfaceDown: the query was refused.
        """
        request = urllib.request.Request(
            f"{self.ui.url}/graphql",
            data=json.dumps({"query": query, "variables": variables or {}}).encode(),
            headers={"content-type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            content = json.load(answer)
        if content.get("errors"):
            raise UserInterfaceDown(str(content["errors"]))
        return content["data"]

    def switches(self) -> dict[str, str]:
        """Sensor or schedule → RUNNING or STOPPED, as the user interface shows it."""
        found = self.graphql(_SWITCHES, {"where": WHERE})["repositoryOrError"]
        sensors = {each["name"]: each["sensorState"]["status"] for each in found["sensors"]}
        return sensors | {
            each["name"]: each["scheduleState"]["status"] for each in found["schedules"]
        }

    def runs(self) -> list[dict[str, Any]]:
        """Every run, newest first: id, jobName, status, tags."""
        rows = self.graphql(
            "{ runsOrError(limit: 200) { ... on Runs { results { "
            "id jobName status tags { key value } } } } }"
        )["runsOrError"]["results"]
        return [row | {"tags": {tag["key"]: tag["value"] for tag in row["tags"]}} for row in rows]

    def command(self, *arguments: str, expected: tuple[int, ...] = (0,)) -> str:
        """What a command prints on the same state folder."""
        done = tallybook(*arguments, cwd=self.log.parent, timeout=180, **place_of(self.settings))
        if done.returncode not in expected:
            raise NotInTime(f"{arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done.stdout

    def wait_for(self, what: str, done: Callable[[], bool], seconds: float = 120.0) -> float:
        """Wait until something is so; how long that took.

        Raises:
            NotInTime: it did not become so; says the end of the log.
        """
        started = time.monotonic()
        while not done():
            if time.monotonic() - started > seconds:
                tail = self.log.read_text(encoding="utf-8", errors="replace")[-3000:]
                raise NotInTime(f"{what}: not within {seconds:.0f} seconds\n{tail}")
            time.sleep(1)
        return time.monotonic() - started


@contextmanager
def living_dagster(settings: Settings, log: Path) -> Iterator[LivingDagster]:
    """Run `dagster dev` on a state folder for the length of a block; the home is made first.

    Raises:
        UserInterfaceDown: it did not come up.
    """
    with open_instance(settings):
        pass
    with user_interface(settings, log) as ui:
        yield LivingDagster(ui, settings, log)
