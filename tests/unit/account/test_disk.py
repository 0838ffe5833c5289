"""What is used, what is free, and what is still to come."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_assets import disk_room
from pipeline_assets.account.disk import (
    Ahead,
    all_enough,
    count_artifacts,
    disk_facts,
    foresee,
    is_enough,
)
from pipeline_assets.disk_room import LEDGER_BYTES, RecordBytes
from pipeline_assets.known_version import VersionNeverUsed
from resources.artifacts import ArtifactStore
from tests.support.small_archive import Archive, manual

NOTHING = Ahead(unparsed=0, pending=0, unanswered=0, retries=0, open=0)
EACH = RecordBytes(request=100.0, result=50.0, frame=10.0, ledger=1000.0)
UNKNOWN = RecordBytes(request=None, result=None, frame=None, ledger=1000.0)


@pytest.mark.parametrize(
    ("document", "record", "ahead", "artifacts", "ledger", "unknown"),
    [
        pytest.param(None, UNKNOWN, NOTHING, 0, 0, (), id="nothing-is-ahead"),
        pytest.param(
            400.0,
            EACH,
            Ahead(unparsed=1, pending=2, unanswered=0, retries=0, open=0),
            400 + 2 * 160,
            2000,
            (),
            id="pending-costs-all-parts",
        ),
        pytest.param(
            None,
            EACH,
            Ahead(unparsed=0, pending=0, unanswered=3, retries=1, open=5),
            100 + 3 * 60,
            5000,
            (),
            id="a-record-has-its-request",
        ),
        pytest.param(
            None,
            EACH,
            Ahead(unparsed=1, pending=1, unanswered=0, retries=0, open=0),
            None,
            1000,
            ("document",),
            id="no-document-was-parsed",
        ),
        pytest.param(
            400.0,
            UNKNOWN,
            Ahead(unparsed=0, pending=1, unanswered=0, retries=0, open=0),
            None,
            1000,
            ("request", "result", "frame"),
            id="no-record-was-sent",
        ),
    ],
)
def test_what_is_foreseen(
    document: float | None,
    record: RecordBytes,
    ahead: Ahead,
    artifacts: int | None,
    ledger: int,
    unknown: tuple[str, ...],
) -> None:
    to_come, missing = foresee(document, record, ahead)
    assert to_come == {"artifacts": artifacts, "ledger": ledger}
    assert missing == unknown


@given(few=st.integers(0, 10**6), more=st.integers(0, 10**6), size=st.floats(0, 10**6, width=32))
def test_more_records_never_take_less(few: int, more: int, size: float) -> None:
    def needed(count: int) -> int | None:
        ahead = Ahead(unparsed=0, pending=count, unanswered=0, retries=0, open=0)
        return foresee(None, RecordBytes(size, size, size, size), ahead)[0]["artifacts"]

    one, other = needed(min(few, more)), needed(max(few, more))
    assert one is not None
    assert other is not None
    assert one <= other


@pytest.mark.parametrize(
    ("free", "forecast", "enough"),
    [
        (100, 0, True),
        (100, 90, True),
        (100, 91, False),
        (10, 0, True),
        (10, None, None),
        (9, None, False),
        (100, None, None),
        (None, 5, None),
    ],
)
def test_is_it_enough(free: int | None, forecast: int | None, enough: bool | None) -> None:
    assert is_enough(free, forecast, reserve=10) is enough


@pytest.mark.parametrize(
    ("places", "enough"),
    [
        ([True], True),
        ([True, False], False),
        ([None, False], False),
        ([True, None], None),
        ([], None),
    ],
)
def test_one_disk_without_room_is_enough_to_stop(
    places: list[bool | None], enough: bool | None
) -> None:
    assert all_enough(places) is enough


def test_every_file_of_the_store_is_counted(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path)
    for text in (b"one", b"another", b"the third"):
        store.put("text", text)
    store.put("result", b"answer")
    sizes, files = count_artifacts(store)
    assert (sizes["text"], files["text"]) == (19, 3)
    assert (sizes["result"], files["result"]) == (6, 1)
    assert (sizes["report"], files["report"]) == (0, 0)
    found = sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())
    assert sum(sizes.values()) == found


def test_a_processed_archive(read_archive: Archive) -> None:
    context = read_archive.context
    found = disk_facts(context, read_archive.version().version_no)
    root = context.artifacts.root
    assert found.artifact_bytes == sum(p.stat().st_size for p in root.rglob("*") if p.is_file())
    assert sum(found.artifact_files.values()) == sum(p.is_file() for p in root.rglob("*"))
    assert found.ledger_bytes > 100_000
    assert found.per_record.request == round(found.artifacts["request"] / 3, 1)
    assert found.per_record.result == round(found.artifacts["result"] / 3, 1)
    assert found.per_record.frame == round(found.artifacts["frame"] / 3, 1)
    assert found.per_record.ledger == LEDGER_BYTES, "too few records to tell"
    assert found.ahead == Ahead(unparsed=0, pending=0, unanswered=0, retries=0, open=1)
    assert found.forecast == round(LEDGER_BYTES)
    assert found.unknown == ()
    if context.ledger.dialect.name == "sqlite":
        (place,) = found.places
        assert place.holds == ("artifacts", "ledger")
        assert found.enough is (place.free is not None and place.free > found.reserve + 10_000)
    else:
        files, ledger = found.places
        assert (files.holds, ledger.holds) == (("artifacts",), ("ledger",))
        assert files.free is not None
        assert (ledger.free, ledger.enough) == (None, None)


def test_with_enough_records_the_ledger_tells_its_own_share(
    read_archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_room, "ENOUGH_TO_TELL", 1)
    found = disk_facts(read_archive.context, read_archive.version().version_no)
    # Six documents and three records: whoever has no record takes room too.
    assert found.per_record.ledger == round(found.ledger_bytes / 6, 1)


def test_what_no_record_has_cost_yet_is_not_known(fresh_archive: Archive) -> None:
    fresh_archive.scan()
    number = fresh_archive.version().version_no
    found = disk_facts(fresh_archive.context, number)
    assert found.ahead.pending > 0
    assert (found.ahead.unparsed, found.per_document) == (found.ahead.pending, None)
    assert found.forecast is None
    assert found.unknown == ("document", "request", "result", "frame")
    fresh_archive.process()
    fresh_archive.write("new.txt", manual("Band Saw", "BS-9"))
    fresh_archive.scan()
    later = disk_facts(fresh_archive.context, number)
    assert (later.ahead.unparsed, later.ahead.pending) == (1, 1)
    assert later.forecast is not None
    assert later.forecast > 0


def test_too_little_is_said(read_archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_room.shutil, "disk_usage", _disk_of(10_000_000))
    found = disk_facts(read_archive.context, read_archive.version().version_no)
    assert found.enough is False


def test_a_version_that_is_not_there(read_archive: Archive) -> None:
    with pytest.raises(VersionNeverUsed, match="99"):
        disk_facts(read_archive.context, 99)


def _disk_of(free: int) -> Callable[[Path], object]:
    usage = type(shutil.disk_usage("/"))
    return lambda _: usage(2 * free, free, free)
