"""Dagster's own storage in PostgreSQL: the shipped configuration, started and used."""

from __future__ import annotations

import shutil
from pathlib import Path

import dagster as dg
import pytest
from sqlalchemy import create_engine, make_url, text

from pipeline_assets.cli.dagster_instance import InstanceUnusable, instance_home, prepare_home
from pipeline_assets.cli.dagster_run import open_instance, run_version
from resources.settings import Settings
from tests.support.small_shop import KEY

pytestmark = pytest.mark.postgres


@pytest.fixture
def on_postgres(
    after_a_run: Settings, postgres_url: str, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> Settings:
    """Return settings whose Dagster instance is on a fresh PostgreSQL database."""
    url = make_url(postgres_url)
    for name, value in {
        "HOST": url.host,
        "PORT": url.port,
        "DB": url.database,
        "USER": url.username,
        "PASSWORD": url.password,
    }.items():
        monkeypatch.setenv(f"DAGSTER_POSTGRES_{name}", str(value))
    home = prepare_home(after_a_run)
    shutil.copyfile(repository / "deploy/postgres/dagster.yaml", home / "dagster.yaml")
    return after_a_run


def test_runs_and_events_are_in_postgres(on_postgres: Settings, postgres_url: str) -> None:
    outcome = run_version(on_postgres, KEY, source_moved=True)
    assert outcome.success, outcome.error_line
    with open_instance(on_postgres) as instance:
        assert type(instance.run_storage).__module__.startswith("dagster_postgres")
        done = instance.get_materialized_partitions(dg.AssetKey("reconciliation_report"))
        assert done == {KEY}
    assert not (instance_home(on_postgres) / "history").exists()
    engine = create_engine(postgres_url)
    with engine.connect() as connection:
        found = connection.execute(text("SELECT status FROM runs")).scalars().all()
        events = connection.execute(text("SELECT COUNT(*) FROM event_logs")).scalar_one()
    engine.dispose()
    assert found == ["SUCCESS"]
    assert events > 50


@pytest.mark.slow
def test_database_that_is_down_is_told_in_one_line_without_the_password(
    on_postgres: Settings, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DAGSTER_POSTGRES_PORT", "1")
    monkeypatch.setenv("DAGSTER_POSTGRES_PASSWORD", "open-sesame")
    with pytest.raises(InstanceUnusable) as caught, open_instance(on_postgres):
        pytest.fail("it was opened")
    assert "open-sesame" not in str(caught.value)
    assert "refused" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert capfd.readouterr() == ("", "")
