"""Takes the pictures of pages that the documentation shows (docs/images/).

Belongs here: runs in a temporary state folder, and the pages to look at: those of Dagster's user
interface, and the reconciliation report. Does not belong here: starting the user interface and the
run in which much goes wrong, which tests do in the same way.

Usage: python -m scripts.screenshots [dagster] [replays] [report]; needs a Chromium on this machine.
Look at what it made before it is kept: a page that was not ready looks like one that is empty.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from unittest.mock import patch

from PIL import Image
from sqlalchemy import select

from pipeline_assets.account.reconciliation.kept import keep_report, made_report
from pipeline_assets.account.reconciliation.outcomes import OUTCOMES
from pipeline_assets.account.reconciliation.page import page_of
from pipeline_assets.cli.dagster_instance import prepare
from pipeline_assets.cli.dagster_run import run_version
from pipeline_assets.publish.publish_accepted import publish_accepted
from pipeline_assets.review.decisions import asked_of, decide
from pipeline_assets.versions import open_version
from resources.context import Context
from resources.contracts import read_shards
from resources.ledger.schema import reviews
from resources.settings import load_settings
from tests.support.browser import find_chromium, open_page
from tests.support.dagster_ui import UserInterface, user_interface
from tests.support.emulator import running_emulator
from tests.support.messy_run import KEY, messy_run
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
REPORT_PICTURES: tuple[tuple[str, int, Literal["light", "dark"], str, str], ...] = (
    ("report.png", 1000, "light", "h1", "#outcomes"),
    ("report-quality.png", 1000, "dark", "#batches", "#cost"),
    ("report-phone.png", 390, "light", "h1", "#outcomes"),
)
"""File, width, colours, and the elements that a picture of the report begins and ends above."""
FIRST_ASSET, LAST_ASSET = "source_documents", "reconciliation_report"
COLOURS = 64
SETTLE_MS = 2_500
"""After the last thing that was waited for: numbers and colours come a moment later."""


def main(wanted: Sequence[str]) -> int:
    """Take the pictures of these names, or every one; 1 where that cannot be."""
    chromium = find_chromium()
    if chromium is None:
        print("There is no Chromium on this machine: install one.", file=sys.stderr)
        return 1
    unknown = set(wanted) - set(PICTURES)
    if unknown:
        print(f"There is no picture {sorted(unknown)}: {', '.join(PICTURES)}.", file=sys.stderr)
        return 1
    IMAGES.mkdir(parents=True, exist_ok=True)
    for name in wanted or PICTURES:
        with tempfile.TemporaryDirectory() as folder:
            PICTURES[name](Path(folder), chromium)
    return 0


def picture_dagster(folder: Path, chromium: Path) -> None:
    """The graph, an asset, its partitions and the switches, after a run on the sample data."""
    settings = load_settings(state=folder / "state")
    prepare(settings)
    outcome = run_version(settings, settings.version)
    if not outcome.success:
        raise SystemExit(outcome.error_line)
    with (
        user_interface(settings, folder / "dagster.log") as ui,
        open_page(chromium) as page,
    ):
        page.set_default_timeout(60_000)
        page.add_init_script(_arranged())
        picture_graph(page, ui)
        picture_asset(page, ui)
        picture_partitions(page, ui, settings.version)
        picture_automation(page, ui)


def picture_report(folder: Path, chromium: Path) -> None:
    """The report of a run in which much went wrong: on a desk, on a phone, and in the dark."""
    file = folder / "report.html"
    with (
        running_emulator() as emulator,
        patch.dict(os.environ, emulator.environment()),
        messy_run(emulator, folder / "run") as run,
    ):
        keep_report(run.context, KEY)
        _go_on(run.context)
        with made_report(run.context, KEY) as made:
            shards = read_shards(OUTCOMES, made.outcomes)
            file.write_text("".join(page_of(made.report, shards, made.digest)), encoding="utf-8")
    with open_page(chromium) as page:
        page.goto(file.as_uri())
        for name, width, scheme, first, last in REPORT_PICTURES:
            page.emulate_media(color_scheme=scheme)
            page.set_viewport_size({"width": width, "height": 900})
            top, end = _above(page, first), _above(page, last)
            page.screenshot(
                path=IMAGES / name,
                full_page=True,
                clip={"x": 0, "y": top, "width": width, "height": end - top},
            )
            _make_small(IMAGES / name)


def _go_on(context: Context) -> None:
    """One more answer is accepted and published, so that there is a difference to be told."""
    version = open_version(context, KEY)
    of_findings = select(reviews.c.review_no).where(
        reviews.c.version_no == version.version_no,
        reviews.c.kind == "findings",
        reviews.c.decision.is_(None),
    )
    with context.ledger.read() as connection:
        review = int(connection.execute(of_findings).scalars().all()[0])
    decide(context, asked_of([(review, 0)]), "accept", reviewer="grace", reason="it is so")
    publish_accepted(context, version)


def _above(page: Page, selector: str) -> float:
    """A little above an element, from the top of the page."""
    place = page.locator(selector).bounding_box()
    assert place is not None  # noqa: S101 - every report has it
    return max(0.0, place["y"] + page.evaluate("scrollY") - 16)


def _make_small(file: Path) -> None:
    """As few colours as do: pages of text have not many."""
    with Image.open(file) as picture:
        small = picture.convert("RGB").quantize(COLOURS)
    small.save(file, optimize=True)


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


PICTURES: dict[str, Callable[[Path, Path], None]] = {
    "dagster": picture_dagster,
    "replays": picture_replays,
    "report": picture_report,
}


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
