"""The other acceptance rules: each finding, and each answer that passes."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline_assets.workloads.equipment_manuals.rules import title_present
from pipeline_assets.workloads.equipment_manuals.rules.identifier_shape import make_rule
from pipeline_assets.workloads.rules import (
    document_reference,
    evidence_on_page,
    language_agrees,
    uncertain_field,
)
from tests.unit.workloads.rules.support import (
    ABSENT,
    LIMITS,
    PAGE,
    SENTENCE,
    TITLE,
    answer,
    field,
    found,
    shard,
)

IDENTIFIERS = "product_identifiers"
IDENTIFIER_SHAPE = make_rule(LIMITS)
SHAPE, NOT_QUOTED = "not the shape of an identifier", "does not stand in its own quote"
NO_WORDS = "the quote has no letter or digit"
NOT_ON_1 = "the quote does not stand on page 1"


def test_a_good_answer_passes_every_rule() -> None:
    rules = [
        document_reference.RULE,
        evidence_on_page.RULE,
        uncertain_field.RULE,
        IDENTIFIER_SHAPE,
        language_agrees.RULE,
        title_present.RULE,
    ]
    assert [found(rule, shard(answer(), answer())) for rule in rules] == [[]] * len(rules)


def test_no_records() -> None:
    for rule in (
        document_reference.RULE,
        evidence_on_page.RULE,
        uncertain_field.RULE,
        IDENTIFIER_SHAPE,
        language_agrees.RULE,
        title_present.RULE,
    ):
        assert found(rule, shard()) == []


@pytest.mark.parametrize("document", ["doc-1", "", "DOC-0", "doc-0 "])
def test_an_answer_about_another_document(document: str) -> None:
    assert found(document_reference.RULE, shard(answer(), answer(document=document))) == [
        (1, "document", "the answer echoes the reference of another document")
    ]


def test_what_the_answer_is_not_sure_of() -> None:
    seen = shard(
        answer(),
        answer(
            title=field("x", status="uncertain"),
            product_identifiers=[field("a", status="uncertain"), field("b", status="uncertain")],
        ),
    )
    note = "the answer calls this field uncertain"
    assert found(uncertain_field.RULE, seen) == [(1, IDENTIFIERS, note), (1, "title", note)]


@pytest.mark.parametrize(
    ("quote", "page"),
    [
        pytest.param(TITLE, PAGE, id="as-printed"),
        pytest.param("Dust  Extractor\nDX-20", PAGE, id="other-white-space"),
        pytest.param("  DX-20 ", PAGE, id="white-space-around"),
        pytest.param("dust extractor dx-20", PAGE, id="other-case"),
        pytest.param("DX\u201120", PAGE, id="other-hyphen"),
        pytest.param("small workshops", "for small work-\nshops only", id="hyphenated-on-the-page"),
        pytest.param("high-quality", "of high-\nquality steel", id="hyphen-of-the-word"),
        pytest.param("work-\nshops", "for small workshops only", id="hyphenated-in-the-quote"),
        pytest.param("ﬁlter", "the filter", id="ligature"),
        pytest.param("Ger\u00e4t", "Gera\u0308t", id="composed"),
        pytest.param("取扱 説明書", "取扱説明書", id="gap-between-ideographs"),
        pytest.param("a\u2028b c", "a b c", id="line-separator"),
        pytest.param("𝒳 7", "the 𝒳 7 here", id="astral"),
    ],
)
def test_a_quote_that_stands_on_its_page(quote: str, page: str) -> None:
    seen = shard(
        answer(
            title=field("x", quote), product_identifiers=[], language=ABSENT, description=ABSENT
        ),
        pages=[page],
    )
    assert found(evidence_on_page.RULE, seen) == []


@pytest.mark.parametrize(
    ("quote", "note"),
    [
        pytest.param("Dust Collector", NOT_ON_1, id="other-words"),
        pytest.param("DX-21", NOT_ON_1, id="other-number"),
        pytest.param("20 User", NOT_ON_1, id="left-out-words"),
        pytest.param((2, TITLE), "the quote does not stand on page 2", id="on-another-page"),
        pytest.param((3, TITLE), "the document has no page 3", id="beyond-the-last-page"),
        pytest.param((1_000_000, TITLE), "the document has no page 1000000", id="far-beyond"),
        pytest.param("", NO_WORDS, id="empty"),
        pytest.param(" \n", NO_WORDS, id="blank"),
        pytest.param("\u200b\u00ad", NO_WORDS, id="invisible"),
        pytest.param("-", NO_WORDS, id="dash"),
    ],
)
def test_a_quote_that_does_not(quote: str | tuple[int, str], note: str) -> None:
    seen = shard(
        answer(),
        answer(title=field("x", TITLE, quote)),
        pages=[PAGE.replace("20\nUser", "20\nOwner and User"), "Another page."],
    )
    assert found(evidence_on_page.RULE, seen) == [(1, "title", note)]


def test_quotes_of_all_fields_are_looked_at() -> None:
    wrong = "not on the page"
    seen = shard(
        answer(
            title=field(TITLE, wrong),
            product_identifiers=[
                field("DX-20", TITLE),
                field("DX-21", wrong),
                field("DX-22", wrong),
            ],
            language=field("en", wrong),
            description=field(SENTENCE, wrong),
        )
    )
    names = [name for _, name, _ in found(evidence_on_page.RULE, seen)]
    assert names == ["description", "language", IDENTIFIERS, "title"]


def test_notes_on_evidence_never_carry_the_quote() -> None:
    seen = shard(answer(title=field(TITLE, "zebra crossing")))
    assert "zebra" not in str(found(evidence_on_page.RULE, seen))


@pytest.mark.parametrize(
    "value",
    ["DX-20", "KX 1.2/3", "ЩК-42", "RTX-3000+", "MX-12 (B)", "12", "型番7", "a" * 39 + "1"],
)
def test_the_shape_of_identifiers(value: str) -> None:
    seen = shard(answer(product_identifiers=[field(value, f"for {value} only")]))
    assert found(IDENTIFIER_SHAPE, seen) == []


@pytest.mark.parametrize(
    "value",
    [
        pytest.param("", id="empty"),
        pytest.param("7", id="too-short"),
        pytest.param("Pump", id="no-digit"),
        pytest.param("-DX20", id="starts-with-dash"),
        pytest.param("DX20-", id="ends-with-dash"),
        pytest.param("DX\n20", id="newline"),
        pytest.param("DX-20\n", id="newline-at-the-end"),
        pytest.param("DX\u200b-20", id="invisible-inside"),
        pytest.param("a" * 40 + "1", id="too-long"),
        pytest.param("DX_20;DROP", id="semicolon"),
    ],
)
def test_other_shapes(value: str) -> None:
    seen = shard(answer(), answer(product_identifiers=[field(value, f"for {value} only")]))
    assert found(IDENTIFIER_SHAPE, seen) == [(1, IDENTIFIERS, SHAPE)]


@pytest.mark.parametrize(
    ("value", "quotes", "findings"),
    [
        pytest.param("DX-20", ["User Manual"], [NOT_QUOTED], id="not-in-it"),
        pytest.param("DX-20", ["User Manual", "The DX-20"], [], id="in-one-of-two"),
        pytest.param("DX-20", ["The dx\u201120"], [], id="folded"),
        pytest.param("DX-20", ["DX-2 0"], [NOT_QUOTED], id="split"),
        pytest.param("DX-20", [], [], id="without-a-quote-the-frame-rule-speaks"),
    ],
)
def test_an_identifier_stands_in_its_quote(
    value: str, quotes: list[str], findings: list[str]
) -> None:
    seen = shard(answer(product_identifiers=[field("X1", "X1"), field(value, *quotes)]))
    assert [note for _, _, note in found(IDENTIFIER_SHAPE, seen)] == findings


def test_a_quote_of_another_identifier_does_not_count() -> None:
    seen = shard(answer(product_identifiers=[field("X1", "X1 and X2"), field("X2", "X1")]))
    assert found(IDENTIFIER_SHAPE, seen) == [(0, IDENTIFIERS, NOT_QUOTED)]


@pytest.mark.parametrize(
    ("entry", "language", "others", "notes"),
    [
        pytest.param(field("en", "x"), "en", "", [], id="agree"),
        pytest.param(
            field("en", "x"), "de", "", ["the parsed text is in another language"], id="differ"
        ),
        pytest.param(
            field("en", "x"),
            None,
            "",
            ["the parsed text gives no language to compare with"],
            id="unknown",
        ),
        pytest.param(
            field("en", "x"),
            "en",
            "de fr",
            ["the parsed text is in several languages"],
            id="several",
        ),
        pytest.param(ABSENT, "en", "", ["no language is given"], id="absent"),
        pytest.param(field("de", status="uncertain"), "en", "", [], id="uncertain-is-not-compared"),
        pytest.param(field(None, "x"), "en", "", [], id="no-value-is-the-frame-rules"),
    ],
)
def test_language_agrees(
    entry: dict[str, Any], language: str | None, others: str, notes: list[str]
) -> None:
    seen = shard(answer(language=entry), language=language, languages=others)
    assert found(language_agrees.RULE, seen) == [(0, "language", note) for note in notes]


INVENTED = "has words that its quotes do not hold"


@pytest.mark.parametrize(
    ("entry", "notes"),
    [
        pytest.param(ABSENT, ["no title is printed"], id="absent"),
        pytest.param(field("Dust Extractor", TITLE), [], id="part-of-its-quote"),
        pytest.param(field("dust EXTRACTOR", TITLE), [], id="other-case"),
        pytest.param(
            field("Dust Extractor User Manual", "Dust Extractor", "User Manual"), [], id="two"
        ),
        pytest.param(field("Dust Remover", TITLE), [INVENTED], id="invented-word"),
        pytest.param(field("Dust Extractor DX-21", TITLE), [INVENTED], id="invented-number"),
        pytest.param(field("Dust Extractors", TITLE), [INVENTED], id="other-form"),
        pytest.param(field("取扱説明書 保証書", "取扱説明書", "保証書"), [], id="ideographs"),
        pytest.param(field("Dust", status="uncertain"), [], id="uncertain-is-not-compared"),
        pytest.param(field(TITLE), [], id="without-a-quote-the-frame-rule-speaks"),
        pytest.param(field(None, TITLE), [], id="no-value-is-the-frame-rules"),
    ],
)
def test_title_present(entry: dict[str, Any], notes: list[str]) -> None:
    seen = shard(answer(), answer(title=entry))
    assert found(title_present.RULE, seen) == [(1, "title", note) for note in notes]
