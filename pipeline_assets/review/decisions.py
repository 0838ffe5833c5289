"""Decisions on reviews: what each does to its record, and the one transaction that does it.

Belongs here: the decision table (pure), and writing a set of equal decisions with all their
effects, or none of them. Does not belong here: making corrected values (`corrections.py`) and
choosing many reviews at once (`bulk.py`).

Every act names the revision of the review that it was decided on. An act on a review that someone
else acted on since is refused, so that no reviewer ever overwrites another.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NoReturn

import polars as pl
from sqlalchemy import Connection

from pipeline_assets.review.errors import (
    NothingSelected,
    ReasonMissing,
    ReviewChanged,
    ReviewDecided,
    ReviewerUnnamed,
    ReviewOvertaken,
    RevisionUnknown,
    UnknownReview,
)
from pipeline_assets.workloads.fields import searched_of
from resources.context import Context
from resources.ledger.archive import lock_archive
from resources.ledger.archive_changes import record_change
from resources.ledger.archive_visibility import hide_records
from resources.ledger.engine import Ledger
from resources.ledger.moves import Cause, MoveRefused, batch_chain, move_records
from resources.ledger.review_queue import MEMBER_SCHEMA, acts_of
from resources.ledger.reviews import (
    DECISION_SCHEMA,
    FINDINGS,
    QUALITY_SAMPLE,
    assign_reviews,
    decide_reviews,
    lock_reviews,
    standing_of,
)

Decision = Literal["accept", "correct", "reject"]
Trouble = Literal["unknown", "decided", "changed", "overtaken"]

REVIEWER_LENGTH = 128
EXAMPLES = 3
"""A report names so many documents."""
DONE: Mapping[str, str] = {
    "accept": "accepted",
    "correct": "corrected",
    "reject": "rejected",
    "assign": "assigned",
    "overtaken": "overtaken",
}
"""An act as the past participle that messages use."""
# (kind, state, decision) → the state that the record goes to; None: it stays. What is missing here
# is overtaken.
_EFFECTS: Mapping[tuple[str, str, Decision], str | None] = {
    (FINDINGS, "awaiting_review", "accept"): "accepted",
    (FINDINGS, "awaiting_review", "correct"): "accepted",
    (FINDINGS, "awaiting_review", "reject"): "rejected",
    (QUALITY_SAMPLE, "accepted", "accept"): None,
    (QUALITY_SAMPLE, "accepted", "correct"): None,
    (QUALITY_SAMPLE, "accepted", "reject"): "rejected",
    (QUALITY_SAMPLE, "published", "accept"): None,
    (QUALITY_SAMPLE, "published", "correct"): None,
    (QUALITY_SAMPLE, "published", "reject"): "rejected",
}
_FITTING = frozenset((kind, state) for kind, state, _ in _EFFECTS)


@dataclass(frozen=True)
class Move:
    """Records of one batch that go from one state to another."""

    batch_no: int
    from_state: str
    to_state: str
    records: pl.Series


@dataclass(frozen=True)
class Plan:
    """What a set of equal decisions does.

    Attributes:
        moves: in the order of their chains' locks: always the same one.
        hidden: version_no and record_no of published records whose entries leave the archive.
    """

    moves: tuple[Move, ...]
    hidden: pl.DataFrame


@dataclass(frozen=True)
class Refusal:
    """Why an act cannot be done: the trouble, the first review that has it, and how many more."""

    trouble: Trouble
    row: Mapping[str, object]
    numbers: tuple[int, ...]


@dataclass(frozen=True)
class Done:
    """What was done.

    Attributes:
        act: accept, correct, reject or assign.
        reviews: how many.
        documents: the first few of them.
        hidden: documents whose published entry left the archive.
        to_publish: records whose accepted or corrected values are to be published now.
    """

    act: str
    reviews: int
    documents: tuple[str, ...]
    hidden: int = 0
    to_publish: int = 0


def refusal(standing: pl.DataFrame) -> Refusal | None:
    """The gravest trouble of the reviews that an act names (`STANDING_SCHEMA`), if there is any."""
    fitting = pl.DataFrame(
        sorted(_FITTING), schema={"kind": pl.String, "state": pl.String}, orient="row"
    )
    misfits = standing.join(fitting, on=["kind", "state"], how="anti")["review_no"]
    tests: tuple[tuple[Trouble, pl.Expr], ...] = (
        ("unknown", pl.col("revision").is_null()),
        ("overtaken", pl.col("decision") == "overtaken"),
        ("decided", pl.col("decision").is_not_null()),
        ("changed", pl.col("revision") != pl.col("asked_revision")),
        (
            "overtaken",
            (pl.col("answered_again") == 1) | pl.col("review_no").is_in(misfits.implode()),
        ),
    )
    for trouble, test in tests:
        found = standing.filter(test)
        if not found.is_empty():
            return Refusal(trouble, found.row(0, named=True), tuple(found["review_no"]))
    return None


def plan(standing: pl.DataFrame, decision: Decision) -> Plan:
    """What a decision does to records whose reviews all stand as asked (`STANDING_SCHEMA`)."""
    moves = []
    groups = standing.sort("batch_no", "state", "record_no").group_by(
        "batch_no", "kind", "state", maintain_order=True
    )
    for (batch_no, kind, state), part in groups:
        target = _EFFECTS[str(kind), str(state), decision]
        if target is not None:
            moves.append(Move(int(str(batch_no)), str(state), target, part["record_no"]))
    leaving = standing.filter((pl.col("state") == "published") & pl.lit(decision == "reject"))
    return Plan(tuple(moves), leaving.select("version_no", "record_no"))


def require_reason(reason: str, act: str) -> str:
    """The reason on one line, without what no database takes.

    Raises:
        ReasonMissing: nothing is left.
    """
    why = _plain(reason)
    if not why:
        raise ReasonMissing(act)
    return why


def require_reviewer(name: str) -> str:
    """A reviewer's name on one line, without what no database takes.

    Raises:
        ReviewerUnnamed: nothing is left, or too much.
    """
    plain = _plain(name)
    if not 1 <= len(plain) <= REVIEWER_LENGTH:
        raise ReviewerUnnamed(len(plain), REVIEWER_LENGTH)
    return plain


def _plain(text: str) -> str:
    # A byte of the command line that is no UTF-8 comes in as a lone surrogate.
    kept = (character for character in text if unicodedata.category(character) != "Cs")
    return " ".join("".join(kept).replace("\0", " ").split())


def decide(
    context: Context, asked: pl.DataFrame, decision: Decision, *, reviewer: str, reason: str
) -> Done:
    """Decide reviews the same way, all or none: the reviews, their records and the archive.

    Args:
        context: the open resources.
        asked: review_no and revision as seen; `content` too (as published) for `correct`.
        decision: what is decided.
        reviewer: who decides.
        reason: why.

    Raises:
        ReasonMissing, ReviewerUnnamed: nobody decides, or for no reason.
        NothingSelected: no review is named.
        UnknownReview, RevisionUnknown, ReviewDecided, ReviewChanged, ReviewOvertaken: one of them
            cannot be decided as it was seen; nothing was changed.
    """
    with context.ledger.write() as connection:
        return decide_within(connection, context, asked, decision, reviewer=reviewer, reason=reason)


def decide_within(
    connection: Connection,
    context: Context,
    asked: pl.DataFrame,
    decision: Decision,
    *,
    reviewer: str,
    reason: str,
) -> Done:
    """`decide` inside a write transaction, which must not be committed if it raises."""
    ledger = context.ledger
    why = require_reason(reason, decision)
    cause = Cause(why, require_reviewer(reviewer), ledger.now(), "review")
    standing = _require_standing(connection, ledger, asked)
    if decision == "reject" and QUALITY_SAMPLE in standing["kind"]:
        # Whoever publishes holds the archive before a batch's chain: the same order here, and what
        # was being published meanwhile is published now.
        lock_archive(connection, ledger)
        standing = _require_standing(connection, ledger, asked)
    effects = plan(standing, decision)
    written = decide_reviews(connection, ledger, _decided(asked), decision, cause)
    if written != asked.height:
        _refuse_again(connection, ledger, asked)
    hidden = _hide(connection, context, effects.hidden, cause)
    _move(connection, ledger, standing, effects, decision, cause)
    return Done(
        decision,
        asked.height,
        _examples(standing),
        hidden,
        _to_publish(effects, standing, decision),
    )


def assign(context: Context, asked: pl.DataFrame, to: str, *, by: str, reason: str) -> Done:
    """Give reviews to a reviewer, all or none; see `decide` for the arguments and errors."""
    with context.ledger.write() as connection:
        return assign_within(connection, context, asked, to, by=by, reason=reason)


def assign_within(
    connection: Connection, context: Context, asked: pl.DataFrame, to: str, *, by: str, reason: str
) -> Done:
    """`assign` inside a write transaction, which must not be committed if it raises."""
    ledger = context.ledger
    name = require_reviewer(to)
    why = _plain(reason)
    said = f"to {name}" + (f": {why}" if why else "")
    cause = Cause(said, require_reviewer(by), ledger.now(), "review")
    standing = _require_standing(connection, ledger, asked)
    if assign_reviews(connection, ledger, asked, name, cause) != asked.height:
        _refuse_again(connection, ledger, asked)
    return Done("assign", asked.height, _examples(standing))


def asked_of(pairs: list[tuple[int, int]]) -> pl.DataFrame:
    """Review numbers and revisions as the frame that acts take; a repeat counts once."""
    return pl.DataFrame(pairs, schema=MEMBER_SCHEMA, orient="row").unique(maintain_order=True)


def _require_standing(connection: Connection, ledger: Ledger, asked: pl.DataFrame) -> pl.DataFrame:
    """How the reviews stand, once they stand as asked and nobody else can act on them."""
    if asked.is_empty():
        raise NothingSelected
    lock_reviews(connection, ledger)
    standing = standing_of(connection, ledger, asked)
    found = refusal(standing)
    if found is not None:
        _raise(connection, ledger, found)
    return standing


def _raise(connection: Connection, ledger: Ledger, found: Refusal) -> NoReturn:
    number, others = found.numbers[0], len(found.numbers) - 1
    if found.trouble == "unknown":
        raise UnknownReview(list(found.numbers))
    if found.trouble == "overtaken":
        raise ReviewOvertaken(number, str(found.row["document_id"]), _overtaker(found.row), others)
    if found.trouble == "decided":
        act, who, at = (str(found.row[name]) for name in ("decision", "reviewer", "decided_at"))
        raise ReviewDecided(number, DONE.get(act, act), who, at, others)
    asked, revision = (int(str(found.row[name])) for name in ("asked_revision", "revision"))
    if asked > revision:
        raise RevisionUnknown(number, asked, revision)
    newest = acts_of(connection, ledger, number).row(-1, named=True)
    act = str(newest["act"])
    raise ReviewChanged(number, DONE.get(act, act), newest["who"], newest["acted_at"], others)


def _overtaker(row: Mapping[str, object]) -> str:
    if row["state"] == "withdrawn":
        return "its document was removed from its source, or erased"
    if row["answered_again"] == 1 or row["decision"] == "overtaken":
        return "a newer answer of its record was judged"
    return f"its record is {row['state']} now"


def _refuse_again(connection: Connection, ledger: Ledger, asked: pl.DataFrame) -> NoReturn:
    """Another act came between looking and writing; say which."""
    found = refusal(standing_of(connection, ledger, asked))
    if found is not None:
        _raise(connection, ledger, found)
    raise ReviewChanged(int(asked["review_no"][0]), "changed", "somebody", "this moment")


def _decided(asked: pl.DataFrame) -> pl.DataFrame:
    nothing = pl.lit(None, dtype=pl.String)
    if "content" not in asked.columns:
        return asked.select(
            "review_no", "revision", corrected_digest=nothing, corrected_content=nothing
        )
    digests = [hashlib.sha256(content.encode()).hexdigest() for content in asked["content"]]
    return asked.select(
        "review_no",
        "revision",
        corrected_digest=pl.Series(digests, dtype=pl.String),
        corrected_content="content",
    ).select(list(DECISION_SCHEMA))


def _move(
    connection: Connection,
    ledger: Ledger,
    standing: pl.DataFrame,
    effects: Plan,
    decision: Decision,
    cause: Cause,
) -> None:
    reason = f"{DONE[decision]} by a reviewer: {cause.reason}"
    moved = Cause(reason, cause.actor, cause.at, cause.cause)
    for move in effects.moves:
        try:
            move_records(
                connection,
                ledger.dialect,
                move.records,
                move.from_state,
                move.to_state,
                moved,
                batch_chain(move.batch_no),
            )
        except MoveRefused as refused:
            first = refused.refused.row(0, named=True)
            row = standing.row(by_predicate=pl.col("record_no") == first["record_no"], named=True)
            why = f"its record is {first['state']} now"
            raise ReviewOvertaken(
                row["review_no"], row["document_id"], why, refused.refused.height - 1
            ) from refused


def _hide(connection: Connection, context: Context, hidden: pl.DataFrame, cause: Cause) -> int:
    """Take the entries of rejected records out of what people see; how many documents changed.

    All at once: an earlier entry that another of these records published must not come back.
    """
    if hidden.is_empty():
        return 0
    versions = hidden["version_no"].unique()
    change = record_change(
        connection,
        "removal",
        int(versions[0]) if versions.len() == 1 else None,
        f"rejected by a reviewer: {cause.reason}",
        cause.actor,
        cause.at,
        0,
        0,
    )
    return hide_records(
        connection, context.ledger, hidden["record_no"], change, searched_of(context.settings)
    )


def _to_publish(effects: Plan, standing: pl.DataFrame, decision: Decision) -> int:
    """Whoever corrects changes what is published; a sample that is right stays as it is."""
    if decision == "correct":
        return standing["record_no"].n_unique()
    return sum(move.records.len() for move in effects.moves if move.to_state == "accepted")


def _examples(standing: pl.DataFrame) -> tuple[str, ...]:
    return tuple(standing["document_id"].unique(maintain_order=True).head(EXAMPLES))
