"""Backups of a small archive: what is in them, what is refused, and what a broken one says."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import insert, text

from pipeline_assets.account.documents import find_document
from pipeline_assets.account.report import Report, build_report
from pipeline_assets.account.search import search
from pipeline_assets.backup.contents import read_contents
from pipeline_assets.backup.errors import (
    BackupDamaged,
    BackupFromNewerRelease,
    BackupUnreadable,
    FolderNotForBackups,
    NoBackup,
    PlaceNotEmpty,
)
from pipeline_assets.backup.make import BackupReport, make_backup
from pipeline_assets.backup.verify import verify_backup
from pipeline_assets.erasure.purge import LEASE, erase
from pipeline_assets.retention.policy import RetentionPolicy
from pipeline_assets.retention.prune import prune
from resources.context import Context, SilentProgress, open_context
from resources.ledger.backups import list_backups
from resources.ledger.engine import open_ledger
from resources.ledger.errors import LedgerFromNewerVersion, LedgerIncomplete, LedgerOfOtherProfile
from resources.ledger.journal import verify_all
from resources.ledger.leases import LeaseHeld, LeaseLost, acquire, held
from resources.ledger.schema import accesses
from resources.settings import Settings
from tests.integration.backup.conftest import ACROSS
from tests.integration.backup.support import every_row, files_below, info, restore_into
from tests.integration.erasure.support import RARE, RARE_TEXT, words_in
from tests.support.clock import FrozenClock
from tests.support.small_archive import KEY, PUMP, Archive, fill_folder

pytestmark = pytest.mark.slow

NewUrl = Callable[[str, str], str]
AFTERWARDS = frozenset({"backups", "leases", "ledger_info"})
"""Tables that a backup or a restore writes to itself."""


def make_archive(tmp_path: Path, url: str) -> Iterator[Archive]:
    folder, clock = tmp_path / "documents", FrozenClock()
    settings = Settings(
        state=tmp_path / "state", ledger_url=url, source=folder, sources=tmp_path / "sources.yaml"
    )
    (tmp_path / "state").mkdir()
    with open_context(settings, clock=clock, rng=random.Random(7)) as context:
        archive = Archive(folder, settings, context, clock)
        fill_folder(archive)
        archive.write(RARE, RARE_TEXT)
        archive.process()
        yield archive


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    """Return a processed archive on SQLite."""
    yield from make_archive(tmp_path, f"sqlite:///{tmp_path / 'state' / 'ledger.sqlite'}")


def account(context: Context) -> Report:
    return replace(build_report(context, KEY), seconds=0)


def back_up(archive: Archive, folder: Path) -> BackupReport:
    return make_backup(archive.context, folder, "Ada")


def target(archive: Archive, state: Path, url: str | None = None) -> Settings:
    place = url or f"sqlite:///{state / 'ledger.sqlite'}"
    return archive.settings.model_copy(update={"state": state, "ledger_url": place})


@pytest.mark.parametrize("across", ACROSS)
def test_every_row_and_every_file_is_in_the_new_place(
    across: tuple[str, str], new_url: NewUrl, tmp_path: Path
) -> None:
    origin, other = across
    for archive in make_archive(tmp_path, new_url(origin, "state")):
        before = every_row(archive.context.ledger, tmp_path / "before")
        report = back_up(archive, tmp_path / "backup")
        settings = target(archive, tmp_path / "new", new_url(other, "new"))
        restored = restore_into(settings, tmp_path / "backup", archive.clock, go_on=True)
        with open_context(settings, clock=archive.clock) as context:
            after = every_row(context.ledger, tmp_path / "after")
            assert set(after) == set(before)
            for table in sorted(set(before) - AFTERWARDS):
                assert after[table].equals(before[table]), table
            assert files_below(tmp_path / "new" / "artifacts") == files_below(
                tmp_path / "state" / "artifacts"
            )
            assert info(context.ledger) == info(archive.context.ledger) | {
                "restored_from": report.contents.backup_id,
                "restored_at": context.ledger.now(),
            }
            found = search(context, "WP-100")
            assert [hit.document_id for hit in found] == [
                hit.document_id for hit in search(archive.context, "WP-100")
            ]
            assert len(found) == 1
            assert restored.search_entries == 3
            with context.ledger.read() as connection:
                assert verify_all(connection, context.ledger.dialect).holds
            assert account(context) == account(archive.context)


@pytest.mark.parametrize("across", ACROSS)
def test_numbers_go_on_after_the_highest(
    across: tuple[str, str], new_url: NewUrl, tmp_path: Path
) -> None:
    origin, other = across
    ledger = open_ledger(new_url(origin, "state") if origin != "sqlite" else sqlite_at(tmp_path))
    row = {"who": "Ada", "why": "w", "kind": "text", "digest": "0" * 64, "opened_at": ledger.now()}
    with ledger.write() as connection:
        connection.execute(insert(accesses), [row | {"access_no": 41}])
    ledger.close()
    settings = Settings(state=tmp_path / "state", ledger_url=str(ledger.engine.url))
    settings = settings.model_copy(
        update={"ledger_url": ledger.engine.url.render_as_string(hide_password=False)}
    )
    with open_context(settings) as context:
        make_backup(context, tmp_path / "backup", "Ada")
        new = settings.model_copy(
            update={"state": tmp_path / "new", "ledger_url": new_url(other, "new")}
        )
        restore_into(new, tmp_path / "backup", context.clock)
    with open_context(new) as context, context.ledger.write() as connection:
        key = connection.execute(insert(accesses).values(**row)).inserted_primary_key
    assert key is not None
    assert key[0] == 42


def sqlite_at(tmp_path: Path) -> str:
    (tmp_path / "state").mkdir()
    return f"sqlite:///{tmp_path / 'state' / 'ledger.sqlite'}"


def test_the_second_backup_copies_what_is_new_and_replaces_the_first(
    archive: Archive, tmp_path: Path
) -> None:
    first = back_up(archive, tmp_path / "backup")
    assert first.new == first.contents.artifacts.rows - first_doubles(first)
    archive.clock.advance(60)
    archive.write("new.txt", RARE_TEXT.replace("QL-7788", "QL-9900"))
    archive.process()
    second = back_up(archive, tmp_path / "backup")
    assert 0 < second.new < first.new
    assert second.contents.artifacts.rows > first.contents.artifacts.rows
    dumps = [path.name for path in (tmp_path / "backup").iterdir() if path.name.startswith("l")]
    assert dumps == [f"ledger-{second.contents.backup_id}"]
    assert verify_backup(tmp_path / "backup", SilentProgress()).faults == ()
    with archive.context.ledger.read() as connection:
        assert [row.backup_id for row in list_backups(connection)] == [
            second.contents.backup_id,
            first.contents.backup_id,
        ]
        assert [row.digest for row in list_backups(connection)] == [second.digest, first.digest]


def first_doubles(report: BackupReport) -> int:
    """Artifacts of two names with the same bytes are one file."""
    objects = [path for path in (report.folder / "objects").rglob("*") if path.is_file()]
    return report.contents.artifacts.rows - len(objects)


def test_nobody_else_can_read_it(archive: Archive, tmp_path: Path) -> None:
    back_up(archive, tmp_path / "backup")
    restore_into(target(archive, tmp_path / "new"), tmp_path / "backup", archive.clock)
    for root in (tmp_path / "backup", tmp_path / "new" / "artifacts"):
        for path in [root, *sorted(root.rglob("*"))]:
            assert path.stat().st_mode & 0o077 == 0, path


def test_what_was_erased_is_in_no_later_backup(archive: Archive, tmp_path: Path) -> None:
    back_up(archive, tmp_path / "backup")
    assert words_in(tmp_path / "backup")
    found = find_document(archive.context, RARE)
    archive.clock.advance(60)
    erase(archive.context, found.document_no, found.document_id, "asked by its owner", "Ada")
    report = back_up(archive, tmp_path / "backup")
    assert report.contents.lost == []
    assert words_in(tmp_path / "backup") == {}
    settings = target(archive, tmp_path / "new")
    restore_into(settings, tmp_path / "backup", archive.clock, go_on=True)
    assert words_in(tmp_path / "new") == {}
    assert files_below(tmp_path / "new" / "artifacts") == files_below(
        archive.context.artifacts.root
    )


def test_what_was_pruned_is_told_and_is_no_loss(archive: Archive, tmp_path: Path) -> None:
    with archive.context.ledger.write() as connection:
        connection.execute(text("UPDATE record_state SET state = 'discarded'"))
        connection.execute(text("DELETE FROM archive_heads"))
    archive.clock.advance(1000 * 24 * 3600)
    policy = RetentionPolicy(what=("results", "requests")).older_than(1)
    assert prune(archive.context, policy, "no longer needed", "Ada").prune_no is not None
    report = back_up(archive, tmp_path / "backup")
    assert report.contents.pruned > 0
    assert report.contents.lost == []


@pytest.mark.parametrize("why", ["damaged", "missing"])
def test_an_artifact_that_was_lost_is_named_and_the_rest_is_backed_up(
    why: str, archive: Archive, tmp_path: Path
) -> None:
    (manifest,) = (archive.context.artifacts.root / "manifest").rglob("?" * 64)
    if why == "missing":
        manifest.unlink()
    else:
        manifest.write_bytes(b"something else")
    report = back_up(archive, tmp_path / "backup")
    assert [(lost.kind, lost.digest, lost.why) for lost in report.contents.lost] == [
        ("manifest", manifest.name, why)
    ]
    restored = restore_into(target(archive, tmp_path / "new"), tmp_path / "backup", archive.clock)
    assert len(restored.contents.lost) == 1


def test_an_earlier_backup_has_what_was_lost_since(archive: Archive, tmp_path: Path) -> None:
    back_up(archive, tmp_path / "backup")
    (manifest,) = (archive.context.artifacts.root / "manifest").rglob("?" * 64)
    manifest.unlink()
    archive.clock.advance(60)
    assert back_up(archive, tmp_path / "backup").contents.lost == []


def test_erasures_and_prunings_wait_while_a_backup_is_made(
    archive: Archive, tmp_path: Path
) -> None:
    found = find_document(archive.context, PUMP)
    with held(archive.context.ledger, LEASE, "another worker"):
        with pytest.raises(LeaseHeld):
            erase(archive.context, found.document_no, found.document_id, "why", "Ada")
        with pytest.raises(LeaseHeld):
            prune(archive.context, RetentionPolicy(), "why", "Ada")
        with pytest.raises(LeaseHeld):
            back_up(archive, tmp_path / "backup")
    assert not (tmp_path / "backup").exists()


def test_a_backup_whose_lease_ran_out_is_none(
    archive: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine was suspended: an erasure may have changed files under the copying."""
    from pipeline_assets.backup import make

    def suspended() -> None:
        archive.clock.advance(3600)
        acquire(archive.context.ledger, LEASE, "another worker")

    monkeypatch.setattr(make, "wait_for_disk", suspended)
    with pytest.raises(LeaseLost):
        back_up(archive, tmp_path / "backup")
    with pytest.raises(NoBackup):
        read_contents(tmp_path / "backup")


