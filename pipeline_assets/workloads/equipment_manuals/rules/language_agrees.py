"""Rule `language_agrees`: the answer's language is that of the parsed text.

Agreement of two independent guesses is asked for; where the text gives none, or holds several
languages, a person decides.
"""

from __future__ import annotations

import polars as pl

from pipeline_assets.workloads.workload import Rule, Shard


def check(shard: Shard) -> pl.DataFrame:
    """A finding where the languages differ, cannot be compared or are several."""
    both = shard.values.filter(pl.col("language_status") == "found").join(
        shard.records.select("row", text_language="language", others="languages"), on="row"
    )
    note = (
        pl.when(pl.col("text_language").is_null())
        .then(pl.lit("the parsed text gives no language to compare with"))
        .when(pl.col("language") != pl.col("text_language"))
        .then(pl.lit("the parsed text is in another language"))
        .when(pl.col("others") != "")
        .then(pl.lit("the parsed text is in several languages"))
    )
    absent = shard.values.filter(pl.col("language_status") == "absent").select(
        "row", note=pl.lit("no language is given")
    )
    found = both.select("row", note=note).filter(pl.col("note").is_not_null())
    return pl.concat([found, absent]).select("row", field=pl.lit("language"), note="note")


RULE = Rule(id="language_agrees", version=1, severity="review", check=check)
