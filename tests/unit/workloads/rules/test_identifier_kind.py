"""Printed codes that are no model, models that look a little like one, and names."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import yaml

from pipeline_assets.workloads.equipment_manuals import acceptance
from pipeline_assets.workloads.equipment_manuals.rules.identifier_kind import kind_of, make_rule
from tests.unit.workloads.rules.placed import notes, placed
from tests.unit.workloads.rules.support import answer, field

LIMITS = yaml.safe_load(
    (Path(acceptance.__file__).parent / "thresholds-2.yaml").read_text(encoding="utf-8")
)
RULE = make_rule(LIMITS)

KINDS = {
    "a date": "2019-03-04|03/2019|04.03.2019|March 2019|12 May 2020|2023|2019-2021|Q4 2022"
    "|2021年3月",
    "a phone number": "+49 30 123456|(030) 1234567|030/1234567|555-123-4567|1-800-555-1234",
    "an address of the web or of mail": (
        "www.example.com|info@example.com|http://example.com/1|example.com|manual-2.pdf"
    ),
    "a page, chapter or figure": "page 12|p. 3|Page 3 of 20|3 of 20|Fig. 4|Seite 7|стр. 5|第3页",
    "a standard or a mark": (
        "ISO 9001|ISO9001:2015|EN 60335|EN 60335-1|EN60335|EN-60335|IEC 60335-2-14"
        "|DIN EN ISO 13849-1|BS EN 61010|IP54|IP 65|IK08|2006/42/EC|FCC Part 15|UL 94|CISPR 22"
        "|ГОСТ 12.2.003-91|802.11n|RS-232|RS485|USB 2.0|MIL-STD-810|UTF-8"
    ),
    "a version": "v1.2|V2.0|Rev. 3|Rev B|Version 1.0|firmware 2.3.1|1.2.3|2nd edition",
    "a price": "€ 199|$19.99|199 EUR|1.299,00 €|500 руб.",
    "a size or a rating": (
        "230V|230 V AC|100-240V~|12 V DC|50/60 Hz|1.5 kW|10x20 mm|1024 x 768|A4|Pt100|M8|25 °C"
        "|12V/24V|0,5 mm|10 µF|5 кг|5-10 bar"
    ),
    "a serial number or another label": "S/N 12345|No. 1234|Serial No: A1234|Order: 77-1",
}
MODELS = (
    "DX-20|RV2|QV126|AB MINI C3 V1.2|ПМ-01|DXC-100|KE-200 Pro|JK-C7|NN2114L|V-100|P100|1234"
    "|KX 1.2/3|RTX-3000+|MX-12 (B)|12|型番7|Z80|7490|SN7400|DEC-11|MAR-20|G5|X1|LM317T|PG-100"
    "|S7-1200|UL-20|6ES7 214-1AG40|CE-300|GB-10|IPC-9000|ISOMAX 3|ENC-28|MPX-4|Penta 5"
).split("|")


@pytest.mark.parametrize(
    ("value", "kind"),
    [(value, kind) for kind, values in KINDS.items() for value in values.split("|")],
)
def test_another_kind(value: str, kind: str) -> None:
    assert kind_of(value) == kind
    seen = placed(answer(product_identifiers=[field("DX-20", "DX-20"), field(value, value)]))
    assert ("product_identifiers", f"looks like {kind}", "review") in notes(RULE, seen)


@pytest.mark.parametrize("value", MODELS)
def test_a_model(value: str) -> None:
    assert notes(RULE, placed(answer(product_identifiers=[field(value, value)]))) == []


NAMELESS = "a word without a digit that is no product's name"


@pytest.mark.parametrize(
    ("value", "title", "page", "passes"),
    [
        pytest.param("LibreMixer", "LibreMixer Guide", "LibreMixer", True, id="coined"),
        pytest.param("LibreMixer", "Mixer Guide", "LibreMixer", False, id="not-in-the-title"),
        pytest.param("Mixer", "Mixer Guide", "a mixer", False, id="word-of-the-language"),
        pytest.param(
            "ORION SUITE",
            "ORION SUITE SERVICE MANUAL",
            "ORION SUITE\nThe Orion Suite is new. Orion Suite.",
            True,
            id="capitals-and-always-a-name",
        ),
        pytest.param(
            "WATER LINE",
            "WATER LINE MODULE",
            "WATER LINE\nThe water line. Water Line. Water Line.",
            False,
            id="capitals-and-a-word-in-the-text",
        ),
        pytest.param("ORION", "ORION MANUAL", "ORION\nOrion", False, id="printed-too-seldom"),
        pytest.param(
            "SERVICE MANUAL", "ORION SERVICE MANUAL", "SERVICE MANUAL\n" * 4, False, id="a-kind"
        ),
        pytest.param("", "ORION SERVICE MANUAL", "ORION", False, id="nothing"),
    ],
)
def test_names(value: str, title: str, page: str, passes: bool) -> None:
    seen = placed(
        answer(title=field(title, page), product_identifiers=[field(value, page)]), pages=(page,)
    )
    expected = [] if passes else [("product_identifiers", NAMELESS, "review")]
    assert notes(RULE, seen) == expected


@pytest.mark.parametrize(
    ("values", "twice"),
    [
        (["DX-20", "dx\u201120"], True),
        (["DX-20", "DX 20", "DX-30"], True),
        (["DX-20", "DX-20+"], False),
        (["DX-20", "DX-2"], False),
    ],
)
def test_one_identifier_in_two_spellings(values: list[str], twice: bool) -> None:
    entry = answer(product_identifiers=[field(value, value) for value in values])
    told = ("product_identifiers", "named twice, but for case, hyphens and spaces", "review")
    assert notes(RULE, placed(answer(), entry)) == ([told] if twice else [])


@pytest.mark.parametrize(
    "value",
    ["iso" + "1/" * 40, "5v-" * 30 + "!", "5 v " * 30 + "!", "1 " * 40 + "!", "+1" + "-1" * 40,
     "a." * 40 + "!", "1.1" * 30 + "!", "iso " + "(1" * 40 + "!", "1/1 " * 20],
    ids=range(9),
)  # fmt: skip
def test_no_value_takes_long(value: str) -> None:
    begun = time.perf_counter()
    kind_of(value)
    assert time.perf_counter() - begun < 0.5
