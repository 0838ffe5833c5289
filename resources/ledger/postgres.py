"""PostgreSQL's side of the ledger: COPY, tsvector with GIN, row and advisory locks.

Belongs here: statements that only PostgreSQL understands. Does not belong here: common SQL.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import polars as pl
import psycopg
from psycopg.adapt import Buffer, Loader
from sqlalchemy import (
    Connection,
    Engine,
    ExceptionContext,
    Integer,
    Table,
    create_engine,
    event,
    text,
)

from resources.ledger.errors import (
    LedgerBusy,
    LedgerDamaged,
    LedgerError,
    LedgerNotWritable,
    LedgerUnreachable,
    StorageFull,
    UnreadableLedgerUrl,
)
from resources.ledger.frames import (
    ROWS_A_CHUNK,
    PolarsType,
    columns_of,
    declared,
    frame_of,
    frame_of_chunks,
)
from resources.ledger.schema import metadata

_TYPE: dict[type[pl.DataType], str] = {
    pl.Int64: "BIGINT",
    pl.Int32: "INTEGER",
    pl.UInt32: "BIGINT",
    pl.Float64: "DOUBLE PRECISION",
    pl.String: "TEXT",
}


# Serialization failure, deadlock, lock not available.
_BUSY_STATES = ("40001", "40P01", "55P03")
# Read-only transaction or standby, insufficient privilege.
_NOT_WRITABLE_STATES = ("25006", "42501")
# Connection, authorization, database name, resources, operator intervention.
_LOST_CLASSES = ("08", "28", "3D", "53", "57")
_OPENING = "tallybook:opening"


# Tables with columns that an erasure empties.
_WITH_VALUES = (
    "archive_entries",
    "archive_search",
    "findings",
    "parses",
    "replay_members",
    "reviews",
)

_OUR_TABLES = sorted([*metadata.tables, "archive_search", "alembic_version"])
_BYTES_USED = text(
    "SELECT COALESCE(SUM(pg_total_relation_size(c.oid)), 0) FROM pg_class c "
    "WHERE c.relkind = 'r' AND c.relname = ANY(:names) AND c.relnamespace = "
    "(SELECT relnamespace FROM pg_class WHERE oid = to_regclass('ledger_info'))"
)


class PostgresDialect:
    """The dialect of a ledger in a PostgreSQL database."""

    name = "postgresql"
    driver_error: type[Exception] = psycopg.Error
    texts_of_json = "SELECT json_array_elements_text(CAST(? AS json)) AS value"

    def make_engine(self, url: str) -> Engine:
        """An engine with short connect time-outs that notices connections lost while idle."""
        engine = create_engine(
            url,
            pool_pre_ping=True,
            # Nothing asks the server for a time, so `options` is left to the URL (search_path).
            connect_args={"connect_timeout": 10},
            hide_parameters=True,  # errors carry statements, never what a document says
        )

        @event.listens_for(engine, "connect")
        def configure(connection: psycopg.Connection[Any], _record: object) -> None:
            connection.adapters.register_loader("numeric", _NumberLoader)

        @event.listens_for(engine, "handle_error")
        def strip(context: ExceptionContext) -> None:
            _strip_values(context.original_exception)
            if context.sqlalchemy_exception is not None:
                kind = type(context.original_exception).__name__
                context.sqlalchemy_exception.args = (f"({kind}) {context.original_exception}",)

        return engine

    def explain(self, error: BaseException | None, place: str) -> LedgerError | None:
        """By SQLSTATE; an error without one never reached a server."""
        if not isinstance(error, psycopg.Error):
            return None
        state = error.sqlstate
        cause = (str(error).splitlines() or [type(error).__name__])[0]
        if state is None:
            if cause.startswith("invalid connection option"):
                return UnreadableLedgerUrl(cause)
            lost = isinstance(error, psycopg.OperationalError)
            return LedgerUnreachable(place, cause) if lost else None
        if state == "53100":
            return StorageFull(place)
        if state in _BUSY_STATES:
            return LedgerBusy(place, cause)
        if state in _NOT_WRITABLE_STATES:
            return LedgerNotWritable(place, cause)
        if state.startswith("XX"):
            return LedgerDamaged(place, cause)
        return LedgerUnreachable(place, cause) if state[:2] in _LOST_CLASSES else None

    def as_reader(self, connection: Connection) -> Connection:
        """One snapshot for the whole transaction."""
        return connection.execution_options(
            isolation_level="REPEATABLE READ", postgresql_readonly=True
        )

    def as_planner(self, connection: Connection) -> Connection:
        """A transaction that is read only may not create temporary tables either."""
        return connection.execution_options(isolation_level="REPEATABLE READ")

    def load(self, connection: Connection, table: Table, frame: pl.DataFrame) -> None:
        """Append by COPY of CSV that Polars writes."""
        self._copy(connection, table.name, columns_of(frame, table))

    def stage(self, connection: Connection, name: str, frame: pl.DataFrame) -> None:
        """A temporary table that goes away with the transaction."""
        connection.exec_driver_sql(f"DROP TABLE IF EXISTS pg_temp.{name}")
        columns = declared(frame, _TYPE)
        connection.exec_driver_sql(f"CREATE TEMP TABLE {name} ({columns}) ON COMMIT DROP")
        self._copy(connection, name, frame)
        # Without statistics the planner takes a staged shard for a thousand rows.
        connection.exec_driver_sql(f"ANALYZE {name}")

    def fetch(
        self,
        connection: Connection,
        sql: str,
        schema: Mapping[str, PolarsType],
        parameters: Sequence[object] = (),
    ) -> pl.DataFrame:
        """Rows as a frame of the given types."""
        with self._driver(connection).cursor() as cursor:
            query = sql.replace("%", "%%").replace("?", "%s")
            cursor.execute(cast(Any, query), tuple(parameters))
            return frame_of_chunks(iter(lambda: cursor.fetchmany(ROWS_A_CHUNK), []), schema)

    def stream(
        self,
        connection: Connection,
        sql: str,
        schema: Mapping[str, PolarsType],
        parameters: Sequence[object] = (),
    ) -> Iterator[pl.DataFrame]:
        """A cursor on the server: the driver's own would take the whole result first."""
        with self._driver(connection).cursor(name="tallybook_stream") as cursor:
            query = sql.replace("%", "%%").replace("?", "%s")
            cursor.execute(cast(Any, query), tuple(parameters))
            while rows := cursor.fetchmany(ROWS_A_CHUNK):
                yield frame_of(rows, schema)

    def joined(self, column: str) -> str:
        """It joins texts alone."""
        return f"STRING_AGG(CAST({column} AS TEXT), ' ')"

    def in_byte_order(self, column: str) -> str:
        """The database's own order is that of a language."""
        return f'{column} COLLATE "C"'

    def add_search(self, connection: Connection, frame: pl.DataFrame) -> None:
        """The vector is built from our own tokens, since the server's parser cuts part numbers."""
        vectors = frame.select(
            "entry_no",
            pl.concat_str(
                [_vector("title", "A"), _vector("identifiers", "A"), _vector("description", "C")],
                separator="\t",
                ignore_nulls=True,
            ).alias("words"),
        )
        self.stage(connection, "stage_search", vectors)
        connection.execute(
            text(
                "INSERT INTO archive_search (entry_no, words) SELECT entry_no, "
                "split_part(words, E'\\t', 1)::tsvector || split_part(words, E'\\t', 2)::tsvector "
                "|| split_part(words, E'\\t', 3)::tsvector FROM stage_search"
            )
        )

    def drop_search(self, connection: Connection, staged: str) -> None:
        """A plain delete by entry."""
        connection.execute(
            text(f"DELETE FROM archive_search WHERE entry_no IN (SELECT entry_no FROM {staged})")  # noqa: S608
        )

    def search(
        self, connection: Connection, terms: Sequence[Sequence[str]], limit: int
    ) -> list[tuple[int, float]]:
        """Ranked by ts_rank, titles and identifiers above descriptions."""
        if not terms:
            return []
        query = " & ".join("(" + " <-> ".join(_lexeme(t) for t in term) + ")" for term in terms)
        rows = connection.execute(
            text(
                "SELECT entry_no, ts_rank(words, CAST(:query AS tsquery), 1) AS score "
                "FROM archive_search WHERE words @@ CAST(:query AS tsquery) "
                "ORDER BY score DESC, entry_no LIMIT :limit"
            ),
            {"query": query, "limit": limit},
        )
        return [(int(row[0]), float(row[1])) for row in rows]

    def search_entries(self, connection: Connection) -> pl.DataFrame:
        """The entry of every row of the search table."""
        return self.fetch(connection, "SELECT entry_no FROM archive_search", {"entry_no": pl.Int64})

    def lock_lease(self, connection: Connection, name: str, token: int) -> bool:
        """The row lock is held to the commit: a sub-select inside the UPDATE does not fence.

        FOR SHARE would fence as well, but two commits under one lease could then share the row
        and deadlock when each stores its token in it.
        """
        found = connection.execute(
            text("SELECT 1 FROM leases WHERE name = :name AND token = :token FOR UPDATE"),
            {"name": name, "token": token},
        )
        return found.first() is not None

    def lock_opening(self, connection: Connection) -> None:
        """The same kind of lock as a chain's, under a name that no chain has."""
        self.lock_chain(connection, _OPENING)

    def lock_chain(self, connection: Connection, chain: str) -> None:
        """A transaction-scoped advisory lock, so that two writers cannot read one head."""
        connection.execute(
            text("SELECT pg_advisory_xact_lock(hashtextextended(:chain, 0))"), {"chain": chain}
        )

    def bytes_used(self, connection: Connection) -> int:
        """Our own tables alone: somebody else may use the same database, or even schema."""
        return int(connection.execute(_BYTES_USED, {"names": _OUR_TABLES}).scalar_one())

    def after_load(self, connection: Connection, tables: Sequence[Table]) -> None:
        """A sequence does not see numbers that came in by COPY."""
        for table in tables:
            for column in table.primary_key.columns:
                if isinstance(column.type, Integer):
                    self._continue_numbers(connection, table.name, column.name)
            connection.exec_driver_sql(f"ANALYZE {table.name}")

    def forget_deleted(self, engine: Engine) -> str | None:
        """Only its own administrator can rewrite tables at a time that suits everybody."""
        return (
            "PostgreSQL keeps what was deleted until its tables are written anew: run VACUUM FULL "
            f"{', '.join(_WITH_VALUES)}; its write-ahead log and backups end with their own age"
        )

    def _continue_numbers(self, connection: Connection, table: str, column: str) -> None:
        """No-op for a column without a sequence, and for an empty table."""
        connection.execute(
            text(
                "SELECT setval(s.name, n.highest) FROM "  # noqa: S608 - our own names
                "(SELECT pg_get_serial_sequence(:table, :column) AS name) s, "
                f"(SELECT MAX({column}) AS highest FROM {table}) n "
                "WHERE s.name IS NOT NULL AND n.highest IS NOT NULL"
            ),
            {"table": table, "column": column},
        )

    def _copy(self, connection: Connection, table: str, frame: pl.DataFrame) -> None:
        buffer = io.BytesIO()
        # Quoting every string keeps an empty text apart from NULL.
        frame.write_csv(buffer, include_header=False, quote_style="non_numeric", null_value="")
        names = ",".join(frame.columns)
        try:
            with (
                self._driver(connection).cursor() as cursor,
                cursor.copy(cast(Any, f"COPY {table} ({names}) FROM STDIN (FORMAT csv)")) as copy,
            ):
                copy.write(buffer.getbuffer())
        except psycopg.Error as error:
            _strip_values(error)
            raise

    @staticmethod
    def _driver(connection: Connection) -> psycopg.Connection[Any]:
        return cast("psycopg.Connection[Any]", cast(Any, connection.connection).driver_connection)


