"""Is there room for a manifest: asked first, and refused with nothing written."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_assets import disk_room
from pipeline_assets.disk_room import LEDGER_BYTES, RecordBytes
from pipeline_assets.expected_errors import EXPECTED_ERRORS
from pipeline_assets.prepare.freeze import freeze_manifest
from pipeline_assets.prepare.room import (
    TYPICAL,
    NotEnoughRoom,
    decide_room,
    needed_for,
    or_typical,
    require_room,
)
from resources.context import open_context
from resources.ledger.manifests import next_manifest_id
from resources.settings import Settings
from tests.support.clock import FrozenClock
from tests.support.small_archive import KEY, PUMP, Archive, manual

EACH = RecordBytes(request=100.0, result=50.0, frame=10.0, ledger=1000.0)


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    """Return an archive of one document before any stage."""
    folder, clock = tmp_path / "documents", FrozenClock()
    settings = Settings(state=tmp_path / "state", source=folder)
    with open_context(settings, clock=clock, rng=random.Random(7)) as context:
        archive = Archive(folder, settings, context, clock)
        archive.write(PUMP, manual("Water Pump", "WP-100"))
        yield archive


@pytest.mark.parametrize(
    ("needed", "free", "reserve", "fits"),
    [
        (0, 10, 10, True),
        (0, 9, 10, False),
        (5, 15, 10, True),
        (6, 15, 10, False),
        (10**13, 10**12, 0, False),
    ],
)
def test_the_reserve_decides(needed: int, free: int, reserve: int, fits: bool) -> None:
    assert (decide_room(needed, free, reserve) is None) is fits


@given(needed=st.integers(0, 10**14), free=st.integers(0, 10**14), reserve=st.integers(0, 10**13))
def test_what_fits_leaves_the_reserve(needed: int, free: int, reserve: int) -> None:
    if decide_room(needed, free, reserve) is None:
        assert free - needed >= reserve
    else:
        assert free - needed < reserve


def test_what_is_said_of_a_shortage() -> None:
    assert decide_room(6_358_000_000, 2_000_000_000, 1_024_000_000) == (
        "about 6,358 MB are needed and 2,000 MB are free, of which 1,024 MB are to stay free"
    )


@pytest.mark.parametrize(
    ("spooled", "artifacts"),
    [
        pytest.param(False, 10 * (88.3 + 100 + 60), id="results-come-beside-requests"),
        pytest.param(True, 10 * (88.3 + 100 + 100), id="the-spool-is-the-larger"),
    ],
)
def test_what_records_need(spooled: bool, artifacts: float) -> None:
    assert needed_for(10, EACH, spooled=spooled) == {
        "artifacts": round(artifacts),
        "ledger": 10_000,
    }


def test_parts_that_no_record_has_cost_yet_are_typical() -> None:
    measured = RecordBytes(request=100.0, result=None, frame=None, ledger=7.0)
    assert or_typical(measured) == RecordBytes(100.0, TYPICAL.result, TYPICAL.frame, 7.0)
    assert or_typical(RecordBytes(None, None, None, LEDGER_BYTES)) == TYPICAL


def test_too_little_room_stops_the_freeze_before_anything_is_written(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive.scan()
    version = archive.version()
    archive._parse(version)
    usage = type(shutil.disk_usage("/"))
    monkeypatch.setattr(
        disk_room.shutil, "disk_usage", lambda _: usage(10**10, 9 * 10**9, 1_000_000_000)
    )
    with pytest.raises(NotEnoughRoom) as refused:
        freeze_manifest(archive.context, version)
    said = str(refused.value)
    assert "the disk of artifacts and ledger has no room for 1 more record" in said
    assert "1,000 MB are free, of which 1,024 MB are to stay free" in said
    assert "TALLYBOOK_DISK_RESERVE_MB" in said
    store = archive.context.artifacts
    assert not [*store.names("request"), *store.names("manifest")]
    assert next_manifest_id(archive.context.ledger, version.version_no, KEY).endswith("-m1")
    monkeypatch.undo()
    assert freeze_manifest(archive.context, version).expected == 1


def test_what_is_far_too_much_is_refused(archive: Archive) -> None:
    archive.prepare()
    number = archive.version().version_no
    require_room(archive.context, number, 1, spooled=True)
    with pytest.raises(NotEnoughRoom, match="1000000000000 more records"):
        require_room(archive.context, number, 10**12, spooled=True)


def test_the_refusal_is_told_in_one_line() -> None:
    assert NotEnoughRoom in EXPECTED_ERRORS
