"""The language against the text's own, its code, and the quotes that stand for it."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from pipeline_assets.workloads.rules import language_agrees, language_quoted
from tests.unit.workloads.rules.placed import notes, placed
from tests.unit.workloads.rules.support import ABSENT, PAGE, answer, field

ENGLISH = (
    "The extractor removes fine dust from small workshops and must be emptied every week.\n"
    "Never open the housing while the motor is turning, and keep children away from it.\n"
)
GERMAN = (
    "Der Entstauber entfernt feinen Staub aus kleinen Werkstätten und wird jede Woche geleert.\n"
    "Das Gehäuse darf bei laufendem Motor nicht geöffnet werden, Kinder sind fernzuhalten.\n"
)
OTHER = "the parsed text is in another language"
SEVERAL = "the parsed text is in several languages, and this one does not prevail"


@pytest.mark.parametrize(
    ("entry", "text", "pages", "told"),
    [
        pytest.param("en", ("en", ""), [PAGE], None, id="agree"),
        pytest.param("no", ("nb", ""), [PAGE], None, id="two-codes-of-norwegian"),
        pytest.param("de", ("en", ""), [PAGE], OTHER, id="another"),
        pytest.param("de", ("en", "de"), [PAGE], OTHER, id="the-second"),
        pytest.param(
            "en",
            (None, ""),
            [PAGE],
            "the parsed text gives no language to compare with",
            id="unknown",
        ),
        pytest.param("xx", ("en", ""), [PAGE], "not an ISO 639-1 code", id="no-code"),
        pytest.param("English", ("en", ""), [PAGE], "not an ISO 639-1 code", id="a-name"),
        pytest.param("EN", ("en", ""), [PAGE], "not an ISO 639-1 code", id="capitals"),
        pytest.param("iw", ("he", ""), [PAGE], "not an ISO 639-1 code", id="withdrawn"),
        pytest.param("en", ("en", "de"), [ENGLISH * 6, GERMAN * 2], None, id="prevails"),
        pytest.param("en", ("en", "de"), [ENGLISH * 4, GERMAN * 4], SEVERAL, id="equal-weight"),
        pytest.param("en", ("en", "de"), [ENGLISH, GERMAN * 6], SEVERAL, id="the-lesser"),
        pytest.param(None, ("en", ""), [PAGE], "no language is given", id="absent"),
    ],
)
def test_language_agrees(
    entry: str | None, text: tuple[str | None, str], pages: list[str], told: str | None
) -> None:
    given: dict[str, Any] = ABSENT if entry is None else field(entry, "DX-20")
    seen = placed(answer(language=given), pages=pages, language=text[0], languages=text[1])
    expected = [] if told is None else [("language", told, "review")]
    assert notes(language_agrees.RULE_2, seen) == expected


@pytest.mark.parametrize(
    ("code", "quotes", "passes"),
    [
        pytest.param("en", [ENGLISH], True, id="small-words"),
        pytest.param("de", [GERMAN], True, id="german"),
        pytest.param("de", [ENGLISH], False, id="english-for-german"),
        pytest.param("en", [GERMAN], False, id="german-for-english"),
        pytest.param("en", ["DX-20"], True, id="too-short"),
        pytest.param("ru", ["Installation of the pump"], False, id="another-alphabet"),
        pytest.param("ja", ["取扱説明書をよくお読みください"], True, id="signs"),
        pytest.param("en", ["取扱説明書をよくお読みください"], False, id="signs-for-english"),
        pytest.param("de", [ENGLISH, GERMAN], True, id="one-of-two"),
        pytest.param("sv", ["Läs bruksanvisningen noga innan du använder maskinen, och spara den "
                            "för framtida behov."], True, id="asked-of-the-detector"),
        pytest.param("fi", [ENGLISH], False, id="refused-by-the-detector"),
    ],
)  # fmt: skip
def test_language_quoted(code: str, quotes: list[str], passes: bool) -> None:
    seen = placed(answer(language=field(code, *quotes)), pages=["\n".join(quotes)])
    told = [] if passes else [("language", "the quotes are in another language", "review")]
    assert notes(language_quoted.RULE, seen) == told


@pytest.mark.parametrize("rule", [language_agrees.RULE_2, language_quoted.RULE])
def test_no_answers(rule: Any) -> None:
    expected = {"row": pl.Int64, "field": pl.String, "note": pl.String}
    assert rule.check(placed()).schema == expected
