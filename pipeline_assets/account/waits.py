"""What waits for whom, since when, and which command helps.

Belongs here: naming the one that each thing waits for. Does not belong here: whether something
waits (`status.what_waits`), and the words of a terminal (`cli`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl
from sqlalchemy import Connection

from pipeline_assets.account.hold_facts import HoldFacts
from resources.ledger.engine import Ledger

REVIEWER, OPERATOR, PROVIDER, NEXT_RUN = "reviewer", "operator", "provider", "the next run"
QUALITY_SAMPLE = "quality_sample"
LETTER_SCHEMA = {"owner": pl.String, "opened_at": pl.String, "records": pl.Int64}

_AT_PROVIDER = ("submitted", "running")
_BLOCKED = ("queued", "prepared", "batch prepared")
"""What a hold or a failed canary keeps from being sent."""

# From the states: what stands here is what `dead_letter` counts, with or without an episode.
_LETTERS = """
SELECT l.owner, l.opened_at, COUNT(*) FROM record_state s CROSS JOIN records r
LEFT JOIN dead_letters l ON l.record_no = s.record_no AND l.closed_at IS NULL
WHERE r.record_no = s.record_no AND r.version_no = ? AND s.state = 'dead_letter'
GROUP BY l.owner, l.opened_at
"""


@dataclass(frozen=True)
class Waiting:
    """Something that does not go on by itself, or not yet.

    Attributes:
        what: a record or batch state, `pending` or `held`.
        count: how many.
        by_person: a person has to act; else running again is enough.
    """

    what: str
    count: int
    by_person: bool


@dataclass(frozen=True)
class Wait:
    """Something that waits, and for whom.

    Attributes:
        what: as in `Waiting`, or `quality_sample`, which keeps nothing from being done.
        count: how many.
        who: `reviewer`, `operator`, `provider`, `the next run`, or the name of an owner of dead
            letters or of a reviewer that it was assigned to.
        since: since when the longest of them waits, UTC; None where that is not known.
        command: the words after `tallybook` that help; `TEXT` stands for words of one's own. None
            where only waiting helps.
    """

    what: str
    count: int
    who: str
    since: str | None
    command: tuple[str, ...] | None


@dataclass(frozen=True)
class WaitFacts:
    """What is known of a version's open things.

    Attributes:
        key: the version's.
        held: the hold that it is under.
        failed_canaries: while there is one, no batch of its combination is sent.
        moved: records by state and newest move (`ages.MOVED_SCHEMA`).
        batches: open ones (`ages.BATCH_SCHEMA`).
        reviews: open ones (`ages.REVIEW_SCHEMA`).
        letters: dead letters by owner (`LETTER_SCHEMA`).
    """

    key: str
    held: HoldFacts | None
    failed_canaries: int
    moved: pl.DataFrame
    batches: pl.DataFrame
    reviews: pl.DataFrame
    letters: pl.DataFrame


def dead_letters_by_owner(connection: Connection, ledger: Ledger, version_no: int) -> pl.DataFrame:
    """The records of a version that are dead letters, by owner and time (`LETTER_SCHEMA`)."""
    return ledger.dialect.fetch(connection, _LETTERS, LETTER_SCHEMA, (version_no,))


def name_waits(waiting: Sequence[Waiting], facts: WaitFacts) -> tuple[Wait, ...]:
    """For each thing that waits the one that it waits for; what was sampled comes last.

    Dead letters are told by owner and reviews by who has them, so one thing may become several;
    these count every record of the version, those of documents that changed since too. Where there
    are only such, they keep nothing from being done, and stand before the samples.
    """
    found: list[Wait] = []
    named = [item.what for item in waiting]
    for item in waiting:
        if item.what == "dead_letter":
            found += _letters(facts.letters)
        elif item.what == "awaiting_review":
            found += _reviews(item, facts)
        elif item.what == "prepared":
            found += _prepared(item, facts)
        else:
            found.append(_one(item, facts))
    if "awaiting_review" not in named:
        found += _of_findings(facts)
    if "dead_letter" not in named:
        found += _letters(facts.letters)
    sampled = facts.reviews.filter(pl.col("kind") == QUALITY_SAMPLE)
    return (*found, *_by_person(QUALITY_SAMPLE, sampled))


def _one(item: Waiting, facts: WaitFacts) -> Wait:
    who, command = _whom(item, facts)
    return Wait(item.what, item.count, who, _since(item, facts), command)


def _prepared(item: Waiting, facts: WaitFacts) -> Iterator[Wait]:
    """Records of a quarantined batch are still `prepared`, and no run sends them."""
    shut = facts.batches.filter(pl.col("state") == "quarantined")
    kept = min(item.count, int(shut["records"].sum()))
    if kept:
        since = _first(shut["entered_at"])
        yield Wait(item.what, kept, OPERATOR, since, _about_batches("quarantined", facts))
    if item.count > kept:
        yield _one(Waiting(item.what, item.count - kept, item.by_person), facts)


def _whom(item: Waiting, facts: WaitFacts) -> tuple[str, tuple[str, ...] | None]:
    by_hand = facts.held is not None and not facts.held.ends_by_itself
    answers: dict[str, tuple[str, tuple[str, ...] | None]] = {
        "awaiting_approval": (OPERATOR, ("sources", "waiting")),
        "canary failed": (OPERATOR, ("canary", "list")),
        "batch quarantined": (OPERATOR, _about_batches("quarantined", facts)),
        "batch incident": (OPERATOR, _about_batches("incident", facts)),
    }
    if item.what in answers:
        return answers[item.what]
    if item.what == "held":
        return _hold(item, by_hand)
    if item.what == "accepted" and item.by_person:
        return OPERATOR, ("promote", facts.key, "--reason", "TEXT")
    if item.what in _BLOCKED and by_hand:
        return OPERATOR, ("release", "--reason", "TEXT")
    if item.what in _BLOCKED and facts.failed_canaries:
        return OPERATOR, ("canary", "list")
    if item.what.removeprefix("batch ") in _AT_PROVIDER and _at_provider(facts.batches):
        return PROVIDER, ("batch", "list")
    return NEXT_RUN, ("run",)


def _hold(item: Waiting, by_hand: bool) -> tuple[str, tuple[str, ...]]:
    release = ("release", "--reason", "TEXT")
    return (OPERATOR, release) if by_hand or item.by_person else (NEXT_RUN, ("run",))


def _about_batches(state: str, facts: WaitFacts) -> tuple[str, ...]:
    """One batch is shown; of several, the list names them."""
    names = facts.batches.filter(pl.col("state") == state)["batch_id"].to_list()
    return ("batch", "show", names[0]) if len(names) == 1 else ("batch", "list")


def _at_provider(batches: pl.DataFrame) -> bool:
    """Does a provider work on it? Embedded and online answers are made by the run itself."""
    out = batches.filter(pl.col("state").is_in(_AT_PROVIDER))
    return bool((out["mode"] == "batch").any())


def _since(item: Waiting, facts: WaitFacts) -> str | None:
    if item.what == "held":
        return None if facts.held is None else facts.held.since
    if item.what.startswith("batch "):
        state = item.what.removeprefix("batch ")
        return _first(facts.batches.filter(pl.col("state") == state)["entered_at"])
    return _first(facts.moved.filter(pl.col("state") == item.what)["moved_at"])


def _letters(letters: pl.DataFrame) -> Iterator[Wait]:
    for who, part in _groups(letters, "owner", OPERATOR):
        yield Wait(
            what="dead_letter",
            count=int(part["records"].sum()),
            who=who,
            since=_first(part["opened_at"]),
            command=("dead-letter", "list"),
        )


def _reviews(item: Waiting, facts: WaitFacts) -> list[Wait]:
    found = list(_of_findings(facts))
    # Records that wait without an open review: a ledger from before reviews were kept.
    return found or [Wait(item.what, item.count, REVIEWER, _since(item, facts), ("review", "next"))]


def _of_findings(facts: WaitFacts) -> Iterator[Wait]:
    return _by_person("awaiting_review", facts.reviews.filter(pl.col("kind") == "findings"))


def _by_person(what: str, reviews: pl.DataFrame) -> Iterator[Wait]:
    kind = ("--kind", QUALITY_SAMPLE) if what == QUALITY_SAMPLE else ()
    for who, part in _groups(reviews, "who", REVIEWER):
        yield Wait(
            what=what,
            count=int(part["reviews"].sum()),
            who=who,
            since=_first(part["opened_at"]),
            command=("review", "next", *kind),
        )


def _groups(frame: pl.DataFrame, column: str, nobody: str) -> Sequence[tuple[str, pl.DataFrame]]:
    named = frame.with_columns(pl.col(column).fill_null(nobody))
    return [
        (str(who), part)
        for (who,), part in named.sort(column).group_by(column, maintain_order=True)
    ]


def _first(moments: pl.Series) -> str | None:
    first = moments.min()
    return None if first is None else str(first)
