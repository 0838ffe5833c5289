"""Whole answers on small invented documents of many kinds: what is found, and what is left open.

Pages are divided by a form feed. Makers, products and texts are made up.
"""

from __future__ import annotations

import textwrap
import time
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_assets.workloads.equipment_manuals.answer import Answer
from pipeline_assets.workloads.equipment_manuals.baseline.answer import PageText, answer
from pipeline_assets.workloads.text_folding import find_quote

EN_BODY = """
    The appliance has to be connected by a qualified electrician. Keep the packing material away
    from children and pets. Clean the surface with a soft cloth and a little warm water, and let
    it dry completely before you switch it on again. Do not use abrasive cleaners.
"""
DE_BODY = """
    Das Gerät darf nur von einer Fachkraft angeschlossen werden. Halten Sie die Verpackung von
    Kindern fern. Reinigen Sie die Oberfläche mit einem weichen Tuch und etwas warmem Wasser und
    lassen Sie sie trocknen, bevor Sie das Gerät wieder einschalten.
"""
FR_BODY = """
    L'appareil doit être raccordé par un électricien qualifié. Tenez l'emballage hors de portée
    des enfants. Nettoyez la surface avec un chiffon doux et un peu d'eau chaude, et laissez-la
    sécher avant de remettre l'appareil en marche.
"""
ES_BODY = """
    El aparato debe ser conectado por un electricista cualificado. Mantenga el embalaje fuera del
    alcance de los niños. Limpie la superficie con un paño suave y un poco de agua tibia y deje
    que se seque antes de volver a encender el aparato.
"""
IT_BODY = """
    L'apparecchio deve essere collegato da un elettricista qualificato. Tenere l'imballaggio
    lontano dai bambini. Pulire la superficie con un panno morbido e un po' di acqua tiepida e
    lasciarla asciugare prima di riaccendere l'apparecchio.
"""
RU_BODY = """
    Прибор должен подключать квалифицированный электрик. Держите упаковку в недоступном для
    детей месте. Протирайте поверхность мягкой тканью, смоченной тёплой водой, и дайте ей
    высохнуть, прежде чем снова включать прибор.
"""
UK_BODY = """
    Прилад має підключати кваліфікований електрик. Тримайте пакування у недоступному для дітей
    місці. Протирайте поверхню м'якою тканиною, змоченою теплою водою, і дайте їй висохнути,
    перш ніж знову вмикати прилад.
"""
LT_BODY = """
    Prietaisą turi prijungti kvalifikuotas elektrikas. Laikykite pakuotę vaikams nepasiekiamoje
    vietoje. Valykite paviršių minkšta šluoste ir trupučiu šilto vandens ir leiskite jam
    išdžiūti prieš vėl įjungdami prietaisą.
"""
PL_BODY = """
    Urządzenie powinien podłączyć wykwalifikowany elektryk. Opakowanie należy przechowywać poza
    zasięgiem dzieci. Powierzchnię czyścić miękką ściereczką i odrobiną ciepłej wody, a następnie
    pozostawić do wyschnięcia przed ponownym włączeniem.
"""
JA_BODY = """
    本機の設置は資格のある電気工事士に依頼してください。梱包材はお子様の手の届かない場所に保管してください。
    表面は柔らかい布に少量のぬるま湯を含ませて拭き、十分に乾かしてから電源を入れてください。
"""
ZH_BODY = """
    本设备必须由合格的电工进行连接。请将包装材料放在儿童接触不到的地方。
    请用柔软的布和少量温水清洁表面，待其完全干燥后再重新接通电源。
"""


def read(text: str) -> Answer:
    pages = [
        PageText(number, textwrap.dedent(page).strip("\n"))
        for number, page in enumerate(text.split("\f"), start=1)
    ]
    result = answer("a/reference", pages)
    _check_evidence(result, pages)
    return result


def _check_evidence(result: Answer, pages: list[PageText]) -> None:
    """What holds for every answer: quotes are on their page, absent means without a value."""
    assert result.document == "a/reference"
    for field in (
        result.title,
        result.language,
        result.description,
        *result.product_identifiers,
    ):
        if field.status == "absent":
            assert field.value is None
            assert not field.evidence
        if field.status == "found":
            assert field.value
            assert field.evidence
        for evidence in field.evidence:
            assert find_quote(pages[evidence.page - 1].text, evidence.quote) is not None


