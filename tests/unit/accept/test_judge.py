"""Judging: what is accepted, what waits, and what is kept of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_assets.accept.judge import Judged, conclude, judge_slice, open_slice
from pipeline_assets.accept.texts import Texts
from pipeline_assets.workloads.equipment_manuals.columns import check_answer
from pipeline_assets.workloads.equipment_manuals.workload import load
from pipeline_assets.workloads.workload import (
    Acceptance,
    BatchFindings,
    BatchRule,
    BatchView,
    Decoded,
    Rule,
    Severity,
    Shard,
    Workload,
)
from resources.catalogue import NO_CATALOGUE
from resources.contracts import STAGING
from resources.ledger.judgements import FINDING_SCHEMA
from resources.record_ids import reference
from tests.unit.workloads.rules.support import PAGE, SENTENCE, TITLE, answer, field

WORKLOAD = load()


def record_id(number: int) -> str:
    return f"equipment_manuals:m/{number}@{number:012d}:v"


def judged(
    *answers: dict[str, Any],
    rules: tuple[Rule, ...] = WORKLOAD.acceptances["1"].rules,
    batch_rules: tuple[BatchRule, ...] = (),
    workload: Workload = WORKLOAD,
) -> Judged:
    """Judge answers whose records are 500, 501, ... and attempts 100, 101, ..."""
    count = len(answers)
    texts = [
        check_answer(json.dumps(entry | {"document": reference(record_id(number))}))
        for number, entry in enumerate(answers)
    ]
    collected = pl.DataFrame(
        {
            "attempt_no": range(100, 100 + count),
            "record_no": range(500, 500 + count),
            "answer": texts,
        },
        schema={"attempt_no": pl.Int64, "record_no": pl.Int64, "answer": pl.String},
    )
    # The facts are of a whole batch, in another order, and more than the slice holds.
    numbers = [*reversed(range(count)), count]
    facts = pl.DataFrame(
        {
            "record_no": [500 + number for number in numbers],
            "record_id": [record_id(number) for number in numbers],
            "document_id": [f"m/{number}" for number in numbers],
            "checksum": [f"{number:064d}" for number in numbers],
            "page_count": [1] * len(numbers),
            "language": ["en"] * len(numbers),
            "languages": [None] * len(numbers),
        },
        schema={
            "record_no": pl.Int64,
            "record_id": pl.String,
            "document_id": pl.String,
            "checksum": pl.String,
            "page_count": pl.Int64,
            "language": pl.String,
            "languages": pl.String,
        },
    )

    def page_texts(wanted: pl.DataFrame) -> pl.DataFrame:
        return wanted.filter(pl.col("page") == 1).with_columns(text=pl.lit(PAGE))

    acceptance = replace(WORKLOAD.acceptances["1"], rules=rules, batch_rules=batch_rules)
    texts = Texts(page_texts, lambda _: iter(()))
    return judge(acceptance, collected, facts, texts, workload)


def judge(
    acceptance: Acceptance,
    collected: pl.DataFrame,
    facts: pl.DataFrame,
    texts: Texts,
    workload: Workload = WORKLOAD,
) -> Judged:
    """Judge a batch that is one slice."""
    opened = open_slice(workload, collected, texts)
    judged_slice = judge_slice(acceptance, opened, facts, NO_CATALOGUE.products)
    return conclude(acceptance, [judged_slice], texts)


def rule(name: str, severity: Severity, rows: list[int], version: int = 1) -> Rule:
    def check(_shard: Shard) -> pl.DataFrame:
        return pl.DataFrame(
            {"row": rows, "field": ["title"] * len(rows), "note": ["why"] * len(rows)},
            schema={"row": pl.Int64, "field": pl.String, "note": pl.String},
        )

    return Rule(name, version, severity, check)


def test_a_record_without_findings_is_accepted() -> None:
    result = judged(answer(), answer())
    assert result.staging["outcome"].to_list() == ["accepted", "accepted"]
    assert result.findings.is_empty()
    STAGING.conform(result.staging)


def test_one_finding_sends_its_own_record_to_a_person() -> None:
    result = judged(answer(), answer(title=field("Something Else", TITLE)), answer())
    assert result.staging["outcome"].to_list() == ["accepted", "awaiting_review", "accepted"]
    assert result.findings.to_dicts() == [
        {
            "rule": "title_present",
            "rule_version": 1,
            "severity": "review",
            "field": "title",
            "note": "has words that its quotes do not hold",
            "attempt_no": 101,
            "record_no": 501,
        }
    ]
    assert set(result.findings.columns) == set(FINDING_SCHEMA)


def test_a_workload_may_have_fields_of_few_roles() -> None:
    """What no field is in the role of is empty for the search, and null for the batch's rules."""

    def decode(answers: Sequence[str]) -> Decoded:
        decoded = WORKLOAD.decode(answers)
        return replace(decoded, search=decoded.search.select("title", "row"))

    seen = []

    def look(view: BatchView) -> BatchFindings:
        seen.append(view.answers)
        return BatchFindings(view.answers.clear().select("row", field=pl.lit(""), note=pl.lit("")))

    batch_rule = BatchRule("looks", 1, "note", look)
    result = judged(answer(), batch_rules=(batch_rule,), workload=replace(WORKLOAD, decode=decode))
    (staged,) = result.staging.to_dicts()
    assert staged["title"] == TITLE.lower()
    assert {staged[name] for name in ("identifiers", "description", "language")} == {""}
    (view,) = seen[0].to_dicts()
    assert (view["title"], view["identifiers"], view["description"]) == (TITLE, None, None)
    assert view["language"] == "en", "of the text, not of the answer"


