"""Opening a ledger: fresh, again, by several at once; and everything that must be refused."""

from __future__ import annotations

import random
import socket
import sqlite3
import threading
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import create_engine, inspect, text
from sqlalchemy.engine import make_url

from resources.clock import to_text
from resources.ledger import sqlite
from resources.ledger.engine import Ledger, normalise_url, open_ledger
from resources.ledger.errors import (
    LedgerBusy,
    LedgerError,
    LedgerFromNewerVersion,
    LedgerNotWritable,
    LedgerOfOtherProfile,
    LedgerUnreachable,
    NotALedger,
    StorageFull,
    UnreadableLedgerUrl,
)
from resources.ledger.schema import ledger_info, record_state
from tests.integration.ledger.support import Racers, count, make_records, states
from tests.support.clock import START, FrozenClock
from tests.support.postgres import PostgresServer, fresh_database

OPENERS = 4
OPEN = """
from resources.ledger.engine import open_ledger
def step(url):
    try:
        opened = open_ledger(url)
        opened.close()
        return opened.ledger_id
    except Exception as error:
        return repr(error)
"""


def execute(url: str, *statements: str) -> None:
    engine = create_engine(normalise_url(url))
    with engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))
    engine.dispose()


def tables(url: str) -> set[str]:
    engine = create_engine(normalise_url(url))
    found = set(inspect(engine).get_table_names())
    engine.dispose()
    return found


def closed_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def test_a_fresh_ledger_knows_what_it_is(ledger_url: str, frozen_clock: FrozenClock) -> None:
    ledger = open_ledger(ledger_url, profile="staging", clock=frozen_clock, rng=random.Random(7))
    with ledger.read() as connection:
        stored = {row.name: row.value for row in connection.execute(ledger_info.select())}
    ledger.close()
    assert stored == {
        "ledger_id": f"{random.Random(7).getrandbits(64):016x}",
        "profile": "staging",
        "made_at": to_text(START),
    }
    assert ledger.ledger_id == stored["ledger_id"]
    assert ledger.now() == to_text(START)


def test_the_ledgers_id_is_drawn_once(ledger_url: str) -> None:
    ids = set()
    for _ in range(3):
        ledger = open_ledger(ledger_url)
        ids.add(ledger.ledger_id)
        ledger.close()
    assert len(ids) == 1


def test_a_driver_named_in_the_url_does_not_matter(ledger_url: str) -> None:
    plain = make_url(ledger_url)
    plain = plain.set(drivername=plain.get_backend_name())
    ledger = open_ledger(plain.render_as_string(hide_password=False))
    assert ledger.dialect.name == plain.get_backend_name()
    ledger.close()


def test_another_profile_is_refused(ledger_url: str) -> None:
    open_ledger(ledger_url, profile="prod").close()
    with pytest.raises(LedgerOfOtherProfile, match="'prod' and is opened under 'dev'"):
        open_ledger(ledger_url, profile="dev")


def test_another_profile_is_refused_before_anything_is_upgraded(ledger_url: str) -> None:
    open_ledger(ledger_url, profile="prod").close()
    # A schema without a revision counts as an older one: making it again would fail otherwise.
    execute(ledger_url, "DELETE FROM alembic_version")
    with pytest.raises(LedgerOfOtherProfile):
        open_ledger(ledger_url, profile="dev")


