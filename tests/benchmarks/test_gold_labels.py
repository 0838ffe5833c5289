"""The scorer on made-up labels, and the baseline on the development corpus."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pipeline_assets.ingest.parsing.model import ParsedDocument, ParseLimits, ParseTask
from pipeline_assets.ingest.parsing.pool import ParserPool
from pipeline_assets.workloads.equipment_manuals.answer import Answer, Field
from pipeline_assets.workloads.equipment_manuals.baseline.answer import PageText, answer
from pipeline_assets.workloads.text_folding import find_quote
from tests.benchmarks.score_baseline import (
    Outcome,
    Score,
    UnusableInput,
    main,
    normal,
    outcomes_by_file,
    read_lines,
    score,
    share,
    table,
)


def label(**changes: Any) -> dict[str, Any]:
    """A gold label of a manual; `changes` replace or add keys."""
    return {
        "file": "files/a.pdf",
        "sha256": "a" * 64,
        "labelled": True,
        "readable": True,
        "title": "Mixer MX-12 User Manual",
        "product_identifiers": ["MX-12"],
        "language": "en",
    } | changes


def accepted(**changes: Any) -> Outcome:
    values = {
        "state": "published",
        "title": "Mixer MX-12 User Manual",
        "product_identifiers": ("MX-12",),
        "language": "en",
    } | changes
    return Outcome(**values)


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        pytest.param("MX-12", "mx 12", True, id="case, dash, space"),
        pytest.param("User’s manual", "USERS MANUAL", True, id="apostrophe"),
        pytest.param("ＭＸ１２", "MX12", True, id="full width"),
        pytest.param("MX-12", "MX-13", False, id="other digits"),
    ],
)
def test_normal_form(left: str, right: str, same: bool) -> None:
    assert (normal(left) == normal(right)) is same


TITLES = {
    "as printed": ({}, "MIXER MX-12: user manual", (1, 1)),
    "an alternative": ({"title_alternatives": ["MX-12"]}, "MX-12", (1, 1)),
    "another title": ({}, "User Manual", (0, 1)),
    "none reported": ({}, None, (0, 0)),
    "none printed, one invented": ({"title": None}, "Mixer", (0, 1)),
    "none printed, a tolerated one": (
        {"title": None, "title_alternatives": ["Mixer"]},
        "Mixer",
        (1, 1),
    ),
}


@pytest.mark.parametrize(("changes", "title", "counts"), TITLES.values(), ids=TITLES.keys())
def test_titles(changes: dict[str, Any], title: str | None, counts: tuple[int, int]) -> None:
    assert score([label(**changes)], {"files/a.pdf": accepted(title=title)}).titles == counts


IDENTIFIERS = {
    "the printed one": ({}, ("mx 12",), (1, 1)),
    "a wrong one beside it": ({}, ("MX-12", "EN 60065"), (1, 2)),
    "an alternative": (
        {"identifier_alternatives": {"MX-12": ["MX-12 Pro"]}},
        ("MX-12 Pro",),
        (1, 1),
    ),
    "an optional one does not count": (
        {"optional_identifiers": ["PS-1"]},
        ("MX-12", "PS-1"),
        (1, 1),
    ),
    "one also mentioned does not count": ({"also_mentioned": ["SE-9"]}, ("SE-9",), (0, 0)),
    "labels not complete: unknown ones do not count": (
        {"identifiers_complete": False},
        ("MX-12", "MX-13"),
        (1, 1),
    ),
    "ambiguous: unknown ones do not count": ({"ambiguous": True}, ("MX-13",), (0, 0)),
    "none expected": ({"product_identifiers": []}, ("MX-12",), (0, 1)),
    "none reported": ({}, (), (0, 0)),
}


@pytest.mark.parametrize(
    ("changes", "reported", "counts"), IDENTIFIERS.values(), ids=IDENTIFIERS.keys()
)
def test_identifiers(
    changes: dict[str, Any], reported: tuple[str, ...], counts: tuple[int, int]
) -> None:
    outcome = accepted(product_identifiers=reported)
    assert score([label(**changes)], {"files/a.pdf": outcome}).identifiers == counts


def test_identifier_recall_counts_each_expected_one_once() -> None:
    row = label(
        product_identifiers=["MX-12", "MX-14"], identifier_alternatives={"MX-12": ["MX-12 Pro"]}
    )
    outcome = accepted(product_identifiers=("MX-12", "MX-12 Pro"))
    assert score([row], {"files/a.pdf": outcome}).identifier_recall == (1, 2)


@pytest.mark.parametrize(
    ("changes", "language", "counts"),
    [
        pytest.param({}, "en", (1, 1), id="right"),
        pytest.param({}, "de", (0, 1), id="wrong"),
        pytest.param({"languages": ["en", "de"]}, "de", (0, 1), id="a further language is wrong"),
        pytest.param(
            {"languages": ["en", "de"], "ambiguous": True}, "de", (1, 1), id="unless ambiguous"
        ),
    ],
)
def test_languages(changes: dict[str, Any], language: str, counts: tuple[int, int]) -> None:
    outcome = accepted(language=language)
    assert score([label(**changes)], {"files/a.pdf": outcome}).languages == counts


def test_copies_count_once_and_the_record_speaks_for_them() -> None:
    rows = [label(), label(file="files/b.pdf", duplicate_of="files/a.pdf")]
    outcomes = {"files/a.pdf": Outcome(state="excluded"), "files/b.pdf": accepted()}
    result = score(rows, outcomes)
    assert (result.documents, result.accepted) == (1, 1)


def test_what_is_not_labelled_or_not_readable_is_left_out() -> None:
    rows = [label(labelled=False), label(sha256="b" * 64, readable=False)]
    assert score(rows, {}) == Score()


def test_precision_looks_at_accepted_records_only_and_recall_at_all() -> None:
    result = score([label()], {"files/a.pdf": accepted(state="awaiting_review", title="Wrong")})
    assert (result.accepted, result.titles, result.title_recall) == (0, (0, 0), (0, 1))
    assert result.misses == ()
    assert score([label()], {}).title_recall == (0, 1)


def test_misses_say_what_was_wrong() -> None:
    result = score([label()], {"files/a.pdf": accepted(title="Wrong", language="de")})
    assert [(miss.field, miss.got) for miss in result.misses] == [
        ("title", "Wrong"),
        ("language", "de"),
    ]
    assert "wrong title in files/a.pdf: 'Wrong'" in table(result)


def test_share_of_nothing_is_whole() -> None:
    assert share((0, 0)) == 1.0
    assert share((1, 4)) == 0.25


def field(value: str | None, status: str) -> dict[str, Any]:
    return {"value": value, "status": status, "evidence": []}


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param(
            [
                {
                    "document_id": "dev/a.pdf",
                    "state": "published",
                    "title": "T",
                    "product_identifiers": ["X1"],
                    "language": "en",
                }
            ],
            id="plain values",
        ),
        pytest.param(
            [
                {"document_id": "dev/a.pdf", "state": "published"},
                {
                    "document_id": "dev/a.pdf",
                    "values": {
                        "title": field("T", "found"),
                        "product_identifiers": [field("X1", "found"), field("X2", "uncertain")],
                        "language": field("en", "found"),
                    },
                },
            ],
            id="two exports, whole fields",
        ),
        pytest.param(
            [
                {
                    "document_id": "dev/files/a.pdf",
                    "state": "published",
                    "title": "T",
                    "product_identifiers": ["X1"],
                    "language": "en",
                }
            ],
            id="the source is the folder above",
        ),
    ],
)
def test_outcomes_are_joined_by_document(rows: list[dict[str, Any]]) -> None:
    assert outcomes_by_file(rows, [label()], "dev/") == {
        "files/a.pdf": Outcome("published", "T", ("X1",), "en")
    }


def test_names_that_an_id_escapes_are_found() -> None:
    rows = [{"document_id": "dev/a%40b%3A1.pdf", "state": "accepted"}]
    assert "files/a@b:1.pdf" in outcomes_by_file(rows, [label(file="files/a@b:1.pdf")], "dev/")


def test_command_prints_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    labels, outcomes = tmp_path / "labels.jsonl", tmp_path / "outcomes.jsonl"
    labels.write_text(json.dumps(label()) + "\n")
    outcomes.write_text(json.dumps({"document_id": "dev/a.pdf", "state": "accepted"}) + "\n")
    assert main([str(labels), str(outcomes), "--prefix", "dev/"]) == 0
    assert "accepted                                1 of 1     100.0%" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param("{not json", "line 1 is no JSON", id="broken line"),
        pytest.param("[1]", "line 1 is no JSON object", id="no object"),
        pytest.param('{"state": "accepted"}', "no document_id", id="no id"),
    ],
)
def test_command_refuses_what_it_cannot_use(
    content: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels, outcomes = tmp_path / "labels.jsonl", tmp_path / "outcomes.jsonl"
    labels.write_text(json.dumps(label()) + "\n")
    outcomes.write_text(content)
    assert main([str(labels), str(outcomes)]) == 1
    assert said in capsys.readouterr().err


def test_missing_file_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "none.jsonl"), str(tmp_path / "none.jsonl")]) == 1
    assert "none.jsonl" in capsys.readouterr().err


def test_lines_may_hold_any_line_separator_inside_values(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"a": "x\u2028y"}\n\n{"a": 2}\n', encoding="utf-8")
    assert read_lines(path) == [{"a": "x\u2028y"}, {"a": 2}]


def test_unusable_input_is_a_value_error() -> None:
    with pytest.raises(UnusableInput, match="document_id"):
        outcomes_by_file([{}], [], "")


# --- the development corpus ---------------------------------------------------------------------


@dataclass(frozen=True)
class Answered:
    """One parsed corpus file and the baseline's answer."""

    file: str
    pages: tuple[PageText, ...]
    parsed_language: str | None
    answer: Answer


