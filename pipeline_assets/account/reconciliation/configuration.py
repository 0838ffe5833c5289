"""What a version ran with: its spec, the settings over it, digests, packages, capabilities.

Belongs here: reading these for a report. Does not belong here: what came of it (`facts.py`).
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from types import MappingProxyType
from typing import Any

import msgspec
import polars as pl
from sqlalchemy import Connection, select

from pipeline_assets.account.reconciliation.batches import BatchFacts
from pipeline_assets.known_version import KnownVersion
from resources.ledger.engine import Ledger
from resources.ledger.schema import operating_settings, processing_versions
from resources.providers.capabilities import UnsupportedCombination, find_capability
from resources.providers.registry import endpoint_of

PACKAGES = (
    "tallybook",
    "dagster",
    "sqlalchemy",
    "psycopg",
    "polars",
    "pyarrow",
    "pandera",
    "msgspec",
    "pypdfium2",
    "tesserocr",
    "lxml",
    "selectolax",
    "pillow",
    "lingua-language-detector",
    "toktok-rs",
    "genai-prices",
)
"""Packages that decide what is read, judged, counted or stored."""
SDKS = {
    "openai": "openai",
    "anthropic": "anthropic",
    "gemini": "google-genai",
    "bedrock": "boto3",
}
"""Provider → the package that speaks to it."""


@dataclass(frozen=True)
class SettingSet:
    """An operating setting that somebody set: the value that holds now.

    Attributes:
        name: the setting.
        value: what it is set to.
        everywhere: for every version, not for this one alone.
        reason: why.
        actor: who.
        set_at: when, UTC.
    """

    name: str
    value: str
    everywhere: bool
    reason: str
    actor: str
    set_at: str


@dataclass(frozen=True)
class ManifestDigests:
    """What a manifest is proven by.

    Attributes:
        manifest_id: its name.
        contract: the contract of its rows.
        digest: over its rows.
        artifact: the file that holds them.
        replay_reason: why its records exist.
        frozen_at: UTC.
    """

    manifest_id: str
    contract: str
    digest: str
    artifact: str
    replay_reason: str
    frozen_at: str


@dataclass(frozen=True)
class CanaryStanding:
    """A canary that was sent for a version."""

    canary_id: str
    provider: str
    mode: str
    model: str
    sdk_version: str
    state: str
    judged_at: str | None


@dataclass(frozen=True)
class CapabilityRow:
    """The row of the capability table that the version's jobs were held against.

    Attributes:
        row: its name.
        newest: the newest date of its facts.
        oldest: the oldest.
    """

    row: str
    newest: str
    oldest: str


@dataclass(frozen=True)
class Configuration:
    """What a version ran with.

    Attributes:
        spec: as it was frozen.
        spec_digest: of spec, prompt, output schema and thresholds together.
        settings: those that somebody set.
        manifests: oldest first.
        catalogues: digests of the product catalogues that batches were judged with.
        canaries: oldest first.
        capability: None for a version that asks nobody, or whose row is gone from the table.
        packages: package → version, of this installation.
        python: its version.
    """

    spec: dict[str, Any]
    spec_digest: str
    settings: tuple[SettingSet, ...]
    manifests: tuple[ManifestDigests, ...]
    catalogues: tuple[str, ...]
    canaries: tuple[CanaryStanding, ...]
    capability: CapabilityRow | None
    packages: dict[str, str]
    python: str

    def flat(self) -> dict[str, str]:
        """What may differ between two reports, as name → text; not what only grows."""
        found = {f"spec.{name}": value for name, value in _flat(self.spec).items()}
        found |= {f"setting {each.name}": each.value for each in self.settings}
        found |= {f"package {name}": version for name, version in self.packages.items()}
        found["python"] = self.python
        found["spec digest"] = self.spec_digest
        found["catalogues"] = ", ".join(self.catalogues) or "none"
        if self.capability is not None:
            found["capability row"] = f"{self.capability.row} ({self.capability.newest})"
        return found


def configuration(
    connection: Connection,
    ledger: Ledger,
    version: KnownVersion,
    batch: BatchFacts | None = None,
) -> Configuration:
    """What a version ran with so far.

    Args:
        connection: a read transaction.
        ledger: the ledger.
        version: the version.
        batch: only the manifest and the catalogue of this batch of it.
    """
    text = connection.execute(
        select(processing_versions.c.spec).where(
            processing_versions.c.version_no == version.version_no
        )
    ).scalar_one()
    spec = msgspec.json.decode(text, type=dict[str, Any])
    return Configuration(
        spec=spec,
        spec_digest=version.digest,
        settings=_settings(connection, version.version_no),
        manifests=_manifests(connection, ledger, version.version_no, batch),
        catalogues=_catalogues(connection, ledger, version.version_no, batch),
        canaries=_canaries(connection, ledger, version.version_no),
        capability=_capability(spec),
        packages=dict(_packages(spec["provider"])),
        python=platform.python_version(),
    )


def _settings(connection: Connection, version_no: int) -> tuple[SettingSet, ...]:
    table = operating_settings.c
    rows = connection.execute(
        select(operating_settings)
        .where((table.version_no == version_no) | table.version_no.is_(None))
        # The last one of a name holds: those for all first, then the version's own.
        .order_by(table.version_no.is_not(None), table.setting_no)
    )
    found = {
        row.name: SettingSet(
            row.name, row.value, row.version_no is None, row.reason, row.actor, row.set_at
        )
        for row in rows
    }
    return tuple(found[name] for name in sorted(found))


def _manifests(
    connection: Connection, ledger: Ledger, version_no: int, batch: BatchFacts | None
) -> tuple[ManifestDigests, ...]:
    named = "" if batch is None else "AND manifest_id = ? "
    rows = ledger.dialect.fetch(
        connection,
        "SELECT manifest_id, contract_version, digest, artifact, replay_reason, frozen_at "  # noqa: S608
        f"FROM manifests WHERE version_no = ? {named}ORDER BY manifest_no",
        dict.fromkeys(ManifestDigests.__dataclass_fields__, pl.String),
        (version_no,) if batch is None else (version_no, batch.manifest_id),
    )
    return tuple(ManifestDigests(*row) for row in rows.iter_rows())


def _catalogues(
    connection: Connection, ledger: Ledger, version_no: int, batch: BatchFacts | None
) -> tuple[str, ...]:
    if batch is not None:
        return () if batch.catalogue is None else (batch.catalogue,)
    rows = ledger.dialect.fetch(
        connection,
        "SELECT DISTINCT catalogue_digest FROM batches "
        "WHERE version_no = ? AND catalogue_digest IS NOT NULL",
        {"digest": pl.String},
        (version_no,),
    )
    return tuple(rows["digest"].sort())


def _canaries(
    connection: Connection, ledger: Ledger, version_no: int
) -> tuple[CanaryStanding, ...]:
    rows = ledger.dialect.fetch(
        connection,
        "SELECT canary_id, provider, mode, model, sdk_version, state, judged_at FROM canaries "
        "WHERE version_no = ? ORDER BY canary_no",
        dict.fromkeys(CanaryStanding.__dataclass_fields__, pl.String),
        (version_no,),
    )
    return tuple(CanaryStanding(*row) for row in rows.iter_rows())


def _capability(spec: dict[str, Any]) -> CapabilityRow | None:
    if spec["mode"] == "embedded":
        return None
    mode = "online" if spec["mode"] == "online" else "batch"
    endpoint = endpoint_of(spec["provider"], spec.get("endpoint"))
    try:
        found = find_capability(spec["provider"], spec["model"], endpoint, mode)
    except UnsupportedCombination:
        # A later release may have dropped the row; the version's jobs are done all the same.
        return None
    dates = sorted(fact.date for fact in found.facts().values())
    return CapabilityRow(found.row, dates[-1], dates[0]) if dates else None


@cache
def _packages(provider: str) -> Mapping[str, str]:
    names = [*PACKAGES, *([SDKS[provider]] if provider in SDKS else [])]
    found = {}
    for name in names:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue  # an extra that is not installed here
    return MappingProxyType(found)


def _flat(value: Any, prefix: str = "") -> dict[str, str]:
    if not isinstance(value, dict):
        return {prefix: value if isinstance(value, str) else msgspec.json.encode(value).decode()}
    found: dict[str, str] = {}
    for name, inner in sorted(value.items()):
        found |= _flat(inner, f"{prefix}.{name}" if prefix else name)
    return found
