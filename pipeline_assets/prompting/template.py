"""The prompt template of a model: its two parts, and filling the second.

Belongs here: reading and checking a template, and putting a document's text into it. Does not
belong here: the text with its page markers (`render.py`), and the templates themselves, which a
workload owns (`workloads/*/prompts/`).

The first part is the same for every record, so that a provider can cache it. Only the second has
placeholders; they are filled in one pass, so what looks like a placeholder in a document stays.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

SEPARATOR = "%%%"
"""The line between the instructions and the user part."""

_REFERENCE, _PAGES = "reference", "pages"
_PLACEHOLDER = re.compile(r"\{([ \t]*[A-Za-z_]\w*[ \t]*)\}")
"""Braces around one name. Any other brace, as in a JSON example, is plain text."""


class InvalidPrompt(ValueError):
    """A prompt template that cannot be used for a model; the message names what to change."""

    def __init__(self, problem: str) -> None:
        super().__init__(
            f"the prompt template {problem}. Expected: instructions without placeholders, a line "
            f"{SEPARATOR}, then the user part with {{pages}} on a line of its own and lines with "
            "{reference} before and after it. A frozen version's prompt never changes: add a "
            "corrected one under a new name."
        )


@dataclass(frozen=True)
class Template:
    """A checked template.

    Attributes:
        instructions: the first part, sent as it is.
        user: the second part, with its placeholders.
    """

    instructions: str
    user: str

    def render(self, reference: str, pages_text: str) -> tuple[str, str]:
        """The instructions and the user part for one document.

        Args:
            reference: what the request calls the document.
            pages_text: its pages with their markers; goes in as it is.
        """
        values = {_REFERENCE: reference, _PAGES: pages_text}
        return self.instructions, _PLACEHOLDER.sub(lambda match: values[match[1]], self.user)


def parse_template(data: bytes) -> Template:
    """The template in a prompt file.

    Line breaks around the two parts are not sent.

    Raises:
        InvalidPrompt: not UTF-8 text with line feeds; no separator, or several; no instructions;
            a placeholder that is missing, unknown, misplaced or in the instructions.
    """
    parts = _lines_of(data).split(f"\n{SEPARATOR}\n")
    if len(parts) != 2:
        found = "no line" if len(parts) == 1 else f"{len(parts) - 1} lines"
        raise InvalidPrompt(f"has {found} {SEPARATOR} between two parts, not one")
    instructions, user = (part.strip("\n") for part in parts)
    _check_instructions(instructions)
    _check_user(user)
    return Template(instructions, user)


def _lines_of(data: bytes) -> str:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidPrompt(f"is not UTF-8 text (byte {error.start})") from error
    if "\r" in text or text.startswith("\ufeff"):
        raise InvalidPrompt("has carriage returns or a byte order mark; save it without")
    # A separator in the first or last line has an empty part beside it.
    return f"\n{text}\n"


def _check_instructions(instructions: str) -> None:
    if not instructions.strip():
        raise InvalidPrompt("has no instructions")
    found = _PLACEHOLDER.search(instructions)
    if found:
        raise InvalidPrompt(f"has the placeholder {found[0]} in its instructions")


def _check_user(user: str) -> None:
    names = _PLACEHOLDER.findall(user)
    unknown = [name for name in names if name not in (_REFERENCE, _PAGES)]
    if unknown:
        raise InvalidPrompt(f"has the unknown placeholder {{{unknown[0]}}}")
    if names.count(_PAGES) != 1:
        raise InvalidPrompt(f"has {{{_PAGES}}} {names.count(_PAGES)} times in its user part")
    lines = user.split("\n")
    if f"{{{_PAGES}}}" not in lines:
        raise InvalidPrompt(f"has {{{_PAGES}}} within a line")
    at = lines.index(f"{{{_PAGES}}}")
    for where, side in (("before", lines[:at]), ("after", lines[at + 1 :])):
        # Without it the document's end would be a line that a document can print.
        if not any(f"{{{_REFERENCE}}}" in line for line in side):
            raise InvalidPrompt(f"has no {{{_REFERENCE}}} {where} {{{_PAGES}}}")
