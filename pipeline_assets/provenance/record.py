"""The provenance of one materialisation as a typed record, and its plain form.

Belongs here: the record, and what of it the ledger tells. Does not belong here: what only Dagster
knows (`asset.py`), and where a published value comes from (`account/field_provenance.py`).

A record holds names, digests, counts and times; no text of a document and no setting's value.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from partitions.processing_version import find_spec
from pipeline_assets.replay.model import replay_id_of
from resources.context import Context
from resources.ledger import versions
from resources.ledger.replays import find_replay

KEY = "tallybook/provenance"
"""The one metadata key under which every materialisation has its record."""
CONTRACT_VERSION = 1
"""Grows when a member of the record changes its meaning, comes or goes."""
NOT_INSTALLED = "not installed"
"""Stands for the release where the package is used from its folder."""


@dataclass(frozen=True)
class Input:
    """An asset that was read, as it was materialised last.

    Attributes:
        asset: its key.
        data_version: the digest of its content then; None if it was never materialised.
        partition: of which partition; None for an asset that has none.
    """

    asset: str
    data_version: str | None
    partition: str | None


@dataclass(frozen=True)
class Provenance:
    """Where one materialisation comes from.

    Attributes:
        contract_version: `CONTRACT_VERSION`.
        asset: the asset's key.
        processing_version: the partition; None for `source_documents`, which has none.
        workload: whose documents; None for a run without a processing version, which scans all.
        spec_digest: of the processing version, as it was frozen; None before its first use.
        code_version: of the asset.
        release: of the package.
        ledger_id: of the ledger that it was made from.
        run_id: Dagster's id of the run.
        data_version: the digest of what the asset stands for now.
        inputs: what it was made from, by asset.
        counts: the whole numbers that the asset reports of this run.
        replay_id: the replay that the run carried out; None where there was none.
        made_at: when, UTC.
    """

    contract_version: int
    asset: str
    processing_version: str | None
    workload: str | None
    spec_digest: str | None
    code_version: str | None
    release: str
    ledger_id: str
    run_id: str
    data_version: str
    inputs: tuple[Input, ...]
    counts: Mapping[str, int]
    replay_id: str | None
    made_at: str

    def as_json(self) -> dict[str, Any]:
        """Its plain form: names, numbers, lists and objects alone."""
        plain = asdict(self)
        return {**plain, "inputs": list(plain["inputs"]), "counts": dict(plain["counts"])}


@dataclass(frozen=True)
class Subject:
    """What a run is about.

    Attributes:
        workload: None for a run that is about no processing version.
        spec_digest: None where the version was never used before.
    """

    workload: str | None
    spec_digest: str | None


def subject_of(context: Context, key: str | None) -> Subject:
    """What a run for a processing version is about, as the ledger has it frozen.

    Args:
        context: the open resources.
        key: the version's; None for a run without one.

    Raises:
        UnknownVersion, InvalidSpec: the version was never used, and has no spec that can be read.
    """
    if key is None:
        return Subject(None, None)
    frozen = versions.find(context.ledger, key)
    if frozen is not None:
        return Subject(frozen.workload, frozen.digest)
    return Subject(find_spec(key, context.settings.spec_folders).workload, None)


def replay_of_run(context: Context, key: str | None, root_run_id: str) -> str | None:
    """The id of the replay that a run, or the one that it repeats, has carried out so far."""
    if key is None:
        return None
    # The id that the asset `manifest` and `tallybook replay` give it.
    found = find_replay(context.ledger, replay_id_of(key, root_run_id))
    return None if found is None else found.replay_id


def release() -> str:
    """The installed release of the package."""
    try:
        return importlib.metadata.version("tallybook")
    except importlib.metadata.PackageNotFoundError:
        return NOT_INSTALLED


def counts_of(metadata: Mapping[str, Any]) -> dict[str, int]:
    """The whole numbers of an asset's metadata by name, but for those that Dagster itself reads."""
    return {
        name: value
        for name, value in metadata.items()
        if type(value) is int and not name.startswith("dagster/")
    }
