"""Walking back through what a document showed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.ledger.archive_history import Entry, before

ONE, TWO, THREE = 1, 2, 3


def history(*steps: str) -> list[Entry]:
    """Entries from a short script.

    Each step is `<version><values>` for a publication, with `~` before it where it puts back, and
    `!` after it where its record is no longer published; `-` says that the document left the
    archive then. Each version has one record.
    """
    entries: list[Entry] = []
    for change, step in enumerate(steps, start=1):
        if entries and entries[-1].closed_by is None:
            entries[-1] = replace(entries[-1], closed_by=change)
        if step == "-":
            continue
        name = step.strip("~!")
        entries.append(
            Entry(
                entry_no=100 + change,
                archive_version=len(entries) + 1,
                version_no=int(name[0]),
                record_no=10 * int(name[0]),
                content_digest=name[1:],
                opened_by=change,
                closed_by=None,
                put_back=step.startswith("~"),
                publishable=not step.endswith("!"),
            )
        )
    return entries


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        pytest.param(("1a",), None, id="nothing-before"),
        pytest.param(("1a", "2b"), 1, id="another-version"),
        pytest.param(("1a", "2b", "2c"), 1, id="several-of-the-version"),
        pytest.param(("1a!", "2b"), None, id="rejected-meanwhile"),
        pytest.param(("1a", "3b!", "2c"), 1, id="rejected-in-between"),
        pytest.param(("1a", "-", "2b"), None, id="it-had-left"),
        pytest.param(("1a", "2b", "~1a", "2b"), 3, id="promoted-again"),
        pytest.param(("2b", "1a", "~2b"), None, id="what-a-rollback-put-back"),
        pytest.param(("1a", "2b", "3c", "~2b"), 1, id="two-rollbacks-go-two-steps"),
        pytest.param(("1a", "-", "~1a", "2b"), 2, id="put-back-after-it-left"),
    ],
)
def test_before_a_version(steps: tuple[str, ...], expected: int | None) -> None:
    """What documents go back to when the version of their newest entry is rolled back."""
    entries = history(*steps)
    version = entries[-1].version_no
    found = before(entries, len(entries) - 1, lambda entry: entry.version_no == version)
    assert (None if found is None else found.archive_version) == expected


def test_entries_of_before_changes_were_kept() -> None:
    entries = [replace(entry, opened_by=None, closed_by=None) for entry in history("1a", "2b")]
    found = before(entries, 1, lambda entry: entry.version_no == TWO)
    assert found is entries[0]


OPERATIONS = st.lists(st.sampled_from(["publish", "undo", "reject"]), max_size=30)


@given(OPERATIONS)
def test_undoing_is_a_stack(operations: list[str]) -> None:
    """However publications and rollbacks follow each other, one undoes the other."""
    entries: list[Entry] = []
    stack: list[Entry] = []
    for change, operation in enumerate(operations, start=1):
        if operation == "publish":
            shown = _close(entries, change)
            entries.append(_entry(change, len(entries) + 1))
            stack.append(entries[-1])
            assert shown == (len(stack) > 1)
        elif operation == "reject" and len(stack) > 1:
            # Of something under the visible entry: it is passed over from now on.
            _withdraw(entries, stack.pop(-2))
        elif operation == "undo" and stack:
            found = before(entries, len(entries) - 1, lambda _: False)
            stack.pop()
            assert _record(found) == (_record(stack[-1]) if stack else None)
            _close(entries, change)
            if found is not None:
                entries.append(
                    replace(
                        found,
                        entry_no=change,
                        archive_version=len(entries) + 1,
                        opened_by=change,
                        closed_by=None,
                        put_back=True,
                    )
                )


def _record(entry: Entry | None) -> int | None:
    return None if entry is None else entry.record_no


def _entry(change: int, archive_version: int) -> Entry:
    return Entry(
        entry_no=change,
        archive_version=archive_version,
        version_no=THREE,
        record_no=change,
        content_digest=str(change),
        opened_by=change,
        closed_by=None,
        put_back=False,
        publishable=True,
    )


def _close(entries: list[Entry], change: int) -> bool:
    """End the visible entry, if there is one."""
    if not entries or entries[-1].closed_by is not None:
        return False
    entries[-1] = replace(entries[-1], closed_by=change)
    return True


def _withdraw(entries: list[Entry], unwanted: Entry) -> None:
    for index, entry in enumerate(entries):
        if entry.record_no == unwanted.record_no:
            entries[index] = replace(entry, publishable=False)
