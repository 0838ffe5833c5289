"""Registering partition keys: each once, none from a bad list, none ever deleted."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from partitions.definition import PROCESSING_VERSIONS, register
from partitions.processing_version import MalformedVersionKey


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as made:
        yield made


def keys(instance: dg.DagsterInstance) -> list[str]:
    return sorted(instance.get_dynamic_partitions(str(PROCESSING_VERSIONS.name)))


def test_new_keys_are_added_once(instance: dg.DagsterInstance) -> None:
    assert register(instance, ["b", "a", "b"]) == ["b", "a"]
    assert register(instance, ["a", "c"]) == ["c"]
    assert register(instance, ["a"]) == []
    assert register(instance, []) == []
    assert keys(instance) == ["a", "b", "c"]


def test_one_bad_key_adds_none(instance: dg.DagsterInstance) -> None:
    with pytest.raises(MalformedVersionKey):
        register(instance, ["a", "b..c"])
    assert keys(instance) == []


def test_no_code_deletes_a_key(repository: Path) -> None:
    deleting = {"delete_dynamic_partition", "delete_partition"}
    found = [
        f"{path.name}:{node.lineno}"
        for folder in ("partitions", "resources", "pipeline_assets")
        for path in (repository / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr in deleting
    ]
    assert found == []
