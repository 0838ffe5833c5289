"""A program that does each order in a fork of its own, which is meant to die of it.

Belongs here: both sides of that: the program's loop, and starting and asking it. Does not belong
here: what an order means (the modules that are run as the program).

Importing once is most of the time that a process takes; a fork has it done.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
LONGEST_END_S = 30
"""How long the program may take to end once nobody asks it any more."""


class DyingForks:
    """The program, from the test's side."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def die(self, **order: Any) -> int:
        """Do an order in a fork; the signal that ended it, 0 if it lived."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


@contextmanager
def dying_forks(module: str) -> Iterator[DyingForks]:
    """Start a module that serves orders (`serve_orders`) for the length of a block."""
    process = subprocess.Popen(
        [sys.executable, "-m", module],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield DyingForks(process)
    finally:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.close()
        process.wait(LONGEST_END_S)
        process.stdout.close()


def serve_orders(work: Callable[[dict[str, Any]], None]) -> None:
    """Fork for each order on standard input, and say by which signal the fork ended."""
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            work(json.loads(line))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        print(os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0, flush=True)
