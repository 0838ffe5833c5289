"""Reading result files: one bad line is one bad line, and places name the exact bytes."""

from __future__ import annotations

import gc
import hashlib
import io
import json

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_assets.collect.observe import OBSERVED_SCHEMA, observe
from pipeline_assets.workloads.equipment_manuals.columns import check_answer, decode, echoed
from pipeline_assets.workloads.format_repair.repairs import REPAIRS
from resources.providers.baseline import BaselineProvider
from resources.providers.port import ResultLine


def line(custom_id: str, text: str | None = "{}", status: int = 200, finish: str = "stop") -> bytes:
    body = {"model": "rules", "text": text, "finish_reason": finish}
    if text is None:
        return json.dumps({"custom_id": custom_id, "status_code": status}).encode()
    return json.dumps(
        {"custom_id": custom_id, "status_code": status, "body": body}, ensure_ascii=False
    ).encode()


def observed(data: bytes, provider: BaselineProvider | None = None) -> pl.DataFrame:
    return observe(
        provider or BaselineProvider("rules", lambda _document, _pages: b""),
        lambda text: text,
        7,
        io.BytesIO(data),
    )


def test_no_lines() -> None:
    assert observed(b"").schema == OBSERVED_SCHEMA


def test_one_bad_line_is_one_bad_line() -> None:
    lines = [line("a-1", "x\u2028y\u0085z"), b'{"custom_id":', b"", b"\xff\xfe", line("a-2")]
    data = b"\n".join(lines)
    frame = observed(data)
    assert frame["line"].to_list() == [0, 1, 3, 4]
    assert frame["result_file_no"].to_list() == [7] * 4
    assert frame["custom_id"].to_list() == ["a-1", None, None, "a-2"]
    assert frame["disposition"].to_list() == ["succeeded", None, None, "succeeded"]
    assert frame["answer"].to_list() == ["x\u2028y\u0085z", None, None, "{}"]
    for offset, length, number in frame.select("line_offset", "line_length", "line").iter_rows():
        assert data[offset : offset + length] == lines[number]


def test_only_a_success_has_an_answer() -> None:
    frame = observed(
        b"\n".join([line("a-1", None, 500), line("a-2", "half", finish="truncated"), line("a-3")])
    )
    assert frame["failure_class"].to_list() == ["server_error", "truncated", None]
    assert frame["answer"].to_list() == [None, None, "{}"]


def test_equal_lines_share_a_mark() -> None:
    marks = observed(b"\n".join([line("a-1"), line("a-1"), line("a-1", "other"), b"x", b"x"]))
    first, same, other, bad, same_bad = marks["body"].to_list()
    assert first == same != other
    assert bad == same_bad != first


def test_a_carriage_return_at_the_end_is_not_part_of_the_line() -> None:
    frame = observed(line("a-1") + b"\r\n" + line("a-1"))
    assert frame["body"].n_unique() == 1


def test_what_was_mended_in_each_answer() -> None:
    good = check_answer(answer("doc-1"))
    lines = [
        line("a-1", good),
        line("a-2", f"```json\n{good[:-1]},}}\n```"),
        line("a-3", f"```json\n{good[:-1]}\n```"),
        b"not a line",
        line("a-4", f"```json\n{good}\n```", finish="truncated"),
    ]
    provider = BaselineProvider("rules", lambda _document, _pages: b"")
    data = io.BytesIO(b"\n".join(lines))
    frame = observe(provider, check_answer, 7, data, echoed=echoed, repairs=REPAIRS)
    assert frame["answer"].to_list() == [good, good, None, None, None]
    assert frame["reference"].to_list() == ["doc-1", "doc-1", None, None, None]
    assert frame["failure_class"].to_list() == [None, None, "malformed_json", None, "truncated"]
    told = frame["repairs"].to_list()
    assert [told[0], *told[2:]] == [None] * 4
    fences, commas = told[1]
    assert (fences["rule"], fences["rule_version"]) == ("fences", 1)
    assert (commas["rule"], commas["rule_version"]) == ("commas", 1)
    assert fences["after_digest"] == commas["before_digest"]
    assert commas["after_digest"] == hashlib.sha256(good.encode()).hexdigest()


class Talkative(BaselineProvider):
    """A provider whose model names cannot be stored as they are."""

    def read_line(self, line: bytes) -> ResultLine:
        return ResultLine("a-1", 200, "{}", "stop", model_revision="m\0" + "m" * 500)


def test_a_model_revision_fits_its_column() -> None:
    told = observed(b"x", Talkative("rules", lambda _document, _pages: b""))["model_revision"][0]
    assert told == "m" * 128


def test_the_garbage_collector_works_again() -> None:
    assert gc.isenabled()
    observed(line("a-1"))
    assert gc.isenabled()


def answer(document: str, **more: object) -> str:
    field = {"value": None, "status": "absent", "evidence": []}
    value = {
        "title": field,
        "description": field,
        "language": field | {"value": '{"document":"doc-2"', "status": "found"},
        "product_identifiers": [],
        "document": document,
    }
    return json.dumps(value | more)


def test_what_each_success_calls_its_document() -> None:
    data = b"\n".join(
        [
            line("a-1", answer("doc-1")),
            line("a-2", answer("doc-2"), finish="truncated"),
            line("a-3", answer("doc-3", surplus=1)),
            b"not a line",
            line("a-4", answer("")),
        ]
    )
    provider = BaselineProvider("rules", lambda _document, _pages: b"")
    frame = observe(provider, check_answer, 7, io.BytesIO(data), echoed=echoed)
    assert frame.schema == OBSERVED_SCHEMA
    assert frame["reference"].to_list() == ["doc-1", None, None, None, ""]
    assert observed(data)["reference"].to_list() == [None] * 5


@pytest.mark.parametrize("data", [b"", b"not a line"], ids=["no-line", "no-answer"])
def test_no_answers_to_look_at(data: bytes) -> None:
    provider = BaselineProvider("rules", lambda _document, _pages: b"")
    frame = observe(provider, check_answer, 7, io.BytesIO(data), echoed=echoed)
    assert frame.schema == OBSERVED_SCHEMA


@given(st.lists(st.text() | st.from_regex(r"doc-[0-9a-f]{16}", fullmatch=True), min_size=1))
def test_an_echo_is_what_decoding_gives(names: list[str]) -> None:
    answers = [check_answer(answer(name)) for name in names]
    told = pl.DataFrame({"answer": answers}).select(echoed(pl.col("answer")))["answer"]
    for echo, name in zip(told, decode(answers).values["document"], strict=True):
        escaped = json.dumps(name, ensure_ascii=False) != f'"{name}"'
        assert echo == (None if escaped else name)
