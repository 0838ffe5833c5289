"""The Dagster instance of a state folder: one place for all ways in, safe at its first use."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml

from partitions.definition import PROCESSING_VERSIONS, register
from pipeline_assets.automation.jobs import MAX_RUNTIME_SECONDS
from pipeline_assets.cli.dagster_instance import (
    InstanceUnusable,
    instance_home,
    open_instance,
    prepare,
)
from resources.settings import Settings, load_settings
from tests.support.small_shop import KEY

RACERS = 4
OPEN_AT_ONCE = """
import sys, time
from pathlib import Path
from partitions.definition import register
from pipeline_assets.cli.dagster_instance import open_instance
from resources.settings import load_settings
settings = load_settings(state=Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
with open_instance(settings) as instance:
    instance.add_dynamic_partitions("processing_version", [sys.argv[2]])
    assert instance.get_runs_count() == 0
"""


def without_places(file: Path) -> dict[str, Any]:
    """Read an instance's configuration without what names folders and databases."""
    content = yaml.safe_load(file.read_text(encoding="utf-8"))
    return {
        name: value
        for name, value in content.items()
        if name not in ("storage", "local_artifact_storage")
    }


def test_default_state_has_the_same_databases_for_command_line_and_dagster_dev(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`dagster dev` in the repository reads dagster.yaml there, with a home that it deletes."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dagster.yaml").write_bytes((repository / "dagster.yaml").read_bytes())
    settings = load_settings(home=tmp_path)
    assert settings.state_folder == tmp_path / "data/state"
    with open_instance(settings) as ours:
        register(ours, [KEY])
    with dg.DagsterInstance.from_config(str(tmp_path)) as theirs:
        assert list(theirs.get_dynamic_partitions("processing_version")) == [KEY]
        assert Path(theirs.root_directory).resolve() == instance_home(settings).resolve()


def test_root_configuration_differs_only_in_places(repository: Path) -> None:
    template = repository / "pipeline_assets/cli/instance.yaml"
    assert without_places(repository / "dagster.yaml") == without_places(template)


def test_postgres_configuration_differs_only_in_places_and_how_many_runs(repository: Path) -> None:
    ours = without_places(repository / "pipeline_assets/cli/instance.yaml")
    theirs = without_places(repository / "deploy/postgres/dagster.yaml")
    assert theirs.pop("concurrency") != ours.pop("concurrency")
    assert theirs == ours


def test_instance_ends_runs_and_reports_nothing_home(settings: Settings) -> None:
    with open_instance(settings) as instance:
        assert instance.run_monitoring_enabled
        assert instance.run_monitoring_max_runtime_seconds == MAX_RUNTIME_SECONDS
        assert instance.telemetry_enabled is False
        assert instance.nux_enabled is False
        assert instance.get_concurrency_config().run_queue_config is not None
        assert type(instance.compute_log_manager).__name__ == "NoOpComputeLogManager"


def test_home_is_private_and_its_configuration_is_left_as_it_is(settings: Settings) -> None:
    with open_instance(settings):
        pass
    home = instance_home(settings)
    assert home.stat().st_mode & 0o077 == 0
    changed = (home / "dagster.yaml").read_text(encoding="utf-8") + "# mine\n"
    (home / "dagster.yaml").write_text(changed, encoding="utf-8")
    with open_instance(settings):
        pass
    assert (home / "dagster.yaml").read_text(encoding="utf-8") == changed


def test_user_interface_finds_a_partition_for_every_version(settings: Settings) -> None:
    assert prepare(settings) == instance_home(settings)
    with open_instance(settings) as instance:
        assert KEY in PROCESSING_VERSIONS.get_partition_keys(dynamic_partitions_store=instance)
        assert register(instance, [KEY]) == []


def test_prepare_prints_the_home(settings: Settings, repository: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pipeline_assets.cli.dagster_instance"],
        cwd=repository,
        env={**os.environ, "TALLYBOOK_STATE": str(settings.state_folder)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() == str(instance_home(settings))


@pytest.mark.parametrize(
    ("file", "content", "expected"),
    [
        pytest.param("dagster.yaml", b"storage: nowhere\n", "is not valid", id="invalid-value"),
        pytest.param("dagster.yaml", b"storage: [\n", "is not valid", id="not-yaml"),
        pytest.param("history/runs.db", b"no database" * 999, "not a database", id="damaged"),
    ],
)
def test_unusable_storage_is_told_in_one_line(
    settings: Settings, file: str, content: bytes, expected: str
) -> None:
    with open_instance(settings):
        pass
    (instance_home(settings) / file).write_bytes(content)
    with pytest.raises(InstanceUnusable, match=expected) as caught, open_instance(settings):
        pytest.fail("it was opened")
    assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_workspace_is_valid_for_dagster_itself(settings: Settings, repository: Path) -> None:
    home = prepare(settings)
    done = subprocess.run(
        [sys.executable, "-m", "dagster", "definitions", "validate", "-w", "workspace.yaml"],
        cwd=repository,
        env={**os.environ, "DAGSTER_HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "Validation successful for code location tallybook" in done.stdout


@pytest.mark.slow
def test_first_use_by_several_processes_at_once(tmp_path: Path, repository: Path) -> None:
    """Without the lock, making the tables of a fresh instance at once lost half of the starts."""
    racers = [
        subprocess.Popen(
            [sys.executable, "-W", "error", "-c", OPEN_AT_ONCE, str(tmp_path / "state"), f"v{n}"],
            cwd=repository,
            env={**os.environ, "PYTHONPATH": str(repository)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for n in range(RACERS)
    ]
    try:
        for racer in racers:
            assert racer.stdout is not None
            assert racer.stdout.readline() == "ready\n"
        for racer in racers:
            assert racer.stdin is not None
            racer.stdin.write("go\n")
            racer.stdin.flush()
        ends = [racer.communicate(timeout=90) for racer in racers]
    finally:
        for racer in racers:
            if racer.poll() is None:
                racer.kill()
                racer.communicate()
    assert [(racer.returncode, err) for racer, (_, err) in zip(racers, ends, strict=True)] == [
        (0, "")
    ] * RACERS
    with open_instance(load_settings(state=tmp_path / "state")) as instance:
        found = instance.get_dynamic_partitions("processing_version")
    assert sorted(found) == [f"v{n}" for n in range(RACERS)]


class Died(BaseException):
    """The process is gone."""


def test_a_first_use_that_died_half_way_leaves_nothing_behind(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dagster never finishes tables that it finds begun: they are made aside, then moved."""
    real = dg.DagsterInstance.from_config

    def dies(home: str) -> dg.DagsterInstance:
        real(home).dispose()
        with closing(sqlite3.connect(Path(home) / "history" / "runs" / "index.db")) as database:
            database.execute("DROP TABLE dynamic_partitions")
        raise Died

    with monkeypatch.context() as patch:
        patch.setattr(dg.DagsterInstance, "from_config", dies)
        with pytest.raises(Died), open_instance(settings):
            pass
    with open_instance(settings) as instance:
        assert register(instance, ["manuals-baseline-2"]) == ["manuals-baseline-2"]
    left = [path.name for path in settings.state_folder.iterdir() if path.name.startswith(".")]
    assert left == [], "what the dead one began is swept away"
