"""Which records a quality sample takes. Pure.

Belongs here: the order of the records and how far down it a sample goes. Does not belong here:
reading candidates and storing a sample (`draw.py`).

Every record of a version has a fixed place from 0 to 1, made of the sample's seed, the version's
digest and the record's id; it is drawn where its place is below the wanted share. So a record's
chance does not depend on when it was accepted, nothing is drawn twice, and drawing again from the
same records draws nothing. The size is the share on average: 2 % of 1,000 records are 20, give or
take 4. A slice that has too few below the share is topped up with the records that come next.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable
from decimal import Decimal

import polars as pl

STANDING_SCHEMA = {"slice": pl.String, "population": pl.Int64, "sampled": pl.Int64}
"""A slice: records that the rules accepted, and how many of them were drawn before."""
PLACE = "place"
_PLACES = 2**63
_SEED_BITS = 62
"""A signed 64-bit column holds it."""


def new_seed(rng: random.Random) -> int:
    """The seed of a version's first sample."""
    return rng.getrandbits(_SEED_BITS)


def place_of(seed: int, version_digest: str, record_id: str) -> int:
    """A record's place in the draw, in 2^-63."""
    text = f"{seed}:{version_digest}:{record_id}".encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "big") >> 1


def draw(
    shards: Iterable[pl.DataFrame],
    standing: pl.DataFrame,
    *,
    percent: Decimal,
    least: int,
    seed: int,
    version_digest: str,
) -> pl.DataFrame:
    """The records that are drawn.

    Args:
        shards: records that were not drawn before, a part at a time: record_id, slice and whatever
            else is carried along.
        standing: `STANDING_SCHEMA`.
        percent: the share of each slice that is looked at, 0 to 100.
        least: at least so many records of each slice, or all of them.
        seed: of the sample.
        version_digest: the version's.

    Returns:
        The columns of the shards and `place`, by slice and place. Memory holds one shard, the
        sample and `least` records a slice.
    """
    limit = int(_PLACES * percent / 100)
    kept = pl.DataFrame(schema={"record_id": pl.String, "slice": pl.String, PLACE: pl.Int64})
    for shard in shards:
        if shard.is_empty():
            continue
        places = [place_of(seed, version_digest, name) for name in shard["record_id"]]
        part = shard.with_columns(pl.Series(PLACE, places, dtype=pl.Int64))
        below = part.filter(_is_below(limit))
        above = part.filter(~_is_below(limit)).sort(PLACE).group_by("slice").head(least)
        found = [below, above.select(part.columns)]
        kept = pl.concat([kept, *found] if kept.height else found)
    lacking = (
        standing.join(
            kept.filter(_is_below(limit)).group_by("slice").agg(now=pl.len().cast(pl.Int64)),
            on="slice",
            how="left",
        )
        .with_columns(
            lacking=pl.min_horizontal("population", pl.lit(least, dtype=pl.Int64))
            - pl.col("sampled")
            - pl.col("now").fill_null(0)
        )
        .select("slice", "lacking")
    )
    return (
        kept.sort("slice", PLACE, "record_id")
        .join(lacking, on="slice", how="left", maintain_order="left")
        .with_columns(rank=(~_is_below(limit)).cum_sum().over("slice"))
        .filter(_is_below(limit) | (pl.col("rank") <= pl.col("lacking")))
        .drop("rank", "lacking")
    )


def _is_below(limit: int) -> pl.Expr:
    # 2^63 itself is no 64-bit integer, and above every place.
    return pl.lit(True) if limit >= _PLACES else pl.col(PLACE) < limit
