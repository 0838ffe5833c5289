"""The artifact store: one file a digest, whole or not there, private, and damage is seen."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from resources.artifacts import (
    KINDS,
    ArtifactDamaged,
    ArtifactMissing,
    ArtifactPruned,
    ArtifactStore,
    ArtifactStoreFull,
    ArtifactWriter,
)

DATA = b"some bytes"
DIGEST = hashlib.sha256(DATA).hexdigest()


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    return ArtifactStore(tmp_path / "artifacts")


def files(store: ArtifactStore) -> list[str]:
    return sorted(
        path.relative_to(store.root).as_posix() for path in store.root.rglob("*") if path.is_file()
    )


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_put_is_there_under_its_digest(store: ArtifactStore, kind: str) -> None:
    stored = store.put(kind, DATA)  # pyright: ignore[reportArgumentType]
    assert (stored.digest, stored.size) == (DIGEST, len(DATA))
    assert files(store) == [f"{kind}/{DIGEST[:2]}/{DIGEST}"]
    assert stored.path.read_bytes() == DATA


def test_putting_again_does_nothing(store: ArtifactStore) -> None:
    first = store.put("text", DATA)
    before = first.path.stat()
    again = store.put_stream("text", [DATA[:3], b"", DATA[3:]])
    assert again == first
    assert first.path.stat().st_ino == before.st_ino
    assert files(store) == [f"text/{DIGEST[:2]}/{DIGEST}"]


def test_putting_again_mends_a_file_that_was_cut(store: ArtifactStore) -> None:
    stored = store.put("text", DATA)
    stored.path.write_bytes(DATA[:4])
    store.put("text", DATA)
    store.verify("text", DIGEST)


def test_empty_bytes_are_bytes(store: ArtifactStore) -> None:
    stored = store.put("request", b"")
    assert stored.size == 0
    store.verify("request", stored.digest)


def test_a_writer_knows_what_it_wrote(store: ArtifactStore) -> None:
    offsets = []

    def fill(writer: ArtifactWriter) -> None:
        for part in (b"one\n", memoryview(b"two\n"), b""):
            offsets.append(writer.size)
            writer.write(part)

    stored = store.write("request", fill)
    assert offsets == [0, 4, 8]
    assert stored.digest == hashlib.sha256(b"one\ntwo\n").hexdigest()


def test_only_the_owner_can_enter_or_read(store: ArtifactStore) -> None:
    previous = os.umask(0)
    try:
        store.root.mkdir(mode=0o700)
        store.put("source", DATA)
        with store.workfile() as path:
            path.write_bytes(b"other")
            store.adopt("frame", path)
    finally:
        os.umask(previous)
    modes = {
        path.relative_to(store.root).as_posix(): stat.S_IMODE(path.stat().st_mode)
        for path in store.root.rglob("*")
    }
    assert {mode for name, mode in modes.items() if (store.root / name).is_dir()} == {0o700}
    assert {mode for name, mode in modes.items() if (store.root / name).is_file()} == {0o600}
    assert {"source", "frame", "incoming"} <= set(modes)


def test_a_crash_while_writing_leaves_nothing(store: ArtifactStore) -> None:
    def blocks() -> Iterator[bytes]:
        yield DATA
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.put_stream("source", blocks())
    assert files(store) == []


def test_a_crash_with_a_workfile_leaves_nothing(store: ArtifactStore) -> None:
    with pytest.raises(ZeroDivisionError), store.workfile() as path:
        path.write_bytes(DATA)
        raise ZeroDivisionError
    assert files(store) == []


def test_a_half_written_file_never_has_a_name(
    store: ArtifactStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The data is on the disk before the name is: power may fail in between."""
    steps: list[str] = []
    fsync, rename = os.fsync, Path.rename

    def told_fsync(descriptor: int) -> None:
        folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        steps.append("fsync folder" if folder else "fsync file")
        fsync(descriptor)

    def told_rename(self: Path, target: Path) -> Path:
        steps.append("rename")
        return rename(self, target)

    store.put("text", b"makes the folders")
    monkeypatch.setattr(os, "fsync", told_fsync)
    monkeypatch.setattr(Path, "rename", told_rename)
    store.put("text", DATA)
    at = steps.index("rename")
    assert "fsync file" in steps[:at]
    assert steps[at + 1] == "fsync folder"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT], ids=["disk", "quota"])
