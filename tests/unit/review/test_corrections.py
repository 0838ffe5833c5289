"""What a reviewer types, and where in the document a corrected value is found."""

from __future__ import annotations

import pytest

from pipeline_assets.review.corrections import Wish, read_wishes, stands_in
from pipeline_assets.review.errors import CorrectionMalformed


@pytest.mark.parametrize(
    ("sets", "cites", "wishes"),
    [
        pytest.param(["title=A b"], [], [Wish("title", "A b")], id="one"),
        pytest.param(["title="], [], [Wish("title", "")], id="absent"),
        pytest.param(["title=a=b"], [], [Wish("title", "a=b")], id="equals-sign-in-the-value"),
        pytest.param(
            [" title =A", "language=en"],
            ["title=2: Dust: Extractor ", "title=3:x"],
            [
                Wish("title", "A", ((2, "Dust: Extractor"), (3, "x"))),
                Wish("language", "en"),
            ],
            id="with-evidence",
        ),
    ],
)
def test_options_are_read(sets: list[str], cites: list[str], wishes: list[Wish]) -> None:
    assert read_wishes(sets, cites) == wishes


@pytest.mark.parametrize(
    ("sets", "cites", "said"),
    [
        pytest.param([], [], "at least one --set", id="nothing"),
        pytest.param(["title"], [], "FIELD=VALUE", id="no-equals-sign"),
        pytest.param(["=x"], [], "FIELD=VALUE", id="no-field"),
        pytest.param(["title=a", "title=b"], [], "each field once", id="twice"),
        pytest.param(["title=a"], ["language=1:x"], "given with --set", id="evidence-of-another"),
        pytest.param(["title=a"], ["title=x"], "FIELD=PAGE:QUOTE", id="evidence-without-page"),
        pytest.param(["title=a"], ["title=one:x"], "FIELD=PAGE:QUOTE", id="page-in-words"),
    ],
)
def test_options_that_cannot_be_read(sets: list[str], cites: list[str], said: str) -> None:
    with pytest.raises(CorrectionMalformed, match=said):
        read_wishes(sets, cites)


@pytest.mark.parametrize(
    ("text", "value", "found"),
    [
        pytest.param("The DX-20 here", "DX-20", "DX-20", id="as-printed"),
        pytest.param("the dx\u201020 here", "DX-20", "dx\u201020", id="folded"),
        pytest.param("DX-200 and DX-20.", "DX-20", "DX-20", id="not-inside-a-longer-number"),
        pytest.param("DX-200 only", "DX-20", None, id="only-inside-a-longer-number"),
        pytest.param("nothing", "DX-20", None, id="nowhere"),
        pytest.param("en is here", "en", None, id="a-code-is-no-word"),
        pytest.param("Dust\nExtractor", "Dust Extractor", "Dust\nExtractor", id="over-lines"),
        pytest.param("型番DX-20は", "DX-20", "DX-20", id="between-signs-without-spaces"),
    ],
)
def test_where_a_value_stands(text: str, value: str, found: str | None) -> None:
    place = stands_in(text, value)
    assert (None if place is None else text[place[0] : place[1]]) == found
