"""What each repair does by itself, and what it leaves alone."""

from __future__ import annotations

import pytest

from pipeline_assets.workloads.format_repair import (
    commas,
    encoding,
    fences,
    quotes,
    surrounding_text,
)

OBJECT = '{"a": "x"}'


@pytest.mark.parametrize(
    ("text", "mended"),
    [
        pytest.param("\ufeff" + OBJECT, OBJECT, id="byte-order-mark"),
        pytest.param(OBJECT + "\0\0", OBJECT, id="nul"),
        pytest.param("\x1b\n \x0c" + OBJECT + "\n\x7f\x9f", OBJECT, id="controls-and-blanks"),
        pytest.param('{"a": "x\ny\r\nz\t"}', r'{"a": "x\ny\r\nz\t"}', id="raw-line-breaks"),
        pytest.param("{'a': 'x\ry'}", r"{'a': 'x\ry'}", id="in-other-marks"),
        pytest.param("So:\n" + '{"a": "\n"}\nor "\n"', 'So:\n{"a": "\\n"}\nor "\n"', id="in-prose"),
        pytest.param("\r" + OBJECT + "\r\n", None, id="white-space-of-json"),
        pytest.param('{"a": "x\0y"}', None, id="nul-in-a-string"),
        pytest.param('{"a": "x\\\ny"}', None, id="escaped-line-break"),
        pytest.param('{"a": "x\ny', None, id="cut"),
        pytest.param('{"a": "GerÃ¤t"}', None, id="encoded-twice"),
        pytest.param("\u00a0" + OBJECT, None, id="no-break-space"),
    ],
)
def test_encoding(text: str, mended: str | None) -> None:
    assert encoding.mend(text) == mended


@pytest.mark.parametrize(
    ("text", "mended"),
    [
        pytest.param(f"```json\n{OBJECT}\n```", OBJECT, id="json"),
        pytest.param(f"\n```\n{OBJECT}\n```\n", OBJECT, id="no-language"),
        pytest.param(f"~~~JSON\r\n{OBJECT}\r\n~~~", OBJECT, id="tildes"),
        pytest.param(f"````json\n{OBJECT}\n````", OBJECT, id="four"),
        pytest.param(f"```{OBJECT}```", OBJECT, id="one-line"),
        pytest.param("``` json [1] ```", "[1]", id="a-list"),
        pytest.param(f"```json\n{OBJECT}", None, id="not-closed"),
        pytest.param(f"{OBJECT}\n```", None, id="not-opened"),
        pytest.param(f"```\n{OBJECT}\n```\n```\n{OBJECT}\n```", None, id="two-blocks"),
        pytest.param('```\n{"a": "```"}\n```', None, id="fence-in-a-string"),
        pytest.param(f"So:\n```\n{OBJECT}\n```", None, id="words-before"),
        pytest.param("```json```", None, id="nothing-inside"),
        pytest.param("```", None, id="one-fence"),
        pytest.param("````", None, id="overlapping"),
        pytest.param(OBJECT, None, id="none"),
    ],
)
def test_fences(text: str, mended: str | None) -> None:
    assert fences.mend(text) == mended


@pytest.mark.parametrize(
    ("text", "mended"),
    [
        pytest.param(f"Here is the answer: {OBJECT}", OBJECT, id="before"),
        pytest.param(f"{OBJECT}\nI hope that's useful.", OBJECT, id="after"),
        pytest.param(f"Sure!\n```json\n{OBJECT}\n```\nDone.", OBJECT, id="fence-among-words"),
        pytest.param('It\'s {"a": "}{"}.', '{"a": "}{"}', id="braces-in-a-string"),
        pytest.param("So {'a': 'x'}", "{'a': 'x'}", id="other-marks"),
        pytest.param(f"{OBJECT}\n{OBJECT}", None, id="two-objects"),
        pytest.param(f"Not {{}} but {OBJECT}", None, id="two-objects-one-empty"),
        pytest.param(f"<draft>{OBJECT}</draft> {OBJECT}", None, id="a-draft-and-an-answer"),
        pytest.param(f"[{OBJECT}] is it", None, id="a-list"),
        pytest.param(f"[{OBJECT}", None, id="half-a-list"),
        pytest.param(f"{OBJECT},", None, id="one-of-several"),
        pytest.param(f'"answer": {OBJECT}', None, id="a-member"),
        pytest.param(f'{OBJECT}, "b": 1', None, id="a-member-after"),
        pytest.param(f'{{"answer": {OBJECT}', None, id="cut-outside"),
        pytest.param('"{}"', None, id="a-string"),
        pytest.param('So: {"a": "x"', None, id="cut"),
        pytest.param("I cannot read this document.", None, id="no-object"),
        pytest.param(f"\n{OBJECT} ", None, id="blanks"),
    ],
)
def test_surrounding_text(text: str, mended: str | None) -> None:
    assert surrounding_text.mend(text) == mended


