"""A folder as a listed source: its frames, its checksums, its bytes."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import polars as pl
import pytest

from resources.sources import folder as folder_module
from resources.sources.declared import FolderSource, read_sources
from resources.sources.directory import DirectorySource
from resources.sources.document_id import (
    document_id,
    exact_document_id,
    shortened_document_id,
)
from resources.sources.folder import LATEST_NS, FolderListing, within_64_bits
from resources.sources.listing import LISTED_SCHEMA, READ_SCHEMA
from resources.sources.opening import open_place
from resources.sources.port import (
    EntryRefused,
    SourceEmpty,
    SourceMissing,
    WalkUnfinished,
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a folder with seven files of several kinds."""
    root = tmp_path / "root"
    (root / "in").mkdir(parents=True)
    for name in ("a.txt", "b@c.txt", "in/d.txt", "in/\u00fc.txt", "in/e.txt"):
        (root / name).write_bytes(name.encode())
    (root / "empty").touch()
    (root / "link").symlink_to("a.txt")
    return root


def test_frames_hold_what_the_walk_gives(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_module, "FIRST_ROWS", 1)
    monkeypatch.setattr(folder_module, "LISTED_ROWS", 3)
    listing = FolderListing("docs", root).listing()
    first = next(listing)
    with pytest.raises(WalkUnfinished):
        listing.report()
    frames = [first, *listing]
    assert [frame.height for frame in frames] == [1, 3, 3]
    assert all(frame.schema == LISTED_SCHEMA for frame in frames)
    walk = DirectorySource("docs", root).walk()
    found = pl.concat(frames)
    for row, entry in zip(found.iter_rows(named=True), walk, strict=True):
        assert row["document_id"] == entry.document_id
        assert (row["place"], row["size"]) == (entry.relative_path, entry.size)
        assert (row["device"], row["inode"]) == tuple(map(str, entry.inode))
        assert (row["mtime_ns"], row["excluded"]) == (entry.mtime_ns, entry.excluded)
        assert row["detail"] == entry.detail
    assert listing.report() == walk.report()
    assert found["checksum"].null_count() == found["mark"].null_count() == 7


def test_reading_gives_checksums_a_few_at_a_time(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_module, "READ_DOCUMENTS", 2)
    source = FolderListing("docs", root)
    wanted = pl.concat(source.listing()).filter(pl.col("excluded").is_null())
    (root / "in" / "e.txt").unlink()
    (root / "in" / "d.txt").write_bytes(b"longer than it was when it was listed")
    parts = list(source.read(wanted))
    assert [part.height for part in parts] == [2, 2, 1]
    assert all(part.schema == READ_SCHEMA for part in parts)
    rows = {row["document_id"]: row for row in pl.concat(parts).iter_rows(named=True)}
    assert rows["docs/in/e.txt"]["excluded"] == "unreadable"
    changed = rows["docs/in/d.txt"]
    assert changed["size"] == 37, "of the very bytes that were read"
    assert changed["checksum"] == hashlib.sha256((root / "in/d.txt").read_bytes()).hexdigest()


def test_opening_by_id(root: Path) -> None:
    source = FolderListing("docs", root)
    with source.open("docs/b%40c.txt") as stream:
        assert stream.read() == b"b@c.txt"
    for identity, reason in (
        ("docs/nothing", "unreadable"),
        ("docs/link", "symbolic_link"),
        ("docs/../root/a.txt", "outside_root"),
        (shortened_document_id("docs", b"x" * 3000), "name_too_long"),
    ):
        with pytest.raises(EntryRefused) as refused:
            source.open(identity)
        assert refused.value.reason == reason
    assert list(source.texts(pl.Series(["docs/a.txt"]))) == []


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param("cafe\u0301.txt", id="decomposed"),
        pytest.param("caf\u00e9 cre\u0301me.txt", id="mixed"),
        pytest.param("\u00fc/cre\u0301me/e\u0301.txt", id="folders-mixed"),
        pytest.param("u\u0308/cr\u00e9me.txt", id="folder-decomposed-name-composed"),
        pytest.param("5 \u212a.txt", id="kelvin"),
        pytest.param("5 \u212a/a;b`\u037e.txt", id="folding-to-ascii-in-folder"),
        pytest.param("e\u0323\u0302-e\u0302\u0323.txt", id="marks-in-another-order"),
        pytest.param("\u0301a\u0301.txt", id="mark-at-the-start"),
    ],
)
def test_a_name_that_is_not_composed_on_disk(root: Path, raw: str) -> None:
    file = root / raw
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"coffee")
    source = FolderListing("docs", root)
    found = pl.concat(source.listing()).filter(pl.col("place") == raw.encode())
    identity = found["document_id"].item()
    assert identity == document_id("docs", raw.encode())
    assert identity != f"docs/{raw}"
    with source.open(identity) as stream:
        assert stream.read() == b"coffee"


