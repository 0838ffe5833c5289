"""A connection that executes the product's statements without SQLAlchemy's detours.

Belongs here: the same SQL with the same values, given to the driver at once, and results with as
much of SQLAlchemy's interface as the product uses. Does not belong here: transactions, which
`memory.py` begins and ends.

Making and reading contexts and cursor results is half of the time of a schedule. What this
connection does not know (lists of rows, values that are converted, savepoints) goes through
SQLAlchemy's own.
"""

from __future__ import annotations

import sqlite3
from collections import namedtuple
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.dml import Insert
from sqlalchemy.sql.elements import TextClause


@dataclass(frozen=True)
class _Ready:
    """A compiled statement.

    Attributes:
        sql: its text.
        is_insert: it gives one row a number.
        spread: some of its values are lists, and its text depends on their lengths.
    """

    sql: str
    is_insert: bool
    spread: bool


class Rows:
    """A result, as much of it as the product reads."""

    def __init__(self, cursor: sqlite3.Cursor, kind: type[Any] | None, *, inserted: bool) -> None:
        self._cursor = cursor
        self._kind = kind
        self._inserted = inserted
        # Read at once, as the driver would be disturbed by a statement in between.
        found = cursor.fetchall() if kind is not None else []
        self._rows = found if kind is None else [kind._make(row) for row in found]
        self._next = 0

    @property
    def rowcount(self) -> int:
        """Rows that were changed."""
        return self._cursor.rowcount

    @property
    def inserted_primary_key(self) -> tuple[int]:
        """The number that the one inserted row was given."""
        assert self._inserted
        assert self._cursor.lastrowid is not None
        return (self._cursor.lastrowid,)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._rows)

    def all(self) -> list[Any]:
        """Every row."""
        return self._rows

    fetchall = all

    def first(self) -> Any:
        """The first row; None for none."""
        return self._rows[0] if self._rows else None

    def one(self) -> Any:
        """The only row.

        Raises:
            LookupError: there is another number of rows.
        """
        if len(self._rows) != 1:
            raise LookupError(f"found {len(self._rows)} rows, expected one")
        return self._rows[0]

    def one_or_none(self) -> Any:
        """The only row; None for none.

        Raises:
            LookupError: there are several.
        """
        return self.one() if self._rows else None

    def scalar(self) -> Any:
        """The first value of the first row; None for no row."""
        return self._rows[0][0] if self._rows else None

    def scalar_one(self) -> Any:
        """The first value of the only row."""
        return self.one()[0]

    def scalar_one_or_none(self) -> Any:
        """The first value of the only row; None for no row."""
        return self.one()[0] if self._rows else None

    def scalars(self) -> Rows:
        """First values in place of rows."""
        self._rows = [row[0] for row in self._rows]
        return self

    def mappings(self) -> list[dict[str, Any]]:
        """Rows by name."""
        return [row._asdict() for row in self._rows]


class QuickConnection:
    """Executes on the driver; everything else is the SQLAlchemy connection's."""

    def __init__(self, real: Connection, driver: sqlite3.Connection) -> None:
        self._real = real
        self._driver = driver
        self._dialect = real.dialect
        self._compiled: dict[Any, SQLCompiler] = {}
        self._ready: dict[int, tuple[SQLCompiler, _Ready | None]] = {}
        self._kinds: dict[tuple[str, ...], type[Any]] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def execute(self, statement: Any, parameters: Any = None, **options: Any) -> Any:
        """As SQLAlchemy's."""
        if options or (parameters is not None and not isinstance(parameters, Mapping)):
            return self._real.execute(statement, parameters, **options)
        if type(statement) is TextClause and _is_plain(statement, parameters):
            return self._run(statement.text, parameters or {}, inserted=False)
        return self._construct(statement, parameters)

    def _construct(self, statement: Any, parameters: Mapping[str, Any] | None) -> Any:
        try:
            compiled, extracted, *_ = statement._compile_w_cache(
                dialect=self._dialect,
                compiled_cache=self._compiled,
                column_keys=sorted(parameters or ()),
            )
        except AttributeError:
            return self._real.execute(statement, parameters)
        known = self._ready.get(id(compiled))
        if known is None:
            known = (compiled, self._judge(compiled))
            self._ready[id(compiled)] = known
        ready = known[1]
        if ready is None:
            return self._real.execute(statement, parameters)
        values = compiled.construct_params(
            parameters, extracted_parameters=extracted, escape_names=False
        )
        sql, names = ready.sql, compiled.positiontup or ()
        if ready.spread:
            full = compiled._process_parameters_for_postcompile(values)
            sql, names, values = full.statement, full.positiontup or (), full.parameters
        return self._run(sql, [values[name] for name in names], inserted=ready.is_insert)

    def _judge(self, compiled: SQLCompiler) -> _Ready | None:
        """How to run a compiled statement at once; None where only SQLAlchemy can."""
        if (
            compiled.literal_execute_params
            or compiled._bind_processors
            or compiled.insert_prefetch
            or compiled.update_prefetch
            or compiled.effective_returning
        ):
            return None
        for column in compiled._result_columns:
            if column.type._cached_result_processor(self._dialect, None) is not None:
                return None
        return _Ready(
            sql=compiled.string,
            is_insert=isinstance(compiled.statement, Insert),
            spread=bool(compiled.post_compile_params),
        )

    def _run(self, sql: str, values: Any, *, inserted: bool) -> Rows:
        try:
            cursor = self._driver.execute(sql, values)
            described = cursor.description
            if described is None:
                return Rows(cursor, None, inserted=inserted)
            names = tuple(column[0] for column in described)
            kind = self._kinds.get(names)
            if kind is None:
                kind = namedtuple("Row", names, rename=True)
                self._kinds[names] = kind
            return Rows(cursor, kind, inserted=inserted)
        except sqlite3.Error as error:
            told = DBAPIError.instance(sql, None, error, sqlite3.Error, hide_parameters=True)
            raise told from error


def _is_plain(statement: TextClause, parameters: Mapping[str, Any] | None) -> bool:
    """Are all values given, and none of them to be spread?"""
    if "\\:" in statement.text:
        return False
    given = parameters or {}
    return all(
        name in given and not bound.expanding for name, bound in statement._bindparams.items()
    )
