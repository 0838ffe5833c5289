"""What the rules of each family found, counted in the ledger."""

from __future__ import annotations

import polars as pl
import pytest

from pipeline_assets.accept.family_findings import (
    DOUBTED_AT_MOST,
    FAMILIES,
    FamilyFindings,
    family_findings,
    rules_by_family,
)
from resources.ledger.schema import findings
from tests.integration.quality.support import Judged

RULES = {"evidence": ("quote", "place"), "language": ("tongue",), "title": ()}


def add_findings(judged: Judged, *rows: tuple[int, str, str]) -> None:
    """Findings as record, rule and severity."""
    frame = pl.DataFrame(
        list(rows),
        schema={"record_no": pl.Int64, "rule": pl.String, "severity": pl.String},
        orient="row",
    ).with_columns(
        attempt_no="record_no",
        finding_no=pl.int_range(1, len(rows) + 1, dtype=pl.Int64),
        rule_version=1,
        field=pl.lit("title"),
        note=pl.lit(""),
    )
    with judged.ledger.write() as connection:
        judged.ledger.dialect.load(connection, findings, frame)


def found_in(judged: Judged, families: dict[str, tuple[str, ...]]) -> dict[str, FamilyFindings]:
    with judged.ledger.read() as connection:
        found = family_findings(connection, judged.ledger, judged.version.version_no, families)
    return {entry.family: entry for entry in found}


def test_records_count_once_a_family_and_notes_doubt_nothing(judged: Judged) -> None:
    judged.add(10)
    add_findings(
        judged,
        (1, "quote", "review"),
        (1, "place", "review"),
        (2, "place", "note"),
        (3, "place", "recover"),
        (3, "tongue", "review"),
        (4, "a rule of another version", "review"),
    )
    found = found_in(judged, RULES)
    assert found["evidence"] == FamilyFindings("evidence", RULES["evidence"], 10, 4, 3, 2)
    assert (found["evidence"].share, found["evidence"].doubted_share) == (0.3, 0.2)
    assert found["language"] == FamilyFindings("language", ("tongue",), 10, 1, 1, 1)
    assert found["title"] == FamilyFindings("title", (), 10)
    assert list(found) == list(RULES)


def test_nothing_judged_is_nothing_doubted(judged: Judged) -> None:
    assert found_in(judged, RULES)["evidence"] == FamilyFindings("evidence", RULES["evidence"], 0)
    assert found_in(judged, {"title": ()})["title"].share == 0.0


@pytest.mark.parametrize(
    ("judged_records", "doubted", "expected"),
    [
        pytest.param(0, 0, False, id="nothing"),
        pytest.param(2, 1, False, id="too-few-to-say"),
        pytest.param(100, 20, False, id="at-the-limit"),
        pytest.param(100, 25, False, id="may-be-chance"),
        pytest.param(100, 35, True, id="too-many"),
        pytest.param(1_000, 250, True, id="too-many-of-many"),
    ],
)
def test_too_many(judged_records: int, doubted: int, expected: bool) -> None:
    assert DOUBTED_AT_MOST == 0.2
    found = FamilyFindings("title", (), judged_records, doubted, doubted, doubted)
    assert found.too_many is expected


def test_every_rule_of_a_version_has_a_family(judged: Judged) -> None:
    for acceptance in judged.version.workload.acceptances.values():
        families = rules_by_family(acceptance)
        assert tuple(families) == FAMILIES
        named = [rule for rules in families.values() for rule in rules]
        assert sorted(named) == sorted(
            rule.id for rule in (*acceptance.rules, *acceptance.batch_rules)
        )
