"""Opening the ledger: its engine, its schema, and the two kinds of transaction.

Belongs here: the connection, upgrading the schema, translating driver errors into `errors`.
Does not belong here: anything that differs between the databases (`sqlite.py`,
`postgres.py`) and any query about documents, records or batches.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import URL, Connection, Engine, inspect, make_url, select
from sqlalchemy.exc import ArgumentError, DBAPIError

from resources.clock import Clock, system_clock, to_text
from resources.ledger import postgres, sqlite
from resources.ledger.dialect import Dialect
from resources.ledger.errors import (
    LedgerFromNewerVersion,
    LedgerIncomplete,
    LedgerOfOtherProfile,
    LedgerOutdated,
    LedgerUnreachable,
    NotALedger,
    UnreadableLedgerUrl,
    UnsupportedDatabase,
)
from resources.ledger.schema import ledger_info

MIGRATIONS = Path(__file__).parent / "migrations"
RESTORING = "restoring"
"""Name of the row in `ledger_info` that stands there until a restore is finished."""
UPGRADES_ITSELF = "dev"
"""The profile whose ledgers are upgraded by whoever opens them; others wait for a command."""
_DIALECTS: dict[str, Dialect] = {"sqlite": sqlite.DIALECT, "postgresql": postgres.DIALECT}
# Alembic's `context` is one module-wide variable: two upgrades in threads would share it.
_one_upgrade_a_process = threading.Lock()


@dataclass(frozen=True)
class Database:
    """A database that may hold a ledger, connected and not looked at.

    Attributes:
        engine: SQLAlchemy engine.
        dialect: what differs between the two databases.
        place: how messages name it (no password).
    """

    engine: Engine
    dialect: Dialect
    place: str

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """As `Ledger.read`."""
        with (
            _translated(self.dialect, self.place),
            _reading(self.engine, self.dialect) as connection,
        ):
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """As `Ledger.write`."""
        with _translated(self.dialect, self.place), self.engine.begin() as connection:
            yield connection


@dataclass(frozen=True)
class Ledger:
    """An open ledger.

    Attributes:
        engine: SQLAlchemy engine; use `read` and `write` instead wherever possible.
        dialect: what differs between the two databases.
        clock: where every stored time comes from.
        place: how messages name the database (no password).
        ledger_id: sixteen hexadecimal digits, drawn once, part of every batch key.
    """

    engine: Engine
    dialect: Dialect
    clock: Clock
    place: str
    ledger_id: str

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A connection in one consistent read transaction.

        Raises:
            LedgerUnreachable: the database does not answer.
            LedgerNotWritable: the block tried to write.
        """
        with (
            _translated(self.dialect, self.place),
            _reading(self.engine, self.dialect) as connection,
        ):
            yield connection

    @contextmanager
    def plan(self) -> Iterator[Connection]:
        """A connection to ask what would be done: as `read`, and temporary tables may be staged.

        Nothing of the block is kept, whatever it wrote, and no writer waits for it.

        Raises:
            LedgerUnreachable: the database does not answer.
        """
        with (
            _translated(self.dialect, self.place),
            self.engine.connect() as connection,
        ):
            planner = self.dialect.as_planner(connection)
            transaction = planner.begin()
            try:
                yield planner
            finally:
                transaction.rollback()

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A connection in one write transaction, committed at the end of the block.

        Raises:
            LedgerUnreachable: the database does not answer; nothing was committed.
            LedgerBusy: another transaction stood in the way; nothing was committed.
            StorageFull: the disk is full; nothing was committed.
        """
        with _translated(self.dialect, self.place), self.engine.begin() as connection:
            yield connection

    def now(self) -> str:
        """The clock's time in the ledger's text form."""
        return to_text(self.clock())

    def forget_deleted(self) -> str | None:
        """Let the database lose what was deleted or overwritten in it.

        Returns:
            What is left for whoever runs the database to do; None where nothing is.

        Raises:
            LedgerBusy: another transaction stood in the way.
            StorageFull: the disk has no room for a second copy of the database's file.
        """
        with _translated(self.dialect, self.place):
            return self.dialect.forget_deleted(self.engine)

    def close(self) -> None:
        """Give the connections back; the ledger cannot be used afterwards."""
        self.engine.dispose()


def normalise_url(url: str) -> str:
    """`url` with the driver that the ledger uses.

    A bare `postgresql://` means another driver in each release of SQLAlchemy, so it is
    decided here alone.

    Raises:
        UnreadableLedgerUrl: not a URL.
        UnsupportedDatabase: neither SQLite nor PostgreSQL.
    """
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise UnreadableLedgerUrl("it is not a database URL") from None
    backend = parsed.get_backend_name()
    if backend == "postgres":
        backend = "postgresql"
    if backend not in _DIALECTS:
        raise UnsupportedDatabase(backend)
    if has_stray_at(parsed):
        raise UnreadableLedgerUrl(
            "more than one '@' stands in it; write one in a user or a password as %40"
        )
    driver = "postgresql+psycopg" if backend == "postgresql" else "sqlite+pysqlite"
    return parsed.set(drivername=driver).render_as_string(hide_password=False)


def has_stray_at(url: URL) -> bool:
    """Does a piece of the password stand in the host or database, behind an '@' not escaped?"""
    found = "" if url.get_backend_name() == "sqlite" else f"{url.host or ''}{url.database or ''}"
    return "@" in found


def open_ledger(
    url: str,
    *,
    profile: str = "dev",
    clock: Clock = system_clock,
    rng: random.Random | None = None,
    upgrade: bool | None = None,
) -> Ledger:
    """Open the ledger at `url`, making its schema, or upgrading it where that is wanted.

    Args:
        url: any SQLite or PostgreSQL URL.
        profile: the profile that asks; a ledger made under another one is refused.
        clock: where stored times come from.
        rng: draws the ledger's id when it is made; the system's generator by default.
        upgrade: upgrade the schema of an earlier release; by default under profile `dev` alone.

    Raises:
        LedgerUnreachable: the database does not answer.
        LedgerFromNewerVersion: the schema is of a newer release.
        LedgerOutdated: the schema is of an earlier release, and is not to be upgraded here.
        LedgerIncomplete: a restore into it was not finished.
        LedgerOfOtherProfile: made under another profile.
        NotALedger: the database holds something else.
        UnreadableLedgerUrl: not a URL, or with an option that the driver does not know.
        UnsupportedDatabase: neither SQLite nor PostgreSQL.
    """
    database = connect(url)
    wanted = _Wanted(profile, profile == UPGRADES_ITSELF if upgrade is None else upgrade)
    try:
        identity = _identify(database, wanted)
        if not identity:
            make = partial(_new_identity, profile, clock, rng or random.SystemRandom())
            identity = _make_or_upgrade(database, wanted, make)
    except BaseException:
        database.engine.dispose()
        raise
    return ledger_of(database, identity["ledger_id"], clock)


def connect(url: str) -> Database:
    """The database of a URL; nothing is asked of it yet.

    Raises:
        UnreadableLedgerUrl: not a URL.
        UnsupportedDatabase: neither SQLite nor PostgreSQL.
    """
    normal = normalise_url(url)
    dialect = _DIALECTS[make_url(normal).get_backend_name()]
    return Database(dialect.make_engine(normal), dialect, _without_secrets(normal))


def ledger_of(database: Database, ledger_id: str, clock: Clock) -> Ledger:
    """A connected database as a ledger, without a question whether it is one."""
    return Ledger(
        engine=database.engine,
        dialect=database.dialect,
        clock=clock,
        place=database.place,
        ledger_id=ledger_id,
    )


def upgrade_within(connection: Connection, revision: str = "head") -> None:
    """Bring the schema to a revision, inside a transaction that holds the opening lock."""
    config = alembic_config()
    config.attributes["connection"] = connection
    with _one_upgrade_a_process:
        command.upgrade(config, revision)


def revision_of(connection: Connection) -> str | None:
    """The revision of the schema; None where the database has none."""
    found = MigrationContext.configure(connection).get_current_heads()
    return ", ".join(sorted(found)) or None


def newest_revision() -> str:
    """The revision that this release works with."""
    return str(ScriptDirectory.from_config(alembic_config()).get_current_head())


def alembic_config() -> Config:
    """Alembic's configuration for the ledger's migrations (no ini file)."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    return config


