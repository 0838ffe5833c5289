"""Connecting to somebody else's database, for reading, and what may be told of its errors.

Here: URLs, engines, the reading transaction, errors in closed wording. Not here: statements
(`sql_statements`) and rows (`sql_table`). A URL holds a password: no message holds a URL.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import URL, Connection, Engine, create_engine, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from resources.ledger.engine import has_stray_at, normalise_url
from resources.ledger.errors import UnsupportedDatabase

_BUSY_SECONDS = 30
_CONNECT_SECONDS = 10
# What a statement names wrongly is said by the database; what rows hold must not be.
_SQLITE_NAMES = ("no such ", "near ", "ambiguous column", "incomplete input", "unrecognized token")
_POSTGRES_NO_TABLE = ("42P01", "3F000")
_POSTGRES_SESSION = (
    "SELECT set_config('TimeZone', 'UTC', true), set_config('DateStyle', 'ISO, YMD', true), "
    "set_config('IntervalStyle', 'iso_8601', true), set_config('bytea_output', 'hex', true)"
)


class NoDatabase(Exception):
    """The variable or the file of a database is not there."""


class UnusableDatabase(Exception):
    """What the variable holds cannot be connected to."""


def database_url(environ: Mapping[str, str], variable: str) -> URL:
    """The URL in an environment variable.

    Raises:
        NoDatabase: the variable is not set.
        UnusableDatabase: it holds no URL.
    """
    given = environ.get(variable, "")
    example = "postgresql://user:password@host/database"
    if not given:
        raise NoDatabase(
            f"the environment variable {variable} is not set; expected the URL of its database, as "
            f"in {example}. Set it where Tallybook runs"
        )
    try:
        url = make_url(given)
    except (ArgumentError, ValueError):
        # Without its cause, which may quote a piece of the URL.
        raise UnusableDatabase(
            f"the environment variable {variable} holds no database URL; expected one as in "
            f"{example}"
        ) from None
    if has_stray_at(url):
        raise UnusableDatabase(
            f"the environment variable {variable} holds a URL with more than one '@'; expected one "
            "in front of the host. Write an '@' in a user or a password as %40"
        )
    try:
        return make_url(normalise_url(given))
    except UnsupportedDatabase:
        return url


def engine_for(url: URL) -> Engine:
    """An engine that keeps no connection and tells no values; nothing is connected yet.

    Raises:
        NoDatabase: there is no such SQLite file.
        UnusableDatabase: the database has no driver here.
    """
    backend = url.get_backend_name()
    if backend == "sqlite":
        return create_engine(
            "sqlite://", creator=_opener(url), poolclass=NullPool, hide_parameters=True
        )
    arguments = {"connect_timeout": _CONNECT_SECONDS} if backend == "postgresql" else {}
    try:
        return create_engine(url, poolclass=NullPool, hide_parameters=True, connect_args=arguments)
    except (ArgumentError, ImportError) as error:
        raise UnusableDatabase(
            f"there is no driver for {backend!a} here ({type(error).__name__}); install it"
        ) from None


def begin_reading(connection: Connection) -> None:
    """Begin a reading transaction that sees one moment of the database."""
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("BEGIN")
    elif connection.dialect.name == "postgresql":
        connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
        # Texts of times and bytes must not depend on how a server is set up.
        connection.exec_driver_sql(_POSTGRES_SESSION).close()


def shown(url: URL) -> str:
    """A URL without user, password and options, any of which may be secret."""
    port = "" if url.port is None else f":{url.port}"
    return f"{url.get_backend_name()}://{url.host or ''}{port}/{url.database or ''}"


def names_said(error: SQLAlchemyError) -> str | None:
    """What the database says of a statement's names and grammar, if the error is about them."""
    original = _original(error)
    said = (str(original).splitlines() or [""])[0]
    if isinstance(original, sqlite3.Error) and said.startswith(_SQLITE_NAMES):
        return said
    return said if _state(original).startswith("42") else None


def says_no_table(error: SQLAlchemyError) -> bool:
    """Whether the error is that a table, or its schema, does not exist."""
    original = _original(error)
    return _state(original) in _POSTGRES_NO_TABLE or str(original).startswith("no such table")


def what_failed(error: SQLAlchemyError) -> str:
    """An error's kind and code, and nothing of what it says."""
    original = _original(error)
    name = type(error if original is None else original).__name__
    state = _state(original)
    return f"{name}, SQLSTATE {state}" if state else name


def _original(error: SQLAlchemyError) -> BaseException | None:
    return error.orig if isinstance(error, DBAPIError) else None


def _state(original: BaseException | None) -> str:
    return str(getattr(original, "sqlstate", None) or "")


def _opener(url: URL) -> Callable[[], sqlite3.Connection]:
    """Opens an SQLite file for reading; SQLite itself would make one that is missing."""
    file = Path(url.database or "")
    if not file.is_file():
        raise NoDatabase(
            f"there is no database file {str(file)!a}; expected the one that its URL names. "
            "Correct the URL, or mount its disk"
        )
    place = f"file:{quote(str(file.absolute()))}?mode=ro"
    return lambda: sqlite3.connect(place, uri=True, timeout=_BUSY_SECONDS, isolation_level=None)
