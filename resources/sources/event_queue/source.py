"""A queue of events as a listed source: it lists the documents that events name.

Belongs here: the order of receiving, storing, acknowledging, looking and closing. Does not belong
here: any transport, any place of documents, and what a message says (`events.py`).

Nothing is lost and nothing counts twice, wherever the work breaks off:
- a message is acknowledged after the ledger has its events; until then it is delivered again, and
  a known event is only counted;
- an event waits until the transaction that stores its document's state closes it; until then each
  listing looks again.
The state of the place decides, not the event, so late, repeated and swapped events change nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, BinaryIO, Literal

import polars as pl
from sqlalchemy import select

from resources.ledger.schema import sources
from resources.ledger.source_events import (
    LOOKED_SCHEMA,
    RECEIVED_SCHEMA,
    record_events,
    settle_events,
    waiting_events,
)
from resources.ledger.source_snapshots import register_source
from resources.sources.declared import BucketPlace, QueueSource
from resources.sources.event_queue.events import Event, Naming, events_of
from resources.sources.event_queue.places import DocumentPlace, FolderPlace
from resources.sources.event_queue.transport import EventTransport, Received
from resources.sources.listing import LISTED_ROWS, LISTED_SCHEMA, Listing
from resources.sources.port import WalkReport

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from resources.ledger.engine import Ledger
    from resources.sources.seen import Seen

MOST_EVENTS = 10_000
MOST_SECONDS = 30.0
"""What a listing receives at most; the rest is for the next one."""
MESSAGES_AT_A_TIME = 200
"""Received, stored and acknowledged together: 50 MiB where each is as large as it may be."""


def open_queue(declared: QueueSource, ledger: Ledger) -> QueueListing:
    """The queue that a declaration names; nothing of it is looked at yet.

    Raises:
        SourceUnreadable: an address cannot be used.
    """
    return QueueListing(declared, ledger, _transport(declared), *_place(declared))


def _transport(declared: QueueSource) -> EventTransport:
    if declared.path is not None and declared.transport == "folder":
        from resources.sources.event_queue.folder_drop import FolderDrop

        return FolderDrop(declared.name, declared.path)
    from resources.sources.event_queue.sqs import SqsTransport

    return SqsTransport(declared.name, declared.queue_url or "", declared.endpoint, declared.region)


def _place(declared: QueueSource) -> tuple[DocumentPlace, Naming]:
    place = declared.documents
    if isinstance(place, BucketPlace):
        from resources.sources.bucket import BucketListing
        from resources.sources.bucket_client import address_of

        address = address_of(
            declared.name, place.url, place.endpoint, place.region, anonymous=place.anonymous
        )
        bucket = BucketListing(
            address, max_file_bytes=place.max_file_bytes, allow_empty=declared.allow_empty
        )
        return bucket, Naming(declared.name, address.bucket, address.prefix.encode())
    folder = FolderPlace(
        declared.name,
        place.path,
        max_file_bytes=place.max_file_bytes,
        allow_empty=declared.allow_empty,
    )
    return folder, Naming(declared.name)


class QueueListing:
    """A queue of events that name documents of a place.

    Args:
        declared: the source's declaration.
        ledger: where events are kept until their documents were seen.
        transport: what carries the events.
        place: where the documents are.
        naming: how names in events become documents.
        monotonic: seconds that only grow.
    """

    kind = "queue"
    holds: Literal["files", "rows"] = "files"

    def __init__(
        self,
        declared: QueueSource,
        ledger: Ledger,
        transport: EventTransport,
        place: DocumentPlace,
        naming: Naming,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = declared.name
        self._declared = declared
        self._ledger = ledger
        self._transport = transport
        self._place = place
        self._naming = naming
        self._monotonic = monotonic
        self._looked: list[pl.DataFrame] = []

    @property
    def location(self) -> str:
        """The queue and the place, free of credentials."""
        return f"{self._transport.location} for {self._place.location}"

    def fingerprint(self) -> str | None:
        """None: whether a queue holds messages is only told by receiving them."""
        return None

    def listing(self) -> Listing:
        """Receive events, then list the documents that waiting ones name.

        The report is partial: all other documents stay as they are. Documents that cannot be
        looked at now are left out, and their events wait.

        Raises, with the first frame:
            SourceMissing, SourceUnreadable: the queue, or the place, cannot be looked at.
            SourceEmpty: the place holds nothing, and was not declared as possibly empty.
        """
        return Listing(self._frames())

    def read(self, wanted: pl.DataFrame) -> Iterator[pl.DataFrame]:
        """The checksums of listed documents, read at their place."""
        return self._place.read(wanted)

    def open(self, document_id: str) -> BinaryIO:
        """The bytes of one document, at its place; the caller closes it."""
        return self._place.open(document_id)

    def texts(self, document_ids: pl.Series) -> Iterator[pl.DataFrame]:
        """Nothing: the place holds files."""
        del document_ids
        return iter(())

    def settle(self, connection: Connection, ledger: Ledger) -> None:
        """Close the events whose documents were listed; in the snapshot's transaction."""
        for looked in self._looked:
            settle_events(
                connection,
                ledger,
                looked,
                tries=self._declared.tries,
                owner=self._declared.owner,
            )

    def _frames(self) -> Generator[pl.DataFrame, None, WalkReport]:
        self._looked = []
        # First, so that a place that cannot be looked at leaves all events where they are.
        self._place.check()
        source_no = self._receive()
        waiting = waiting_events(self._ledger, source_no)
        ids = waiting["document_id"].unique(maintain_order=True)
        count = 0
        gone: list[str] = []
        for start in range(0, len(ids), LISTED_ROWS):
            seen = list(self._place.look_up(ids[start : start + LISTED_ROWS]))
            self._looked.append(
                _looked(seen).join(waiting, on="document_id").select(*LOOKED_SCHEMA)
            )
            gone += [each.document_id for each in seen if each.outcome == "gone"]
            rows = [each.row for each in seen if each.outcome == "found"]
            if rows:
                count += len(rows)
                yield pl.DataFrame(rows, schema=LISTED_SCHEMA, orient="row")
        return WalkReport(entries=count, partial=True, gone=tuple(gone))

    def _receive(self) -> int:
        """Receive what there is, store it, then acknowledge it; the source's number."""
        until = self._monotonic() + MOST_SECONDS
        asked = MESSAGES_AT_A_TIME
        messages = self._transport.receive(asked, MOST_SECONDS)
        # Not before the queue answered: a place that cannot be asked leaves no trace.
        source_no = self._number()
        left = MOST_EVENTS
        while messages:
            left -= self._store(source_no, messages)
            seconds = until - self._monotonic()
            # Fewer than were asked for: there were no more.
            if len(messages) < asked or left <= 0 or seconds <= 0:
                break
            asked = min(MESSAGES_AT_A_TIME, left)
            messages = self._transport.receive(asked, seconds)
        return source_no

    def _store(self, source_no: int, messages: list[Received]) -> int:
        """Store messages, then acknowledge them, a part at a time; returns how many events."""
        count = 0
        part: list[Received] = []
        events: list[Event] = []
        for message in messages:
            part.append(message)
            events += self._events(message)
            # One message may hold tens of thousands of events, and there are hundreds of them.
            if len(events) >= MOST_EVENTS or message is messages[-1]:
                self._store_part(source_no, part, events)
                count += len(events)
                part, events = [], []
        return count

    def _store_part(self, source_no: int, messages: list[Received], events: list[Event]) -> None:
        frame = pl.DataFrame(
            [(event.key, event.document_id, event.problem) for event in events],
            schema=RECEIVED_SCHEMA,
            orient="row",
        )
        with self._ledger.write() as connection:
            record_events(connection, self._ledger, source_no, frame, self._declared.owner)
        # After the commit: a crash in between has the messages delivered again, and lost is none.
        self._transport.acknowledge([message.receipt for message in messages])

    def _number(self) -> int:
        with self._ledger.read() as connection:
            number = connection.execute(
                select(sources.c.source_no).where(sources.c.name == self.name)
            ).scalar()
        if number is not None:
            # Another place or workload under this name is refused by the scan, which can be told
            # that the source was moved.
            return int(number)
        return register_source(
            self._ledger, self.name, self.kind, self.location, workload=self._declared.workload
        )

    def _events(self, message: Received) -> list[Event]:
        if message.problem is not None:
            return [Event(message.event_key, None, message.problem)]
        return events_of(message.event_key, message.body, self._naming)


def _looked(seen: list[Seen]) -> pl.DataFrame:
    size, mtime, mark = (list(LISTED_SCHEMA).index(name) for name in ("size", "mtime_ns", "mark"))
    schema = {name: kind for name, kind in LOOKED_SCHEMA.items() if name != "event_no"}
    rows = []
    for each in seen:
        told = (each.row[size], each.row[mtime], each.row[mark]) if each.row else (0, 0, None)
        rows.append((each.document_id, each.outcome, *told, each.problem or None))
    return pl.DataFrame(rows, schema=schema, orient="row")
