"""The reviewer's terminal: single keys, questions, and a screen.

Belongs here: only that; it is refused where input or output is no terminal.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import typer
from rich.console import Console, RenderableType

from pipeline_assets.account.plain_text import one_line
from pipeline_assets.cli.output import console, say
from pipeline_assets.review.errors import ReviewError

END_OF_INPUT = "\x04"


class NoTerminal(ReviewError):
    """Keys are to be read and there is no keyboard, or nobody would see the screen."""

    def __init__(self) -> None:
        super().__init__(
            "`review next` reads single keys and needs a terminal; found a pipe or a file. Use "
            "`tallybook review list` and `show`, then accept, correct or reject."
        )


@dataclass(frozen=True)
class KeyTerminal:
    """A real terminal."""

    console: Console

    def key(self) -> str:
        """Wait for one key; the end of the input quits."""
        try:
            key = typer.getchar()
        except EOFError:
            return "q"
        return "q" if key == END_OF_INPUT else key.lower()

    def ask(self, question: str, default: str) -> str:
        """A line that the reviewer types; an empty one is the default."""
        # The default may be text of a document: typer would show it as it is.
        shown = f"{question} [{default}]" if default else question
        return str(typer.prompt(one_line(shown), default=default, show_default=False))

    def clear(self) -> None:
        """Begin a new screen."""
        self.console.clear()

    def show(self, drawn: RenderableType) -> None:
        """Add something to the screen."""
        self.console.print(drawn)

    def say(self, line: str) -> None:
        """Add a line of our own to the screen."""
        say("", line)


def open_terminal() -> KeyTerminal:
    """The terminal of this process.

    Raises:
        NoTerminal: input or output is none.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise NoTerminal
    return KeyTerminal(console())
