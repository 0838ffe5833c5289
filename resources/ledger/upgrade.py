"""Upgrading a ledger by command: what is found, what will be done, and doing it.

Belongs here: that. Does not belong here: the changes themselves (`migrations/`) and opening
(`engine.py`, which upgrades by itself under profile `dev` alone).
"""

from __future__ import annotations

from dataclasses import dataclass

from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect, text

from resources.clock import Clock
from resources.ledger.engine import (
    RESTORING,
    Database,
    alembic_config,
    connect,
    identity_within,
    newest_revision,
    open_ledger,
    require_known,
    revision_of,
)
from resources.ledger.errors import LedgerIncomplete, LedgerOfOtherProfile

_OPEN_BATCHES = (
    "SELECT state, COUNT(*) FROM batches "
    "WHERE state NOT IN ('completed', 'completed_with_errors', 'cancelled') "
    "GROUP BY state ORDER BY state"
)


@dataclass(frozen=True)
class Step:
    """One migration: its revision and what it says of itself."""

    revision: str
    what: str


@dataclass(frozen=True)
class SchemaStanding:
    """What an upgrade would find and do.

    Attributes:
        place: the database, without secrets.
        found: the revision of its schema; None where there is no ledger.
        wanted: the revision that this release works with.
        steps: the migrations in between, in order.
        open_batches: state → batches that are under way; an upgrade leaves them as they are.
        newest_backup: when the last backup was made; None where there is none on record.
    """

    place: str
    found: str | None
    wanted: str
    steps: tuple[Step, ...]
    open_batches: dict[str, int]
    newest_backup: str | None


def look_at_schema(url: str, profile: str) -> SchemaStanding:
    """What an upgrade of the ledger at `url` would find and do; reads only.

    Raises:
        LedgerError: it cannot be reached, is no ledger, is of another profile, of a newer release,
            or only half restored.
    """
    database = connect(url)
    try:
        with database.read() as connection:
            return _look(connection, database, profile)
    finally:
        database.engine.dispose()


def migrate(url: str, profile: str, clock: Clock) -> None:
    """Upgrade the ledger at `url` to the schema of this release, in one transaction.

    Of two upgrades at once, one waits for the other and finds nothing to do.

    Raises:
        LedgerError: as `look_at_schema`; or another transaction stood in the way for too long, and
            nothing was changed.
    """
    open_ledger(url, profile=profile, clock=clock, upgrade=True).close()


def _look(connection: Connection, database: Database, profile: str) -> SchemaStanding:
    wanted = newest_revision()
    identity = identity_within(connection, database.place)
    if identity is None:
        return SchemaStanding(database.place, None, wanted, (), {}, None)
    if RESTORING in identity:
        raise LedgerIncomplete(database.place, identity[RESTORING])
    if identity.get("profile", profile) != profile:
        raise LedgerOfOtherProfile(database.place, identity["profile"], profile)
    found = revision_of(connection)
    require_known(database.place, found)
    rows = connection.execute(text(_OPEN_BATCHES))
    return SchemaStanding(
        place=database.place,
        found=found,
        wanted=wanted,
        steps=_steps(found, wanted),
        open_batches={str(state): int(count) for state, count in rows},
        newest_backup=_newest_backup(connection),
    )


def _steps(found: str | None, wanted: str) -> tuple[Step, ...]:
    script = ScriptDirectory.from_config(alembic_config())
    revisions = script.iterate_revisions(wanted, found or "base")
    return tuple(
        Step(entry.revision, str(entry.doc).strip().splitlines()[0])
        for entry in reversed(list(revisions))
        if entry.revision != found
    )


def _newest_backup(connection: Connection) -> str | None:
    """Asked of the database: a ledger of an earlier release has no such table."""
    if not inspect(connection).has_table("backups"):
        return None
    return connection.execute(text("SELECT MAX(made_at) FROM backups")).scalar()
