"""Dead letters as their owner meets them: read, given up, or given to somebody else.

Belongs here: what becomes of dead letters without a new attempt, and everything that is known of
one. Does not belong here: making new attempts (`prepare/retries.py`), which of them are meant
(`dead_letter_choice.py`), the alerts (`dead_letter_alerts.py`) and the rows
(`resources/ledger/dead_letters.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl
from sqlalchemy import Connection

from pipeline_assets.operating import operating
from pipeline_assets.recovery.dead_letter_alerts import look_at_dead_letters
from pipeline_assets.recovery.dead_letter_choice import EXAMPLES, Selection, choose, match_names
from resources.context import Context
from resources.ledger.dead_letters import (
    DEAD_LETTER_SCHEMA,
    assign_dead_letters,
    close_dead_letters,
    find_dead_letters,
    lines_of,
    open_dead_letters,
    stale_episodes,
    tries_of,
)
from resources.ledger.engine import Ledger
from resources.ledger.leases import fenced, held
from resources.ledger.moves import Cause, batch_chain, move_records

_OWNER_LENGTH = 128
_CLOSING_BY_STATE = {
    "prepared": "requeued",
    "submitted": "requeued",
    "retry_wait": "requeued",
    "discarded": "discarded",
    "superseded": "superseded",
    "withdrawn": "withdrawn",
}
"""How an episode ended whose record is in a state now; in any other state it was answered."""


class ReasonMissing(ValueError):
    """Something is to be done with dead letters and nobody says why."""

    def __init__(self, wish: str) -> None:
        super().__init__(f"found an empty reason; expected why they are {wish}: --reason TEXT")


class OwnerRefused(ValueError):
    """An owner without a name, or with one that is too long."""

    def __init__(self, length: int) -> None:
        super().__init__(
            f"found an owner of {length} characters; expected a name of 1 to {_OWNER_LENGTH}"
        )


@dataclass(frozen=True)
class Desk:
    """A version's dead letters and whom they belong to.

    Attributes:
        version_no: the version's number.
        key: its key.
        owner: whom those belong to that have no owner of their own.
    """

    version_no: int
    key: str
    owner: str

    @property
    def lease_name(self) -> str:
        """The lease that whoever deals with them commits under."""
        return f"recovery:{self.key}"


@dataclass(frozen=True)
class Change:
    """What was done with dead letters.

    Attributes:
        records: how many.
        documents: the first few of them.
    """

    records: int
    documents: tuple[str, ...]


def require_reason(reason: str, wish: str) -> str:
    """The reason without white space around it.

    Raises:
        ReasonMissing: nothing is left.
    """
    if not reason.strip():
        raise ReasonMissing(wish)
    return reason.strip()


def dead_letters_of(context: Context, version_no: int, *, only_open: bool = True) -> pl.DataFrame:
    """The dead letters of a version (`FOUND_SCHEMA`); one without an owner has the usual one."""
    with context.ledger.read() as connection:
        found = find_dead_letters(connection, context.ledger, version_no, only_open=only_open)
    return _owned(found, operating(context.ledger, version_no).dead_letter_owner)


def story(context: Context, version_no: int, key: str, name: str) -> list[dict[str, Any]]:
    """Everything about the dead letters of a document or record, past ones too.

    Returns:
        One dict a record: its ids, its state, `episodes` (oldest first), `attempts` (each with
        its disposition and what was decided after it) and `lines` (where each line that came back
        lies: artifact, line, offset and length in bytes; never its text).

    Raises:
        UnknownDeadLetter, AmbiguousDeadLetter: the name is of none, or of several documents.
    """
    found = match_names(dead_letters_of(context, version_no, only_open=False), (name,), key)
    records = found["record_no"].unique().sort()
    with context.ledger.read() as connection:
        tries = tries_of(connection, context.ledger, records)
        lines = lines_of(connection, context.ledger, records)
    return [
        {
            **_first(part, ("document_id", "record_id", "version_key", "state")),
            "episodes": _without(part.sort("opened_at", "attempt_no"), _OF_RECORD),
            "attempts": _without(tries.filter(pl.col("record_no") == number), ("record_no",)),
            "lines": _without(lines.filter(pl.col("record_no") == number), ("record_no",)),
        }
        for number in records
        for part in (found.filter(pl.col("record_no") == number),)
    ]


_OF_RECORD = (
    "record_no",
    "record_id",
    "document_id",
    "version_no",
    "version_key",
    "state",
    "newest_batch_no",
    "batch_no",
    "result_file_no",
    "attempts",
)


def _first(part: pl.DataFrame, names: tuple[str, ...]) -> dict[str, Any]:
    return part.select(names).row(0, named=True)


def _without(part: pl.DataFrame, names: tuple[str, ...]) -> list[dict[str, Any]]:
    return part.drop(names).to_dicts()


def desk_of(context: Context, version_no: int, key: str) -> Desk:
    """The desk of a version."""
    return Desk(version_no, key, operating(context.ledger, version_no).dead_letter_owner)


def discard(
    context: Context, version_no: int, key: str, selection: Selection, reason: str
) -> Change:
    """Give dead letters up for good: no attempt is made of them any more unless one is asked for.

    Raises:
        ReasonMissing: nobody says why.
        SelectionUnclear, UnknownDeadLetter, AmbiguousDeadLetter, NothingSelected: see `choose`.
        LeaseHeld: another worker deals with the version's dead letters.
        MoveRefused: a record was moved in this moment; nothing was changed.
    """
    why = require_reason(reason, "discarded")
    ledger, desk = context.ledger, desk_of(context, version_no, key)
    with (
        held(ledger, desk.lease_name, context.worker) as lease,
        fenced(ledger, lease) as connection,
    ):
        chosen = _chosen(connection, ledger, desk, selection)
        cause = context.cause(f"discarded: {why}", "dead-letter discard")
        _move(connection, ledger, chosen, "discarded", cause)
        close_dead_letters(
            connection,
            ledger,
            chosen["record_no"],
            closing="discarded",
            reason=why,
            by=cause.actor,
            at=cause.at,
        )
    look_at_dead_letters(context, version_no, key)
    return _change(chosen)


def assign(context: Context, version_no: int, key: str, selection: Selection, owner: str) -> Change:
    """Give dead letters to an owner.

    Raises:
        OwnerRefused: the owner has no name, or too long a one.
        SelectionUnclear, UnknownDeadLetter, AmbiguousDeadLetter, NothingSelected: see `choose`.
        LeaseHeld: another worker deals with the version's dead letters.
    """
    name = owner.strip()
    if not 1 <= len(name) <= _OWNER_LENGTH:
        raise OwnerRefused(len(name))
    ledger, desk = context.ledger, desk_of(context, version_no, key)
    with (
        held(ledger, desk.lease_name, context.worker) as lease,
        fenced(ledger, lease) as connection,
    ):
        chosen = _chosen(connection, ledger, desk, selection)
        assign_dead_letters(connection, ledger, chosen["record_no"], name)
    return _change(chosen)


def take_up(context: Context, version_no: int, key: str, selection: Selection) -> pl.DataFrame:
    """The chosen dead letters (`FOUND_SCHEMA`), each with an episode that can be closed.

    Raises:
        SelectionUnclear, UnknownDeadLetter, AmbiguousDeadLetter, NothingSelected: see `choose`.
        LeaseHeld: another worker deals with the version's dead letters.
    """
    ledger, desk = context.ledger, desk_of(context, version_no, key)
    with ledger.read() as connection:
        found = find_dead_letters(connection, ledger, version_no)
    chosen = choose(found, selection, key)
    if chosen.filter(pl.col("recorded") == 0).is_empty():
        return chosen
    with (
        held(ledger, desk.lease_name, context.worker) as lease,
        fenced(ledger, lease) as connection,
    ):
        return _chosen(connection, ledger, desk, selection)


def mend_episodes(context: Context, version_no: int, key: str) -> int:
    """Write the episodes that are missing and close those that are stale; returns how many.

    Missing are those of records that were given up by a release that kept none; stale those whose
    record left the dead letters without saying so.

    Raises:
        LeaseHeld: another worker deals with the version's dead letters.
    """
    ledger, desk = context.ledger, desk_of(context, version_no, key)
    with (
        held(ledger, desk.lease_name, context.worker) as lease,
        fenced(ledger, lease) as connection,
    ):
        found = find_dead_letters(connection, ledger, version_no)
        cause = context.cause("its record is no dead letter any more", "doctor")
        return _write_missing(connection, ledger, desk, found) + _close_stale(
            connection, ledger, version_no, cause
        )


def _chosen(
    connection: Connection, ledger: Ledger, desk: Desk, selection: Selection
) -> pl.DataFrame:
    """The chosen dead letters, each with an episode of its own from here on."""
    found = find_dead_letters(connection, ledger, desk.version_no)
    chosen = choose(found, selection, desk.key)
    _write_missing(connection, ledger, desk, chosen)
    return chosen


def _write_missing(connection: Connection, ledger: Ledger, desk: Desk, found: pl.DataFrame) -> int:
    missing = found.filter(pl.col("recorded") == 0)
    open_dead_letters(
        connection, ledger, _owned(missing, desk.owner).select(list(DEAD_LETTER_SCHEMA))
    )
    return missing.height


def _close_stale(connection: Connection, ledger: Ledger, version_no: int, cause: Cause) -> int:
    closings = pl.col("state").replace_strict(_CLOSING_BY_STATE, default="answered")
    stale = stale_episodes(connection, ledger, version_no).with_columns(closing=closings)
    return sum(
        close_dead_letters(
            connection,
            ledger,
            part["record_no"],
            closing=str(closing),
            reason=cause.reason,
            by=cause.actor,
            at=cause.at,
        )
        for (closing,), part in stale.group_by("closing")
    )


def _owned(found: pl.DataFrame, owner: str) -> pl.DataFrame:
    nobody = pl.col("owner") == ""
    return found.with_columns(owner=pl.when(nobody).then(pl.lit(owner)).otherwise("owner"))


def _move(
    connection: Connection, ledger: Ledger, chosen: pl.DataFrame, to_state: str, cause: Cause
) -> None:
    """One move for each batch, in the order of their chains' locks: always the same one."""
    for (batch_no,), part in chosen.sort("newest_batch_no", "record_no").group_by(
        "newest_batch_no", maintain_order=True
    ):
        move_records(
            connection,
            ledger.dialect,
            part["record_no"],
            "dead_letter",
            to_state,
            cause,
            batch_chain(int(str(batch_no))),
        )


def _change(chosen: pl.DataFrame) -> Change:
    documents = chosen["document_id"].unique(maintain_order=True)
    return Change(chosen.height, tuple(documents.head(EXAMPLES)))
