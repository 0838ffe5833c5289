"""Times that a person types."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime

import pytest

from pipeline_assets.account.moments import UnreadableMoment, parse_moment


@pytest.fixture(autouse=True)
def local_zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run two hours east of Greenwich."""
    monkeypatch.setenv("TZ", "Etc/GMT-2")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-11-30T14:05:00Z", "2026-11-30T14:05:00+00:00"),
        ("2026-11-30T14:05:00+05:30", "2026-11-30T08:35:00+00:00"),
        ("2026-11-30 14:05", "2026-11-30T12:05:00+00:00"),
        (" 2026-11-30 ", "2026-11-29T22:00:00+00:00"),
    ],
    ids=["utc", "offset", "local", "date"],
)
def test_parse_moment(text: str, expected: str) -> None:
    assert parse_moment(text) == datetime.fromisoformat(expected)


@pytest.mark.parametrize(
    "text", ["", "yesterday", "2026-13-01", "1", "0001-01-01T00:00:00+23:59", "0226-11-30"]
)
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(UnreadableMoment, match="ISO 8601"):
        parse_moment(text)
