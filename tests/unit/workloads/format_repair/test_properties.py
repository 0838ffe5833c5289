"""For answers of any kind: damage of form is undone, and nothing is ever made up."""

from __future__ import annotations

import json
import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pipeline_assets.workloads.format_repair.repairs import REPAIRS
from pipeline_assets.workloads.format_repair.scanning import DOUBLE_MARKS, SINGLE_MARKS
from tests.unit.workloads.format_repair.support import Damage, check, maybe_of, mended, write

TEXTS = st.text(st.sampled_from("ab é7{}[]:,`\\\n\t\r\x7f—😀\"'“”‘’„"), max_size=12) | st.text(
    max_size=12
)
SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
)
KEYS = st.sampled_from(["a", "b", "page", "quote", "value"]) | TEXTS


def objects_of(texts: st.SearchStrategy[str]) -> st.SearchStrategy[dict[str, Any]]:
    keys = KEYS.flatmap(lambda key: st.just(key) if key.isalpha() else texts)
    values = st.recursive(
        SCALARS | texts,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
        max_leaves=12,
    )
    return st.dictionaries(keys, values, max_size=5)


OBJECTS = objects_of(TEXTS)
BARE = TEXTS.map(lambda text: re.sub(f"[\"'{DOUBLE_MARKS}{SINGLE_MARKS}]", "", text))
WORDS = st.text(st.sampled_from("Here is it: 1.\n!-é"), max_size=20).filter(str.strip)
BITS = st.integers(0, 2**24)
AROUND = st.text(st.sampled_from("\0\x1b\x9f\ufeff\n"), max_size=4)


@given(OBJECTS, st.booleans())
def test_json_is_never_touched(value: dict[str, Any], ascii_only: bool) -> None:
    for text in (
        json.dumps(value, ensure_ascii=ascii_only),
        json.dumps([value], ensure_ascii=ascii_only, indent=1),
        json.dumps(json.dumps(value)),
    ):
        assert [repair.mend(text) for repair in REPAIRS] == [None] * len(REPAIRS)
        assert mended(text) is None


@given(OBJECTS, st.data(), st.booleans())
def test_damage_of_form_is_undone(
    value: dict[str, Any], data: st.DataObject, ascii_only: bool
) -> None:
    maybe = maybe_of(data.draw(BITS))
    right, wrong = write(
        value, Damage(('"', '"'), maybe, maybe, maybe, maybe), ascii_only=ascii_only
    )
    before, after = data.draw(AROUND), data.draw(AROUND)
    match data.draw(st.sampled_from(["bare", "fenced", "among words"])):
        case "fenced":
            wrong = f"```json\n{wrong}\n```"
        case "among words":
            wrong = f"{data.draw(WORDS)}\n{wrong}\nSo {data.draw(WORDS)}"
        case _:
            pass
    wrong = before + wrong + after
    found = mended(wrong)
    # White space of JSON's own may stay around it.
    assert (found and found.strip()) == (None if _is_json(wrong) else right)


@given(st.sampled_from(["''", "“”", "„“", "””", "‘’", "‚‘"]), objects_of(BARE), BITS)
def test_other_marks_are_undone(marks: str, value: dict[str, Any], bits: int) -> None:
    maybe = maybe_of(bits)
    damage = Damage((marks[0], marks[1]), trailing=maybe, doubled=maybe, raw=maybe)
    right, wrong = write(value, damage)
    assert mended(wrong) == (None if _is_json(wrong) else right)
    assert mended(f"```\n{wrong}\n```") == right


@given(OBJECTS, st.data())
def test_a_cut_answer_is_never_closed(value: dict[str, Any], data: st.DataObject) -> None:
    _, wrong = write(value, Damage(trailing=lambda: True, raw=lambda: True))
    cut = wrong[: data.draw(st.integers(0, len(wrong) - 1))]
    for text in (cut, f"```json\n{cut}\n```", f"```json\n{cut}", f"Here it is: {cut}", cut + "."):
        assert mended(text) is None


EDITS = st.lists(
    st.tuples(
        st.integers(0, 10_000),
        st.integers(0, 3),
        st.text(st.sampled_from("{}[]:,\"'“”‘’\\\n\t `a1n."), max_size=2),
    ),
    max_size=3,
)


@st.composite
def damaged_at_random(draw: st.DrawFn) -> str:
    """An answer with damage of form, and with a few random deletions and insertions as well."""
    maybe = maybe_of(draw(BITS))
    marks = draw(st.sampled_from(['""', '""', "''", "“”", "‘’"]))
    _, text = write(draw(OBJECTS), Damage((marks[0], marks[1]), maybe, maybe, maybe, maybe))
    text = draw(st.sampled_from(["{}", "```json\n{}\n```", "So: {}", "\ufeff{}"])).replace(
        "{}", text
    )
    for place, length, put in draw(EDITS):
        start = place % (len(text) + 1)
        text = text[:start] + put + text[start + length :]
    return text


@given(damaged_at_random())
def test_nothing_is_made_up(text: str) -> None:
    found = mended(text)
    if found is None:
        return
    check(found)
    told, numbers = _strings_and_numbers(found)
    readable = _unescaped(text)
    for string in told:
        assert string in readable or string in text
    for number in numbers:
        assert re.search(rf"(?<![0-9.eE+-]){re.escape(number)}(?![0-9.eE])", text)
    for literal in ("null", "true", "false"):
        assert len(re.findall(literal, found)) <= len(re.findall(literal, text))
    # What stands beside strings is never reordered either: the letters come in the same order.
    assert _is_subsequence(re.sub(r"[\W_]", "", _unescaped(found)), re.sub(r"[\W_]", "", readable))


@given(damaged_at_random())
def test_each_repair_is_done_at_once(text: str) -> None:
    for repair in REPAIRS:
        once = repair.mend(text)
        assert once is None or repair.mend(once) is None
    found = mended(text)
    assert found is None or mended(found) is None


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _strings_and_numbers(text: str) -> tuple[list[str], list[str]]:
    """Every key and string, and every number as it is written."""
    strings: list[str] = []
    numbers: list[str] = []

    def note(token: str) -> int:
        numbers.append(token)
        return 0

    def members(pairs: list[tuple[str, Any]]) -> None:
        names = [name for name, _ in pairs]
        assert len(set(names)) == len(names), "a member twice"
        strings.extend(names)
        strings.extend(value for _, value in pairs if isinstance(value, str))
        for _, value in pairs:
            strings.extend(_listed(value))

    json.loads(text, parse_int=note, parse_float=note, object_pairs_hook=members)
    return strings, numbers


def _listed(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [entry for part in value for entry in _listed(part)] if isinstance(value, list) else []


_ESCAPE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.", re.DOTALL
)


def _unescaped(text: str) -> str:
    """A text with every escape of JSON, and escaped mark, as what it means."""

    def meaning(found: re.Match[str]) -> str:
        try:
            return json.loads(f'"{found[0]}"')
        except ValueError:
            return found[0][1:] if not found[0][1].isalnum() else found[0]

    return _ESCAPE.sub(meaning, text)


def _is_subsequence(short: str, long: str) -> bool:
    rest = iter(long)
    return all(letter in rest for letter in short)
