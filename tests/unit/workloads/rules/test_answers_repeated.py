"""One description for many documents."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipeline_assets.workloads.rules.answers_repeated import make_rule
from tests.unit.workloads.rules.batch import LIMITS, Entry, entry, view

RULE = make_rule(LIMITS)
SAME = "A handbook for the user of the machine."


def batch(total: int, *rows: int, text: str | None = SAME) -> list[Entry]:
    return [replace(entry(n), description=text) if n in rows else entry(n) for n in range(total)]


def check(entries: list[Entry]) -> tuple[list[tuple[int, str, str]], str | None]:
    result = RULE.check(view(entries))
    return result.found.select("row", "field", "note").rows(), result.pattern


def note(count: int) -> str:
    return f"the description is that of {count} different documents of the batch"


def test_unlike_documents_with_one_description() -> None:
    found, pattern = check(batch(60, 4, 9, 31))
    assert found == [(row, "description", note(3)) for row in (4, 9, 31)]
    assert pattern is None


def test_many_of_a_batch_are_told_to_an_operator() -> None:
    found, pattern = check(batch(30, *range(10, 20)))
    assert [row for row, *_ in found] == list(range(10, 20))
    assert pattern == (
        "10 of 30 answers repeat a description that other, different documents were given too"
    )


@pytest.mark.parametrize(
    "entries",
    [
        pytest.param(batch(60), id="none"),
        pytest.param(batch(60, 4, 9), id="two-are-no-habit"),
        pytest.param(batch(60, 4, 9, 31, text=None), id="absent"),
        pytest.param(
            [replace(each, checksum="one") for each in batch(5, 1, 2, 3)], id="the-same-bytes"
        ),
        pytest.param(
            [
                replace(each, pages=[*entry(1).pages[:1], f"{entry(1).pages[1]} revision{n}"])
                for n, each in enumerate(batch(5, 1, 2, 3))
            ],
            id="revisions-of-one-document",
        ),
        pytest.param([], id="empty"),
    ],
)  # fmt: skip
def test_nothing_to_say(entries: list[Entry]) -> None:
    assert check(entries) == ([], None)


def test_case_and_marks_do_not_count() -> None:
    entries = batch(60, 4, 9, 31)
    entries[9] = replace(entries[9], description="a HANDBOOK for the user, of the machine")
    assert [row for row, *_ in check(entries)[0]] == [4, 9, 31]


def test_the_one_that_was_copied_is_right() -> None:
    entries = [replace(each, description=SAME) for each in map(entry, range(10))]
    copies = [replace(e, quotes=entries[0].quotes) for e in entries[1:]]
    assert [row for row, *_ in check([entries[0], *copies])[0]] == list(range(1, 10))