@pytest.mark.parametrize("where", ["fsync", "mkstemp", "rename", "write"])
def test_a_full_disk_is_told_and_nothing_is_kept(
    store: ArtifactStore, monkeypatch: pytest.MonkeyPatch, where: str, number: int
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    store.put("text", b"something else")
    kept = files(store)
    if where == "fsync":
        monkeypatch.setattr(os, "fsync", full)
    elif where == "mkstemp":
        monkeypatch.setattr("tempfile.mkstemp", full)
    elif where == "rename":
        monkeypatch.setattr(Path, "rename", full)
    else:
        monkeypatch.setattr(ArtifactWriter, "write", full)
    with pytest.raises(ArtifactStoreFull, match="free some space and run the same command again"):
        store.put("text", DATA)
    assert files(store) == kept


@pytest.mark.parametrize("where", ["fsync", "mkstemp"])
def test_a_full_disk_under_a_workfile(
    store: ArtifactStore, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr("os.fsync" if where == "fsync" else "tempfile.mkstemp", full)
    with pytest.raises(ArtifactStoreFull), store.workfile() as path:
        path.write_bytes(DATA)
        store.adopt("frame", path)
    assert files(store) == []


def test_another_error_stays_what_it_is(
    store: ArtifactStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: int) -> None:
        raise OSError(errno.EIO, "input/output error")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(OSError, match="input/output") as raised:
        store.put("text", DATA)
    assert not isinstance(raised.value, ArtifactStoreFull)
    assert files(store) == []


def test_what_is_not_there_is_missing(store: ArtifactStore) -> None:
    assert not store.has("text", DIGEST)
    for ask in (store.require, store.open, store.verify):
        with pytest.raises(ArtifactMissing, match=f"text artifact {DIGEST[:12]} is not in"):
            ask("text", DIGEST)
    store.put("source", DATA)
    assert not store.has("text", DIGEST), "kinds do not share files"


@pytest.mark.parametrize("damage", [b"some byteZ", b"some", b"", b"some bytes and more"], ids=repr)
def test_verify_sees_damage(store: ArtifactStore, damage: bytes) -> None:
    stored = store.put("frame", DATA)
    store.verify("frame", DIGEST)
    stored.path.write_bytes(damage)
    with pytest.raises(ArtifactDamaged, match="was changed after it was stored"):
        store.verify("frame", DIGEST)


def upper(source: Path, target: Path) -> None:
    target.write_bytes(source.read_bytes().upper())


UPPER = hashlib.sha256(DATA.upper()).hexdigest()


class LedgerSays:
    """What the ledger has of redactions, as far as it was announced."""

    def __init__(self) -> None:
        self.present: set[str] = set()

    def __call__(self, _kind: str, _digest: str) -> frozenset[str]:
        return frozenset(self.present)


@pytest.fixture
def told() -> LedgerSays:
    return LedgerSays()


@pytest.fixture
def known_store(tmp_path: Path, told: LedgerSays) -> ArtifactStore:
    return ArtifactStore(tmp_path / "artifacts", redactions=told)


def test_a_redacted_file_keeps_its_name_and_is_valid(
    known_store: ArtifactStore, told: LedgerSays
) -> None:
    path = known_store.put("result", DATA).path
    assert known_store.redact("result", DIGEST, upper, 1, told.present.add) == UPPER
    assert path.read_bytes() == DATA.upper()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    known_store.verify("result", DIGEST)
    beside = known_store.sidecar("result", DIGEST)
    assert beside is not None
    assert (beside.present, beside.erasures, beside.before) == (UPPER, (1,), None)
    assert list(known_store.names("result")) == [DIGEST]
    assert list(known_store.redacted()) == [("result", DIGEST)]


def test_the_original_bytes_do_not_come_back(known_store: ArtifactStore, told: LedgerSays) -> None:
    path = known_store.put("result", DATA).path
    known_store.redact("result", DIGEST, upper, 1, told.present.add)
    known_store.put("result", DATA)
    assert path.read_bytes() == DATA.upper()
    path.write_bytes(DATA)
    with pytest.raises(ArtifactDamaged):
        known_store.verify("result", DIGEST)
    path.unlink()
    known_store.put("result", DATA)
    with pytest.raises(ArtifactMissing):
        known_store.verify("result", DIGEST)


def test_a_second_erasure_goes_on_from_the_first(
    known_store: ArtifactStore, told: LedgerSays
) -> None:
    known_store.put("result", DATA)
    known_store.redact("result", DIGEST, upper, 1, told.present.add)

    def shorter(source: Path, target: Path) -> None:
        target.write_bytes(source.read_bytes()[:4])

    known_store.redact("result", DIGEST, shorter, 2, told.present.add)
    known_store.verify("result", DIGEST)
    beside = known_store.sidecar("result", DIGEST)
    assert beside is not None
    assert beside.erasures == (1, 2)


@pytest.mark.parametrize("die_at", ["edit", "announce", "replace"])
def test_a_killed_redaction_leaves_a_valid_file(
    die_at: str, known_store: ArtifactStore, told: LedgerSays, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = known_store.put("result", DATA).path

    def edit(source: Path, target: Path) -> None:
        upper(source, target)
        if die_at == "edit":
            raise KeyboardInterrupt

    def announce(present: str) -> None:
        if die_at == "announce":
            raise KeyboardInterrupt
        told.present.add(present)

    replace = Path.replace

    def dying(source: Path, target: Path) -> Path:
        if die_at == "replace" and target == path:
            raise KeyboardInterrupt
        return replace(source, target)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", dying)
        with pytest.raises(KeyboardInterrupt):
            known_store.redact("result", DIGEST, edit, 1, announce)
    known_store.verify("result", DIGEST)
    assert path.read_bytes() == DATA
    known_store.redact("result", DIGEST, upper, 1, told.present.add)
    known_store.verify("result", DIGEST)
    assert path.read_bytes() == DATA.upper()


def test_what_the_ledger_does_not_know_is_not_valid(
    known_store: ArtifactStore, told: LedgerSays
) -> None:
    known_store.put("result", DATA)
    known_store.redact("result", DIGEST, upper, 1, told.present.add)
    told.present.clear()
    with pytest.raises(ArtifactDamaged):
        known_store.verify("result", DIGEST)


def test_a_changed_file_is_not_redacted(known_store: ArtifactStore, told: LedgerSays) -> None:
    path = known_store.put("result", DATA).path
    path.write_bytes(b"other bytes")
    with pytest.raises(ArtifactDamaged):
        known_store.redact("result", DIGEST, upper, 1, told.present.add)
    assert path.read_bytes() == b"other bytes"


def test_a_sidecar_that_cannot_be_read_is_damage(
    known_store: ArtifactStore, told: LedgerSays
) -> None:
    path = known_store.put("result", DATA).path
    known_store.redact("result", DIGEST, upper, 1, told.present.add)
    path.with_name(DIGEST + ".redacted").write_bytes(b"{")
    with pytest.raises(ArtifactDamaged):
        known_store.verify("result", DIGEST)


def test_a_removed_file_may_be_stored_again(known_store: ArtifactStore, told: LedgerSays) -> None:
    known_store.put("text", DATA)
    known_store.redact("text", DIGEST, upper, 1, told.present.add)
    assert known_store.remove("text", DIGEST) == len(DATA)
    assert known_store.remove("text", DIGEST) == 0
    assert files(known_store) == []
    known_store.put("text", DATA)
    known_store.verify("text", DIGEST)


def test_a_pruned_file_is_told_as_that(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path, pruned=lambda _kind, _digest: "2030-01-01T00:00:00.000000Z")
    with pytest.raises(ArtifactPruned, match="pruned by policy at 2030-01-01"):
        store.verify("request", DIGEST)
