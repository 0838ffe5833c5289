"""The list of contents of a backup: its form, where its files stand, reading and writing it.

Belongs here: that. Does not belong here: filling it (`make.py`) and checking what it promises
(`verify.py`).

A folder of backups is

    contents.json            written last and renamed: without it there is no backup
    ledger-<backup_id>/      a Parquet file a table, and artifacts.parquet
    objects/<two digits>/    the artifacts' bytes, each file named by its own SHA-256

The next backup into the same folder writes a dump of its own, copies the objects that are not
there yet, replaces contents.json, and only then deletes what it does not name.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from pipeline_assets.backup.errors import BackupFromNewerRelease, BackupUnreadable, NoBackup
from pipeline_assets.backup.files import write_private

FORMAT = 1
CONTENTS = "contents.json"
OBJECTS = "objects"
DUMP = "ledger-"
ARTIFACTS = "artifacts.parquet"
NOT_INCLUDED = (
    "Dagster's history of runs and its schedules' and sensors' switches",
    "the folders, tables and buckets that documents come from (the bytes of every document of a "
    "manifest are artifacts, and are in it)",
    "keys and passwords",
    "your own specs, workloads, sources.yaml and catalogue: only their digests",
    "logs and local traces",
)
"""What a backup leaves out; told by every backup."""


class DumpFile(msgspec.Struct, frozen=True):
    """A file of the dump: the table, its rows, and the file's size and SHA-256."""

    table: str
    rows: int
    bytes: int
    digest: str


class LostArtifact(msgspec.Struct, frozen=True):
    """An artifact that the ledger names and that could not be copied: `missing` or `damaged`."""

    kind: str
    digest: str
    why: str


class ConfigurationFile(msgspec.Struct, frozen=True):
    """A file of the user's own that was in use: what for, its name, its SHA-256."""

    role: str
    name: str
    digest: str


class Contents(msgspec.Struct, frozen=True, kw_only=True):
    """What a backup is of and what it holds.

    Attributes:
        format: of this list and of the folder.
        backup_id: names the backup.
        made_at: the moment that it is of, UTC; the dump is not older.
        actor: who made it.
        release: of Tallybook.
        ledger_id: of the ledger; a restored one keeps it.
        profile: that the ledger was made under.
        revision: of its schema.
        database: sqlite or postgresql; it can be restored to either.
        last_move: number and digest of the newest row of the journal.
        tables: files of the dump, parents first.
        artifacts: the list of artifacts, as a file of the dump; its rows are the artifacts.
        artifact_bytes: bytes of all artifacts.
        lost: artifacts that the ledger names and the store has not, or not as they were stored;
            the first thousand.
        lost_count: how many there are.
        pruned: artifacts that the ledger names and a pruning removed.
        configuration: the user's own files that were in use.
        not_included: what a backup leaves out.
    """

    format: int
    backup_id: str
    made_at: str
    actor: str
    release: str
    ledger_id: str
    profile: str
    revision: str
    database: str
    last_move: tuple[int, str]
    tables: list[DumpFile]
    artifacts: DumpFile
    artifact_bytes: int
    lost: list[LostArtifact]
    lost_count: int
    pruned: int
    configuration: list[ConfigurationFile]
    not_included: list[str]

    @property
    def ledger_rows(self) -> int:
        """Rows of all tables."""
        return sum(entry.rows for entry in self.tables)

    @property
    def bytes(self) -> int:
        """Bytes of dump and artifacts."""
        dump = sum(entry.bytes for entry in (*self.tables, self.artifacts))
        return dump + self.artifact_bytes


def dump_folder(folder: Path, backup_id: str) -> Path:
    """Where the dump of a backup stands."""
    return folder / f"{DUMP}{backup_id}"


def table_file(folder: Path, contents: Contents, table: str) -> Path:
    """Where the dump of a table stands."""
    return dump_folder(folder, contents.backup_id) / f"{table}.parquet"


def artifact_list(folder: Path, contents: Contents) -> Path:
    """Where the list of artifacts stands."""
    return dump_folder(folder, contents.backup_id) / ARTIFACTS


def object_file(folder: Path, present: str) -> Path:
    """Where bytes of a digest stand, or would."""
    return folder / OBJECTS / present[:2] / present


def write_contents(folder: Path, contents: Contents) -> bytes:
    """Write the list, durably, in place of the one of an earlier backup; returns its bytes."""
    data = msgspec.json.format(msgspec.json.encode(contents), indent=1) + b"\n"
    write_private(folder / CONTENTS, data)
    return data


def read_contents(folder: Path) -> Contents:
    """The list of contents of the backup in a folder.

    Raises:
        NoBackup: there is none.
        BackupUnreadable: it is not what was written.
        BackupFromNewerRelease: it has a form that this release does not know.
    """
    place = folder / CONTENTS
    try:
        data = place.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise NoBackup(folder) from None
    try:
        known = msgspec.json.decode(data, type=_Form)
        if known.format != FORMAT:
            raise BackupFromNewerRelease(folder, f"format {known.format}", f"format {FORMAT}")
        return msgspec.json.decode(data, type=Contents)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BackupUnreadable(place, type(error).__name__) from error


class _Form(msgspec.Struct, frozen=True):
    format: int
