"""Lines of providers: cut on newlines alone, and the baseline's own format."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.providers.baseline import (
    BaselineProvider,
    RequestPage,
    encode_body,
    encode_request,
)
from resources.providers.port import MalformedLine, ResultLine, split_lines


def cut(data: bytes, block: int = 1 << 20) -> list[tuple[int, int, bytes]]:
    return [(line.number, line.offset, line.data) for line in split_lines(io.BytesIO(data), block)]


@pytest.mark.parametrize("block", [1, 2, 3, 5, 1 << 20])
@pytest.mark.parametrize(
    ("data", "lines"),
    [
        pytest.param(b"", [], id="nothing"),
        pytest.param(b"a\nb\n", [(0, 0, b"a"), (1, 2, b"b")], id="plain"),
        pytest.param(b"a\nb", [(0, 0, b"a"), (1, 2, b"b")], id="no-final-newline"),
        pytest.param(b"a\r\nbc\r\n", [(0, 0, b"a"), (1, 3, b"bc")], id="crlf"),
        pytest.param(b"a\r", [(0, 0, b"a")], id="carriage-return-at-the-end"),
        pytest.param(b"a\rb\n", [(0, 0, b"a\rb")], id="carriage-return-inside"),
        pytest.param(b"a\r\r\n", [(0, 0, b"a\r")], id="one-carriage-return-goes"),
        pytest.param(b"\n\na\n\n", [(2, 2, b"a")], id="blank-lines-count"),
        pytest.param(b" \t\r\n\nx", [(2, 5, b"x")], id="white-space-is-blank"),
        pytest.param("é\u2028x\n".encode(), [(0, 0, "é\u2028x".encode())], id="line-separator"),
        pytest.param("a\u0085b\n".encode(), [(0, 0, "a\u0085b".encode())], id="next-line"),
        pytest.param(b"a\x0b\x0cb\x1c\x1db\n", [(0, 0, b"a\x0b\x0cb\x1c\x1db")], id="controls"),
        pytest.param("𝒳\n𝒴".encode(), [(0, 0, "𝒳".encode()), (1, 5, "𝒴".encode())], id="astral"),
    ],
)
def test_split_lines(data: bytes, lines: list[tuple[int, int, bytes]], block: int) -> None:
    assert cut(data, block) == lines


@given(st.binary(max_size=40), st.integers(1, 9))
def test_blocks_do_not_change_the_lines(data: bytes, block: int) -> None:
    lines = cut(data, block)
    assert lines == cut(data)
    for number, offset, line in lines:
        assert data[offset : offset + len(line)] == line
        assert data[:offset].count(b"\n") == number


def provider() -> BaselineProvider:
    def answer(document: str, pages: list[RequestPage]) -> bytes:
        return json.dumps([document, [[page.number, page.text] for page in pages]]).encode()

    return BaselineProvider("rules-7", answer)


def test_an_answer_is_a_line_of_the_same_attempt() -> None:
    body = encode_body("rules-7", "doc-1", [(1, "a\u2028b"), (2, ""), (3, '𝒳\r\n"')])
    line = provider().answer_line(encode_request("0123456789ab-3", body))
    assert b"\n" not in line
    read = provider().read_line(line)
    assert read.text is not None
    assert json.loads(read.text) == ["doc-1", [[1, "a\u2028b"], [2, ""], [3, '𝒳\r\n"']]]
    assert read == ResultLine(
        "0123456789ab-3", 200, read.text, "stop", None, model_revision="rules-7"
    )


def test_a_failed_row_is_read_as_one() -> None:
    line = b'{"custom_id":"x","status_code":500,"error_code":"server_error","new":[1]}'
    assert provider().read_line(line) == ResultLine("x", 500, error_code="server_error")


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"{", id="cut"),
        pytest.param(b"[]", id="list"),
        pytest.param(b"{}", id="no-fields"),
        pytest.param(b'{"custom_id":1,"status_code":200}', id="id-no-text"),
        pytest.param(b'{"custom_id":"x","status_code":"200"}', id="status-no-number"),
        pytest.param(b'{"custom_id":"x","status_code":200,"body":[]}', id="body-no-object"),
        pytest.param(b'{"custom_id":"x","status_code":200}{}', id="two-values"),
        pytest.param(b'{"custom_id":"\xff","status_code":200}', id="not-utf-8"),
        pytest.param(b'{"custom_id":"\\ud800","status_code":200}', id="half-a-surrogate"),
        pytest.param(
            b'{"custom_id":"x","status_code":200,"z":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
            id="nested-too-deep",
        ),
    ],
)
def test_a_line_of_another_format(line: bytes) -> None:
    with pytest.raises(MalformedLine, match="not a baseline result") as refused:
        provider().read_line(line)
    assert "custom_id" not in str(refused.value)


@pytest.mark.parametrize(
    "line", [b"", b"{}", b'{"custom_id":"x","body":{}}', b"[" * 100_000], ids=range(4)
)
def test_a_request_of_another_format(line: bytes) -> None:
    with pytest.raises(MalformedLine, match="not a baseline request"):
        provider().answer_line(line)
