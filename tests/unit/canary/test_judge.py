"""A canary is judged as any answer of its version is: mended where the version mends."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from pipeline_assets.canary.judge import BROKEN, AskedDocument, judge_canary
from pipeline_assets.workloads.equipment_manuals.workload import load
from pipeline_assets.workloads.format_repair.repairs import REPAIRS
from pipeline_assets.workloads.workload import FIRST_ACCEPTANCE, Repair
from resources.providers.baseline import BaselineProvider, encode_body, encode_request

WORKLOAD = load()
DOCUMENT = WORKLOAD.canary()[0]
REFERENCE = "doc-0123456789abcdef"


def lines(pattern: str) -> list[bytes]:
    """The built-in rules' answer inside a pattern, and the refusal of the broken request."""
    provider = BaselineProvider("rules", WORKLOAD.baseline)
    pages = list(enumerate(DOCUMENT.pages, start=1))
    good = json.loads(
        provider.answer_line(encode_request("c-0", encode_body("rules", REFERENCE, pages)))
    )
    good["body"]["text"] = pattern.format(good["body"]["text"])
    refused = {"custom_id": "c-1", "status_code": 400}
    return [json.dumps(entry).encode() for entry in (good, refused)]


@pytest.mark.parametrize(
    ("pattern", "repairs", "found"),
    [
        pytest.param("{}", (), [], id="as-asked"),
        pytest.param("```json\n{}\n```", REPAIRS, [], id="mended"),
        pytest.param("```json\n{}\n```", (), ["malformed_json"], id="not-by-this-version"),
        pytest.param("```json\n{}", REPAIRS[:2], ["malformed_json"], id="not-mendable"),
    ],
)
def test_a_canary_is_mended_as_its_version_s_answers(
    pattern: str, repairs: tuple[Repair, ...], found: list[str]
) -> None:
    acceptance = replace(WORKLOAD.acceptances[FIRST_ACCEPTANCE], repairs=repairs)
    asked = [AskedDocument("c-0", REFERENCE, DOCUMENT), AskedDocument("c-1", BROKEN, None)]
    reader = BaselineProvider("rules", WORKLOAD.baseline)
    told = judge_canary(WORKLOAD, acceptance, reader, asked, lines(pattern))
    assert [finding.check for finding in told] == found
