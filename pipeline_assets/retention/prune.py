"""Pruning: reading what may go, writing down what goes, and deleting it.

Belongs here: the order of the steps. Does not belong here: the decision (`policy.py`), the rows
(`resources/ledger/prunes.py`), and Dagster's runs, which only the command line may touch.

What goes is committed before a file is deleted, so a missing file that is named there is no loss.
Whoever dies in between leaves files that still stand; the next pruning deletes them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import cast

import polars as pl

from pipeline_assets.erasure.purge import LEASE
from pipeline_assets.known_version import parser_key_of
from pipeline_assets.retention.policy import (
    YOUNG,
    RetentionPolicy,
    What,
    decide_requests,
    decide_results,
    decide_texts,
)
from resources.artifacts import KINDS, Kind
from resources.clock import to_text
from resources.context import Context
from resources.ledger.leases import Heartbeat, fenced, held
from resources.ledger.moves import Cause
from resources.ledger.prunes import (
    PRUNED_SCHEMA,
    canary_requests,
    ended_batches,
    live_specs,
    named_artifacts,
    pruned_names,
    record_prune,
    result_files_of_all,
    text_packs,
)

GOING_SCHEMA = {
    "what": pl.String,
    "kind": pl.String,
    "digest": pl.String,
    "bytes": pl.Int64,
    "at": pl.String,
}
_HEX = "0123456789abcdef"
_SHARDED: frozenset[Kind] = frozenset({"source", "thumbnail"})
"""Kinds with a file a document: their names are compared a folder at a time."""


@dataclass(frozen=True)
class Part:
    """What a pruning does to one kind of thing.

    Attributes:
        what: the kind.
        files: how many go.
        bytes: how large they are together.
        oldest: since when the oldest of them might have gone; None where none goes.
        kept: why the rest stays → how many.
    """

    what: str
    files: int
    bytes: int
    oldest: str | None
    kept: dict[str, int]


@dataclass(frozen=True)
class PrunePlan:
    """What may go now.

    Attributes:
        going: `GOING_SCHEMA`.
        parts: the same in numbers, a part for each kind of thing that was asked for.
    """

    going: pl.DataFrame
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class PruneReport:
    """What went.

    Attributes:
        prune_no: its number; None where there was nothing to write down.
        parts: what went.
        finished: files of earlier prunings that still stood.
    """

    prune_no: int | None
    parts: tuple[Part, ...]
    finished: int


def plan_prune(context: Context, policy: RetentionPolicy) -> PrunePlan:
    """What may go by a policy; reads only."""
    now = context.clock()
    decided: dict[What, pl.DataFrame] = {}
    with context.ledger.read() as connection:
        ledger = context.ledger
        batches = ended_batches(connection, ledger)
        if "results" in policy.what:
            files = result_files_of_all(connection, ledger)
            decided["results"] = decide_results(batches, files, policy, now)
        if "requests" in policy.what:
            canaries = canary_requests(connection, ledger)
            decided["requests"] = decide_requests(batches, canaries, policy, now)
        if "parses" in policy.what:
            declared = {parser_key_of(spec) for spec in live_specs(connection, ledger)}
            packs = text_packs(connection, ledger)
            decided["parses"] = decide_texts(packs, declared, policy, now)
    parts, going = [], [pl.DataFrame(schema=GOING_SCHEMA)]
    for what, frame in decided.items():
        there = _there(context, what, frame.filter(pl.col("why").is_null()))
        kept = frame["why"].drop_nulls().value_counts(sort=True)
        going.append(there)
        parts.append(_part(what, there, dict(kept.iter_rows())))
    if "leftovers" in policy.what:
        left, young = _leftovers(context, policy)
        going.append(left)
        parts.append(_part("leftovers", left, {YOUNG: young} if young else {}))
    return PrunePlan(pl.concat(going), tuple(parts))


def prune(context: Context, policy: RetentionPolicy, reason: str, actor: str) -> PruneReport:
    """Delete what may go by a policy.

    Raises:
        LeaseHeld: another pruning, an erasure or a backup is under way.
    """
    with held(context.ledger, LEASE, context.worker) as lease:
        heart = Heartbeat(context.ledger, lease)
        finished = _finish_earlier(context)
        plan = plan_prune(context, policy)
        if plan.going.is_empty():
            return PruneReport(None, plan.parts, finished)
        cause = Cause(reason, actor, context.ledger.now(), "prune")
        with fenced(context.ledger, lease) as connection:
            number = record_prune(
                connection,
                context.ledger,
                policy.as_json(),
                plan.going.select(list(PRUNED_SCHEMA)).unique(
                    ["kind", "digest"], maintain_order=True
                ),
                cause,
            )
        for kind, digest in plan.going.select("kind", "digest").iter_rows():
            context.artifacts.remove(cast("Kind", kind), digest)
            heart.beat()
    return PruneReport(number, plan.parts, finished)


def _finish_earlier(context: Context) -> int:
    """Delete what an earlier pruning named and did not come to; returns how many files."""
    done = 0
    with context.ledger.read() as connection:
        named = pruned_names(connection, context.ledger)
        standing: list[tuple[Kind, str]] = [
            (cast("Kind", kind), digest)
            for kind, digest in named.select("kind", "digest").iter_rows()
            if context.artifacts.has(cast("Kind", kind), digest)
        ]
        # Requests and results are named by their batch for good; of the others a row that names
        # one means that it was made anew since.
        again = {
            (kind, digest)
            for kind, digest in standing
            if kind not in ("request", "result")
            and digest in named_artifacts(connection, context.ledger, kind, digest[:8])
        }
    for kind, digest in standing:
        if (kind, digest) not in again:
            context.artifacts.remove(kind, digest)
            done += 1
    return done


def _there(context: Context, what: What, may_go: pl.DataFrame) -> pl.DataFrame:
    """Those that are in the store, with their size (`GOING_SCHEMA`)."""
    rows = []
    for kind, digest, at in may_go.select("kind", "digest", "at").iter_rows():
        try:
            size = context.artifacts.path(kind, digest).stat().st_size
        except FileNotFoundError:
            continue
        rows.append((what, kind, digest, size, at))
    return pl.DataFrame(rows, schema=GOING_SCHEMA, orient="row")


def _leftovers(context: Context, policy: RetentionPolicy) -> tuple[pl.DataFrame, int]:
    """Files that no row names (`GOING_SCHEMA`), and how many are too young.

    By the time of this machine, as the files' own times are.
    """
    before = policy.before("leftovers", datetime.now(UTC)).timestamp()
    rows, young = [], 0
    for kind, digest in unnamed(context):
        try:
            found = context.artifacts.path(kind, digest).stat()
        except FileNotFoundError:
            continue
        if found.st_mtime >= before:
            young += 1
            continue
        at = to_text(datetime.fromtimestamp(found.st_mtime, UTC))
        rows.append(("leftovers", kind, digest, found.st_size, at))
    return pl.DataFrame(rows, schema=GOING_SCHEMA, orient="row"), young


def unnamed(context: Context, kinds: Sequence[Kind] = KINDS) -> Iterator[tuple[Kind, str]]:
    """Artifacts in the store that no row of the ledger names: of runs that were killed."""
    for kind in kinds:
        prefixes = [a + b for a in _HEX for b in _HEX] if kind in _SHARDED else [""]
        for prefix in prefixes:
            there = set(context.artifacts.names(kind, prefix))
            if not there:
                continue
            # The store was looked at first: what is named in between is not taken for a leftover.
            with context.ledger.read() as connection:
                there -= named_artifacts(connection, context.ledger, kind, prefix)
            for digest in sorted(there):
                yield kind, digest


def _part(what: str, going: pl.DataFrame, kept: dict[str, int]) -> Part:
    oldest = going["at"].min()
    return Part(
        what,
        going.height,
        int(going["bytes"].sum()),
        None if oldest is None else str(oldest),
        dict(Counter(kept)),
    )
