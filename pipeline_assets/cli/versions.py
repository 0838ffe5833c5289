"""`tallybook versions`: the processing versions that can be used, and those that were."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeline_assets.cli.options import JsonOption, StateOption, make_settings, open_existing

if TYPE_CHECKING:
    from pathlib import Path

    from resources.settings import Settings

UNUSED = "not used yet"
UNUSABLE = "unusable"
WITHOUT_SPEC = "its spec file is gone"


def versions_command(state: StateOption = None, json: JsonOption = False) -> int:
    """List processing versions: those with a spec file, and those that the ledger froze."""
    from pipeline_assets.cli import output

    rows = _rows(make_settings(state=state))
    if json:
        output.emit_json_lines(rows)
        return 0
    output.table(
        "Processing versions",
        ("version", "state", "digest", "workload", "provider", "about"),
        (
            (
                row["processing_version"],
                row["state"],
                (row["digest"] or "")[:12],
                row["workload"],
                row["provider"],
                row["description"],
            )
            for row in rows
        ),
    )
    return 0


def _rows(settings: Settings) -> list[dict[str, Any]]:
    from partitions.processing_version import list_specs
    from pipeline_assets.cli.options import NothingHere
    from resources.ledger.versions import list_versions

    try:
        with open_existing(settings) as context:
            frozen = {version.key: version for version in list_versions(context.ledger)}
    except NothingHere:
        frozen = {}
    files = list_specs(settings.spec_folders)
    rows = []
    for key in sorted(frozen.keys() | files.keys()):
        used = frozen.get(key)
        rows.append(
            {
                "processing_version": key,
                "state": UNUSED if used is None else used.state,
                "digest": None if used is None else used.digest,
                "workload": None if used is None else used.workload,
                "provider": None,
                "description": WITHOUT_SPEC,
                **({} if key not in files else _spec_facts(files[key], used is not None)),
            }
        )
    return rows


def _spec_facts(file: Path, used: bool) -> dict[str, Any]:
    from partitions.processing_version import InvalidSpec, read_spec

    try:
        spec = read_spec(file)
    except InvalidSpec as error:
        facts: dict[str, Any] = {"description": str(error)}
        return facts if used else {**facts, "state": UNUSABLE}
    return {
        "workload": spec.workload,
        "provider": spec.provider,
        "description": spec.description,
    }