@dataclass(frozen=True)
class Found:
    """A document whose answer needs no person."""

    title: str
    identifiers: tuple[str, ...]
    language: str
    text: str


FOUND = {
    "kitchen appliance": Found(
        "Built-in Oven OX-450 Instructions for Use",
        ("OX-450",),
        "en",
        f"""
        Built-in Oven
        OX-450
        Instructions for Use
        www.norvex.example
        \fThe oven OX-450 is intended for the preparation of food in private households.
        {EN_BODY}
        """,
    ),
    "power tool, two models": Found(
        "Cordless Drill KD18 and KD18S Operating Instructions",
        ("KD18", "KD18S"),
        "en",
        f"""
        Cordless Drill KD18 and KD18S
        Operating Instructions
        Part No. 400 288 17
        2018-04
        \fThe KD18 and the KD18S drill holes in wood and metal. {EN_BODY}
        \fSpeed of the KD18: 1500 rpm. Speed of the KD18S: 1800 rpm.
        """,
    ),
    "models divided by a slash": Found(
        "Laser Printer LP-2200/LP-2200W Quick Start Guide",
        ("LP-2200", "LP-2200W"),
        "en",
        f"""
        Laser Printer
        LP-2200/LP-2200W
        Quick Start Guide
        \f{EN_BODY} The laser printer LP-2200 has a USB port. The LP-2200W also has a radio.
        \fThe LP-2200W finds the network. The LP-2200 is connected by cable.
        """,
    ),
    "kind above the name": Found(
        "OWNER'S MANUAL Stereo Receiver SR-77",
        ("SR-77",),
        "en",
        f"""
        OWNER'S MANUAL
        Stereo Receiver
        SR-77
        \f{EN_BODY} The SR-77 gets warm.
        """,
    ),
    "running heads do not come in": Found(
        "Router WR5000 User Guide",
        ("WR5000",),
        "en",
        "\f".join(
            f"Halden Networks quality line\nRouter WR5000 User Guide\n{EN_BODY}\nPage {number}"
            for number in range(1, 6)
        ),
    ),
    "heading on a page of text, no kind word": Found(
        "TEMPERATURE CONTROLLER UNIT TC40",
        ("TC40",),
        "en",
        f"""
        TEMPERATURE CONTROLLER UNIT TC40
        The controller TC40 keeps the temperature of a room within half a degree. {EN_BODY}
        \fThe TC40 has two relays. {EN_BODY}
        """,
    ),
    "stamps, dates, addresses, revisions": Found(
        "Signal Generator SG-310 Service Manual",
        ("SG-310",),
        "en",
        f"""
        Downloaded from www.papers.example
        Signal Generator
        SG-310
        Service Manual
        Revision 2.1
        March 1987
        Norvex Instruments Inc.
        1200 Harbour Road
        Springfield, OR 97477
        Tel: +1 555 0100
        Copyright (c) 1987 Norvex Instruments Inc. All rights reserved.
        \f{EN_BODY} Switch the signal generator SG-310 on.
        """,
    ),
    "document number is no model": Found(
        "Vacuum Pump VP12 Maintenance Manual",
        ("VP12",),
        "en",
        f"""
        Vacuum Pump VP12
        Maintenance Manual
        Document No.: MM-4711-02
        \fMM-4711-02
        {EN_BODY} The VP12 needs oil.
        \fMM-4711-02
        {EN_BODY} Stop the VP12.
        """,
    ),
    "host device is not the subject": Found(
        "Wall Holder for HD-900 RC-14 User Manual",
        ("RC-14",),
        "en",
        f"""
        Wall Holder for HD-900
        RC-14
        User Manual
        \fThe RC-14 is connected to the HD-900. {EN_BODY}
        \fPress the key of the RC-14. The HD-900 answers.
        """,
    ),
    "for the subject": Found(
        "Installation guide for the GW-20 gateway",
        ("GW-20",),
        "en",
        f"""
        Installation guide for the GW-20 gateway
        {EN_BODY}
        \fMount the GW-20 on a rail. The GW-20 starts by itself.
        """,
    ),
    "standards, sizes and voltages are no models": Found(
        "Welding Helmet WH3 according to EN 175 230V 50Hz User Manual",
        ("WH3",),
        "en",
        f"""
        Welding Helmet WH3 according to EN 175
        230V 50Hz
        User Manual
        \fThe WH3 protects the eyes. EN 175 applies. The charger needs 230V. {EN_BODY}
        \fThe WH3 weighs 500 g. EN 175, 230V 50Hz.
        """,
    ),
    "German": Found(
        "Waschmaschine WM 1400 Bedienungsanleitung",
        ("WM 1400",),
        "de",
        f"""
        Waschmaschine
        WM 1400
        Bedienungsanleitung
        \fDie Waschmaschine WM 1400 ist für Wäsche aus dem Haushalt bestimmt. {DE_BODY}
        """,
    ),
    "French": Found(
        "Perceuse à percussion PP-650 Mode d’emploi",
        ("PP-650",),
        "fr",
        f"""
        Perceuse à percussion PP-650
        Mode d’emploi
        \fLa perceuse PP-650 est destinée aux particuliers. {FR_BODY}
        """,
    ),
    "Spanish": Found(
        "LAVADORA LX-9 MANUAL DE INSTRUCCIONES",
        ("LX-9",),
        "es",
        f"LAVADORA LX-9\nMANUAL DE INSTRUCCIONES\nEdición 3\f{ES_BODY} La LX-9 lava bien.",
    ),
    "Italian": Found(
        "Manuale d'uso Termostato TR12",
        ("TR12",),
        "it",
        f"Manuale d'uso\nTermostato TR12\f{IT_BODY} Il TR12 regola la temperatura.",
    ),
    "Russian": Found(
        "Осциллограф С1-130 Руководство по эксплуатации",
        ("С1-130",),
        "ru",
        f"""
        Осциллограф
        С1-130
        Руководство по эксплуатации
        ГВ2.044.130 РЭ
        1989
        \fОсциллограф С1-130 предназначен для исследования сигналов. {RU_BODY}
        Включите осциллограф.
        """,
    ),
    "Ukrainian": Found(
        "Лічильник електроенергії ЛЕ-5 Інструкція користувача",
        ("ЛЕ-5",),
        "uk",
        f"""
        Лічильник електроенергії ЛЕ-5
        Інструкція користувача
        Київ 2019
        \fЛічильник ЛЕ-5 призначений для обліку електроенергії. {UK_BODY}
        """,
    ),
    "Lithuanian": Found(
        "Signalizacijos pultas SP8 Vartotojo instrukcija",
        ("SP8",),
        "lt",
        f"Signalizacijos pultas SP8\nVartotojo instrukcija\f{LT_BODY} Pultas SP8 yra įjungtas.",
    ),
    "Polish": Found(
        "Instrukcja obsługi Odkurzacz OD-30",
        ("OD-30",),
        "pl",
        f"Instrukcja obsługi\nOdkurzacz OD-30\f{PL_BODY} Odkurzacz OD-30 służy do sprzątania.",
    ),
    "Japanese": Found(
        "電気ケトル KT-80 取扱説明書",
        ("KT-80",),
        "ja",
        f"電気ケトル\nKT-80\n取扱説明書\f{JA_BODY}\nKT-80 の仕様",
    ),
    "Chinese": Found(
        "空气净化器 KJ300 使用说明书",
        ("KJ300",),
        "zh",
        f"空气净化器 KJ300\n使用说明书\f{ZH_BODY}\nKJ300 的规格",
    ),
    "software without a model": Found(
        "Harbour Ledger User Manual",
        (),
        "en",
        f"""
        Harbour Ledger User Manual
        Version 3.2
        Contents
        1 First steps 3
        2 Reports 9
        \f{EN_BODY}
        """,
    ),
    "title before the contents": Found(
        "Irrigation Systems Planning and Layout",
        (),
        "en",
        f"Irrigation Systems\nPlanning and Layout\nTable of Contents\nPipes .... 2\f{EN_BODY}",
    ),
    "data sheet": Found(
        "NX386 Low Voltage Audio Power Amplifier Data Sheet",
        ("NX386",),
        "en",
        f"""
        NX386 Low Voltage Audio Power Amplifier
        Data Sheet
        The NX386 is a power amplifier designed for use in low voltage consumer applications.
        {EN_BODY}
        \fThe NX386 needs few parts. {EN_BODY}
        """,
    ),
    "blank first page": Found(
        "Sewing Machine SM7 Instruction Book",
        ("SM7",),
        "en",
        f"\fSewing Machine SM7\nInstruction Book\f{EN_BODY} Oil the SM7.",
    ),
    "how-to that goes on in the next line": Found(
        "How to Replace the Battery of a Field Recorder FR-20",
        ("FR-20",),
        "en",
        f"""
        How to Replace the Battery of a
        Field Recorder FR-20
        Revision 2
        {EN_BODY}
        \fOpen the FR-20. {EN_BODY}
        """,
    ),
    "short model is a name with its line": Found(
        "NOVA K7 PRO Mainboard manual",
        ("NOVA K7 PRO",),
        "en",
        f"NOVA K7 PRO\nMainboard manual\f{EN_BODY} The NOVA K7 PRO has four sockets.",
    ),
    "data sheet that names no kind": Found(
        "NX386 Low Voltage Audio Power Amplifier",
        ("NX386",),
        "en",
        f"""
        NX386
        Low Voltage Audio Power Amplifier
        General Description
        The NX386 is a power amplifier designed for use in low voltage consumer applications.
        {EN_BODY}
        \fThe NX386 needs few parts. {EN_BODY}
        """,
    ),
    "running head with its page number": Found(
        "Router WR5000 User Guide",
        ("WR5000",),
        "en",
        "\f".join(f"Router WR5000 User Guide {number}\n{EN_BODY}" for number in range(1, 6)),
    ),
    "number of the paper in every foot": Found(
        "Gas Boiler Service Manual",
        (),
        "en",
        "\f".join(
            f"{head}\n{EN_BODY}\nUM-4711"
            for head in ("UM-4711\nGas Boiler\nService Manual\nThe gas boiler is hot.", "", "", "")
        ),
    ),
    "model below a complete title": Found(
        "Digital Still Camera Instruction Manual DC-W1",
        ("DC-W1",),
        "en",
        f"""
        3-186-345-11(1)
        Digital Still Camera
        Instruction Manual
        DC-W1
        © 2003 Norvex Corporation
        \f{EN_BODY} Switch the camera DC-W1 on.
        """,
    ),
    "name of the language on the cover": Found(
        "VIDEO MIXER VX-70 Operating Instructions",
        ("VX-70",),
        "en",
        f"""
        VIDEO MIXER
        VX-70
        Operating Instructions
        English
        \f{EN_BODY} The video mixer VX-70 gets warm.
        """,
    ),
    "cover behind a page of contents": Found(
        "XT-5 Tape Deck Service Manual",
        ("XT-5",),
        "en",
        f"""
        CONTENTS
        Introduction 1
        Safety 2
        \fXT-5 Tape Deck
        Service Manual
        \f{EN_BODY} Open the XT-5.
        """,
    ),
    "edition and authors below": Found(
        "Harbour Ledger Manual",
        (),
        "en",
        f"""
        Harbour Ledger Manual
        Seventeenth Edition, Updated for Version 27.1
        Jane Doe et al.
        \f{EN_BODY}
        """,
    ),
    "title that goes on in small words": Found(
        "Owner’s Manual for the Nord Tape Deck",
        (),
        "en",
        f"Owner’s Manual\nfor the\nNord Tape Deck\nEdition 1\f{EN_BODY}",
    ),
    "head of the page extracted last": Found(
        "MX-12 INSTRUCTION GUIDE",
        ("MX-12",),
        "en",
        f"Setup: the MX-12 is a mixer with\ntwelve inputs. {EN_BODY}\nMX-12 INSTRUCTION GUIDE",
    ),
}


