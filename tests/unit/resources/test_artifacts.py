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
