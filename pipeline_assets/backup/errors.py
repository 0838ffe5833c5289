"""What can go wrong with a backup, one class per situation.

Belongs here: exceptions whose message says what was found, what was expected and the remedy.
Does not belong here: errors of the ledger and of the artifact store, which pass through.
"""

from __future__ import annotations

from pathlib import Path


class BackupError(Exception):
    """Something about a backup that the caller is told in one line."""


class NoBackup(BackupError):
    """A folder holds no finished backup."""

    def __init__(self, folder: Path) -> None:
        super().__init__(
            f"there is no finished backup in {folder}: it has no contents.json, which is written "
            "last. Give the folder that `tallybook backup` wrote to, or make the backup again."
        )


class BackupUnreadable(BackupError):
    """A backup's list of contents cannot be read."""

    def __init__(self, place: Path, cause: str) -> None:
        super().__init__(
            f"{place} cannot be read as the contents of a backup ({cause}): it was changed after "
            "it was written. Use another backup."
        )


class BackupFromNewerRelease(BackupError):
    """A backup was written by a release that this one does not know."""

    def __init__(self, folder: Path, found: str, expected: str) -> None:
        super().__init__(
            f"the backup in {folder} is of {found}, and this release reads {expected}. Install the "
            "release that wrote it, or a newer one."
        )


class BackupDamaged(BackupError):
    """A file of a backup is missing or is not what was written."""

    def __init__(self, name: str, cause: str) -> None:
        super().__init__(
            f"the backup's file {name} {cause}. What was restored of it so far is not usable: use "
            "another backup, or the file from another copy of this one."
        )


class FolderNotForBackups(BackupError):
    """The folder that a backup is to go to holds something else, or is the wrong place."""

    def __init__(self, folder: Path, cause: str) -> None:
        super().__init__(
            f"a backup cannot go to {folder}: {cause}. Give a new or empty folder outside of the "
            "state folder, or the one of earlier backups of the same ledger."
        )


class PlaceNotEmpty(BackupError):
    """The place that a backup is to be restored into holds something."""

    def __init__(self, place: str, found: str) -> None:
        super().__init__(
            f"a backup is restored into an empty place only, and {place} holds {found}. Nothing "
            "was changed: give another state folder, and another database where it has one."
        )
