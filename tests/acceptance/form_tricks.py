"""Answers whose form is wrong, or right only after a repair that must not hide what is wrong."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

from tests.acceptance.gold import Answer, found
from tests.acceptance.trick import (
    REFERENCE,
    Make,
    Setting,
    Told,
    Trick,
    look_alike,
    quotes,
    rules,
    stranger,
    value_of,
)


def _full(setting: Setting) -> Answer:
    return {"document": REFERENCE, **setting.answer}


def _text(answer: Any) -> str:
    return json.dumps(answer, ensure_ascii=False)


def _form(how: Callable[[str], str]) -> Make:
    """The right answer's text, spoiled."""
    return lambda setting: Told(setting.document, how(_text(_full(setting))))


def _member(**changes: Any) -> Make:
    return lambda setting: Told(setting.document, _text(_full(setting) | changes))


def _without(name: str) -> Make:
    def make(setting: Setting) -> Told | None:
        answer = _full(setting)
        del answer[name]
        return Told(setting.document, _text(answer))

    return make


def _in_title(**changes: Any) -> Make:
    def make(setting: Setting) -> Told | None:
        answer = _full(setting)
        answer["title"] |= changes
        return Told(setting.document, _text(answer))

    return make


def _wrong(setting: Setting) -> Answer | None:
    """The answer with another document's title, own quotes."""
    other = stranger(setting, "title")
    if other is None or value_of(setting.case, "title") is None:
        return None
    answer = _full(setting)
    answer["title"] = found(str(value_of(other, "title")), *quotes(setting.case.answer["title"]))
    return answer


def _wrapped(how: Callable[[str], str]) -> Make:
    """A wrong answer in a form that a repair mends."""

    def make(setting: Setting) -> Told | None:
        wrong = _wrong(setting)
        return None if wrong is None else Told(setting.document, how(_text(wrong)))

    return make


def _both(how: Callable[[str, str], str]) -> Make:
    """A wrong answer and the right one together."""

    def make(setting: Setting) -> Told | None:
        wrong = _wrong(setting)
        if wrong is None:
            return None
        return Told(setting.document, how(_text(wrong), _text(_full(setting))))

    return make


def _member_twice(setting: Setting) -> Told | None:
    wrong = _wrong(setting)
    if wrong is None:
        return None
    return Told(setting.document, f'{{"title":{_text(wrong["title"])},{_text(_full(setting))[1:]}')


def _value_twice(setting: Setting) -> Told | None:
    answer = _full(setting)
    if answer["title"]["value"] is None:
        return None
    own = '"title": {"value": '
    text = _text(answer).replace(own, '"title": {"value": "Something Else", "value": ', 1)
    return Told(setting.document, text)


def _look_alike_member(setting: Setting) -> Told | None:
    text = _text(_full(setting)).replace('"title"', f'"{look_alike("title") or "tіtle"}"')
    return Told(setting.document, text)


def _evidence_as_text(setting: Setting) -> Told | None:
    answer = _full(setting)
    answer["title"]["evidence"] = [quote for _, quote in quotes(answer["title"])]
    return Told(setting.document, _text(answer)) if answer["title"]["evidence"] else None


def _deep(setting: Setting) -> Told | None:
    return Told(setting.document, "[" * 60_000)


def _extra_in_evidence(setting: Setting) -> Told | None:
    answer = copy.deepcopy(_full(setting))
    for each in answer["language"]["evidence"]:
        each["confidence"] = 0.99
    return Told(setting.document, _text(answer))


_JSON = ("malformed_json",)
_SCHEMA = ("schema_violation",)
_ANY = (*_JSON, *_SCHEMA)
_TITLE = ("title_present", *_ANY)

