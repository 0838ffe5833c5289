"""Processing versions in the ledger: frozen at first use, never edited.

Belongs here: freezing, reading and the state of a version with the moves that led there, and its
operating settings. Does not belong here: computing a digest (`partitions/processing_version.py`)
and what a hold is for (`pipeline_assets/recovery/holds.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Select, insert, select
from sqlalchemy.exc import IntegrityError

from resources.ledger.engine import Ledger
from resources.ledger.moves import Cause, move_version, version_chain
from resources.ledger.schema import moves, operating_settings, processing_versions
from resources.ledger.transitions import START


class VersionChanged(Exception):
    """A spec's digest is not the one that was frozen at first use."""

    def __init__(self, key: str, frozen: str, found: str) -> None:
        super().__init__(
            f"{key}.yaml, or the prompt, schema or thresholds it uses, was changed after first "
            f"use: frozen digest {frozen[:16]}, found {found[:16]}. A version is never edited: "
            "undo the change, or give the changed version a new key in a file of its own."
        )


class VersionNotActive(Exception):
    """A version is held or retired, so no new work is started under it."""

    def __init__(self, key: str, state: str, reason: str) -> None:
        super().__init__(
            f"processing version {key!r} is {state} ({reason}); its records keep their states. "
            "Release it, or use another version."
        )


@dataclass(frozen=True)
class FrozenVersion:
    """A version as the ledger froze it."""

    version_no: int
    key: str
    workload: str
    digest: str
    state: str
    state_reason: str


@dataclass(frozen=True)
class VersionMove:
    """One journal row of a version: what it went to, why, when, and by whom."""

    move_no: int
    from_state: str
    to_state: str
    reason: str
    actor: str
    cause: str
    moved_at: str


def freeze(
    ledger: Ledger, key: str, workload: str, digest: str, spec: str, cause: Cause
) -> FrozenVersion:
    """The version of `key`, frozen now if this is its first use.

    Args:
        ledger: the ledger.
        key: the version's key.
        workload: what it extracts.
        digest: the digest computed from today's files.
        spec: the spec as canonical JSON, kept for reading.
        cause: who uses it first, and when.

    Raises:
        VersionChanged: it was frozen with another digest.
    """
    found = find(ledger, key)
    if found is None:
        try:
            with ledger.write() as connection:
                connection.execute(
                    insert(processing_versions).values(
                        key=key,
                        workload=workload,
                        digest=digest,
                        spec=spec,
                        state="active",
                        state_reason=cause.reason,
                        frozen_at=cause.at,
                    )
                )
                row = _row(connection, key)
                assert row is not None  # noqa: S101 - inserted above
                move_version(connection, ledger.dialect, row.version_no, START, "active", cause)
                return row
        except IntegrityError:
            # Another worker froze it between the look and the insert.
            found = find(ledger, key)
            assert found is not None  # noqa: S101 - the unique key says so
    if found.digest != digest:
        raise VersionChanged(key, found.digest, digest)
    return found


def find(ledger: Ledger, key: str) -> FrozenVersion | None:
    """The frozen version of `key`, or None if it was never used."""
    with ledger.read() as connection:
        return _row(connection, key)


def state_of(connection: Connection, version_no: int) -> str:
    """The state of a version, inside a transaction."""
    return str(
        connection.execute(
            select(processing_versions.c.state).where(
                processing_versions.c.version_no == version_no
            )
        ).scalar_one()
    )


def key_of(connection: Connection, version_no: int) -> str:
    """The key of a version, inside a transaction."""
    return str(
        connection.execute(
            select(processing_versions.c.key).where(processing_versions.c.version_no == version_no)
        ).scalar_one()
    )


def newest_move(connection: Connection, version_no: int) -> VersionMove | None:
    """The last move of a version; None where it was never moved, not even frozen."""
    row = connection.execute(_moves(version_no).order_by(moves.c.move_no.desc()).limit(1)).first()
    return None if row is None else VersionMove(*row)


def moves_of(connection: Connection, version_no: int) -> list[VersionMove]:
    """Every move of a version, oldest first."""
    rows = connection.execute(_moves(version_no).order_by(moves.c.move_no))
    return [VersionMove(*row) for row in rows]


def list_versions(ledger: Ledger) -> list[FrozenVersion]:
    """Every version that was ever used, oldest first."""
    with ledger.read() as connection:
        rows = connection.execute(
            select(processing_versions).order_by(processing_versions.c.version_no)
        )
        return [_frozen(row) for row in rows]


def set_operating(
    ledger: Ledger, version_no: int | None, name: str, value: str, cause: Cause
) -> None:
    """Journal a new value of an operating setting, for one version or for all (None)."""
    with ledger.write() as connection:
        journal_operating(connection, version_no, name, value, cause)


def journal_operating(
    connection: Connection, version_no: int | None, name: str, value: str, cause: Cause
) -> None:
    """The same inside a transaction."""
    connection.execute(
        insert(operating_settings).values(
            version_no=version_no,
            name=name,
            value=value,
            reason=cause.reason,
            actor=cause.actor,
            set_at=cause.at,
        )
    )


def get_operating(ledger: Ledger, version_no: int, name: str, default: str) -> str:
    """The newest value of a setting: the version's own, else the one for all, else `default`."""
    with ledger.read() as connection:
        return operating_value(connection, version_no, name, default)


def operating_value(connection: Connection, version_no: int, name: str, default: str) -> str:
    """The same inside a transaction."""
    table = operating_settings.c
    row = connection.execute(
        select(table.value)
        .where(
            table.name == name,
            (table.version_no == version_no) | table.version_no.is_(None),
        )
        .order_by(table.version_no.is_(None), table.setting_no.desc())
        .limit(1)
    ).first()
    return default if row is None else str(row.value)


def all_operating(ledger: Ledger, version_no: int) -> dict[str, str]:
    """Every setting that somebody set, as it holds for a version: its own, else the one for all."""
    table = operating_settings.c
    with ledger.read() as connection:
        rows = connection.execute(
            select(table.name, table.value)
            .where((table.version_no == version_no) | table.version_no.is_(None))
            # The last one of a name stays: those for all first, then the version's own.
            .order_by(table.version_no.is_not(None), table.setting_no)
        )
        return {row.name: row.value for row in rows}


def _moves(version_no: int) -> Select[Any]:
    table = moves.c
    return select(*(table[name] for name in VersionMove.__dataclass_fields__)).where(
        table.chain == version_chain(version_no)
    )


def _row(connection: Connection, key: str) -> FrozenVersion | None:
    row = connection.execute(
        select(processing_versions).where(processing_versions.c.key == key)
    ).first()
    return None if row is None else _frozen(row)


def _frozen(row: object) -> FrozenVersion:
    fields = ("version_no", "key", "workload", "digest", "state", "state_reason")
    return FrozenVersion(*(getattr(row, name) for name in fields))
