"""The names of records, references, batches and attempts: built and taken apart again."""

from __future__ import annotations

import re

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.record_ids import (
    batch_key,
    custom_id,
    is_custom_id,
    record_id,
    reference,
    split_custom_id,
)

KEY = "0123456789ab"


def split(text: str | None) -> tuple[str | None, int | None]:
    frame = pl.DataFrame({"id": [text]}, schema={"id": pl.String})
    found = frame.select(split_custom_id(pl.col("id")).alias("name"))["name"][0]
    return found["batch_key"], found["index"]


def test_record_id_of_every_row() -> None:
    frame = pl.DataFrame({"d": ["m/a{}.pdf", "m/ü%40.txt"], "c": ["a" * 64, "b" * 64]})
    made = frame.select(id=record_id("equipment_manuals", pl.col("d"), pl.col("c"), "v-1"))
    assert made["id"].to_list() == [
        "equipment_manuals:m/a{}.pdf@aaaaaaaaaaaa:v-1",
        "equipment_manuals:m/ü%40.txt@bbbbbbbbbbbb:v-1",
    ]


def test_a_reference_tells_nothing_of_its_record() -> None:
    names = {reference(f"w:d{number}@c:v") for number in range(100)}
    assert len(names) == 100
    assert all(re.fullmatch(r"doc-[0-9a-f]{16}", name) for name in names)
    assert reference("w:d1@c:v") == reference("w:d1@c:v")


def test_batch_keys_differ_by_ledger_manifest_and_ordinal() -> None:
    names = {
        batch_key(ledger, manifest, ordinal)
        for ledger in ("l1", "l2")
        for manifest in ("m1", "m2")
        for ordinal in (0, 1)
    }
    assert len(names) == 8
    assert all(re.fullmatch(r"[0-9a-f]{12}", name) for name in names)


@given(st.integers(0, 49_999), st.text("0123456789abcdef", min_size=12, max_size=12))
def test_custom_ids_come_apart_again(index: int, key: str) -> None:
    name = custom_id(key, index)
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name), "what every provider takes"
    assert is_custom_id(name)
    assert split(name) == (key, index)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param(KEY, id="no-index"),
        pytest.param(f"{KEY}-", id="empty-index"),
        pytest.param(f"{KEY}-01", id="leading-zero"),
        pytest.param(f"{KEY}--1", id="negative"),
        pytest.param(f"{KEY}-+1", id="sign"),
        pytest.param(f"{KEY}-1 ", id="blank"),
        pytest.param(f"{KEY}-1\n", id="newline"),
        pytest.param(f" {KEY}-1", id="blank-before"),
        pytest.param(f"{KEY}-١", id="other-digits"),
        pytest.param(f"{KEY}-1e3", id="exponent"),
        pytest.param(f"{KEY}-{'9' * 10}", id="too-many-digits"),
        pytest.param(f"{KEY}-{'9' * 40}", id="beyond-64-bits"),
        pytest.param(f"{KEY.upper()}-1", id="upper-case"),
        pytest.param(f"{KEY}c-1", id="long-key"),
        pytest.param(f"x\n{KEY}-1", id="second-line"),
    ],
)
def test_what_is_no_custom_id(text: str) -> None:
    assert split(text) == (None, None)
    assert not is_custom_id(text)


def test_no_id_at_all() -> None:
    assert split(None) == (None, None)


@given(st.text(max_size=20))
def test_both_readings_agree(text: str) -> None:
    assert is_custom_id(text) == (split(text) != (None, None))
