"""A state folder in which a version was run, and two others wait for a replay of it.

Used by the browser test, and by the script that takes the pictures of the documentation.
"""

from __future__ import annotations

from pathlib import Path

from partitions.definition import register
from partitions.processing_version import PACKAGED_SPECS
from pipeline_assets.automation.jobs import replay_version
from pipeline_assets.cli.dagster_instance import open_instance
from pipeline_assets.cli.dagster_run import RunOutcome, run_job, run_version
from resources.settings import Settings

FROM = "manuals-baseline-2"
FURTHER = ("manuals-thorough-1", "manuals-thorough-2")
NOTHING = "state = cancelled"
"""A filter that selects nothing: the run parses, and freezes no manifest."""


def write_versions(folder: Path) -> Path:
    """Specs that differ from the packaged one in their parameters."""
    folder.mkdir(parents=True, exist_ok=True)
    text = (PACKAGED_SPECS / f"{FROM}.yaml").read_text(encoding="utf-8")
    for number, key in enumerate(FURTHER, start=1):
        spec = text.replace(f"key: {FROM}", f"key: {key}").replace(
            "model: rules-1\n", f"model: rules-1\nparameters: {{thorough: {number}}}\n"
        )
        (folder / f"{key}.yaml").write_text(spec, encoding="utf-8")
    return folder


def process(settings: Settings) -> None:
    """Run the first version; parse under the others, of which nothing is selected yet."""
    require(run_version(settings, FROM))
    for key in FURTHER:
        config = {"replay_from": FROM, "where": NOTHING, "note": "nothing yet"}
        require(run_job(settings, key, replay_version.name, {"manifest": {"config": config}}))
    with open_instance(settings) as instance:
        register(instance, [FROM, *FURTHER])


def require(outcome: RunOutcome) -> None:
    """Stop where a run did not succeed."""
    assert outcome.success, outcome.error_line
