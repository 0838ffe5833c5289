"""Checking a backup where it lies: every file is there, and is what was written.

Belongs here: reading all of it. Does not belong here: whether the ledger in it proves itself, which
is for whoever restored it (`tallybook audit`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq

from pipeline_assets.backup.contents import (
    Contents,
    DumpFile,
    artifact_list,
    object_file,
    read_contents,
    table_file,
)
from pipeline_assets.backup.copies import LIST_SCHEMA, ROWS_AT_ONCE
from pipeline_assets.backup.errors import BackupDamaged
from pipeline_assets.backup.files import digest_of
from resources.context import Progress


@dataclass(frozen=True)
class Verdict:
    """What reading a whole backup came to.

    Attributes:
        contents: its list of contents.
        digest: SHA-256 of that list, as the ledger that it was made of has it.
        files: files that were read.
        faults: what is wrong, file by file.
    """

    contents: Contents
    digest: str
    files: int
    faults: tuple[str, ...]


def verify_backup(folder: Path, progress: Progress) -> Verdict:
    """Read every file of a backup and compare it with what its list says.

    Raises:
        NoBackup: there is none.
        BackupUnreadable: its list of contents cannot be read.
        BackupFromNewerRelease: its list has a form that this release does not know.
    """
    contents = read_contents(folder)
    digest, _ = digest_of(folder / "contents.json")
    faults = []
    dump = [(table_file(folder, contents, entry.table), entry) for entry in contents.tables]
    listed = artifact_list(folder, contents)
    for place, entry in (*dump, (listed, contents.artifacts)):
        try:
            require_dump_file(place, entry)
        except BackupDamaged as error:
            faults.append(str(error))
    files = len(dump) + 1
    if not faults:
        progress.start("Reading artifacts", contents.artifacts.rows)
        for present in _objects(listed):
            files += 1
            fault = object_fault(object_file(folder, present), present)
            if fault is not None:
                faults.append(str(BackupDamaged(f"objects/{present[:2]}/{present[:12]}", fault)))
            progress.advance()
        progress.finish()
    return Verdict(contents, digest, files, tuple(faults))


def require_dump_file(place: Path, entry: DumpFile) -> None:
    """Read a file of the dump.

    Raises:
        BackupDamaged: it is missing or is not what was written.
    """
    fault = object_fault(place, entry.digest)
    if fault is not None:
        raise BackupDamaged(f"{place.parent.name}/{place.name}", fault)


def object_fault(place: Path, digest: str) -> str | None:
    """What is wrong with a file that has to have a digest; None where nothing is."""
    try:
        found, _ = digest_of(place)
    except FileNotFoundError:
        return "is not there"
    if found != digest:
        return f"has digest {found[:12]}, and {digest[:12]} was written"
    return None


def artifact_rows(listed: Path) -> Iterator[pl.DataFrame]:
    """The list of artifacts in parts (`copies.LIST_SCHEMA`)."""
    with pq.ParquetFile(listed) as file:
        for batch in file.iter_batches(ROWS_AT_ONCE):
            yield pl.DataFrame(pl.from_arrow(batch)).select(list(LIST_SCHEMA))


def _objects(listed: Path) -> Iterator[str]:
    """Digests of the objects, each once in a part of the list."""
    for frame in artifact_rows(listed):
        yield from frame["present"].unique(maintain_order=True)
