"""A source that shows only chosen documents of another.

Belongs here: leaving out what was not chosen. Does not belong here: choosing, and how the other
source lists, reads and opens. Ids, places and bytes are the other source's own, so whatever keeps
its paths inside its root keeps them there here too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Generator, Iterator
from typing import TYPE_CHECKING, BinaryIO, Literal

import polars as pl

from resources.sources.declared import BucketSource, DeclaredSource, FolderSource, QueueSource
from resources.sources.listing import ListedSource, Listing
from resources.sources.opening import open_place
from resources.sources.port import EntryRefused, WalkReport

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from resources.ledger.engine import Ledger

NOT_CHOSEN = "not among the chosen documents"


class SampledSource:
    """Some documents of a source (`ListedSource`).

    Args:
        inner: the source that has them.
        chosen: ids of the documents that are shown.
    """

    def __init__(self, inner: ListedSource, chosen: Collection[str]) -> None:
        self._inner = inner
        self._chosen = pl.Series(sorted(set(chosen)), dtype=pl.String)
        self._known = frozenset(chosen)

    @property
    def name(self) -> str:
        """The source's name in document ids."""
        return self._inner.name

    @property
    def kind(self) -> str:
        """The other source's kind."""
        return self._inner.kind

    @property
    def location(self) -> str:
        """The other source's place: what is left out does not make it another one."""
        return self._inner.location

    @property
    def holds(self) -> Literal["files", "rows"]:
        """Files or rows, as the other source."""
        return self._inner.holds

    def fingerprint(self) -> str | None:
        """A digest of the other source's fingerprint and of what was chosen.

        Raises:
            SourceError: the place cannot be looked at.
        """
        place = self._inner.fingerprint()
        if place is None:
            return None
        both = "\n".join([place, *self._chosen])
        return hashlib.sha256(both.encode("utf-8", "surrogatepass")).hexdigest()

    def listing(self) -> Listing:
        """Start a pass over the whole place that gives the chosen documents only.

        Its report is of a complete walk: a chosen document that it does not give is gone.

        Raises, with the first frame:
            SourceMissing, SourceUnreadable, SourceEmpty: of the other source.
        """
        return Listing(self._frames())

    def read(self, wanted: pl.DataFrame) -> Iterator[pl.DataFrame]:
        """The checksums of listed documents that were chosen.

        Raises:
            SourceError: the source as a whole is not usable any more.
        """
        return self._inner.read(self._only(wanted))

    def open(self, document_id: str) -> BinaryIO:
        """The bytes of one chosen document; the caller closes it.

        Raises:
            EntryRefused: it was not chosen, cannot be opened, or is no longer there.
        """
        if document_id not in self._known:
            raise EntryRefused(document_id, "unreadable", NOT_CHOSEN)
        return self._inner.open(document_id)

    def texts(self, document_ids: pl.Series) -> Iterator[pl.DataFrame]:
        """The texts of chosen rows.

        Raises:
            SourceError: the source as a whole is not usable any more.
        """
        return self._inner.texts(document_ids.filter(document_ids.is_in(self._chosen.implode())))

    def settle(self, connection: Connection, ledger: Ledger) -> None:
        """Nothing to do: what only looks at a source tells it nothing."""

    def _only(self, frame: pl.DataFrame) -> pl.DataFrame:
        return frame.filter(pl.col("document_id").is_in(self._chosen.implode()))

    def _frames(self) -> Generator[pl.DataFrame, None, WalkReport]:
        listing, given = self._inner.listing(), 0
        for frame in listing:
            chosen = self._only(frame)
            given += chosen.height
            if not chosen.is_empty():
                yield chosen
        whole = listing.report()
        return WalkReport(given, whole.unlisted, whole.partial, whole.gone)


def open_to_look(declared: DeclaredSource) -> ListedSource:
    """A declared source for a look at what it holds, which takes nothing from anywhere.

    A queue is looked at as the place that its events name documents of: listing the queue itself
    would take events from it.

    Raises:
        SourceError: it cannot be opened at all.
    """
    if not isinstance(declared, QueueSource):
        return open_place(declared)
    common = {
        "name": declared.name,
        "workload": declared.workload,
        "approval": declared.approval,
        "allow_empty": declared.allow_empty,
    }
    if declared.documents.kind == "folder":
        return open_place(
            FolderSource.model_validate({**common, **declared.documents.model_dump()})
        )

    return open_place(BucketSource.model_validate({**common, **declared.documents.model_dump()}))
