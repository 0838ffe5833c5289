"""A replay is asked for in Dagster's user interface: on one partition, and as a backfill."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pipeline_assets.account.reasons import account_by_reason
from resources.context import open_context
from resources.ledger.replays import Replay, list_replays
from resources.settings import Settings, load_settings
from tests.support.dagster_ui import UserInterface, user_interface
from tests.support.replay_pages import (
    choose_all,
    configuration,
    launch,
    open_dialog,
    type_configuration,
)
from tests.support.replay_place import FROM, FURTHER, process, write_versions
from tests.support.small_shop import make_documents

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.slow, pytest.mark.browser]

RUN_LIMIT_S = 120.0
PAGE_LIMIT_MS = 60_000
STATUSES = "{ runsOrError { ... on Runs { results { status } } } }"
PUBLISHED = "state = published"
EVERYTHING = "pages >= 1"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    make_documents(tmp_path / "documents")
    settings = load_settings(
        state=tmp_path / "state",
        source=tmp_path / "documents",
        source_name="shop",
        specs=write_versions(tmp_path / "specs"),
        parser_workers=1,
    )
    process(settings)
    return settings


@pytest.fixture
def ui(settings: Settings, tmp_path: Path) -> Iterator[UserInterface]:
    with user_interface(settings, tmp_path / "dagster.log") as ui:
        yield ui


def wait_for_runs(ui: UserInterface, count: int) -> None:
    """Wait until so many runs are there, and all of them have succeeded."""
    deadline = time.monotonic() + RUN_LIMIT_S
    statuses: list[str] = []
    while time.monotonic() < deadline:
        found = ui.query(STATUSES)["runsOrError"]["results"]
        statuses = [run["status"] for run in found]
        if len(statuses) == count and set(statuses) <= {"SUCCESS", "FAILURE", "CANCELED"}:
            break
        time.sleep(1)
    assert statuses == ["SUCCESS"] * count


def replays(settings: Settings) -> dict[str, list[Replay]]:
    """The replays into each version."""
    with open_context(settings) as context:
        found = list_replays(context.ledger)
    return {key: [each for each in found if each.to_version == key] for key in (FROM, *FURTHER)}


def test_a_replay_of_one_version_and_a_backfill_over_three(
    ui: UserInterface, settings: Settings, browser_page: Page
) -> None:
    page = browser_page
    page.set_default_timeout(PAGE_LIMIT_MS)
    first, second = FURTHER

    open_dialog(page, ui, first)
    type_configuration(page, configuration(FROM, PUBLISHED, "a look at one"), lambda _: None)
    launch(page, "Launch 1 run")
    wait_for_runs(ui, 4)
    (made,) = replays(settings)[first]
    assert (made.from_version, made.selected, made.note) == (FROM, 1, "a look at one")
    assert (made.reason, made.expression) == ("new_model", PUBLISHED)
    assert replays(settings)[second] == []

    open_dialog(page, ui, first)
    type_configuration(page, configuration(FROM, EVERYTHING, "all of it"), lambda _: None)
    choose_all(page)
    launch(page, "Launch backfill")
    wait_for_runs(ui, 7)
    found = replays(settings)
    # The version's own records get another attempt; the others only what they do not have yet.
    assert [each.selected for each in found[FROM]] == [2]
    assert [each.selected for each in found[first]] == [1, 1]
    assert [each.selected for each in found[second]] == [2]
    with open_context(settings) as context:
        accounts = {key: account_by_reason(context, key) for key in found}
    assert all(account.adds_up for account in accounts.values())
    assert {key: (each.records, each.attempts) for key, each in accounts.items()} == {
        FROM: (2, 4),
        first: (2, 2),
        second: (2, 2),
    }
