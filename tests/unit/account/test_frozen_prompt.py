"""The prompt of a version: named by its frozen spec, digested only where it is proven."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from partitions.processing_version import PACKAGED_SPECS, digest, read_spec
from pipeline_assets.account.frozen_prompt import PromptUsed, prompt_used
from pipeline_assets.versions import digested_parts
from pipeline_assets.workloads.registry import load_workload
from resources.settings import Settings

KEY = "manuals-openai-batch-4"
WORKLOAD = load_workload("equipment_manuals", None)
SPEC = read_spec(PACKAGED_SPECS / f"{KEY}.yaml")
DIGEST = digest(SPEC, digested_parts(SPEC, WORKLOAD))
PROMPT = SPEC.declared()["request"]["prompt"]
REPAIR = SPEC.declared()["request"]["recovery"]["repair_prompt"]


def changed(**members: Any) -> dict[str, Any]:
    return {**SPEC.declared(), **members}


def digest_of(name: str) -> str:
    return hashlib.sha256(WORKLOAD.prompts[name]).hexdigest()


def test_the_prompt_that_is_installed_is_the_one_that_was_frozen() -> None:
    found = prompt_used(Settings(), "equipment_manuals", SPEC.declared(), DIGEST, "first")
    assert found == PromptUsed(PROMPT, digest_of(PROMPT))


def test_a_repair_has_a_prompt_of_its_own() -> None:
    assert REPAIR != PROMPT
    found = prompt_used(Settings(), "equipment_manuals", SPEC.declared(), DIGEST, "repair_prompt")
    assert found == PromptUsed(REPAIR, digest_of(REPAIR))


@pytest.mark.parametrize(
    ("workload", "spec", "frozen"),
    [
        pytest.param("gone", SPEC.declared(), DIGEST, id="workload-gone"),
        pytest.param("equipment_manuals", SPEC.declared(), "0" * 64, id="another-digest"),
        pytest.param("equipment_manuals", changed(rules={"x": 1}), DIGEST, id="rules-gone"),
        pytest.param("equipment_manuals", changed(acceptance="gone"), DIGEST, id="acceptance-gone"),
        pytest.param("equipment_manuals", changed(later="member"), DIGEST, id="of-another-release"),
    ],
)
def test_what_is_not_proven_has_a_name_alone(
    workload: str, spec: dict[str, Any], frozen: str
) -> None:
    assert prompt_used(Settings(), workload, spec, frozen, "first") == PromptUsed(PROMPT, None)


def test_a_spec_of_the_first_release_names_no_prompt() -> None:
    spec = {name: value for name, value in SPEC.declared().items() if name != "request"}
    assert prompt_used(Settings(), "gone", spec, DIGEST, "first") == PromptUsed("1", None)
