"""The page of a pilot's report in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pipeline_assets.pilot.page import page_of
from tests.integration.pilot.support import PilotPlace

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.slow

SERIOUS = ("serious", "critical")


@pytest.mark.browser
def test_it_is_readable_on_a_phone_and_accessible(
    place: PilotPlace, tmp_path: Path, browser_page: Page
) -> None:
    from axe_playwright_python.sync_playwright import Axe

    outcome = place.go_on(place.plan("manuals-baseline-1", "manuals-baseline-2"))
    file = tmp_path / "page.html"
    file.write_text(page_of(place.report(outcome), "today"), encoding="utf-8")
    asked: list[str] = []
    browser_page.on("request", lambda request: asked.append(request.url))
    browser_page.set_viewport_size({"width": 390, "height": 844})
    browser_page.goto(file.as_uri())
    assert browser_page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    found = Axe().run(browser_page).response["violations"]
    assert [one["id"] for one in found if one["impact"] in SERIOUS] == []
    assert asked == [file.as_uri()], "nothing else is loaded"
