"""The import rules: what they allow, and that each of them can fail."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from scripts.import_contracts import forbidden_importers


def allowed_patterns(repository: Path) -> list[str]:
    project = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    return next(contract["allowed"] for contract in contracts if "allowed" in contract)


@pytest.mark.parametrize(
    ("module", "allowed"),
    [
        ("partitions.definition", True),
        ("partitions.processing_version", False),
        ("resources.ledger_resource", True),
        ("resources.ledger.ledger_resource", True),
        ("resources.ledger.engine", False),
        ("resources", False),
        ("pipeline_assets.ingest.asset", True),
        ("pipeline_assets.accept.checks", True),
        ("pipeline_assets.ingest.parsing.worker", False),
        ("pipeline_assets.ingest", False),
        ("pipeline_assets.automation.jobs", True),
        ("pipeline_assets.cli.app", True),
        ("pipeline_assets.definitions", True),
        ("pipeline_assets.workloads.equipment_manuals.baseline", False),
    ],
)
def test_who_may_import_dagster(module: str, allowed: bool, repository: Path) -> None:
    strays = forbidden_importers([module], allowed_patterns(repository))
    assert strays == ([] if allowed else [module])


@pytest.mark.parametrize(
    ("module", "line", "complaint"),
    [
        pytest.param("resources/x.py", "import pipeline_assets.cli", "resources.x", id="upwards"),
        pytest.param(
            "pipeline_assets/prepare/x.py",
            "from pipeline_assets.submit import y",
            "pipeline_assets.prepare.x",
            id="stage-to-stage",
        ),
        pytest.param(
            "pipeline_assets/ingest/x.py",
            "import pipeline_assets.workloads",
            "pipeline_assets.ingest.x",
            id="ingest-to-prompts",
        ),
        pytest.param(
            "pipeline_assets/accept/x.py",
            "import pipeline_assets.definitions",
            "pipeline_assets.accept.x",
            id="stage-to-top",
        ),
        pytest.param(
            "pipeline_assets/accept/x.py",
            "import dagster",
            "pipeline_assets.accept.x imports dagster (line 1)",
            id="dagster-inside",
        ),
        pytest.param("pipeline_assets/accept/asset.py", "import dagster", None, id="dagster-edge"),
        pytest.param("partitions/x.py", "import json", None, id="clean"),
    ],
)
def test_contracts_judge_a_small_tree(
    module: str, line: str, complaint: str | None, repository: Path, tmp_path: Path
) -> None:
    for package in (
        "partitions",
        "resources",
        "pipeline_assets",
        "pipeline_assets/cli",
        "pipeline_assets/workloads",
        *(f"pipeline_assets/{stage}" for stage in ("ingest", "prepare", "submit", "accept")),
    ):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").touch()
    (tmp_path / "pipeline_assets/submit/y.py").touch()
    (tmp_path / "pipeline_assets/definitions.py").touch()
    (tmp_path / module).write_text(f"{line}\n", encoding="utf-8")
    shutil.copytree(repository / "scripts", tmp_path / "scripts")
    shutil.copy(repository / "pyproject.toml", tmp_path)
    outcome = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache", "--no-logo"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    if complaint is None:
        assert outcome.returncode == 0, outcome.stdout
    else:
        assert outcome.returncode == 1, outcome.stdout
        assert complaint in " ".join(outcome.stdout.split())
        assert "3 kept, 1 broken" in outcome.stdout
