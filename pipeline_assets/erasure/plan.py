"""Whether a document can be erased now, and which of its bytes go: pure decisions.

Belongs here: what stands in the way, with what helps, and which bytes another document needs.
Does not belong here: reading the ledger (`resources/ledger/erasures.py`) and purging (`purge.py`).
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from resources.ledger.erasures import Standing

SHOWN = 3
"""A message names so many batches or documents, and counts the rest."""

_HELPS: Mapping[str, str] = MappingProxyType(
    {
        "prepared": "tallybook batch discard {batch} --reason TEXT, or send it with tallybook run",
        "submitting": "wait until it is known whether the provider has it (tallybook batch poll)",
        "quarantined": "tallybook batch attach {batch} PROVIDER_JOB, or tallybook batch discard "
        "{batch} --reason TEXT",
        "submitted": "wait for it, or tallybook batch cancel {batch} --reason TEXT",
        "running": "wait for it, or tallybook batch cancel {batch} --reason TEXT",
        "results_available": "tallybook run collects it",
        "reconciling": "tallybook run collects it",
        "incident": "tallybook batch reconcile {batch} --reason TEXT",
    }
)
_JUDGE = "tallybook run judges it"


class ErasureRefused(Exception):
    """A document is under way in a batch, so it cannot be erased now."""

    def __init__(self, document_id: str, obstacles: tuple[Obstacle, ...]) -> None:
        self.obstacles = obstacles
        told = "; ".join(f"{obstacle.what}: {obstacle.helps}" for obstacle in obstacles[:SHOWN])
        more = f"; and {len(obstacles) - SHOWN} more" if len(obstacles) > SHOWN else ""
        super().__init__(
            f"{document_id} cannot be erased while it is being processed, and nothing was "
            f"changed. {told}{more}. Then run the same command again."
        )


class NotConfirmed(Exception):
    """Nobody said that the erasure is meant."""

    def __init__(self, document_id: str) -> None:
        super().__init__(
            f"{document_id} was not erased: it cannot be undone, so say that it is meant with "
            "--yes, or look first with --dry-run."
        )


@dataclass(frozen=True)
class Obstacle:
    """Something that has to end first.

    Attributes:
        what: the batch or record, and where it stands.
        helps: what ends it.
    """

    what: str
    helps: str


@dataclass(frozen=True)
class ErasurePlan:
    """What an erasure would do.

    Attributes:
        obstacles: what has to end first; nothing is erased before.
        checksums: of the bytes that are purged.
        shared: checksum → other documents that need the same bytes, which therefore stay.
        withdrawn: state → its records, which become withdrawn.
    """

    obstacles: tuple[Obstacle, ...]
    checksums: tuple[str, ...]
    shared: Mapping[str, tuple[str, ...]]
    withdrawn: Mapping[str, int]


def plan_erasure(standing: Standing) -> ErasurePlan:
    """Decide about a document from what the ledger knows of it.

    A record that is prepared or submitted has its request in an open batch; so may one that is
    published already, where a replay or a late answer is under way. All of them are obstacles:
    bytes that a provider holds, or that a worker is about to write, would come back.
    """
    shared: dict[str, list[str]] = {}
    for checksum, document_id in standing.needed.iter_rows():
        shared.setdefault(checksum, []).append(document_id)
    withdrawn: dict[str, int] = {}
    for state in standing.records["state"]:
        if state != "withdrawn":
            withdrawn[state] = withdrawn.get(state, 0) + 1
    return ErasurePlan(
        obstacles=_obstacles(standing),
        checksums=tuple(name for name in standing.checksums if name not in shared),
        shared=MappingProxyType({name: tuple(others) for name, others in shared.items()}),
        withdrawn=MappingProxyType(dict(sorted(withdrawn.items()))),
    )


def _obstacles(standing: Standing) -> tuple[Obstacle, ...]:
    in_batches = [
        Obstacle(
            f"batch {batch} is {state}",
            _HELPS.get(state, "wait until it is complete").format(batch=shlex.quote(batch)),
        )
        for batch, state in standing.open_batches.iter_rows()
    ]
    # Where its batch is complete already, only the judgement is missing.
    waiting = [
        Obstacle(f"record {record} is {state}", _JUDGE)
        for record, state in standing.records.select("record_id", "state").iter_rows()
        if state == "collected" or (state in ("prepared", "submitted") and not in_batches)
    ]
    return tuple(in_batches + waiting)