@given(
    st.lists(
        st.tuples(st.sampled_from(["note", "review"]), st.lists(st.integers(0, 3), max_size=3)),
        max_size=4,
    )
)
def test_accepted_if_and_only_if_nothing_asks_for_review(
    found: list[tuple[Severity, list[int]]],
) -> None:
    rules = tuple(
        rule(f"r{number}", severity, rows, number + 1)
        for number, (severity, rows) in enumerate(found)
    )
    result = judged(*[answer()] * 4, rules=rules)
    doubted = {500 + row for severity, rows in found if severity == "review" for row in rows}
    waiting = result.staging.filter(pl.col("outcome") == "awaiting_review")["record_no"]
    assert set(waiting) == doubted
    assert set(result.staging["outcome"]) <= {"accepted", "awaiting_review"}
    told = sorted(result.findings.select("rule", "rule_version", "severity", "record_no").rows())
    assert told == sorted(
        (f"r{number}", number + 1, severity, 500 + row)
        for number, (severity, rows) in enumerate(found)
        for row in rows
    )


def test_the_digest_is_of_the_content() -> None:
    result = judged(answer(), answer(title=field("Gerät \u2028 𝒳\0", TITLE)), answer())
    for content, digest in result.staging.select("content", "values_digest").rows():
        assert hashlib.sha256(content.encode()).hexdigest() == digest
    digests = result.staging["values_digest"].to_list()
    assert digests[0] == digests[2] != digests[1], "the reference is no part of the values"


def test_the_digest_of_a_known_answer() -> None:
    frozen = "b69e73da125821e513ba9db400c727ee38ad671450ee1a5c55f0eb45c3db7a1b"
    assert judged(answer()).staging["values_digest"][0] == frozen


@pytest.mark.parametrize(
    "value",
    [
        pytest.param("\0", id="null"),
        pytest.param("a\u2028b\u0085c", id="line-separators"),
        pytest.param("𝒳\U0001f527", id="astral"),
        pytest.param("\u202eturned\u200b", id="turned-and-invisible"),
        pytest.param("\"'`\\{}%?$1", id="marks-that-mean-something-elsewhere"),
        pytest.param("x" * 100_000, id="long"),
        pytest.param("", id="empty"),
    ],
)
def test_odd_characters_are_kept_and_judged(value: str) -> None:
    result = judged(answer(), answer(title=field(value, TITLE), language=field(value, SENTENCE)))
    assert result.staging["outcome"].to_list() == ["accepted", "awaiting_review"]
    kept = json.loads(result.staging["content"][1])
    assert (kept["title"]["value"], kept["language"]["value"]) == (value, value)
    assert "\0" not in result.staging["title"][1]
    assert "\0" not in result.staging["content"][1]


def test_what_search_looks_in() -> None:
    row = judged(answer()).staging.row(0, named=True)
    assert (row["title"], row["identifiers"], row["language"]) == (
        "dust extractor dx-20",
        "dx-20",
        "en",
    )
    absent = judged(answer(title=field(None, status="absent"), product_identifiers=[])).staging
    assert absent.select("title", "identifiers").row(0) == ("", "")


