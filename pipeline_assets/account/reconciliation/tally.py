"""Counting outcomes while they stream by, and naming the first of each kind of loss.

Belongs here: what a report says of the rows of `outcomes.py`, a shard at a time. Does not belong
here: how it is shown (`page.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import polars as pl

STEPS = ("expected", "answered", "accepted", "published", "shown")
"""What a record of a manifest may have reached: a usable answer came back; its values were
accepted; they were delivered to the archive; the archive shows them now."""
SETTLED_STATES = ("accepted", "published", "superseded", "withdrawn")
"""States in which nothing of a record failed: the others are named one by one."""
NAMED = 200
"""Subjects of a kind that a page names; the rest is counted."""


@dataclass(frozen=True)
class Step:
    """A step on the way from the manifest to the archive.

    Attributes:
        name: one of `STEPS`.
        records: how many reached it.
        lost: how many reached the step before and not this one.
        where: state → such records.
    """

    name: str
    records: int
    lost: int
    where: dict[str, int]


@dataclass(frozen=True)
class Kind:
    """Subjects with one kind of outcome.

    Attributes:
        what: `excluded`, `pending` or a record's state.
        why: the exclusion's reason or the failure class; None where there is none.
        subjects: how many.
        present: those of them whose bytes the sources hold now.
    """

    what: str
    why: str | None
    subjects: int
    present: int


@dataclass
class Tally:
    """The counts of the shards that were added so far."""

    rows: int = 0
    records: int = 0
    states: Counter[str] = field(default_factory=Counter)
    _reached: Counter[tuple[int, str]] = field(default_factory=Counter)
    _kinds: Counter[tuple[str, str | None, bool]] = field(default_factory=Counter)

    def add(self, shard: pl.DataFrame) -> None:
        """Count a shard."""
        self.rows += shard.height
        records = shard.filter(pl.col("record_id").is_not_null())
        self.records += records.height
        reached = records.select("state", reached=_reached()).group_by("reached", "state").len()
        for step, state, count in reached.iter_rows():
            self._reached[step, state] += count
            self.states[state] += count
        kinds = shard.with_columns(why=_why()).group_by("state", "why", "present").len().iter_rows()
        for state, why, present, count in kinds:
            self._kinds[state, why, present] += count

    def steps(self) -> tuple[Step, ...]:
        """Where records of the manifests were lost."""
        found = []
        for number, name in enumerate(STEPS):
            lost = {
                state: count
                for (step, state), count in sorted(self._reached.items())
                if step == number - 1
            }
            records = sum(count for (step, _), count in self._reached.items() if step >= number)
            found.append(Step(name, records, sum(lost.values()), lost))
        return tuple(found)

    def kinds(self) -> tuple[Kind, ...]:
        """Every kind of outcome, by name."""
        found: dict[tuple[str, str | None], list[int]] = {}
        for (what, why, present), count in self._kinds.items():
            counts = found.setdefault((what, why), [0, 0])
            counts[0] += count
            counts[1] += count if present else 0
        return tuple(
            Kind(what, why, *counts)
            for (what, why), counts in sorted(
                found.items(), key=lambda one: (one[0][0], one[0][1] or "")
            )
        )


@dataclass(frozen=True)
class NamedSubject:
    """A subject as a page names it."""

    document_id: str
    record_id: str | None
    reason: str | None
    batch: str | None
    attempts: int
    present: bool


@dataclass
class NamedKind:
    """The first subjects of a kind, and how many there are."""

    what: str
    why: str | None
    subjects: int = 0
    first: list[NamedSubject] = field(default_factory=list)

    @property
    def more(self) -> int:
        """How many are not named."""
        return self.subjects - len(self.first)


def named_losses(shards: Iterable[pl.DataFrame], most: int = NAMED) -> list[NamedKind]:
    """Every exclusion and every record that failed or is open, by kind; the first of each named.

    Args:
        shards: of `OUTCOMES`.
        most: subjects of a kind that are named.
    """
    found: dict[tuple[str, str], NamedKind] = {}
    columns = list(NamedSubject.__dataclass_fields__)
    for shard in shards:
        lost = shard.filter(~pl.col("state").is_in(SETTLED_STATES)).with_columns(why=_why())
        # One group a kind: a shard of nothing but losses is still read column by column.
        for (what, why), rows in lost.group_by("state", "why", maintain_order=True):
            kind = found.setdefault(
                (str(what), str(why or "")), NamedKind(str(what), None if why is None else str(why))
            )
            kind.subjects += rows.height
            wanted = rows.head(most - len(kind.first)).select(columns)
            kind.first += [NamedSubject(**row) for row in wanted.iter_rows(named=True)]
    return [found[key] for key in sorted(found)]


def _reached() -> pl.Expr:
    """The number of the last step that a record reached; each takes those before for granted."""
    accepted = pl.col("accepted_digest").is_not_null()
    return (
        pl.when(pl.col("visible"))
        .then(4)
        .when(pl.col("delivery").is_not_null())
        .then(3)
        .when(accepted)
        .then(2)
        .when(pl.col("judged").is_not_null() | (pl.col("disposition") == "succeeded"))
        .then(1)
        .otherwise(0)
    )


def _why() -> pl.Expr:
    """What an exclusion is for; of a record that failed, how."""
    excluded = pl.col("state") == "excluded"
    failed = ~pl.col("state").is_in((*SETTLED_STATES, "excluded", "pending"))
    return pl.when(excluded).then("reason").when(failed).then("failure_class")
