"""The process that parses: limits itself, ties its life to the parent, then serves.

Started as `python -m pipeline_assets.ingest.parsing.worker SOCKET PARENT LIMITS`. Only the
standard library is imported before the memory limit stands; the serving loop is `service`.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import sys
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
_OPEN_FILES: Final = 64


def main(arguments: list[str]) -> int:
    """Serves the parent until it closes the socket.

    Args:
        arguments: Descriptor of the socket, process id of the parent, limits as JSON.
    """
    socket_descriptor, parent, limits = int(arguments[0]), int(arguments[1]), arguments[2]
    die_with(parent)
    restrict(json.loads(limits)["memory_bytes"])
    # Native libraries load here, under the limits above.
    from pipeline_assets.ingest.parsing.service import serve

    return serve(socket_descriptor, limits)


def die_with(parent: int) -> None:
    """Ends this process when the parent's thread that started it ends, however that happens.

    Linux only; elsewhere the closed socket ends an idle worker and the CPU limit a busy one.
    """
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    # The parent may have died before the request; then somebody else adopted this process.
    if os.getppid() != parent:
        os._exit(0)


def restrict(memory_bytes: int) -> None:
    """Bounds memory; forbids core dumps, writing files and opening many."""
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(_OPEN_FILES, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
