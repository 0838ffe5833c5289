"""`tallybook review next`: one review after the other, worked with single keys.

Belongs here: the loop, its keys and its questions, over a terminal that a test can stand in for.
Does not belong here: drawing (`review_screen.py`) and what a decision does (`review/`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import polars as pl
from rich.console import RenderableType

from pipeline_assets.cli.review_screen import draw_sheet, draw_values
from pipeline_assets.review.corrections import SEPARATOR, Wish, corrected_content
from pipeline_assets.review.decisions import DONE, Decision, asked_of, decide
from pipeline_assets.review.desk import Sheet, lay_out, read_values
from pipeline_assets.review.errors import (
    CorrectionImpossible,
    NotCorrected,
    ReasonMissing,
    ReviewError,
)
from pipeline_assets.review.queue import place_of, take_next
from resources.artifacts import ArtifactMissing
from resources.context import Context
from resources.ledger.review_queue import Place, Wanted

NOTHING = "-"
"""Typed for a field that is to be absent; an empty line keeps what is there."""
KEYS: Mapping[str, str] = {
    "a": "accept",
    "c": "correct",
    "r": "reject",
    "s": "skip",
    "n": "next page",
    "p": "previous page",
    "o": "open page",
    "t": "whole page",
    "q": "quit",
}
HELP = "  ".join(f"{key} {what}" for key, what in KEYS.items())
_USUAL: Mapping[Decision, str] = {
    "accept": "looked at and found right",
    "correct": "corrected from the document",
    "reject": "",
}
"""Reasons that an empty line stands for; whoever rejects has to say why."""


class Terminal(Protocol):
    """Where the reviewer sits."""

    def key(self) -> str:
        """Wait for one key."""
        ...

    def ask(self, question: str, default: str) -> str:
        """A line that the reviewer types; an empty one is the default."""
        ...

    def clear(self) -> None:
        """Begin a new screen."""
        ...

    def show(self, drawn: RenderableType) -> None:
        """Add something to the screen."""
        ...

    def say(self, line: str) -> None:
        """Add a line of our own to the screen."""
        ...


@dataclass
class Session:
    """One reviewer at the terminal.

    Attributes:
        context: the open resources.
        terminal: where they sit.
        reviewer: who they are.
        done: what they did → how often.
    """

    context: Context
    terminal: Terminal
    reviewer: str
    done: Counter[str] = field(default_factory=Counter)

    def work(self, wanted: Wanted) -> None:
        """Show one review after the other until none is left, or the reviewer has enough."""
        after: Place | None = None
        while True:
            number = take_next(self.context, wanted, self.reviewer, after)
            if number is None:
                self.terminal.say("Nothing more waits for you here.")
                return
            after = place_of(self.context, number)
            sheet = self._laid_out(number)
            goes_on = self.terminal.key() != "q" if sheet is None else self._review(sheet)
            if not goes_on:
                return

    def _laid_out(self, number: int) -> Sheet | None:
        """What is on the desk; None where it cannot be shown: those behind it are worked on."""
        try:
            return lay_out(self.context, number, self.reviewer)
        except (ReviewError, ArtifactMissing) as error:
            self.done["not shown"] += 1
            self.terminal.say(f"Review {number} cannot be shown: {error} Any key goes on.")
            return None

    def _review(self, sheet: Sheet) -> bool:
        """Work on one review; False when the reviewer has enough."""
        number, whole = sheet.first_page(), False
        self._draw(sheet, number, whole=whole)
        while True:
            key = self.terminal.key()
            if key == "q":
                return False
            if key == "s":
                self.done["skipped"] += 1
                return True
            if key in ("a", "c", "r"):
                if self._decided(sheet, key):
                    return True
                continue
            if key in ("n", "p", "o"):
                number = self._turned(sheet, number, key)
            elif key == "t":
                whole = not whole
            else:
                continue
            self._draw(sheet, number, whole=whole)

    def _draw(self, sheet: Sheet, number: int, *, whole: bool) -> None:
        self.terminal.clear()
        self.terminal.show(draw_sheet(sheet, number=number, whole=whole))
        self.terminal.say(HELP)

    def _turned(self, sheet: Sheet, number: int, key: str) -> int:
        """The page to show after a key."""
        last = max((page.number for page in sheet.pages), default=1)
        if key == "o":
            typed = self.terminal.ask(f"Page (1 to {last})", str(number)).strip()
            wished = int(typed) if typed.isdecimal() else number
        else:
            wished = number + (1 if key == "n" else -1)
        return min(max(wished, 1), last)

    def _decided(self, sheet: Sheet, key: str) -> bool:
        """Take a decision; False if the reviewer goes on with the same review."""
        try:
            if key == "c":
                return self._correct(sheet)
            self._decide(sheet, "accept" if key == "a" else "reject")
        except (CorrectionImpossible, NotCorrected, ReasonMissing) as error:
            self.terminal.say(str(error))
            self.terminal.say(HELP)
            return False
        except ReviewError as error:
            # Another reviewer, or the pipeline, was quicker: there is nothing left to do here.
            self.terminal.say(f"{error} Any key goes on.")
            self.terminal.key()
        return True

    def _correct(self, sheet: Sheet) -> bool:
        """Ask field by field; the model's values stay in the ledger beside the corrected ones."""
        wishes = []
        for one in sheet.fields:
            present = f"{SEPARATOR} ".join(
                value.value for value in sheet.values if value.field == one.name and value.value
            )
            form = f", several with {SEPARATOR!r} between" if one.many else ""
            typed = self.terminal.ask(
                f"{one.label} (empty keeps it, {NOTHING} for none{form})", present
            )
            if typed.strip() != present.strip():
                wishes.append(Wish(one.name, "" if typed.strip() == NOTHING else typed))
        content = corrected_content(self.context, sheet, wishes)
        self.terminal.show(
            draw_values(read_values(content, sheet.fields, sheet.pages), sheet.doubted)
        )
        self._decide(sheet, "correct", content)
        return True

    def _decide(self, sheet: Sheet, decision: Decision, content: str | None = None) -> None:
        reason = self.terminal.ask("Reason", _USUAL[decision])
        asked = asked_of([(sheet.number, int(sheet.review["revision"]))])
        if content is not None:
            asked = asked.with_columns(content=pl.lit(content))
        decide(self.context, asked, decision, reviewer=self.reviewer, reason=reason)
        self.done[DONE[decision]] += 1
