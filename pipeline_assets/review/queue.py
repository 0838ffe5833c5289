"""The review queue as reviewers use it: what waits, why, and handing out the next one.

Belongs here: reading the queue and keeping two reviewers from looking at the same document. Does
not belong here: what is shown of a review (`desk.py`) and decisions (`decisions.py`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

import polars as pl

from pipeline_assets.review.decisions import asked_of
from pipeline_assets.review.errors import RevisionMalformed, UnknownReview
from resources.clock import to_text
from resources.context import Context
from resources.ledger.review_queue import (
    Place,
    Wanted,
    causes_of,
    count_waiting,
    find_review,
    next_waiting,
    revisions_of,
    waiting,
)
from resources.ledger.reviews import take_review

_NAME = re.compile(r"(\d{1,18})(?:@(\d{1,9}))?")
SCREEN_MINUTES = 30
"""So long a review belongs to the reviewer who has it on the screen; then another may have it."""


@dataclass(frozen=True)
class Queue:
    """The head of the queue.

    Attributes:
        reviews: `review_queue.REVIEW_SCHEMA` and `rules`, `fields`: lists of what was found.
        waiting: how many wait in all, of those that were asked for.
    """

    reviews: pl.DataFrame
    waiting: int


def read_queue(context: Context, wanted: Wanted, limit: int) -> Queue:
    """The first reviews that wait, each with what its findings are about."""
    ledger = context.ledger
    with ledger.read() as connection:
        found = waiting(connection, ledger, wanted, limit)
        count = found.height if found.height < limit else count_waiting(connection, ledger, wanted)
        causes = causes_of(connection, ledger, found["review_no"].to_list())
    return Queue(with_causes(found, causes), count)


def with_causes(reviews: pl.DataFrame, causes: pl.DataFrame) -> pl.DataFrame:
    """Reviews with `rules` and `fields`: what sent each to a person, each named once."""
    told = (
        causes.filter(pl.col("severity") != "note")
        .group_by("review_no")
        .agg(
            rules=pl.col("rule").unique(maintain_order=True),
            fields=pl.col("field").unique(maintain_order=True),
        )
    )
    nothing = pl.lit([], dtype=pl.List(pl.String))
    return reviews.join(told, on="review_no", how="left", maintain_order="left").with_columns(
        pl.col("rules").fill_null(nothing), pl.col("fields").fill_null(nothing)
    )


def take_next(context: Context, wanted: Wanted, who: str, after: Place | None = None) -> int | None:
    """The number of the next review for a reviewer, who has it on the screen from now on.

    What is assigned to another reviewer, or was on another's screen in the last
    `SCREEN_MINUTES`, is left out.

    Returns:
        The review's number; None where nothing waits for them behind `after`.
    """
    ledger = context.ledger
    now = context.clock()
    free_since = to_text(now - timedelta(minutes=SCREEN_MINUTES))
    while True:
        with ledger.read() as connection:
            found = next_waiting(connection, ledger, wanted, who, free_since, after)
        if found.is_empty():
            return None
        number = int(found["review_no"][0])
        with ledger.write() as connection:
            if take_review(connection, number, who, to_text(now), free_since):
                return number


def read_names(context: Context, names: Sequence[str]) -> pl.DataFrame:
    """Reviews that are named `NUMBER` or `NUMBER@REVISION`, as acts take them.

    A number alone means the review as it is now; with a revision the act is refused if anybody
    acted on the review since.

    Raises:
        RevisionMalformed: a name of another form.
        UnknownReview: there is no such review.
    """
    named = [_named(name) for name in names]
    with context.ledger.read() as connection:
        known = revisions_of(connection, context.ledger, [number for number, _ in named])
    now = dict(known.iter_rows())
    unknown = [number for number, _ in named if number not in now]
    if unknown:
        raise UnknownReview(unknown)
    return asked_of(
        [(number, now[number] if revision is None else revision) for number, revision in named]
    )


def _named(name: str) -> tuple[int, int | None]:
    found = _NAME.fullmatch(name.strip())
    if found is None:
        raise RevisionMalformed(name)
    return int(found[1]), None if found[2] is None else int(found[2])


def place_of(context: Context, review_no: int) -> Place:
    """Where a review stands in the queue's order.

    Raises:
        UnknownReview: there is no such review.
    """
    with context.ledger.read() as connection:
        found = find_review(connection, context.ledger, review_no)
    if found.is_empty():
        raise UnknownReview([review_no])
    row = found.row(0, named=True)
    return Place(row["priority"], row["opened_at"], row["review_no"])
