"""The folder source on real trees: odd names, links, special files, failures, races."""

from __future__ import annotations

import errno
import json
import os
import shutil
import socket
import subprocess
import tempfile
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import pytest

from resources.sources.checksums import checksums
from resources.sources.directory import DirectorySource, display_name
from resources.sources.document_id import DocumentIdError, exact_document_id, parse_document_id
from resources.sources.port import (
    EntryRefused,
    SourceEmpty,
    SourceEntry,
    SourceMissing,
    SourceUnreadable,
    WalkReport,
)

NOBODY = 65534
COMPOSED = "Ger\u00e4t"
DECOMPOSED = unicodedata.normalize("NFD", COMPOSED)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


@pytest.fixture
def public_root() -> Iterator[Path]:
    """A folder that another user can reach, which `tmp_path` is not."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@contextmanager
def without_privileges() -> Iterator[None]:
    """Permission bits mean nothing to root: act as somebody else for a while."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def walked(source: DirectorySource) -> tuple[dict[bytes, SourceEntry], WalkReport]:
    walk = source.walk()
    entries = list(walk)
    report = walk.report()
    assert report.entries == len(entries)
    assert len({entry.document_id for entry in entries}) == len(entries)
    return {entry.relative_path: entry for entry in entries}, report


def verdicts(source: DirectorySource) -> dict[bytes, tuple[str | None, str]]:
    return {path: (entry.excluded, entry.detail) for path, entry in walked(source)[0].items()}


def write(path: Path, content: bytes = b"text") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


# Names and order


def test_order_is_files_then_folders_by_raw_bytes(root: Path) -> None:
    for name in ["b", "B", "a/z", "a/a/x", "a-b/x", ".hidden", "\u00e9", "z"]:
        write(root / name)
    walk = DirectorySource("docs", root).walk()
    paths = [entry.relative_path.decode() for entry in walk]
    assert paths == [".hidden", "B", "b", "z", "\u00e9", "a/z", "a/a/x", "a-b/x"]
    assert walk.report() == WalkReport(entries=8)


def test_entry_describes_the_file(root: Path) -> None:
    path = write(root / "sub" / "Guide.pdf", b"12345")
    os.utime(path, ns=(7, 1_700_000_000_123_456_789))
    status = path.stat()
    [entry] = DirectorySource("docs", root).walk()
    assert entry == SourceEntry(
        document_id="docs/sub/Guide.pdf",
        relative_path=b"sub/Guide.pdf",
        name="Guide.pdf",
        size=5,
        mtime_ns=1_700_000_000_123_456_789,
        inode=(status.st_dev, status.st_ino),
    )


@pytest.mark.parametrize(
    "name",
    [
        b"new\nline.pdf", b"-dash", b" leading", b"trailing ", b"quote'\"s", b"percent%20",
        b"back\\slash", b"*", b"no extension", b"bad-\xff\xfe.pdf", b"x" * 255,
        "\u00e9".encode() * 127, "rtl\u202efdp.exe".encode(), "\U0001f4d8".encode(),
    ],
    ids=lambda name: ascii(name[:12]),
)  # fmt: skip
def test_odd_names_are_documents_that_open(root: Path, name: bytes) -> None:
    write(Path(os.fsdecode(os.fsencode(root) + b"/" + name)), b"content")
    source = DirectorySource("docs", root)
    [entry] = source.walk()
    assert entry.excluded is None
    assert entry.relative_path == name
    assert parse_document_id(entry.document_id)[0] == "docs"
    with source.open(entry) as stream:
        assert stream.read() == b"content"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param(b"sub/Guide.pdf", "Guide.pdf", id="last_part"),
        pytest.param(b"a@b:c%.pdf", "a@b:c%.pdf", id="separators_stay"),
        pytest.param(DECOMPOSED.encode(), COMPOSED, id="composed"),
        pytest.param(b"a\nb\xff", "a\ufffdb\ufffd", id="not_showable"),
        pytest.param("a\u202eb".encode(), "a\ufffdb", id="bidi"),
    ],
)
def test_display_name(path: bytes, expected: str) -> None:
    assert display_name(path) == expected