class _NumberLoader(Loader):
    """The server sums integers as `numeric`; the ledger stores no column of that type."""

    def load(self, data: Buffer) -> int | float:
        """An integer unless there is a fraction, as on SQLite."""
        digits = bytes(data)
        return int(digits) if digits.lstrip(b"-").isdigit() else float(digits)


def _strip_values(error: BaseException) -> None:
    """Keep the first line: DETAIL and CONTEXT quote rows, and so what a document says."""
    if isinstance(error, psycopg.Error) and error.diag.message_primary:
        error.args = (error.diag.message_primary,)


def _lexeme(token: str) -> str:
    return "'" + token.replace("\\", "\\\\").replace("'", "''") + "'"


def _vector(column: str, weight: str) -> pl.Expr:
    """Token string → tsvector literal with positions.

    Positions start at 2: `||` shifts those of the second vector to follow the first, and a phrase
    must not be found across the end of one field and the start of the next.
    """
    tokens = (
        pl.col(column)
        .str.replace_all("\\", "\\\\", literal=True)
        .str.replace_all("'", "''", literal=True)
        .str.split(" ")
    )
    return (
        tokens.list.eval(
            pl.when(pl.element() != "").then(
                pl.format(f"'{{}}':{{}}{weight}", pl.element(), pl.int_range(2, pl.len() + 2))
            )
        )
        .list.drop_nulls()
        .list.join(" ")
    )


DIALECT = PostgresDialect()