def test_a_decomposed_name_with_bytes_that_are_no_text(root: Path) -> None:
    raw = b"\xff e\xcc\x81.txt"
    try:
        (root / os.fsdecode(raw)).write_bytes(b"bytes")
    except OSError:
        pytest.skip("this file system takes no such name")
    with FolderListing("docs", root).open(document_id("docs", raw)) as stream:
        assert stream.read() == b"bytes"


def test_neighbours_outside_the_root_are_not_looked_at(root: Path) -> None:
    (root.parent / "\u00e9e\u0301.txt").write_bytes(b"outside")
    for name in ("../\u00e9\u00e9.txt", "in/../../\u00e9\u00e9.txt", "in/../\u00e9\u00e9.txt"):
        with pytest.raises(EntryRefused) as refused:
            FolderListing("docs", root).open(f"docs/{name}")
        assert refused.value.reason == "outside_root"


def test_an_exact_id_means_these_bytes_alone(root: Path) -> None:
    (root / "caf\u00e9.txt").write_bytes(b"coffee")
    source = FolderListing("docs", root)
    for raw in ("cafe\u0301.txt", "cafe\u0301\u0323.txt"):
        with pytest.raises(EntryRefused, match="no longer there"):
            source.open(exact_document_id("docs", raw.encode()))


def test_neighbours_are_not_looked_at_through_links(root: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "\u00e9e\u0301.txt").write_bytes(b"secret")
    (root / "\u00e9e\u0301").symlink_to(tmp_path / "outside")
    source = FolderListing("docs", root)
    with pytest.raises(EntryRefused):
        source.open("docs/\u00e9\u00e9/\u00e9\u00e9.txt")
    (root / "o\u0308\u00f6.txt").symlink_to(tmp_path / "outside" / "\u00e9e\u0301.txt")
    with pytest.raises(EntryRefused) as refused:
        source.open("docs/\u00f6\u00f6.txt")
    assert refused.value.reason == "symbolic_link"


def test_what_cannot_be_listed(tmp_path: Path) -> None:
    with pytest.raises(SourceMissing):
        next(FolderListing("docs", tmp_path / "nowhere").listing())
    (tmp_path / "nothing").mkdir()
    with pytest.raises(SourceEmpty):
        next(FolderListing("docs", tmp_path / "nothing").listing())
    listing = FolderListing("docs", tmp_path / "nothing", allow_empty=True).listing()
    assert list(listing) == []
    assert listing.report().entries == 0


@pytest.mark.parametrize(
    ("given", "kept"),
    [(5, 5), (2**63, LATEST_NS), (-(2**63) - 9, -LATEST_NS)],
    ids=["usual", "beyond", "before"],
)
def test_times_that_do_not_fit(given: int, kept: int) -> None:
    assert within_64_bits(given) == kept


def test_a_declared_folder_is_opened_as_it_is_declared(root: Path, tmp_path: Path) -> None:
    file = tmp_path / "sources.yaml"
    file.write_text(
        "sources:\n  docs: {kind: folder, path: root, workload: w, max_file_bytes: 6}\n"
        "  none: {kind: folder, path: none, workload: w, allow_empty: true}\n"
    )
    (tmp_path / "none").mkdir()
    docs, none = read_sources(file)
    assert isinstance(docs, FolderSource)
    assert isinstance(none, FolderSource)
    source = open_place(docs)
    assert (source.name, source.kind, source.holds) == ("docs", "directory", "files")
    assert source.location == str(root)
    assert source.fingerprint() is None
    found = pl.concat(source.listing())
    assert found["excluded"].value_counts().filter(excluded="too_large")["count"].to_list() == [4]
    assert list(open_place(none).listing()) == []


def test_a_name_that_is_no_text_is_opened_again(root: Path) -> None:
    try:
        (root / os.fsdecode(b"\xff.txt")).write_bytes(b"bytes")
    except OSError:
        pytest.skip("this file system takes no such name")
    source = FolderListing("docs", root)
    (identity,) = (
        pl.concat(source.listing()).filter(pl.col("place") == b"\xff.txt")["document_id"].to_list()
    )
    with source.open(identity) as stream:
        assert stream.read() == b"bytes"