@pytest.mark.parametrize("case", FOUND.values(), ids=FOUND.keys())
def test_found(case: Found) -> None:
    result = read(case.text)
    assert (result.title.value, result.title.status) == (case.title, "found")
    assert [(field.value, field.status) for field in result.product_identifiers] == [
        (identifier, "found") for identifier in case.identifiers
    ]
    assert (result.language.value, result.language.status) == (case.language, "found")
    assert result.description.status != "uncertain"


NO_TITLE_FOUND = {
    "letter": f"""
        Mr A. Smith
        12 Station Road
        Dear Mr Smith,
        Thank you for your order of a dish washer DW-60. {EN_BODY}
        Yours sincerely
        \fThe dish washer DW-60 will be delivered next week. DW-60
    """,
    "invoice": """
        INVOICE INV-2023-0042
        Customer number: K1024
        1 Cordless Drill KD18 99.00
        Total 99.00
        INV-2023-0042
        \fINVOICE INV-2023-0042 page 2
    """,
    "receipt": "CORNER SHOP\nReceipt R4711\nMilk 1.20\nBread 2.40\nTOTAL 3.60\nR4711 R4711",
    "article": f"""
        On the Stability of Feedback Loops
        Jane Doe
        Abstract
        We study feedback loops in small systems. {EN_BODY}
        \f1 Introduction
        {EN_BODY}
    """,
    "multi-language cover": f"""
        Bedienungsanleitung
        Operating instructions
        Mode d'emploi
        Istruzioni per l'uso
        \f{DE_BODY}\f{EN_BODY}\f{FR_BODY}\f{IT_BODY}
    """,
    "kind without a subject": f"User Manual\f{EN_BODY}",
    "contents only": f"Contents\n1 Safety 3\n2 Use 5\n3 Care 9\f1 Safety\n{EN_BODY}",
    "running text only": f"{EN_BODY}\f{EN_BODY}",
    "noise of a bad scan": f"lNSTRUCT|ON  M4NUAL ~ §\nRe(eiver  S R - 7 7 _\f{EN_BODY}",
    "wrong character map": "Ãø¥¥ßÒ–Æª™·ª© fi±® º±Æ\nÕ¤ÛËðð User Manual Œ”›ÛÔÏð\fÕ¤ÛËðð ¤ÆÆ±Æˇ",
    "letterspaced": f"U S E R   M A N U A L\nX R 7\f{EN_BODY}",
    "maker's logo above": f"""
        norvex
        INSTRUCTION MANUAL
        TAPE DECK
        TD-5
        \f{EN_BODY} The TD-5 records. norvex
    """,
    "safety instructions first": f"IMPORTANT SAFETY INSTRUCTIONS\n{EN_BODY}\f{EN_BODY}",
    "maker's name of several words above": f"""
        Norvex Audio Systems
        Tape Deck TD-5
        Owner's Manual
        www.norvexaudiosystems.example
        \f{EN_BODY} The TD-5 records.
    """,
    "second line of unclear standing": f"""
        Tape Deck TD-5 Owner's Manual
        The Sound of Tomorrow
        \f{EN_BODY} The TD-5 records.
    """,
    "model is a number alone": f"""
        564
        STORAGE OSCILLOSCOPE
        INSTRUCTION MANUAL
        \f{EN_BODY} Switch the storage oscilloscope 564 on.
    """,
    "kind of product behind the model": f"""
        USER MANUAL
        VM-3
        Video Monitor
        CONTENTS
        1. Safety 1
        \f{EN_BODY} Switch the VM-3 on.
    """,
    "front panel with many labels": f"""
        POWER
        INPUT
        LEVEL
        DB-3 MIXER
        OUTPUT
        PHONES
        MUTE
        INSTRUCTION MANUAL
        \f{EN_BODY} DB-3 \f DB-3
    """,
    "diagram": "Sector 0 Type 2E\nPartition\nTable\nSystem Area (16 KB)\nPrefix\nSlice\nData",
    "empty": "",
    "one word": "Example",
}


