"""What the drivers report, as the ledger's own errors: by code, never by wording."""

from __future__ import annotations

import sqlite3

import psycopg
import pytest
from psycopg.errors import lookup

from resources.ledger import postgres, sqlite
from resources.ledger.engine import normalise_url
from resources.ledger.errors import (
    LedgerBusy,
    LedgerDamaged,
    LedgerError,
    LedgerNotWritable,
    LedgerUnreachable,
    NotALedger,
    StorageFull,
    UnreadableLedgerUrl,
    UnsupportedDatabase,
)

PLACE = "somewhere"

SQLITE = [
    pytest.param("SQLITE_FULL", StorageFull, id="disk full"),
    pytest.param("SQLITE_IOERR_SHMSIZE", StorageFull, id="disk full under the shared memory"),
    pytest.param("SQLITE_IOERR_WRITE", StorageFull, id="write failed"),
    pytest.param("SQLITE_IOERR_READ", LedgerUnreachable, id="read failed"),
    pytest.param("SQLITE_NOTADB", NotALedger, id="no database"),
    pytest.param("SQLITE_CORRUPT", LedgerDamaged, id="damaged"),
    pytest.param("SQLITE_BUSY", LedgerBusy, id="locked"),
    pytest.param("SQLITE_BUSY_SNAPSHOT", LedgerBusy, id="locked, snapshot too old"),
    pytest.param("SQLITE_READONLY", LedgerNotWritable, id="read only"),
    pytest.param("SQLITE_CANTOPEN", LedgerUnreachable, id="no such folder"),
    pytest.param("SQLITE_ERROR", None, id="mistake in a statement"),
    pytest.param("SQLITE_CONSTRAINT_UNIQUE", None, id="constraint"),
]

POSTGRES = [
    pytest.param("53100", StorageFull, id="disk full"),
    pytest.param("53300", LedgerUnreachable, id="too many connections"),
    pytest.param("57P01", LedgerUnreachable, id="server stops"),
    pytest.param("57P03", LedgerUnreachable, id="server starts"),
    pytest.param("28P01", LedgerUnreachable, id="wrong password"),
    pytest.param("3D000", LedgerUnreachable, id="no such database"),
    pytest.param("40P01", LedgerBusy, id="deadlock"),
    pytest.param("40001", LedgerBusy, id="serialization"),
    pytest.param("55P03", LedgerBusy, id="lock time-out"),
    pytest.param("25006", LedgerNotWritable, id="standby"),
    pytest.param("42501", LedgerNotWritable, id="no right to it"),
    pytest.param("XX001", LedgerDamaged, id="damaged"),
    pytest.param("42P01", None, id="mistake in a statement"),
    pytest.param("23505", None, id="constraint"),
]

URLS = [
    pytest.param("sqlite:////a/b.sqlite3", "sqlite+pysqlite:////a/b.sqlite3", id="sqlite"),
    pytest.param("postgres://u:p@h/d", "postgresql+psycopg://u:p@h/d", id="postgres"),
    pytest.param("postgresql://u:p@h/d", "postgresql+psycopg://u:p@h/d", id="postgresql"),
    pytest.param(
        "postgresql+psycopg2://h/d?sslmode=require",
        "postgresql+psycopg://h/d?sslmode=require",
        id="another driver",
    ),
    pytest.param("postgresql://u:a%40b@h/d", "postgresql+psycopg://u:a%40b@h/d", id="escapes"),
]


@pytest.mark.parametrize(("code", "expected"), SQLITE)
def test_sqlite_result_codes(code: str, expected: type[LedgerError] | None) -> None:
    error = sqlite3.OperationalError("what SQLite says")
    error.sqlite_errorcode = getattr(sqlite3, code)
    explained = sqlite.DIALECT.explain(error, PLACE)
    assert type(explained) is (expected or type(None))
    assert explained is None or PLACE in str(explained)


@pytest.mark.parametrize(("state", "expected"), POSTGRES)
def test_postgresql_states(state: str, expected: type[LedgerError] | None) -> None:
    explained = postgres.DIALECT.explain(lookup(state)("what the server says\nmore"), PLACE)
    assert type(explained) is (expected or type(None))
    assert explained is None or (PLACE in str(explained) and "\n" not in str(explained))


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        pytest.param(psycopg.OperationalError("refused"), LedgerUnreachable, id="not reached"),
        pytest.param(
            psycopg.ProgrammingError('invalid connection option "x"'),
            UnreadableLedgerUrl,
            id="option of no such name",
        ),
        pytest.param(psycopg.ProgrammingError("too many arguments"), None, id="our mistake"),
        pytest.param(OSError("not a driver's"), None, id="something else"),
        pytest.param(None, None, id="nothing"),
    ],
)
def test_errors_that_no_server_reported(
    error: BaseException | None, expected: type[LedgerError] | None
) -> None:
    assert type(postgres.DIALECT.explain(error, PLACE)) is (expected or type(None))


@pytest.mark.parametrize(("given_url", "expected"), URLS)
def test_a_url_gets_the_ledgers_driver(given_url: str, expected: str) -> None:
    assert normalise_url(given_url) == expected


@pytest.mark.parametrize("url", ["mysql://h/d", "oracle://h/d", "duckdb:///x"])
def test_other_databases_are_refused(url: str) -> None:
    with pytest.raises(UnsupportedDatabase, match="sqlite or postgresql"):
        normalise_url(url)


@pytest.mark.parametrize(
    "url", ["", "ledger.sqlite3", "hidden words", "postgresql://u:hidden@h:x/d"]
)
def test_what_is_no_url_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(UnreadableLedgerUrl, match="not a database URL") as refusal:
        normalise_url(url)
    assert "hidden" not in str(refusal.value)
    assert refusal.value.__suppress_context__
