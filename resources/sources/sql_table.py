"""A table or a query of a database as a source: a row is a document.

Here: connecting, reading pages of rows in one snapshot, errors in closed wording. Not here: the
statements (`sql_statements`), and which rows are documents (`row_listing`).

One listing is one reading transaction: it sees the rows of one moment, however long it takes. The
database's URL is named by an environment variable and never shown.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

import polars as pl
from sqlalchemy import Connection, CursorResult, bindparam, text
from sqlalchemy.exc import SQLAlchemyError

from resources.sources.declared import SqlSource
from resources.sources.document_id import DocumentIdError, parse_document_id
from resources.sources.listing import READ_SCHEMA, Listing
from resources.sources.port import SourceEmpty, SourceMissing, SourceUnreadable, WalkReport
from resources.sources.row_listing import (
    FRAME_CHARACTERS,
    RowListing,
    RowRules,
    judge_rows,
    open_row,
    rows_schema,
    rows_with_ids,
    texts_of,
    vanished,
)
from resources.sources.sql_connection import (
    NoDatabase,
    UnusableDatabase,
    begin_reading,
    database_url,
    engine_for,
    names_said,
    says_no_table,
    shown,
    what_failed,
)
from resources.sources.sql_statements import (
    KEYS_AT_ONCE,
    QueryRefused,
    Statements,
    check_query,
    keys_to_bind,
    statements,
)

if TYPE_CHECKING:
    from resources.ledger.engine import Ledger

_FIRST_PAGE_ROWS = 500
_FIRST_KEYS = 100
_PAGE_GROWTH = 8
_STEP_ROWS = 500

Row = Sequence[Any]


def open_sql(declared: SqlSource) -> SqlTable:
    """The table or query that is declared; nothing is connected yet."""
    return SqlTable(declared)


@dataclass(frozen=True)
class _Session:
    """A connection in one reading transaction, and the statements for its database."""

    connection: Connection
    statements: Statements
    dialect: str
    key_type: str | None


class SqlTable:
    """Rows of a database (`ListedSource`).

    Args:
        declared: where they are, and which columns are what.
        environ: where the variable is looked up that holds the URL.
    """

    kind = "sql"
    holds: Literal["rows"] = "rows"

    def __init__(self, declared: SqlSource, *, environ: Mapping[str, str] = os.environ) -> None:
        self.name = declared.name
        self._declared = declared
        self._environ = environ
        self._rules = RowRules(
            declared.name,
            tuple(declared.text),
            declared.max_row_bytes,
            # The place too: another database counts or dates its changes by itself.
            (
                *(declared.key, declared.changed or "", declared.table or ""),
                *(declared.query or "", self._place),
            ),
        )

    @property
    def location(self) -> str:
        """The place (`_place`), and the column that names its rows: by another they are others."""
        return f"{self._place}, rows named by {self._declared.key!r}"

    @property
    def _place(self) -> str:
        """The database without user and password, and the table; a query is only called one."""
        table = self._declared.table
        what = "query" if table is None else f"table {table}"
        try:
            return f"{shown(database_url(self._environ, self._declared.url_env))} {what}"
        except (NoDatabase, UnusableDatabase):
            return f"${self._declared.url_env} {what}"

    def fingerprint(self) -> str | None:
        """None: no database says cheaply that nothing in it changed."""
        return None

    def listing(self) -> Listing:
        """Every row in the order of its key, first those that have none.

        Without a column of changes each comes with its checksum. With one, only key and change are
        asked for; rows whose change is null come with their checksum.

        Raises, with any frame:
            SourceMissing: the variable, the file or the table is not there.
            SourceUnreadable: the database cannot be read to the last row.
            SourceEmpty: there is no row, and the source was not declared as possibly empty.
        """
        return Listing(self._listed())

    def read(self, wanted: pl.DataFrame) -> Iterator[pl.DataFrame]:
        """The checksums of rows, up to `KEYS_AT_ONCE` at a time."""
        with self._session() as session:
            left, count = wanted, _FIRST_KEYS
            while not left.is_empty():
                part, left = left.head(count), left.slice(count)
                keys = part["place"].cast(pl.String).to_list()
                judged = self._judged(session, keys, part["document_id"])
                documents = judged.unique("document_id", keep="first", maintain_order=True)
                yield documents.select(list(READ_SCHEMA))
                gone = vanished(part, documents["document_id"])
                if not gone.is_empty():
                    yield gone.select(list(READ_SCHEMA))
                count = _next_keys(count, judged)

    def open(self, document_id: str) -> BinaryIO:
        """The bytes of one row's document."""
        return open_row(self, document_id)

    def texts(self, document_ids: pl.Series) -> Iterator[pl.DataFrame]:
        """The texts of rows, up to `KEYS_AT_ONCE` at a time, each time in a transaction of its own.

        What is done with them takes long, and the database is somebody else's.
        """
        left, count = document_ids, _FIRST_KEYS
        while not left.is_empty():
            part, left = left.head(count), left.slice(count)
            keys = list(chain.from_iterable(map(_keys_of, part)))
            with self._session() as session:
                judged = self._judged(session, keys, part)
            yield from texts_of(judged)
            count = _next_keys(count, judged)

    def settle(self, connection: Connection, ledger: Ledger) -> None:
        """Nothing is to be settled with a table."""

    def _listed(self) -> Generator[pl.DataFrame, None, WalkReport]:
        declared = self._declared
        listing = RowListing(self._rules)
        with self._session() as session:
            keyless = int(self._one(session, session.statements.keyless))
            for first in range(0, keyless, declared.page_rows):
                count = min(declared.page_rows, keyless - first)
                yield from listing.listed(self._keyless(count, first + 1))
            number = keyless + 1
            for rows in self._pages(session):
                yield from listing.listed(self._frame(rows, number))
                number += len(rows)
        if listing.entries == 0 and not declared.allow_empty:
            raise SourceEmpty(
                f"source {self.name}: {self._place} holds no row, which is how a table looks "
                "that was not loaded; expected at least one. Load it, or declare allow_empty for "
                "the source"
            )
        return WalkReport(listing.entries)

    def _pages(self, session: _Session) -> Iterator[list[Row]]:
        """Rows with a key, those with equal keys in one page."""
        asked = min(self._declared.page_rows, _FIRST_PAGE_ROWS)
        statement, last = session.statements.first, {}
        while True:
            rows, characters, is_last = self._page(session, statement, {"page": asked, **last})
            if any(isinstance(row[0], bytes | memoryview) for row in rows):
                raise self._unreadable(
                    f"its key column {self._declared.key!r} holds binary values; expected text or "
                    "numbers"
                )
            if is_last:
                if rows:
                    yield rows
                return
            last = {"last": rows[-1][0]}
            yield self._completed(session, rows, last)
            statement = session.statements.further
            fitting = FRAME_CHARACTERS * len(rows) // max(1, characters)
            asked = max(1, min(self._declared.page_rows, asked * _PAGE_GROWTH, fitting))

    def _page(
        self, session: _Session, statement: str, values: Mapping[str, Any]
    ) -> tuple[list[Row], int, bool]:
        """Rows, how much text they hold, and whether no row follows; ends early at much text."""
        rows: list[Row] = []
        characters = 0
        with closing(self._ask(session, statement, values)) as result:
            for part in result.partitions(_STEP_ROWS):
                rows += part
                texts = chain.from_iterable(row[4:] for row in part)
                characters += sum(map(len, filter(None, texts)))
                # A part that is not full is the last one.
                if characters >= FRAME_CHARACTERS and len(part) == _STEP_ROWS:
                    return rows, characters, False
        return rows, characters, len(rows) < values["page"]

    def _completed(self, session: _Session, rows: list[Row], last: Mapping[str, Any]) -> list[Row]:
        """The rows of a page with all of those whose key equals the last one's."""
        limit = self._declared.page_rows
        equal, _, is_all = self._page(
            session, session.statements.equal, {"page": limit + 1, **last}
        )
        if not is_all:
            raise self._unreadable(
                f"more than {limit} of its rows, or more text than fits into a page, have one key; "
                "expected a key that is unique"
            )
        keys = {row[0] for row in equal}
        place = len(rows)
        while place and rows[place - 1][0] in keys:
            place -= 1
        return rows[:place] + equal

    def _judged(
        self, session: _Session, keys: Sequence[str], document_ids: pl.Series
    ) -> pl.DataFrame:
        """The rows of these documents, judged; the first of each id is the document."""
        rows: list[Row] = []
        bound = keys_to_bind(keys, session.dialect, session.key_type)
        if bound:
            with closing(self._ask(session, session.statements.by_keys, {"keys": bound})) as result:
                for part in result.partitions(_STEP_ROWS):
                    rows += part
        frame = self._frame(rows, 1).with_columns(unread=pl.lit(value=False))
        found = rows_with_ids(frame, self.name, document_ids)
        return judge_rows(found, self._rules)

    def _frame(self, rows: Sequence[Row], first: int) -> pl.DataFrame:
        """Fetched rows as a frame of rows; those with one key in an order of their own."""
        texts = [f"text_{at}" for at in range(len(self._declared.text))]
        kinds = {"key": pl.String, "mark": pl.String, "big": pl.Int64}
        kinds |= dict.fromkeys(texts, pl.String)
        values = list(zip(*rows, strict=True))[1:] or [()] * len(kinds)
        frame = pl.DataFrame(
            {
                name: pl.Series(column, dtype=kind)
                for (name, kind), column in zip(kinds.items(), values, strict=True)
            }
        )
        if not frame["key"].is_first_distinct().all():
            # The database gives rows with one key in any order, now in this, then in that one.
            frame = frame.with_row_index("at").with_columns(pl.col("at").first().over("key"))
            frame = frame.sort("at", "mark", *texts)
        marked = self._declared.changed is not None
        return frame.with_columns(
            pl.col("big").cast(pl.Boolean),
            row=pl.int_range(first, first + frame.height, dtype=pl.Int64),
            unread=pl.col("mark").is_not_null() if marked else pl.lit(value=False),
        )

    def _keyless(self, count: int, first: int) -> pl.DataFrame:
        """Rows of which nothing is known but that they have no key."""
        return (
            pl.DataFrame(schema=rows_schema(len(self._declared.text)))
            .clear(count)
            .with_columns(
                row=pl.int_range(first, first + count, dtype=pl.Int64),
                big=pl.lit(value=False),
                unread=pl.lit(value=True),
            )
        )

    @contextmanager
    def _session(self) -> Iterator[_Session]:
        """One reading transaction, with errors in closed wording."""
        try:
            if self._declared.query is not None:
                check_query(self._declared.query)
            engine = engine_for(database_url(self._environ, self._declared.url_env))
        except NoDatabase as error:
            raise SourceMissing(f"source {self.name}: {error}") from error
        except (UnusableDatabase, QueryRefused) as error:
            raise self._unreadable(str(error)) from error
        try:
            with engine.connect() as connection:
                begin_reading(connection)
                yield self._on(connection)
        except SQLAlchemyError as error:
            # Without its cause: that may hold the URL's user, or what a row says.
            raise self._explained(error) from None
        finally:
            engine.dispose()

    def _on(self, connection: Connection) -> _Session:
        dialect = connection.dialect.name
        quote = connection.dialect.identifier_preparer.quote_identifier
        plain = _Session(connection, statements(self._declared, dialect, quote), dialect, None)
        self._check_columns(plain)
        if dialect != "postgresql":
            return plain
        key_type = str(self._one(plain, plain.statements.key_type))
        typed = statements(self._declared, dialect, quote, key_type)
        return _Session(connection, typed, dialect, key_type)

    def _check_columns(self, session: _Session) -> None:
        with closing(session.connection.execute(text(session.statements.columns))) as result:
            found = list(result.keys())
        changed = [] if self._declared.changed is None else [self._declared.changed]
        for name in (self._declared.key, *self._declared.text, *changed):
            if name not in found:
                raise self._unreadable(
                    f"it has no column {name!r}; it has {', '.join(map(repr, found))}"
                )

    def _ask(
        self, session: _Session, statement: str, values: Mapping[str, Any]
    ) -> CursorResult[Any]:
        """Rows as they come, never all of them in memory."""
        asked = text(statement).execution_options(stream_results=True, max_row_buffer=_STEP_ROWS)
        if "keys" in values and session.dialect != "postgresql":
            asked = asked.bindparams(bindparam("keys", expanding=True))
        return session.connection.execute(asked, {"limit": self._declared.max_row_bytes, **values})

    def _one(self, session: _Session, statement: str) -> Any:
        return session.connection.execute(text(statement)).scalar_one()

    def _explained(self, error: SQLAlchemyError) -> SourceMissing | SourceUnreadable:
        said = names_said(error)
        if self._declared.table is not None and says_no_table(error):
            return SourceMissing(
                f"source {self.name}: {self._place} is not there ({said}); correct the table's "
                "name in the sources file, or its schema"
            )
        if said is not None:
            return self._unreadable(f"the database says: {said}")
        return self._unreadable(f"the database does not answer as it should ({what_failed(error)})")

    def _unreadable(self, problem: str) -> SourceUnreadable:
        return SourceUnreadable(
            f"source {self.name}: {self._place} cannot be used: {problem}. Nothing of it was "
            "taken over: correct that and scan again"
        )


def _next_keys(count: int, judged: pl.DataFrame) -> int:
    """How many rows are asked for next by key, after so many gave these texts."""
    size = max(1, int(judged["size"].sum()))
    return max(1, min(KEYS_AT_ONCE, count * _PAGE_GROWTH, FRAME_CHARACTERS * count // size))


def _keys_of(document_id: str) -> list[str]:
    """The keys that a row with this id may have: ids do not tell two spellings of Unicode apart."""
    try:
        key = parse_document_id(document_id)[1].decode()
    except (DocumentIdError, UnicodeDecodeError):
        return []
    return list(dict.fromkeys((key, unicodedata.normalize("NFD", key))))
