"""Scanning: what a walk saw, what it could not see, and what stays known."""

from __future__ import annotations

import hashlib
import io
import os
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import pytest

from partitions.processing_version import ParserSpec
from pipeline_assets.ingest.keep_sources import SourceGone, keep_source
from pipeline_assets.ingest.parse_documents import parse_documents
from pipeline_assets.ingest.scan import ScanReport, scan_declared, scan_source
from pipeline_assets.parser_settings import parser_settings
from resources.artifacts import ArtifactDamaged
from resources.context import Context
from resources.ledger.schema import snapshots, source_entries, source_versions, sources
from resources.ledger.source_snapshots import SourceMoved, present_documents
from resources.sources.port import SourceMissing
from tests.integration.stages.support import FAN, ON_ONE_DATABASE, PUMP, Shop, manual
from tests.support.memory_source import WORKLOAD, Shelf

PARSER = ParserSpec(version="1", ocr_pages=1, max_pages=7)
"""Another parser key, under which nothing is parsed yet."""


def scan(context: Context, shelf: Shelf) -> ScanReport:
    return scan_source(context, shelf, shelf.declared)


def test_documents_below_an_unseen_folder_are_kept(context: Context) -> None:
    files: dict[str, bytes | str] = {
        "a": b"1",
        "in/b": b"22",
        "in/c": "symbolic_link",
        "into": b"4",
    }
    first = scan(context, Shelf(files))
    assert first.complete
    seen = Shelf({"a": b"1", "into": b"4"}, unlisted=("in",))
    report = scan(context, seen)
    assert not report.complete
    assert not report.snapshot.written
    assert replace(report.snapshot, written=True) == replace(
        first.snapshot, added=0, unchanged=2
    ), "an unseen folder changes nothing"
    assert present_documents(context.ledger, WORKLOAD).height == 4

    # Something else changes meanwhile: what was not seen still stands.
    report = scan(context, replace(seen, files={"a": b"new one"}))
    figures = (report.snapshot.changed, report.snapshot.removed, report.snapshot.documents)
    assert figures == (1, 1, 3)
    assert report.snapshot.excluded == 1
    assert set(present_documents(context.ledger, WORKLOAD)["document_id"]) == {
        "shelf/a",
        "shelf/in/b",
        "shelf/in/c",
    }

    # And when the folder is seen again, what is gone is gone.
    report = scan(context, Shelf({"a": b"new one", "in/b": b"22"}))
    assert (report.snapshot.removed, report.complete) == (1, True)


def test_nothing_is_read_again_that_did_not_change(context: Context) -> None:
    shelf = Shelf({"a": b"1", "b": b"22"})
    assert scan(context, shelf).read == 2
    assert scan(context, shelf).read == 0
    shelf.files["b"] = b"333"
    report = scan(context, shelf)
    assert (report.read, report.bytes_read) == (1, 3)
    assert shelf.opened == ["a", "b", "b"]


@ON_ONE_DATABASE
@pytest.mark.parametrize(
    ("before", "after", "added", "changed", "removed"),
    [
        pytest.param(b"1", b"22", 0, 1, 0, id="other-bytes"),
        pytest.param(b"1", "symbolic_link", 0, 1, 0, id="excluded-now"),
        pytest.param("symbolic_link", b"1", 0, 1, 0, id="readable-now"),
        pytest.param("symbolic_link", "broken_link", 0, 1, 0, id="another-reason"),
        pytest.param("symbolic_link", "symbolic_link", 0, 0, 0, id="the-same-reason"),
        pytest.param(None, b"1", 1, 0, 0, id="new"),
        pytest.param(b"1", None, 0, 0, 1, id="gone"),
    ],
)
def test_what_changed(
    context: Context,
    before: bytes | str | None,
    after: bytes | str | None,
    added: int,
    changed: int,
    removed: int,
) -> None:
    other: dict[str, bytes | str] = {"other": b"x"}
    scan(context, Shelf(other if before is None else other | {"a": before}))
    found = scan(context, Shelf(other if after is None else other | {"a": after})).snapshot
    assert (found.added, found.changed, found.removed) == (added, changed, removed)
    assert found.written == bool(added + changed + removed)


def test_bytes_that_come_back_are_the_same_version(context: Context) -> None:
    for content in (b"1", b"22", b"1"):
        scan(context, Shelf({"a": content}))
    with context.ledger.read() as connection:
        versions = connection.execute(source_versions.select()).all()
        entries = connection.execute(source_entries.select().order_by("entry_no")).all()
    assert len(versions) == 2
    assert len(entries) == 3
    assert entries[0].source_version_no == entries[2].source_version_no
    assert [entry.to_snapshot is None for entry in entries] == [False, False, True]


