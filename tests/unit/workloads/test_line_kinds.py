"""What sort of line a printed line is."""

from __future__ import annotations

import pytest

from pipeline_assets.workloads.equipment_manuals.baseline.line_kinds import kind_of
from pipeline_assets.workloads.equipment_manuals.baseline.pages import (
    PageText,
    collapse,
    read_pages,
)

LINES = {
    "heading": [
        "Cordless Drill KD18",
        "USER'S MANUAL",
        "Руководство по эксплуатации",
        "电气水壶 使用说明书",
        "Router LP-2200",
        "Waschmaschine WM 1400 für Haushalte",
    ],
    "prose": [
        "The appliance has to be connected by a qualified electrician.",
        "the packing material away from children and pets, and let it dry completely before you",
        "Das Mischpult MX-12 ist ein Gerät für kleine Studios.",
        "Прибор должен подключать квалифицированный электрик.",
        "本機の設置は資格のある電気工事士に依頼してください。",
        "请用柔软的布和少量温水清洁表面，待其完全干燥后再重新接通电源",
        "Visit www.papers.example to see whether there is a newer edition of this manual.",
    ],
    "item": [
        "1. Safety",
        "2.3 Cleaning",
        "3) Press the key",
        "• twelve inputs",
        "1 Overview",
        "①押す",
    ],
    "contents_heading": [
        "Contents",
        "TABLE OF CONTENTS",
        "I N D E X",
        "Содержание",
        "目次",
        "Inhalt:",
    ],
    "contents_entry": [
        "Safety . . . . . . . . . 3",
        "Reinigung..............12",
        "Use ------------ 7",
    ],
    "section_heading": [
        "IMPORTANT SAFETY INSTRUCTIONS",
        "Introduction",
        "Sicherheitshinweise",
        "Введение",
        "はじめに",
    ],
    "link": ["www.norvex.example", "service@norvex.example", "https://norvex.example/x"],
    "stamp": ["Downloaded from the archive", "This Material Copyrighted By Its Maker"],
    "file_name": ["um_kd18_v3.indd", "KD18-manual.pdf"],
    "phone": ["Tel.: +370 5 555 0100", "Fax 555-0100 22", "(555) 010-0200"],
    "address": ["1200 Harbour Road", "Springfield, OR 97477", "LT-01234 Vilnius", "Hafenstraße 12"],
    "company": ["Norvex Instruments Inc.", "Halden GmbH", "UAB „Norveksas”", "ООО «Норвекс»"],
    "copyright": ["© 2019 Norvex", "(c) 1987 Norvex", "All rights reserved"],
    "date": ["March 1987", "2018-04", "27.01.2020", "October 22, 2020", "2023年7月21日", "1990 г."],
    "revision": ["Revision 2.1", "Rev. B", "Version 3.2", "V1.0", "2nd edition", "Версия 1.2"],
    "byline": ["by Jane Doe", "Prepared by the test team"],
    "page_number": ["12", "- 3 -", "Page 4 of 9", "xii", "стр. 5"],
    "document_number": ["Document No.: MM-4711-02", "P/N: 400288", "400 288 17", "ГВ2.044.130 РЭ"],
    "marks": ["---", "•", "R"],
}


@pytest.mark.parametrize(
    ("kind", "text"), [(kind, text) for kind, texts in LINES.items() for text in texts]
)
def test_kind(kind: str, text: str) -> None:
    assert kind_of(text) == kind


def test_lines_in_the_middle_of_a_sentence_are_running_text() -> None:
    lines = read_pages(
        [PageText(1, "The new tape deck TD-5 records\nsound on\nordinary tapes.")]
    ).front[0]
    assert [line.kind for line in lines] == ["prose", "heading", "heading"]


def test_a_line_goes_on_where_the_one_before_has_not_ended() -> None:
    lines = read_pages(
        [
            PageText(
                1, "the tape is moved by two motors and, where it is thin,\nby the left Motor alone"
            )
        ]
    ).front[0]
    assert [line.kind for line in lines] == ["prose", "prose"]


def test_repeated_edges_are_running_and_their_page_number_is_no_heading() -> None:
    words = ("one", "two", "three")
    pages = read_pages(
        [
            PageText(number, f"Tape Deck Guide {number}\nText {word}\nNorvex")
            for number, word in enumerate(words, start=1)
        ]
    )
    head, body, foot = pages.front[1]
    assert (head.running, body.running, foot.running) == (True, False, True)
    assert head.heading == "Tape Deck Guide"
    assert head.text == "Tape Deck Guide 2"


def test_lines_of_two_pages_are_not_yet_running() -> None:
    pages = read_pages([PageText(number, f"Guide {number}") for number in (1, 2)])
    assert not any(line.running for lines in pages.front for line in lines)


def test_running_numbers_of_the_paper_are_not_counted() -> None:
    pages = read_pages(
        [PageText(number, f"UM-4711\nThe pump PX-{number}0") for number in (1, 2, 3)]
    )
    assert all("UM-4711" not in page.text for page in pages.counted)
    assert all("PX-" in page.text for page in pages.counted)


def test_pages_without_text_are_left_out() -> None:
    pages = read_pages([PageText(1, " \n\n"), PageText(2, "Guide")])
    assert [lines[0].page for lines in pages.front] == [2]


def test_collapse() -> None:
    assert collapse("  a\t b\u00a0c ") == "a b c"