def _without_secrets(url: str) -> str:
    # A password may stand in the query too, so nothing of the query is shown.
    parsed = make_url(url).set(query={})
    parsed = parsed.set(drivername=parsed.get_backend_name())
    return parsed.render_as_string(hide_password=True)


@contextmanager
def _reading(engine: Engine, dialect: Dialect) -> Iterator[Connection]:
    with engine.connect() as connection:
        reader = dialect.as_reader(connection)
        with reader.begin():
            yield reader


@dataclass(frozen=True)
class _Wanted:
    """How a ledger is to be opened: under which profile, and whether it may be upgraded."""

    profile: str
    upgrade: bool


def _identify(database: Database, wanted: _Wanted) -> dict[str, str]:
    """Reading only: opening a ledger never waits for whoever is writing to it."""
    with database.read() as connection:
        return _settled_identity(connection, database.place, wanted)


def _make_or_upgrade(
    database: Database, wanted: _Wanted, make: Callable[[], dict[str, str]]
) -> dict[str, str]:
    with database.write() as connection:
        database.dialect.lock_opening(connection)
        identity = _settled_identity(connection, database.place, wanted)
        if identity:
            return identity
        upgrade_within(connection)
        identity = _stored_identity(connection)
        if not identity:
            identity = make()
            rows = [{"name": name, "value": value} for name, value in identity.items()]
            connection.execute(ledger_info.insert(), rows)
        return identity


