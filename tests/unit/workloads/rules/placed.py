"""The shard that rules of the second acceptance see: quotes with places, and whole documents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from pipeline_assets.workloads.evidence_places import find_places
from pipeline_assets.workloads.workload import Rule, Shard
from resources.catalogue import PRODUCT_SCHEMA
from resources.identifiers import fold_identifier
from tests.unit.workloads.rules.support import PAGE, shard


def placed(
    *answers: dict[str, Any],
    pages: Sequence[str] = (PAGE,),
    catalogue: Sequence[tuple[str, str, str]] = (),
    **records: str | None,
) -> Shard:
    """`support.shard` with places, the pages as whole documents, and known products.

    `records` are `language` and `languages`, as `support.shard` takes them.
    """
    seen = shard(*answers, pages=pages, **records)  # type: ignore[arg-type]
    texts = seen.page_texts(seen.evidence.select("row", "page").unique())

    def document_texts(rows: pl.Series) -> Iterator[pl.DataFrame]:
        for row in rows:
            yield pl.DataFrame(
                {"row": row, "page": range(1, len(pages) + 1), "text": pages},
                schema={"row": pl.Int64, "page": pl.Int64, "text": pl.String},
            )

    return replace(
        seen,
        places=find_places(seen.evidence, texts),
        document_texts=document_texts,
        catalogue=pl.DataFrame(
            [(fold_identifier(identifier), maker, name) for identifier, maker, name in catalogue],
            schema=PRODUCT_SCHEMA,
            orient="row",
        ),
    )


def notes(rule: Rule, seen: Shard) -> list[tuple[str, str, str]]:
    """The rule's findings as (field, note, severity), sorted."""
    found = rule.check(seen)
    if "severity" not in found.columns:
        found = found.with_columns(severity=pl.lit(rule.severity))
    return sorted(found.select("field", "note", "severity").rows())
