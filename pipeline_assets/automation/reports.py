"""Which versions need their account anew; a pure decision.

Belongs here: the decision. Does not belong here: the facts (`stuck_facts.py`), the schedule that
asks (`schedules.py`), and the account itself.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class ReportFact:
    """An active version.

    Attributes:
        key: its key.
        open_batches: batches that are not complete.
        moved_at: when anything of it moved last; None where nothing ever did.
    """

    key: str
    open_batches: int
    moved_at: datetime | None


def decide_reports(
    facts: Sequence[ReportFact], reported_at: Mapping[str, datetime], busy: Collection[str]
) -> list[str]:
    """Versions with open work, or whose newest report is older than their last move.

    Args:
        facts: the active versions.
        reported_at: when the newest report of each was made; without one it has none.
        busy: versions that a run is at, which reports at its end.
    """
    wanted = []
    for each in facts:
        if each.key in busy:
            continue
        newest = reported_at.get(each.key)
        moved = each.moved_at is not None and (newest is None or newest < each.moved_at)
        if each.open_batches or moved:
            wanted.append(each.key)
    return wanted
