"""A folder in which single documents are looked for, by names that are spelt in some way."""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl
import pytest

from resources.sources import directory
from resources.sources.event_queue.places import FolderPlace

NAMES = [
    "plain.txt", "cafe\u0301.txt", "caf\u00e9/cre\u0301me.txt", "u\u0308/\u00fc.txt",
    "5 \u212a/a;\u037e", "marks e\u0323\u0302-e\u0302\u0323",
]  # fmt: skip


@pytest.fixture
def place(tmp_path: Path) -> FolderPlace:
    """Return a place with a file under each name."""
    root = tmp_path / "root"
    for name in NAMES:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    return FolderPlace("docs", root, max_file_bytes=100, allow_empty=False)


def test_each_name_is_found_by_its_id_as_it_is_listed(place: FolderPlace) -> None:
    listed = pl.concat(place.listing())
    assert sorted(listed["place"]) == sorted(name.encode() for name in NAMES)
    ids = listed["document_id"].to_list()
    seen = list(place.look_up([*ids, "docs/caf\u00e9/gone", "docs/K", "docs/\u00e9/\u00e9"]))
    assert [each.row for each in seen[:-3]] == listed.rows()
    assert [each.outcome for each in seen[-3:]] == ["gone"] * 3
    for identity, path in zip(ids, listed["place"], strict=True):
        with place.open(identity) as stream:
            assert stream.read() == path


def test_a_folder_is_listed_once_for_all_of_its_names(
    place: FolderPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    scandir = os.scandir

    def counted(descriptor: int) -> object:
        asked.append(descriptor)
        return scandir(descriptor)

    monkeypatch.setattr(directory.os, "scandir", counted)
    ids = [f"docs/caf\u00e9/{number}\u00e9" for number in range(50)]
    assert {each.outcome for each in place.look_up(ids)} == {"gone"}
    assert len(asked) == 2, "the root and the folder"


def test_what_cannot_be_listed_is_not_gone(
    place: FolderPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    scandir = os.scandir

    def refused(descriptor: int) -> object:
        if os.path.samestat(os.fstat(descriptor), root):
            return scandir(descriptor)
        raise PermissionError(13, "no")

    root = Path(place.location).stat()
    monkeypatch.setattr(directory.os, "scandir", refused)
    (seen,) = place.look_up(["docs/caf\u00e9/\u00e9"])
    assert (seen.outcome, seen.problem) == ("failed", "folder could not be listed (EACCES)")
