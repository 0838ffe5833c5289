"""Words for nothing in the place of a value, and values that only begin like one."""

from __future__ import annotations

import pytest

from pipeline_assets.workloads.rules.placeholder_value import make_rule
from tests.unit.workloads.rules.placed import notes, placed
from tests.unit.workloads.rules.support import ABSENT, TITLE, answer, field

RULE = make_rule(("title", "description"), "product_identifiers")
NOTE = "a word for nothing stands in the place of a value"

NOTHING = (
    "N/A|n.a.|NA|none|None.|(none)|UNKNOWN|null|nil|NaN|TBD|t.b.d.|-|–|---|?|...|undefined|[empty]"
    "|not available|Not specified|keine Angabe|k. A.|unbekannt|nicht verfügbar|Inconnu|non spécifié"
    "|ninguno|Desconocido|sconosciuto|nessuna|desconhecido|onbekend|brak|neznámý|nincs|necunoscut"
    "|yok|nėra|nezināms|неизвестно|Не указано|нет данных|немає|Невідомо|άγνωστο|不明"
    "|なし|未知|无|無|Untitled|알 수 없음|ＮＯＮＥ|no title found"
    "|There is no description available|Title not found"
    "|Description: not available|Unable to determine the title of this document|Model: unknown"
    "|Modell: unbekannt"
).split("|")
VALUES = (
    f"{TITLE}|None-Such 20|Null Modem Cable|Unknown Worlds Player|TBD-100|Testgerät|Blank Keyboard"
    "|Nothing Phone|NA-20|Not so fast: a reader|Keine Macht den Drogen|Brakpan|取扱説明書"
    "|Example book|The pump is not available with a cover.|No. 7 Sewing Machine|Zero"
).split("|")


@pytest.mark.parametrize("value", NOTHING)
def test_nothing(value: str) -> None:
    seen = placed(
        answer(
            title=field(value, TITLE),
            description=field(value, TITLE),
            product_identifiers=[field(value, TITLE)],
        )
    )
    assert notes(RULE, seen) == [
        (name, NOTE, "review") for name in ("description", "product_identifiers", "title")
    ]


@pytest.mark.parametrize("value", VALUES)
def test_a_value(value: str) -> None:
    assert notes(RULE, placed(answer(title=field(value, TITLE)))) == []


def test_what_is_called_absent_is_no_placeholder() -> None:
    seen = placed(answer(title=ABSENT, description=ABSENT, product_identifiers=[]))
    assert notes(RULE, seen) == []
