"""What a spec says of recovery: what is refused, and that it is part of the version's identity."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from partitions.processing_version import PACKAGED_SPECS, InvalidSpec, Spec, digest, find_spec
from partitions.processing_version import read_spec as read_file
from pipeline_assets.versions import UnknownPrompt, digested_parts
from pipeline_assets.workloads.registry import load_workload

FIELDS: dict[str, Any] = yaml.safe_load(
    (PACKAGED_SPECS / "manuals-openai-batch-2.yaml").read_text(encoding="utf-8")
)
RECOVERY: dict[str, Any] = FIELDS["request"]["recovery"]


def read(folder: Path, recovery: Any) -> Spec:
    request = {name: value for name, value in FIELDS["request"].items() if name != "recovery"}
    if recovery is not ...:
        request["recovery"] = recovery
    file = folder / f"{FIELDS['key']}.yaml"
    file.write_text(yaml.safe_dump(FIELDS | {"request": request}), encoding="utf-8")
    return read_file(file)


def digest_of(spec: Spec) -> str:
    return digest(spec, digested_parts(spec, load_workload(spec.workload)))


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        pytest.param({"output_tokens": 4000}, "must be above output_tokens", id="as-much-output"),
        pytest.param({"output_tokens": 100}, "must be above output_tokens", id="less-output"),
        pytest.param(
            {"document_tokens": 24_000}, "must be below document_tokens", id="as-much-document"
        ),
        pytest.param(
            {"document_tokens": 90_000}, "must be below document_tokens", id="more-document"
        ),
        pytest.param({"repair_prompt": "2"}, "must be another prompt", id="the-same-prompt"),
        pytest.param({"repair_prompt": "../x"}, "repair_prompt", id="no-name"),
        pytest.param({"output_tokens": "many"}, "recovery.output_tokens", id="no-number"),
        pytest.param({"output_tokens": 300_001}, "recovery.output_tokens", id="beyond-any-model"),
        pytest.param({"document_tokens": 99}, "recovery.document_tokens", id="next-to-nothing"),
        pytest.param(
            {"attempts": 9},
            "unknown field 'request.recovery.attempts' (known: output_tokens, repair_prompt, "
            "document_tokens)",
            id="a-limit-is-an-operating-setting",
        ),
    ],
)
def test_what_is_refused(tmp_path: Path, changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidSpec) as refused:
        read(tmp_path, RECOVERY | changes)
    assert problem in str(refused.value)


@pytest.mark.parametrize("name", sorted(RECOVERY))
def test_each_path_may_be_allowed_by_itself(tmp_path: Path, name: str) -> None:
    spec = read(tmp_path, {name: RECOVERY[name]})
    assert spec.request is not None and spec.request.recovery is not None
    assert spec.request.recovery.model_dump(exclude_none=True) == {name: RECOVERY[name]}


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"output_tokens": 12_001}, id="output"),
        pytest.param({"document_tokens": 11_999}, id="document"),
        pytest.param({"repair_prompt": None}, id="no-repair"),
    ],
)
def test_another_recovery_is_another_version(tmp_path: Path, changes: dict[str, Any]) -> None:
    found = {digest_of(read(tmp_path, RECOVERY)), digest_of(read(tmp_path, RECOVERY | changes))}
    assert len(found | {digest_of(read(tmp_path, ...))}) == 3


def test_the_bytes_of_the_repair_prompt_are_digested(tmp_path: Path) -> None:
    spec = read(tmp_path, RECOVERY)
    parts = digested_parts(spec, load_workload(spec.workload))
    assert parts.repair_prompt is not None
    changed = replace(parts, repair_prompt=parts.repair_prompt + b" ")
    assert digest(spec, parts) != digest(spec, changed)


def test_a_version_without_recovery_is_what_it_was(tmp_path: Path) -> None:
    """Its declaration, which the ledger has frozen, knows no such field."""
    spec = read(tmp_path, ...)
    assert "recovery" not in spec.declared()["request"]
    assert digest_of(spec) == digest_of(read(tmp_path, None))
    assert digested_parts(spec, load_workload(spec.workload)).repair_prompt is None


def test_a_repair_prompt_that_the_workload_does_not_have(tmp_path: Path) -> None:
    spec = read(tmp_path, RECOVERY | {"repair_prompt": "nowhere"})
    with pytest.raises(UnknownPrompt, match="nowhere"):
        digest_of(spec)


def test_the_packaged_version_allows_all_three() -> None:
    spec = find_spec("manuals-openai-batch-2", [PACKAGED_SPECS])
    assert spec.request is not None and spec.request.recovery is not None
    assert None not in spec.request.recovery.model_dump().values()
    assert digest_of(spec)
