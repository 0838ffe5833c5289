"""What may be wrong with a filter or a list of documents, one class a situation.

Belongs here: the errors alone, so that telling them costs no import of the parser. Does not
belong here: finding them (`parse.py`, `bind.py`, `select.py`).

Messages quote the filter, which an operator typed, and never a document.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

_NAMED = 3


class SelectionError(ValueError):
    """A selection that cannot be made; nothing was read or written for it."""


class WhereUnreadable(SelectionError):
    """A filter that is not of the grammar."""

    def __init__(self, place: str, found: str, expected: str) -> None:
        super().__init__(
            f"the filter cannot be read at {place}: found {found}, expected {expected}. "
            "docs/selection.md has the grammar with examples."
        )


class WhereTooLong(SelectionError):
    """A filter of more characters than are read."""

    def __init__(self, length: int, most: int) -> None:
        super().__init__(
            f"the filter has {length} characters, at most {most} are read. Give a long list of "
            "documents as a file instead (--documents FILE)."
        )


class WhereTooDeep(SelectionError):
    """A filter with more parentheses and `not` inside each other than are read."""

    def __init__(self, place: str, most: int) -> None:
        super().__init__(
            f"the filter is nested more than {most} deep at {place}; `and`, `or` and `not` need "
            "few parentheses. Take the superfluous ones away."
        )


class UnknownFact(SelectionError):
    """A filter names a fact that there is not."""

    def __init__(self, name: str, place: str, known: Iterable[str]) -> None:
        names = sorted(known)
        close = get_close_matches(name, names, n=_NAMED, cutoff=0.5)
        hint = f"is one of these meant: {', '.join(close)}?" if close else ""
        listed = "" if close else f"known are {', '.join(names)}."
        super().__init__(
            f"there is no fact {name!r} (at {place}); {hint}{listed} docs/selection.md tells what "
            "each means; a field of the workload is always `field.NAME`."
        )


class AmbiguousFact(SelectionError):
    """A short name that several fields of the workload have."""

    def __init__(self, name: str, place: str, fields: Sequence[str]) -> None:
        super().__init__(
            f"{name!r} (at {place}) may be any of the fields {', '.join(fields)}: write "
            f"`field.{fields[0]}` or another of them."
        )


class FactMisused(SelectionError):
    """A fact is compared in a way, or with a value, that it cannot be compared with."""

    def __init__(self, name: str, place: str, found: str, expected: str) -> None:
        super().__init__(f"`{name}` at {place}: found {found}, expected {expected}.")


class UnknownListedDocuments(SelectionError):
    """A list of documents has ids that no document has."""

    def __init__(self, unknown: Sequence[str]) -> None:
        shown = ", ".join(repr(name) for name in unknown[:_NAMED])
        more = ", ..." if len(unknown) > _NAMED else ""
        super().__init__(
            f"{len(unknown)} of the listed documents are unknown ({shown}{more}): expected whole "
            "document ids as `tallybook outcomes` prints them, one a line. Nothing was selected: "
            "correct the list."
        )
