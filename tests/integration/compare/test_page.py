"""The page of a comparison: text of documents is text, and it fits a phone."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pipeline_assets.compare.compare import compare_versions
from pipeline_assets.compare.html import page_of
from tests.integration.compare.conftest import EVIL
from tests.support.archive_shelf import FIRST, SECOND, Shelf

if TYPE_CHECKING:
    from playwright.sync_api import Page


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        assert not {"src", "href", "onload", "onerror"} & {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_holds_text_and_nothing_else(sqlite_shelf: Shelf) -> None:
    page = "".join(page_of(compare_versions(sqlite_shelf.context, FIRST, SECOND), "today"))
    tags = Tags()
    tags.feed(page)
    assert not tags.seen & {"script", "img", "link", "iframe", "a", "object"}
    assert EVIL in tags.text
    assert "Documents with values of both: 6; of these, 4 (66.7%)" in tags.text
    assert "Only in made-up-1 (1)" in tags.text


@pytest.mark.browser
@pytest.mark.slow
def test_the_page_fits_every_screen(
    sqlite_shelf: Shelf, tmp_path: Path, browser_page: Page
) -> None:
    file = tmp_path / "page.html"
    found = compare_versions(sqlite_shelf.context, FIRST, SECOND)
    file.write_text("".join(page_of(found, "today")), encoding="utf-8")
    shown: list[str] = []
    browser_page.on("dialog", lambda dialog: shown.append(dialog.message))
    browser_page.on("pageerror", lambda error: shown.append(str(error)))
    browser_page.on("console", lambda line: shown.append(line.text))
    for width in (360, 1200):
        browser_page.set_viewport_size({"width": width, "height": 800})
        browser_page.goto(file.as_uri())
        wide = browser_page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width, "only tables scroll sideways, never the page"
    assert shown == []
