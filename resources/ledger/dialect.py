"""What the ledger needs from a database beyond common SQL: the shape of a dialect module.

Belongs here: the protocol that `sqlite.py` and `postgres.py` fill. Does not belong here: any
statement that runs unchanged on both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

import polars as pl
from sqlalchemy import Connection, Engine, Table

from resources.ledger.errors import LedgerError
from resources.ledger.frames import PolarsType


class Dialect(Protocol):
    """One database's way to load in bulk, to search text and to lock."""

    name: str
    driver_error: type[Exception]
    """What the driver raises when a bulk statement goes past SQLAlchemy."""
    texts_of_json: str
    """A query of one column `value`: the texts of the JSON list that is its one parameter.

    It brings many ids into a query without a write, which staging them would be."""

    def make_engine(self, url: str) -> Engine:
        """An engine whose `begin` opens a transaction that no other writer can slip into."""
        ...

    def explain(self, error: BaseException | None, place: str) -> LedgerError | None:
        """The driver's error as one of the ledger's own; None if it is a mistake in our code."""
        ...

    def as_reader(self, connection: Connection) -> Connection:
        """The connection, set so that its next transaction only reads, from one snapshot."""
        ...

    def as_planner(self, connection: Connection) -> Connection:
        """The same, and temporary tables may be staged; no writer waits for it."""
        ...

    def load(self, connection: Connection, table: Table, frame: pl.DataFrame) -> None:
        """Append every row of `frame` (columns named as the table's) to `table`."""
        ...

    def stage(self, connection: Connection, name: str, frame: pl.DataFrame) -> None:
        """Put `frame` into the temporary table `name`, replacing what it held."""
        ...

    def fetch(
        self,
        connection: Connection,
        sql: str,
        schema: Mapping[str, PolarsType],
        parameters: Sequence[object] = (),
    ) -> pl.DataFrame:
        """The rows of a query (parameters as `?`) as a frame of the given types.

        The types are never guessed: a column whose first rows are NULL would be guessed wrong.
        """
        ...

    def stream(
        self,
        connection: Connection,
        sql: str,
        schema: Mapping[str, PolarsType],
        parameters: Sequence[object] = (),
    ) -> Iterator[pl.DataFrame]:
        """As `fetch`, `ROWS_A_CHUNK` rows at a time: memory does not grow with the result."""
        ...

    def joined(self, column: str) -> str:
        """An aggregate: the numbers of a column as text with blanks between, in any order."""
        ...

    def in_byte_order(self, column: str) -> str:
        """A text column as something to sort by: by its UTF-8 bytes, as Python does."""
        ...

    def add_search(self, connection: Connection, frame: pl.DataFrame) -> None:
        """Add search entries: columns entry_no, title, identifiers, description, language.

        The texts are token strings made by `search_text.tokens`.
        """
        ...

    def drop_search(self, connection: Connection, staged: str) -> None:
        """Remove the search entries whose entry_no is in the staged table."""
        ...

    def search(
        self, connection: Connection, terms: Sequence[Sequence[str]], limit: int
    ) -> list[tuple[int, float]]:
        """Entries that hold every term, best first, as (entry_no, score).

        A term is a sequence of tokens that must stand next to each other.
        """
        ...

    def search_entries(self, connection: Connection) -> pl.DataFrame:
        """The entry_no of every search entry, for the completeness check."""
        ...

    def lock_lease(self, connection: Connection, name: str, token: int) -> bool:
        """Hold the lease's row to the end of the transaction; is `token` still its token?"""
        ...

    def lock_opening(self, connection: Connection) -> None:
        """Hold the right to make or upgrade the schema to the end of the transaction."""
        ...

    def lock_chain(self, connection: Connection, chain: str) -> None:
        """Hold the right to add to a hash chain to the end of the transaction."""
        ...

    def bytes_used(self, connection: Connection) -> int:
        """Bytes on the disk that the ledger takes, its indexes and what is not yet cleared away."""
        ...

    def after_load(self, connection: Connection, tables: Sequence[Table]) -> None:
        """After rows came in with their numbers: new numbers follow, and plans know the sizes."""
        ...

    def forget_deleted(self, engine: Engine) -> str | None:
        """Lose what was deleted or overwritten; what is left to do by hand, None for nothing."""
        ...
