"""Which documents a pilot takes. Pure.

Belongs here: the stratum of a document, how many documents of each stratum are taken, and which.
Does not belong here: reading the facts (`population.py`).

Every stratum gives at least one document, so that a kind of document that is rare in the archive
is tried at all; the rest is shared out in proportion. Within a stratum a document's place is made
of the seed and its id, so the same archive and seed give the same sample, on any machine.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping

import polars as pl

from pipeline_assets.pilot.errors import SampleTooSmall
from pipeline_assets.quality.sampling import place_of
from pipeline_assets.slices import LANGUAGES, SHORT_PAGES

FACTS_SCHEMA = {
    "document_id": pl.String,
    "size": pl.Int64,
    "page_count": pl.Int64,
    "language": pl.String,
    "notes": pl.String,
    "excluded": pl.String,
}
"""What a stratum is told from: all but id and size are null where the document was never parsed;
`excluded` is why its scan or its parse gave no text."""

SHORT_BYTES = 200_000
"""A document that was never parsed counts as short up to this size: what cannot be known is
guessed, and the strata say so by their first word."""
PICTURES = ("bmp", "gif", "jpeg", "jpg", "png", "tif", "tiff", "webp")
"""Extensions of documents that have no text of their own, before anybody parsed them."""
_DRAW = "pilot"


def strata(facts: pl.DataFrame) -> pl.Series:
    """The stratum of each row of a frame with the columns `FACTS_SCHEMA`.

    `<language>/<short|long>/<text|scan>` where the document was parsed,
    `malformed/<reason>` where its parse gave no text, `unparsed/<short|long>/<text|scan>` where
    nothing is known but its size and its name.
    """
    parsed = pl.col("page_count").is_not_null()
    language = (
        pl.when(pl.col("language").is_null() | (pl.col("language") == ""))
        .then(pl.lit("unknown"))
        .when(pl.col("language").is_in(LANGUAGES))
        .then("language")
        .otherwise(pl.lit("other"))
    )
    short = pl.when(parsed).then(pl.col("page_count") <= SHORT_PAGES).otherwise(_small_enough())
    scan = (
        pl.when(parsed)
        .then(pl.col("notes").fill_null("").str.split(" ").list.contains("ocr"))
        .otherwise(_extension().is_in(PICTURES))
    )
    named = pl.concat_str(
        pl.when(parsed).then(language).otherwise(pl.lit("unparsed")),
        pl.when(short).then(pl.lit("short")).otherwise(pl.lit("long")),
        pl.when(scan).then(pl.lit("scan")).otherwise(pl.lit("text")),
        separator="/",
    )
    malformed = pl.concat_str(pl.lit("malformed"), pl.col("excluded"), separator="/")
    return facts.select(
        stratum=pl.when(pl.col("excluded").is_not_null()).then(malformed).otherwise(named)
    )["stratum"]


def _small_enough() -> pl.Expr:
    return pl.col("size") <= SHORT_BYTES


def _extension() -> pl.Expr:
    return pl.col("document_id").str.extract(r"\.([A-Za-z0-9]{1,5})$").str.to_lowercase()


def places(document_ids: pl.Series, seed: int) -> pl.Series:
    """Each document's place in the draw, in 2^-63."""
    return pl.Series([place_of(seed, _DRAW, name) for name in document_ids], dtype=pl.Int64)


def allocate(populations: Mapping[str, int], sample: int) -> dict[str, int]:
    """How many documents of each stratum are taken: each one at least, the rest in proportion.

    One document after the other goes to the stratum that has the most documents for each one
    that is taken (the method of D'Hondt), so a larger sample never takes fewer of any stratum.

    Args:
        populations: stratum → documents; none is 0.
        sample: documents in all; where there are not so many, all are taken.

    Raises:
        SampleTooSmall: there are more strata than that.
    """
    if sample < len(populations):
        raise SampleTooSmall(sample, len(populations))
    taken = dict.fromkeys(sorted(populations), 1)
    left = min(sample, sum(populations.values())) - len(taken)
    waiting = [(-populations[name] / 2, name) for name in taken if populations[name] > 1]
    heapq.heapify(waiting)
    for _ in range(left):
        _, name = heapq.heappop(waiting)
        taken[name] += 1
        if taken[name] < populations[name]:
            heapq.heappush(waiting, (-populations[name] / (taken[name] + 1), name))
    return taken


def choose(candidates: pl.DataFrame, allocation: Mapping[str, int]) -> pl.DataFrame:
    """The documents that are taken, sorted by id.

    Args:
        candidates: document_id, stratum, place, and whatever is carried along: of each stratum at
            least the documents with the lowest places.
        allocation: stratum → documents.
    """
    wanted = pl.DataFrame(
        {"stratum": list(allocation), "wanted": list(allocation.values())},
        schema={"stratum": pl.String, "wanted": pl.Int64},
    )
    return (
        candidates.sort("stratum", "place", "document_id")
        .join(wanted, on="stratum", how="inner", maintain_order="left")
        .with_columns(rank=pl.int_range(pl.len()).over("stratum"))
        .filter(pl.col("rank") < pl.col("wanted"))
        .drop("rank", "wanted")
        .sort("document_id")
    )
