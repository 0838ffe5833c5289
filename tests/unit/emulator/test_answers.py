"""Prompts are read by their markers alone, and spoilt answers are what their fault says."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_assets.workloads.equipment_manuals.baseline import answer as baseline
from pipeline_assets.workloads.equipment_manuals.baseline.pages import PageText
from tests.provider_emulator import answers

REFERENCE = "doc-0123456789abcdef"


def prompt(pages: list[tuple[int, str]], reference: str = REFERENCE) -> str:
    body = "".join(f"=== {reference} page {n} ===\n{text}\n" for n, text in pages)
    return f"=== {reference} document begins ===\n{body}=== {reference} document ends ==="


@given(
    st.lists(
        st.text().filter(lambda text: REFERENCE not in text)
        | st.sampled_from(
            [
                "",
                "\n",
                "\r\n",
                "a\u2028b\x85",
                "=== doc-fedcba9876543210 page 1 ===",
                "=== page ===",
            ]
        ),
        max_size=6,
    )
)
def test_pages_come_back_verbatim(texts: list[str]) -> None:
    pages = list(enumerate(texts, start=1))
    assert answers.read_prompt(prompt(pages)) == (REFERENCE, pages)
    assert answers.read_prompt(f"Before.\n{prompt(pages)}\nAfter.") == (REFERENCE, pages)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("What is 2+2?", id="no-markers"),
        pytest.param(f"=== {REFERENCE} document begins ===\nx", id="no-end"),
        pytest.param(
            f"=== {REFERENCE} document begins ===\n=== doc-fedcba9876543210 document ends ===",
            id="end-of-another",
        ),
        pytest.param("", id="empty"),
    ],
)
def test_other_prompts_get_a_plain_answer(text: str) -> None:
    assert answers.read_prompt(text) is None
    assert answers.answer(text).startswith("Emulated answer")


def test_answer_is_the_baseline_on_the_pages() -> None:
    pages = [(1, "Owner's Manual\nHeat Pump Dryer\n"), (2, "Read this before first use.\n")]
    expected = baseline.answer(REFERENCE, [PageText(number, text) for number, text in pages])
    assert expected.title.evidence[0].page == 1
    assert answers.answer(prompt(pages)) == msgspec.json.encode(expected).decode()


GOOD = json.dumps(
    {
        "document": REFERENCE,
        "title": {"value": "Gerät", "status": "found", "evidence": [{"page": 1, "quote": "G"}]},
        "product_identifiers": [{"value": "A-1", "status": "found", "evidence": []}],
        "description": {"value": "A device.", "status": "found", "evidence": []},
    },
    ensure_ascii=False,
)


@pytest.mark.parametrize("kind", ["error", "refused", "filtered", "no_finish", "not_executed"])
def test_kinds_that_leave_the_text(kind: str) -> None:
    assert answers.spoil(GOOD, kind) == GOOD


@pytest.mark.parametrize("kind", ["truncated", "repetition", "prose"])
@pytest.mark.parametrize("text", [GOOD, "plain"])
def test_kinds_that_break_the_json(kind: str, text: str) -> None:
    with pytest.raises(json.JSONDecodeError):
        json.loads(answers.spoil(text, kind))


def test_null_values_keep_the_shape() -> None:
    nulls = {"value": None, "status": "absent", "evidence": []}
    assert json.loads(answers.spoil(GOOD, "null_values")) == {
        "document": REFERENCE,
        "title": nulls,
        "product_identifiers": [],
        "description": nulls,
    }
    assert answers.spoil("plain", "null_values") == "null"


def test_line_separator_is_raw_and_inside_a_string() -> None:
    spoilt = answers.spoil(GOOD, "raw_u2028")
    assert "\u2028" in spoilt
    assert json.loads(spoilt)["description"]["value"] == "A device.\u2028"
    assert answers.spoil("plain", "raw_u2028") == "\u2028plain"
