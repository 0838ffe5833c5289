"""Stamps, mojibake, and pages that need OCR."""

from __future__ import annotations

import pytest

from pipeline_assets.ingest.parsing import useful

PROSE = "Connect the red wire to the terminal marked plus and tighten the screw by hand. " * 3
# Text of a font whose codes stand 29 places away, as TrueType glyph numbers do.
SHIFTED = "".join(chr(ord(char) - 29) if char != " " else " " for char in PROSE)
SHIFTED_LETTERS = (
    "7KHVH ZDUQLQJV DQG LQVWUXFWLRQV VKRXOG EH UHDG FDUHIXOOB EHIRUH WKH XQLW LV XVHG " * 3
)


@pytest.mark.parametrize(
    ("text", "garbled"),
    [
        pytest.param(PROSE, False, id="prose"),
        pytest.param("", False, id="nothing"),
        pytest.param(SHIFTED, True, id="control codes"),
        pytest.param(SHIFTED_LETTERS, True, id="words without vowels"),
        pytest.param("Ì¿´´§ñÐ®»ª·»© Þ±¨ º±® ÎÓÝóïìð ¿²¼ ¬¸» ³±²·¬±®", True, id="symbols"),
        pytest.param("\ue001\ue002\ue003\ue004\ue005\ue006\ue007\ue008", True, id="private use"),
        pytest.param("GND VCC TXD RXD CTS RTS 3V3 SCL SDA", False, id="pin names"),
        pytest.param("±5 °C ½ µF 50 Ω © 2020 «ok» ±10 %", False, id="units"),
        pytest.param("¿Qué es? ¿Cómo se usa? ¡Atención! ¿Dónde está?", False, id="Spanish"),
        pytest.param("Größe ändern für die Übergänge höhere Töne", False, id="umlauts"),
        pytest.param("Система контролю пасіки та блок контролю вулика " * 4, False, id="Cyrillic"),
        pytest.param("Strč prst skrz krk, vlk zmrzl, čtvrtsmršť zhltl hrst zrn", False, id="short"),
        pytest.param("取扱説明書をよく読んでから使用してください", False, id="no vowels to expect"),
        pytest.param("Contents\t\r \u00a01\nIntroduction\t\r \u00a02", False, id="tabs"),
    ],
)
def test_is_garbled(text: str, garbled: bool) -> None:
    assert useful.is_garbled(text) is garbled


STAMP = "Downloaded from www.example.org manuals search engine"


@pytest.mark.parametrize(
    ("line", "stamp"),
    [
        pytest.param(STAMP, True, id="words and an address"),
        pytest.param("https://example.org/manuals", True, id="an address alone"),
        pytest.param("free service manuals: example.org", True, id="bare host"),
        pytest.param("MODEL X-100 www.example.com", False, id="a product beside an address"),
        pytest.param("Downloaded firmware is kept", False, id="no address"),
        pytest.param("Installation guide", False, id="running header"),
        pytest.param("", False, id="nothing"),
    ],
)
def test_is_download_stamp(line: str, stamp: bool) -> None:
    assert useful.is_download_stamp(line) is stamp


def test_stamps_on_nearly_every_page_go_and_headers_stay() -> None:
    pages = [f"Model X header\nText of page {n}\n{STAMP}" for n in range(4)] + ["Other\nlast page"]
    repeated = useful.repeated_lines(pages)
    text, removed = useful.without_stamps(pages[0], repeated)
    assert (text, removed) == ("Model X header\nText of page 0", True)
    assert useful.without_stamps(pages[4], repeated) == ("Other\nlast page", False)


@pytest.mark.parametrize(
    "pages",
    [
        pytest.param([STAMP, STAMP], id="two pages prove nothing"),
        pytest.param([STAMP, STAMP, "text one", "text two"], id="half of the pages"),
        pytest.param([], id="no pages"),
    ],
)
def test_lines_that_do_not_repeat_enough(pages: list[str]) -> None:
    assert useful.repeated_lines(pages) == frozenset()


def test_repeated_lines_fold_numbers_and_spaces() -> None:
    assert useful.repeated_lines(["Page 1 of  9", "page 2 of 9", "PAGE 3 OF 9"]) == {"pageof"}


@pytest.mark.parametrize(
    ("page", "needs"),
    [
        pytest.param("", True, id="nothing"),
        pytest.param("- 12 -", True, id="a page number"),
        pytest.param("This Material Is Copyrighted", True, id="only what every page says"),
        pytest.param("This Material Is Copyrighted\nTiming diagram", False, id="more than that"),
        pytest.param("0.1 0.2 0.3 0.4 0.5 0.6", False, id="a table of figures"),
    ],
)
def test_needs_ocr(page: str, needs: bool) -> None:
    assert useful.needs_ocr(page, {"thismaterialiscopyrighted"}) is needs
