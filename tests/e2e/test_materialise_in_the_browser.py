"""Pressing "Materialize" in Dagster's user interface does the work."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import text

from pipeline_assets.cli.dagster_run import leftover_runs, open_instance
from resources.context import open_context
from resources.context_resource import HOST_TAG, PID_TAG
from resources.settings import Settings
from tests.support.dagster_ui import UserInterface, user_interface
from tests.support.small_shop import KEY, make_documents, settings_for

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.slow, pytest.mark.browser]

RUN_LIMIT_S = 90.0
PAGE_LIMIT_MS = 60_000
RUNS = """{ runsOrError { ... on Runs { results {
    status runId tags { key value } assetSelection { path }
    assetCheckSelection { name }
} } } }"""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    make_documents(tmp_path / "documents")
    return settings_for(tmp_path)


@pytest.fixture
def ui(settings: Settings, tmp_path: Path) -> Iterator[UserInterface]:
    # Opened once, so that the home is there; the partition is left for the browser to add.
    with open_instance(settings):
        pass
    with user_interface(settings, tmp_path / "dagster.log") as ui:
        yield ui


def finished_run(ui: UserInterface) -> dict[str, Any]:
    """Wait for the one run to end."""
    deadline = time.monotonic() + RUN_LIMIT_S
    runs: list[dict[str, Any]] = []
    while time.monotonic() < deadline:
        runs = ui.query(RUNS)["runsOrError"]["results"]
        if runs and all(run["status"] in ("SUCCESS", "FAILURE", "CANCELED") for run in runs):
            break
        time.sleep(1)
    (run,) = runs
    return run


def add_partition(page: Page, ui: UserInterface) -> None:
    page.goto(f"{ui.url}/asset-groups")
    page.get_by_role("button", name="Materialize all").click()
    page.get_by_role("button", name="Add a partition").click()
    page.get_by_placeholder("name").fill(KEY)
    page.get_by_role("button", name="Save").click()
    page.get_by_placeholder("name").wait_for(state="detached")


def materialise_all(page: Page, ui: UserInterface) -> None:
    # A fresh page: whether a partition is selected once it was added depends on which of the
    # page's own queries comes back first.
    page.goto(f"{ui.url}/asset-groups")
    page.get_by_role("button", name="Materialize all").click()
    page.get_by_role("button", name="All", exact=True).click()
    page.get_by_role("button", name="Launch 1 run").click()


def test_materialize_publishes(ui: UserInterface, settings: Settings, browser_page: Page) -> None:
    page = browser_page
    page.set_default_timeout(PAGE_LIMIT_MS)
    add_partition(page, ui)
    materialise_all(page, ui)

    run = finished_run(ui)
    assert run["status"] == "SUCCESS"
    assert len(run["assetSelection"]) == 9
    tags = {tag["key"]: tag["value"] for tag in run["tags"]}
    assert tags["dagster/partition"] == KEY
    assert {HOST_TAG, PID_TAG} <= set(tags)
    assert leftover_runs(settings) == []

    with open_context(settings) as context, context.ledger.read() as connection:
        states = connection.execute(text("SELECT state, COUNT(*) FROM record_state GROUP BY 1"))
        assert {str(state): int(count) for state, count in states} == {
            "awaiting_review": 1,
            "published": 1,
        }

    page.goto(f"{ui.url}/assets/reconciliation_report?view=overview")
    page.get_by_text("every document", exact=False).first.wait_for()
    page.get_by_text("Latest check results").wait_for()
    page.goto(f"{ui.url}/assets/published_archive?view=partitions&partition={KEY}")
    page.get_by_text("Materialized (1)").wait_for()
