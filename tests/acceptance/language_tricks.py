"""Wrong languages."""

from __future__ import annotations

from tests.acceptance.gold import absent, found
from tests.acceptance.trick import (
    Make,
    Setting,
    Told,
    Trick,
    change,
    change_in,
    quotes,
    rules,
    with_line,
)

FOREIGN = {
    "de": "Lesen Sie diese Anleitung sorgfältig durch, bevor Sie das Gerät zum ersten Mal "
    "einschalten, und bewahren Sie sie in seiner Nähe auf.",
    "en": "Read these instructions carefully before you switch the machine on for the first "
    "time and keep them somewhere near it.",
}


def _code(*codes: str) -> Make:
    """Another text in place of the code, evidence as it was."""

    def make(setting: Setting) -> Told | None:
        code = setting.pick(codes)
        if code == setting.document.gold.language:
            return None
        return change(setting, language=found(code, *quotes(setting.case.answer["language"])))

    return make


def _swapped(setting: Setting) -> Told | None:
    other = {"en": "de", "ru": "uk", "uk": "ru", "ja": "zh", "zh": "ja", "es": "it"}
    code = other.get(setting.document.gold.language, "en")
    return change(setting, language=found(code, *quotes(setting.case.answer["language"])))


def _name(setting: Setting) -> Told | None:
    name = setting.pick(("English", "Deutsch", "русский"))
    return change(setting, language=found(name, *quotes(setting.case.answer["language"])))


def _upper(setting: Setting) -> Told | None:
    code = setting.document.gold.language.upper()
    return change(setting, language=found(code, *quotes(setting.case.answer["language"])))


def _region(setting: Setting) -> Told | None:
    code = f"{setting.document.gold.language}-{setting.pick(('GB', 'XX', 'Latn'))}"
    return change(setting, language=found(code, *quotes(setting.case.answer["language"])))


def _several(setting: Setting) -> Told | None:
    code = f"{setting.document.gold.language}, de"
    return change(setting, language=found(code, *quotes(setting.case.answer["language"])))


def _foreign_quote(setting: Setting) -> Told | None:
    """A sentence in another language stands in the document and is taken for its body."""
    code = "de" if setting.document.gold.language != "de" else "en"
    document = with_line(setting.document, FOREIGN[code])
    return change_in(setting, document, language=found(code, (1, FOREIGN[code])))


def _right_code_foreign_quote(setting: Setting) -> Told | None:
    own = setting.document.gold.language
    other = "de" if own != "de" else "en"
    document = with_line(setting.document, FOREIGN[other])
    return change_in(setting, document, language=found(own, (1, FOREIGN[other])))


def _absent(setting: Setting) -> Told | None:
    return change(setting, language=absent())


def _no_evidence(setting: Setting) -> Told | None:
    return change(setting, language=found(setting.document.gold.language))


_LANGUAGE = ("language_agrees", "language_quoted")

LANGUAGE_TRICKS = (
    Trick(
        "language_swapped",
        "language",
        "the code of a neighbouring language",
        rules(*_LANGUAGE),
        _swapped,
    ),
    Trick("language_name", "language", "the language's name", rules("frame"), _name),
    Trick("language_capitals", "language", "the code in capitals", rules("frame"), _upper),
    Trick("language_region", "language", "the code with a region", rules("frame"), _region),
    Trick(
        "language_three_letters",
        "language",
        "a code of three letters",
        rules("frame"),
        _code("eng", "ger", "rus"),
    ),
    Trick(
        "language_unknown_code",
        "language",
        "a code that no language has",
        rules(*_LANGUAGE, "frame"),
        _code("xx", "zz", "qq"),
    ),
    Trick(
        "language_placeholder",
        "language",
        "a word for 'not there'",
        rules("frame", "placeholder_value"),
        _code("unknown", "N/A", "und", "-"),
    ),
    Trick("language_several", "language", "two codes in one value", rules("frame"), _several),
    Trick(
        "language_of_a_quote",
        "language",
        "the language of one foreign sentence",
        rules(*_LANGUAGE),
        _foreign_quote,
    ),
    Trick(
        "language_foreign_quote",
        "language",
        "right, with a foreign sentence as evidence",
        rules(*_LANGUAGE),
        _right_code_foreign_quote,
    ),
    Trick("language_absent", "language", "called absent", rules(*_LANGUAGE), _absent),
    Trick(
        "language_no_evidence", "language", "found without evidence", rules("frame"), _no_evidence
    ),
)
"""Every trick with the language."""
