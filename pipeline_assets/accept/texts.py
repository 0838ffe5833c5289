"""Reading the parsed texts that rules look at, by a record's row.

Belongs here: which pack holds which row's text, and reading no more of it than is asked for. Does
not belong here: what is looked for in it (`pipeline_assets/workloads`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import polars as pl

from resources.context import Context
from resources.contracts import PARSED_TEXT, scan_frame

TEXT_SCHEMA = {"row": pl.Int64, "page": pl.Int64, "text": pl.String}


@dataclass(frozen=True)
class Texts:
    """Readers of parsed texts, for rows of one frame of records.

    Attributes:
        pages: (row, page) pairs → row, page, text of those that exist.
        documents: rows → frames of row, page, text, a pack of documents at a time; every page of
            a row is in one frame.
    """

    pages: Callable[[pl.DataFrame], pl.DataFrame]
    documents: Callable[[pl.Series], Iterator[pl.DataFrame]]


def texts_of(context: Context, records: pl.DataFrame, facts: pl.DataFrame) -> Texts:
    """Readers for records; memory holds one pack of texts at a time (16 million characters).

    Args:
        context: the open resources.
        records: record_no; a record's row is its place here.
        facts: record_no, checksum, text_pack of the same records, and maybe of others.
    """
    rows = (
        records.select("record_no")
        .with_row_index("row")
        .with_columns(pl.col("row").cast(pl.Int64))
        .join(facts.select("record_no", "checksum", "text_pack"), on="record_no", how="left")
    )

    def pack(digest: str) -> pl.LazyFrame:
        return scan_frame(PARSED_TEXT, context.artifacts.require("text", digest)).select(
            "checksum", pl.col("page").cast(pl.Int64), "text"
        )

    def pages(wanted: pl.DataFrame) -> pl.DataFrame:
        named = wanted.join(rows, on="row")
        found = [pl.DataFrame(schema=TEXT_SCHEMA)]
        for (digest,), keys in named.group_by("text_pack"):
            if digest is None:
                continue
            texts = (
                pack(str(digest))
                .join(
                    keys.select("checksum", "page").unique().lazy(),
                    on=["checksum", "page"],
                    how="semi",
                )
                .collect()
            )
            found.append(keys.join(texts, on=["checksum", "page"]).select("row", "page", "text"))
        return pl.concat(found)

    def documents(wanted: pl.Series) -> Iterator[pl.DataFrame]:
        named = rows.filter(pl.col("row").is_in(wanted.implode()))
        for (digest,), keys in named.group_by("text_pack", maintain_order=True):
            if digest is None:
                continue
            texts = (
                pack(str(digest))
                .join(keys.select("checksum").unique().lazy(), on="checksum", how="semi")
                .collect()
            )
            yield (
                keys.select("row", "checksum")
                .join(texts, on="checksum")
                .select("row", "page", "text")
                .sort("row", "page")
            )

    return Texts(pages, documents)
