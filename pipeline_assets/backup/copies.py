"""Copying artifacts into a folder of backups: what is there already is not copied again.

Belongs here: one artifact at a time, the list of them, and sweeping what no list names. Does not
belong here: which artifacts there have to be (`named.py`).

An object of the folder is named by the digest of its own bytes, which after an erasure is not the
artifact's name. So nothing in the folder is ever overwritten, and an earlier backup stays whole
until the next one is.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import msgspec
import polars as pl
import pyarrow.parquet as pq

from pipeline_assets.backup.contents import DUMP, OBJECTS, LostArtifact, object_file
from pipeline_assets.backup.files import HALF, copy_private, digest_of, private_folder
from pipeline_assets.backup.named import PRUNED
from resources.artifacts import ArtifactDamaged, ArtifactMissing, ArtifactStore, Kind, Sidecar

LIST_SCHEMA = {
    "kind": pl.String,
    "digest": pl.String,
    "present": pl.String,
    "bytes": pl.Int64,
    "sidecar": pl.String,
}
"""An artifact of a backup: its name, the digest of its bytes, and its sidecar where it has one."""
ROWS_AT_ONCE = 25_000
NAMED_LOSSES = 1_000
"""So many lost artifacts are named; a folder that was lost whole would fill the memory."""


@dataclass
class Copied:
    """What copying came to.

    Attributes:
        rows: artifacts that the backup holds.
        bytes: of all of them.
        new: of them, those that were not there from an earlier backup.
        lost: those that could not be had, the first of them.
        lost_count: how many there are.
        pruned: those that a pruning removed.
    """

    rows: int = 0
    bytes: int = 0
    new: int = 0
    lost: list[LostArtifact] = field(default_factory=list)
    lost_count: int = 0
    pruned: int = 0


@dataclass(frozen=True)
class _Object:
    present: str
    bytes: int
    sidecar: str | None
    is_new: bool


def copy_artifacts(
    store: ArtifactStore, folder: Path, wanted: Path, place: Path, on_each: Callable[[], None]
) -> Copied:
    """Copy every wanted artifact into the folder and write their list.

    Args:
        store: where they are.
        folder: of backups.
        wanted: a Parquet file of `named.WANTED_SCHEMA`.
        place: the new file with the list (`LIST_SCHEMA`).
        on_each: called after every artifact.
    """
    copied = Copied()
    schema = pl.DataFrame(schema=LIST_SCHEMA).to_arrow().schema
    with (
        pq.ParquetWriter(place, schema, compression="zstd") as writer,
        pq.ParquetFile(wanted) as file,
    ):
        for batch in file.iter_batches(ROWS_AT_ONCE):
            rows = []
            for kind, digest, excuse in pl.DataFrame(pl.from_arrow(batch)).iter_rows():
                found = _copy(store, folder, cast("Kind", kind), digest, excuse, copied)
                if found is not None:
                    rows.append((kind, digest, found.present, found.bytes, found.sidecar))
                on_each()
            listed = pl.DataFrame(rows, schema=LIST_SCHEMA, orient="row")
            writer.write_table(listed.to_arrow())
            copied.rows += listed.height
            copied.bytes += int(listed["bytes"].sum())
    return copied


def sweep(folder: Path, backup_id: str, listed: Path) -> int:
    """Delete dumps and objects that the present backup does not name, and what was half copied.

    Returns:
        How many objects were deleted.
    """
    for entry in folder.glob(f"{DUMP}*"):
        if entry.name != f"{DUMP}{backup_id}":
            shutil.rmtree(entry)
    if not (folder / OBJECTS).is_dir():
        return 0
    named = pl.read_parquet(listed, columns=["present"])["present"]
    # A copy that a kill cut off may be of a file that was erased since.
    unnamed = list((folder / OBJECTS).glob(f"*{HALF}"))
    for part in sorted((folder / OBJECTS).iterdir()):
        if part.is_dir():
            keep = set(named.filter(named.str.starts_with(part.name)))
            unnamed += [entry for entry in part.iterdir() if entry.name not in keep]
    for entry in unnamed:
        entry.unlink()
    return len(unnamed)


def _copy(
    store: ArtifactStore, folder: Path, kind: Kind, digest: str, excuse: str | None, copied: Copied
) -> _Object | None:
    # What was erased or pruned must not stay in the folder because an earlier backup had it.
    if excuse is not None and not store.has(kind, digest):
        copied.pruned += excuse == PRUNED
        return None
    try:
        found = _object(store, folder, kind, digest)
    except ArtifactMissing:
        _lose(copied, LostArtifact(kind, digest, "missing"))
    except ArtifactDamaged:
        _lose(copied, LostArtifact(kind, digest, "damaged"))
    else:
        copied.new += found.is_new
        return found
    return None


def _lose(copied: Copied, lost: LostArtifact) -> None:
    copied.lost_count += 1
    if len(copied.lost) < NAMED_LOSSES:
        copied.lost.append(lost)


def _object(store: ArtifactStore, folder: Path, kind: Kind, digest: str) -> _Object:
    """The artifact's bytes in the folder.

    Raises:
        ArtifactMissing: neither the store nor the folder has them.
        ArtifactDamaged: the store has other bytes.
    """
    beside = store.sidecar(kind, digest)
    sidecar = None if beside is None else msgspec.json.encode(beside).decode()
    settled = digest if beside is None else beside.present if beside.before is None else None
    if settled is not None:
        there = object_file(folder, settled)
        if there.is_file():
            found, size = digest_of(there)
            if found == settled:
                return _Object(settled, size, sidecar, is_new=False)
    private_folder(folder / OBJECTS)
    half = folder / OBJECTS / f"{digest}{HALF}"
    try:
        found, size = copy_private(store.require(kind, digest), half)
        if found not in _valid(digest, beside):
            raise ArtifactDamaged(kind, digest, found)
        place = object_file(folder, found)
        private_folder(place.parent)
        half.replace(place)
    finally:
        half.unlink(missing_ok=True)
    return _Object(found, size, sidecar, is_new=True)


def _valid(digest: str, beside: Sidecar | None) -> set[str]:
    if beside is None:
        return {digest}
    return {beside.present} if beside.before is None else {beside.present, beside.before}
