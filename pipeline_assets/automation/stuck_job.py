"""The job that tells of work that stands still.

Belongs here: the step, and the two sources of its facts: the ledger, and what the sensor of
sources remembers. Does not belong here: the decision (`stuck_work.py`).
"""

import time
from dataclasses import replace
from datetime import timedelta

import dagster as dg

from pipeline_assets.automation.jobs import MAX_RUNTIME_SECONDS, MAX_RUNTIME_TAG
from pipeline_assets.automation.source_sensor import new_source_files, read_memory
from pipeline_assets.automation.source_work import automated_sources
from pipeline_assets.automation.stuck_facts import limits_of_versions, stuck_facts
from pipeline_assets.automation.stuck_work import find_stuck
from pipeline_assets.automation.switches import sensor_state
from pipeline_assets.automation.told import tell_alerts
from resources.context import Context
from resources.context_resource import ContextResource


@dg.op(description="Raise alerts of work that stands still, and clear those of work that moved.")
def find_stuck_work(context: dg.OpExecutionContext, tallybook: ContextResource) -> None:
    """Look at batches, records, reviews, canaries and sources, and tell what stands still."""
    with tallybook.open() as opened:
        raised, cleared = look_for_stuck_work(opened, context.instance)
    context.log.info(f"{len(raised)} alerts raised, {len(cleared)} cleared")
    context.add_output_metadata(
        {"raised": ", ".join(raised) or "none", "cleared": ", ".join(cleared) or "none"}
    )


@dg.job(
    name="stuck_work",
    description="Tell of work that stands still although nothing has to wait for it.",
    tags={MAX_RUNTIME_TAG: str(MAX_RUNTIME_SECONDS)},
)
def stuck_work() -> None:
    """One step."""
    find_stuck_work()


def look_for_stuck_work(
    context: Context, instance: dg.DagsterInstance
) -> tuple[list[str], list[str]]:
    """Raise and clear the alerts.

    Returns:
        The subjects that were raised, and those that were cleared.

    Raises:
        InvalidSources: the declarations of sources cannot be used.
    """
    facts = replace(stuck_facts(context), sources=_silences(context, instance))
    raised: list[str] = []
    cleared: list[str] = []
    found = find_stuck(facts, context.clock(), limits_of_versions(context.ledger))
    for kind, standing in found.items():
        fresh, over = tell_alerts(context, kind, standing)
        raised += fresh
        cleared += over
    return raised, cleared


def _silences(context: Context, instance: dg.DagsterInstance) -> dict[str, timedelta]:
    """How long each automated source was not looked at; none where the sensor is off.

    By the machine's time, as sensors tick; a sensor that was just switched on had no time yet.
    """
    state = sensor_state(instance, new_source_files.name)
    if state is None or not state.on:
        return {}
    memory = read_memory(state.cursor)
    now = time.time()
    return {
        source.name: timedelta(
            seconds=now - max(state.since, memory[source.name].looked_at)
            if source.name in memory
            else now - state.since
        )
        for source in automated_sources(context)
    }
