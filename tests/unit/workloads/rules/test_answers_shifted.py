"""Answers that speak of other documents of their batch."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from pipeline_assets.workloads.rules.answers_shifted import make_rule
from tests.unit.workloads.rules.batch import LIMITS, Entry, entry, swapped, view

RULE = make_rule(LIMITS)
SIZE = 40
ALONE = "the quotes stand in another document of the batch"
Found = list[tuple[int, str, str, str]]


def check(entries: list[Entry]) -> tuple[Found, str | None]:
    result = RULE.check(view(entries))
    return result.found.select("row", "field", "severity", "note").rows(), result.pattern


def mixed(at: int) -> int:
    order = list(range(SIZE))
    random.Random(3).shuffle(order)
    return order[at]


@pytest.mark.parametrize(
    ("order", "pattern"),
    [
        pytest.param(lambda at: (at + 1) % SIZE, "fit the document one place later", id="by-one"),
        pytest.param(lambda at: at - 1, "fit the document one place earlier", id="back-by-one"),
        pytest.param(lambda at: (at + 3) % SIZE, "the whole batch is shifted by 3", id="by-three"),
        pytest.param(lambda at: at ^ 1, "answers are swapped in pairs", id="pairs"),
        pytest.param(lambda at: SIZE - 1 - at, "the batch is in reverse order", id="reversed"),
        pytest.param(mixed, "they are mixed up", id="mixed-up"),
        pytest.param(lambda at: at + 1 if 8 <= at < 20 else at, "12 of 40 answers", id="a-third"),
    ],
)
def test_a_batch_that_went_wrong(order: Callable[[int], int], pattern: str) -> None:
    found, told = check(
        swapped([entry(n) for n in range(SIZE)], {n: order(n) for n in range(SIZE)})
    )
    assert told is not None and pattern in told
    assert [row for row, *_ in found] == list(range(SIZE)), "nothing of the batch is trusted"
    assert {(name, severity) for _, name, severity, _ in found} == {("document", "review")}


@pytest.mark.parametrize(
    ("order", "rows"),
    [
        pytest.param({}, [], id="none"),
        pytest.param({3: 30}, [3], id="one"),
        pytest.param({3: 17, 17: 3}, [3, 17], id="two-swapped"),
        pytest.param({n: n + 1 for n in range(10, 14)}, [10, 11, 12, 13], id="a-tenth"),
    ],
)
def test_single_answers_are_asked_again(order: dict[int, int], rows: list[int]) -> None:
    found, told = check(swapped([entry(n) for n in range(SIZE)], order))
    assert told is None
    assert found == [(row, "document", "recover", ALONE) for row in rows]


def test_two_records_never_make_a_pattern() -> None:
    found, told = check(swapped([entry(0), entry(1)], {0: 1, 1: 0}))
    assert told is None
    assert [severity for _, _, severity, _ in found] == ["recover", "recover"]


def test_a_quote_that_stands_nowhere_is_for_other_rules() -> None:
    entries = [entry(n) for n in range(SIZE)]
    entries[5] = replace(entries[5], quotes=((1, "words that nobody has ever printed"),))
    assert check(entries) == ([], None)


def test_a_wrong_page_of_the_own_document_is_not_another_document() -> None:
    entries = [entry(n) for n in range(SIZE)]
    page = entries[5].pages[0]
    entries[5] = replace(entries[5], pages=("cover", page))
    entries[6] = replace(entries[6], pages=(page, "end"))
    found, told = check(entries)
    assert told is None and 5 not in [row for row, *_ in found]


def test_words_that_many_documents_have_tell_nothing() -> None:
    common = "Read these instructions before use."
    entries = [replace(e, pages=(e.pages[0] + common,)) for e in map(entry, range(SIZE - 1))]
    entries.append(Entry(("something else",), ((1, common),)))
    assert check(entries) == ([], None)


def test_white_space_and_case_do_not_count() -> None:
    entries = [entry(n) for n in range(SIZE)]
    quotes = [(page, quote.upper().replace(" ", "\n")) for page, quote in entries[9].quotes]
    entries[3] = replace(entries[3], quotes=quotes)
    assert check(entries)[0] == [(3, "document", "recover", ALONE)]


def test_an_empty_batch() -> None:
    assert check([]) == ([], None)
