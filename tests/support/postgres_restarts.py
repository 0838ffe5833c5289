"""A throw-away PostgreSQL that is stopped and started again on command, with its data and its port.

Run as a program it serves like `postgres_keeper.py`, as long as the pipe on its standard input is
open, and obeys one word a line: `fast` ends every session in good order, `immediate` is a crash of
the server that recovers from its log. What the server has written survives either, since the
machine itself goes on.

Usage: `python -m tests.support.postgres_restarts BIN_DIR`.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

from sqlalchemy.engine import URL

from tests.support.postgres import (
    DRIVER,
    PostgresServer,
    PostgresStartError,
    PostgresUnavailableError,
    local_bin_dirs,
    wheel_bin_dirs,
)
from tests.support.postgres_keeper import (
    SERVER_OPTIONS,
    START_LIMIT_S,
    Account,
    Server,
    ServerStartError,
    reachable_binaries,
    start,
    stop,
    temporary_base,
    unprivileged_account,
)

REPOSITORY = Path(__file__).resolve().parents[2]
StopMode = Literal["fast", "immediate"]
SIGNALS = {"fast": signal.SIGINT, "immediate": signal.SIGQUIT}
STOP_LIMIT_S = 30.0


class RestartableServer:
    """The program below, from the test's side.

    Attributes:
        server: the same address before and after a restart.
    """

    def __init__(self, process: subprocess.Popen[str], server: PostgresServer) -> None:
        self._process = process
        self.server = server

    def restart(self, mode: StopMode) -> None:
        """Stop it and start it again; back when it answers."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(f"{mode}\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        if "error" in answer:
            raise PostgresStartError(answer["error"])


@contextmanager
def restartable_server() -> Iterator[RestartableServer]:
    """Run a cluster of its own from the first binaries that work.

    Raises:
        PostgresUnavailableError: none works.
    """
    attempts = []
    for bin_dir in [*local_bin_dirs(), *wheel_bin_dirs()]:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.postgres_restarts", str(bin_dir)],
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert process.stdin is not None and process.stdout is not None
        try:
            line = process.stdout.readline()
            answer: dict[str, Any] = json.loads(line) if line else {"error": "it said nothing"}
            if "error" in answer:
                attempts.append(f"{bin_dir}: {answer['error']}")
                continue
            url = URL.create(
                DRIVER, "postgres", answer["password"], "127.0.0.1", answer["port"], "postgres"
            )
            yield RestartableServer(process, PostgresServer(url, str(bin_dir), answer["pid"]))
            return
        finally:
            process.stdin.close()
            process.wait(STOP_LIMIT_S)
            process.stdout.close()
    raise PostgresUnavailableError(attempts)


def main(arguments: list[str]) -> int:
    """Serve until standard input ends; restart on command."""
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    account = unprivileged_account()
    home = Path(tempfile.mkdtemp(prefix="tallybook-pg-", dir=temporary_base(account)))
    server = None
    try:
        if account is not None:
            os.chown(home, account.uid, account.gid)
        bin_dir = reachable_binaries(Path(arguments[0]), home, account)
        server = start(bin_dir, home, account)
        _say({"port": server.port, "password": server.password, "pid": server.process.pid})
        for line in sys.stdin:
            server = _again(server, bin_dir, home, account, line.strip())
            _say({"pid": server.process.pid})
    except ServerStartError as error:
        _say({"error": str(error)})
        return 1
    finally:
        if server is not None:
            stop(server.process)
        shutil.rmtree(home, ignore_errors=True)
    return 0


def _again(server: Server, bin_dir: Path, home: Path, account: Account | None, mode: str) -> Server:
    server.process.send_signal(SIGNALS[mode])
    server.process.wait(STOP_LIMIT_S)
    command = [str(bin_dir / "postgres"), "-D", str(home / "data"), "-p", str(server.port)]
    for option in SERVER_OPTIONS:
        command += ["-c", option]
    log = home / "restarted.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=home,
            env={"PATH": os.environ.get("PATH", ""), "HOME": str(home), "LC_ALL": "C"},
            user=None if account is None else account.uid,
            group=None if account is None else account.gid,
            extra_groups=None if account is None else [],
        )
    deadline = time.monotonic() + START_LIMIT_S
    while time.monotonic() < deadline and process.poll() is None:
        if b"ready to accept connections" in log.read_bytes():
            with suppress(OSError), socket.create_connection(("127.0.0.1", server.port), 1):
                return Server(server.port, server.password, process)
        time.sleep(0.02)
    stop(process)
    raise ServerStartError(f"it did not start again: {log.read_text(errors='replace')[-2000:]}")


def _say(message: dict[str, object]) -> None:
    print(json.dumps(message), flush=True)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
