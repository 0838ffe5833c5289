"""The small archive with more identifiers, a correction and, if asked for, a second version."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
from sqlalchemy import select

from partitions.processing_version import PACKAGED_SPECS
from pipeline_assets.accept.judge_batches import judge_batches
from pipeline_assets.collect.collect_batches import collect_batches
from pipeline_assets.prepare.freeze import freeze_manifest
from pipeline_assets.publish.publish_accepted import publish_accepted
from pipeline_assets.review.decisions import decide
from pipeline_assets.submit.submit_batches import submit_batches
from pipeline_assets.versions import open_version
from resources.context import open_context
from resources.contracts import STAGING, read_frame
from resources.ledger.schema import batches, documents, records, reviews
from resources.settings import Settings
from tests.support.clock import FrozenClock
from tests.support.small_archive import KEY, SAW, Archive, fill_folder, manual

SECOND = "manuals-two-1"
DOUBLE, TRIPLE = "pump-wp-100-200.txt", "pump-wp-100-300.txt"
_BODY = manual("Water Pump", "WP-100").split("\n\n", 1)[1]


@contextmanager
def opened_archive(place: Path, ledger_url: str) -> Iterator[Archive]:
    """Open the archive of a folder, where something was processed or will be."""
    clock = FrozenClock()
    settings = Settings(
        state=place / "state",
        ledger_url=ledger_url,
        source=place / "documents",
        shard_records=2,
        specs=place / "specs",
    )
    with open_context(settings, clock=clock, rng=random.Random(7)) as context:
        yield Archive(place / "documents", settings, context, clock)


def process_first(archive: Archive) -> None:
    """Write the documents and the second spec, run the first version, and correct an answer."""
    specs = archive.folder.parent / "specs"
    specs.mkdir()
    spec = (PACKAGED_SPECS / f"{KEY}.yaml").read_text().replace(f"key: {KEY}", f"key: {SECOND}")
    (specs / f"{SECOND}.yaml").write_text(spec)
    fill_folder(archive)
    both = _BODY.replace("The WP-100", "The WP-100 and WP-200")
    archive.write(DOUBLE, f"Water Pump WP-100, WP-200\nUser Manual\n\n{both}")
    models = "Models WP-100, WP-200 and WP-300"
    archive.write(TRIPLE, f"Water Pump\n{models}\nUser Manual\n\n{_BODY}")
    archive.process()
    _correct_saw(archive)


def _correct_saw(archive: Archive) -> None:
    """Let a reviewer give the doubted saw another title, and publish it."""
    context = archive.context
    with context.ledger.read() as connection:
        review = connection.execute(
            select(
                reviews.c.review_no, reviews.c.revision, reviews.c.record_no, reviews.c.version_no
            )
            .join(records, records.c.record_no == reviews.c.record_no)
            .join(documents, documents.c.document_no == records.c.document_no)
            .where(documents.c.document_id == f"manuals/{SAW}")
        ).one()
        staged = connection.execute(select(batches.c.staging_artifact)).scalars().all()
    frames = [
        read_frame(STAGING, context.artifacts.require("frame", name)) for name in staged if name
    ]
    values: dict[str, Any] = json.loads(
        pl.concat(frames).filter(pl.col("record_no") == review.record_no)["content"][0]
    )
    values["title"] = values["title"] | {"value": "Band Saw"}
    asked = pl.DataFrame(
        [(review.review_no, review.revision, json.dumps(values, separators=(",", ":")))],
        schema={"review_no": pl.Int64, "revision": pl.Int64, "content": pl.String},
        orient="row",
    )
    archive.clock.advance(60)
    decide(context, asked, "correct", reviewer="ines", reason="the saw is a band saw")
    publish_accepted(context, archive.version())


def process_second(archive: Archive) -> None:
    """Run the second version over the same parses, up to the archive."""
    context = archive.context
    archive.clock.advance(60)
    version = open_version(context, SECOND)
    for stage in (
        freeze_manifest,
        submit_batches,
        collect_batches,
        judge_batches,
        publish_accepted,
    ):
        stage(context, version)
