"""What Dagster loads: every asset, check, job, sensor and resource, put together.

Belongs here: `build_definitions` and the one line that calls it. Does not belong here: any of
the parts.
"""

from __future__ import annotations

import warnings

import dagster as dg

from pipeline_assets.accept import asset as accept
from pipeline_assets.accept import checks as accept_checks
from pipeline_assets.account import asset as account
from pipeline_assets.account import checks as account_checks
from pipeline_assets.automation.alert_sensors import (
    alert_sender,
    run_failure_alert,
    run_success_clears_alert,
)
from pipeline_assets.automation.jobs import (
    advance_version,
    process_version,
    reconcile_versions,
    replay_version,
    retry_version,
)
from pipeline_assets.automation.outlet_sensor import outlet_sender
from pipeline_assets.automation.repair_job import repair_archive
from pipeline_assets.automation.schedules import (
    hourly_reconciliation,
    stuck_work,
    stuck_work_alerts,
)
from pipeline_assets.automation.sensors import provider_batch_monitor, retry_due
from pipeline_assets.automation.source_sensor import new_source_files
from pipeline_assets.automation.version_sensor import new_processing_versions
from pipeline_assets.collect import asset as collect
from pipeline_assets.collect import checks as collect_checks
from pipeline_assets.expected_errors import EXPECTED_ERRORS
from pipeline_assets.ingest import asset as ingest
from pipeline_assets.prepare import asset as prepare
from pipeline_assets.publish import asset as publish
from pipeline_assets.publish import checks as publish_checks
from pipeline_assets.quality import asset as quality
from pipeline_assets.submit import asset as submit
from resources.context import Progress, SilentProgress
from resources.context_resource import ContextOpening, ContextResource
from resources.settings import Settings, load_settings

ASSETS: tuple[dg.AssetsDefinition, ...] = (
    ingest.source_documents,
    ingest.parsed_documents,
    prepare.manifest,
    submit.provider_batches,
    collect.provider_results,
    accept.validated_staging,
    publish.published_archive,
    quality.quality_sample,
    account.reconciliation_report,
)
"""In the order that data flows."""


def build_definitions(
    settings: Settings | None = None, *, progress: Progress | None = None
) -> dg.Definitions:
    """Everything that Dagster runs, for one state folder.

    Args:
        settings: where things are; read from every layer by default.
        progress: where long work tells how far it is; nowhere by default.

    Raises:
        SettingsError: a setting cannot be used.
    """
    opening = ContextOpening(
        settings=load_settings() if settings is None else settings,
        expected=EXPECTED_ERRORS,
        progress=progress or SilentProgress(),
    )
    return dg.Definitions(
        assets=ASSETS,
        asset_checks=_checks(),
        jobs=[
            process_version,
            advance_version,
            retry_version,
            replay_version,
            reconcile_versions,
            stuck_work,
            repair_archive,
        ],
        schedules=[hourly_reconciliation, stuck_work_alerts],
        sensors=[
            new_source_files,
            new_processing_versions,
            provider_batch_monitor,
            retry_due,
            alert_sender,
            run_failure_alert,
            run_success_clears_alert,
            outlet_sender,
        ],
        resources={"tallybook": ContextResource(opening=opening)},
        # Without it every step is a process of its own: 15 s for four trivial ones.
        executor=dg.in_process_executor,
    )


def _checks() -> list[dg.AssetChecksDefinition]:
    with warnings.catch_warnings():
        # Partitioned checks are a preview. Unpartitioned ones on partitioned assets would let one
        # version's good result stand for another's bad one.
        warnings.filterwarnings(
            "ignore",
            message="Specifying a partitions_def on an AssetCheckSpec is currently in preview",
            category=dg.PreviewWarning,
        )
        return [
            *collect_checks.make_checks(),
            *accept_checks.make_checks(),
            *publish_checks.make_checks(),
            *account_checks.make_checks(),
        ]


defs = build_definitions()
