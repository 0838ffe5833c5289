"""What a document showed before: pure decisions over the entries of one document.

Belongs here: walking back through a document's entries. Does not belong here: reading them and
showing one again (`archive_visibility.py`).

Putting an entry back undoes what came after it. So an entry that a rollback or removal put back
stands for the one that it repeats: what was visible before it is what was visible before that
one, and two rollbacks in a row never lead to what the first one took away.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a document, as much of it as a decision needs.

    Attributes:
        entry_no: its number.
        archive_version: its place in the document's history, from 1.
        version_no: its processing version.
        record_no: the record that gave the values.
        content_digest: of the values.
        opened_by: the change that made it visible; None before changes were kept.
        closed_by: the change that ended it; None while it is visible, and before changes were kept.
        put_back: a rollback or removal made it visible.
        publishable: its record is still published: not rejected, withdrawn or asked for again by
            an operator; another attempt of a replay takes nothing back.
    """

    entry_no: int
    archive_version: int
    version_no: int
    record_no: int
    content_digest: str
    opened_by: int | None
    closed_by: int | None
    put_back: bool
    publishable: bool

    def repeats(self, earlier: Entry) -> bool:
        """Does it show the same values of the same record?"""
        return (self.record_no, self.content_digest) == (
            earlier.record_no,
            earlier.content_digest,
        )


def before(
    history: Sequence[Entry], position: int, unwanted: Callable[[Entry], bool]
) -> Entry | None:
    """The entry that was visible before the one at `position`, and that is not unwanted.

    Args:
        history: every entry of a document, by archive version.
        position: index of the entry to go back from.
        unwanted: entries that are passed over; those that are not publishable always are.

    Returns:
        The entry, or None where the document was not in the archive before.
    """
    found = _predecessor(history, position)
    while found is not None:
        if history[found].publishable and not unwanted(history[found]):
            return history[found]
        found = _predecessor(history, found)
    return None


def _predecessor(history: Sequence[Entry], position: int) -> int | None:
    """The index of what was visible just before; always smaller, so that walking back ends."""
    origin = position
    while history[origin].put_back:
        earlier = _repeated(history, origin)
        if earlier is None:
            break
        origin = earlier
    if origin == 0 or history[origin - 1].closed_by != history[origin].opened_by:
        # The document had left the archive, or was never in it.
        return None
    return origin - 1


def _repeated(history: Sequence[Entry], position: int) -> int | None:
    return next(
        (
            earlier
            for earlier in range(position - 1, -1, -1)
            if history[position].repeats(history[earlier])
        ),
        None,
    )
