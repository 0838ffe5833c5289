"""Making a backup: ledger and artifacts as they were at one moment, while workers go on.

Belongs here: the order of the steps. Does not belong here: the form of the list (`contents.py`),
which artifacts there are (`named.py`) and copying them (`copies.py`).

All tables are read in one read transaction. The artifacts that these rows name are written once
and never change, but for erasures and prunings, which the lease keeps out; so they can be copied
after the transaction, and together with the tables they are one moment.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
from sqlalchemy import Connection, text

from pipeline_assets.backup.contents import (
    ARTIFACTS,
    CONTENTS,
    DUMP,
    FORMAT,
    NOT_INCLUDED,
    OBJECTS,
    ConfigurationFile,
    Contents,
    DumpFile,
    dump_folder,
    read_contents,
    write_contents,
)
from pipeline_assets.backup.copies import Copied, copy_artifacts, sweep
from pipeline_assets.backup.errors import FolderNotForBackups
from pipeline_assets.backup.files import HALF, digest_of, private_folder, wait_for_disk
from pipeline_assets.backup.named import WANTED_SCHEMA, named
from pipeline_assets.erasure.purge import LEASE
from resources.clock import to_text
from resources.context import Context
from resources.ledger.backups import BackupRow, record_backup
from resources.ledger.dump import dump_table, tables_of
from resources.ledger.engine import revision_of
from resources.ledger.leases import Heartbeat, fenced, held, renew
from resources.settings import Settings

_LAST_MOVE = text("SELECT move_no, digest FROM moves ORDER BY move_no DESC LIMIT 1")
_PROFILE = text("SELECT value FROM ledger_info WHERE name = 'profile'")


@dataclass(frozen=True)
class BackupReport:
    """A backup that was finished.

    Attributes:
        folder: where it is.
        contents: what it holds.
        digest: SHA-256 of the list of contents.
        new: artifacts that were copied; the others were there from an earlier backup.
        swept: files of earlier backups that were deleted.
    """

    folder: Path
    contents: Contents
    digest: str
    new: int
    swept: int


@dataclass(frozen=True)
class _Dumped:
    tables: list[DumpFile]
    profile: str
    revision: str
    last_move: tuple[int, str]


def make_backup(context: Context, folder: Path, actor: str) -> BackupReport:
    """Back the ledger and its artifacts up into a folder.

    Args:
        context: the open resources.
        folder: new, empty, or with earlier backups of the same ledger, which this one replaces.
        actor: who wants it.

    Raises:
        FolderNotForBackups: it holds something else, or lies in the state folder.
        LeaseHeld: another backup, an erasure or a pruning is under way.
        LeaseLost: this machine was suspended for too long; there is no new backup.
    """
    _require_usable(context, folder)
    with held(context.ledger, LEASE, context.worker) as lease:
        heart = Heartbeat(context.ledger, lease)
        moment = context.clock()
        backup_id = f"{context.ledger.ledger_id[:8]}-{moment:%Y%m%dT%H%M%S%f}"
        private_folder(folder)
        dump = private_folder(dump_folder(folder, backup_id))
        wanted = dump / f"wanted{HALF}"
        dumped = _dump(context, dump, wanted, heart.beat)
        copied = _copy(context, folder, wanted, dump / ARTIFACTS, heart.beat)
        wanted.unlink()
        contents = _contents(context, dump, backup_id, to_text(moment), actor, dumped, copied)
        wait_for_disk()
        # Whoever may have deleted or changed a file in between has the lease by now.
        renew(context.ledger, lease)
        write_contents(folder, contents)
        digest, _ = digest_of(folder / CONTENTS)
        swept = sweep(folder, backup_id, dump / ARTIFACTS)
        with fenced(context.ledger, lease) as connection:
            record_backup(connection, _row(contents, digest))
    return BackupReport(folder, contents, digest, copied.new, swept)


def _require_usable(context: Context, folder: Path) -> None:
    state = context.settings.state_folder.resolve()
    if folder.resolve().is_relative_to(state):
        raise FolderNotForBackups(folder, "it lies in the state folder, and would be lost with it")
    if not folder.exists():
        return
    if not folder.is_dir():
        raise FolderNotForBackups(folder, "it is a file")
    others = [entry.name for entry in folder.iterdir() if not _is_ours(entry.name)]
    if others:
        raise FolderNotForBackups(folder, f"it holds {len(others)} other files")
    if (folder / CONTENTS).exists():
        found = read_contents(folder).ledger_id
        if found != context.ledger.ledger_id:
            raise FolderNotForBackups(
                folder,
                f"it holds backups of ledger {found[:8]}, and this one is "
                f"{context.ledger.ledger_id[:8]}",
            )


def _is_ours(name: str) -> bool:
    return name in (CONTENTS, CONTENTS + HALF, OBJECTS) or name.startswith(DUMP)


def _dump(context: Context, dump: Path, wanted: Path, beat: Callable[[], None]) -> _Dumped:
    """Every table, and the names of the artifacts, from one snapshot."""
    files = []
    with context.ledger.read() as connection:
        tables = tables_of(connection)
        context.progress.start("Reading the ledger", len(tables))
        for table in tables:
            place = dump / f"{table.name}.parquet"
            rows = dump_table(connection, context.ledger.dialect, table, place, beat)
            files.append(_file(place, table.name, rows))
            context.progress.advance()
        context.progress.finish()
        _write_wanted(wanted, named(connection, context))
        return _Dumped(
            tables=files,
            profile=str(connection.execute(_PROFILE).scalar_one()),
            revision=str(revision_of(connection)),
            last_move=_last_move(connection),
        )


def _last_move(connection: Connection) -> tuple[int, str]:
    row = connection.execute(_LAST_MOVE).first()
    return (0, "") if row is None else (int(row.move_no), str(row.digest))


def _write_wanted(place: Path, frames: Iterator[pl.DataFrame]) -> None:
    schema = pl.DataFrame(schema=WANTED_SCHEMA).to_arrow().schema
    with pq.ParquetWriter(place, schema) as writer:
        for frame in frames:
            writer.write_table(frame.cast(WANTED_SCHEMA).to_arrow())  # pyright: ignore[reportArgumentType]


def _copy(
    context: Context, folder: Path, wanted: Path, place: Path, beat: Callable[[], None]
) -> Copied:
    context.progress.start("Copying artifacts", pq.read_metadata(wanted).num_rows)

    def on_each() -> None:
        context.progress.advance()
        beat()

    copied = copy_artifacts(context.artifacts, folder, wanted, place, on_each)
    context.progress.finish()
    return copied


def _file(place: Path, table: str, rows: int) -> DumpFile:
    place.chmod(0o600)
    digest, size = digest_of(place)
    # A name that the database told is of a class of its own.
    return DumpFile(str(table), rows, size, digest)


def _contents(
    context: Context,
    dump: Path,
    backup_id: str,
    made_at: str,
    actor: str,
    dumped: _Dumped,
    copied: Copied,
) -> Contents:
    return Contents(
        format=FORMAT,
        backup_id=backup_id,
        made_at=made_at,
        actor=actor,
        release=_release(),
        ledger_id=context.ledger.ledger_id,
        profile=dumped.profile,
        revision=dumped.revision,
        database=context.ledger.dialect.name,
        last_move=dumped.last_move,
        tables=dumped.tables,
        artifacts=_file(dump / ARTIFACTS, ARTIFACTS.removesuffix(".parquet"), copied.rows),
        artifact_bytes=copied.bytes,
        lost=copied.lost,
        lost_count=copied.lost_count,
        pruned=copied.pruned,
        configuration=list(own_files(context.settings)),
        not_included=list(NOT_INCLUDED),
    )


def _release() -> str:
    try:
        return importlib.metadata.version("tallybook")
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _row(contents: Contents, digest: str) -> BackupRow:
    return BackupRow(
        backup_id=contents.backup_id,
        digest=digest,
        ledger_rows=contents.ledger_rows,
        artifacts=contents.artifacts.rows,
        bytes=contents.bytes,
        actor=contents.actor,
        made_at=contents.made_at,
    )


def own_files(settings: Settings) -> Iterator[ConfigurationFile]:
    """The user's own files that results depend on; what is packaged comes with the release."""
    single = (("sources", settings.sources_file), ("catalogue", settings.place(settings.catalogue)))
    for role, place in single:
        if place.is_file():
            yield ConfigurationFile(role, place.name, digest_of(place)[0])
    several = (
        ("specs", None if settings.specs is None else settings.place(settings.specs)),
        ("workloads", settings.workload_folder),
    )
    for role, folder in several:
        if folder is not None:
            yield from _files_in(role, folder)


def _files_in(role: str, folder: Path) -> Iterator[ConfigurationFile]:
    for place in sorted(folder.rglob("*")):
        if place.is_file() and "__pycache__" not in place.parts:
            name = place.relative_to(folder).as_posix()
            yield ConfigurationFile(role, name, digest_of(place)[0])