def test_an_interrupted_backup_leaves_the_earlier_one_whole(
    archive: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pipeline_assets.backup import make

    first = back_up(archive, tmp_path / "backup")
    found = find_document(archive.context, RARE)
    erase(archive.context, found.document_no, found.document_id, "asked by its owner", "Ada")
    archive.clock.advance(60)
    with monkeypatch.context() as patch:
        patch.setattr(make, "wait_for_disk", lambda: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            back_up(archive, tmp_path / "backup")
    verdict = verify_backup(tmp_path / "backup", SilentProgress())
    assert verdict.faults == ()
    assert verdict.contents.backup_id == first.contents.backup_id
    archive.clock.advance(3600)
    second = back_up(archive, tmp_path / "backup")
    assert verify_backup(tmp_path / "backup", SilentProgress()).faults == ()
    assert [path.name for path in (tmp_path / "backup").glob("ledger-*")] == [
        f"ledger-{second.contents.backup_id}"
    ]


def test_what_a_killed_backup_was_copying_is_swept(archive: Archive, tmp_path: Path) -> None:
    """It may be a file that was pruned or erased since, so that no later copy replaces it."""
    folder = tmp_path / "backups"
    back_up(archive, folder)
    half = folder / "objects" / f"{'0' * 64}.part"
    half.write_bytes(b"half of something that was erased since")
    archive.clock.advance(60)
    assert back_up(archive, folder).swept == 1
    assert not half.exists()


def test_own_files_are_told_by_their_digests(archive: Archive, tmp_path: Path) -> None:
    (tmp_path / "sources.yaml").write_text("sources: []\n", encoding="utf-8")
    report = back_up(archive, tmp_path / "backup")
    roles = {entry.role for entry in report.contents.configuration}
    assert {"sources", "catalogue"} <= roles
    (tmp_path / "sources.yaml").write_text("sources: [] # changed\n", encoding="utf-8")
    restored = restore_into(target(archive, tmp_path / "new"), tmp_path / "backup", archive.clock)
    assert restored.changed == ("sources: sources.yaml",)


def spoil_bytes(place: Path) -> None:
    data = bytearray(place.read_bytes())
    data[len(data) // 2] ^= 1
    place.write_bytes(bytes(data))


def an_object(folder: Path) -> Path:
    return sorted(path for path in (folder / "objects").rglob("*") if path.is_file())[0]


def a_table(folder: Path) -> Path:
    (place,) = folder.glob("ledger-*/moves.parquet")
    return place


def the_list(folder: Path) -> Path:
    (place,) = folder.glob("ledger-*/artifacts.parquet")
    return place


@pytest.mark.parametrize("spoil", [spoil_bytes, Path.unlink], ids=["changed", "missing"])
@pytest.mark.parametrize("which", [an_object, a_table, the_list], ids=lambda f: f.__name__)
def test_a_broken_backup_is_found_and_a_restore_of_it_is_refused_for_good(
    which: Callable[[Path], Path],
    spoil: Callable[[Path], None],
    archive: Archive,
    tmp_path: Path,
) -> None:
    back_up(archive, tmp_path / "backup")
    place = which(tmp_path / "backup")
    spoil(place)
    (fault,) = verify_backup(tmp_path / "backup", SilentProgress()).faults
    assert place.name[:12] in fault
    settings = target(archive, tmp_path / "new")
    with pytest.raises(BackupDamaged, match=place.name[:12]):
        restore_into(settings, tmp_path / "backup", archive.clock)
    with pytest.raises(LedgerIncomplete, match="was not finished"), open_context(settings):
        pass
    with pytest.raises(PlaceNotEmpty):
        restore_into(settings, tmp_path / "backup", archive.clock)


def test_an_interrupted_restore_is_begun_again_in_an_empty_place(
    archive: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pipeline_assets.backup import restore as restoring

    back_up(archive, tmp_path / "backup")
    settings = target(archive, tmp_path / "new")
    with monkeypatch.context() as patch:
        patch.setattr(restoring, "doubt_jobs", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            restore_into(settings, tmp_path / "backup", archive.clock)
    with pytest.raises(LedgerIncomplete), open_context(settings):
        pass
    shutil.rmtree(tmp_path / "new")
    restore_into(settings, tmp_path / "backup", archive.clock)
    with open_context(settings) as context:
        assert "restoring" not in info(context.ledger)


def test_a_restore_into_something_is_refused_and_changes_nothing(
    archive: Archive, tmp_path: Path
) -> None:
    back_up(archive, tmp_path / "backup")
    before = files_below(tmp_path / "state" / "artifacts")
    with pytest.raises(PlaceNotEmpty, match="files"):
        restore_into(archive.settings, tmp_path / "backup", archive.clock)
    occupied = target(archive, tmp_path / "new", archive.settings.ledger_url)
    with pytest.raises(PlaceNotEmpty, match="tables"):
        restore_into(occupied, tmp_path / "backup", archive.clock)
    assert files_below(tmp_path / "state" / "artifacts") == before
    assert build_report(archive.context, KEY).violations == ()


def test_a_restore_under_another_profile_is_refused(archive: Archive, tmp_path: Path) -> None:
    back_up(archive, tmp_path / "backup")
    settings = target(archive, tmp_path / "new").model_copy(update={"profile": "prod"})
    with pytest.raises(LedgerOfOtherProfile):
        restore_into(settings, tmp_path / "backup", archive.clock)
    assert not (tmp_path / "new").exists()


def edit_contents(folder: Path, **changes: object) -> None:
    place = folder / "contents.json"
    place.write_text(json.dumps(json.loads(place.read_text()) | changes), encoding="utf-8")


def test_a_backup_of_a_newer_release_is_refused(archive: Archive, tmp_path: Path) -> None:
    back_up(archive, tmp_path / "backup")
    edit_contents(tmp_path / "backup", revision="9999")
    with pytest.raises(LedgerFromNewerVersion):
        restore_into(target(archive, tmp_path / "new"), tmp_path / "backup", archive.clock)
    edit_contents(tmp_path / "backup", format=2)
    with pytest.raises(BackupFromNewerRelease, match="format 2"):
        read_contents(tmp_path / "backup")
    (tmp_path / "backup" / "contents.json").write_bytes(b"\xff{")
    with pytest.raises(BackupUnreadable):
        read_contents(tmp_path / "backup")


def test_a_folder_that_is_not_for_backups_is_left_alone(archive: Archive, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(FolderNotForBackups, match="1 other files"):
        back_up(archive, tmp_path / "other")
    with pytest.raises(FolderNotForBackups, match="state folder"):
        back_up(archive, tmp_path / "state" / "backup")
    with pytest.raises(FolderNotForBackups, match="is a file"):
        back_up(archive, tmp_path / "other" / "letter.txt")
    back_up(archive, tmp_path / "backup")
    edit_contents(tmp_path / "backup", ledger_id="f" * 16)
    with pytest.raises(FolderNotForBackups, match="ledger ffffffff"):
        back_up(archive, tmp_path / "backup")
    assert files_below(tmp_path / "other").keys() == {"letter.txt"}
