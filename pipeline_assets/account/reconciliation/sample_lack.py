"""What the quality sample of a version still lacks: what a draw would take now.

Belongs here: only that question, answered by the draw's own rule. Does not belong here: drawing
(`pipeline_assets/quality/draw.py`), and whether a report may be closed (`closing.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl
from sqlalchemy import Connection

from pipeline_assets.known_version import KnownVersion
from pipeline_assets.operating import operating
from pipeline_assets.quality.sampling import draw
from pipeline_assets.slices import slices
from resources.ledger.engine import Ledger
from resources.ledger.quality_samples import candidates, newest_sample, standing


@dataclass(frozen=True)
class SampleLack:
    """How a version's sample stands against what its settings ask for.

    Attributes:
        candidates: accepted answers that nobody looked at and no sample has.
        wanted: those of them that a draw would take now.
    """

    candidates: int
    wanted: int


def sample_lack(connection: Connection, ledger: Ledger, version: KnownVersion) -> SampleLack:
    """What a draw would take now. Reads every candidate once, a batch at a time."""
    settings = operating(ledger, version.version_no)
    facts = standing(connection, ledger, version.version_no, version.parser_key)
    stand = (
        facts.select("population", "sampled", slice=slices(facts))
        .group_by("slice")
        .agg(pl.col("population", "sampled").sum())
    )
    before = newest_sample(connection, version.version_no)
    seen = 0

    def shards() -> Iterator[pl.DataFrame]:
        nonlocal seen
        for shard in candidates(connection, ledger, version.version_no, version.parser_key):
            seen += shard.height
            yield shard.select("record_id", slice=slices(shard))

    drawn = draw(
        shards(),
        stand,
        percent=settings.sample_percent,
        least=settings.sample_least,
        # A first sample has a seed of its own; which records it takes is not the question.
        seed=0 if before is None else before.seed,
        version_digest=version.digest,
    )
    return SampleLack(candidates=seen, wanted=drawn.height)
