"""Which document ids a listing has had already, in 24 bytes a row.

Here: remembering ids by their hashes. Not here: what becomes of a repeated id (`row_listing`).

An id is known by two independent hashes of 64 bits with random seeds: that two different ids have
both in common has a chance of about one in 10^20 in a billion rows, and nobody can arrange it.
Ids are kept in sorted runs, each at least twice as long as the next, so that adding and finding
stay cheap whatever the number of rows.
"""

from __future__ import annotations

import secrets

import polars as pl

_SEED_BITS = 63


class SeenRows:
    """Ids with the digest (`digests`) of the first row that had them."""

    def __init__(self) -> None:
        self._seeds = (secrets.randbits(_SEED_BITS), secrets.randbits(_SEED_BITS))
        self._runs: list[pl.DataFrame] = []

    def digests(self, texts: pl.Series) -> pl.Series:
        """What `add` keeps of texts: a hash (UInt64) each."""
        return texts.hash(self._seeds[0])

    def find(self, ids: pl.Series) -> pl.Series:
        """The digest (UInt64) of the first row with each id; null where none had it."""
        wanted = self._hashed(ids).with_row_index("at")
        found = pl.Series("digest", [None] * len(ids), dtype=pl.UInt64)
        for run in self._runs:
            places = run["one"].search_sorted(wanted["one"], side="left")
            nearest = run["one"].gather(places.clip(upper_bound=run.height - 1))
            likely = wanted.filter(nearest == wanted["one"])
            if likely.is_empty():
                continue
            hits = likely.join(run, on=["one", "two"], how="inner")
            found = found.scatter(hits["at"], hits["digest"])
        return found

    def add(self, ids: pl.Series, digests: pl.Series) -> None:
        """Remember ids that were not found, each once."""
        run = self._hashed(ids).with_columns(digest=digests).sort("one")
        if run.is_empty():
            return
        while self._runs and self._runs[-1].height < 2 * run.height:
            run = pl.concat([self._runs.pop(), run], rechunk=True).sort("one")
        self._runs.append(run)

    def _hashed(self, ids: pl.Series) -> pl.DataFrame:
        one, two = self._seeds
        return pl.DataFrame({"one": ids.hash(one), "two": ids.hash(two)})
