"""Making a move: the change of state, its journal row and its members, in one transaction.

Belongs here: the only statements that change a state. Does not belong here: deciding which
move to make (the stages) and which moves are legal (`transitions.py`).

The journal is a set of hash chains, one a batch or version: each row's digest covers what the
row says, its members and the previous row of its chain. Every move locks its chain before any
row, so that two writers to one chain take turns and never wait for each other in a circle.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal

import polars as pl
import rfc8785
from sqlalchemy import Connection, Update, insert, text, update

from resources.ledger.dialect import Dialect
from resources.ledger.frames import digest_of_members
from resources.ledger.schema import batches, canaries, moves, processing_versions
from resources.ledger.transitions import START, Machine, require_legal

GENESIS = "0" * 64
"""The previous digest of the first move of a chain."""

# State is never null and in no index; COALESCE keeps PostgreSQL from guessing, by statistics that
# know a state of the open transaction for rare, that one row is left: it then looked through the
# whole stage for each record (25,000 of them: a minute, and a second with the join by hash).
_MOVE = text(
    "UPDATE record_state SET state = :to_state, version = version + 1, not_before = NULL "
    "WHERE record_no IN (SELECT record_no FROM stage_move) "
    "AND COALESCE(state, '') = :from_state"
)
_HEAD = text("SELECT digest FROM moves WHERE chain = :chain ORDER BY move_no DESC LIMIT 1")
_ADD = insert(moves)
_ADD_MEMBERS = text(
    "INSERT INTO move_members (move_no, record_no) "
    "SELECT CAST(:move_no AS BIGINT), record_no FROM stage_move"
)


@dataclass(frozen=True)
class Cause:
    """Why a move is made.

    Attributes:
        reason: a short sentence for people.
        actor: who or what moved it, e.g. `tallybook run` or a person's name.
        at: the ledger's text form of the time.
        cause: what led to it, e.g. a stage or command, for machines.
    """

    reason: str
    actor: str
    at: str
    cause: str


@dataclass(frozen=True)
class MoveReceipt:
    """A move that was made: its number, its digest and how many members it moved."""

    move_no: int
    digest: str
    members: int


class MoveRefused(Exception):
    """Some members were not in the state that the move starts from; nothing was changed.

    Attributes:
        refused: record_no and the state found (null where there is no such record).
    """

    def __init__(self, from_state: str, to_state: str, asked: int, refused: pl.DataFrame) -> None:
        self.refused = refused
        sample = ", ".join(
            f"{row['record_no']} is {row['state'] or 'unknown'}"
            for row in refused.head(3).iter_rows(named=True)
        )
        super().__init__(
            f"{refused.height} of {asked} records are not {from_state!r} and cannot go to "
            f"{to_state!r} (record {sample}); nothing was moved. Someone else moved them, or the "
            "selection is out of date: select again."
        )


class StateChanged(Exception):
    """A batch or version was not in the state that the move starts from."""

    def __init__(self, machine: Machine, subject: int, from_state: str, to_state: str) -> None:
        super().__init__(
            f"{machine} {subject} is no longer {from_state!r} and cannot go to {to_state!r}; "
            "another worker moved it first. Nothing was changed: run again."
        )


def batch_chain(batch_no: int) -> str:
    """The name of a batch's hash chain."""
    return f"batch:{batch_no}"


def version_chain(version_no: int) -> str:
    """The name of a processing version's hash chain."""
    return f"version:{version_no}"


def move_records(
    connection: Connection,
    dialect: Dialect,
    members: pl.Series,
    from_state: str,
    to_state: str,
    cause: Cause,
    chain: str,
) -> MoveReceipt | None:
    """Move a set of records, all or none.

    Args:
        connection: inside a write transaction, the fence already checked.
        dialect: the database's own way to stage a set.
        members: record numbers, no nulls, no repeats.
        from_state: where all of them are now.
        to_state: where all of them go.
        cause: time, reason, actor.
        chain: the hash chain that the journal row joins.

    Returns:
        The receipt, or None for an empty set (an empty move is not journaled).

    Raises:
        IllegalTransition: the table has no such move.
        MoveRefused: a member is in another state; the move itself is undone already.
        ValueError: the set has nulls or repeats.
    """
    require_legal("record", from_state, to_state)
    if members.is_empty():
        return None
    dialect.lock_chain(connection, chain)
    _stage_members(connection, dialect, members)
    savepoint = connection.begin_nested()
    moved = connection.execute(
        _MOVE,
        {"to_state": to_state, "from_state": from_state},
    ).rowcount
    if moved != members.len():
        savepoint.rollback()
        raise MoveRefused(
            from_state, to_state, members.len(), _refused(connection, dialect, from_state)
        )
    savepoint.commit()
    return _journal_members(connection, members, from_state, to_state, cause, chain)


def create_records(
    connection: Connection, dialect: Dialect, members: pl.Series, cause: Cause, chain: str
) -> MoveReceipt | None:
    """Journal the creation of records whose `record_state` rows were just loaded as `queued`.

    Raises:
        ValueError: the set has nulls or repeats.
    """
    if members.is_empty():
        return None
    dialect.lock_chain(connection, chain)
    _stage_members(connection, dialect, members)
    return _journal_members(connection, members, START, "queued", cause, chain)


