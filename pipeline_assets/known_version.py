"""A processing version as the ledger knows it, for reading.

Belongs here: looking a key up without its spec file, which may be gone or be of a newer release.
Does not belong here: opening a version for work (`pipeline_assets/versions.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
from sqlalchemy import select

from partitions.processing_version import check_key
from resources.context import Context
from resources.ledger.schema import processing_versions
from resources.ledger.versions import list_versions


class VersionNeverUsed(LookupError):
    """A well-formed key that nothing was ever processed under in this ledger."""

    def __init__(self, key: str, used: list[str]) -> None:
        super().__init__(
            f"nothing was processed under version {key!r} here (used so far: "
            f"{', '.join(used) or 'none'}). Check --version and --state, or run it first: "
            f"tallybook run --version {key}"
        )


@dataclass(frozen=True)
class KnownVersion:
    """A version that was used at least once.

    Attributes:
        version_no: its number in the ledger.
        key: its key.
        workload: what it extracts.
        digest: frozen at first use.
        state: active, held or retired.
        state_reason: why it is in that state.
        parser_key: what its parses are cached under.
    """

    version_no: int
    key: str
    workload: str
    digest: str
    state: str
    state_reason: str
    parser_key: str


def known_version(context: Context, key: str) -> KnownVersion:
    """The version of `key`.

    Raises:
        MalformedVersionKey: the key cannot be one.
        VersionNeverUsed: the ledger does not have it.
    """
    check_key(key)
    with context.ledger.read() as connection:
        row = connection.execute(
            select(processing_versions).where(processing_versions.c.key == key)
        ).first()
    if row is None:
        raise VersionNeverUsed(key, [version.key for version in list_versions(context.ledger)])
    return KnownVersion(
        version_no=row.version_no,
        key=row.key,
        workload=row.workload,
        digest=row.digest,
        state=row.state,
        state_reason=row.state_reason,
        parser_key=parser_key_of(row.spec),
    )


def parser_key_of(spec: str) -> str:
    """What the parses of a frozen spec (canonical JSON) are cached under."""
    parser: dict[str, Any] = msgspec.json.decode(spec)["parser"]
    return f"{parser['version']};max_pages={parser['max_pages']};ocr_pages={parser['ocr_pages']}"