def test_an_answer_of_another_record_waits() -> None:
    first, second = answer(), answer()
    result = judged(first, second)
    assert result.findings.is_empty()
    collected = check_answer(json.dumps(answer(document=reference(record_id(7)))))
    facts = pl.DataFrame(
        {
            "record_no": [1],
            "record_id": [record_id(1)],
            "document_id": ["m/1"],
            "checksum": ["0" * 64],
            "page_count": [1],
            "language": ["en"],
            "languages": [""],
        }
    )
    swapped = judge(
        WORKLOAD.acceptances["1"],
        pl.DataFrame({"attempt_no": [1], "record_no": [1], "answer": [collected]}),
        facts,
        Texts(lambda wanted: wanted.with_columns(text=pl.lit(PAGE)), lambda _: iter(())),
    )
    assert swapped.staging["outcome"].to_list() == ["awaiting_review"]
    assert swapped.findings["rule"].to_list() == ["document_reference"]


NOTHING = {"row": pl.Int64, "field": pl.String, "note": pl.String}


def whole(name: str, severity: Severity, rows: list[int], pattern: str | None = None) -> BatchRule:
    def check(view: BatchView) -> BatchFindings:
        assert view.answers["row"].to_list() == list(range(view.answers.height))
        notes = ["why"] * len(rows)
        found = pl.DataFrame({"row": rows, "field": notes, "note": notes}, schema=NOTHING)
        return BatchFindings(found, pattern)

    return BatchRule(name, 1, severity, check)


@pytest.mark.parametrize(
    ("own", "batch", "expected"),
    [
        pytest.param("note", "note", "accepted", id="notes"),
        pytest.param("review", "note", "awaiting_review", id="own-rule"),
        pytest.param("note", "review", "awaiting_review", id="batch-rule"),
        pytest.param("review", "recover", "recovery", id="recovery-before-review"),
        pytest.param("recover", "review", "recovery", id="own-recovery"),
    ],
)
def test_the_gravest_finding_decides(own: Severity, batch: Severity, expected: str) -> None:
    result = judged(
        answer(),
        answer(),
        rules=(rule("one", own, [1]),),
        batch_rules=(whole("all", batch, [1], "all of it"),),
    )
    assert result.staging["outcome"].to_list() == ["accepted", expected]
    assert result.findings.select("rule", "severity", "attempt_no", "record_no").rows() == [
        ("all", batch, 101, 501),
        ("one", own, 101, 501),
    ]
    assert result.patterns == ("all of it",)
    assert result.findings.schema == FINDING_SCHEMA


def test_a_finding_may_be_graver_than_its_rule() -> None:
    def check(_shard: Shard) -> pl.DataFrame:
        return pl.DataFrame(
            {
                "row": [0, 1],
                "field": ["title"] * 2,
                "note": ["why"] * 2,
                "severity": ["note", "review"],
            },
            schema={**NOTHING, "severity": pl.String},
        )

    result = judged(answer(), answer(), rules=(Rule("mixed", 1, "note", check),))
    assert result.staging["outcome"].to_list() == ["accepted", "awaiting_review"]


def test_places_are_kept_where_they_are_asked_for() -> None:
    told = judge_places(places=True)
    assert told.filter(pl.col("field") == "title").select(
        "attempt_no", "item", "quote_no", "page", "has_page", "start", "end"
    ).rows() == [(1, 0, 0, 1, True, 0, len(TITLE)), (1, 0, 1, 2, False, None, None)]
    assert judge_places(places=False).is_empty()


def judge_places(*, places: bool) -> pl.DataFrame:
    text = answer(title=field(TITLE, TITLE, (2, TITLE)), document=reference(record_id(1)))
    facts = pl.DataFrame(
        {
            "record_no": [1],
            "record_id": [record_id(1)],
            "document_id": ["m/1"],
            "checksum": ["0" * 64],
            "page_count": [1],
            "language": ["en"],
            "languages": [""],
        }
    )
    return judge(
        replace(WORKLOAD.acceptances["1"], places=places),
        pl.DataFrame(
            {"attempt_no": [1], "record_no": [1], "answer": [check_answer(json.dumps(text))]}
        ),
        facts,
        Texts(
            lambda wanted: wanted.filter(pl.col("page") == 1).with_columns(text=pl.lit(PAGE)),
            lambda _: iter(()),
        ),
    ).places
