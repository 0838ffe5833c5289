"""Opening a processing version for work: its spec, its workload, its frozen row.

Belongs here: putting the three together. Does not belong here: the digest
(`partitions/processing_version.py`) and the freezing (`resources/ledger/versions.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

import rfc8785

from partitions.processing_version import DigestedParts, Spec, digest, find_spec
from pipeline_assets.workloads.registry import load_workload
from pipeline_assets.workloads.workload import Workload
from resources.context import Context
from resources.ledger.versions import FrozenVersion, VersionNotActive, freeze
from resources.parser_settings import PARSER_VERSION


@dataclass(frozen=True)
class OpenVersion:
    """A version that work can be done under."""

    spec: Spec
    workload: Workload
    frozen: FrozenVersion

    @property
    def key(self) -> str:
        """The version's key, also the partition key."""
        return self.spec.key

    @property
    def version_no(self) -> int:
        """The version's number in the ledger."""
        return self.frozen.version_no


def digested_parts(workload: Workload) -> DigestedParts:
    """What a version of this workload freezes besides its own spec."""
    return DigestedParts(
        prompt=workload.prompt,
        output_schema=workload.output_schema,
        thresholds=workload.thresholds,
        rules={rule.id: rule.version for rule in workload.rules},
        parser_version=PARSER_VERSION,
        schema_version=workload.schema_version,
    )


def open_version(context: Context, key: str) -> OpenVersion:
    """The version of `key`, frozen in the ledger at first use.

    Raises:
        MalformedVersionKey: the key cannot be one.
        UnknownVersion: no spec file has the key.
        InvalidSpec: its file cannot be used.
        UnknownWorkload: its workload is not installed.
        SpecDisagrees: it declares other rule, schema or parser versions than are installed.
        VersionChanged: it was frozen with another digest.
        VersionNotActive: it is held or retired.
    """
    spec = find_spec(key, context.settings.spec_folders)
    workload = load_workload(spec.workload)
    frozen = freeze(
        context.ledger,
        key=spec.key,
        workload=spec.workload,
        digest=digest(spec, digested_parts(workload)),
        spec=rfc8785.dumps(spec.model_dump()).decode(),
        cause=context.cause("first use", "open_version"),
    )
    if frozen.state != "active":
        raise VersionNotActive(frozen.key, frozen.state, frozen.state_reason)
    return OpenVersion(spec, workload, frozen)
