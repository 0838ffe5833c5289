"""What the documentation tells people to type, read out of its pages.

Belongs here: pages, their console blocks as commands, commands named in running text, links. Does
not belong here: running anything (`walk.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

CONSOLE = "console"
PROMPT, CONTINUED = "$ ", "> "
PROGRAMS = ("tallybook", ".venv/bin/tallybook", "make")
_COMMENT = re.compile(r"\s{2,}#\s.*$")


@dataclass(frozen=True)
class Command:
    """One command of a console block.

    Attributes:
        page: the file's name.
        line: where it stands, from 1.
        text: as a shell takes it; continued lines are joined, a trailing comment is cut.
    """

    page: str
    line: int
    text: str


def pages(repository: Path) -> list[Path]:
    """The README and every page of docs/, decision records too."""
    return [repository / "README.md", *sorted((repository / "docs").rglob("*.md"))]


def commands(page: Path) -> list[Command]:
    """The commands of a page's console blocks, in order."""
    found: list[Command] = []
    for token in _tokens(page):
        if token.type == "fence" and token.info.strip() == CONSOLE and token.map:
            found += _commands_of(page.name, token.map[0] + 2, token.content)
    return found


def loose_commands(page: Path) -> list[tuple[int, str]]:
    """Lines that look like commands in blocks that are no console blocks: nobody would run them."""
    return [
        (token.map[0] + 1, line.strip())
        for token in _tokens(page)
        if token.type in ("fence", "code_block") and token.info.strip() != CONSOLE and token.map
        for line in token.content.splitlines()
        if line.strip().removeprefix(PROMPT).startswith(tuple(f"{name} " for name in PROGRAMS))
    ]


def inline_commands(page: Path) -> list[tuple[int, str]]:
    """Commands that running text names: `tallybook batch list`."""
    found = []
    for token in _tokens(page):
        for child in token.children or ():
            if child.type == "code_inline" and child.content.startswith("tallybook "):
                found.append((token.map[0] + 1 if token.map else 0, child.content))
    return found


def links(page: Path) -> list[tuple[int, str]]:
    """Targets of a page's links and pictures, with the line of their paragraph."""
    found = []
    for token in _tokens(page):
        for child in token.children or ():
            target = child.attrGet("href") or child.attrGet("src")
            if isinstance(target, str):
                found.append((token.map[0] + 1 if token.map else 0, target))
    return found


def anchors(page: Path) -> set[str]:
    """The names that a link may end in: its headings, as a forge makes them."""
    tokens = _tokens(page)
    found: set[str] = set()
    for opening, inline in pairwise(tokens):
        if opening.type == "heading_open":
            words = "".join(child.content for child in inline.children or ())
            name = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
            found.add(name if name not in found else f"{name}-1")
    return found


def _tokens(page: Path) -> list[Token]:
    return MarkdownIt("commonmark").enable("table").parse(page.read_text(encoding="utf-8"))


def _commands_of(page: str, first_line: int, content: str) -> Iterator[Command]:
    started: int | None = None
    text = ""
    for number, line in enumerate(content.splitlines(), start=first_line):
        if started is None and not line.startswith(PROMPT):
            continue  # what a command prints
        piece = line.removeprefix(PROMPT) if started is None else line.removeprefix(CONTINUED)
        started = number if started is None else started
        text += _COMMENT.sub("", piece)
        if text.endswith("\\"):
            text = text[:-1]
            continue
        yield Command(page, started, " ".join(text.split("\n")).strip())
        started, text = None, ""
    if started is not None:
        raise AssertionError(f"{page}:{started}: the command goes on beyond its block")
