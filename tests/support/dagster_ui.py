"""Dagster's user interface on a state folder of a test, as `make ui` starts it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline_assets.cli.dagster_instance import instance_home
from resources.settings import Settings

REPOSITORY = Path(__file__).resolve().parent.parent.parent
START_LIMIT_S = 100.0
STOP_LIMIT_S = 20.0
POLL_S = 0.5


class UserInterfaceDown(RuntimeError):
    """The user interface did not come up, or a query was refused: says the end of its log."""


@dataclass(frozen=True)
class UserInterface:
    """A running user interface.

    Attributes:
        url: where it is, without a slash at the end.
    """

    url: str

    def query(self, text: str) -> dict[str, Any]:
        """Ask its GraphQL interface.

        Raises:
            UserInterfaceDown: the query was refused.
        """
        request = urllib.request.Request(
            f"{self.url}/graphql",
            data=json.dumps({"query": text}).encode(),
            headers={"content-type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            content = json.load(answer)
        if content.get("errors"):
            raise UserInterfaceDown(str(content["errors"]))
        return content["data"]

    def location_is_loaded(self) -> bool:
        """Whether the code location is there, without an error."""
        found = self.query(
            "{ repositoriesOrError { __typename "
            "... on RepositoryConnection { nodes { location { name } } } } }"
        )["repositoriesOrError"]
        names = [node["location"]["name"] for node in found.get("nodes", [])]
        return names == ["tallybook"]


def place_of(settings: Settings) -> dict[str, str]:
    """The variables that mean the settings' state folder, sources and versions."""
    place = {"TALLYBOOK_STATE": str(settings.state_folder)}
    if settings.source_given:
        place["TALLYBOOK_SOURCE"] = str(settings.source_folder)
        place["TALLYBOOK_SOURCE_NAME"] = settings.source_name
    else:
        place["TALLYBOOK_SOURCES"] = str(settings.sources_file)
    if settings.specs is not None:
        place["TALLYBOOK_SPECS"] = str(settings.specs)
    return place


@contextmanager
def user_interface(settings: Settings, log: Path) -> Iterator[UserInterface]:
    """Run webserver, daemon and code server on the settings' state folder.

    Args:
        settings: whose state, sources and versions are used; the home must be made already.
        log: where the output goes.

    Raises:
        UserInterfaceDown: it did not come up.
    """
    port = _free_port()
    with log.open("wb") as output:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "dagster", "dev", "--workspace", "workspace.yaml"),
                *("--host", "127.0.0.1", "--port", str(port)),
            ],
            cwd=REPOSITORY,
            env={
                **os.environ,
                "DAGSTER_HOME": str(instance_home(settings)),
                **place_of(settings),
            },
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,  # so that everything it starts can be ended with it
        )
    try:
        ui = UserInterface(f"http://127.0.0.1:{port}")
        _wait_until_loaded(ui, process, log)
        yield ui
    finally:
        _stop(process)


def _wait_until_loaded(ui: UserInterface, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_LIMIT_S
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(urllib.error.URLError, OSError):
            if ui.location_is_loaded():
                return
        time.sleep(POLL_S)
    raise UserInterfaceDown(log.read_text(encoding="utf-8", errors="replace")[-3000:])


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End it as Ctrl-C does, and whatever is left of its process group by force."""
    process.send_signal(signal.SIGINT)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(STOP_LIMIT_S)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
