"""Asking for a replay in Dagster's user interface, as a person does: pages, clicks, typed words.

Used by the browser test, and by the script that takes the pictures of the documentation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.support.dagster_ui import UserInterface

if TYPE_CHECKING:
    from playwright.sync_api import Page

Look = Callable[[str], None]
"""Called with the name of what is on the screen, at every moment that is worth a picture."""


def configuration(from_key: str, where: str, note: str) -> str:
    """The configuration of a replay, as it is typed."""
    return (
        "ops:\n  manifest:\n    config:\n"
        f"      replay_from: {from_key}\n      where: {where}\n      note: {note}\n"
    )


def open_dialog(page: Page, ui: UserInterface, key: str) -> None:
    """The dialog that materialises the manifest of one version."""
    page.goto(f"{ui.url}/assets/manifest?view=partitions&partition={key}")
    page.get_by_role("button", name="Materialize").first.click()
    page.get_by_text("Launch runs to materialize manifest").wait_for()


def choose_all(page: Page) -> None:
    """Choose every partition in the open dialog."""
    page.get_by_role("button", name="All", exact=True).click()


def type_configuration(page: Page, text: str, look: Look) -> None:
    """Put a configuration into the open dialog, and save it."""
    page.get_by_text("Config", exact=True).click()
    page.get_by_role("button", name="Add config").click()
    editor = page.locator(".CodeMirror").first
    editor.click()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(text)
    page.get_by_text("No errors").wait_for()
    look("config")
    page.get_by_role("button", name="Save config").click()
    page.get_by_text("No errors").wait_for(state="detached")


def launch(page: Page, name: str) -> None:
    """Start what the dialog has chosen; `name` is what its button says."""
    page.get_by_role("button", name=name).click()
