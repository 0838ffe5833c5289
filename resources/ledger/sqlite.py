"""SQLite's side of the ledger: bulk load by executemany, FTS5, one writer at a time.

Belongs here: statements that only SQLite understands. Does not belong here: common SQL.
The sqlite3 module is the only SQLite in the process: two copies of the library break each
other's file locks and lose rows without an error.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import polars as pl
from sqlalchemy import Connection, Engine, Table, create_engine, event, text

from resources.ledger.errors import (
    LedgerBusy,
    LedgerDamaged,
    LedgerError,
    LedgerNotWritable,
    LedgerUnreachable,
    NotALedger,
    StorageFull,
)
from resources.ledger.frames import (
    ROWS_A_CHUNK,
    PolarsType,
    columns_of,
    declared,
    frame_of,
    frame_of_chunks,
)

BUSY_SECONDS = 30
_RETRY_SECONDS = 0.02
_PRIMARY_CODE = 0xFF
"""The low byte of a result code says what happened, the rest where."""
_READER = "tallybook_reader"
_PLANNER = "tallybook_planner"
_AFFINITY: dict[type[pl.DataType], str] = {
    pl.Int64: "INTEGER",
    pl.Int32: "INTEGER",
    pl.UInt32: "INTEGER",
    pl.Float64: "REAL",
    pl.String: "TEXT",
}
_NO_ROOM = (
    sqlite3.SQLITE_IOERR_WRITE,
    sqlite3.SQLITE_IOERR_SHMSIZE,
    sqlite3.SQLITE_IOERR_FSYNC,
    sqlite3.SQLITE_IOERR_TRUNCATE,
)


class SqliteDialect:
    """The dialect of a ledger in one SQLite file."""

    name = "sqlite"
    driver_error: type[Exception] = sqlite3.Error
    texts_of_json = "SELECT value FROM json_each(?)"

    def make_engine(self, url: str) -> Engine:
        """An engine with WAL, full synchronisation and immediate write transactions."""
        engine = create_engine(
            url,
            connect_args={"timeout": BUSY_SECONDS},
            hide_parameters=True,  # errors carry statements, never what a document says
        )

        @event.listens_for(engine, "connect")
        def configure(connection: sqlite3.Connection, _record: object) -> None:
            # The driver's own implicit BEGIN comes after the first read, which loses updates.
            connection.isolation_level = None
            connection.execute(f"PRAGMA busy_timeout={BUSY_SECONDS * 1000}")
            _use_wal(connection)
            # NORMAL can lose a committed intent on power loss; FULL cost nothing measurable.
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute("PRAGMA foreign_keys=ON")
            connection.execute("PRAGMA temp_store=MEMORY")
            connection.execute("PRAGMA cache_size=-65536")

        @event.listens_for(engine, "begin")
        def begin(connection: Connection) -> None:
            options = connection.get_execution_options()
            reading, planning = options.get(_READER), options.get(_PLANNER)
            connection.exec_driver_sql(f"PRAGMA query_only={1 if reading else 0}")
            connection.exec_driver_sql("BEGIN" if reading or planning else "BEGIN IMMEDIATE")

        return engine

    def explain(self, error: BaseException | None, place: str) -> LedgerError | None:
        """By SQLite's own result code, not by its wording."""
        if not isinstance(error, sqlite3.Error):
            return None
        code = getattr(error, "sqlite_errorcode", 0)
        cause = str(error)
        explained: dict[int, LedgerError] = {
            sqlite3.SQLITE_FULL: StorageFull(place),
            sqlite3.SQLITE_NOTADB: NotALedger(place, cause),
            sqlite3.SQLITE_CORRUPT: LedgerDamaged(place, cause),
            sqlite3.SQLITE_BUSY: LedgerBusy(place, cause),
            sqlite3.SQLITE_LOCKED: LedgerBusy(place, cause),
            sqlite3.SQLITE_READONLY: LedgerNotWritable(place, cause),
            sqlite3.SQLITE_PERM: LedgerNotWritable(place, cause),
            sqlite3.SQLITE_CANTOPEN: LedgerUnreachable(place, cause),
            sqlite3.SQLITE_IOERR: LedgerUnreachable(place, cause),
        }
        if code in _NO_ROOM:
            return StorageFull(place)
        return explained.get(code & _PRIMARY_CODE)

    def as_reader(self, connection: Connection) -> Connection:
        """A deferred transaction: it never waits for a writer nor makes one wait."""
        return connection.execution_options(**{_READER: True})

    def as_planner(self, connection: Connection) -> Connection:
        """Temporary tables are a database of their own: the ledger's file is not locked for them.

        `query_only` would forbid them too, so that nothing but its end keeps it from writing.
        """
        return connection.execution_options(**{_PLANNER: True})

    def load(self, connection: Connection, table: Table, frame: pl.DataFrame) -> None:
        """Append by executemany."""
        frame = columns_of(frame, table)
        marks = ",".join("?" * len(frame.columns))
        names = ",".join(frame.columns)
        self._driver(connection).executemany(
            f"INSERT INTO {table.name} ({names}) VALUES ({marks})",  # noqa: S608 - our own names
            frame.iter_rows(),
        )

    def stage(self, connection: Connection, name: str, frame: pl.DataFrame) -> None:
        """A temporary table lives in memory and belongs to the connection."""
        driver = self._driver(connection)
        driver.execute(f"DROP TABLE IF EXISTS temp.{name}")
        driver.execute(f"CREATE TEMP TABLE {name} ({declared(frame, _AFFINITY)})")
        marks = ",".join("?" * len(frame.columns))
        driver.executemany(
            f"INSERT INTO temp.{name} VALUES ({marks})",  # noqa: S608 - our own names
            frame.iter_rows(),
        )

    def fetch(
        self,
        connection: Connection,
        sql: str,
        schema: Mapping[str, PolarsType],
        parameters: Sequence[object] = (),
    ) -> pl.DataFrame:
        """Rows as a frame of the given types."""
        cursor = self._driver(connection).execute(sql, tuple(parameters))
        return frame_of_chunks(iter(lambda: cursor.fetchmany(ROWS_A_CHUNK), []), schema)

    def stream(
        self,
        connection: Connection,
        sql: str,
        schema: Mapping[str, PolarsType],
        parameters: Sequence[object] = (),
    ) -> Iterator[pl.DataFrame]:
        """The driver itself hands out rows as they are found."""
        cursor = self._driver(connection).execute(sql, tuple(parameters))
        while rows := cursor.fetchmany(ROWS_A_CHUNK):
            yield frame_of(rows, schema)

    def joined(self, column: str) -> str:
        """It takes numbers as they are."""
        return f"GROUP_CONCAT({column}, ' ')"

    def in_byte_order(self, column: str) -> str:
        """The order that SQLite compares text in anyhow."""
        return column

    def add_search(self, connection: Connection, frame: pl.DataFrame) -> None:
        """One row an entry; the row id is the entry number."""
        self._driver(connection).executemany(
            "INSERT INTO archive_search (rowid,title,identifiers,description,language) "
            "VALUES (?,?,?,?,?)",
            frame.select("entry_no", "title", "identifiers", "description", "language").iter_rows(),
        )

    def drop_search(self, connection: Connection, staged: str) -> None:
        """FTS5 deletes by row id."""
        connection.execute(
            text(f"DELETE FROM archive_search WHERE rowid IN (SELECT entry_no FROM {staged})")  # noqa: S608
        )

    def search(
        self, connection: Connection, terms: Sequence[Sequence[str]], limit: int
    ) -> list[tuple[int, float]]:
        """Ranked by bm25, titles and identifiers above descriptions."""
        if not terms:
            return []
        query = " ".join('"' + " ".join(term).replace('"', '""') + '"' for term in terms)
        rows = self._driver(connection).execute(
            "SELECT rowid, -bm25(archive_search, 8.0, 10.0, 1.0) AS score FROM archive_search "
            "WHERE archive_search MATCH ? ORDER BY score DESC, rowid LIMIT ?",
            (query, limit),
        )
        return [(int(row[0]), float(row[1])) for row in rows]

    def search_entries(self, connection: Connection) -> pl.DataFrame:
        """Read from the index's own table of documents, so a missing entry shows."""
        return self.fetch(
            connection, "SELECT id FROM archive_search_docsize", {"entry_no": pl.Int64}
        )

    def lock_lease(self, connection: Connection, name: str, token: int) -> bool:
        """BEGIN IMMEDIATE already keeps every other writer out."""
        found = connection.execute(
            text("SELECT 1 FROM leases WHERE name = :name AND token = :token"),
            {"name": name, "token": token},
        )
        return found.first() is not None

    def lock_opening(self, connection: Connection) -> None:
        """BEGIN IMMEDIATE already keeps every other writer out."""

    def lock_chain(self, connection: Connection, chain: str) -> None:
        """Nothing to do: there is one writer at a time."""

    def bytes_used(self, connection: Connection) -> int:
        """The file and its write-ahead log; of a ledger in memory, its pages."""
        driver = self._driver(connection)
        file = next(
            (path for _, name, path in driver.execute("PRAGMA database_list") if name == "main"), ""
        )
        if not file:
            (pages,) = driver.execute("PRAGMA page_count").fetchone()
            (size,) = driver.execute("PRAGMA page_size").fetchone()
            return int(pages * size)
        return sum(_size_of(Path(file + end)) for end in ("", "-wal", "-shm"))

    def after_load(self, connection: Connection, tables: Sequence[Table]) -> None:
        """Nothing to do: the next number is always one more than the highest."""

    def forget_deleted(self, engine: Engine) -> str | None:
        """Deleted text stays in free pages, in the index's old segments and in the log.

        Merging the index and writing the file anew are the only ways to be rid of all of it.
        """
        pooled = engine.raw_connection()
        try:
            driver = cast(sqlite3.Connection, pooled.driver_connection)
            driver.execute("PRAGMA query_only=0")
            driver.execute("INSERT INTO archive_search(archive_search) VALUES('optimize')")
            # The new file is written to a temporary one first: memory would not hold a large one.
            driver.execute("PRAGMA temp_store=FILE")
            driver.execute("VACUUM")
            busy, *_ = driver.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            driver.execute("PRAGMA temp_store=MEMORY")
        finally:
            pooled.close()
        if not busy:
            return None
        return (
            "the write-ahead log beside the ledger still holds what was deleted, since somebody "
            "reads an earlier state of it; it is gone once every process has closed the ledger"
        )

    @staticmethod
    def _driver(connection: Connection) -> sqlite3.Connection:
        return cast(sqlite3.Connection, cast(Any, connection.connection).driver_connection)


def _size_of(file: Path) -> int:
    """0 for a log that is not there: the last connection that closes takes it away."""
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0


def _use_wal(connection: sqlite3.Connection) -> None:
    """Turn the write-ahead log on, in a new file or a ledger only: the file keeps the setting.

    SQLite does not wait when another process turns it on in the same moment: one of sixty races
    of four first openings ended in "database is locked".
    """
    last_try = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            tables = connection.execute("SELECT name FROM sqlite_master").fetchall()
            if not tables or ("ledger_info",) in tables:
                connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            busy = error.sqlite_errorcode & _PRIMARY_CODE == sqlite3.SQLITE_BUSY
            if not busy or time.monotonic() > last_try:
                raise
            time.sleep(_RETRY_SECONDS)


DIALECT = SqliteDialect()
