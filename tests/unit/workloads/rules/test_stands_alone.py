"""An identifier is a whole word of its quote, never the beginning of a longer number."""

from __future__ import annotations

import pytest

from pipeline_assets.workloads.equipment_manuals.rules.identifier_shape import stands_alone


@pytest.mark.parametrize(
    ("value", "quote", "expected"),
    [
        pytest.param("XT-100", "Pump XT-100 Manual", True, id="a word"),
        pytest.param("XT-100", "XT-100", True, id="the quote itself"),
        pytest.param("XT-100", "Pump XT-1000 Manual", False, id="start of a longer number"),
        pytest.param("T-100", "Pump XT-100 Manual", False, id="end of a longer number"),
        pytest.param("XT-100", "Pump XT-1000 and XT-100", True, id="longer one first"),
        pytest.param("XT-100", "Pump (XT-100), XT-200", True, id="punctuation"),
        pytest.param("XT-100", "Model: xt\u2011100", True, id="case and hyphens fold"),
        pytest.param("XT-100", "ポンプXT-100取扱説明書", True, id="signs without spaces"),
        pytest.param("XT-100", "НасосXT-100", False, id="letters of another script"),
        pytest.param("XT 100", "XT\n100", True, id="line break"),
        pytest.param("", "XT-100", False, id="nothing"),
    ],
)
def test_stands_alone(value: str, quote: str, expected: bool) -> None:
    assert stands_alone(value, quote) is expected