@pytest.fixture(scope="module")
def answered(dev_corpus: Path) -> list[Answered]:
    """The baseline's answer to every corpus file that can be parsed, copies left out."""
    rows = [row for row in read_lines(dev_corpus / "labels.jsonl") if "duplicate_of" not in row]
    tasks = [ParseTask(key=row["file"], path=dev_corpus / row["file"]) for row in rows]
    found = []
    with ParserPool(2, ParseLimits()) as pool:
        for report in pool.parse_many(tasks):
            if isinstance(report.outcome, ParsedDocument):
                pages = tuple(PageText(page.number, page.text) for page in report.outcome.pages)
                language = report.outcome.language
                found.append(Answered(report.key, pages, language, answer(report.key, pages)))
    return found


def stand_in_acceptance(item: Answered) -> str:
    """Accept what has no uncertain field, its evidence on the page, and the text's language."""
    result = item.answer
    fields = [result.title, result.language, result.description, *result.product_identifiers]
    quotes = [quote for field in fields for quote in field.evidence]
    text = {page.number: page.text for page in item.pages}
    good = (
        all(field.status != "uncertain" for field in fields)
        and result.title.status == result.language.status == "found"
        and result.language.value == item.parsed_language
        and all(find_quote(text[quote.page], quote.quote) is not None for quote in quotes)
    )
    return "accepted" if good else "awaiting_review"


def found_value(item: Field) -> str | None:
    return item.value if item.status == "found" else None


@pytest.mark.slow
def test_baseline_on_the_development_corpus(dev_corpus: Path, answered: list[Answered]) -> None:
    outcomes = {
        item.file: Outcome(
            state=stand_in_acceptance(item),
            title=found_value(item.answer.title),
            product_identifiers=tuple(
                value
                for field in item.answer.product_identifiers
                if (value := found_value(field)) is not None
            ),
            language=found_value(item.answer.language),
        )
        for item in answered
    }
    result = score(read_lines(dev_corpus / "labels.jsonl"), outcomes)
    print(table(result))
    assert result.accepted_share >= 0.4
    assert share(result.languages) == 1.0
    assert share(result.identifiers) >= 0.9
    assert share(result.titles) >= 0.92


@pytest.mark.slow
def test_every_quote_stands_on_its_page(answered: list[Answered]) -> None:
    for item in answered:
        text = {page.number: page.text for page in item.pages}
        result = item.answer
        for field in (
            result.title,
            result.language,
            result.description,
            *result.product_identifiers,
        ):
            for evidence in field.evidence:
                assert find_quote(text[evidence.page], evidence.quote) is not None, item.file
