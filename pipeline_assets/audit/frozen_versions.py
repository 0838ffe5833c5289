"""A processing version as the ledger froze it, to judge its evidence by.

Belongs here: finding the code and files that a version was frozen with, if they are still there.
Does not belong here: opening a version for work (`pipeline_assets/versions.py`): an audit freezes
nothing, and a retired version is audited like any other.
"""

from __future__ import annotations

from partitions.processing_version import (
    InvalidSpec,
    SpecDisagrees,
    UnknownVersion,
    digest,
    find_spec,
)
from pipeline_assets.versions import (
    OpenVersion,
    UnknownAcceptance,
    UnknownPrompt,
    digested_parts,
)
from pipeline_assets.workloads.registry import (
    InvalidWorkload,
    UnknownWorkload,
    WorkloadNamedTwice,
    load_workload,
)
from resources.context import Context
from resources.ledger.versions import FrozenVersion

_UNUSABLE = (
    InvalidSpec,
    InvalidWorkload,
    SpecDisagrees,
    UnknownAcceptance,
    UnknownPrompt,
    UnknownVersion,
    UnknownWorkload,
    WorkloadNamedTwice,
)


def version_as_frozen(context: Context, frozen: FrozenVersion) -> OpenVersion | str:
    """The version with its spec and workload, or why its evidence cannot be judged again."""
    try:
        spec = find_spec(frozen.key, context.settings.spec_folders)
        workload = load_workload(spec.workload, context.settings.workload_folder)
        found = digest(spec, digested_parts(spec, workload))
    except _UNUSABLE as error:
        return f"{type(error).__name__}: its spec or workload cannot be used"
    if found != frozen.digest:
        return (
            f"its spec, prompt, schema or rules have digest {found[:16]} now and "
            f"{frozen.digest[:16]} when it was frozen"
        )
    return OpenVersion(spec, workload, frozen)