@pytest.mark.parametrize("text", NO_TITLE_FOUND.values(), ids=NO_TITLE_FOUND.keys())
def test_no_title_is_certain_and_no_identifier_either(text: str) -> None:
    result = read(text)
    assert result.title.status != "found"
    assert all(field.status != "found" for field in result.product_identifiers)


UNCERTAIN_IDENTIFIERS = {
    "printed once": (f"Mixer MX-12 User Manual\f{EN_BODY}", "MX-12"),
    "shared stem": (f"Mixer MX-12/16 User Manual\f{EN_BODY} MX-12/16", "MX-12/16"),
    "only a host is named": (f"Power Cable for MX-12 User Manual\f{EN_BODY} MX-12", "MX-12"),
    "name that goes on": (
        f"TD-5 Mark 2\nTape Deck\nUser Manual\f{EN_BODY} The tape deck TD-5 Mark 2",
        "TD-5",
    ),
    "name and number": (f"Tandem 4 Computer User Manual\f{EN_BODY} Tandem 4", "Tandem 4"),
}


@pytest.mark.parametrize(
    ("text", "candidate"), UNCERTAIN_IDENTIFIERS.values(), ids=UNCERTAIN_IDENTIFIERS.keys()
)
def test_identifier_is_left_to_a_person(text: str, candidate: str) -> None:
    result = read(text)
    assert [(field.value, field.status) for field in result.product_identifiers] == [
        (candidate, "uncertain")
    ]


