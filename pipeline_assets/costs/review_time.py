"""The time that reviewers spent on a version, and what that cost.

Belongs here: minutes from taking a review to deciding it. Does not belong here: what an hour
costs (the operating setting `reviewer_usd_hour`) and the desk (`pipeline_assets/review`).

A review that was left on a screen over lunch was not worked on: each counts for at most `MOST`. A
decision without a time of taking (one of many decided at once, or made by file) has no time that
anybody knows; such reviews are counted apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any

import polars as pl
from sqlalchemy import Connection

from resources.ledger.engine import Ledger

MOST = timedelta(minutes=15)
"""More than a reviewer looks at one answer; what is beyond it is a pause."""

_DECIDED = (
    "SELECT taken_at, decided_at FROM reviews WHERE version_no = ? "
    "AND decision IN ('accept', 'correct', 'reject')"
)


@dataclass(frozen=True)
class ReviewTime:
    """What review took.

    Attributes:
        decided: reviews that a person decided.
        timed: of them, those whose time is known.
        untimed: of them, those whose time nobody knows.
        capped: of the timed ones, those that count for `MOST` alone.
        minutes: of the timed ones together.
        usd_hour: what an hour costs; None where that is not known.
        usd: what the timed ones cost; None where an hour's cost is not known and it matters.
    """

    decided: int
    timed: int
    untimed: int
    capped: int
    minutes: Decimal
    usd_hour: Decimal | None
    usd: Decimal | None

    @property
    def known(self) -> bool:
        """Is the cost of all of it known?"""
        return self.usd is not None and not self.untimed

    def as_json(self) -> dict[str, Any]:
        """The same as plain JSON values; amounts are text."""
        return vars(self) | {
            "minutes": str(self.minutes),
            "usd_hour": None if self.usd_hour is None else format(self.usd_hour, "f"),
            "usd": None if self.usd is None else format(self.usd, "f"),
            "most_minutes": int(MOST.total_seconds() // 60),
        }


def review_time(
    connection: Connection, ledger: Ledger, version_no: int, usd_hour: Decimal | None
) -> ReviewTime:
    """The time that the reviews of a version took.

    Args:
        connection: of one moment.
        ledger: the ledger.
        version_no: whose reviews.
        usd_hour: what an hour of a reviewer costs; None where that is not known.
    """
    decided = timed = capped = milliseconds = 0
    most = int(MOST.total_seconds() * 1000)
    schema = {"taken_at": pl.String, "decided_at": pl.String}
    for part in ledger.dialect.stream(connection, _DECIDED, schema, (version_no,)):
        decided += part.height
        took = part.drop_nulls().select(
            took=(
                pl.col("decided_at").str.to_datetime(time_zone="UTC")
                - pl.col("taken_at").str.to_datetime(time_zone="UTC")
            )
            .dt.total_milliseconds()
            .clip(lower_bound=0)
        )["took"]
        timed += took.len()
        capped += int((took > most).sum())
        milliseconds += int(took.clip(upper_bound=most).sum())
    minutes = (Decimal(milliseconds) / 60_000).quantize(Decimal("0.001"))
    usd = None if usd_hour is None else Decimal(milliseconds) * usd_hour / 3_600_000
    if not decided:
        usd = Decimal(0)
    return ReviewTime(decided, timed, decided - timed, capped, minutes, usd_hour, usd)
