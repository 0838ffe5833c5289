"""The frame rule: each check with what passes and what does not, and no value in any note."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandera.polars as pa
import polars as pl
import pytest

from pipeline_assets.workloads.equipment_manuals.rules import frame
from pipeline_assets.workloads.equipment_manuals.rules.frame import FrameBroken, make_rule
from tests.unit.workloads.rules.support import (
    ABSENT,
    LIMITS,
    SENTENCE,
    TITLE,
    answer,
    field,
    found,
    shard,
)

RULE = make_rule(LIMITS)
IDENTIFIERS = "product_identifiers"


def items(count: int, quotes: int = 1) -> list[dict[str, Any]]:
    return [field(f"DX-{number}", *[TITLE] * quotes) for number in range(count)]


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param(answer(), id="as-usual"),
        pytest.param(answer(title=field("abc", "abc")), id="shortest-title"),
        pytest.param(answer(title=field("a" * 200, "abc")), id="longest-title"),
        pytest.param(answer(title=field("取扱説明書", "abc")), id="title-in-another-script"),
        pytest.param(answer(title=ABSENT), id="no-title"),
        pytest.param(answer(title=field(None, status="uncertain")), id="uncertain-without-value"),
        pytest.param(answer(title=field("abc", status="uncertain")), id="uncertain-with-value"),
        pytest.param(answer(product_identifiers=[]), id="no-identifiers"),
        pytest.param(answer(product_identifiers=items(30)), id="most-identifiers"),
        pytest.param(answer(product_identifiers=items(1, 6)), id="most-quotes"),
        pytest.param(answer(title=field("abc", *["abc"] * 12)), id="most-title-quotes"),
        pytest.param(answer(description=field("a" * 20, "abc")), id="shortest-description"),
        pytest.param(answer(description=field("a" * 600, "x" * 1000)), id="longest-description"),
        pytest.param(answer(language=ABSENT), id="no-language"),
    ],
)
def test_what_passes(entry: dict[str, Any]) -> None:
    assert found(RULE, shard(entry)) == []


@pytest.mark.parametrize(
    ("entry", "where", "note"),
    [
        pytest.param(
            answer(title=field("ab", "ab")), "title", "length_3_to_200", id="title-too-short"
        ),
        pytest.param(
            answer(title=field("a" * 201, "aa")), "title", "length_3_to_200", id="title-too-long"
        ),
        pytest.param(
            answer(title=field("   ", TITLE)), "title", "no letter or digit", id="blank-title"
        ),
        pytest.param(
            answer(title=field("\u200b\u200b\u200b", TITLE)),
            "title",
            "no letter or digit",
            id="invisible-title",
        ),
        pytest.param(
            answer(title=field("- – —", TITLE)), "title", "no letter or digit", id="dashes"
        ),
        pytest.param(
            answer(description=field("." * 30, SENTENCE)),
            "description",
            "no letter or digit",
            id="dots",
        ),
        pytest.param(
            answer(title=field(None, TITLE)),
            "title",
            "value and status disagree",
            id="found-without-value",
        ),
        pytest.param(
            answer(title=field("abc", status="absent")),
            "title",
            "value and status disagree",
            id="absent-with-value",
        ),
        pytest.param(
            answer(language=field(None, SENTENCE)),
            "language",
            "value and status disagree",
            id="found-without-language",
        ),
        pytest.param(
            answer(description=field(SENTENCE, status="absent")),
            "description",
            "value and status disagree",
            id="absent-with-description",
        ),
        pytest.param(
            answer(language=field("eng", SENTENCE)), "language", "language_code", id="three-letters"
        ),
        pytest.param(
            answer(language=field("EN", SENTENCE)), "language", "language_code", id="upper-case"
        ),
        pytest.param(
            answer(language=field("e\n", SENTENCE)), "language", "language_code", id="newline"
        ),
        pytest.param(
            answer(language=field("en\n", SENTENCE)), "language", "language_code", id="and-newline"
        ),
        pytest.param(
            answer(description=field("a" * 19, "abc")),
            "description",
            "length_20_to_600",
            id="description-too-short",
        ),
        pytest.param(
            answer(description=field("a" * 601, "abc")),
            "description",
            "length_20_to_600",
            id="description-too-long",
        ),
        pytest.param(
            answer(title=field(TITLE)), "title", "found without evidence", id="title-unproven"
        ),
        pytest.param(
            answer(language=field("en")),
            "language",
            "found without evidence",
            id="language-unproven",
        ),
        pytest.param(
            answer(description=field(SENTENCE)),
            "description",
            "found without evidence",
            id="description-unproven",
        ),
        pytest.param(
            answer(product_identifiers=[*items(2), field("X-1")]),
            IDENTIFIERS,
            "found without evidence",
            id="one-identifier-unproven",
        ),
        pytest.param(answer(product_identifiers=items(31)), IDENTIFIERS, "too many", id="too-many"),
        pytest.param(
            answer(product_identifiers=[*items(2), *items(1)]),
            IDENTIFIERS,
            "repeated",
            id="repeated",
        ),
        pytest.param(
            answer(product_identifiers=[field(None, status="uncertain")]),
            IDENTIFIERS,
            "no value",
            id="identifier-without-value",
        ),
        pytest.param(
            answer(title=field(TITLE, *[TITLE] * 13)), "title", "too many quotes", id="13-quotes"
        ),
        pytest.param(
            answer(product_identifiers=items(1, 7)), IDENTIFIERS, "too many quotes", id="7-quotes"
        ),
        pytest.param(
            answer(language=field("en", "a")),
            "language",
            "a quote is too short or too long",
            id="quote-of-one-letter",
        ),
        pytest.param(
            answer(description=field(SENTENCE, "x" * 1001)),
            "description",
            "a quote is too short or too long",
            id="quote-of-a-page",
        ),
    ],
)
def test_what_is_found(entry: dict[str, Any], where: str, note: str) -> None:
    assert found(RULE, shard(entry)) == [(0, where, note)]


def test_findings_stand_at_their_own_rows() -> None:
    seen = shard(answer(), answer(title=field("ab", "ab")), answer(), answer(language=field("x")))
    assert found(RULE, seen) == [
        (1, "title", "length_3_to_200"),
        (3, "language", "found without evidence"),
        (3, "language", "language_code"),
    ]


def test_slices_do_not_move_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = shard(*[answer(title=field("ab" if n % 3 else TITLE, TITLE)) for n in range(10)])
    whole = found(RULE, seen)
    monkeypatch.setattr(frame, "SLICE", 3)
    assert found(RULE, seen) == whole
    assert [row for row, _, _ in whole] == [1, 2, 4, 5, 7, 8]


def test_no_records() -> None:
    assert found(RULE, shard()) == []


def test_notes_never_carry_values() -> None:
    secret = "Zebra Confidential"
    seen = shard(
        answer(
            title=field(secret * 20, secret * 90),
            language=field(secret),
            description=field(secret, status="absent"),
            product_identifiers=[field(secret), field(secret), field(None)],
        )
    )
    findings = found(RULE, seen)
    assert len(findings) >= 6
    assert not [note for _, _, note in findings if "zebra" in note.lower()]


@pytest.mark.parametrize(
    ("change", "where"),
    [
        pytest.param(pl.lit("sure").alias("title_status"), "title", id="unknown-status"),
        pytest.param(pl.lit(None, pl.String).alias("title_status"), "title", id="no-status"),
        pytest.param(pl.lit(None, pl.String).alias("document"), "document", id="no-reference"),
    ],
)
def test_a_value_that_no_decoder_gives_is_found_at_its_row(change: pl.Expr, where: str) -> None:
    seen = shard(answer(), answer())
    first = seen.values.head(1)
    seen = replace(seen, values=pl.concat([first, seen.values.tail(1).with_columns(change)]))
    assert {(row, name) for row, name, _ in found(RULE, seen)} == {(1, where)}


@pytest.mark.parametrize(
    "values",
    [
        pytest.param(lambda values: values.drop("description"), id="column-missing"),
        pytest.param(lambda values: values.with_columns(extra=1), id="column-superfluous"),
        pytest.param(
            lambda values: values.with_columns(title=pl.lit(float("nan"))), id="not-a-number"
        ),
        pytest.param(
            lambda values: values.with_columns(pl.col("row").cast(pl.Int32)), id="other-type"
        ),
    ],
)
def test_a_broken_frame_judges_no_record(values: Any) -> None:
    seen = shard(answer())
    with pytest.raises((FrameBroken, pl.exceptions.PolarsError)) as broken:
        RULE.check(replace(seen, values=values(seen.values)))
    assert TITLE not in str(broken.value)


def test_pandera_is_given_eager_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a lazy frame it checks types alone, and every value would pass."""
    given: list[type] = []
    validate = pa.DataFrameSchema.validate

    def told(self: pa.DataFrameSchema, check_obj: Any, *more: Any, **named: Any) -> Any:
        given.append(type(check_obj))
        return validate(self, check_obj, *more, **named)

    monkeypatch.setattr(pa.DataFrameSchema, "validate", told)
    RULE.check(shard(answer()))
    assert given == [pl.DataFrame]
