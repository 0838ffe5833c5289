"""What the command reads and says besides the run: the list of documents, and a failed run."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline_assets.cli.replay import DocumentsUnreadable, read_ids, told_failure
from resources.ledger.replays import Replay

FROZEN = Replay(
    1, "v2-r-1", "v1", "v2", "operator", "why", "ada", None, None, 3, "0" * 64, "", "v2-m1"
)


@pytest.mark.parametrize(
    ("content", "ids"),
    [
        pytest.param(b"m/a\nm/b\n", ("m/a", "m/b"), id="lines"),
        pytest.param(b"m/a\r\n\r\n  m/b \r\n", ("m/a", "m/b"), id="of another system"),
        pytest.param(b"\xef\xbb\xbfm/a\nm/a", ("m/a",), id="a mark at the start, and twice"),
        pytest.param("m/a\u2028b\nm/c\x0bd".encode(), ("m/a\u2028b", "m/c\x0bd"), id="one name"),
    ],
)
def test_ids_are_read(tmp_path: Path, content: bytes, ids: tuple[str, ...]) -> None:
    (tmp_path / "ids.txt").write_bytes(content)
    assert read_ids(tmp_path / "ids.txt") == ids


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(b"\n \n", "holds no document id", id="empty"),
        pytest.param(b"m/\xff", "is not UTF-8 text", id="other text"),
        pytest.param(None, "cannot be read", id="no file"),
    ],
)
def test_a_list_that_cannot_be_used(tmp_path: Path, content: bytes | None, message: str) -> None:
    file = tmp_path / "ids.txt"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(DocumentsUnreadable, match=message):
        read_ids(file)


def test_a_failed_run_says_whether_to_ask_again() -> None:
    told = told_failure("The disk is full.", FROZEN)
    assert told.startswith("The disk is full. The replay v2-r-1 is frozen in v2-m1 all the same")
    assert "do not ask for it again" in told
    assert told_failure(None, None) == "the run failed. Nothing of the replay was frozen."
