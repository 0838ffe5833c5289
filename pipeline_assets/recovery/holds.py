"""Holds of a processing version: put on, taken off, and read back with what they are for.

Belongs here: the kinds of holds, how they stand in the journal, and the transaction that puts one
on or takes it off with its alert. Does not belong here: deciding that a version has to be held
(`breaker.py`, `backpressure.py`, the retries, the hand-over to a provider).

A held version submits nothing new; its records keep their states, and what is under way goes on.
The kind of a hold is the cause of the journal row that put it on, so it costs no column and the
hash chain vouches for it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, cast, get_args

from sqlalchemy import Connection

from resources.context import Context
from resources.ledger.alerts import clear_alerts, raise_alert
from resources.ledger.moves import Cause, move_version, version_chain
from resources.ledger.versions import VersionMove, key_of, newest_move, state_of

HoldKind = Literal[
    "operator", "breaker", "backpressure", "budget", "auth", "quota", "refused", "free_retries"
]
KINDS: tuple[HoldKind, ...] = get_args(HoldKind)
ENDS_BY_ITSELF: frozenset[HoldKind] = frozenset({"breaker", "backpressure"})
"""Kinds that may be taken off without a command; they give way to those that need a person."""
ALERTED: frozenset[HoldKind] = frozenset(set(KINDS) - {"operator"})
"""Kinds that raise an alert of their own name, with the version's key as its subject."""

_HOLD, _RELEASE, _COMMAND = "hold:", "release:", ":command"
_BEFORE_KINDS: dict[str, HoldKind] = {"held by command": "operator"}
"""Causes of holds that were put on before holds had kinds; any other was a provider's refusal."""


@dataclass(frozen=True)
class Hold:
    """Why a version is held.

    Attributes:
        kind: what it is for; decides how it ends.
        reason: a sentence for people.
        since: when it was put on, UTC, as the ledger writes times.
        move_no: the journal row that put it on.
        actor: who or what did.
    """

    kind: HoldKind
    reason: str
    since: str
    move_no: int
    actor: str


@dataclass(frozen=True)
class Release:
    """The journal row that took a hold off.

    Attributes:
        kind: what the hold was for.
        by_command: a person took it off, or it gave way to a hold that needs a person.
        at: when, UTC, as the ledger writes times.
        move_no: its number.
    """

    kind: HoldKind
    by_command: bool
    at: str
    move_no: int


def as_hold(move: VersionMove | None) -> Hold | None:
    """The hold that a move put on; None for a move that put none on."""
    if move is None or move.to_state != "held":
        return None
    kind = _BEFORE_KINDS.get(move.cause, "refused")
    if move.cause.startswith(_HOLD):
        kind = _kind(move.cause.removeprefix(_HOLD)) or kind
    return Hold(kind, move.reason, move.moved_at, move.move_no, move.actor)


def as_release(move: VersionMove) -> Release | None:
    """The release that a move is; None for a move that took no hold off."""
    if move.from_state != "held" or not move.cause.startswith(_RELEASE):
        return None
    name = move.cause.removeprefix(_RELEASE)
    kind = _kind(name.removesuffix(_COMMAND))
    if kind is None:
        return None
    return Release(kind, name.endswith(_COMMAND), move.moved_at, move.move_no)


def hold_of(connection: Connection, version_no: int) -> Hold | None:
    """Why a version is held now; None where it is not."""
    return as_hold(newest_move(connection, version_no))


def hold(context: Context, version_no: int, kind: HoldKind, reason: str) -> bool:
    """Put a hold on a version; see `hold_within`."""
    with context.ledger.write() as connection:
        return hold_within(connection, context, version_no, kind, reason)


def hold_within(
    connection: Connection, context: Context, version_no: int, kind: HoldKind, reason: str
) -> bool:
    """Put a hold on a version, inside a write transaction, with its alert.

    A version that is held already stays as it is, unless that hold ends by itself and this one
    does not: then this one takes its place, or an operator's wish would end with the other's.

    Returns:
        Was it put on? False where the version is retired or stays held for another reason.
    """
    ledger = context.ledger
    # Before the look: two workers that both see an active version would fall over each other.
    ledger.dialect.lock_chain(connection, version_chain(version_no))
    cause = context.cause(reason, _HOLD + kind)
    if state_of(connection, version_no) == "held":
        found = hold_of(connection, version_no)
        if found is None or found.kind not in ENDS_BY_ITSELF or kind in ENDS_BY_ITSELF:
            return False
        why = replace(cause, reason=f"gives way to a hold of kind {kind}")
        _take_off(connection, context, version_no, found, why, by_command=True)
    elif state_of(connection, version_no) != "active":
        return False
    move_version(connection, ledger.dialect, version_no, "active", "held", cause)
    if kind in ALERTED:
        raise_alert(connection, kind, key_of(connection, version_no), reason, cause.at)
    return True


def release(
    context: Context,
    version_no: int,
    kind: HoldKind | None,
    reason: str,
    actor: str | None = None,
) -> bool:
    """Take a hold off a version, with its alert.

    Args:
        context: the open resources.
        version_no: the version.
        kind: only a hold of this kind, which ends by itself; None for whatever it is held for,
            which is a command's right.
        reason: why, for the journal.
        actor: who; the owner in the settings by default.

    Returns:
        Was it taken off? False where the version is not held, or for another reason.
    """
    ledger = context.ledger
    with ledger.write() as connection:
        ledger.dialect.lock_chain(connection, version_chain(version_no))
        found = hold_of(connection, version_no)
        if found is None or kind not in (None, found.kind):
            return False
        cause = context.cause(reason, "")
        if actor is not None:
            cause = replace(cause, actor=actor)
        _take_off(connection, context, version_no, found, cause, by_command=kind is None)
    return True


def _take_off(
    connection: Connection,
    context: Context,
    version_no: int,
    found: Hold,
    cause: Cause,
    *,
    by_command: bool,
) -> None:
    told = replace(cause, cause=_RELEASE + found.kind + (_COMMAND if by_command else ""))
    move_version(connection, context.ledger.dialect, version_no, "held", "active", told)
    clear_alerts(connection, key_of(connection, version_no), told.at, (found.kind,))


def _kind(name: str) -> HoldKind | None:
    return cast(HoldKind, name) if name in KINDS else None