def _settled_identity(connection: Connection, place: str, wanted: _Wanted) -> dict[str, str]:
    """What the ledger says of itself; empty where its schema is to be made or upgraded.

    Whether it may be used at all is asked first, so that nothing of a stranger's is upgraded.
    """
    identity = identity_within(connection, place)
    if identity is None:
        return {}
    if RESTORING in identity:
        raise LedgerIncomplete(place, identity[RESTORING])
    if identity.get("profile", wanted.profile) != wanted.profile:
        raise LedgerOfOtherProfile(place, identity["profile"], wanted.profile)
    head, found = newest_revision(), revision_of(connection)
    if found == head:
        return identity
    require_known(place, found)
    if not wanted.upgrade:
        raise LedgerOutdated(place, found or "without a number", head)
    return {}


def identity_within(connection: Connection, place: str) -> dict[str, str] | None:
    """What the ledger in a database says of itself; None where there is none and may be one.

    Raises:
        NotALedger: the database holds something else.
    """
    tables = set(inspect(connection).get_table_names())
    if ledger_info.name in tables:
        return _stored_identity(connection)
    foreign = tables - {"alembic_version"}
    if foreign:
        raise NotALedger(place, f"it holds {len(foreign)} other tables")
    return None


def require_known(place: str, revision: str | None) -> None:
    """Refuse a schema that this release has never heard of.

    Raises:
        LedgerFromNewerVersion: it was written by a newer release.
    """
    script = ScriptDirectory.from_config(alembic_config())
    known = {entry.revision for entry in script.walk_revisions()}
    unknown = set(revision.split(", ") if revision else ()) - known
    if unknown:
        raise LedgerFromNewerVersion(place, ", ".join(sorted(unknown)), newest_revision())


def _stored_identity(connection: Connection) -> dict[str, str]:
    rows = connection.execute(select(ledger_info.c.name, ledger_info.c.value))
    return {row.name: row.value for row in rows}


def _new_identity(profile: str, clock: Clock, rng: random.Random) -> dict[str, str]:
    return {
        "ledger_id": f"{rng.getrandbits(64):016x}",
        "profile": profile,
        "made_at": to_text(clock()),
    }


@contextmanager
def _translated(dialect: Dialect, place: str) -> Iterator[None]:
    """Turn connection, lock and disk errors into the ledger's own; let mistakes through."""
    try:
        yield
    except DBAPIError as error:
        explained = dialect.explain(error.orig, place)
        if explained is None and error.connection_invalidated:
            explained = LedgerUnreachable(place, "the connection was lost")
        if explained is None:
            raise
        raise explained from error
    except dialect.driver_error as error:
        explained = dialect.explain(error, place)
        if explained is None:
            raise
        raise explained from error
