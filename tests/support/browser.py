"""Where a Chromium of this machine is, and a page in it. No browser is ever downloaded."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page

PATH_VARIABLE = "TALLYBOOK_CHROMIUM"
COMMANDS = ("chromium", "chromium-browser", "google-chrome")
# No sandbox: the tests open only their own pages and may run as root, where it cannot start.
# The rest keeps the browser from the network and from what it does for itself in the background.
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def find_chromium() -> Path | None:
    """Return the Chromium to use, or None where there is none.

    Raises:
        FileNotFoundError: the environment names one that cannot be executed.
    """
    named = os.environ.get(PATH_VARIABLE)
    if named:
        if not os.access(named, os.X_OK):
            raise FileNotFoundError(f"{PATH_VARIABLE} names {named}, which cannot be executed")
        return Path(named)
    found = next((path for path in map(shutil.which, COMMANDS) if path), None)
    return Path(found) if found else None


@contextmanager
def open_page(chromium: Path) -> Iterator[Page]:
    """Open a blank page in a fresh headless browser.

    One browser a test: Playwright's synchronous interface keeps an event loop running in the
    thread while it is open, and any other test that starts one there would fail.
    """
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(ARGUMENTS))
        try:
            page = browser.new_page(viewport={"width": 1440, "height": 900})
            page.set_default_timeout(20_000)
            yield page
        finally:
            browser.close()
