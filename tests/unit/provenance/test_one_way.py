"""No asset can forget its provenance: there is one way to tell what was made."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

THE_WAY = "pipeline_assets/provenance/asset.py"
RESULT = "MaterializeResult"
OTHERS = frozenset({"AssetMaterialization", "Output"})
"""What Dagster would take for the same, without the record."""


def made_directly(source: str) -> list[int]:
    """Lines that make a result of a materialisation; annotations make none."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and _name(node.func) in {RESULT, *OTHERS}
    ]


def _name(called: ast.expr) -> str | None:
    if isinstance(called, ast.Attribute):
        return called.attr
    return called.id if isinstance(called, ast.Name) else None


def test_only_one_module_makes_results(repository: Path) -> None:
    found = {
        path.relative_to(repository).as_posix(): lines
        for path in sorted((repository / "pipeline_assets").rglob("*.py"))
        if (lines := made_directly(path.read_text(encoding="utf-8")))
    }
    assert list(found) == [THE_WAY]


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        pytest.param("x = dg.MaterializeResult(metadata={})", [1], id="attribute"),
        pytest.param("x = MaterializeResult()", [1], id="name"),
        pytest.param("\nyield_ = dg.Output(1)", [2], id="output"),
        pytest.param("def f() -> dg.MaterializeResult: ...", [], id="annotation"),
        pytest.param("x = materialized(provenance, {})", [], id="the-way"),
    ],
)
def test_made_directly(source: str, lines: list[int]) -> None:
    assert made_directly(source) == lines
