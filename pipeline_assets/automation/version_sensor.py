"""The sensor that shows new processing versions: a partition for each spec file.

Belongs here: Dagster's side of it and reading the files. Does not belong here: the decision
(`new_versions.py`), and running a version: one that a source declares has documents waiting, which
`new_source_files` finds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import dagster as dg
import msgspec

from partitions.definition import PROCESSING_VERSIONS
from partitions.processing_version import InvalidSpec, list_specs, read_spec
from pipeline_assets.automation.new_versions import SpecFile, decide_versions
from resources.context_resource import ContextResource

VERSION_SECONDS = 60


@dg.sensor(
    minimum_interval_seconds=VERSION_SECONDS,
    default_status=dg.DefaultSensorStatus.STOPPED,
    description="Adds a partition for every new file in the folders of versions, and warns once "
    "of a file that cannot be used. It requests no run.",
)
def new_processing_versions(
    context: dg.SensorEvaluationContext, tallybook: ContextResource
) -> dg.SensorResult:
    """Read the files, and ask for the partitions that are missing."""
    files = read_files(tallybook.opening.settings.spec_folders)
    name = PROCESSING_VERSIONS.name
    assert name is not None  # noqa: S101 - given where it is defined
    registered = context.instance.get_dynamic_partitions(name)
    decision = decide_versions(files, registered, read_told(context.cursor))
    for file, problem in decision.warnings.items():
        context.log.warning(f"{file} is no processing version: {problem}")
    cursor = msgspec.json.encode(decision.told).decode()
    if decision.add:
        return dg.SensorResult(
            dynamic_partitions_requests=[PROCESSING_VERSIONS.build_add_request(list(decision.add))],
            skip_reason=f"new: {', '.join(decision.add)}",
            cursor=cursor,
        )
    broken = f", {len(decision.told)} cannot be used" if decision.told else ""
    return dg.SensorResult(skip_reason=f"{len(files)} files{broken}, none is new", cursor=cursor)


def read_told(cursor: str | None) -> dict[str, str]:
    """The files that were told of; none where the cursor is of another form."""
    try:
        return msgspec.json.decode(cursor or "{}", type=dict[str, str])
    except msgspec.DecodeError:
        return {}


def read_files(folders: Sequence[Path]) -> list[SpecFile]:
    """Every file of the folders; a folder that cannot be listed is told as one that is broken."""
    try:
        listed = list_specs(list(folders))
    except InvalidSpec as error:
        text = str(error)
        return [SpecFile(text.partition(":")[0], _digest(text.encode()), problem=text)]
    return [_read(file) for _, file in sorted(listed.items())]


def _read(file: Path) -> SpecFile:
    try:
        content = _digest(file.read_bytes())
    except OSError as error:
        return SpecFile(file.name, "", problem=f"cannot be read ({error.strerror})")
    try:
        return SpecFile(file.name, content, key=read_spec(file).key)
    except InvalidSpec as error:
        return SpecFile(file.name, content, problem=str(error))


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
