"""Replays in the ledger: storing one with its frozen selection, and finding it again.

Belongs here: the rows. Does not belong here: what may be selected (`pipeline_assets/selection`)
and what is made of it (`pipeline_assets/prepare`). A replay is written in the transaction that
freezes its manifest, so there is never one without the other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import polars as pl
from sqlalchemy import Connection, insert

from resources.ledger.engine import Ledger
from resources.ledger.schema import replay_members, replays

MEMBER_SCHEMA = {
    "document_no": pl.Int64,
    "record_no": pl.Int64,
    "document_id": pl.String,
    "checksum": pl.String,
    "record_id": pl.String,
    "slice": pl.String,
}
"""A selected record: `checksum` of the bytes that are processed, `slice` why it is in."""


@dataclass(frozen=True)
class NewReplay:
    """A replay that is about to be stored.

    Attributes:
        replay_id: unique; the same one again is the same replay.
        from_version_no: whose records were selected.
        to_version_no: under which they are processed.
        reason: one of the closed list.
        note: why, in the operator's words.
        actor: who asked for it.
        expression: the filter as given; None without one.
        listed: documents that were listed by name; None without a list.
    """

    replay_id: str
    from_version_no: int
    to_version_no: int
    reason: str
    note: str
    actor: str
    expression: str | None = None
    listed: int | None = None


@dataclass(frozen=True)
class Replay:
    """A stored replay; keys instead of numbers, and the manifest that carries it out."""

    replay_no: int
    replay_id: str
    from_version: str
    to_version: str
    reason: str
    note: str
    actor: str
    expression: str | None
    listed: int | None
    selected: int
    selection_digest: str
    created_at: str
    manifest_id: str | None


_SELECT = (
    "SELECT y.replay_no, y.replay_id, f.key, t.key, y.reason, y.note, y.actor, y.expression, "
    "y.listed, y.selected, y.selection_digest, y.created_at, m.manifest_id FROM replays y "
    "JOIN processing_versions f ON f.version_no = y.from_version_no "
    "JOIN processing_versions t ON t.version_no = y.to_version_no "
    "LEFT JOIN manifests m ON m.replay_no = y.replay_no "
)
_SCHEMA = {
    "replay_no": pl.Int64,
    "replay_id": pl.String,
    "from_version": pl.String,
    "to_version": pl.String,
    "reason": pl.String,
    "note": pl.String,
    "actor": pl.String,
    "expression": pl.String,
    "listed": pl.Int64,
    "selected": pl.Int64,
    "selection_digest": pl.String,
    "created_at": pl.String,
    "manifest_id": pl.String,
}


def store_replay(
    connection: Connection, ledger: Ledger, replay: NewReplay, members: pl.DataFrame, at: str
) -> int:
    """Store a replay with its selection (`MEMBER_SCHEMA`); returns its number."""
    key = connection.execute(
        insert(replays).values(
            replay_id=replay.replay_id,
            from_version_no=replay.from_version_no,
            to_version_no=replay.to_version_no,
            reason=replay.reason,
            note=replay.note,
            actor=replay.actor,
            expression=replay.expression,
            listed=replay.listed,
            selected=members.height,
            selection_digest=selection_digest(members),
            created_at=at,
        )
    ).inserted_primary_key
    assert key is not None  # noqa: S101 - a single insert returns its key
    replay_no = int(key[0])
    ledger.dialect.load(
        connection,
        replay_members,
        members.select(
            "document_no",
            "record_no",
            "slice",
            replay_no=pl.lit(replay_no, dtype=pl.Int64),
        ),
    )
    return replay_no


def selection_digest(members: pl.DataFrame) -> str:
    """SHA-256 over (document_id, checksum, record_id) rows, sorted, as JSON lines."""
    digest = hashlib.sha256()
    encoder = msgspec.json.Encoder()
    for row in members.sort("document_id").select("document_id", "checksum", "record_id").rows():
        digest.update(encoder.encode(row))
        digest.update(b"\n")
    return digest.hexdigest()


def find_replay(ledger: Ledger, replay_id: str) -> Replay | None:
    """The replay of that id; None if there is none."""
    found = _find(ledger, "WHERE y.replay_id = ?", (replay_id,))
    return found[0] if found else None


def list_replays(ledger: Ledger, version_no: int | None = None) -> list[Replay]:
    """Every replay from or to a version, or of all versions, oldest first."""
    if version_no is None:
        return _find(ledger, "", ())
    return _find(
        ledger, "WHERE y.from_version_no = ? OR y.to_version_no = ?", (version_no, version_no)
    )


def _find(ledger: Ledger, where: str, parameters: Sequence[object]) -> list[Replay]:
    with ledger.read() as connection:
        rows = ledger.dialect.fetch(
            connection, f"{_SELECT} {where} ORDER BY y.replay_no", _SCHEMA, parameters
        )
    return [Replay(**row) for row in rows.iter_rows(named=True)]
