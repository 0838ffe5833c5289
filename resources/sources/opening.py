"""Opening a declared source: one function for every kind.

Belongs here: which module serves which kind. Does not belong here: the kinds themselves. The
module of a kind is loaded when a source of it is opened: the client of a bucket takes longer to
load than a folder takes to list.
"""

from __future__ import annotations

from resources.ledger.engine import Ledger
from resources.sources.declared import (
    BucketSource,
    DeclaredSource,
    FolderSource,
    QueueSource,
    SqlSource,
    TableSource,
)
from resources.sources.listing import ListedSource


def open_source(declared: DeclaredSource, ledger: Ledger) -> ListedSource:
    """The source that a declaration names; nothing of it is looked at yet.

    Raises:
        SourceError: it cannot be opened at all, for example because its address is not set.
    """
    if isinstance(declared, QueueSource):
        from resources.sources.event_queue.source import open_queue

        return open_queue(declared, ledger)
    return open_place(declared)


def open_place(
    declared: FolderSource | TableSource | SqlSource | BucketSource,
) -> ListedSource:
    """A source that is listed without changing anything anywhere, so that it needs no ledger.

    Raises:
        SourceError: it cannot be opened at all.
    """
    match declared:
        case FolderSource():
            from resources.sources.folder import FolderListing

            return FolderListing(
                declared.name,
                declared.path,
                max_file_bytes=declared.max_file_bytes,
                allow_empty=declared.allow_empty,
            )
        case TableSource():
            from resources.sources.table_file import open_table

            return open_table(declared)
        case SqlSource():
            from resources.sources.sql_table import open_sql

            return open_sql(declared)
        case BucketSource():
            from resources.sources.bucket import open_bucket

            return open_bucket(declared.name, declared)
