"""What the port itself promises: the report of a walk, closed reasons."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from resources.sources.port import (
    EntryRefused,
    SourceEntry,
    SourceUnreadable,
    Walk,
    WalkReport,
    WalkUnfinished,
)
from resources.sources.reasons import UnknownExclusionReason


def an_entry(excluded: str | None = None) -> SourceEntry:
    return SourceEntry("docs/a", b"a", "a", 1, 2, (3, 4), excluded)


def two_entries() -> Generator[SourceEntry, None, WalkReport]:
    yield an_entry()
    yield an_entry()
    return WalkReport(entries=2, unlisted=(b"closed",))


def a_broken_walk() -> Generator[SourceEntry, None, WalkReport]:
    yield an_entry()
    raise SourceUnreadable("gone")


def test_report_is_there_after_the_last_entry() -> None:
    walk = Walk(two_entries())
    next(walk)
    with pytest.raises(WalkUnfinished, match="take all"):
        walk.report()
    assert len(list(walk)) == 1
    assert walk.report() == WalkReport(entries=2, unlisted=(b"closed",))
    assert list(walk) == []
    assert walk.report().entries == 2


def test_a_walk_that_failed_has_no_report() -> None:
    walk = Walk(a_broken_walk())
    with pytest.raises(SourceUnreadable):
        list(walk)
    assert list(walk) == []
    with pytest.raises(WalkUnfinished):
        walk.report()


@pytest.mark.parametrize(
    ("unlisted", "complete"), [((), True), ((b"a",), False)], ids=["all_listed", "one_folder_not"]
)
def test_complete(unlisted: tuple[bytes, ...], complete: bool) -> None:
    assert WalkReport(entries=0, unlisted=unlisted).complete is complete


def test_reasons_outside_the_list_are_refused() -> None:
    with pytest.raises(UnknownExclusionReason):
        an_entry("bored")
    with pytest.raises(UnknownExclusionReason):
        EntryRefused("docs/a", "bored", "")