def test_models_behind_a_label_where_the_title_has_none() -> None:
    result = read(
        f"Gas Boiler User Manual\nModels: GB-24, GB-28\f{EN_BODY} GB-24 GB-28\fGB-24 GB-28"
    )
    assert result.title.value == "Gas Boiler User Manual"
    assert [(field.value, field.status) for field in result.product_identifiers] == [
        ("GB-24", "found"),
        ("GB-28", "found"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"Mixer MX-12 User Manual\f{EN_BODY}\f{FR_BODY}", id="two languages"),
        pytest.param("Mixer MX-12 User Manual\f230 V 50 Hz\f12 16 24", id="no running text"),
        pytest.param("MX-12\f12 16 24", id="figures only"),
    ],
)
def test_language_is_not_certain(text: str) -> None:
    assert read(text).language.status != "found"


DESCRIPTIONS = {
    "defining sentence with the model": (
        f"""
        Mixer MX-12 User Manual
        \f1. Introduction
        Thank you for buying this mixer.
        The MX-12 is a mixer with twelve inputs for small studios.
        {EN_BODY}
        """,
        "The MX-12 is a mixer with twelve inputs for small studios.",
    ),
    "sentence over two lines, divided word": (
        """
        Mixer MX-12 User Manual
        \fThe MX-12 is a mixer with twelve in-
        puts that is designed for small studios and for use on the stage.
        """,
        "The MX-12 is a mixer with twelve inputs that is designed for small studios and for use "
        "on the stage.",
    ),
    "what the document is": (
        "Harbour Ledger User Manual\fThis manual describes how a port keeps its books and dues.",
        "This manual describes how a port keeps its books and dues.",
    ),
    "German": (
        "Mischpult MX-12 Bedienungsanleitung\f"
        "Das Mischpult MX-12 ist ein Gerät für kleine Studios.",
        "Das Mischpult MX-12 ist ein Gerät für kleine Studios.",
    ),
    "Russian": (
        "Микшер МХ-12 Руководство\fМикшер МХ-12 предназначен для работы в небольших студиях.",
        "Микшер МХ-12 предназначен для работы в небольших студиях.",
    ),
    "warnings describe nothing": (
        "Mixer MX-12 User Manual\fWarning: the MX-12 is a device that must be earthed. Never "
        "open the MX-12, it contains dangerous voltage.",
        None,
    ),
    "warranty describes nothing": (
        "Mixer MX-12 User Manual\fThe warranty of the MX-12 is the maker's only liability here.",
        None,
    ),
    "no running text": ("Mixer MX-12 User Manual\fMX-12\nInputs 12", None),
}


