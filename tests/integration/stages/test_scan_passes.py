"""One pass over a source: interrupted, in frames, unsettled, unchanged, partial, repeated."""

from __future__ import annotations

import hashlib
import random
import time
from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import polars as pl
import pytest

from pipeline_assets.ingest import scan as scan_module
from pipeline_assets.ingest.look import Look, look_at_source
from pipeline_assets.ingest.scan import ScanReport, scan_source
from resources.context import Context
from resources.ledger import scan_storage
from resources.ledger.schema import metadata, scan_reads, snapshots, sources
from resources.ledger.source_snapshots import (
    SourceOfOtherWorkload,
    newest_digests,
    present_documents,
)
from resources.sources import folder as folder_module
from resources.sources.declared import FolderSource
from resources.sources.folder import FolderListing
from resources.sources.listing import Listing
from resources.sources.port import SourceRepeats, SourceUnreadable, WalkReport
from tests.integration.stages.support import ON_ONE_DATABASE, Shop
from tests.support.memory_source import WORKLOAD, Shelf, declared

SECOND = 1_000_000_000


class Killed(BaseException):
    """The process is gone."""


def scan(context: Context, shelf: Shelf, settle: int = 0) -> ScanReport:
    return scan_source(context, shelf, shelf.declared, settle_seconds=settle)


def look(context: Context, shelf: Shelf, settle: int = 0, seconds: float = 60) -> Look:
    return look_at_source(
        context,
        shelf,
        shelf.declared,
        now_ns=time.time_ns(),
        settle_seconds=settle,
        seconds=seconds,
    )


def held(context: Context) -> dict[str, str]:
    """Document id → checksum, or the reason why it has none."""
    rows = present_documents(context.ledger, WORKLOAD).select("document_id", "checksum", "excluded")
    return {name: checksum or excluded for name, checksum, excluded in rows.iter_rows()}


def count(context: Context, table: Any) -> int:
    with context.ledger.read() as connection:
        return len(connection.execute(table.select()).all())


def kill_at(wanted: str) -> Any:
    def before_read(path: str) -> None:
        if path == wanted:
            raise Killed

    return before_read


def files(count: int) -> dict[str, bytes | str]:
    return {f"f{number:02d}": b"x" * (number + 1) for number in range(count)}


def test_an_interrupted_scan_reads_nothing_twice(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan_module, "KEPT_ROWS", 1)
    shelf = Shelf(files(10), rows=4, before_read=kill_at("f07"))
    with pytest.raises(Killed):
        scan(context, shelf)
    assert len(shelf.opened) == 7
    assert count(context, scan_reads) == 7
    assert count(context, snapshots) == 0
    shelf.before_read = lambda _path: None
    report = scan(context, shelf)
    assert sorted(shelf.opened) == sorted(shelf.files), "each once"
    assert (report.snapshot.added, report.read) == (10, 3)
    assert count(context, scan_reads) == 0
    whole = Shelf(files(10), name="whole")
    scan(context, whole)
    digests = dict(newest_digests(context.ledger))
    assert digests["shelf"] == expected_digest("shelf", shelf.files)
    assert digests["whole"] == expected_digest("whole", shelf.files)


def test_what_changed_after_an_interruption_counts_as_it_is_now(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan_module, "KEPT_ROWS", 1)
    scan(context, Shelf({"f00": b"as it was"}))
    shelf = Shelf(files(6), rows=2, before_read=kill_at("f05"))
    with pytest.raises(Killed):
        scan(context, shelf)
    # Back as it was, other bytes, gone, excluded: nothing that was kept of them may count.
    shelf.files |= {"f00": b"as it was", "f01": b"other bytes", "f03": "symbolic_link"}
    del shelf.files["f02"]
    shelf.before_read, shelf.opened = (lambda _path: None), []
    report = scan(context, shelf)
    assert shelf.opened == ["f01", "f05"]
    assert (report.snapshot.added, report.snapshot.changed, report.snapshot.removed) == (4, 0, 0)
    assert held(context) == expected_held("shelf", shelf.files)


