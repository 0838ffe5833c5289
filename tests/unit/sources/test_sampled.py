"""A source that shows only chosen documents of another."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from resources.sources.declared import (
    DeclaredSource,
    FolderPlace,
    FolderSource,
    QueueSource,
    TableSource,
)
from resources.sources.folder import FolderListing
from resources.sources.listing import ListedSource
from resources.sources.opening import open_place
from resources.sources.port import EntryRefused, SourceMissing
from resources.sources.sampled import SampledSource, open_to_look
from resources.sources.table_file import open_table


@pytest.fixture
def folder(tmp_path: Path) -> FolderSource:
    """Return a folder of four files, and something beside it that must stay out of reach."""
    root = tmp_path / "documents"
    (root / "sub").mkdir(parents=True)
    for name in ("a.txt", "b.txt", "sub/c.txt", "sub/d.txt"):
        (root / name).write_text(f"text of {name}")
    (tmp_path / "secret.txt").write_text("outside")
    return FolderSource(name="shop", kind="folder", path=root, workload="equipment_manuals")


@pytest.fixture
def table(tmp_path: Path) -> TableSource:
    """Return a table of three rows."""
    file = tmp_path / "rows.csv"
    file.write_text("id,text\n1,one\n2,two\n3,three\n")
    return TableSource(
        name="rows", kind="table", path=file, key="id", text=["text"], workload="support_tickets"
    )


def listed(source: ListedSource) -> pl.DataFrame:
    listing = source.listing()
    frames = list(listing)
    assert listing.report().entries == sum(frame.height for frame in frames)
    return pl.concat(frames)


def test_only_chosen_files_are_listed_read_and_opened(folder: FolderSource) -> None:
    source = SampledSource(open_place(folder), ["shop/sub/c.txt", "shop/a.txt", "shop/gone.txt"])
    assert (source.name, source.kind, source.holds) == ("shop", "directory", "files")
    assert source.location == str(folder.path)
    frame = listed(source)
    assert sorted(frame["document_id"]) == ["shop/a.txt", "shop/sub/c.txt"]
    whole = listed(FolderListing("shop", folder.path))
    read = pl.concat(source.read(whole))
    assert sorted(read["document_id"]) == ["shop/a.txt", "shop/sub/c.txt"]
    assert read["checksum"].null_count() == 0
    with source.open("shop/a.txt") as stream:
        assert stream.read() == b"text of a.txt"


@pytest.mark.parametrize(
    "document_id",
    [
        pytest.param("shop/b.txt", id="not-chosen"),
        pytest.param("shop/../secret.txt", id="outside"),
        pytest.param("other/a.txt", id="another-source"),
    ],
)
def test_nothing_else_can_be_opened(folder: FolderSource, document_id: str) -> None:
    source = SampledSource(open_place(folder), ["shop/a.txt"])
    with pytest.raises(EntryRefused, match="not among the chosen"):
        source.open(document_id)


def test_a_chosen_name_outside_the_root_stays_out_of_reach(folder: FolderSource) -> None:
    source = SampledSource(open_place(folder), ["shop/../secret.txt"])
    with pytest.raises(EntryRefused):
        source.open("shop/../secret.txt")


def test_chosen_rows_of_a_table(table: TableSource) -> None:
    whole = listed(open_table(table))
    chosen = whole["document_id"].to_list()[1:]
    source = SampledSource(open_table(table), chosen)
    assert (source.kind, source.holds) == ("table", "rows")
    assert listed(source)["document_id"].to_list() == chosen
    texts = pl.concat(source.texts(whole["document_id"]))
    assert sorted(texts["document_id"]) == sorted(chosen)


def test_nothing_chosen_is_there(folder: FolderSource) -> None:
    listing = SampledSource(open_place(folder), ["shop/gone.txt"]).listing()
    assert list(listing) == []
    assert listing.report().complete


def test_a_missing_place_is_no_empty_sample(folder: FolderSource) -> None:
    missing = folder.model_copy(update={"path": folder.path / "nowhere"})
    with pytest.raises(SourceMissing):
        next(SampledSource(open_place(missing), ["shop/a.txt"]).listing(), None)


def test_a_fingerprint_names_what_was_chosen(table: TableSource, folder: FolderSource) -> None:
    inner = open_table(table)
    inner._now_ns = lambda: 2**62  # the file is old enough to be told by its facts
    ids = listed(inner)["document_id"].to_list()
    first, same, other = (SampledSource(inner, some) for some in (ids, ids[::-1], ids[:1]))
    assert first.fingerprint() is not None
    assert first.fingerprint() == same.fingerprint() != other.fingerprint()
    assert SampledSource(open_place(folder), ["shop/a.txt"]).fingerprint() is None


def test_a_queue_is_looked_at_by_its_place(folder: FolderSource, tmp_path: Path) -> None:
    events = tmp_path / "events"
    events.mkdir()
    queue: DeclaredSource = QueueSource(
        name="inbox",
        kind="queue",
        transport="folder",
        path=events,
        workload="equipment_manuals",
        documents=FolderPlace(kind="folder", path=folder.path),
    )
    (events / "one.json").write_text("{}")
    found = listed(open_to_look(queue))
    assert "inbox/a.txt" in found["document_id"].to_list()
    assert (events / "one.json").is_file(), "no event was taken"
