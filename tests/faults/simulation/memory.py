"""The ledger in memory, and artifacts in memory.

Belongs here: the real schema and the real dialect on one connection, emptied between schedules,
and a store with the interface of `ArtifactStore`. Does not belong here: what is done with them.
"""

from __future__ import annotations

import hashlib
import io
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, cast

import polars as pl
from sqlalchemy import Connection, create_engine
from sqlalchemy.pool import StaticPool

from resources.artifacts import ArtifactDamaged, ArtifactMissing, Kind, Stored
from resources.ledger.engine import Ledger, _translated, open_ledger
from resources.ledger.frames import declared
from resources.ledger.sqlite import SqliteDialect
from tests.faults.simulation.gate import TICK, Gate
from tests.faults.simulation.quick import QuickConnection

_AFFINITY: dict[type[pl.DataType], str] = {
    pl.Int64: "INTEGER",
    pl.Int32: "INTEGER",
    pl.UInt32: "INTEGER",
    pl.Float64: "REAL",
    pl.String: "TEXT",
}


class MemoryDialect(SqliteDialect):
    """SQLite's dialect, whose temporary tables are emptied instead of made anew.

    A table that is dropped makes SQLite prepare every statement again: a third of a schedule.
    """

    def __init__(self) -> None:
        self.ready: set[str] = set()

    def stage(self, connection: Connection, name: str, frame: pl.DataFrame) -> None:
        """As the parent's; a table of other columns is made anew."""
        driver = self._driver(connection)
        columns = declared(frame, _AFFINITY)
        known = f"{name}({columns})"
        if known not in self.ready:
            super().stage(connection, name, frame)
            return
        driver.execute(f"DELETE FROM temp.{name}")
        marks = ",".join("?" * len(frame.columns))
        driver.executemany(f"INSERT INTO temp.{name} VALUES ({marks})", frame.iter_rows())

    def note_tables(self, driver: sqlite3.Connection) -> None:
        """Learn which temporary tables outlive the transaction that made them."""
        rows = driver.execute("SELECT sql FROM sqlite_temp_master WHERE type = 'table'")
        self.ready = {row[0].removeprefix("CREATE TABLE ").replace(" (", "(", 1) for row in rows}


@dataclass(frozen=True)
class SimulatedLedger(Ledger):
    """The real ledger, each of whose transactions passes the gate."""

    gate: Gate
    judge: Any
    driver: sqlite3.Connection
    base: Ledger
    quick: Connection

    def close(self) -> None:
        """Give the connection back."""
        self.engine.dispose()
        self.base.close()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A read transaction."""
        self.gate.pass_by("read")
        with self._transaction("PRAGMA query_only=1", "BEGIN") as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A write transaction; it may fail before, at or after its commit."""
        gate = self.gate
        gate.clock.go_on(TICK)
        gate.pass_by("begin")
        self.judge.begin()
        with self._transaction("PRAGMA query_only=0", "BEGIN IMMEDIATE") as connection:
            yield connection
            gate.pass_by("commit")
        self.judge.committed()
        gate.pass_by("committed")

    @contextmanager
    def _transaction(self, access: str, begin: str) -> Iterator[Connection]:
        """The statements of the product's engine, and its translation of errors."""
        driver = self.driver
        with _translated(self.dialect, self.place):
            driver.execute(access)
            driver.execute(begin)
            try:
                yield self.quick
            except BaseException:
                driver.execute("ROLLBACK")
                raise
            driver.execute("COMMIT")


def open_memory(gate: Gate, judge: Any) -> SimulatedLedger:
    """The ledger's real schema in a database in memory; slow, so once a process.

    The schema is made through the product's own engine. Schedules then use its one connection,
    whose transactions begin by the same statements without SQLAlchemy's detours.
    """
    base = open_ledger("sqlite://", clock=gate.clock)
    with base.engine.connect() as connection:
        driver = cast(sqlite3.Connection, cast(Any, connection.connection).driver_connection)
    engine = create_engine(
        "sqlite://",
        creator=lambda: driver,
        poolclass=StaticPool,
        pool_reset_on_return=None,
        hide_parameters=True,
    )
    return SimulatedLedger(
        engine=engine,
        dialect=MemoryDialect(),
        clock=gate.clock,
        place="memory",
        ledger_id="5151515151515151",
        gate=gate,
        judge=judge,
        driver=driver,
        base=base,
        quick=cast(Connection, QuickConnection(engine.connect(), driver)),
    )


class MemoryFile:
    """What the store hands out where the real one hands out a path."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def open(self, _mode: str = "rb") -> BinaryIO:
        """The bytes."""
        return io.BytesIO(self._data)


@dataclass
class MemoryStore:
    """Artifacts by kind and digest; a write passes the gate before and after it is durable.

    Attributes:
        gate: where workers are disturbed.
        files: bytes by (kind, digest).
        frames: frames by digest, for the stages that keep frames as files.
    """

    gate: Gate
    files: dict[tuple[str, str], bytes] = field(default_factory=dict)
    frames: dict[str, pl.DataFrame] = field(default_factory=dict)

    def clear(self) -> None:
        """Forget everything."""
        self.files.clear()
        self.frames.clear()

    def put(self, kind: Kind, data: bytes) -> Stored:
        """Store bytes."""
        self.gate.pass_by("artifact", kind)
        digest = hashlib.sha256(data).hexdigest()
        self.files[(kind, digest)] = data
        return Stored(digest, len(data), cast(Path, MemoryFile(data)))

    def put_frame(self, kind: Kind, frame: pl.DataFrame) -> Stored:
        """Store a frame under a digest of its columns and rows."""
        stored = self.put(kind, repr((frame.columns, frame.rows())).encode())
        self.frames[stored.digest] = frame
        return stored

    def has(self, kind: Kind, digest: str) -> bool:
        """Is it there?"""
        return (kind, digest) in self.files

    def require(self, kind: Kind, digest: str) -> Path:
        """A handle of it.

        Raises:
            ArtifactMissing: it is not there.
        """
        if (kind, digest) not in self.files:
            raise ArtifactMissing(kind, digest)
        return cast(Path, digest)

    def open(self, kind: Kind, digest: str) -> BinaryIO:
        """The bytes as a stream."""
        self.require(kind, digest)
        return io.BytesIO(self.files[(kind, digest)])

    def verify(self, kind: Kind, digest: str) -> None:
        """Compare the bytes with the name.

        Raises:
            ArtifactMissing, ArtifactDamaged: it is not there, or not the same.
        """
        self.require(kind, digest)
        found = hashlib.sha256(self.files[(kind, digest)]).hexdigest()
        if found != digest:
            raise ArtifactDamaged(kind, digest, found)
