"""Drawing a quality sample: some of what the rules accepted is given to reviewers.

Belongs here: reading what may be drawn and the one transaction that draws it. Does not belong
here: how many and which (`sampling.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import polars as pl

from pipeline_assets.operating import Operating, operating
from pipeline_assets.parser_settings import parser_settings
from pipeline_assets.quality.sampling import draw, new_seed
from pipeline_assets.slices import slices
from pipeline_assets.versions import OpenVersion
from resources.context import Context
from resources.ledger.allocate import next_number
from resources.ledger.leases import Heartbeat, fenced, held
from resources.ledger.quality_samples import (
    Sample,
    candidates,
    newest_sample,
    standing,
    still_candidates,
    store_sample,
)
from resources.ledger.reviews import QUALITY_SAMPLE, open_reviews
from resources.ledger.schema import quality_samples


class SampleReasonMissing(ValueError):
    """A sample is to be drawn and nobody says why."""

    def __init__(self) -> None:
        super().__init__("found an empty reason; expected why a sample is drawn: --reason TEXT")


@dataclass(frozen=True)
class DrawReport:
    """What a draw did.

    Attributes:
        sample_no: the sample's number; None where nothing was left to draw.
        drawn: records.
        population: records that the rules had accepted, drawn before or not.
        sampled: those of them that are in a sample now.
        by_slice: slice → records drawn now.
        seed: what the order of the records was made of; None where nothing was drawn.
    """

    sample_no: int | None
    drawn: int
    population: int
    sampled: int
    by_slice: dict[str, int] = field(default_factory=dict)
    seed: int | None = None


@dataclass(frozen=True)
class _Drawn:
    """Slices as they stand, and the records that are to be drawn."""

    standing: pl.DataFrame
    records: pl.DataFrame
    seed: int


def draw_sample(
    context: Context, version: OpenVersion, reason: str, actor: str, *, seed: int | None = None
) -> DrawReport:
    """Draw what the version's accepted records still lack of a sample, and open its reviews.

    Drawing again draws nothing until more records are accepted or more of them are wanted
    (operating settings `sample_percent` and `sample_least`).

    Args:
        context: the open resources.
        version: whose records.
        reason: why; it is kept.
        actor: who; it is kept.
        seed: what the order of the records is made of; that of the version's sample before, or a
            random one, by default.

    Raises:
        SampleReasonMissing: nobody says why.
        LeaseHeld: another worker draws at this moment.
    """
    if not reason.strip():
        raise SampleReasonMissing
    ledger = context.ledger
    settings = operating(ledger, version.version_no)
    with held(ledger, f"quality:{version.key}", context.worker) as lease:
        heart = Heartbeat(ledger, lease)
        drawn = _choose(context, version, settings, seed, heart)
        if drawn.records.is_empty():
            return _report(drawn, drawn.records, None)
        with fenced(ledger, lease) as connection:
            left = still_candidates(connection, ledger, drawn.records["attempt_no"])
            records = drawn.records.join(left, on="attempt_no", maintain_order="left")
            if records.is_empty():
                return _report(drawn, records, None)
            sample = Sample(
                sample_no=next_number(connection, ledger.dialect, quality_samples.c.sample_no),
                version_no=version.version_no,
                seed=drawn.seed,
                percent=str(settings.sample_percent),
                least=settings.sample_least,
                reason=reason.strip(),
                actor=actor,
                drawn_at=ledger.now(),
            )
            store_sample(connection, ledger, sample, _slices_drawn(drawn.standing, records))
            open_reviews(
                connection,
                ledger,
                records.with_columns(version_no=pl.lit(version.version_no, dtype=pl.Int64)),
                kind=QUALITY_SAMPLE,
                at=sample.drawn_at,
                sample_no=sample.sample_no,
            )
    return _report(drawn, records, sample.sample_no)


def _choose(
    context: Context,
    version: OpenVersion,
    settings: Operating,
    seed: int | None,
    heart: Heartbeat,
) -> _Drawn:
    """Look without a write lock: reading a million candidates would keep every writer waiting."""
    ledger, key = context.ledger, parser_settings(version.spec).key
    with ledger.read() as connection:
        before = newest_sample(connection, version.version_no)
        if seed is None:
            seed = new_seed(context.rng) if before is None else before.seed
        facts = standing(connection, ledger, version.version_no, key)
        stand = (
            facts.select("population", "sampled", slice=slices(facts))
            .group_by("slice")
            .agg(pl.col("population", "sampled").sum())
            .sort("slice")
        )
        records = draw(
            _shards(candidates(connection, ledger, version.version_no, key), heart),
            stand,
            percent=settings.sample_percent,
            least=settings.sample_least,
            seed=seed,
            version_digest=version.frozen.digest,
        )
    return _Drawn(stand, records, seed)


def _shards(found: Iterator[pl.DataFrame], heart: Heartbeat) -> Iterator[pl.DataFrame]:
    for shard in found:
        heart.beat()
        yield shard.select("record_no", "attempt_no", "record_id", slice=slices(shard))


def _slices_drawn(stand: pl.DataFrame, records: pl.DataFrame) -> pl.DataFrame:
    counts = records.group_by("slice").agg(drawn=pl.len().cast(pl.Int64))
    return stand.join(counts, on="slice", how="left").select(
        "slice", "population", pl.col("drawn").fill_null(0)
    )


def _report(drawn: _Drawn, records: pl.DataFrame, sample_no: int | None) -> DrawReport:
    counts = records["slice"].value_counts().sort("slice") if records.height else None
    return DrawReport(
        sample_no=sample_no,
        drawn=records.height,
        population=int(drawn.standing["population"].sum()),
        sampled=int(drawn.standing["sampled"].sum()) + records.height,
        by_slice={} if counts is None else dict(counts.iter_rows()),
        seed=drawn.seed if records.height else None,
    )
