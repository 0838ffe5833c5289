"""The file of spans: private, bounded, never with a broken line of ours."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from pipeline_assets.tracing.exporter import ExportFailed
from pipeline_assets.tracing.spans import Span
from pipeline_assets.tracing.trace_file import FOLDER, TraceFile, read_trace

ONE = "0" * 31 + "1"


def spans(number: int) -> list[Span]:
    return [Span(f"{number:032x}", f"{number:016x}", None, "record", 1, 2, {"size": "x" * 200})]


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    file = TraceFile(tmp_path, {"service.name": "tallybook"})
    assert file.export([spans(1), spans(2)]) == 2
    assert file.export([spans(1)]) == 1
    assert read_trace(tmp_path, ONE) == spans(1), "each span once"
    assert read_trace(tmp_path, "f" * 32) == []
    modes = {
        path.name: stat.S_IMODE(path.stat().st_mode)
        for path in (tmp_path / FOLDER, tmp_path / FOLDER / "spans.jsonl")
    }
    assert modes == {FOLDER: 0o700, "spans.jsonl": 0o600}


def test_files_are_turned_and_the_oldest_dropped(tmp_path: Path) -> None:
    file = TraceFile(tmp_path, {}, largest_file=2000, largest_total=6000)
    for number in range(1, 101):
        file.export([spans(number)])
    files = sorted((tmp_path / FOLDER).glob("*.jsonl"))
    assert 1 < len(files) < 5
    assert sum(path.stat().st_size for path in files) <= 6000
    assert all(path.stat().st_size <= 2000 for path in files)
    assert read_trace(tmp_path, ONE) == [], "dropped"
    assert read_trace(tmp_path, f"{100:032x}") == spans(100)
    assert read_trace(tmp_path, f"{95:032x}") == spans(95), "in an older file"


def test_another_s_line_is_left_out(tmp_path: Path) -> None:
    file = TraceFile(tmp_path, {})
    file.export([spans(1)])
    with (tmp_path / FOLDER / "spans.jsonl").open("ab") as stream:
        stream.write(f"{ONE} is no trace\n".encode())
    file.export([spans(2)])
    assert read_trace(tmp_path, ONE) == spans(1)
    assert read_trace(tmp_path, f"{2:032x}") == spans(2)


def test_a_full_disk_leaves_no_broken_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = TraceFile(tmp_path, {})
    file.export([spans(1)])
    before = (tmp_path / FOLDER / "spans.jsonl").read_bytes()
    whole = os.write

    def half(descriptor: int, data: bytes) -> int:
        return whole(descriptor, data[: len(data) // 2])

    monkeypatch.setattr(os, "write", half)
    with pytest.raises(ExportFailed, match="folder of traces cannot be written"):
        file.export([spans(2)])
    assert (tmp_path / FOLDER / "spans.jsonl").read_bytes() == before


def test_a_folder_that_is_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / FOLDER).touch()
    with pytest.raises(ExportFailed, match="look at its permissions") as told:
        TraceFile(tmp_path, {}).export([spans(1)])
    assert str(tmp_path) not in str(told.value)
