"""What may be pruned: a policy, and pure decisions over frames.

Belongs here: ages, and why something stays. Does not belong here: reading the ledger
(`resources/ledger/prunes.py`), deleting (`prune.py`), and Dagster's runs (`cli/prune.py`).

Never pruned is what the audit needs for published records, and what open ones still need:
manifests, reports, the frames with collected and judged values, and requests and results of every
batch that has one record that is not settled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal, get_args

import msgspec
import polars as pl

from resources.clock import to_text

What = Literal["results", "requests", "parses", "leftovers", "runs"]
ALL: tuple[What, ...] = get_args(What)
MIN_LEFTOVER_DAYS = 1
"""A younger file that no row names may belong to a run that is about to name it."""
ENDED = ("completed", "completed_with_errors", "cancelled")

OPEN_RECORDS = "its batch has records that are published or not settled"
NOT_ENDED = "its batch is not complete"
YOUNG = "it is younger than the policy says"
SHARED = "another batch or a canary has the same file"
LATE = "it has late results of records that are published or not settled"
DECLARED = "a version that is not retired declares its parser"
NEEDED = "its text belongs to a record that is published or not settled"

CANDIDATE_SCHEMA = {"kind": pl.String, "digest": pl.String, "at": pl.String, "why": pl.String}
"""An artifact and why it stays; `why` is null for one that may go."""


class UnknownWhat(ValueError):
    """Something that prune does not know."""

    def __init__(self, given: str) -> None:
        super().__init__(
            f"{given!r} cannot be pruned; --what takes a list of {', '.join(ALL)}. Nothing was "
            "changed."
        )


@dataclass(frozen=True)
class RetentionPolicy:
    """What is pruned, and after how many days.

    Attributes:
        what: the kinds of things.
        results: raw results, after their batch ended.
        requests: request files, after their batch ended.
        parses: texts of parsers that no version declares, after they were read.
        leftovers: files that no row of the ledger names, after they were written.
        runs: Dagster's runs, after they ended.
    """

    what: tuple[What, ...] = ALL
    results: int = 90
    requests: int = 90
    parses: int = 30
    leftovers: int = MIN_LEFTOVER_DAYS
    runs: int = 30

    def older_than(self, days: int) -> RetentionPolicy:
        """The same with one age for everything; leftovers are never taken younger than a day."""
        return replace(
            self,
            results=days,
            requests=days,
            parses=days,
            leftovers=max(days, MIN_LEFTOVER_DAYS),
            runs=days,
        )

    def before(self, what: What, now: datetime) -> datetime:
        """What is older than this moment may go."""
        return now - timedelta(days=getattr(self, what))

    def as_json(self) -> str:
        """The policy as it is kept with a pruning."""
        return msgspec.json.encode(self).decode()


def parse_what(text: str | None) -> tuple[What, ...]:
    """A list such as `results,requests`; everything where none is given.

    Raises:
        UnknownWhat: it names something else.
    """
    if text is None:
        return ALL
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in ALL:
            raise UnknownWhat(name)
    if not names:
        raise UnknownWhat(text)
    return tuple(name for name in ALL if name in names)


def decide_requests(
    batches: pl.DataFrame, canaries: pl.Series, policy: RetentionPolicy, now: datetime
) -> pl.DataFrame:
    """Which request files may go (`CANDIDATE_SCHEMA`).

    Args:
        batches: `prunes.BATCH_SCHEMA`.
        canaries: request artifacts of canaries.
        policy: the ages.
        now: the time.
    """
    judged = batches.select(
        kind=pl.lit("request"),
        digest="request_artifact",
        at="ended_at",
        why=_why_of_batch(to_text(policy.before("requests", now))),
    )
    return _one_each(judged, canaries)


def decide_results(
    batches: pl.DataFrame, files: pl.DataFrame, policy: RetentionPolicy, now: datetime
) -> pl.DataFrame:
    """Which result files may go (`CANDIDATE_SCHEMA`).

    Args:
        batches: `prunes.BATCH_SCHEMA`.
        files: `prunes.FILE_SCHEMA`.
        policy: the ages.
        now: the time.
    """
    late = pl.when(pl.col("foreign_unsettled") > 0).then(pl.lit(LATE))
    judged = files.join(batches, on="batch_no").select(
        kind=pl.lit("result"),
        digest="artifact",
        at="ended_at",
        why=pl.coalesce(_why_of_batch(to_text(policy.before("results", now))), late),
    )
    return _one_each(judged, pl.Series([], dtype=pl.String))


def decide_texts(
    packs: pl.DataFrame, declared: AbstractSet[str], policy: RetentionPolicy, now: datetime
) -> pl.DataFrame:
    """Which text packs may go (`CANDIDATE_SCHEMA`); a pack goes whole or stays.

    Args:
        packs: `prunes.PACK_SCHEMA`.
        declared: parser keys of versions that are not retired.
        policy: the ages.
        now: the time.
    """
    before = to_text(policy.before("parses", now))
    judged = packs.select(
        kind=pl.lit("text"),
        digest="text_pack",
        at="newest_at",
        why=pl.when(pl.col("parser_key").is_in(sorted(declared)))
        .then(pl.lit(DECLARED))
        .when(pl.col("needed") > 0)
        .then(pl.lit(NEEDED))
        .when(pl.col("newest_at") >= before)
        .then(pl.lit(YOUNG)),
    )
    return _one_each(judged, pl.Series([], dtype=pl.String))


def _why_of_batch(before: str) -> pl.Expr:
    return (
        pl.when(~pl.col("state").is_in(ENDED) | pl.col("ended_at").is_null())
        .then(pl.lit(NOT_ENDED))
        .when(pl.col("unsettled") > 0)
        .then(pl.lit(OPEN_RECORDS))
        .when(pl.col("ended_at") >= before)
        .then(pl.lit(YOUNG))
    )


def _one_each(judged: pl.DataFrame, kept: pl.Series) -> pl.DataFrame:
    """A row an artifact: it stays if anything that names it stays."""
    stays = pl.when(pl.col("digest").is_in(kept.implode())).then(pl.lit(SHARED))
    return (
        judged.with_columns(why=pl.coalesce("why", stays))
        .group_by("kind", "digest", maintain_order=True)
        .agg(at=pl.col("at").max(), why=pl.col("why").drop_nulls().first())
        .select(list(CANDIDATE_SCHEMA))
    )


NEWEST = "it is the newest of its job, assets and partition"
STILL_RUNNING = "it has not ended"
OPEN_WORK = "its version has open records"


@dataclass(frozen=True)
class Run:
    """One of Dagster's runs.

    Attributes:
        run_id: Dagster's id.
        job: what ran.
        assets: the assets that were asked for, sorted; empty for all of the job.
        partition: the processing version; None if the run had none.
        succeeded: it ended well.
        ended_at: when it ended; None while it has not.
    """

    run_id: str
    job: str
    assets: tuple[str, ...]
    partition: str | None
    succeeded: bool
    ended_at: datetime | None


def decide_runs(
    runs: Sequence[Run], open_versions: AbstractSet[str], before: datetime
) -> tuple[list[Run], dict[str, int]]:
    """Which runs may go, and why the others stay (reason → how many).

    Dagster tells the state of a partition by the events of its newest run, so the newest of each
    job, assets and partition stays, and the newest that ended well.

    Args:
        runs: every run, newest first.
        open_versions: keys of versions with open records.
        before: those that ended before may go.
    """
    going: list[Run] = []
    kept: Counter[str] = Counter()
    newest: set[tuple[object, ...]] = set()
    for run in runs:
        place = (run.job, run.assets, run.partition)
        first = {place} | ({(*place, "succeeded")} if run.succeeded else set())
        is_first = not first <= newest
        newest |= first
        if run.ended_at is None:
            kept[STILL_RUNNING] += 1
        elif is_first:
            kept[NEWEST] += 1
        elif run.partition in open_versions:
            kept[OPEN_WORK] += 1
        elif run.ended_at >= before:
            kept[YOUNG] += 1
        else:
            going.append(run)
    return going, dict(kept)
