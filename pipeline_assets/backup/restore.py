"""Restoring a backup into an empty place, on either database.

Belongs here: the order of the steps. Does not belong here: what a restored ledger must not take
for granted (`after_restore.py`).

The schema is made first, with a mark that nobody may work here yet; the mark goes in the last
transaction. Whoever opens the ledger in between is refused, so an interrupted restore is never
taken for a whole one, and is not gone on with: it is deleted and begun again.
"""

from __future__ import annotations

import os
import random
import socket
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import cast

from sqlalchemy import delete, insert, inspect, text

from pipeline_assets.account.representations import rebuild_search_entries
from pipeline_assets.backup.after_restore import Doubts, doubt_jobs, expire_leases, hold_versions
from pipeline_assets.backup.contents import (
    Contents,
    artifact_list,
    object_file,
    read_contents,
    table_file,
)
from pipeline_assets.backup.errors import BackupDamaged, PlaceNotEmpty
from pipeline_assets.backup.files import copy_private, private_folder, wait_for_disk, write_private
from pipeline_assets.backup.make import own_files
from pipeline_assets.backup.verify import artifact_rows, require_dump_file
from resources.artifacts import ArtifactStore, Kind
from resources.clock import Clock, to_text
from resources.context import Context, Progress, make_private
from resources.ledger.backups import mark_restored
from resources.ledger.dump import count_rows, load_table, tables_of
from resources.ledger.engine import (
    RESTORING,
    Database,
    connect,
    ledger_of,
    require_known,
    upgrade_within,
)
from resources.ledger.erasures import present_digests
from resources.ledger.errors import LedgerOfOtherProfile
from resources.ledger.prunes import pruned_at
from resources.ledger.schema import ledger_info
from resources.settings import Settings

SIDECAR = ".redacted"
"""The end of the name of what stands beside an artifact that something was erased from."""
_LAST_MOVE = text("SELECT digest FROM moves WHERE move_no = :number")


@dataclass(frozen=True)
class Restored:
    """What was restored.

    Attributes:
        contents: the backup's list of contents.
        state: the state folder.
        place: the ledger, without secrets.
        held: versions that are held until somebody releases them.
        doubts: jobs that may be further on than the ledger knows.
        leases: leases of the earlier machine that were let run out.
        search_entries: entries of the search that were made again.
        changed: the user's own files that are not those that were in use.
    """

    contents: Contents
    state: Path
    place: str
    held: tuple[str, ...]
    doubts: Doubts
    leases: int
    search_entries: int
    changed: tuple[str, ...]


def restore(
    settings: Settings,
    folder: Path,
    *,
    clock: Clock,
    rng: random.Random,
    progress: Progress,
    go_on: bool = False,
) -> Restored:
    """Make a working place of a backup.

    Args:
        settings: name the new state folder, and another database where that is wanted.
        folder: of the backup.
        clock: the time.
        rng: randomness.
        progress: where it tells how far it is.
        go_on: hold no version: the earlier ledger is known to work no more.

    Raises:
        NoBackup, BackupUnreadable, BackupFromNewerRelease: there is nothing to restore from.
        PlaceNotEmpty: the state folder or the database holds something; nothing was changed.
        BackupDamaged: a file is not what was written; the place is refused by every command.
        LedgerOfOtherProfile: the backup is of a ledger of another profile; nothing was changed.
        LedgerError: the database cannot be reached or written.
    """
    contents = read_contents(folder)
    state = settings.state_folder
    if state.is_dir() and any(state.iterdir()):
        raise PlaceNotEmpty(str(state), "files")
    if contents.profile != settings.profile:
        raise LedgerOfOtherProfile(str(folder), contents.profile, settings.profile)
    make_private(state)
    database = connect(settings.ledger_place)
    try:
        _begin(database, folder, contents)
        store = ArtifactStore(make_private(state / "artifacts"))
        _artifacts(store, folder, contents, progress)
        _tables(database, folder, contents, progress)
        context = _context(settings, database, contents, clock, rng, progress)
        return _finish(context, contents, go_on=go_on)
    finally:
        database.engine.dispose()


def _begin(database: Database, folder: Path, contents: Contents) -> None:
    """Make the schema of the backup's release, with the mark that the place is not whole."""
    require_known(str(folder), contents.revision)
    with database.write() as connection:
        database.dialect.lock_opening(connection)
        found = inspect(connection).get_table_names()
        if found:
            raise PlaceNotEmpty(database.place, f"{len(found)} tables")
        upgrade_within(connection, contents.revision)
        connection.execute(insert(ledger_info), [{"name": RESTORING, "value": contents.backup_id}])


