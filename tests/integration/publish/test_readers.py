"""Readers that never stop asking, while a version is published, rolled back and promoted again."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from resources.ledger.engine import open_ledger
from resources.ledger.search_text import query_terms
from tests.integration.publish.support import BOTH, ONE, TWO, Stall, shown

READERS = 3
COMMON_WORD = "workshops"
"""It stands in the description of both documents."""


@dataclass
class Reader:
    """Looks at the archive through a connection of its own, again and again.

    Attributes:
        seen: every view in order: the version that each document shows.
        problems: what was wrong with a view.
    """

    stall: Stall
    over: threading.Event
    seen: list[dict[str, str]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def run(self) -> None:
        """Read until it is over."""
        settings = self.stall.context.settings
        ledger = open_ledger(settings.ledger_place)
        try:
            while not self.over.is_set():
                with ledger.read() as connection:
                    first = shown(connection, self.stall.context)
                    found = ledger.dialect.search(connection, query_terms(COMMON_WORD), 10)
                    again = shown(connection, self.stall.context)
                self._judge(first, len(found), again)
        except AssertionError as error:
            self.problems.append(f"head, entry and search disagree: {error}")
        except Exception as error:  # noqa: BLE001 - told to the test
            self.problems.append(repr(error))
        finally:
            ledger.close()

    def _judge(self, first: dict[str, str], found: int, again: dict[str, str]) -> None:
        if first != again:
            self.problems.append("one transaction saw two archives")
        if set(first) != set(BOTH) or found != len(BOTH):
            self.problems.append(f"a gap: {first}, {found} found")
        if len(set(first.values())) != 1:
            self.problems.append(f"a mixture: {first}")
        if not self.seen or self.seen[-1] != first:
            self.seen.append(first)


@contextmanager
def reading(stall: Stall) -> Iterator[list[Reader]]:
    """Readers at work for the length of a block."""
    over = threading.Event()
    readers = [Reader(stall, over) for _ in range(READERS)]
    threads = [threading.Thread(target=reader.run) for reader in readers]
    for thread in threads:
        thread.start()
    try:
        yield readers
    finally:
        over.set()
        for thread in threads:
            thread.join(30)


def test_every_view_is_of_one_version(stall: Stall) -> None:
    stall.run(ONE)
    stall.accept(TWO)
    all_one, all_two = dict.fromkeys(BOTH, ONE), dict.fromkeys(BOTH, TWO)
    with reading(stall) as readers:
        stall.publish(TWO)
        assert stall.shown() == all_two
        for _ in range(2):
            stall.rollback(TWO)
            assert stall.shown() == all_one
            stall.promote(TWO)
            assert stall.shown() == all_two
    assert [reader.problems for reader in readers] == [[]] * READERS
    for reader in readers:
        assert reader.seen[-1] == all_two or len(reader.seen) > 1
        assert all(view in (all_one, all_two) for view in reader.seen)
    assert any(all_one in reader.seen for reader in readers), "no reader was quick enough"
    stall.require_whole()
