"""Which fields corrections changed, read back from the judged values of real answers."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest
from sqlalchemy import update

from pipeline_assets.quality.draw import draw_sample
from pipeline_assets.quality.error_rates import corrected_fields, sample_summary
from resources.artifacts import ArtifactMissing
from resources.ledger.schema import batches, reviews
from tests.integration.stages.support import ON_ONE_DATABASE, Shop


def correct(shop: Shop, **changes: Any) -> None:
    """Draw everything and correct the first of it."""
    version = shop.accept()
    draw_sample(shop.context, version, "a test", "tester")
    first, *_ = shop.rows(reviews)
    content = _staged(shop, first["attempt_no"])
    for name, value in changes.items():
        content[name] = {**content[name], "value": value}
    with shop.context.ledger.write() as connection:
        connection.execute(
            update(reviews)
            .where(reviews.c.review_no == first["review_no"])
            .values(decision="correct", corrected_content=json.dumps(content))
        )


def _staged(shop: Shop, attempt_no: int) -> dict[str, Any]:
    digest = shop.query(
        "SELECT staging_artifact FROM batches", {"staging_artifact": pl.String}
    ).item()
    frame = pl.read_parquet(shop.context.artifacts.require("frame", digest))
    return json.loads(frame.filter(pl.col("attempt_no") == attempt_no)["content"].item())


def test_changed_fields_are_counted(shop: Shop) -> None:
    correct(shop.fill(), title="Another title", description="Another description")
    number = shop.version().version_no
    assert corrected_fields(shop.context, number) == {"description": 1, "title": 1}
    with shop.context.ledger.read() as connection:
        summary = sample_summary(connection, shop.context.ledger, number)
    assert summary is not None
    assert (summary.drawn, summary.waiting, summary.decided, summary.errors) == (2, 1, 1, 1)


@ON_ONE_DATABASE
def test_no_correction_changed_nothing(shop: Shop) -> None:
    version = shop.fill().accept()
    assert corrected_fields(shop.context, version.version_no) == {}


@ON_ONE_DATABASE
def test_lost_values_are_no_unchanged_values(shop: Shop) -> None:
    correct(shop.fill(), title="Another title")
    (batch,) = shop.rows(batches)
    shop.context.artifacts.require("frame", batch["staging_artifact"]).unlink()
    with pytest.raises(ArtifactMissing):
        corrected_fields(shop.context, shop.version().version_no)


@ON_ONE_DATABASE
def test_a_correction_of_an_erased_document_tells_nothing(shop: Shop) -> None:
    # Its values are emptied first, and its judged ones leave their file after that.
    correct(shop.fill(), title="Another title")
    with shop.context.ledger.write() as connection:
        connection.execute(update(reviews).values(corrected_content=None))
    assert corrected_fields(shop.context, shop.version().version_no) == {}
