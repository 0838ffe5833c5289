"""Evidence that does not stand: which words are told of which quote."""

from __future__ import annotations

import polars as pl
import pytest

from pipeline_assets.workloads.rules import evidence_stands
from pipeline_assets.workloads.rules.evidence_stands import RULE
from tests.unit.workloads.rules.placed import notes, placed
from tests.unit.workloads.rules.support import PAGE, TITLE, answer, field

PAGES = (PAGE, "Keep the filter clean.\nNever open the", "housing while the motor turns.")


@pytest.mark.parametrize(
    ("quote", "note"),
    [
        pytest.param((1, TITLE), None, id="stands"),
        pytest.param((1, "DUST extractor\n dx\u201120"), None, id="stands-when-folded"),
        pytest.param(
            (3, "Keep the filter clean."),
            "the quote does not stand on page 3, but on page 2",
            id="on-another-page",
        ),
        pytest.param(
            (9, "Keep the filter clean."),
            "the document has no page 9, but on page 2",
            id="beyond-the-last-page",
        ),
        pytest.param((9, "never said"), "the document has no page 9", id="no-page-no-words"),
        pytest.param(
            (2, "Never open the housing"),
            "the quote does not stand on page 2, but across pages 2 and 3",
            id="across-two-pages",
        ),
        pytest.param(
            (1, "An extractor of dust"), "the quote does not stand on page 1", id="paraphrase"
        ),
        pytest.param(
            (1, "Du\u0455t Extractor"), "the quote does not stand on page 1", id="homoglyph"
        ),
        pytest.param((1, ""), "the quote has no letter or digit", id="empty"),
        pytest.param((1, " .,– "), "the quote has no letter or digit", id="marks-alone"),
    ],
)
def test_a_quote(quote: tuple[int, str], note: str | None) -> None:
    seen = placed(answer(title=field(TITLE, quote)), pages=PAGES)
    assert notes(RULE, seen) == ([] if note is None else [("title", note, "review")])


def test_pages_without_end_are_counted_not_listed() -> None:
    seen = placed(answer(title=field("x", (1, "chapter"))), pages=("y", *["the chapter"] * 5))
    told = "the quote does not stand on page 1, but on pages 2, 3, 4 and more"
    assert ("title", told, "review") in notes(RULE, seen)


def test_a_batch_that_is_wrong_as_a_whole_is_not_read_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(evidence_stands, "LOOKED_THROUGH", 2)
    wrong = answer(title=field(TITLE, (1, "filter")))
    told = [note for _, note, _ in notes(RULE, placed(*[wrong] * 5, pages=PAGES))]
    assert len(told) == 5
    assert sum("but on page 2" in note for note in told) == 2


def test_no_document_text_is_told() -> None:
    seen = placed(answer(title=field(TITLE, "zebra crossing")), pages=(PAGE, "more"))
    assert "zebra" not in str(notes(RULE, seen))


def test_no_answers() -> None:
    assert RULE.check(placed()).schema == {"row": pl.Int64, "field": pl.String, "note": pl.String}
