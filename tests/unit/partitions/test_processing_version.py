"""Keys, spec files and digests of processing versions: what is taken, what is refused and how."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from partitions.processing_version import (
    PACKAGED_SPECS,
    DigestedParts,
    InvalidSpec,
    MalformedVersionKey,
    Spec,
    SpecDisagrees,
    UnknownVersion,
    check_key,
    digest,
    find_spec,
    list_specs,
    read_spec,
)
from pipeline_assets.versions import UnknownAcceptance, digested_parts
from pipeline_assets.workloads.registry import load_workload

FIELDS: dict[str, Any] = {
    "key": "manuals-1",
    "description": "for people",
    "workload": "equipment_manuals",
    "provider": "baseline",
    "mode": "embedded",
    "model": "rules-1",
    "parameters": {"effort": "low", "depth": {"pages": [1, 2]}},
    "schema_version": 1,
    "parser": {"version": "1", "ocr_pages": 12, "max_pages": 2000},
    "rules": {"frame": 1, "title_present": 2},
}
PARTS = DigestedParts(
    prompt=b"prompt",
    output_schema=b"{}",
    thresholds=b"title: 3",
    rules={"frame": 1, "title_present": 2},
    parser_version="1",
    schema_version=1,
)


def write(folder: Path, fields: dict[str, Any] | str, name: str = "manuals-1") -> Path:
    folder.mkdir(exist_ok=True)
    file = folder / f"{name}.yaml"
    text = fields if isinstance(fields, str) else yaml.safe_dump(fields)
    file.write_text(text, encoding="utf-8")
    return file


def spec(**changes: Any) -> Spec:
    return Spec.model_validate(FIELDS | changes)


@pytest.mark.parametrize(
    "key", ["a", "0", "manuals-baseline-1", "v1.2_x", "a" * 63, "a.", "9.9"], ids=repr
)
def test_keys_that_are_taken(key: str) -> None:
    assert check_key(key) == key


@pytest.mark.parametrize(
    "key",
    [
        pytest.param("", id="empty"),
        pytest.param("a" * 64, id="too-long"),
        pytest.param("Manuals", id="upper-case"),
        pytest.param("-a", id="starts-with-dash"),
        pytest.param(".a", id="starts-with-dot"),
        pytest.param("a..b", id="two-dots"),
        pytest.param("a/b", id="slash"),
        pytest.param("a b", id="blank"),
        pytest.param("a\n", id="newline"),
        pytest.param("a,b", id="comma"),
        pytest.param("a[...]", id="bracket"),
        pytest.param("é", id="letter-outside-ascii"),
    ],
)
def test_keys_that_are_refused(key: str) -> None:
    with pytest.raises(MalformedVersionKey, match="expected 1 to 63 lower-case") as refused:
        check_key(key)
    assert repr(key) in str(refused.value)


@given(st.text(max_size=70))
def test_a_key_names_a_file_of_its_own_folder(text: str) -> None:
    try:
        key = check_key(text)
    except MalformedVersionKey:
        return
    assert Path(key).name == key
    assert len(key) <= 63


def test_a_spec_is_read(tmp_path: Path) -> None:
    read = read_spec(write(tmp_path, FIELDS))
    assert read == spec()
    assert (read.operation, read.batch_records) == ("extract", 25_000)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        pytest.param({"promt": "x"}, "unknown field 'promt' (known: key", id="unknown"),
        pytest.param({"budget": 3}, "unknown field 'budget'", id="operating-setting"),
        pytest.param({"model": ...}, "field 'model' is missing", id="missing"),
        pytest.param({"parser": {"version": "1", "ocr_pages": 1}}, "parser.max_pages", id="nested"),
        pytest.param({"schema_version": "1"}, "'schema_version': Input should be", id="type"),
        pytest.param({"schema_version": True}, "'schema_version': Input should be", id="boolean"),
        pytest.param({"schema_version": 0}, "greater than or equal to 1", id="below"),
        pytest.param({"key": 7}, "'key': Input should be a valid string", id="key-type"),
        pytest.param({"key": "A"}, "'A' is not a processing version key", id="key-grammar"),
        pytest.param({"key": "manuals-2"}, "name the file manuals-2.yaml", id="other-name"),
        pytest.param({"workload": "a.b"}, "'workload'", id="workload-grammar"),
        pytest.param({"provider": "nobody"}, "Input should be 'baseline', 'openai'", id="provider"),
        pytest.param({"mode": "later"}, "'mode': Input should be 'embedded'", id="mode"),
        pytest.param(
            {"mode": "batch"}, "'baseline' has no mode 'batch'; expected embedded", id="mode-fits"
        ),
        pytest.param(
            {"provider": "openai"}, "has no mode 'embedded'; expected batch or online", id="mode-of"
        ),
        pytest.param(
            {"provider": "openai", "mode": "batch"}, "needs 'request' with prompt", id="no-request"
        ),
        pytest.param({"endpoint": "/v1"}, "asks nobody", id="built-in-with-endpoint"),
        pytest.param(
            {"request": {"prompt": "2", "document_tokens": 500, "output_tokens": 50, "x": 1}},
            "unknown field 'request.x' (known: prompt, document_tokens",
            id="unknown-request-field",
        ),
        pytest.param({"model": ""}, "'model': String should have at least 1", id="empty-model"),
        pytest.param({"rules": {"frame": 1.5}}, "rules.frame", id="rule-version"),
        pytest.param({"batch_records": 50_001}, "less than or equal to 50000", id="batch"),
        pytest.param({"parameters": {"a": float("nan")}}, "'parameters'", id="not-a-number"),
        pytest.param({"parameters": {"a": 10**20}}, "'parameters'", id="beyond-exact-integers"),
        pytest.param({"parameters": {"a": {1: 2}}}, "'parameters'", id="key-no-text"),
        pytest.param({"parameters": {"a": b"x"}}, "'parameters'", id="bytes"),
    ],
)
def test_a_spec_that_cannot_be_used(tmp_path: Path, changes: dict[str, Any], problem: str) -> None:
    fields = {name: value for name, value in (FIELDS | changes).items() if value is not ...}
    with pytest.raises(InvalidSpec) as refused:
        read_spec(write(tmp_path, fields))
    message = str(refused.value)
    assert message.startswith("manuals-1.yaml: ")
    assert problem in message


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("a: [1", "is not valid YAML at line", id="not-yaml"),
        pytest.param("!!python/object:os.system {}", "is not valid YAML at line 1", id="tag"),
        pytest.param("- a\n- b", "expected a mapping", id="list"),
        pytest.param("", "expected a mapping", id="empty"),
        pytest.param("key: a\nkey: b", "is not valid YAML at line 2", id="field-twice"),
        pytest.param("parameters: &a {b: *a}", "parameters", id="contains-itself"),
        pytest.param("parameters: {a: 2024-01-01}", "'parameters'", id="date"),
    ],
)
def test_a_file_that_holds_no_spec(tmp_path: Path, text: str, problem: str) -> None:
    if text.startswith("parameters"):
        text = yaml.safe_dump({k: v for k, v in FIELDS.items() if k != "parameters"}) + text
    with pytest.raises(InvalidSpec) as refused:
        read_spec(write(tmp_path, text))
    assert problem in str(refused.value)


def test_a_file_in_another_encoding(tmp_path: Path) -> None:
    file = tmp_path / "manuals-1.yaml"
    file.write_bytes("description: Geräte".encode("latin-1"))
    with pytest.raises(InvalidSpec, match=r"manuals-1\.yaml: is not valid YAML"):
        read_spec(file)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "manuals-1.yaml").mkdir()
    with pytest.raises(InvalidSpec, match="cannot be read"):
        read_spec(tmp_path / "manuals-1.yaml")


def test_specs_of_several_folders(tmp_path: Path) -> None:
    first = write(tmp_path / "one", FIELDS)
    second = write(tmp_path / "two", FIELDS | {"key": "manuals-2"}, "manuals-2")
    folders = [tmp_path / "one", tmp_path / "two"]
    assert list_specs(folders) == {"manuals-1": first, "manuals-2": second}
    assert find_spec("manuals-2", folders).key == "manuals-2"
    with pytest.raises(UnknownVersion, match=r"'manuals-3' \(known: manuals-1, manuals-2;"):
        find_spec("manuals-3", folders)
    with pytest.raises(MalformedVersionKey):
        find_spec("../one/manuals-1", folders)


def test_a_key_in_two_folders_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "one", FIELDS)
    write(tmp_path / "two", FIELDS)
    with pytest.raises(InvalidSpec, match="already has a version 'manuals-1'"):
        find_spec("manuals-1", [tmp_path / "one", tmp_path / "two"])


def test_a_folder_that_is_not_there_is_not_an_empty_one(tmp_path: Path) -> None:
    with pytest.raises(InvalidSpec, match=r"nowhere: cannot be listed .*TALLYBOOK_SPECS"):
        list_specs([tmp_path / "nowhere"])


def test_the_packaged_specs_can_be_used() -> None:
    for key in list_specs([PACKAGED_SPECS]):
        assert find_spec(key, [PACKAGED_SPECS]).key == key


def test_digest_has_not_changed() -> None:
    """A new release must give the digests that older ones froze."""
    frozen = "c0b3da984f5258ee5b0f9d5233cb156fdeff404999db417f1683ffd56a1a000d"
    assert digest(spec(), PARTS) == frozen


def test_digest_leaves_the_description_out() -> None:
    assert digest(spec(description="another"), PARTS) == digest(spec(), PARTS)


def test_digest_does_not_depend_on_the_order_of_fields() -> None:
    turned = dict(reversed(FIELDS["parameters"].items()))
    assert digest(spec(parameters=turned), PARTS) == digest(spec(), PARTS)


@pytest.mark.parametrize(
    "changes",
    [
        {"key": "manuals-2"},
        {"workload": "other"},
        {"operation": "classify"},
        {"model": "rules-2"},
        {"parameters": {"effort": "low", "depth": {"pages": [1, 3]}}},
        {"parameters": {}},
        {"parser": {"version": "1", "ocr_pages": 13, "max_pages": 2000}},
        {"parser": {"version": "1", "ocr_pages": 12, "max_pages": 1999}},
        {"batch_records": 24_999},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_digest_covers_every_field(changes: dict[str, Any]) -> None:
    assert digest(spec(**changes), PARTS) != digest(spec(), PARTS)


def test_no_field_is_forgotten() -> None:
    """A new field belongs into the table above, or beside the description."""
    covered = {"key", "workload", "operation", "model", "parameters", "parser", "batch_records"}
    single_valued = {"provider", "mode"}
    compared_with_code = {"rules", "schema_version"}
    later = {"acceptance", "endpoint", "repairs", "request"}  # see the next tests
    assert set(Spec.model_fields) == (
        covered | single_valued | compared_with_code | later | {"description"}
    )


def test_fields_that_came_later_leave_earlier_digests_alone() -> None:
    """The digest of a version that the first release froze."""
    first = read_spec(PACKAGED_SPECS / "manuals-baseline-1.yaml")
    assert set(first.declared()) & {"acceptance", "endpoint", "repairs", "request"} == set()
    assert digest(first, digested_parts(first, load_workload(first.workload))) == (
        "5347b9eb4199fab23df1ca5ddf305561cc753b62dedee9d7023857e4d2e5d03a"
    )


ASKED: dict[str, Any] = {
    "provider": "openai",
    "mode": "batch",
    "request": {"prompt": "2", "document_tokens": 5000, "output_tokens": 500},
}


@pytest.mark.parametrize(
    "changes",
    [
        {"provider": "anthropic"},
        {"mode": "online"},
        {"endpoint": "/v1/chat/completions"},
        {"request": {"prompt": "3", "document_tokens": 5000, "output_tokens": 500}},
        {"request": {"prompt": "2", "document_tokens": 5001, "output_tokens": 500}},
        {"request": {"prompt": "2", "document_tokens": 5000, "output_tokens": 501}},
        {"request": {**ASKED["request"], "tail": "online"}},
        {"request": {**ASKED["request"], "window_hours": 48}},
    ],
    ids=str,
)
def test_digest_covers_how_a_model_is_asked(changes: dict[str, Any]) -> None:
    assert digest(spec(**ASKED), PARTS) != digest(spec(**(ASKED | changes)), PARTS)


def test_digest_covers_the_acceptance() -> None:
    assert digest(spec(acceptance="2"), PARTS) != digest(spec(), PARTS)


def test_digest_covers_repairs() -> None:
    installed = replace(PARTS, repairs={"fences": 1})
    newer = replace(PARTS, repairs={"fences": 2})
    assert (
        len(
            {
                digest(spec(), PARTS),
                digest(spec(repairs={"fences": 1}), installed),
                digest(spec(repairs={"fences": 2}), newer),
            }
        )
        == 3
    )
    with pytest.raises(SpecDisagrees, match="repair fences is declared as 1 and installed as 2"):
        digest(spec(repairs={"fences": 1}), newer)
    with pytest.raises(SpecDisagrees, match="repair fences is declared as absent"):
        digest(spec(), installed)


def test_an_acceptance_that_the_workload_lacks_is_refused() -> None:
    first = read_spec(PACKAGED_SPECS / "manuals-baseline-1.yaml")
    other = first.model_copy(update={"acceptance": "9"})
    with pytest.raises(UnknownAcceptance, match="names the acceptance '9'; its workload has 1, 2"):
        digested_parts(other, load_workload(first.workload))


def test_a_redaction_that_is_declared_must_be_installed() -> None:
    asked = ASKED | {"request": {**ASKED["request"], "redaction": {"names": 2}}}
    with pytest.raises(SpecDisagrees, match="redaction names is declared as 2 and installed as"):
        digest(spec(**asked), PARTS)


@pytest.mark.parametrize("part", ["prompt", "output_schema", "thresholds"])
def test_digest_covers_every_byte(part: str) -> None:
    data: bytes = getattr(PARTS, part)
    changed = replace(PARTS, **{part: data[:-1] + bytes([data[-1] ^ 1])})
    assert digest(spec(), changed) != digest(spec(), PARTS)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        pytest.param(
            lambda: (spec(), replace(PARTS, parser_version="2")),
            "parser 1 is declared, 2 is installed",
            id="parser",
        ),
        pytest.param(
            lambda: (spec(), replace(PARTS, rules={"frame": 2, "title_present": 2})),
            "rule frame is declared as 1 and installed as 2",
            id="rule-version",
        ),
        pytest.param(
            lambda: (spec(), replace(PARTS, rules={"frame": 1})),
            "rule title_present is declared as 2 and installed as absent",
            id="rule-gone",
        ),
        pytest.param(
            lambda: (spec(rules={"frame": 1}), PARTS),
            "rule title_present is declared as absent and installed as 2",
            id="rule-not-declared",
        ),
        pytest.param(
            lambda: (spec(schema_version=2), PARTS),
            "output schema 2 is declared, 1 is installed",
            id="output-schema",
        ),
    ],
)
def test_a_spec_for_another_release(
    change: Callable[[], tuple[Spec, DigestedParts]], problem: str
) -> None:
    with pytest.raises(SpecDisagrees, match="write a new version with its own key") as refused:
        digest(*change())
    assert problem in str(refused.value)
