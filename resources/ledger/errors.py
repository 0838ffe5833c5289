"""What can go wrong with the ledger, one class per situation.

Belongs here: exceptions whose message says what was found, what was expected and the remedy.
Does not belong here: illegal transitions (`transitions.py`) and refused moves (`moves.py`).
"""

from __future__ import annotations


class LedgerError(Exception):
    """Something about the ledger that the caller is told in one line."""


class LedgerUnreachable(LedgerError):
    """The database does not answer; nothing is known about its content."""

    def __init__(self, place: str, cause: str) -> None:
        super().__init__(
            f"the ledger at {place} cannot be reached ({cause}). Nothing was lost: start the "
            "database, or correct TALLYBOOK_LEDGER_URL, and run the same command again."
        )


class UnreadableLedgerUrl(LedgerError):
    """The ledger URL cannot be read as one; it is not repeated, since it may hold a password."""

    def __init__(self, cause: str) -> None:
        super().__init__(
            f"the ledger URL cannot be used ({cause}); expected a form like "
            "sqlite:////folder/ledger.sqlite3 or postgresql://user:password@host/database. "
            "Correct TALLYBOOK_LEDGER_URL."
        )


class LedgerBusy(LedgerError):
    """Another transaction stood in the way for too long, or in a circle."""

    def __init__(self, place: str, cause: str) -> None:
        super().__init__(
            f"another transaction stood in the way at {place} ({cause}). Nothing of this one was "
            "committed: run the same command again."
        )


class LedgerNotWritable(LedgerError):
    """The database can be read but not written, or the transaction was opened only to read."""

    def __init__(self, place: str, cause: str) -> None:
        super().__init__(
            f"the ledger at {place} cannot be written here ({cause}). Give this user the right to "
            "write to the database, its file and the file's folder."
        )


class LedgerDamaged(LedgerError):
    """The database itself reports that its content is damaged."""

    def __init__(self, place: str, cause: str) -> None:
        super().__init__(
            f"the ledger at {place} is damaged ({cause}). Keep a copy of it as it is, then restore "
            "the newest backup."
        )


class LedgerFromNewerVersion(LedgerError):
    """The schema was written by a newer release."""

    def __init__(self, place: str, found: str, expected: str) -> None:
        super().__init__(
            f"the ledger at {place} has schema {found}, which this release (schema {expected}) "
            "does not know. Install the release that wrote it, or a newer one."
        )


class LedgerOutdated(LedgerError):
    """The schema was written by an earlier release, and nobody asked for an upgrade."""

    def __init__(self, place: str, found: str, wanted: str) -> None:
        super().__init__(
            f"the ledger at {place} has schema {found}, and this release works with {wanted}. Stop "
            "what works on it, make a backup with the release that it is of (`tallybook backup`, "
            "or the database's own), and upgrade it with `tallybook migrate`."
        )


class LedgerIncomplete(LedgerError):
    """A restore into the database was interrupted: something of the ledger may be missing."""

    def __init__(self, place: str, backup: str) -> None:
        super().__init__(
            f"the restore of {backup} into {place} was not finished, so nothing may work on it. "
            "Delete the state folder (and empty the database, where it is another), then restore "
            "again."
        )


class LedgerOfOtherProfile(LedgerError):
    """A `dev` profile was pointed at a ledger that `prod` made."""

    def __init__(self, place: str, found: str, expected: str) -> None:
        super().__init__(
            f"the ledger at {place} was made under profile {found!r} and is opened under "
            f"{expected!r}. Set TALLYBOOK_PROFILE={found}, or give another state folder."
        )


class NotALedger(LedgerError):
    """The database holds tables, but not those of a ledger."""

    def __init__(self, place: str, cause: str) -> None:
        super().__init__(
            f"the database at {place} is not a Tallybook ledger ({cause}). Point the state folder "
            "or TALLYBOOK_LEDGER_URL at an empty database or at a ledger."
        )


class StorageFull(LedgerError):
    """The disk under the ledger or its artifacts has no room left."""

    def __init__(self, place: str) -> None:
        super().__init__(
            f"no space is left for {place}. What was committed is intact: free some space and run "
            "the same command again."
        )


class UnsupportedDatabase(LedgerError):
    """The ledger URL names a database that there is no dialect for."""

    def __init__(self, backend: str) -> None:
        super().__init__(f"the ledger cannot live in {backend!r}; give a sqlite or postgresql URL.")
