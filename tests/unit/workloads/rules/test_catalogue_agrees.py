"""Known products, unknown ones, and documents that are about something else."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from pipeline_assets.workloads.equipment_manuals import acceptance
from pipeline_assets.workloads.equipment_manuals.rules.catalogue_agrees import (
    distinctive_stems,
    make_rule,
)
from tests.unit.workloads.rules.placed import notes, placed
from tests.unit.workloads.rules.support import PAGE, answer, field

LIMITS = yaml.safe_load(
    (Path(acceptance.__file__).parent / "thresholds-2.yaml").read_text(encoding="utf-8")
)
RULE = make_rule(LIMITS)
UNKNOWN = "the catalogue does not know every identifier"
FOREIGN = "the catalogue knows the identifier, of a maker and a name that the document has not"
MAKERS = "the catalogue knows the identifiers as products of different makers"
OURS = ("DX-20", "Norvale Tools GmbH", "Dust extractor")


@pytest.mark.parametrize(
    ("catalogue", "printed", "pages", "told"),
    [
        pytest.param([], ["DX-20"], [PAGE], [], id="no-catalogue"),
        pytest.param([OURS], ["DX-20"], [PAGE], [], id="known"),
        pytest.param([("dx 20", *OURS[1:])], ["DX-20"], [PAGE], [], id="known-folded"),
        pytest.param([OURS], ["DX-21"], [PAGE], [(UNKNOWN, "note")], id="unknown"),
        pytest.param([OURS], ["DX-20", "ZZ-9"], [PAGE], [(UNKNOWN, "note")], id="one-unknown"),
        pytest.param(
            [("DX-20", "Norvale", "Wärmeschranks")],
            ["DX-20"],
            ["DX-20", "Der Wärmeschrank"],
            [],
            id="name-on-another-page-in-another-form",
        ),
        pytest.param(
            [("DX-20", "Norvale", "Oven")], ["DX-20"], ["DX-20", "by NORVALE"], [], id="maker"
        ),
        pytest.param(
            [("DX-20", "Norvale", "Heat cabinet")],
            ["DX-20"],
            [PAGE, "more of it"],
            [(FOREIGN, "review")],
            id="another-product",
        ),
        pytest.param(
            [("DX-20", "User Systems GmbH", "Large type")],
            ["DX-20"],
            ["DX-20 systems, type large"],
            [(FOREIGN, "review")],
            id="words-that-any-product-has",
        ),
        pytest.param(
            [OURS, ("ZZ-9", "Other", "Extractor")],
            ["DX-20", "ZZ-9"],
            [PAGE],
            [(MAKERS, "review")],
            id="two-makers",
        ),
        pytest.param(
            [OURS, ("ZZ-9", "NORVALE TOOLS GMBH", "Extractor")],
            ["DX-20", "ZZ-9"],
            [PAGE],
            [],
            id="one-maker-twice",
        ),
    ],
)
def test_catalogue_agrees(
    catalogue: list[tuple[str, str, str]],
    printed: list[str],
    pages: list[str],
    told: list[tuple[str, str]],
) -> None:
    entry = answer(product_identifiers=[field(value, value) for value in printed])
    if "user" in str(catalogue).casefold():
        entry = answer(title=field("x", "DX-20"), product_identifiers=entry["product_identifiers"])
    found = notes(RULE, placed(entry, pages=pages, catalogue=catalogue))
    assert found == [("product_identifiers", *finding) for finding in told]


@pytest.mark.parametrize(
    ("maker", "name", "stems"),
    [
        pytest.param("Norvale Tools GmbH", "Oven", ["norva", "tool", "oven"], id="words"),
        pytest.param("Ристална", "Весы лабораторные", ["ристал", "весы", "лабораторн"], id="forms"),
        pytest.param("日本機械", "秤", ["日本機械"], id="signs"),
        pytest.param("ABC", "X 1", ["abc", "x 1"], id="too-short-are-taken-whole"),
    ],
)
def test_distinctive_stems(maker: str, name: str, stems: list[str]) -> None:
    assert distinctive_stems(maker, name, frozenset({"gmbh"}), 4) == stems
