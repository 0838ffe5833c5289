"""Which spec files are versions that Dagster does not show yet; a pure decision.

Belongs here: the decision and its memory. Does not belong here: reading the files and Dagster
(`version_sensor.py`), and using a version (what a source declares is processed by the rules of
`new_files.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class SpecFile:
    """A file of a folder of versions.

    Attributes:
        name: the file's name.
        content: digest of its bytes; another one where it was changed.
        key: the version's key; None where the file cannot be used.
        problem: why it cannot be used; None where it can.
    """

    name: str
    content: str
    key: str | None = None
    problem: str | None = None


@dataclass(frozen=True)
class VersionDecision:
    """What a tick comes to.

    Attributes:
        add: keys to register, sorted.
        warnings: what to tell, by file; said once for each content.
        told: file → content that was told of, for the next tick.
    """

    add: tuple[str, ...]
    warnings: dict[str, str]
    told: dict[str, str]


def decide_versions(
    files: Sequence[SpecFile], registered: Collection[str], told: Mapping[str, str]
) -> VersionDecision:
    """Decide for every file.

    Args:
        files: what the folders hold.
        registered: keys that Dagster has.
        told: file → content that was told of before.
    """
    broken = {file.name: file for file in files if file.problem is not None}
    return VersionDecision(
        add=tuple(sorted({file.key for file in files if file.key} - set(registered))),
        warnings={
            name: str(file.problem)
            for name, file in sorted(broken.items())
            if told.get(name) != file.content
        },
        # A file that was mended, or went, is forgotten: broken again, it is told again.
        told={name: file.content for name, file in sorted(broken.items())},
    )
