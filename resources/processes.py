"""Who a process is, so that another one can tell later whether it still runs.

Belongs here: the identity of a process on its host, and the question whether it is alive. Does
not belong here: what a dead process left behind (`pipeline_assets/cli/leftover_runs.py`).
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
_STATE_FIELD = 0
_START_FIELD = 19
"""Places in `/proc/<pid>/stat` after the name in brackets (proc(5): fields 3 and 22)."""


@dataclass(frozen=True)
class ProcessIdentity:
    """A process that another one can find again.

    Attributes:
        pid: its number, which the host gives away again after its end.
        host: the host's name; numbers of another host mean nothing here.
        started: boot and moment of its start, which tell two holders of one number apart;
            empty where the system does not say.
    """

    pid: int
    host: str
    started: str


def this_process() -> ProcessIdentity:
    """The identity of the calling process."""
    pid = os.getpid()
    return ProcessIdentity(pid, socket.gethostname(), _started(pid) or "")


def is_alive(process: ProcessIdentity) -> bool | None:
    """Whether `process` still runs; None if it ran on another host, where nobody can look."""
    if process.host != socket.gethostname():
        return None
    try:
        os.kill(process.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        # Somebody else's process has the number; whether it is ours is told by its start.
        pass
    started = _started(process.pid)
    if started is None:
        return False
    return not process.started or not started or started == process.started


def _started(pid: int) -> str | None:
    """Boot and start of a process; empty without `/proc`, None for one that has ended."""
    if not (PROC / "self").exists():
        return ""
    try:
        # The name may hold spaces and brackets; what follows its last bracket is regular.
        fields = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
        boot = (PROC / "sys/kernel/random/boot_id").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # A zombie has ended; only its parent has not looked yet.
    return None if fields[_STATE_FIELD] in "ZX" else f"{boot}:{fields[_START_FIELD]}"
