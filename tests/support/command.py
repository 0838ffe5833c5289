"""The `tallybook` command in a process of its own, as a person would start it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
COMMAND = (sys.executable, "-m", "pipeline_assets.cli.app")


def environment(**more: str) -> dict[str, str]:
    """Return the present environment with the repository on the path, plus `more`."""
    return {**os.environ, "PYTHONPATH": str(REPOSITORY), "PYTHONWARNINGS": "ignore", **more}


def tallybook(
    *arguments: object, cwd: Path, timeout: float = 180, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run one command to its end in the folder `cwd`."""
    return subprocess.run(
        [*COMMAND, *(str(argument) for argument in arguments)],
        cwd=cwd,
        env=environment(**variables),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
    )


def json_lines(text: str) -> list[dict[str, Any]]:
    """Return the JSON objects of an output, one a line; any other line fails."""
    # Not splitlines: it also cuts at characters that may stand inside a value.
    return [json.loads(line) for line in text.split("\n") if line]


def one_json(text: str) -> dict[str, Any]:
    """Return the only JSON object of an output."""
    (value,) = json_lines(text)
    return value