def test_a_document_that_cannot_be_read_is_excluded_with_its_reason(context: Context) -> None:
    report = scan(context, Shelf({"a": b"1", "b": b"2"}, broken=("b",)))
    assert (report.snapshot.documents, report.snapshot.excluded) == (2, 1)
    present = present_documents(context.ledger, WORKLOAD)
    assert present.select("document_id", "excluded", "detail").rows() == [
        ("shelf/a", None, ""),
        ("shelf/b", "unreadable", "told by the test"),
    ]


@ON_ONE_DATABASE
def test_a_time_beyond_the_year_2262_is_kept_within_bounds(shop: Shop) -> None:
    shop.write(PUMP, manual("Circulation Pump", "WP-100"))
    far = 2**63 + 10**9
    os.utime(shop.folder / PUMP, ns=(far, far))
    if (shop.folder / PUMP).stat().st_mtime_ns != far:
        pytest.skip("this file system does not keep such a time")
    assert scan_declared(shop.context)[0].snapshot.added == 1
    assert not scan_declared(shop.context)[0].snapshot.written


def test_a_missing_folder_leaves_no_trace(shop: Shop) -> None:
    shop.folder.rmdir()
    before = shop.counts()
    with pytest.raises(SourceMissing):
        scan_declared(shop.context)
    assert shop.counts() == before


def test_a_folder_that_was_moved(shop: Shop, tmp_path: Path) -> None:
    shop.fill()
    (first,) = scan_declared(shop.context)
    moved = tmp_path / "moved"
    shop.folder.rename(moved)
    settings = shop.context.settings.model_copy(update={"source": moved})
    context = replace(shop.context, settings=settings)
    with pytest.raises(SourceMoved, match="--source-moved"):
        scan_declared(context)
    (report,) = scan_declared(context, moved=True)
    assert not report.snapshot.written
    assert report.snapshot.digest == first.snapshot.digest
    assert shop.rows(sources)[0]["location"] == str(moved)
    assert len(shop.rows(snapshots)) == 1


@ON_ONE_DATABASE
def test_a_kept_copy_is_made_once_and_verified(shop: Shop) -> None:
    shelf = Shelf({"a": b"one", "b": b"other"})
    store = shop.context.artifacts
    checksum = hashlib.sha256(b"one").hexdigest()
    assert keep_source(store, shelf, "shelf/a", checksum).read_bytes() == b"one"
    keep_source(store, shelf, "shelf/a", checksum)
    assert shelf.opened == ["a"]
    with pytest.raises(SourceGone, match="changed after the scan"):
        keep_source(store, shelf, "shelf/b", "0" * 64)
    with pytest.raises(SourceGone, match="told by the test"):
        keep_source(store, Shelf({"b": b"x"}, broken=("b",)), "shelf/b", "1" * 64)


@ON_ONE_DATABASE
def test_a_disk_error_under_one_document_is_that_documents(shop: Shop) -> None:
    class Failing(io.BytesIO):
        def read(self, _size: int | None = -1) -> bytes:
            raise OSError(5, "Input/output error")

    class Sick(Shelf):
        def open(self, document_id: str) -> BinaryIO:
            return Failing()

    with pytest.raises(SourceGone, match="Input/output error"):
        keep_source(shop.context.artifacts, Sick({"a": b"1"}), "shelf/a", "0" * 64)


@ON_ONE_DATABASE
def test_documents_that_changed_after_the_scan_are_told(shop: Shop) -> None:
    shop.fill()
    scan_declared(shop.context)
    version = shop.version()
    shop.write(PUMP, b"changed after the scan, and longer than before " * 50)
    (shop.folder / FAN).unlink()
    report = parse_documents(shop.context, parser_settings(version.spec), version.spec.workload)
    assert report.gone == 2
    assert report.parsed == 0


@ON_ONE_DATABASE
def test_a_kept_copy_that_was_damaged_is_not_parsed(shop: Shop) -> None:
    shop.write(PUMP, manual("Circulation Pump", "WP-100"))
    shop.ingest()
    (row,) = shop.rows(source_versions)
    path = shop.context.artifacts.path("source", row["checksum"])
    path.write_bytes(path.read_bytes().replace(b"WP-100", b"WP-900"))
    other = parser_settings(shop.version().spec.model_copy(update={"parser": PARSER}))
    with pytest.raises(ArtifactDamaged, match="source artifact"):
        parse_documents(shop.context, other, WORKLOAD)


@ON_ONE_DATABASE
def test_a_document_of_another_source_is_parsed_from_its_kept_copy(shop: Shop) -> None:
    shop.write(PUMP, manual("Circulation Pump", "WP-100"))
    shop.ingest()
    settings = shop.context.settings.model_copy(
        update={"source_name": "other", "source": shop.folder / "nowhere"}
    )
    context = replace(shop.context, settings=settings)
    other = parser_settings(shop.version().spec.model_copy(update={"parser": PARSER}))
    report = parse_documents(context, other, WORKLOAD)
    assert (report.parsed, report.gone) == (1, 0)
