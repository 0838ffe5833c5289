"""What can go wrong at an approval, one class per situation.

Belongs here: exceptions whose message says what was found, what was expected and the remedy.
"""

from __future__ import annotations

from collections.abc import Sequence

_NAMED = 3
"""A message names so many of a longer list."""
_UNCHANGED = "Nothing was changed."


class ApprovalError(Exception):
    """Something about approvals that whoever decides is told in one line; nothing was changed."""


class NothingWaits(ApprovalError):
    """A source of which no document waits."""

    def __init__(self, source: str) -> None:
        super().__init__(
            f"no document of source {source!r} waits for approval. {_UNCHANGED} "
            "`tallybook sources waiting` shows what waits."
        )


class ApprovalNotAsked(ApprovalError):
    """Documents of a source that does not demand approval."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(
            f"nobody has to approve {_listed(names)}: documents of a source are decided on only "
            f"where it is declared with `approval: true`. {_UNCHANGED}"
        )


class NotHeld(ApprovalError):
    """Documents that no source holds now."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(
            f"no source holds {_listed(names)} now, so there are no bytes to decide on. "
            f"{_UNCHANGED} Scan first (tallybook sources scan), or correct the names."
        )


class NotReadable(ApprovalError):
    """Documents that are excluded for another reason and can never be processed."""

    def __init__(self, names: Sequence[str], reason: str) -> None:
        super().__init__(
            f"{_listed(names)} cannot be decided on: excluded as {reason}, whatever is decided. "
            f"{_UNCHANGED} Leave them out."
        )


class OutOfDate(ApprovalError):
    """Decisions on bytes that are not the present ones."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(
            f"the decision is out of date: {_listed(names)} changed, or went, since it was looked "
            f"at. {_UNCHANGED} Look at what is there now: tallybook sources waiting"
        )


class SelectionChanged(ApprovalError):
    """Another set of documents than the one that was shown."""

    def __init__(self, confirmed: str, found: str, documents: int) -> None:
        super().__init__(
            f"selection {confirmed} was confirmed, and the same command selects {documents} "
            f"documents as {found} now. {_UNCHANGED} Run it without --confirm to look at them."
        )


class SelectionUnclear(ApprovalError):
    """It is not said, or said twice, which documents are meant."""

    def __init__(self, found: str) -> None:
        super().__init__(
            f"found {found}; expected one of: document ids, --documents FILE, or --source NAME "
            f"with --all. {_UNCHANGED}"
        )


class ListUnreadable(ApprovalError):
    """A file of document ids that cannot be used."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(
            f"the list {name} {problem}; expected UTF-8 text with one document id a line. "
            f"{_UNCHANGED}"
        )


class Unsaid(ApprovalError):
    """Nobody decides, or for no reason."""

    def __init__(self, what: str, option: str) -> None:
        super().__init__(f"{what} is empty; say it with {option}: it is kept. {_UNCHANGED}")


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")