def move_batch(
    connection: Connection,
    dialect: Dialect,
    batch_no: int,
    from_state: str,
    to_state: str,
    cause: Cause,
) -> MoveReceipt:
    """Move one batch and journal it on the batch's chain.

    Raises:
        IllegalTransition: the table has no such move.
        StateChanged: the batch is in another state.
    """
    change = (
        update(batches)
        .where(batches.c.batch_no == batch_no, batches.c.state == from_state)
        .values(state=to_state)
    )
    return _move_subject(
        connection, dialect, "batch", batch_no, from_state, to_state, cause, change
    )


def move_canary(
    connection: Connection,
    dialect: Dialect,
    canary_no: int,
    from_state: str,
    to_state: str,
    cause: Cause,
) -> MoveReceipt:
    """Move one canary and journal it on the canary's chain.

    Raises:
        IllegalTransition: the table has no such move.
        StateChanged: the canary is in another state.
    """
    change = (
        update(canaries)
        .where(canaries.c.canary_no == canary_no, canaries.c.state == from_state)
        .values(state=to_state)
    )
    return _move_subject(
        connection, dialect, "canary", canary_no, from_state, to_state, cause, change
    )


def move_version(
    connection: Connection,
    dialect: Dialect,
    version_no: int,
    from_state: str,
    to_state: str,
    cause: Cause,
) -> MoveReceipt:
    """Move one processing version and journal it on the version's chain.

    Raises:
        IllegalTransition: the table has no such move.
        StateChanged: the version is in another state.
    """
    table = processing_versions.c
    change = (
        update(processing_versions)
        .where(table.version_no == version_no, table.state == from_state)
        .values(state=to_state, state_reason=cause.reason)
    )
    return _move_subject(
        connection, dialect, "version", version_no, from_state, to_state, cause, change
    )


def close_report(
    connection: Connection, dialect: Dialect, report_no: int, cause: Cause
) -> MoveReceipt:
    """Journal the closing of a report, on a chain of its own.

    Args:
        connection: inside the write transaction that stores the closing.
        dialect: the database's own way to lock.
        report_no: the report.
        cause: its `cause` names the report's digest, which the chain then vouches for.
    """
    return _move_subject(connection, dialect, "report", report_no, START, "closed", cause, None)


def _move_subject(
    connection: Connection,
    dialect: Dialect,
    machine: Literal["batch", "version", "canary", "report"],
    subject_no: int,
    from_state: str,
    to_state: str,
    cause: Cause,
    change: Update | None,
) -> MoveReceipt:
    """Move one thing that has a row of its own; a new one has its state already."""
    require_legal(machine, from_state, to_state)
    chain = f"{machine}:{subject_no}"
    dialect.lock_chain(connection, chain)
    if from_state != START and (change is None or connection.execute(change).rowcount != 1):
        raise StateChanged(machine, subject_no, from_state, to_state)
    subject = pl.Series([subject_no], dtype=pl.Int64)
    return _journal(connection, machine, subject, subject_no, from_state, to_state, cause, chain)


def move_digest(row: dict[str, str | int | None]) -> str:
    """The digest of a journal row: SHA-256 over its canonical JSON (RFC 8785).

    `row` holds chain, machine, subject_no, from_state, to_state, reason, actor, cause, moved_at,
    members, members_digest and previous_digest.
    """
    return hashlib.sha256(rfc8785.dumps(dict(row))).hexdigest()


def _stage_members(connection: Connection, dialect: Dialect, members: pl.Series) -> None:
    # A repeat would be counted once by the database: the move would look refused without a row.
    if members.null_count() or members.n_unique() != members.len():
        raise ValueError(
            f"found repeats or nulls among {members.len()} record numbers; expected a set: "
            "use unique() and drop_nulls()"
        )
    dialect.stage(connection, "stage_move", pl.DataFrame({"record_no": members.cast(pl.Int64)}))


def _refused(connection: Connection, dialect: Dialect, from_state: str) -> pl.DataFrame:
    return dialect.fetch(
        connection,
        "SELECT s.record_no, r.state FROM stage_move s "
        "LEFT JOIN record_state r ON r.record_no = s.record_no "
        "WHERE r.state IS NULL OR r.state <> ? ORDER BY s.record_no",
        {"record_no": pl.Int64, "state": pl.String},
        (from_state,),
    )


def _journal_members(
    connection: Connection,
    members: pl.Series,
    from_state: str,
    to_state: str,
    cause: Cause,
    chain: str,
) -> MoveReceipt:
    receipt = _journal(connection, "record", members, None, from_state, to_state, cause, chain)
    connection.execute(_ADD_MEMBERS, {"move_no": receipt.move_no})
    return receipt


def _journal(
    connection: Connection,
    machine: Machine,
    members: pl.Series,
    subject_no: int | None,
    from_state: str,
    to_state: str,
    cause: Cause,
    chain: str,
) -> MoveReceipt:
    previous = connection.execute(_HEAD, {"chain": chain}).scalar()
    row: dict[str, str | int | None] = {
        "chain": chain,
        "machine": machine,
        "subject_no": subject_no,
        "from_state": from_state,
        "to_state": to_state,
        "reason": cause.reason,
        "actor": cause.actor,
        "cause": cause.cause,
        "moved_at": cause.at,
        "members": members.len(),
        "members_digest": digest_of_members(members),
        "previous_digest": previous or GENESIS,
    }
    digest = move_digest(row)
    move_no = connection.execute(_ADD, {**row, "digest": digest}).inserted_primary_key
    assert move_no is not None  # noqa: S101 - both databases return the key of a single insert
    return MoveReceipt(move_no=int(move_no[0]), digest=digest, members=members.len())
