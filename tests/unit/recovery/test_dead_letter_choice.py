"""Which dead letters are meant, and how they are grouped."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_assets.recovery.dead_letter_choice import (
    AmbiguousDeadLetter,
    NothingSelected,
    Selection,
    SelectionUnclear,
    UnknownDeadLetter,
    choose,
    group_by_cause,
    match_names,
)

KEY = "manuals-1"
LETTERS = (
    ("r1", "shop/a/pump.txt", "refused", "the model refused", "operators"),
    ("r2", "shop/b/pump.txt", "refused", "the model refused", "Ada"),
    ("r3", "shop/fan.txt", "malformed_json", "the answer is not JSON", "operators"),
    ("r4", "shop/fan.txt", "refused", "another reason", "operators"),
    ("r5", "shop/old fan.txt", "quota", "status 402", "operators"),
)


def letters(rows: Iterable[tuple[str, ...]] = LETTERS) -> pl.DataFrame:
    frame = pl.DataFrame(
        list(rows),
        schema=["record_id", "document_id", "failure_class", "reason", "owner"],
        orient="row",
    )
    return frame.with_columns(
        diagnostics=pl.format("said of {}", "failure_class"),
        opened_at=pl.format("2030-01-0{}", pl.int_range(pl.len()).reverse() + 1),
    )


def chosen(selection: Selection) -> list[str]:
    return choose(letters(), selection, KEY)["record_id"].to_list()


@pytest.mark.parametrize(
    ("selection", "wanted"),
    [
        pytest.param(Selection(everything=True), ["r1", "r2", "r3", "r4", "r5"], id="all"),
        pytest.param(Selection(failure_class="refused"), ["r1", "r2", "r4"], id="class"),
        pytest.param(Selection(("shop/a/pump.txt",)), ["r1"], id="document"),
        pytest.param(Selection(("shop/fan.txt",)), ["r3", "r4"], id="document-with-two-records"),
        pytest.param(Selection(("r4",)), ["r4"], id="record"),
        pytest.param(Selection(("a/pump.txt", "r5")), ["r1", "r5"], id="ending-and-record"),
        pytest.param(Selection(("/fan.txt",)), ["r3", "r4"], id="folder-slash"),
        pytest.param(Selection(("fan.txt",)), ["r3", "r4"], id="whole-name-wins"),
        pytest.param(Selection(("d fan.txt",)), ["r5"], id="part-of-a-name"),
        pytest.param(Selection(("r5", "r5")), ["r5"], id="said-twice"),
    ],
)
def test_what_is_chosen(selection: Selection, wanted: list[str]) -> None:
    assert chosen(selection) == wanted


@pytest.mark.parametrize(
    ("selection", "error", "said"),
    [
        pytest.param(Selection(), SelectionUnclear, "found nothing to choose by", id="no-way"),
        pytest.param(
            Selection(("r1",), everything=True),
            SelectionUnclear,
            "found documents and --all to choose by; expected exactly one",
            id="two-ways",
        ),
        pytest.param(
            Selection(("r1",), "refused", everything=True),
            SelectionUnclear,
            "documents and --class and --all",
            id="three-ways",
        ),
        pytest.param(
            Selection(failure_class="timeout"),
            NothingSelected,
            "no 'timeout' dead letter (the classes here are malformed_json, quota, refused)",
            id="unknown-class",
        ),
        pytest.param(
            Selection(("pump.txt",)),
            AmbiguousDeadLetter,
            "2 documents with dead letters end with 'pump.txt' (shop/a/pump.txt, shop/b/pump.txt)",
            id="several",
        ),
        pytest.param(
            Selection(("r1", "saw.txt", "axe.txt")),
            UnknownDeadLetter,
            "'saw.txt', 'axe.txt': not among the dead letters of manuals-1",
            id="unknown-name",
        ),
        pytest.param(Selection(("",)), UnknownDeadLetter, "'': not among", id="empty-name"),
        pytest.param(
            Selection(tuple(f"no-{number}" for number in range(5))),
            UnknownDeadLetter,
            "'no-0', 'no-1', 'no-2' and 2 more",
            id="many-unknown",
        ),
    ],
)
def test_what_is_refused(selection: Selection, error: type[Exception], said: str) -> None:
    with pytest.raises(error) as caught:
        chosen(selection)
    assert said in str(caught.value)


def test_all_of_none_is_refused() -> None:
    with pytest.raises(NothingSelected, match=r"there is none at all"):
        choose(letters([]), Selection(everything=True), KEY)


def test_groups_are_causes_and_the_largest_comes_first() -> None:
    found = group_by_cause(letters())
    assert found.to_dicts() == [
        {
            "failure_class": "refused",
            "diagnostics": "said of refused",
            "reason": "the model refused",
            "letters": 2,
            "oldest_at": "2030-01-04",
            "owners": ["Ada", "operators"],
            "examples": ["shop/b/pump.txt", "shop/a/pump.txt"],
        },
        {
            "failure_class": "malformed_json",
            "diagnostics": "said of malformed_json",
            "reason": "the answer is not JSON",
            "letters": 1,
            "oldest_at": "2030-01-03",
            "owners": ["operators"],
            "examples": ["shop/fan.txt"],
        },
        {
            "failure_class": "quota",
            "diagnostics": "said of quota",
            "reason": "status 402",
            "letters": 1,
            "oldest_at": "2030-01-01",
            "owners": ["operators"],
            "examples": ["shop/old fan.txt"],
        },
        {
            "failure_class": "refused",
            "diagnostics": "said of refused",
            "reason": "another reason",
            "letters": 1,
            "oldest_at": "2030-01-02",
            "owners": ["operators"],
            "examples": ["shop/fan.txt"],
        },
    ]


def test_a_group_names_a_few_documents_only() -> None:
    many = letters((f"r{n}", f"shop/{n}", "refused", "why", "us") for n in range(1, 9))
    (group,) = group_by_cause(many).to_dicts()
    assert (group["letters"], group["examples"]) == (8, ["shop/8", "shop/7", "shop/6"])


@given(st.lists(st.sampled_from("abc/"), min_size=1, max_size=4).map("".join), st.data())
def test_a_name_gives_the_letters_of_one_document_or_an_error(
    ending: str, data: st.DataObject
) -> None:
    documents = data.draw(
        st.lists(st.text("abc/", min_size=1, max_size=5), min_size=1, max_size=6, unique=True)
    )
    frame = letters(
        (f"record-{n}", f"s/{name}", "refused", "why", "us") for n, name in enumerate(documents)
    )
    try:
        found = match_names(frame, (ending,), KEY)["document_id"].unique()
    except (UnknownDeadLetter, AmbiguousDeadLetter):
        exact = frame.filter(pl.col("document_id") == ending)
        at_a_folder = frame.filter(pl.col("document_id").str.ends_with("/" + ending.lstrip("/")))
        assert exact.is_empty()
        assert ending.startswith("/") or at_a_folder.height != 1
    else:
        assert found.len() == 1
        assert found[0].endswith(ending)