def test_a_schema_of_a_newer_release_is_refused(ledger_url: str) -> None:
    open_ledger(ledger_url).close()
    execute(ledger_url, "UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(LedgerFromNewerVersion, match="has schema 9999"):
        open_ledger(ledger_url)


def test_a_revision_that_only_looks_like_ours_is_refused(ledger_url: str) -> None:
    open_ledger(ledger_url).close()
    execute(ledger_url, "UPDATE alembic_version SET version_num = '00'")
    with pytest.raises(LedgerFromNewerVersion, match="has schema 00,"):
        open_ledger(ledger_url)


@pytest.mark.parametrize(
    "statements",
    [
        pytest.param(["CREATE TABLE customers (name TEXT)"], id="foreign table"),
        pytest.param(
            [
                "CREATE TABLE customers (name TEXT)",
                "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)",
                "INSERT INTO alembic_version VALUES ('c0ffee')",
            ],
            id="another application with its own migrations",
        ),
    ],
)
def test_somebody_elses_database_is_refused_and_left_alone(
    ledger_url: str, statements: list[str]
) -> None:
    execute(ledger_url, *statements)
    before = tables(ledger_url)
    with pytest.raises(NotALedger, match="holds 1 other tables"):
        open_ledger(ledger_url)
    assert tables(ledger_url) == before


def test_somebody_elses_sqlite_file_is_not_changed_by_a_byte(tmp_path: Path) -> None:
    path = tmp_path / "customers.sqlite3"
    execute(f"sqlite:///{path}", "CREATE TABLE customers (name TEXT)")
    before = path.read_bytes()
    with pytest.raises(NotALedger):
        open_ledger(f"sqlite:///{path}")
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("the pump is on the left\n" * 200)
    before = path.read_bytes()
    with pytest.raises(NotALedger, match="file is not a database"):
        open_ledger(f"sqlite:///{path}")
    assert path.read_bytes() == before


def test_a_folder_that_is_not_there_is_unreachable(tmp_path: Path) -> None:
    with pytest.raises(LedgerUnreachable, match="unable to open database file"):
        open_ledger(f"sqlite:///{tmp_path / 'nowhere' / 'ledger.sqlite3'}")


def test_a_closed_port_is_unreachable() -> None:
    with pytest.raises(LedgerUnreachable, match=r"[Cc]onnection refused"):
        open_ledger(f"postgresql://somebody@127.0.0.1:{closed_port()}/ledger")


@pytest.mark.postgres
def test_a_database_that_is_not_there_is_unreachable(postgres: PostgresServer) -> None:
    url = postgres.url.set(database="no_such_database")
    with pytest.raises(LedgerUnreachable, match="does not exist"):
        open_ledger(url.render_as_string(hide_password=False))


@pytest.mark.postgres
def test_the_search_path_of_the_url_is_obeyed(postgres_url: str) -> None:
    execute(postgres_url, "CREATE SCHEMA apart", "CREATE TABLE public.customers (name TEXT)")
    url = make_url(postgres_url).update_query_dict({"options": "-csearch_path=apart"})
    open_ledger(url.render_as_string(hide_password=False)).close()
    assert tables(postgres_url) == {"customers"}


SECRETIVE = [
    pytest.param("postgresql://u:hidden@127.0.0.1:{port}/d", LedgerUnreachable, id="password"),
    pytest.param(
        "postgresql://127.0.0.1:{port}/d?user=u&password=hidden", LedgerUnreachable, id="in query"
    ),
    pytest.param(
        "postgresql://u:hidden@127.0.0.1:{port}/d?colour=red",
        UnreadableLedgerUrl,
        id="option of no such name",
    ),
    pytest.param("postgresql://u:hidden@127.0.0.1:x/d", UnreadableLedgerUrl, id="no URL"),
    pytest.param("postgresql://u:a@hidden@127.0.0.1/d", UnreadableLedgerUrl, id="second @"),
]


@pytest.mark.parametrize(("url", "expected"), SECRETIVE)
def test_no_message_tells_the_password(url: str, expected: type[LedgerError]) -> None:
    with pytest.raises(expected) as refusal:
        open_ledger(url.format(port=closed_port()))
    assert "hidden" not in "".join(traceback.format_exception(refusal.value))


@pytest.mark.postgres
def test_no_message_of_a_reachable_ledger_tells_the_password(postgres: PostgresServer) -> None:
    with fresh_database(postgres.__class__(postgres.url, "test")) as url:
        secret = url.password or "hidden"
        asked = url.set(password=secret).render_as_string(hide_password=False)
        ledger = open_ledger(asked)
        ledger.close()
        assert secret not in ledger.place
        with pytest.raises(LedgerOfOtherProfile) as refusal:
            open_ledger(asked, profile="prod")
        assert secret not in str(refusal.value)


@pytest.fixture(scope="module")
def openers() -> Iterator[Racers]:
    """Return processes that open a ledger at the same moment."""
    racers = Racers(OPEN, OPENERS)
    yield racers
    racers.close()


@pytest.mark.parametrize("round_no", range(2))
def test_four_processes_open_a_fresh_database_at_once(
    ledger_url: str, openers: Racers, round_no: int
) -> None:
    answers = openers.run(ledger_url)
    ledger = open_ledger(ledger_url)
    ledger.close()
    assert answers == [ledger.ledger_id] * OPENERS


def test_threads_open_fresh_ledgers_of_their_own_at_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor(OPENERS) as pool:
        urls = [f"sqlite:///{tmp_path / str(number)}.sqlite3" for number in range(OPENERS)]
        ledgers = list(pool.map(open_ledger, urls))
    assert len({ledger.ledger_id for ledger in ledgers}) == OPENERS
    for ledger in ledgers:
        ledger.close()


def test_opening_does_not_wait_for_a_writer(
    ledger_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 1)
    ledger = open_ledger(ledger_url)
    with ledger.write() as connection:
        connection.execute(ledger_info.insert().values(name="x", value="y"))
        open_ledger(ledger_url).close()
    ledger.close()


def test_the_write_ahead_log_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite3"
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    # SQLite itself waits for an exclusive lock, but not for this one.
    other.execute("BEGIN IMMEDIATE")
    letting_go = threading.Timer(0.5, other.execute, ["ROLLBACK"])
    letting_go.start()
    started = time.monotonic()
    ledger = open_ledger(f"sqlite:///{path}")
    assert time.monotonic() - started > 0.3
    ledger.close()
    letting_go.join()
    other.close()


def test_sqlite_settings(tmp_path: Path) -> None:
    ledger = open_ledger(f"sqlite:///{tmp_path / 'ledger.sqlite3'}")
    with ledger.read() as connection:
        settings = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        }
    ledger.close()
    full = 2
    assert settings == {
        "journal_mode": "wal",
        "synchronous": full,
        "foreign_keys": 1,
        "busy_timeout": sqlite.BUSY_SECONDS * 1000,
    }


