"""Acting on many reviews at once: an explicit selection that is looked at and then confirmed.

Belongs here: choosing by conditions, the digest that names a selection, and refusing one that
changed since. Does not belong here: what an act does (`decisions.py`).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import polars as pl

from pipeline_assets.review.decisions import (
    Decision,
    Done,
    assign_within,
    decide_within,
)
from pipeline_assets.review.errors import NothingSelected, SelectionChanged
from resources.context import Context
from resources.ledger.frames import member_bytes
from resources.ledger.review_queue import (
    Wanted,
    rules_of_waiting,
    waiting,
    waiting_members,
)

DIGEST_LENGTH = 12
SHOWN = 5
"""So many reviews of a selection are shown before it is confirmed."""


@dataclass(frozen=True)
class Selection:
    """Waiting reviews as they were when they were chosen.

    Attributes:
        wanted: what they were chosen by.
        members: review_no and revision, by number.
        digest: names exactly these reviews at exactly these revisions.
        examples: the first few as the queue shows them (`review_queue.REVIEW_SCHEMA`).
        rules: rule → how many of the reviews it sent to a person; those of rules that were not
            asked for are decided too.
    """

    wanted: Wanted
    members: pl.DataFrame
    digest: str
    examples: pl.DataFrame
    rules: dict[str, int]


def selection_digest(members: pl.DataFrame) -> str:
    """Twelve hexadecimal digits over review numbers and revisions, whatever their order."""
    ordered = members.sort("review_no")
    hashed = hashlib.sha256(member_bytes(ordered["review_no"]))
    hashed.update(member_bytes(ordered["revision"]))
    return hashed.hexdigest()[:DIGEST_LENGTH]


def select_reviews(context: Context, wanted: Wanted) -> Selection:
    """Every waiting review that fits.

    Raises:
        NothingSelected: none does.
    """
    ledger = context.ledger
    with ledger.read() as connection:
        members = waiting_members(connection, ledger, wanted)
        examples = waiting(connection, ledger, wanted, SHOWN)
        rules = dict(rules_of_waiting(connection, ledger, wanted).iter_rows())
    if members.is_empty():
        raise NothingSelected
    return Selection(wanted, members, selection_digest(members), examples, rules)


def decide_selection(
    context: Context,
    wanted: Wanted,
    confirmed: str,
    decision: Decision,
    *,
    reviewer: str,
    reason: str,
) -> Done:
    """Decide every review of a confirmed selection the same way, in one transaction.

    Args:
        context: the open resources.
        wanted: what they were chosen by.
        confirmed: the digest of what was looked at.
        decision: accept or reject; corrections are made one by one.
        reviewer: who decides.
        reason: why.

    Raises:
        SelectionChanged: it is another selection by now; nothing was changed.
        NothingSelected, and what `decide` raises.
    """
    with context.ledger.write() as connection:
        members = waiting_members(connection, context.ledger, wanted)
        _require_confirmed(members, confirmed)
        return decide_within(
            connection, context, members, decision, reviewer=reviewer, reason=reason
        )


def assign_selection(
    context: Context, wanted: Wanted, confirmed: str, to: str, *, by: str, reason: str
) -> Done:
    """Give every review of a confirmed selection to a reviewer; see `decide_selection`."""
    with context.ledger.write() as connection:
        members = waiting_members(connection, context.ledger, wanted)
        _require_confirmed(members, confirmed)
        return assign_within(connection, context, members, to, by=by, reason=reason)


def _require_confirmed(members: pl.DataFrame, confirmed: str) -> None:
    if members.is_empty():
        raise NothingSelected
    found = selection_digest(members)
    if found != confirmed:
        raise SelectionChanged(confirmed, found, members.height)