def test_frames_are_smaller_than_the_source(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan_storage, "SLICE_ROWS", 2)
    shelf = Shelf(files(11) | {"in/a": b"1", "in/b": b"22"}, rows=3)
    assert scan(context, shelf).snapshot.added == 13
    shelf.files |= {"f00": b"changed!!", "f05": "symbolic_link", "f99": b"new"}
    for path in ("f03", "f09", "in/a", "in/b"):
        del shelf.files[path]
    shelf.unlisted = ("in",)
    report = scan(context, shelf)
    found = report.snapshot
    assert (found.added, found.changed, found.removed, found.unchanged) == (1, 2, 2, 7)
    assert (found.documents, found.excluded) == (12, 1)
    whole = shelf.files | {"in/a": b"1", "in/b": b"22"}
    assert held(context) == expected_held("shelf", whole)
    assert found.digest == expected_digest("shelf", whole)
    again = scan(context, shelf)
    assert not again.snapshot.written
    assert (again.snapshot.unchanged, again.read) == (10, 0)


@ON_ONE_DATABASE
@pytest.mark.parametrize("seed", range(6))
def test_counts_are_those_of_sets(
    context: Context, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against the rule in its plainest form, over several scans of random contents."""
    rng = random.Random(seed)
    monkeypatch.setattr(scan_storage, "SLICE_ROWS", rng.randint(1, 6))
    shelf = Shelf({}, rows=rng.randint(1, 5), name=f"s{seed}")
    before: dict[str, bytes | str] = {}
    for step in range(6):
        names = [f"d{number}" for number in range(12)] + ["é/x", "z z/%"]
        now: dict[str, bytes | str] = {
            name: rng.choice([b"a", b"bb", b"ccc", "empty", "symbolic_link"])
            for name in rng.sample(names, rng.randint(1, 12))
        }
        shelf.files, shelf.told = now, tuple(rng.sample(names, 4))
        found = scan(context, shelf).snapshot
        common = before.keys() & now.keys()
        assert found.added == len(now.keys() - before.keys())
        assert found.removed == len(before.keys() - now.keys())
        assert found.changed == sum(before[name] != now[name] for name in common)
        assert found.unchanged == sum(before[name] == now[name] for name in common)
        assert found.written == (before != now or step == 0)
        assert (found.documents, found.digest) == (len(now), expected_digest(shelf.name, now))
        assert held(context) == expected_held(shelf.name, now)
        before = now


def expected_held(name: str, now: dict[str, bytes | str]) -> dict[str, str]:
    return {
        identity(name, path): checksum or str(excluded) for path, checksum, excluded in told(now)
    }


def expected_digest(name: str, now: dict[str, bytes | str]) -> str:
    """SHA-256 over sorted rows as JSON lines, in memory."""
    rows = sorted(
        (identity(name, path), checksum, excluded) for path, checksum, excluded in told(now)
    )
    lines = [msgspec.json.encode(row) + b"\n" for row in rows]
    return hashlib.sha256(b"".join(lines)).hexdigest()


def told(now: dict[str, bytes | str]) -> list[tuple[str, str | None, str | None]]:
    return [
        (path, None, content)
        if isinstance(content, str)
        else (path, hashlib.sha256(content).hexdigest(), None)
        for path, content in now.items()
    ]


def identity(name: str, path: str) -> str:
    return f"{name}/{path.replace('%', '%25')}"


def test_touched_documents_are_read_and_nothing_changed(context: Context) -> None:
    shelf = Shelf(files(3))
    scan(context, shelf)
    shelf.times["f01"] = 12345
    report = scan(context, shelf)
    assert (report.read, report.snapshot.written) == (1, False)
    assert scan(context, shelf).read == 0, "the newer time is remembered"


def test_a_mark_decides_where_there_is_one(context: Context) -> None:
    shelf = Shelf({"a": b"1", "b": b"2"}, marks={"a": "m1", "b": "m1"})
    now = time.time_ns()
    shelf.times = {"a": now, "b": now}
    scan(context, shelf)
    assert scan(context, shelf).read == 0, "however young"
    shelf.marks["b"] = "m2"
    assert scan(context, shelf).read == 1
    assert scan(context, shelf).read == 0


def test_what_is_still_written_is_left_for_the_next_scan(context: Context) -> None:
    shelf = Shelf({"old": b"1", "known": b"22"})
    scan(context, shelf)
    now = time.time_ns()
    shelf.files |= {"known": b"half of i", "new": b"ha", "empty": "empty"}
    shelf.times = {"known": now, "new": now, "empty": now}
    report = scan(context, shelf, settle=60)
    assert (report.unsettled, report.read, report.snapshot.written) == (3, 0, False)
    assert sorted(held(context)) == ["shelf/known", "shelf/old"]
    shelf.times = {name: now - 61 * SECOND for name in shelf.times}
    report = scan(context, shelf, settle=60)
    assert (report.unsettled, report.snapshot.added, report.snapshot.changed) == (0, 2, 1)


def test_the_same_fingerprint_ends_a_scan_at_once(context: Context) -> None:
    shelf = Shelf(files(3), print="one")
    first = scan(context, shelf)
    begun = shelf.listings
    again = scan(context, shelf)
    assert shelf.listings == begun
    assert again.snapshot == replace(first.snapshot, added=0, unchanged=3, written=False)
    assert scan_source(context, shelf, declared("shelf").model_copy(update={"max_file_bytes": 9}))
    assert shelf.listings == begun + 1, "declared otherwise"
    shelf.print = "two"
    scan(context, shelf)
    assert shelf.listings == begun + 2


@ON_ONE_DATABASE
@pytest.mark.parametrize("why", ["unlisted", "partial", "unsettled"])
def test_what_was_not_seen_whole_has_no_fingerprint(context: Context, why: str) -> None:
    shelf = Shelf(files(3), print="one")
    if why == "unlisted":
        shelf.unlisted = ("in",)
    shelf.partial = why == "partial"
    if why == "unsettled":
        shelf.times = {"f00": time.time_ns()}
    scan(context, shelf, settle=60)
    begun = shelf.listings
    scan(context, shelf, settle=60)
    assert shelf.listings == begun + 1


def test_a_partial_listing_removes_what_it_knows_to_be_gone(context: Context) -> None:
    scan(context, Shelf(files(5)))
    some = Shelf({"f01": b"changed", "f09": b"new"}, partial=True, gone=("f03", "f01", "nobody"))
    report = scan(context, some)
    found = report.snapshot
    assert (found.added, found.changed, found.removed, found.documents) == (1, 1, 1, 5)
    assert sorted(held(context)) == [
        f"shelf/f{number}" for number in ("00", "01", "02", "04", "09")
    ]
    assert some.settled == 1
    nothing = Shelf({}, partial=True)
    assert not scan(context, nothing).snapshot.written
    assert nothing.settled == 1


@dataclass
class Twice(Shelf):
    """Names every document in two frames."""

    def _frames(self) -> Generator[pl.DataFrame, None, WalkReport]:
        report = yield from super()._frames()
        yield from super()._frames()
        return report


@pytest.mark.parametrize("told", [pytest.param(True, id="told"), pytest.param(False, id="read")])
def test_a_document_that_is_listed_twice(context: Context, told: bool) -> None:
    shelf = Twice(files(2), told=("f00", "f01") if told else ())
    with pytest.raises(SourceRepeats, match="more than once"):
        scan(context, shelf)
    assert held(context) == {}
    scan(context, Shelf(files(2)))
    with pytest.raises(SourceRepeats):
        scan(context, shelf)
    assert count(context, snapshots) == 1


def test_names_that_fold_to_one_id_in_different_frames(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_module, "FIRST_ROWS", 1)
    monkeypatch.setattr(folder_module, "LISTED_ROWS", 1)
    for name in ("caf\u00e9", "cafe\u0301", "tea"):
        shop.write(name, name.encode())
    source = FolderListing("shop", shop.folder)
    assert [frame.height for frame in source.listing()] == [1, 1, 1]
    report = scan_source(shop.context, source, declared("shop"))
    assert (report.snapshot.documents, report.snapshot.excluded) == (3, 2)
    assert sorted(held(shop.context).values())[1:] == ["id_collision", "id_collision"]
    assert not scan_source(shop.context, source, declared("shop")).snapshot.written


def test_a_source_belongs_to_one_workload(context: Context) -> None:
    shelf = Shelf(files(1))
    scan(context, shelf)
    with pytest.raises(SourceOfOtherWorkload, match="belongs to workload 'equipment_manuals'"):
        scan_source(context, shelf, declared("shelf", "support_tickets"))


def test_a_listing_that_breaks_off_stores_nothing(context: Context) -> None:
    @dataclass
    class Breaking(Shelf):
        def listing(self) -> Listing:
            def frames() -> Generator[pl.DataFrame, None, WalkReport]:
                yield from super(Breaking, self)._frames()
                raise SourceUnreadable("the line was cut")

            return Listing(frames())

    scan(context, Shelf(files(3)))
    before = held(context)
    with pytest.raises(SourceUnreadable):
        scan(context, Breaking({"f00": b"other"}))
    assert held(context) == before
    report = scan(context, Shelf({"f00": b"other"}))
    assert (report.read, report.snapshot.changed, report.snapshot.removed) == (0, 1, 2)


def test_a_look_tells_what_a_scan_would_find(context: Context) -> None:
    shelf = Shelf(files(4), rows=2)
    first = look(context, shelf)
    assert (first.new, first.anything, first.finished) == (4, True, True)
    assert count(context, sources) == 0, "nothing is written"
    scan(context, shelf)
    assert look(context, shelf) == Look()
    now = time.time_ns()
    shelf.files |= {"f01": b"changed", "f08": b"new", "f09": b"young"}
    shelf.times["f09"] = now
    del shelf.files["f02"]
    before = {table.name: count(context, table) for table in metadata.sorted_tables}
    found = look(context, shelf, settle=60)
    assert (found.new, found.changed, found.removed, found.unsettled) == (1, 1, 1, 1)
    assert {table.name: count(context, table) for table in metadata.sorted_tables} == before
    assert look(context, shelf, settle=60).mark == found.mark, "the same as long as nothing changes"
    shelf.files["f08"] = b"new and longer"
    assert look(context, shelf, settle=60).mark not in ("", found.mark)
    short = look(context, shelf, seconds=0)
    assert (short.finished, short.removed) == (False, 0)


@ON_ONE_DATABASE
def test_a_look_at_what_needs_no_scan(context: Context) -> None:
    shelf = Shelf(files(2), broken=("f01",), print="p")
    scan(context, shelf)
    begun = shelf.listings
    assert look(context, shelf) == Look()
    assert shelf.listings == begun, "the fingerprint is the same"
    shelf.print = None
    assert look(context, shelf) == Look(), "what could not be read calls for nothing"
    del shelf.files["f00"]
    shelf.partial, shelf.gone = True, ("f00",)
    assert look(context, shelf).removed == 1
    shelf.partial, shelf.unlisted = False, ("",)
    assert look(context, shelf) == Look()


@ON_ONE_DATABASE
def test_a_young_exclusion_of_a_real_folder_is_left_alone(shop: Shop) -> None:
    """A file that was only just made is empty: that is no reason to exclude it."""
    shop.write("begun.txt", b"")
    shop.write("old.txt", b"text")
    one = FolderSource.model_validate(
        {"name": "shop", "kind": "folder", "path": shop.folder, "workload": WORKLOAD}
    )
    report = scan_source(shop.context, FolderListing("shop", shop.folder), one, settle_seconds=3600)
    assert (report.unsettled, report.snapshot.documents) == (2, 0)
