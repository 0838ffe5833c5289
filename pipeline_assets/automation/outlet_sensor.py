"""The sensor that tells the configured outlet what changed in the archive.

Belongs here: Dagster's side of it. Does not belong here: what is told and how (`outlets/`).

It is off until somebody switches it on: it sends what documents say to another system.
"""

from __future__ import annotations

import dagster as dg

from pipeline_assets.outlets.deliver import SendReport, send_changes
from pipeline_assets.outlets.http import configured_outlet
from resources.context_resource import ContextResource

SENSOR_SECONDS = 60
LOOK_SECONDS = 30.0
"""A look begins no further round after so long: a tick has a limit of its own, and comes again."""


@dg.sensor(
    minimum_interval_seconds=SENSOR_SECONDS,
    default_status=dg.DefaultSensorStatus.STOPPED,
    description="Tells the configured outlet (webhook) which documents became visible, changed or "
    "left; skips where no outlet is configured.",
)
def outlet_sender(context: dg.SensorEvaluationContext, tallybook: ContextResource) -> dg.SkipReason:
    """Tell what is owed; it starts no run, so every tick is a skip that says what was done."""
    outlet = configured_outlet(tallybook.opening.settings)
    if outlet is None:
        return dg.SkipReason("no outlet is configured")
    with tallybook.open() as opened:
        report = send_changes(opened, outlet=outlet, seconds=LOOK_SECONDS)
    if report.problem is not None:
        context.log.warning(f"{outlet.name}: {report.problem}")
    return dg.SkipReason(_summary(report))


def _summary(report: SendReport) -> str:
    if report.busy:
        return "another sender is at it"
    told = f"{report.outlet}: {report.delivered} delivered"
    beside = {
        "refused": report.refused,
        "given up": report.given_up,
        "to be tried again": report.failed,
    }
    return ", ".join([told, *(f"{count} {name}" for name, count in beside.items() if count)])
