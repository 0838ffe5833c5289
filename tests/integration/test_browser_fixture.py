"""The browser fixture opens a page, and finding a browser is never a guess."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import browser
from tests.support.browser import find_chromium

if TYPE_CHECKING:
    from playwright.sync_api import Page


@pytest.mark.browser
def test_page_runs_scripts(browser_page: Page) -> None:
    browser_page.set_content("<p id=x>no</p><script>x.textContent = 6 * 7</script>")
    assert browser_page.text_content("#x") == "42"


@pytest.mark.browser
def test_browser_leaves_no_event_loop_behind(chromium: Path) -> None:
    with browser.open_page(chromium):
        pass
    assert asyncio.run(asyncio.sleep(0, "ran")) == "ran"


def test_named_browser_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named = tmp_path / "browser"
    named.touch(0o755)
    monkeypatch.setenv(browser.PATH_VARIABLE, str(named))
    assert find_chromium() == named


def test_named_browser_that_is_not_there_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(browser.PATH_VARIABLE, str(tmp_path / "none"))
    with pytest.raises(FileNotFoundError, match="cannot be executed"):
        find_chromium()


def test_no_browser_is_told_as_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(browser.PATH_VARIABLE, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_chromium() is None
