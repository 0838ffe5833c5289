"""What every source offers: its documents one by one, and the bytes of each.

Here: the port, its row type, the account of a walk, and one exception for each situation. Not here:
any file system, bucket or table; checksums (`checksums`); what changed between walks (`changes`).
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import BinaryIO, Protocol, TypeVar

from resources.sources.reasons import check_reason


class SourceError(Exception):
    """Base of everything that a source raises; never raised itself."""


class SourceMissing(SourceError):
    """The place that the settings name does not exist or is not a folder."""


class SourceUnreadable(SourceError):
    """The place exists, but its list of documents cannot be read."""


class SourceEmpty(SourceError):
    """The place holds nothing at all, which looks like a disk that is not mounted."""


class SourceRepeats(SourceError):
    """A source's list names a document twice, so its documents cannot be told apart."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"source {name}: its list names a document more than once; expected each once. Nothing "
            "was stored: give every document a name, or every row a key, of its own, and scan "
            "again when nothing else writes to the source"
        )


class SourceChangedWhileReading(SourceError):
    """A document's bytes changed while they were being read, so no checksum describes them."""


class WalkUnfinished(SourceError):
    """The account of a walk was asked for before its last entry was taken."""


class EntryRefused(SourceError):
    """One document cannot be opened; `reason` and `detail` say why, for its outcome row.

    Attributes:
        document_id: the document.
        reason: a key of `EXCLUSION_REASONS`.
        detail: a short, closed wording without file contents.
    """

    def __init__(self, document_id: str, reason: str, detail: str) -> None:
        self.document_id = document_id
        self.reason = check_reason(reason)
        self.detail = detail
        super().__init__(
            f"document {document_id} cannot be opened ({reason}): {detail}; expected a readable "
            "regular file inside the source; correct the file and scan the source again"
        )


@dataclass(frozen=True, slots=True)
class SourceEntry:
    """One name that a walk found: a document, or something that is excluded from the start.

    Attributes:
        document_id: unique within a walk; see `document_id` for the three forms.
        relative_path: raw bytes below the root, "/" between folders.
        name: last part of the path for showing and for its extension; not for opening.
        size: bytes; 0 where it could not be told.
        mtime_ns: last change of the content, nanoseconds since 1970 by the file system's clock.
        inode: (device, inode), (0, 0) where there is none.
        excluded: a key of `EXCLUSION_REASONS`, or None for a document to read.
        detail: more about the exclusion in a short, closed wording.
    """

    document_id: str
    relative_path: bytes
    name: str
    size: int
    mtime_ns: int
    inode: tuple[int, int]
    excluded: str | None = None
    detail: str = ""

    def __post_init__(self) -> None:
        """Refuse a reason outside the closed list."""
        if self.excluded is not None:
            check_reason(self.excluded)


@dataclass(frozen=True, slots=True)
class WalkReport:
    """The account of one finished walk.

    Attributes:
        entries: how many entries the walk gave.
        unlisted: relative paths of folders whose contents were not seen. A document below one of
            them is unknown, not removed.
        partial: the walk gave some documents only, as the source meant it to: those that it did
            not give stay as they are, but for the `gone`.
        gone: ids of documents that are known to be no longer there; of a partial walk.
    """

    entries: int
    unlisted: tuple[bytes, ...] = ()
    partial: bool = False
    gone: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """True if every folder of the source was listed."""
        return not self.unlisted


Item = TypeVar("Item")


class Pass(Iterator[Item]):
    """One pass over a source: take what it gives, then ask for the report.

    Args:
        items: a generator that returns the report.
    """

    def __init__(self, items: Generator[Item, None, WalkReport]) -> None:
        self._items = items
        self._report: WalkReport | None = None

    def __next__(self) -> Item:
        """The next one."""
        try:
            return next(self._items)
        except StopIteration as end:
            # A generator that is asked again after its end returns None: keep the first answer.
            if end.value is not None:
                self._report = end.value
            raise

    def report(self) -> WalkReport:
        """The account of the pass.

        Raises:
            WalkUnfinished: something is left, or the pass ended in an error.
        """
        if self._report is None:
            raise WalkUnfinished(
                "the walk has not reached its end, so what it did not see is not known: take all "
                "that it gives before asking for the report"
            )
        return self._report


class Walk(Pass[SourceEntry]):
    """A pass that gives documents one by one."""


class Source(Protocol):
    """A place that documents come from."""

    @property
    def name(self) -> str:
        """The source's name in document ids."""
        ...

    @property
    def kind(self) -> str:
        """What sort of source this is, for example "directory"."""
        ...

    @property
    def location(self) -> str:
        """The place, for people to read; free of credentials."""
        ...

    def walk(self) -> Walk:
        """Start a pass over all documents, in the same order each time.

        Raises, at once or with the first entry:
            SourceMissing: the place does not exist.
            SourceUnreadable: its list of documents cannot be read. Never taken as "no documents".
            SourceEmpty: it holds nothing, and the source was not declared as possibly empty.
        """
        ...

    def open(self, entry: SourceEntry) -> BinaryIO:
        """Open the bytes of one document for reading; the caller closes it.

        Raises:
            EntryRefused: the document cannot be opened, is no longer there or is no regular file.
        """
        ...