def test_a_block_that_raises_commits_nothing(ledger: Ledger) -> None:
    with pytest.raises(ZeroDivisionError), ledger.write() as connection:
        connection.execute(ledger_info.insert().values(name="x", value="y"))
        raise ZeroDivisionError
    with ledger.read() as connection:
        names = connection.execute(ledger_info.select()).mappings()
        assert "x" not in {row["name"] for row in names}


def test_a_reader_cannot_write(ledger: Ledger) -> None:
    with pytest.raises(LedgerNotWritable), ledger.read() as connection:
        connection.execute(ledger_info.insert().values(name="x", value="y"))
    with pytest.raises(LedgerNotWritable), ledger.read() as connection:
        make_records(connection, ledger, [1], "batch:1")
    assert states(ledger) == {}


def test_a_connection_that_read_can_write_afterwards(ledger: Ledger) -> None:
    for name in ("x", "y"):
        with ledger.read() as connection:
            connection.execute(ledger_info.select()).all()
        with ledger.write() as connection:
            connection.execute(ledger_info.insert().values(name=name, value=""))
    made_with_the_ledger = 3
    assert count(ledger, ledger_info) == made_with_the_ledger + 2


def test_a_full_disk_is_told_and_commits_nothing(tmp_path: Path) -> None:
    ledger = open_ledger(f"sqlite:///{tmp_path / 'ledger.sqlite3'}")
    with pytest.raises(StorageFull, match="free some space"), ledger.write() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
        connection.exec_driver_sql(f"PRAGMA max_page_count={pages + 2}")
        make_records(connection, ledger, range(10_000), "batch:1")
    assert count(ledger, record_state) == 0
    ledger.close()


def test_a_writer_that_waits_too_long_is_told_who_stood_in_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path / 'ledger.sqlite3'}"
    ledger = open_ledger(url)
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0)
    impatient = open_ledger(url)
    with ledger.write(), pytest.raises(LedgerBusy, match="locked"), impatient.write():
        pytest.fail("two writers at once")
    ledger.close()
    impatient.close()


@pytest.mark.postgres
@pytest.mark.parametrize("bulk", [False, True], ids=["statement", "bulk"])
def test_a_lost_connection_is_told_and_the_next_one_works(postgres_url: str, bulk: bool) -> None:
    ledger = open_ledger(postgres_url)
    with pytest.raises(LedgerUnreachable), ledger.write() as connection:
        make_records(connection, ledger, [1], "batch:1")
        connection.execute(text("SET LOCAL client_min_messages = error"))
        own = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
        execute(postgres_url, f"SELECT pg_terminate_backend({own})")
        time.sleep(0.1)
        if bulk:
            make_records(connection, ledger, [2], "batch:1")
        else:
            connection.execute(ledger_info.select())
    assert count(ledger, record_state) == 0
    with ledger.write() as connection:
        make_records(connection, ledger, [3], "batch:1")
    assert states(ledger) == {3: "queued"}
    ledger.close()


@pytest.mark.postgres
def test_a_deadlock_is_no_lost_connection(postgres_url: str) -> None:
    ledger = open_ledger(postgres_url)
    with ledger.write() as connection:
        make_records(connection, ledger, [1, 2], "batch:1")
    both_hold_one = threading.Barrier(2)

    def lock(first: int, second: int) -> type[Exception] | None:
        statement = text("UPDATE record_state SET shard = 1 WHERE record_no = :number")
        try:
            with ledger.write() as connection:
                connection.execute(text("SET LOCAL deadlock_timeout = '100ms'"))
                connection.execute(statement, {"number": first})
                both_hold_one.wait(10)
                connection.execute(statement, {"number": second})
        except LedgerError as error:
            return type(error)
        return None

    with ThreadPoolExecutor(2) as pool:
        ends = [pool.submit(lock, *order) for order in ((1, 2), (2, 1))]
        assert {end.result(30) for end in ends} == {None, LedgerBusy}
    ledger.close()
