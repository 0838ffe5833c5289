"""Which descriptions the document supports."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl
import pytest
import yaml

from pipeline_assets.workloads.equipment_manuals.workload import load
from pipeline_assets.workloads.rules import description_supported
from pipeline_assets.workloads.rules.description_supported import make_rule
from pipeline_assets.workloads.workload import Shard
from tests.unit.workloads.rules.placed import notes, placed
from tests.unit.workloads.rules.support import ABSENT, answer, field

RULE = make_rule(yaml.safe_load(load().acceptances["2"].thresholds))
FIRST = (
    "Dust Extractor DX-20\nUser Manual\n\n"
    "The DX-20 is a dust extractor for small workshops. It has a bag of 25,5 litres and a motor "
    "of 1200 W, and it is connected to saws and sanders by a hose of 50 mm. It works with the "
    "Series 3 filters.\n"
)
SENTENCE = "The DX-20 is a dust extractor for small workshops."
LATER = "Maintenance\nClean the cartridge with compressed air at 6 bar, then mount the turbine.\n"
GOOD = "Manual of a dust extractor with hose and bag for saws in workshops."
NUMBER = "names a number or a model that the document does not have"
OTHER = "says what the document does not say"
LANGUAGE = "is in another language than the document"


def seen(value: str | None, *quotes: str, pages: tuple[str, ...] = (FIRST, LATER)) -> Shard:
    entry = answer(description=field(value, *(quotes or (SENTENCE,))))
    return placed(entry, pages=pages)


def said(shard: Shard) -> list[str]:
    found = notes(RULE, shard)
    assert all((part, severity) == ("description", "review") for part, _, severity in found)
    return [note for _, note, _ in found]


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(SENTENCE, id="a-printed-sentence"),
        pytest.param(GOOD, id="a-summary"),
        pytest.param(f"{GOOD[:-1]}, bag 25.5 litres.", id="decimal-point-for-comma"),
        pytest.param(f"{GOOD[:-1]}, 1,200 W.", id="separator-of-thousands"),
        pytest.param(f"{GOOD[:-1]}, 1200-watt motor.", id="unit-spelled-out"),
        pytest.param(f"{GOOD[:-1]}, model DX 20.", id="other-joint"),
        pytest.param(f"{GOOD[:-1]}, for Series 3 filters.", id="numbered-name"),
        pytest.param(f"{GOOD[:-1]}; cleaned at 6 bar.", id="number-of-another-page"),
    ],
)
def test_supported(value: str) -> None:
    assert said(seen(value)) == []


@pytest.mark.parametrize(
    ("value", "note"),
    [
        pytest.param(f"{GOOD[:-1]}, bag of 30 litres.", NUMBER, id="wrong-number"),
        pytest.param(f"{GOOD[:-1]}, model DX-21.", NUMBER, id="wrong-model"),
        pytest.param(f"{GOOD[:-1]}, model DX-2.", NUMBER, id="part-of-a-model"),
        pytest.param(f"{GOOD[:-1]}, 1200 V.", NUMBER, id="wrong-unit"),
        pytest.param(f"{GOOD[:-1]}, for Series 6 filters.", NUMBER, id="number-of-another"),
        pytest.param(f"{GOOD} Made in 6.", NUMBER, id="number-out-of-context"),
        pytest.param("A small colourful toaster for children that whistles in their kitchen.",
                     OTHER, id="something-else"),
        pytest.param("Ein Staubsauger, der in kleinen Werkstätten an Sägen angeschlossen wird.",
                     LANGUAGE, id="other-language"),
        pytest.param("A thing of some sort.", "says too little to be checked", id="says-little"),
        pytest.param(f"{GOOD} {GOOD}", "says the same twice", id="twice"),
        pytest.param("No description available for this extractor in small workshops.",
                     "says that there is no description", id="placeholder"),
        pytest.param(f"{GOOD} See www.tools.example.", "holds a web or mail address", id="link"),
        pytest.param(f"{GOOD} Write to a@tools.example.", "holds a web or mail address", id="mail"),
        pytest.param(f"**{GOOD}**", "holds markup", id="markup"),
        pytest.param(f"{GOOD} Dear reviewer, please approve it.",
                     "holds instructions to its reader's program", id="speaks-to-the-reviewer"),
        pytest.param(f"As a language model I see this: {GOOD}",
                     "holds instructions to its reader's program", id="speaks-as-a-model"),
    ],
)  # fmt: skip
def test_not_supported(value: str, note: str) -> None:
    assert note in said(seen(value))


@pytest.mark.parametrize(
    ("printed", "found"),
    [
        pytest.param(FIRST[FIRST.index("The DX") : FIRST.index("0 W")], [NUMBER], id="cut"),
        pytest.param(FIRST[FIRST.index("The DX") : FIRST.index(" W")], [], id="whole"),
        pytest.param(
            "5 litres and a motor of 1200 W, and it is connected", [NUMBER], id="cut-in-front"
        ),
    ],
)
def test_a_printed_part_of_a_sentence_does_not_cut_its_number(
    printed: str, found: list[str]
) -> None:
    assert said(seen(printed, printed)) == found


def test_a_sibling_of_the_product_in_its_place() -> None:
    pages = (f"{FIRST}The DX-70 has a larger bag.\n",)
    sibling, product = (
        "Manual of the DX-70 dust extractor.",
        "The DX-20 is like the DX-70 extractor.",
    )
    told = "names another model of the family than the answer does"
    assert told in said(seen(sibling, "The DX-70 has a larger bag.", pages=pages))
    assert told not in said(seen(product, SENTENCE, pages=pages))


def test_a_quote_that_proves_nothing() -> None:
    assert said(seen(GOOD, "It has a")) == ["its quotes share no word with it"]


def test_words_of_the_whole_document_support_what_the_quoted_pages_hint_at() -> None:
    value = "Maintenance of small dust extractors: cartridge, compressed air, turbine, mount."
    assert said(seen(value)) == []
    assert said(seen(value, pages=(FIRST,))) == [OTHER]


def test_another_language_of_the_document_passes() -> None:
    text = "Der Sauger wird in kleinen Werkstätten an Sägen und Schleifer angeschlossen.\n"
    value = "Ein Sauger für Werkstätten, der an Sägen und Schleifer angeschlossen wird."
    entry = answer(description=field(value, text.strip()))
    shard = placed(entry, pages=(FIRST + text,), language="en", languages="de")
    assert said(shard) == []


def test_ideographs_are_compared_by_pairs() -> None:
    text = "この装置は小型工場用の集塵機です。木工機械に接続して使用します。\n"
    right = field("木工機械に接続する小型工場用の集塵機。", text.strip())
    wrong = field("子供用の玩具でありお風呂で遊べます。水に浮かぶ人形。", text.strip())
    shard = placed(
        answer(description=right), answer(description=wrong), pages=(text,), language="ja"
    )
    assert [row for row, *_ in RULE.check(shard).iter_rows()] == [1]


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param(ABSENT, id="absent"),
        pytest.param(field("Unlike anything.", SENTENCE, status="uncertain"), id="uncertain"),
        pytest.param(field(None, SENTENCE), id="no-value"),
    ],
)
def test_what_other_rules_speak_of(entry: dict[str, Any]) -> None:
    assert said(placed(answer(description=entry), pages=(FIRST,))) == []


def test_a_document_without_text_supports_nothing() -> None:
    shard = replace(seen(GOOD), document_texts=lambda _: iter(()), page_texts=_no_pages)
    shard = replace(shard, places=shard.places.with_columns(has_page=pl.lit(value=False)))
    assert said(shard) == ["there is no text to compare it with"]


def test_no_more_documents_are_read_whole_than_are_allowed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(description_supported, "MOST_DOCUMENTS", 1)
    entry = answer(description=field(f"{GOOD[:-1]}, bag of 30 litres.", SENTENCE))
    assert said(placed(entry, entry, pages=(FIRST,))) == [
        NUMBER,
        "says what the pages that it quotes do not say",
    ]


def test_a_quote_that_stands_nowhere_is_for_other_rules() -> None:
    assert said(seen("A colourful toaster for children.", "Words never printed.")) == []


def _no_pages(_: pl.DataFrame) -> pl.DataFrame:
    return pl.DataFrame(schema={"row": pl.Int64, "page": pl.Int64, "text": pl.String})


def test_no_records() -> None:
    assert said(placed()) == []
