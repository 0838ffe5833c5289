"""A replay as it is asked for and as it is planned.

Belongs here: the types. Does not belong here: planning one (`plan.py`), and how the ledger keeps
it (`resources/ledger/replays.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from resources.ledger.replays import NewReplay


class ReplayRefused(ValueError):
    """A replay that cannot be asked for."""


@dataclass(frozen=True)
class ReplayRequest:
    """What somebody asks for.

    Attributes:
        replay_id: unique; asking again with the same one does nothing.
        from_key: whose records are selected.
        where: a filter over recorded facts; None for all records.
        documents: ids of the only documents that are meant; None for all.
        reason: one of `REPLAY_REASONS`, or None to tell it from the two versions.
        note: why, in their own words.
        actor: who asks.
    """

    replay_id: str
    from_key: str
    where: str | None
    documents: tuple[str, ...] | None
    reason: str | None
    note: str
    actor: str


def replay_id_of(key: str, root_run_id: str) -> str:
    """The name of the replay into a version that a run was started for.

    Args:
        key: the version.
        root_run_id: the run that the configuration was given to: a re-execution of it means the
            same replay.
    """
    return f"{key}-r-{root_run_id[:8]}"


@dataclass(frozen=True)
class ReplayPlan:
    """What a replay would process.

    Attributes:
        replay: as it is stored.
        same: does it make other attempts at the same records, under the same version?
        members: `MEMBER_SCHEMA`, by document.
        skipped: selected records that cannot be processed, and listed documents without a record,
            by why.
        corrected: members whose record had values that a reviewer corrected; a new answer that is
            published takes their place.
        changes: what differs between the versions (`reasons.differences`).
    """

    replay: NewReplay
    same: bool
    members: pl.DataFrame
    skipped: dict[str, int]
    corrected: int
    changes: tuple[str, ...]
