"""What looks like a model number, and when a document keeps naming it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_assets.workloads.equipment_manuals.baseline.identifier_tokens import (
    find_tokens,
    looks_like_model,
    occurrences,
)
from pipeline_assets.workloads.equipment_manuals.baseline.pages import PageText
from pipeline_assets.workloads.equipment_manuals.baseline.usage import Usage


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        pytest.param("Drill KD18", ["KD18"], id="letters and digits"),
        pytest.param("Headphones WH-1000XM4", ["WH-1000XM4"], id="mixed after a dash"),
        pytest.param("Chip 74HC595 and ATmega328P", ["74HC595", "ATmega328P"], id="digits first"),
        pytest.param("ПР-07 «Нива»", ["ПР-07"], id="Cyrillic"),
        pytest.param("KX-TG1234/KX-TG1235", ["KX-TG1234", "KX-TG1235"], id="list with a slash"),
        pytest.param("MX-12/16", ["MX-12/16"], id="shared stem stays whole"),
        pytest.param("IP/SMS RL14", ["RL14"], id="a slash without models"),
        pytest.param("PC 1500 and HP 41C", ["PC 1500", "HP 41C"], id="number apart"),
        pytest.param("RTX-3000+", ["RTX-3000+"], id="plus at the end"),
        pytest.param("Model KD18.", ["KD18"], id="full stop behind"),
        pytest.param("(KD18)", ["KD18"], id="in brackets"),
    ],
)
def test_tokens_that_look_like_models(text: str, tokens: list[str]) -> None:
    found = find_tokens(text)
    assert [token.text for token in found] == tokens
    assert all(text[token.start :].startswith(token.text) for token in found)


@pytest.mark.parametrize(
    "text",
    [
        "RS-232 RS485 USB2.0 USB-C HDMI-2.1 DDR4 RJ45 DB25 CAT5e PS/2 802.11ac IPv6 5G",
        "ISO 9001 ISO9001:2015 EN60950 UL1950 BS-1363 IEC-61010 DIN41612 IP67 IPX4 RFC2616",
        "230V 50Hz 12-24V 1.5A 2.4GHz 16GB 4096-Bit 8-Channel 3-in-1 100mm 5m 20kg 1080p 4K 3D",
        "M8 M3x10 A4 B5 PH2 1024x768 2x4",
        "v1.0 V2.31 V3 Rev.2 R1.2 Q3 Fig.2 2020-10-22 22/10/2020 24/7 1990 2nd",
        "MP3 H.264 UTF-8 SHA256 HTML5 x86_64 Win32 FAT32 AES256 WPA2",
        "CO2 R410A R-134a CR2032 LR6 AAA-2",
        "abc1 file_1 user1@host.example 12345 8051 manual REV 2 NO 5",
    ],
)
def test_what_is_no_model(text: str) -> None:
    assert [token.text for token in find_tokens(text)] == []


@pytest.mark.parametrize(("token", "weak"), [("K7", True), ("X1", True), ("R11", False)])
def test_short_tokens_are_weak(token: str, weak: bool) -> None:
    assert [found.weak for found in find_tokens(f"NOVA {token} PRO")] == [weak]


@given(st.text(max_size=60))
def test_any_text_can_be_searched(text: str) -> None:
    for token in find_tokens(text):
        assert text[token.start : token.start + len(token.text)] == token.text


@given(st.text(max_size=45))
def test_a_model_has_letters_and_digits(token: str) -> None:
    if looks_like_model(token):
        assert any(map(str.isalpha, token))
        assert any(map(str.isdigit, token))


@pytest.mark.parametrize(
    ("pages", "recurs"),
    [
        pytest.param(["KD18", "KD18", ""], True, id="two pages"),
        pytest.param(["KD18 KD18 KD18", "", ""], True, id="three times"),
        pytest.param(["KD18 KD18", "", ""], False, id="twice on one page of three"),
        pytest.param(["KD18 KD18"], True, id="twice on a leaflet"),
        pytest.param(["KD18"], False, id="once"),
        pytest.param(["KD18S KD180 XKD18", "KD18S"], False, id="inside other tokens"),
        pytest.param(["KD 18", "kd-18"], True, id="other joints and case"),
    ],
)
def test_recurrence(pages: list[str], recurs: bool) -> None:
    texts = [PageText(number, text) for number, text in enumerate(pages, start=1)]
    assert occurrences("KD18", texts).recurs is recurs


def test_occurrences_name_their_pages() -> None:
    texts = [PageText(3, "KD18"), PageText(5, "-"), PageText(8, "KD18 KD18")]
    found = occurrences("KD18", texts)
    assert (found.pages, found.count, found.of_pages) == ((3, 8), 3, 3)


@pytest.mark.parametrize(
    ("name", "text", "common"),
    [
        pytest.param("Signal Generator", "Switch the generator on.", True, id="lower case"),
        pytest.param("Waschmaschine", "Die Waschmaschine ist neu.", True, id="German noun"),
        pytest.param("Norvex", "Norvex thanks you. The Norvex shop.", False, id="a name"),
        pytest.param("The And", "the and", False, id="little words do not count"),
    ],
)
def test_common_nouns(name: str, text: str, common: bool) -> None:
    assert Usage([PageText(1, text)]).has_common_noun(name) is common