def test_files_that_fold_alike_are_both_excluded(root: Path) -> None:
    for name in (COMPOSED, DECOMPOSED, "K", "\u212a", "other"):
        write(root / name)
    entries, _ = walked(DirectorySource("docs", root))
    collided = {path for path, entry in entries.items() if entry.excluded == "id_collision"}
    assert collided == {name.encode() for name in (COMPOSED, DECOMPOSED, "K", "\u212a")}
    for path in collided:
        assert entries[path].document_id == exact_document_id("docs", path)
        assert parse_document_id(entries[path].document_id) == ("docs", path)


def test_folders_that_fold_alike_are_compared_as_one(root: Path) -> None:
    for folder in (COMPOSED, DECOMPOSED):
        write(root / folder / "deep" / "same.pdf")
        write(root / folder / f"only-{len(folder)}.pdf")
    entries, report = walked(DirectorySource("docs", root))
    assert {path.decode() for path, entry in entries.items() if entry.excluded} == {
        f"{folder}/deep/same.pdf" for folder in (COMPOSED, DECOMPOSED)
    }
    assert len(entries) == 4
    assert report.complete


def test_a_file_and_a_folder_that_fold_alike_do_not_collide(root: Path) -> None:
    write(root / COMPOSED)
    write(root / DECOMPOSED / "inside")
    assert {entry.excluded for entry in DirectorySource("docs", root).walk()} == {None}


def test_path_too_long_for_an_id_is_excluded_with_an_id(root: Path) -> None:
    folder = root
    for _ in range(3):
        folder = folder / ("\x01" * 255)
    write(folder / "a")
    write(folder / "b")
    entries, _ = walked(DirectorySource("docs", root))
    assert [entry.excluded for entry in entries.values()] == ["name_too_long"] * 2


