"""The jobs: a walk through every stage, or through those after the manifest, for one version.

Belongs here: which assets a job materialises and how long a run may take. Does not belong here:
the assets.
"""

from __future__ import annotations

import dagster as dg

MAX_RUNTIME_SECONDS = 3600
"""A run that lasts longer is ended: none waits for a provider, so it hangs, or its machine died."""

MAX_RUNTIME_TAG = "dagster/max_runtime"

AFTER_THE_MANIFEST = (
    "provider_batches",
    "provider_results",
    "validated_staging",
    "published_archive",
    "quality_sample",
    "reconciliation_report",
)

process_version = dg.define_asset_job(
    name="process_version",
    selection=dg.AssetSelection.groups("tallybook"),
    description="Everything from the source folder to the report, for one processing version.",
    run_tags={MAX_RUNTIME_TAG: str(MAX_RUNTIME_SECONDS)},
)

retry_version = dg.define_asset_job(
    name="retry_version",
    selection=dg.AssetSelection.assets("manifest", *AFTER_THE_MANIFEST),
    config={"ops": {"manifest": {"config": {"retries_only": True}}}},
    description="Another attempt at the records that are due for one, for one processing version: "
    "a retry manifest, and everything after it.",
    run_tags={MAX_RUNTIME_TAG: str(MAX_RUNTIME_SECONDS)},
)

replay_version = dg.define_asset_job(
    name="replay_version",
    selection=dg.AssetSelection.assets("parsed_documents", "manifest", *AFTER_THE_MANIFEST),
    description="Selected records of a version processed under this one: give replay_from, note "
    "and, if not all are meant, where in the configuration of manifest.",
    run_tags={MAX_RUNTIME_TAG: str(MAX_RUNTIME_SECONDS)},
)

advance_version = dg.define_asset_job(
    name="advance_version",
    selection=dg.AssetSelection.assets(*AFTER_THE_MANIFEST),
    description="Everything after the frozen manifest, for one processing version: hand over what "
    "waits, collect what is done, judge, publish, report.",
    run_tags={MAX_RUNTIME_TAG: str(MAX_RUNTIME_SECONDS)},
)

reconcile_versions = dg.define_asset_job(
    name="reconcile_versions",
    selection=dg.AssetSelection.assets("reconciliation_report"),
    description="The account of every document anew, for one processing version.",
    run_tags={MAX_RUNTIME_TAG: str(MAX_RUNTIME_SECONDS)},
)
