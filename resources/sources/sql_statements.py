"""The statements that read rows out of somebody else's database.

Here: pure text made of a declaration. Not here: a connection, and what becomes of the rows
(`sql_table`).

Rows come in the order of their key, page after page, each page beginning behind the last key of
the one before. The order, and what is behind a key, are both the key column's own, so that they
agree whatever its type and collation, and its index serves both. Rows whose keys that collation
holds for equal are never parted: `equal` asks for all of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from resources.sources.declared import SqlSource

KEYS_AT_ONCE = 1_000

_SELECT = re.compile(r"\s*(SELECT|WITH)\b", re.IGNORECASE)
_TEXT_TYPES = {"mysql": "CHAR", "mariadb": "CHAR"}
# PostgreSQL calls two types by names that mean a shorter one where they are written.
_TYPE_NAMES = {"character": "bpchar", "bit": "varbit"}
_WHOLE_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,17}")
_FRACTION = re.compile(r"-?[0-9]+\.[0-9]+(e[+-]?[0-9]+)?")
_BITS = {"smallint": 15, "integer": 31, "bigint": 63}


class QueryRefused(ValueError):
    """A query that is not one SELECT."""


def check_query(query: str) -> str:
    """Return the query unchanged if it is one SELECT, as far as its text tells.

    Raises:
        QueryRefused: it is not. The transaction is a reading one besides.
    """
    if ";" in query:
        raise QueryRefused("its query holds ';'; expected one statement without it")
    if _SELECT.match(query) is None:
        raise QueryRefused("its query does not begin with SELECT or WITH")
    return query


@dataclass(frozen=True)
class Statements:
    """SQL with bound values `:limit` (bytes of a value), `:page`, `:last`, `:keys`.

    Rows are key, key as text, time of change as text, whether a value is beyond the limit (1 or
    0), and the texts.

    Attributes:
        columns: which columns there are; gives no row.
        key_type: what PostgreSQL calls the key's type; none elsewhere.
        keyless: how many rows have no key.
        first: the first page.
        further: the page behind `:last`.
        equal: the rows whose key equals `:last`.
        by_keys: the rows with these keys, read, in the order in which they are listed.
    """

    columns: str
    key_type: str
    keyless: str
    first: str
    further: str
    equal: str
    by_keys: str


def statements(
    declared: SqlSource, dialect: str, quote: Callable[[str], str], key_type: str | None = None
) -> Statements:
    """The statements for one source.

    Args:
        declared: the source.
        dialect: SQLAlchemy's name of the database.
        quote: writes a name so that it is taken exactly.
        key_type: what `Statements.key_type` gave.

    Raises:
        QueryRefused: the query is not one SELECT.
    """
    place = _place(declared, quote)
    key = quote(declared.key)
    unread = "" if declared.changed is None else f"{quote(declared.changed)} IS NULL AND "
    listed = _row(declared, dialect, quote, only_if=unread)
    read = _row(declared, dialect, quote, only_if="")
    page = f"ORDER BY {key} LIMIT :page"
    if dialect == "postgresql":
        name = _TYPE_NAMES.get(key_type or "text", key_type or "text")
        among = f"{key} = ANY(CAST(:keys AS {name}[]))"
    else:
        among = f"{key} IN :keys"
    # The names are quoted, the query is the operator's own, and values are bound.
    return Statements(
        columns=f"SELECT * FROM {place} WHERE 1 = 0",  # noqa: S608
        key_type=f"SELECT CAST(pg_typeof((SELECT {key} FROM {place} LIMIT 0)) AS TEXT)",  # noqa: S608
        keyless=f"SELECT COUNT(*) FROM {place} WHERE {key} IS NULL",  # noqa: S608
        first=f"SELECT {listed} FROM {place} WHERE {key} IS NOT NULL {page}",  # noqa: S608
        further=f"SELECT {listed} FROM {place} WHERE {key} > :last {page}",  # noqa: S608
        equal=f"SELECT {listed} FROM {place} WHERE {key} = :last LIMIT :page",  # noqa: S608
        by_keys=f"SELECT {read} FROM {place} WHERE {among} ORDER BY {key}",  # noqa: S608
    )


def keys_to_bind(keys: Sequence[str], dialect: str, key_type: str | None) -> list[object]:
    """Keys, which are known as text, as values that equal the column's own.

    Keys that a column of this type cannot hold are left out. Elsewhere than on PostgreSQL, where
    the type is not known, a number is asked for both as text and as a number.
    """
    if dialect == "postgresql":
        bits = _BITS.get(key_type or "")
        if bits is None:
            return list(keys)
        return [
            key for key in keys if _WHOLE_NUMBER.fullmatch(key) and -(2**bits) <= int(key) < 2**bits
        ]
    bound: list[object] = []
    for key in keys:
        bound.append(key)
        if _WHOLE_NUMBER.fullmatch(key):
            bound.append(int(key))
        elif _FRACTION.fullmatch(key):
            bound.append(float(key))
    return bound


def _place(declared: SqlSource, quote: Callable[[str], str]) -> str:
    if declared.table is not None:
        return ".".join(quote(part) for part in declared.table.split("."))
    # Colons would be taken for bound values; a comment must not swallow the bracket.
    query = check_query(declared.query or "").replace(":", "\\:")
    return f"(\n{query}\n) AS documents"


def _row(declared: SqlSource, dialect: str, quote: Callable[[str], str], *, only_if: str) -> str:
    kind = _TEXT_TYPES.get(dialect, "TEXT")
    key = quote(declared.key)
    mark = "NULL" if declared.changed is None else f"CAST({quote(declared.changed)} AS {kind})"
    sizes = []
    texts = []
    for number, name in enumerate(declared.text):
        column = quote(name)
        # On SQLite the length of a text ends at a NUL, that of its bytes does not.
        size = (
            f"LENGTH(CAST({column} AS BLOB))"
            if dialect == "sqlite"
            else f"OCTET_LENGTH(CAST({column} AS {kind}))"
        )
        sizes.append(f"COALESCE({size}, 0) > :limit")
        texts.append(
            f"CASE WHEN {only_if}{size} <= :limit THEN CAST({column} AS {kind}) END "
            f"AS text_{number}"
        )
    big = f"CASE WHEN {only_if}({' OR '.join(sizes)}) THEN 1 ELSE 0 END AS big"
    return ", ".join(
        [
            f"{key} AS key_itself",
            f"CAST({key} AS {kind}) AS key_text",
            f"{mark} AS mark",
            big,
            *texts,
        ]
    )