FORM_TRICKS = (
    Trick(
        "form_cut",
        "form",
        "the text breaks off",
        rules(*_JSON, "truncated"),
        _form(lambda text: text[:-25]),
    ),
    Trick(
        "form_cut_at_a_member",
        "form",
        "the text breaks off after a whole member",
        rules(*_ANY, "truncated"),
        _form(lambda text: text[: text.index(', "description"')]),
    ),
    Trick("form_empty", "form", "nothing", rules(*_ANY, "transport"), _form(lambda _text: "")),
    Trick("form_null", "form", "null", rules(*_ANY), _form(lambda _text: "null")),
    Trick(
        "form_prose",
        "form",
        "a sentence in place of the object",
        rules(*_JSON),
        _form(lambda _text: "The title is printed on the first page."),
    ),
    Trick(
        "form_refusal",
        "form",
        "an apology",
        rules(*_JSON, "refused"),
        _form(lambda _text: "I'm sorry, but I can't help with that."),
    ),
    Trick(
        "form_two_objects",
        "form",
        "a wrong answer, then the right one",
        rules(*_JSON),
        _both(lambda wrong, right: f"{wrong}\n{right}"),
    ),
    Trick(
        "form_two_fences",
        "form",
        "a fence with the right one, then one with a wrong one",
        rules(*_JSON),
        _both(lambda wrong, right: f"```json\n{right}\n```\n```json\n{wrong}\n```"),
    ),
    Trick(
        "form_second_thought",
        "form",
        "the right one, then prose with a wrong one",
        rules(*_JSON),
        _both(lambda wrong, right: f"{right}\nOn second thought: {wrong}"),
    ),
    Trick(
        "form_list",
        "form",
        "a list of two answers",
        rules(*_SCHEMA, *_JSON),
        _both(lambda wrong, right: f"[{right}, {wrong}]"),
    ),
    Trick(
        "form_member_twice",
        "form",
        "the member title twice, a wrong one first",
        rules(*_ANY),
        _member_twice,
    ),
    Trick(
        "form_value_twice",
        "form",
        "the title's value twice, a wrong one first",
        rules(*_ANY),
        _value_twice,
    ),
    Trick(
        "form_extra_member",
        "form",
        "a member that the schema does not have",
        rules(*_SCHEMA),
        _member(confidence=0.99),
    ),
    Trick(
        "form_extra_in_evidence",
        "form",
        "the same within evidence",
        rules(*_SCHEMA),
        _extra_in_evidence,
    ),
    Trick("form_member_missing", "form", "no language", rules(*_SCHEMA), _without("language")),
    Trick(
        "form_reference_missing",
        "form",
        "no reference",
        rules(*_SCHEMA, "misrouted"),
        _without("document"),
    ),
    Trick(
        "form_look_alike_member",
        "form",
        "a letter of another alphabet in a member's name",
        rules(*_SCHEMA),
        _look_alike_member,
    ),
    Trick(
        "form_status_word",
        "form",
        "a status outside the list",
        rules(*_SCHEMA),
        _in_title(status="Found"),
    ),
    Trick(
        "form_number_value", "form", "a number as the title", rules(*_SCHEMA), _in_title(value=4711)
    ),
    Trick(
        "form_list_value",
        "form",
        "a list as the title",
        rules(*_SCHEMA),
        _in_title(value=["a", "b"]),
    ),
    Trick("form_evidence_text", "form", "quotes without pages", rules(*_SCHEMA), _evidence_as_text),
    Trick(
        "form_identifiers_null",
        "form",
        "null for the list",
        rules(*_SCHEMA),
        _member(product_identifiers=None),
    ),
    Trick(
        "form_identifiers_text",
        "form",
        "texts for the list",
        rules(*_SCHEMA),
        _member(product_identifiers=["MX-1"]),
    ),
    Trick(
        "form_nan",
        "form",
        "NaN for a page",
        rules(*_ANY),
        _form(lambda text: text.replace('"page": 1', '"page": NaN')),
    ),
    Trick(
        "form_fraction",
        "form",
        "a page of one and a half",
        rules(*_ANY),
        _form(lambda text: text.replace('"page": ', '"page": 0.5e0+')),
    ),
    Trick("form_deep", "form", "sixty thousand brackets", rules(*_ANY), _deep),
    Trick(
        "form_nested_text",
        "form",
        "a wrong answer as a text within JSON",
        rules(*_TITLE),
        _wrapped(json.dumps),
    ),
    Trick(
        "form_fenced_wrong",
        "form",
        "a wrong answer in a fence",
        rules("title_present"),
        _wrapped(lambda text: f"```json\n{text}\n```"),
    ),
    Trick(
        "form_prose_around_wrong",
        "form",
        "a wrong answer between two sentences",
        rules("title_present"),
        _wrapped(lambda text: f"Here is the answer:\n{text}\nAnything else?"),
    ),
    Trick(
        "form_comma_wrong",
        "form",
        "a wrong answer with one comma too many",
        rules("title_present"),
        _wrapped(lambda text: text[:-1] + ",}"),
    ),
    Trick(
        "form_mark_wrong",
        "form",
        "a wrong answer behind a byte order mark",
        rules("title_present"),
        _wrapped(lambda text: "\ufeff" + text),
    ),
)
"""Every trick with the answer's form."""
