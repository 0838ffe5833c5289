"""One worker process from the parent's side: start, hand over, receive, end.

Knows processes, sockets and resource figures; which document goes where is `pool`'s business.
"""

from __future__ import annotations

import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from pipeline_assets.ingest.parsing import protocol
from pipeline_assets.ingest.parsing.model import ParseLimits

Command: TypeAlias = Callable[[int, ParseLimits], list[str]]
"""Socket descriptor and limits to a command line."""

_WORKER_MODULE: Final = "pipeline_assets.ingest.parsing.worker"
_RECEIVE_BYTES: Final = 2**20
_POLL_SECONDS: Final = 0.005
_PASSED_ON: Final = ("LD_LIBRARY_PATH", "PYTHONHOME", "SYSTEMROOT")
"""What an interpreter may need to start; nothing of ours and nobody's keys."""


@dataclass(frozen=True)
class Ended:
    """How a process ended.

    Attributes:
        status: As `subprocess` has it: negative for a signal.
        killed: The parent had to end it.
        cpu_seconds: Of its whole life.
        peak_rss_bytes: Of its whole life; 0 when it is not known.
    """

    status: int
    killed: bool
    cpu_seconds: float
    peak_rss_bytes: int


def worker_command(socket_descriptor: int, limits: ParseLimits) -> list[str]:
    """The worker's command line. The flags keep user site, byte code and the current folder out."""
    return [
        sys.executable,
        *("-s", "-B", "-P", "-m", _WORKER_MODULE),
        str(socket_descriptor),
        str(os.getpid()),
        protocol.limits_to_argument(limits),
    ]


def worker_environment(inherited: Mapping[str, str]) -> dict[str, str]:
    """The worker's environment: how to import this package, one thread, one memory arena.

    Each malloc arena reserves 64 MiB of the address space that the memory limit counts.
    """
    root = str(Path(__file__).resolve().parents[3])
    python_path = [root, *filter(None, inherited.get("PYTHONPATH", "").split(os.pathsep))]
    return {
        **{name: inherited[name] for name in _PASSED_ON if name in inherited},
        "PYTHONPATH": os.pathsep.join(python_path),
        "PYTHONHASHSEED": "0",
        "LANG": "C.UTF-8",
        "MALLOC_ARENA_MAX": "1",
        "OMP_THREAD_LIMIT": "1",
        "RAYON_NUM_THREADS": "1",
    }


class WorkerProcess:
    """A started worker and the parent's end of its socket."""

    def __init__(self, limits: ParseLimits, command: Command = worker_command) -> None:
        """Starts the process.

        Args:
            limits: Given to the worker, which sets them itself.
            command: What to run, for tests that need a worker which misbehaves.

        Raises:
            OSError: The system starts no process or has no descriptor left.
        """
        self.channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self._frames = protocol.FrameBuffer()
        # Until it executes its own program the child counts as large as its parent, and the
        # kernel keeps the larger figure: one no greater than this says nothing.
        self._inherited_peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        try:
            self._process = subprocess.Popen(  # noqa: S603 - our own module, no shell
                command(theirs.fileno(), limits),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                close_fds=True,
                start_new_session=True,
                cwd="/",
                env=worker_environment(os.environ),
            )
        except OSError:
            self.channel.close()
            raise
        finally:
            theirs.close()
        self.channel.setblocking(False)

    @property
    def pid(self) -> int:
        """The process id, valid until `end`."""
        return self._process.pid

    def send(self, request: protocol.Request, descriptor: int) -> None:
        """Hands over a document's descriptor; OSError when the worker is gone."""
        socket.send_fds(self.channel, [protocol.encode(request)], [descriptor])

    def receive(self) -> list[protocol.FromWorker] | None:
        """The messages that arrived; None when the worker closed its end.

        Raises:
            protocol.ProtocolError: It sent what no sound worker sends.
        """
        try:
            data = self.channel.recv(_RECEIVE_BYTES)
        except BlockingIOError:
            return []
        except ConnectionError:
            return None
        if not data:
            return None
        return [protocol.decode_reply(body) for body in self._frames.feed(data)]

    def end(self, grace_seconds: float = 0.0) -> Ended:
        """Waits for the process to end, killing it when the grace is over."""
        self.channel.close()
        until = time.monotonic() + grace_seconds
        while time.monotonic() < until:
            ended = self._collect(os.WNOHANG, killed=False)
            if ended is not None:
                return ended
            time.sleep(_POLL_SECONDS)
        # The process is not collected yet, so its id cannot have been given to another one.
        os.kill(self._process.pid, signal.SIGKILL)
        return self._collect(0, killed=True) or Ended(-signal.SIGKILL, True, 0.0, 0)

    def _collect(self, options: int, *, killed: bool) -> Ended | None:
        try:
            pid, status, usage = os.wait4(self._process.pid, options)
        except ChildProcessError:
            # Somebody else in this process collected it, and with it the cause of death.
            self._process.returncode = -signal.SIGKILL
            return Ended(-signal.SIGKILL, killed, 0.0, 0)
        if pid == 0:
            return None
        # `Popen` would otherwise wait again, and warn, when it is dropped.
        self._process.returncode = os.waitstatus_to_exitcode(status)
        cpu = usage.ru_utime + usage.ru_stime
        peak = usage.ru_maxrss if usage.ru_maxrss > self._inherited_peak else 0
        return Ended(self._process.returncode, killed, cpu, peak * 1024)