@pytest.mark.parametrize(
    ("text", "mended"),
    [
        pytest.param('{"a": [1, 2, ], }', '{"a": [1, 2 ] }', id="trailing"),
        pytest.param('{"a": 1,, "b": [1 , , ,2]}', '{"a": 1, "b": [1 ,  2]}', id="doubled"),
        pytest.param('{"a": [1,,]}', '{"a": [1]}', id="doubled-and-trailing"),
        pytest.param('{"a": "x"\n"b": 1}', '{"a": "x",\n"b": 1}', id="missing-behind-a-string"),
        pytest.param(
            '{"a": 1 "b": {} "c": [] "d": null"e": 1}',
            '{"a": 1, "b": {}, "c": [], "d": null,"e": 1}',
            id="missing",
        ),
        pytest.param(
            '{"a": [{}{} {}], "b": [[] []]}',
            '{"a": [{},{}, {}], "b": [[], []]}',
            id="missing-in-a-list",
        ),
        pytest.param("{'a': 1 'b': 2,}", "{'a': 1, 'b': 2}", id="other-marks"),
        pytest.param('So {"a": 1,}, so', 'So {"a": 1}, so', id="only-in-the-object"),
        pytest.param('{"a": ",}", "b": ",,"}', None, id="in-strings"),
        pytest.param('{"a": "x" "b": 1}', None, id="missing-on-one-line"),
        pytest.param('{"a": "x""b": 1}', None, id="doubled-mark"),
        pytest.param('{"a": ["x"\n"y"]}', None, id="strings-in-a-list"),
        pytest.param('{"a": [1 2]}', None, id="numbers-in-a-list"),
        pytest.param('{"a": [[] {}]}', None, id="unlike-neighbours"),
        pytest.param('{"a": [,1]}', None, id="leading"),
        pytest.param('{"a": [,]}', None, id="alone-in-a-list"),
        pytest.param('{,"a": 1}', None, id="leading-in-an-object"),
        pytest.param('{"a":,}', None, id="no-value"),
        pytest.param('{"a" "b": 1}', None, id="key-after-key"),
        pytest.param('{"a": 1\n"b"}', None, id="no-second-value"),
        pytest.param('{"a": 1,', None, id="cut"),
        pytest.param('{"a": [1,}]', None, id="crossed-brackets"),
        pytest.param('{"a": 1, "b": [1, {"c": 2}]}', None, id="right"),
    ],
)
def test_commas(text: str, mended: str | None) -> None:
    assert commas.mend(text) == mended


@pytest.mark.parametrize(
    ("text", "mended"),
    [
        pytest.param("{'a': 'x', \"b\": ['y' , 1]}", '{"a": "x", "b": ["y" , 1]}', id="single"),
        pytest.param("{“a”: “x”, „b“: 1}", '{"a": "x", "b": 1}', id="typographic"),
        pytest.param("{‘a’: ‘x’}", '{"a": "x"}', id="typographic-single"),
        pytest.param("{'a': '5\" pipe'}", r'{"a": "5\" pipe"}', id="inner-double"),
        pytest.param(
            r"{'a': 'it\'s \"x\" \\'}", r'{"a": "it' + r"'s \"x\" \\" + '"}', id="escaped"
        ),
        pytest.param("{'a': '“x” it’s'}", '{"a": "“x” it’s"}', id="inner-typographic"),
        pytest.param("{“a”: “it's”}", '{"a": "it\'s"}', id="inner-single"),
        pytest.param('{"a": "\'x\' “y”", "b": "it\'s"}', None, id="inside-strings"),
        pytest.param("{'a': 'it's'}", None, id="apostrophe"),
        pytest.param("{‘a’: ‘it’s’}", None, id="typographic-apostrophe"),
        pytest.param("{“a”: “the “x” y”}", None, id="nested"),
        pytest.param('{“a”: “5" pipe”}', None, id="straight-in-typographic"),
        pytest.param('{"a”: 1}', None, id="mixed"),
        pytest.param("{a: 1}", None, id="bare-key"),
        pytest.param("{`a`: 1}", None, id="backticks"),
        pytest.param("{'a': 'x", None, id="cut"),
        pytest.param("{'a': None}", None, id="other-literals"),
        pytest.param("{“a”: “x”} “b”", '{"a": "x"} “b”', id="only-in-the-object"),
    ],
)
def test_quotes(text: str, mended: str | None) -> None:
    assert quotes.mend(text) == mended