def test_tree_deeper_than_any_path(root: Path) -> None:
    levels, name = 40, "d" * 250
    descriptor = os.open(root, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir(name, dir_fd=descriptor)
        below = os.open(name, os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = below
    file = os.open("leaf", os.O_CREAT | os.O_WRONLY, dir_fd=descriptor)
    os.write(file, b"deep")
    os.close(file)
    os.close(descriptor)
    source = DirectorySource("docs", root)
    try:
        [entry] = source.walk()
        assert entry.relative_path.count(b"/") == levels
        assert entry.size == 4
        assert entry.excluded == "name_too_long"
        with source.open(replace(entry, excluded=None)) as stream:
            assert stream.read() == b"deep"
    finally:
        shutil.rmtree(root)


# Files that are no documents


def test_empty_and_too_large(root: Path) -> None:
    write(root / "empty.pdf", b"")
    write(root / "fits", b"1234")
    write(root / "large", b"12345")
    assert verdicts(DirectorySource("docs", root, max_file_bytes=4)) == {
        b"empty.pdf": ("empty", ""),
        b"fits": (None, ""),
        b"large": ("too_large", "5 bytes, limit 4"),
    }


def test_sparse_file_is_refused_unread(root: Path) -> None:
    with (root / "sparse").open("wb") as file:
        file.truncate(2 << 30)
    source = DirectorySource("docs", root)
    told: list[int] = []
    [(entry, outcome)] = checksums(source, source.walk(), on_bytes=told.append)
    assert (entry.size, outcome.excluded, told) == (2 << 30, "too_large", [])


def test_special_files_do_not_block(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(root / "pipe.pdf")
    monkeypatch.chdir(root)  # a socket's path may have at most 107 bytes
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket.pdf")
        found = verdicts(DirectorySource("docs", root))
    assert found == {
        b"pipe.pdf": ("not_a_document", "pipe"),
        b"socket.pdf": ("not_a_document", "socket"),
    }


def test_links_are_named_never_followed(root: Path, tmp_path: Path) -> None:
    write(tmp_path / "outside.pdf")
    write(root / "real" / "file.pdf")
    links = {
        "to-file": "real/file.pdf",
        "to-folder": "real",
        "to-self": ".",
        "absolute": str(root / "real"),
        "out": "../outside.pdf",
        "out-absolute": "/",
        "out-to-nothing": "../nothing",
        "sibling": f"{root}-other",
        "dangling": "nothing",
        "through-a-file": "real/file.pdf/x",
        "circle-a": "circle-b",
        "circle-b": "circle-a",
        "back-in": "../root/real/file.pdf",
        "chain": "out",
    }
    for name, target in links.items():
        (root / name).symlink_to(target)
    found = verdicts(DirectorySource("docs", root))
    assert found.pop(b"real/file.pdf") == (None, "")
    assert {path.decode(): reason for path, (reason, _) in found.items()} == {
        "to-file": "symbolic_link",
        "to-folder": "symbolic_link",
        "to-self": "symbolic_link",
        "absolute": "symbolic_link",
        "back-in": "symbolic_link",
        "out": "outside_root",
        "out-absolute": "outside_root",
        "out-to-nothing": "outside_root",
        "sibling": "outside_root",
        "chain": "outside_root",
        "dangling": "broken_link",
        "through-a-file": "broken_link",
        "circle-a": "broken_link",
        "circle-b": "broken_link",
    }


def test_root_may_be_a_link(root: Path, tmp_path: Path) -> None:
    write(root / "file")
    (root / "inside").symlink_to("file")
    (tmp_path / "link").symlink_to(root)
    assert verdicts(DirectorySource("docs", tmp_path / "link")) == {
        b"file": (None, ""),
        b"inside": ("symbolic_link", ""),
    }


def test_hard_links_are_two_documents(root: Path) -> None:
    write(root / "a")
    (root / "b").hardlink_to(root / "a")
    first, second = DirectorySource("docs", root).walk()
    assert first.inode == second.inode
    assert (first.excluded, second.excluded) == (None, None)


# What cannot be read


@pytest.mark.parametrize("kind", ["missing", "file"])
def test_missing_root(root: Path, kind: str) -> None:
    if kind == "file":
        write(root / "file")
    with pytest.raises(SourceMissing, match="correct the source's path"):
        list(DirectorySource("docs", root / kind).walk())


def test_empty_root_is_an_error_unless_allowed(root: Path) -> None:
    with pytest.raises(SourceEmpty, match="disk is mounted"):
        list(DirectorySource("docs", root).walk())
    assert list(DirectorySource("docs", root, allow_empty=True).walk()) == []
    (root / "folder").mkdir()
    assert list(DirectorySource("docs", root).walk()) == []


def test_unusable_name_is_refused(root: Path) -> None:
    with pytest.raises(DocumentIdError):
        DirectorySource("a:b", root)


def test_root_without_permission_is_an_error(public_root: Path) -> None:
    locked = public_root / "locked"
    write(locked / "file")
    locked.chmod(0)
    with without_privileges(), pytest.raises(SourceUnreadable, match="EACCES"):
        list(DirectorySource("docs", locked).walk())
    locked.chmod(0o755)


def test_file_and_folder_without_permission(public_root: Path) -> None:
    write(public_root / "locked.pdf").chmod(0)
    write(public_root / "open.pdf")
    write(public_root / "closed" / "unseen.pdf")
    (public_root / "closed").chmod(0)
    source = DirectorySource("docs", public_root)
    with without_privileges():
        entries, report = walked(source)
        with pytest.raises(EntryRefused, match="permission denied"):
            source.open(replace(entries[b"locked.pdf"], excluded=None))
    (public_root / "closed").chmod(0o755)
    assert {path: (entry.excluded, entry.detail) for path, entry in entries.items()} == {
        b"locked.pdf": ("unreadable", "permission denied"),
        b"open.pdf": (None, ""),
        b"closed": ("unreadable", "folder could not be listed (EACCES)"),
    }
    assert report == WalkReport(entries=3, unlisted=(b"closed",))


def test_folder_that_can_be_listed_but_not_entered(public_root: Path) -> None:
    write(public_root / "names-only" / "a.pdf")
    (public_root / "names-only").chmod(0o444)
    with without_privileges():
        found = verdicts(DirectorySource("docs", public_root))
    (public_root / "names-only").chmod(0o755)
    assert found == {b"names-only/a.pdf": ("unreadable", "could not be examined (EACCES)")}


class ScandirIterator(Protocol):
    def __next__(self) -> os.DirEntry[str]: ...

    def close(self) -> None: ...


class BrokenListing:
    """A folder whose disk fails behind the first name."""

    def __init__(self, names: ScandirIterator) -> None:
        self._names = names

    def __enter__(self) -> BrokenListing:
        return self

    def __exit__(self, *_: object) -> None:
        self._names.close()

    def __iter__(self) -> Iterator[os.DirEntry[str]]:
        yield next(self._names)
        raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_a_listing_that_breaks_off_is_no_listing(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(root / "bad" / "a")
    write(root / "bad" / "b")
    write(root / "good" / "c")
    bad = (root / "bad").stat().st_ino
    scandir = os.scandir

    def flaky(descriptor: int) -> object:
        names = scandir(descriptor)
        return BrokenListing(names) if os.fstat(descriptor).st_ino == bad else names

    monkeypatch.setattr(os, "scandir", flaky)
    entries, report = walked(DirectorySource("docs", root))
    assert set(entries) == {b"bad", b"good/c"}
    assert entries[b"bad"].detail == "folder could not be listed (EIO)"
    assert report.unlisted == (b"bad",)


def test_running_out_of_descriptors_ends_the_walk(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(root / "sub" / "a")
    open_real = os.open

    def exhausted(path: bytes, flags: int, **more: int) -> int:
        if path == b"sub":
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return open_real(path, flags, **more)

    source = DirectorySource("docs", root)
    [entry] = source.walk()
    monkeypatch.setattr(os, "open", exhausted)
    with pytest.raises(SourceUnreadable, match="EMFILE"):
        list(source.walk())
    with pytest.raises(SourceUnreadable, match="EMFILE"):
        source.open(entry)


def test_another_file_system_is_not_entered(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(root / "mounted" / "a")
    write(root / "b")
    mounted = (root / "mounted").stat().st_ino
    fstat = os.fstat

    def elsewhere(descriptor: int) -> os.stat_result:
        status = fstat(descriptor)
        if status.st_ino != mounted:
            return status
        return os.stat_result([*status[:2], status.st_dev + 1, *status[3:10]])

    monkeypatch.setattr(os, "fstat", elsewhere)
    entries, report = walked(DirectorySource("docs", root))
    assert entries[b"mounted"].excluded == "outside_root"
    assert entries[b"mounted"].detail == "another file system"
    assert set(entries) == {b"mounted", b"b"}
    assert report.unlisted == (b"mounted",)


def test_a_real_mount_is_not_entered(root: Path) -> None:
    write(root / "b")
    (root / "mounted").mkdir()
    command = ["mount", "-t", "tmpfs", "none", str(root / "mounted")]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("mounting is not permitted here")
    try:
        write(root / "mounted" / "a")
        found = verdicts(DirectorySource("docs", root))
    finally:
        subprocess.run(["umount", str(root / "mounted")], check=True)
    assert found == {b"b": (None, ""), b"mounted": ("outside_root", "another file system")}


# Trees that change between walk and open


def test_file_removed_during_the_walk_is_not_there(root: Path) -> None:
    write(root / "a")
    write(root / "b")
    walk = DirectorySource("docs", root).walk()
    next(walk)
    (root / "b").unlink()
    assert list(walk) == []
    assert walk.report() == WalkReport(entries=1)


def test_folder_removed_during_the_walk_is_unknown(root: Path) -> None:
    write(root / "a")
    write(root / "sub" / "b")
    walk = DirectorySource("docs", root).walk()
    next(walk)
    shutil.rmtree(root / "sub")
    [entry] = walk
    assert entry.excluded == "unreadable"
    assert walk.report().unlisted == (b"sub",)


def exchanged_for_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def exchanged_for_link(path: Path) -> None:
    path.rename(path.with_name("moved"))
    path.symlink_to("moved")


def exchanged_for_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def exchanged_folder_for_link(path: Path) -> None:
    path.parent.rename(path.parent.with_name("moved"))
    path.parent.symlink_to("moved")


@pytest.mark.parametrize(
    ("exchange", "reason", "detail"),
    [
        pytest.param(Path.unlink, "unreadable", "no longer there", id="removed"),
        pytest.param(exchanged_for_pipe, "not_a_document", "pipe", id="pipe"),
        pytest.param(exchanged_for_link, "symbolic_link", "replaced by a link", id="link"),
        pytest.param(exchanged_for_folder, "not_a_document", "folder", id="folder"),
        pytest.param(
            exchanged_folder_for_link,
            "unreadable",
            "folder could not be listed (ENOTDIR)",
            id="folder_link",
        ),
        pytest.param(lambda path: path.write_bytes(b""), "empty", "", id="emptied"),
        pytest.param(
            lambda path: path.write_bytes(b"12345"), "too_large", "5 bytes, limit 4", id="grown"
        ),
    ],
)
def test_exchanged_before_opening(
    root: Path, exchange: Callable[[Path], object], reason: str, detail: str
) -> None:
    path = write(root / "sub" / "file")
    source = DirectorySource("docs", root, max_file_bytes=4)
    [entry] = source.walk()
    exchange(path)
    with pytest.raises(EntryRefused) as refusal:
        source.open(entry)
    assert (refusal.value.reason, refusal.value.detail) == (reason, detail)
    [(_, outcome)] = checksums(source, [entry])
    assert (outcome.checksum, outcome.excluded, outcome.detail) == (None, reason, detail)


@pytest.mark.parametrize(
    "path",
    [b"../outside", b"a/../../outside", b"/etc/hostname", b"", b".", b"a//b", b"a\0"],
    ids=ascii,
)
def test_forged_paths_are_refused(root: Path, tmp_path: Path, path: bytes) -> None:
    write(tmp_path / "outside")
    write(root / "a" / "b")
    [entry] = DirectorySource("docs", root).walk()
    with pytest.raises(EntryRefused) as refusal:
        DirectorySource("docs", root).open(replace(entry, relative_path=path))
    assert refusal.value.reason == "outside_root"


def test_excluded_entries_do_not_open(root: Path) -> None:
    os.mkfifo(root / "pipe")
    source = DirectorySource("docs", root)
    [entry] = source.walk()
    with pytest.raises(EntryRefused, match="not_a_document"):
        source.open(entry)


def test_no_descriptor_is_left_open(root: Path) -> None:
    for folder in range(5):
        write(root / str(folder) / "file")
    (root / "link").symlink_to("nothing")
    fds = Path("/proc/self/fd")
    if not fds.is_dir():
        pytest.skip("open descriptors cannot be counted without /proc")
    before = len(list(fds.iterdir()))
    source = DirectorySource("docs", root)
    entries = list(source.walk())
    abandoned = source.walk()
    next(abandoned)
    del abandoned
    list(checksums(source, entries))
    exchanged_for_pipe(root / "0" / "file")
    list(checksums(source, entries))
    assert len(list(fds.iterdir())) == before


def test_location_shows_any_bytes(root: Path) -> None:
    assert DirectorySource("docs", root).location == str(root)
    assert DirectorySource("docs", b"/a/\xff").location == "/a/\\xff"


def test_a_real_archive_has_the_recorded_checksums(dev_corpus: Path) -> None:
    lines = (dev_corpus / "labels.jsonl").read_text(encoding="utf-8").splitlines()
    labels = {row["file"]: row for row in map(json.loads, lines)}
    source = DirectorySource("docs", dev_corpus / "files")
    found = {
        f"files/{os.fsdecode(entry.relative_path)}": outcome
        for entry, outcome in checksums(source, source.walk())
    }
    assert set(found) == set(labels)
    for file, outcome in found.items():
        expected = (None, "empty") if labels[file]["bytes"] == 0 else (labels[file]["sha256"], None)
        assert (outcome.checksum, outcome.excluded) == expected, file
