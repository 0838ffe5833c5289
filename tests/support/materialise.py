"""Materialising assets in this process, and one whole run for tests to look at."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import dagster as dg

from partitions.definition import register
from pipeline_assets.definitions import build_definitions
from resources.settings import Settings
from tests.support.small_shop import KEY, make_documents, settings_for


def materialise(
    settings: Settings,
    instance: dg.DagsterInstance,
    *names: str,
    config: dict[str, object] | None = None,
) -> dg.ExecuteInProcessResult:
    """Materialise the named assets with their checks; all of them if none is named."""
    job = build_definitions(settings).resolve_job_def("process_version")
    return job.execute_in_process(
        instance=instance,
        partition_key=KEY,
        asset_selection=[dg.AssetKey(name) for name in names] or None,
        run_config={"ops": config or {}},
        raise_on_error=False,
    )


@dataclass(frozen=True)
class Finished:
    """One whole run: its folder (`documents/`, `state/`), its result, what it logged."""

    folder: Path
    result: dg.ExecuteInProcessResult
    logged: str


def finish(folder: Path) -> Finished:
    """Make the three documents in `folder` and run everything on them."""
    make_documents(folder / "documents")
    with dg.DagsterInstance.ephemeral() as instance:
        register(instance, [KEY])
        result = materialise(settings_for(folder), instance)
        logged = [entry.user_message for entry in instance.all_logs(result.run_id)]
    return Finished(folder, result, "\n".join(logged))
