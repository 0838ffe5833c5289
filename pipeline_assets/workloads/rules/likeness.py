"""Which documents of a batch share a value although they are not versions of one document.

Copies, revisions and near-duplicates rightly share a title or a description. Belongs here: telling
those from documents that have nothing else in common. Does not belong here: what follows from it
(the rules).
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from pipeline_assets.workloads.workload import BatchView

SAMPLE = 100
"""Documents of a group whose first page is compared."""
FIRST_PAGES = 2
MOST_GROUPS = 200
"""Groups that are compared, the largest first; smaller ones beyond are taken to be alike."""
_ALIKE = 0.4  # of a document's phrases, for half of the group to have: revisions have 0.6 to 1.0


def shared_by_strangers(batch: BatchView, value: pl.Expr, least: int) -> pl.DataFrame:
    """row, shared: answers whose value is that of at least `least` documents unlike each other.

    Where most of the answers quote what their documents do not have, those that quote their own
    are right, and the others have copied them.

    Args:
        batch: the batch.
        value: of `answers`; null where an answer has none.
        least: different contents that must share the value.
    """
    groups = (
        batch.answers.select("row", "checksum", "quotes", "astray", value=value)
        .filter(pl.col("value").is_not_null() & (pl.col("value") != ""))
        .with_columns(shared=pl.col("checksum").n_unique().over("value"))
        .filter(pl.col("shared") >= least)
        .with_columns(
            pl.col("shared").cast(pl.Int64), own=(pl.col("astray") == 0) & (pl.col("quotes") > 0)
        )
    )
    if groups.is_empty():
        return groups.select("row", "shared")
    strangers = [
        _copies(group).select("row", "shared")
        for group in _largest(groups)
        if not _are_alike(batch, group.unique("checksum", maintain_order=True)["row"])
    ]
    return pl.concat([groups.select("row", "shared").clear(), *strangers]).sort("row")


def folded(text: pl.Expr) -> pl.Expr:
    """A value without case, marks and repeated space; null stays null."""
    return (
        text.str.normalize("NFKC")
        .str.to_lowercase()
        .str.replace_all(r"[^\p{L}\p{M}\p{N}]+", " ")
        .str.strip_chars()
    )


def _largest(groups: pl.DataFrame) -> Iterator[pl.DataFrame]:
    parts = groups.sort("shared", "value", "row", descending=[True, False, False]).partition_by(
        "value", maintain_order=True
    )
    return iter(parts[:MOST_GROUPS])


def _copies(group: pl.DataFrame) -> pl.DataFrame:
    return group if 2 * group["own"].sum() >= group.height else group.filter(~pl.col("own"))


def _are_alike(batch: BatchView, rows: pl.Series) -> bool:
    """Have these documents most phrases of three words in common, on their first pages?

    A document without text is like no other.
    """
    step = max(1, rows.len() // SAMPLE)
    sample = rows.gather_every(step).head(SAMPLE)
    wanted = pl.DataFrame({"row": sample}).join(
        pl.DataFrame({"page": range(1, FIRST_PAGES + 1)}, schema={"page": pl.Int64}), how="cross"
    )
    words = (
        batch.page_texts(wanted)
        .sort("row", "page")
        .select("row", word=folded(pl.col("text")).str.split(" "))
        .explode("word", empty_as_null=False)
        .filter(pl.col("word") != "")
    )
    phrases = (
        words.select(
            "row",
            whole=pl.col("row") == pl.col("row").shift(-2),
            phrase=pl.concat_str(
                "word", *(pl.col("word").shift(-n) for n in (1, 2)), separator=" "
            ),
        )
        .filter("whole")
        .unique(["row", "phrase"])
    )
    if phrases.is_empty():
        return False
    common = phrases.with_columns(held=pl.len().over("phrase") >= sample.len() / 2)
    alike = common.group_by("row").agg(share=pl.col("held").mean())["share"]
    return alike.sum() / sample.len() >= _ALIKE
