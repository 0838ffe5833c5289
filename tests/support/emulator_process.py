"""A provider emulator in a process of its own, for what runs in several processes.

Belongs here: starting it, its address, ending it. Does not belong here: one inside a test
(`emulator.py`).
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


@contextmanager
def emulator_process(module: str, *arguments: str) -> Iterator[str]:
    """Run a module that serves the emulator; its address.

    Args:
        module: prints the variables for the SDKs, as `tests.provider_emulator` does.
        arguments: of its command line.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        for line in process.stdout:
            if "OPENAI_BASE_URL=" in line:
                url = line.split("=", 1)[1].strip().strip("'\"")
                yield url.removesuffix("/openai/v1")
                return
        raise RuntimeError("the emulator did not start")
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()
