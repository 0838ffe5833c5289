"""The canary tickets: the built-in rules answer every one rightly, and no rule objects."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import pytest
import toktok

from pipeline_assets.prompting.render import render_document
from pipeline_assets.workloads.support_tickets.canary import (
    CANARY_TICKETS,
    LEAST_BUDGET,
    CanaryTooSmall,
    largest,
    wrong_fields,
)
from pipeline_assets.workloads.workload import CanaryDocument
from resources.record_ids import reference
from tests.unit.workloads.support_tickets.support import (
    FIELDS,
    WORKLOAD,
    Ticket,
    answered,
    field,
    judge,
)

TokensOf = Callable[[Sequence[str]], list[int]]


def tokens(texts: Sequence[str]) -> list[int]:
    return toktok.batch_count(list(texts), "o200k_base", threads=1)


def thirds(texts: Sequence[str]) -> list[int]:
    return [-(-len(text.encode()) // 3) for text in texts]


ALL = [*CANARY_TICKETS, largest(4_000, tokens)]


@pytest.mark.parametrize("document", ALL, ids=lambda document: document.name)
def test_the_built_in_rules_answer_and_no_rule_objects(document: CanaryDocument) -> None:
    (text,) = document.pages
    assert wrong_fields(document, answered("doc-0", text)) == []
    right = {name: document.expect.get(name) or ("",) for name in FIELDS}
    (judged,) = judge([Ticket(document.name, text, right, "", "")])
    assert judged.findings == []


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("category", field("other", "word")),
        ("priority", field("high", "word")),
        ("product", field("TS-205", "word")),
        ("product", field(None, status="absent")),
        ("language", field("de", "word")),
        ("summary", field(" ", "word")),
    ],
)
def test_a_wrong_field_is_told(name: str, other: dict[str, object]) -> None:
    document = CANARY_TICKETS[0]
    given = json.loads(answered("doc-0", document.pages[0])) | {name: other}
    assert wrong_fields(document, WORKLOAD.check_answer(json.dumps(given))) == [name]


def test_a_product_with_its_kind_is_right_and_one_too_many_is_wrong() -> None:
    first, second = CANARY_TICKETS[:2]
    given = json.loads(answered("doc-0", first.pages[0]))
    named = given | {"product": field("Toaster TS-204", "Toaster TS-204")}
    assert wrong_fields(first, WORKLOAD.check_answer(json.dumps(named))) == []
    other = json.loads(answered("doc-0", second.pages[0])) | {"product": field("AB-1", "x")}
    assert wrong_fields(second, WORKLOAD.check_answer(json.dumps(other))) == ["product"]


def test_names_are_unique() -> None:
    assert len({document.name for document in ALL}) == len(ALL)
    assert WORKLOAD.canary() == CANARY_TICKETS


@pytest.mark.parametrize("tokens_of", [tokens, thirds])
@pytest.mark.parametrize("budget", [LEAST_BUDGET, 401, 555, 4_321, 50_000])
def test_the_largest_fills_its_budget_once_rendered(budget: int, tokens_of: TokensOf) -> None:
    document = largest(budget, tokens_of)
    pages = list(enumerate(document.pages, start=1))
    for record in range(3):
        rendered = render_document(reference(str(record)), pages, tokens_of, budget, None)
        assert rendered.pages_sent == 1, "nothing of it is cut"
        assert 0.93 * budget <= rendered.tokens <= budget


def test_a_budget_that_is_too_small() -> None:
    with pytest.raises(CanaryTooSmall, match="400 tokens or more, found 399"):
        largest(LEAST_BUDGET - 1, tokens)
