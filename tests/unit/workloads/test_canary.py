"""The canary documents: the built-in rules answer every one in full, and no rule objects."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import pairwise

import pytest
import toktok

from pipeline_assets.ingest.parsing.language import detect
from pipeline_assets.prompting.render import render_document
from pipeline_assets.workloads.equipment_manuals.canary import (
    CANARY_DOCUMENTS,
    LEAST_BUDGET,
    CanaryTooSmall,
    largest,
)
from pipeline_assets.workloads.equipment_manuals.workload import load
from pipeline_assets.workloads.workload import CanaryDocument
from resources.providers.baseline import RequestPage
from resources.record_ids import reference
from tests.unit.workloads.rules.support import found, shard

TokensOf = Callable[[Sequence[str]], list[int]]
WORKLOAD = load()


def tokens(texts: Sequence[str]) -> list[int]:
    return toktok.batch_count(list(texts), "o200k_base", threads=1)


def thirds(texts: Sequence[str]) -> list[int]:
    return [-(-len(text.encode()) // 3) for text in texts]


LARGEST = largest(8_000, tokens)
ALL = [*CANARY_DOCUMENTS, LARGEST]


def answered(document: CanaryDocument) -> dict[str, dict]:
    pages = [RequestPage(number, text) for number, text in enumerate(document.pages, start=1)]
    return json.loads(WORKLOAD.baseline("doc-0", pages))


@pytest.mark.parametrize("document", ALL, ids=lambda document: document.name)
def test_the_built_in_rules_answer_in_full(document: CanaryDocument) -> None:
    answer = answered(document)
    fields = [answer["title"], answer["language"], answer["description"]]
    fields += answer["product_identifiers"]
    assert [field["status"] for field in fields] == ["found"] * len(fields)
    assert (answer["title"]["value"],) == document.expect["title"]
    assert answer["language"]["value"] == document.language
    names = tuple(field["value"] for field in answer["product_identifiers"])
    assert names == document.expect["product_identifiers"]
    assert names


@pytest.mark.parametrize("document", ALL, ids=lambda document: document.name)
def test_no_rule_objects(document: CanaryDocument) -> None:
    language, others = detect(document.pages)
    assert (language, others) == (document.language, ())
    seen = shard(answered(document), pages=document.pages, language=language)
    assert {rule.id: found(rule, seen) for rule in WORKLOAD.acceptances["1"].rules} == {
        rule.id: [] for rule in WORKLOAD.acceptances["1"].rules
    }


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        pytest.param({"document": "doc-1"}, "document_reference", id="answer-of-another"),
        pytest.param(
            {"language": {"value": "fr", "status": "found", "evidence": []}},
            "language_agrees",
            id="wrong-language",
        ),
    ],
)
def test_a_rule_objects_to_a_wrong_answer(change: dict[str, object], rule: str) -> None:
    document = CANARY_DOCUMENTS[0]
    seen = shard(answered(document) | change, pages=document.pages)
    assert any(found(one, seen) for one in WORKLOAD.acceptances["1"].rules if one.id == rule)


def test_names_and_identifiers_are_unique() -> None:
    assert len({document.name for document in ALL}) == len(ALL)
    identifiers = [name for document in ALL for name in document.expect["product_identifiers"]]
    assert len(set(identifiers)) == len(identifiers)


def test_the_documents_are_those_of_the_workload() -> None:
    assert WORKLOAD.canary() == CANARY_DOCUMENTS
    assert WORKLOAD.largest_canary(8_000, tokens) == LARGEST


@pytest.mark.parametrize(
    ("name", "characters"),
    [
        pytest.param("line separators", "\u2028\u2029\x85", id="separators"),
        pytest.param("astral characters", "\U00020bb7\U00029e3d\U0001f50c", id="astral"),
        pytest.param("right to left", "\u200eمWV", id="right-to-left"),
    ],
)
def test_what_each_tries_is_in_it(name: str, characters: str) -> None:
    document = next(one for one in CANARY_DOCUMENTS if one.name == name)
    text = "".join(document.pages)
    assert [one for one in characters if one not in text] == []


def test_languages_differ() -> None:
    languages = {document.language for document in CANARY_DOCUMENTS}
    assert languages == {"en", "de", "fr", "ja", "ar"}


@pytest.mark.parametrize("tokens_of", [tokens, thirds])
@pytest.mark.parametrize("budget", [LEAST_BUDGET, 1_001, 1_555, 4_321, 50_000, 400_000])
def test_the_largest_fills_its_budget_once_rendered(budget: int, tokens_of: TokensOf) -> None:
    document = largest(budget, tokens_of)
    pages = list(enumerate(document.pages, start=1))
    for record in range(3):
        rendered = render_document(reference(str(record)), pages, tokens_of, budget, None)
        assert rendered.pages_sent == len(pages), "nothing of it is cut"
        assert 0.95 * budget <= rendered.tokens <= budget


def test_the_largest_has_no_two_neighbouring_pages_alike() -> None:
    pages = largest(50_000, tokens).pages
    assert len(pages) > 20
    assert all(one != other for one, other in pairwise(pages))
    assert largest(50_000, tokens).pages == pages


@pytest.mark.parametrize(
    ("budget", "tokens_of", "least"),
    [
        pytest.param(LEAST_BUDGET - 1, tokens, "1000", id="small"),
        pytest.param(3_000, lambda texts: [5_000 for _ in texts], "5000", id="first-page-alone"),
    ],
)
def test_a_budget_that_is_too_small(budget: int, tokens_of: TokensOf, least: str) -> None:
    with pytest.raises(CanaryTooSmall, match=f"{least} tokens or more, found {budget}"):
        largest(budget, tokens_of)
