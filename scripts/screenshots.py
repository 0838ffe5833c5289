"""Takes the pictures of Dagster's user interface that the documentation shows (docs/images/).

Belongs here: a run on the sample data in a temporary state folder, and the pages to look at. Does
not belong here: starting the user interface, which the browser test does in the same way.

Usage: python -m scripts.screenshots; needs a Chromium on this machine. Look at what it made before
it is kept: a page that was not ready looks like one that is empty.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline_assets.cli.dagster_instance import prepare
from pipeline_assets.cli.dagster_run import run_version
from resources.settings import load_settings
from tests.support.browser import find_chromium, open_page
from tests.support.dagster_ui import UserInterface, user_interface
from tests.support.replay_pages import choose_all, configuration, open_dialog, type_configuration
from tests.support.replay_place import FROM, FURTHER, process, write_versions

if TYPE_CHECKING:
    from playwright.sync_api import Page

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
# How the pages are arranged; the user interface keeps it in the browser.
ARRANGEMENT = {
    "dagster-nav-collapsed": True,
    "asset-graph-direction": "vertical",
    "asset-node-facets": ["checks", "status", "kind-tag", "partitions"],
}
FIRST_ASSET, LAST_ASSET = "source_documents", "reconciliation_report"
SETTLE_MS = 2_500
"""After the last thing that was waited for: numbers and colours come a moment later."""


def main() -> int:
    """Take every picture; 1 where there is no Chromium or the run did not succeed."""
    chromium = find_chromium()
    if chromium is None:
        print("There is no Chromium on this machine: install one.", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder:
        settings = load_settings(state=Path(folder) / "state")
        prepare(settings)
        outcome = run_version(settings, settings.version)
        if not outcome.success:
            print(outcome.error_line, file=sys.stderr)
            return 1
        IMAGES.mkdir(parents=True, exist_ok=True)
        with (
            user_interface(settings, Path(folder) / "dagster.log") as ui,
            open_page(chromium) as page,
        ):
            page.set_default_timeout(60_000)
            page.add_init_script(_arranged())
            picture_graph(page, ui)
            picture_asset(page, ui)
            picture_partitions(page, ui, settings.version)
            picture_automation(page, ui)
    with tempfile.TemporaryDirectory() as folder:
        picture_replays(Path(folder), chromium)
    return 0


def picture_replays(folder: Path, chromium: Path) -> None:
    """A replay on one partition, and a backfill over three, with their configuration."""
    settings = load_settings(state=folder / "state", specs=write_versions(folder / "specs"))
    process(settings)
    with (
        user_interface(settings, folder / "dagster.log") as ui,
        open_page(chromium) as page,
    ):
        page.set_default_timeout(60_000)
        page.set_viewport_size({"width": 1280, "height": 900})
        text = configuration(FROM, "identifiers > 1", "series were read as one model")
        open_dialog(page, ui, FURTHER[0])
        type_configuration(page, text, lambda _: _picture(page, "replay-materialize.png"))
        choose_all(page)
        page.wait_for_timeout(SETTLE_MS)
        _picture(page, "replay-backfill.png")


def _picture(page: Page, name: str) -> None:
    page.screenshot(path=IMAGES / name)


def picture_graph(page: Page, ui: UserInterface) -> None:
    """The graph of all assets, without what stands around it."""
    page.set_viewport_size({"width": 1000, "height": 1860})
    page.goto(f"{ui.url}/asset-groups")
    page.get_by_text(re.compile(r"^\d+ partitions?$")).last.wait_for()
    page.wait_for_timeout(SETTLE_MS)
    # The names stand in the list beside the graph too; the graph's come last.
    first = page.get_by_text(FIRST_ASSET, exact=True).last.bounding_box()
    last = page.get_by_text(LAST_ASSET, exact=True).last.bounding_box()
    assert first is not None  # noqa: S101 - it was waited for
    assert last is not None  # noqa: S101 - it was waited for
    page.screenshot(
        path=IMAGES / "asset_graph.png",
        clip={
            "x": first["x"] - 50,
            "y": first["y"] - 30,
            "width": 460,
            "height": last["y"] - first["y"] + 165,
        },
    )


def picture_asset(page: Page, ui: UserInterface) -> None:
    """One asset with its check, its columns and its numbers."""
    page.set_viewport_size({"width": 1280, "height": 1655})
    page.goto(f"{ui.url}/assets/{LAST_ASSET}?view=overview")
    page.get_by_text("oldest open record", exact=False).first.wait_for()
    page.wait_for_timeout(SETTLE_MS)
    page.screenshot(path=IMAGES / "asset.png")


def picture_partitions(page: Page, ui: UserInterface, key: str) -> None:
    """The processing versions of one asset, one of them opened."""
    page.set_viewport_size({"width": 1280, "height": 860})
    page.goto(f"{ui.url}/assets/published_archive?view=partitions&partition={key}")
    page.get_by_text("published in all", exact=False).first.wait_for()
    page.wait_for_timeout(SETTLE_MS)
    page.screenshot(path=IMAGES / "partitions.png")


def picture_automation(page: Page, ui: UserInterface) -> None:
    """The switches, all of them chosen, and the menu that starts them together."""
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(f"{ui.url}/automation")
    page.get_by_text("stuck_work_alerts").first.wait_for()
    page.wait_for_timeout(SETTLE_MS)
    page.locator("label").filter(has=page.locator("input[type=checkbox]")).first.click()
    page.get_by_role("button", name="Actions").first.click()
    page.get_by_text(re.compile(r"^Start \d+ automations$")).wait_for()
    page.wait_for_timeout(SETTLE_MS)
    _picture(page, "automation.png")


def _arranged() -> str:
    return "".join(
        f"localStorage.setItem({json.dumps(name)}, {json.dumps(json.dumps(value))});"
        for name, value in ARRANGEMENT.items()
    )


if __name__ == "__main__":
    raise SystemExit(main())