def _artifacts(store: ArtifactStore, folder: Path, contents: Contents, progress: Progress) -> None:
    listed = artifact_list(folder, contents)
    require_dump_file(listed, contents.artifacts)
    progress.start("Restoring artifacts", contents.artifacts.rows)
    for frame in artifact_rows(listed):
        for kind, digest, present, _, sidecar in frame.iter_rows():
            place = store.path(cast("Kind", kind), digest)
            private_folder(place.parent)
            _copy(object_file(folder, present), place, present)
            if sidecar is not None:
                write_private(place.with_name(digest + SIDECAR), sidecar.encode())
            progress.advance()
    progress.finish()
    wait_for_disk()


def _copy(source: Path, place: Path, present: str) -> None:
    name = f"objects/{present[:2]}/{present[:12]}"
    try:
        found, _ = copy_private(source, place)
    except FileNotFoundError:
        raise BackupDamaged(name, "is not there") from None
    if found != present:
        place.unlink()
        raise BackupDamaged(name, f"has digest {found[:12]}, and {present[:12]} was written")


def _tables(database: Database, folder: Path, contents: Contents, progress: Progress) -> None:
    """Every table in a transaction of its own, parents first, then the upgrade to this release."""
    rows = {entry.table: entry for entry in contents.tables}
    with database.read() as connection:
        tables = tables_of(connection)
    progress.start("Restoring the ledger", len(tables))
    for table in tables:
        entry = rows.get(table.name)
        if entry is None:
            raise BackupDamaged(f"{table.name}.parquet", "is not in the list of contents")
        place = table_file(folder, contents, table.name)
        require_dump_file(place, entry)
        with database.write() as connection:
            already = count_rows(connection, table)
            load_table(connection, database.dialect, table, place)
            came = count_rows(connection, table) - already
            if came != entry.rows:
                raise BackupDamaged(place.name, f"gave {came} rows, and {entry.rows} were written")
        progress.advance()
    with database.write() as connection:
        database.dialect.after_load(connection, tables)
        number, digest = contents.last_move
        found = connection.execute(_LAST_MOVE, {"number": number}).scalar()
        if number and found != digest:
            raise BackupDamaged("moves.parquet", "does not end with the move that was written")
    with database.write() as connection:
        database.dialect.lock_opening(connection)
        upgrade_within(connection)
    progress.finish()


def _context(
    settings: Settings,
    database: Database,
    contents: Contents,
    clock: Clock,
    rng: random.Random,
    progress: Progress,
) -> Context:
    """The place as the stages know it; `open_context` refuses it as long as it is marked."""
    ledger = ledger_of(database, contents.ledger_id, clock)
    return Context(
        settings=settings,
        ledger=ledger,
        artifacts=ArtifactStore(
            settings.state_folder / "artifacts",
            redactions=partial(present_digests, ledger),
            pruned=partial(pruned_at, ledger),
        ),
        clock=clock,
        rng=rng,
        progress=progress,
        worker=f"{settings.owner}@{socket.gethostname()}:{os.getpid()}",
    )


def _finish(context: Context, contents: Contents, *, go_on: bool) -> Restored:
    """What was not dumped is made again, nothing is taken for granted, and the mark goes."""
    at = to_text(context.clock())
    with context.ledger.write() as connection:
        expired = expire_leases(connection, at)
    entries = rebuild_search_entries(context)
    doubts = doubt_jobs(context, contents.made_at)
    reason = f"restored from a backup of {contents.made_at}: the earlier ledger may still work"
    with context.ledger.write() as connection:
        held = () if go_on else hold_versions(connection, context, reason)
        mark_restored(connection, contents.backup_id, at)
        connection.execute(delete(ledger_info).where(ledger_info.c.name == RESTORING))
    return Restored(
        contents=contents,
        state=context.settings.state_folder,
        place=context.ledger.place,
        held=held,
        doubts=doubts,
        leases=expired,
        search_entries=entries,
        changed=_changed(context.settings, contents),
    )


def _changed(settings: Settings, contents: Contents) -> tuple[str, ...]:
    """The user's own files that were in use and are now missing, or others."""
    now = {(entry.role, entry.name): entry.digest for entry in own_files(settings)}
    return tuple(
        f"{entry.role}: {entry.name}"
        for entry in contents.configuration
        if now.get((entry.role, entry.name)) != entry.digest
    )
