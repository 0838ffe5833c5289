"""The sensor that asks for runs where sources hold something new, and where the ledger has it.

Belongs here: Dagster's side of it: the tick, its cursor, the run requests, the alert of a source
that cannot be listed. Does not belong here: looking (`source_work.py`), deciding (`new_files.py`).
"""

from __future__ import annotations

import time

import dagster as dg
import msgspec

from partitions.definition import register
from pipeline_assets.automation.busy import busy_versions
from pipeline_assets.automation.jobs import (
    MAX_RUNTIME_SECONDS,
    MAX_RUNTIME_TAG,
    process_version,
    replay_version,
)
from pipeline_assets.automation.new_files import (
    Remembered,
    SourceDecision,
    SourceRun,
    decide_sources,
)
from pipeline_assets.automation.pending import Pending, run_key
from pipeline_assets.automation.source_work import (
    SourceWork,
    automated_sources,
    corrected_under_replays,
    look_at_sources,
)
from pipeline_assets.automation.told import tell_alerts
from resources.context_resource import ContextResource

SOURCE_SECONDS = 30
UNREADABLE = "source_unreadable"


@dg.sensor(
    jobs=[process_version, replay_version],
    minimum_interval_seconds=SOURCE_SECONDS,
    default_status=dg.DefaultSensorStatus.STOPPED,
    description="Looks at every declared source that names a version, and requests a run of that "
    "version where documents are new, changed or removed, or wait in the ledger. A file that is "
    "still being written is left for the next tick.",
)
def new_source_files(
    context: dg.SensorEvaluationContext, tallybook: ContextResource
) -> dg.SensorResult:
    """Look, decide, and request at most a run a version."""
    memory = read_memory(context.cursor)
    # Before the ledger is read and after: states of a run under way are no work for another one.
    busy = busy_versions(context.instance)
    with tallybook.open() as opened:
        automated = {source.name: source for source in automated_sources(opened)}
        memory = {name: memory[name] for name in automated if name in memory}
        work = look_at_sources(opened, memory)
        corrected = corrected_under_replays(
            opened, {source.workload for source in automated.values()}
        )
        tell_alerts(
            opened,
            UNREADABLE,
            work.unreadable,
            # What was not looked at now may be as unreadable as it was.
            keep=[*work.left, *work.unusable],
        )
        now = opened.clock()
    busy |= busy_versions(context.instance)
    decision = decide_sources(work.found, memory, time.time(), busy, work.unreadable)
    _tell(context, work, decision)
    asked = {run.version for run in decision.runs}
    replays = [each for each in corrected if each.key not in busy | asked]
    register(context.instance, [*asked, *(each.key for each in replays)])
    requests = [_process(run, run_key(_pending(run), now)) for run in decision.runs] + [
        _replay(each, run_key(each, now)) for each in replays
    ]
    cursor = msgspec.json.encode(decision.memory).decode()
    if requests:
        return dg.SensorResult(run_requests=requests, cursor=cursor)
    return dg.SensorResult(skip_reason=_summary(work, decision), cursor=cursor)


def read_memory(cursor: str | None) -> dict[str, Remembered]:
    """What the tick before remembered; nothing where that is of another form, as after an update.

    Nothing is lost with it: documents then wait for a tick more.
    """
    try:
        return msgspec.json.decode(cursor or "{}", type=dict[str, Remembered])
    except msgspec.DecodeError:
        return {}


def _pending(run: SourceRun) -> Pending:
    return Pending(run.version, run.why, run.mark)


def _process(run: SourceRun, key: str) -> dg.RunRequest:
    return dg.RunRequest(
        run_key=key,
        job_name=process_version.name,
        partition_key=run.version,
        run_config={
            "ops": {
                "source_documents": {
                    "config": {"only": run.source, "settle_seconds": run.settle_seconds}
                }
            }
        },
        tags=_tags(run.why, source=run.source),
    )


def _replay(work: Pending, key: str) -> dg.RunRequest:
    """Without a replay in its configuration, the manifest takes what is in the version's scope."""
    return dg.RunRequest(
        run_key=key,
        job_name=replay_version.name,
        partition_key=work.key,
        tags=_tags(work.why),
    )


def _tags(why: tuple[str, ...], source: str | None = None) -> dict[str, str]:
    tags = {"tallybook/why": ",".join(why), MAX_RUNTIME_TAG: str(MAX_RUNTIME_SECONDS)}
    return tags if source is None else {**tags, "tallybook/source": source}


def _tell(context: dg.SensorEvaluationContext, work: SourceWork, decision: SourceDecision) -> None:
    for name, problem in {**work.unreadable, **work.unusable}.items():
        context.log.warning(f"{name}: {problem}")
    for run in decision.runs:
        context.log.info(f"{run.source}: {', '.join(run.why)} under {run.version}")


def _summary(work: SourceWork, decision: SourceDecision) -> str:
    unsettled = sum(each.look.unsettled for each in work.found)
    beside = {
        "cannot be listed": len(work.unreadable),
        "name a version that cannot be used": len(work.unusable),
        "left for the next tick": len(work.left),
        "wait for a run": len(decision.later),
    }
    told = [f"{len(work.found)} sources looked at"]
    told += [f"{count} {what}" for what, count in beside.items() if count]
    if unsettled:
        told.append(f"{unsettled} too fresh to be taken")
    return ", ".join(told)
