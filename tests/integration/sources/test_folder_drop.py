"""Event files in a folder: taken in order, never half, removed only as what they were."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from resources.sources.event_queue.folder_drop import (
    MAX_EVENT_BYTES,
    NOT_A_FILE,
    PARTIAL_SECONDS,
    TOO_LARGE,
    FolderDrop,
)
from resources.sources.port import SourceMissing, SourceUnreadable

SEEN = '{"document": "a"}'


@pytest.fixture
def drop(tmp_path: Path) -> FolderDrop:
    return FolderDrop("q", tmp_path)


def test_files_are_messages_by_name(drop: FolderDrop, tmp_path: Path) -> None:
    for name in ("b.json", "a.json", "c.json", "a.tmp", "b.json.tmp", ".x.json", "note.txt"):
        (tmp_path / name).write_text(json.dumps({"document": name}))
    (tmp_path / "folder.json").mkdir()
    first = drop.receive(2, 0.0)
    assert [json.loads(message.body)["document"] for message in first] == ["a.json", "b.json"]
    drop.acknowledge([message.receipt for message in first])
    assert [message.body for message in drop.receive(9, 0.0)] == [b'{"document": "c.json"}']
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        ["c.json", "a.tmp", "b.json.tmp", ".x.json", "note.txt", "folder.json"]
    )


def test_the_same_file_is_the_same_message_and_a_later_one_is_not(
    drop: FolderDrop, tmp_path: Path
) -> None:
    file = tmp_path / "a.json"
    file.write_text(SEEN)
    (one,), (again,) = drop.receive(9, 0.0), drop.receive(9, 0.0)
    assert one == again
    # Another file of the same name and words takes its place before it was acknowledged.
    later = tmp_path / "later.tmp"
    later.write_text(SEEN)
    os.utime(later, ns=(1, 1))
    later.rename(file)
    drop.acknowledge([one.receipt])
    (other,) = drop.receive(9, 0.0)
    assert other.event_key != one.event_key
    drop.acknowledge([other.receipt, other.receipt])
    assert drop.receive(9, 0.0) == []


def test_a_file_that_does_not_parse_may_still_be_in_the_writing(tmp_path: Path) -> None:
    now = time.time()
    file = tmp_path / "a.json"
    file.write_text(SEEN[:5])
    assert FolderDrop("q", tmp_path, now=lambda: now).receive(9, 0.0) == []
    later = FolderDrop("q", tmp_path, now=lambda: now + PARTIAL_SECONDS + 1)
    assert [message.body for message in later.receive(9, 0.0)] == [SEEN[:5].encode()]
    file.write_text(SEEN)
    assert len(FolderDrop("q", tmp_path, now=lambda: now).receive(9, 0.0)) == 1


def test_what_does_not_parse_is_told_whatever_its_time(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{")
    os.utime(tmp_path / "a.json", (time.time() + 1_000_000, time.time() + 1_000_000))
    assert len(FolderDrop("q", tmp_path).receive(9, 0.0)) == 1


def test_what_is_no_usable_file(drop: FolderDrop, tmp_path: Path) -> None:
    elsewhere = tmp_path / "secret.txt"
    elsewhere.write_text(SEEN)
    (tmp_path / "link.json").symlink_to(elsewhere)
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "large.json").write_bytes(b" " * (MAX_EVENT_BYTES + 1))
    (tmp_path / "limit.json").write_bytes(SEEN.encode().ljust(MAX_EVENT_BYTES))
    messages = drop.receive(9, 0.0)
    assert [(message.problem, len(message.body)) for message in messages] == [
        (TOO_LARGE, 0),
        (None, MAX_EVENT_BYTES),
        (NOT_A_FILE, 0),
        (NOT_A_FILE, 0),
    ]
    drop.acknowledge([message.receipt for message in messages])
    assert [path.name for path in tmp_path.iterdir()] == ["secret.txt"]


def test_odd_names(drop: FolderDrop, tmp_path: Path) -> None:
    for name in (b"\xff.json", b"a\nb:c.json", "ü.json".encode()):
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)).write_text(SEEN)
    messages = drop.receive(9, 0.0)
    assert len({message.event_key for message in messages}) == 3
    assert all(message.event_key.isprintable() for message in messages)
    assert all(message.event_key.isascii() for message in messages)
    drop.acknowledge([message.receipt for message in messages])
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_had(tmp_path: Path) -> None:
    with pytest.raises(SourceMissing, match="there is no folder of events"):
        FolderDrop("q", tmp_path / "none").receive(9, 0.0)
    (tmp_path / "file").write_text("")
    with pytest.raises(SourceMissing):
        FolderDrop("q", tmp_path / "file").receive(9, 0.0)


def test_a_folder_of_which_nothing_can_be_removed(
    drop: FolderDrop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.json").write_text(SEEN)
    (message,) = drop.receive(9, 0.0)

    def refuse(*args: object, **more: object) -> None:
        raise PermissionError(13, "denied")

    monkeypatch.setattr(os, "unlink", refuse)
    with pytest.raises(SourceUnreadable, match=r"cannot be changed \(EACCES\)"):
        drop.acknowledge([message.receipt])
