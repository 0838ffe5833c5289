"""What is different from an earlier report: counts, states, values and configuration.

Belongs here: comparing two tables of outcomes, a range of subjects at a time, so that memory does
not grow with them, and two configurations. Does not belong here: which report is the earlier one
(`kept.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq

from pipeline_assets.account.reconciliation.outcomes import OUTCOMES
from resources.contracts import require_contract

LISTED = 200
"""Changed subjects that a report names; the rest is counted."""
_COMPARED = ("subject", "document_id", "state", "accepted_digest")


@dataclass(frozen=True)
class Moved:
    """How many subjects are in another state than they were; None: not there."""

    before: str | None
    after: str | None
    subjects: int


@dataclass(frozen=True)
class ChangedSubject:
    """A subject whose state or values are others than they were; None: not there, or none."""

    subject: str
    document_id: str
    state_before: str | None
    state_after: str | None
    values_before: str | None
    values_after: str | None


@dataclass(frozen=True)
class ChangedSetting:
    """A part of the configuration that is another one; None: not there."""

    name: str
    before: str | None
    after: str | None


@dataclass(frozen=True)
class Difference:
    """What is different from an earlier report.

    Attributes:
        report_no: the earlier one.
        made_at: when it was made, UTC.
        digest: its digest.
        closed: somebody vouches for it.
        documents: present documents then and now.
        same: subjects with the same state and values.
        moved: every other combination of states.
        values_changed: subjects that had accepted values and have others now.
        changed: the first of the changed subjects, in their order.
        more: how many of them are not named.
        settings: what differs in the configuration.
    """

    report_no: int
    made_at: str
    digest: str
    closed: bool
    documents: tuple[int, int]
    same: int
    moved: tuple[Moved, ...]
    values_changed: int
    changed: tuple[ChangedSubject, ...]
    more: int
    settings: tuple[ChangedSetting, ...]


@dataclass(frozen=True)
class OutcomeDifference:
    """The part of a `Difference` that two tables of outcomes show."""

    same: int
    moved: tuple[Moved, ...]
    values_changed: int
    changed: tuple[ChangedSubject, ...]
    more: int


def compare_outcomes(before: Path, after: Path, most: int = LISTED) -> OutcomeDifference:
    """Compare two tables of outcomes.

    Args:
        before: the earlier table's file.
        after: the later one's.
        most: changed subjects that are named.

    Raises:
        ContractRefused: a file is no table of outcomes of this contract.
    """
    same = values_changed = changed = 0
    moved: Counter[tuple[str | None, str | None]] = Counter()
    named: list[ChangedSubject] = []
    for pair in _pairs(before, after):
        other = pair.filter(~_is_same())
        same += pair.height - other.height
        changed += other.height
        # Null where one of them is: who has values now and had none, or the other way round, is
        # told by the states.
        values_changed += other.filter(
            pl.col("accepted_digest") != pl.col("accepted_digest_before")
        ).height
        states = other.filter(pl.col("state").ne_missing(pl.col("state_before")))
        for first, second, count in states.group_by("state_before", "state").len().iter_rows():
            moved[first, second] += count
        named += [
            ChangedSubject(*row)
            for row in other.head(most - len(named))
            .select(
                "subject",
                pl.coalesce("document_id", "document_id_before"),
                "state_before",
                "state",
                "accepted_digest_before",
                "accepted_digest",
            )
            .iter_rows()
        ]
    order = sorted(moved, key=lambda one: (one[0] or "", one[1] or ""))
    return OutcomeDifference(
        same=same,
        moved=tuple(Moved(*states, moved[states]) for states in order),
        values_changed=values_changed,
        changed=tuple(named),
        more=changed - len(named),
    )


def compare_settings(
    before: Mapping[str, str], after: Mapping[str, str]
) -> tuple[ChangedSetting, ...]:
    """Names whose texts differ, sorted."""
    names: Iterable[str] = sorted({*before, *after})
    return tuple(
        ChangedSetting(name, before.get(name), after.get(name))
        for name in names
        if before.get(name) != after.get(name)
    )


def _is_same() -> pl.Expr:
    return (
        pl.col("state").eq_missing(pl.col("state_before"))
        & pl.col("accepted_digest").eq_missing(pl.col("accepted_digest_before"))
        & pl.col("document_id").is_not_null()
        & pl.col("document_id_before").is_not_null()
    )


def _pairs(before: Path, after: Path) -> Iterator[pl.DataFrame]:
    """Both tables side by side, sorted, a row group of the later one at a time.

    Both are sorted by subject, so the statistics of a file's row groups say which of them a range
    of subjects can be in.
    """
    for path in (before, after):
        require_contract(OUTCOMES, path)
    columns = list(_COMPARED)
    earlier = pl.scan_parquet(before).select(columns)
    low: str | None = None
    with pq.ParquetFile(after) as file:
        groups = file.num_row_groups
        for number in range(groups):
            later = pl.DataFrame(file.read_row_group(number, columns=columns))
            high = None if number == groups - 1 else str(later["subject"][-1])
            yield _joined(_between(earlier, low, high), later)
            low = high
    if groups == 0:
        yield _joined(_between(earlier, None, None), OUTCOMES.empty().select(columns))


def _between(frame: pl.LazyFrame, low: str | None, high: str | None) -> pl.DataFrame:
    if low is not None:
        frame = frame.filter(pl.col("subject") > low)
    if high is not None:
        frame = frame.filter(pl.col("subject") <= high)
    return frame.collect()


def _joined(earlier: pl.DataFrame, later: pl.DataFrame) -> pl.DataFrame:
    return later.join(earlier, on="subject", how="full", coalesce=True, suffix="_before").sort(
        "subject"
    )