@pytest.mark.parametrize(("text", "expected"), DESCRIPTIONS.values(), ids=DESCRIPTIONS.keys())
def test_description(text: str, expected: str | None) -> None:
    result = read(text)
    assert result.description.value == expected
    assert result.description.status == ("absent" if expected is None else "found")


def test_same_pages_give_the_same_answer() -> None:
    case = FOUND["kitchen appliance"]
    assert read(case.text) == read(case.text)


# Lines that rules look at, and any others, in any order.
LINES = st.one_of(
    st.sampled_from(
        [
            "User Manual",
            "Mixer MX-12",
            "MX-12",
            "Model: MX-12",
            "Contents",
            "Introduction",
            "1. Safety",
            "The MX-12 is a mixer that is designed for small studios.",
            "puts that is designed for small studios and for use on the stage.",
            "取扱説明書",
            "www.norvex.example",
            "12",
            "Rev. 2",
            "for",
        ]
    ),
    st.text(max_size=40),
)


@given(st.lists(st.lists(LINES, max_size=8).map("\n".join), max_size=5))
def test_any_pages_are_answered_with_evidence_that_is_there(texts: list[str]) -> None:
    pages = [PageText(number, text) for number, text in enumerate(texts, start=1)]
    _check_evidence(answer("a/reference", pages), pages)


@pytest.mark.parametrize(
    "piece", ["a", "1", "a ", ". ", "A1-", "a@", "-1.", "取", "a1\n", "MX-12 for\n"]
)
def test_time_does_not_grow_with_the_square_of_a_line(piece: str) -> None:
    """A quadratic rule needs half a minute here; all together need a fraction of a second."""
    started = time.process_time()
    answer("a/reference", [PageText(1, piece * 100_000)])
    assert time.process_time() - started < 5
