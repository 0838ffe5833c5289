"""A bucket behind the S3 API as a listed source: its objects are the documents.

Belongs here: turning keys into documents, reading objects for their checksums, opening and finding
single ones. Does not belong here: asking the server (`bucket_client.py`), which keys fold to one id
(`folding.py`), how a name may be spelt (`spelling.py`), and what an object contains.

Guarantees:
- A key is opaque: it is never taken for a path, and an id leads back to it.
- Bytes and etag belong together: an object is asked for by the etag that was seen, and the etag
  that is told is that of the very answer whose bytes were hashed.
- An object whose etag, size and time are as before is not read.
- Reading takes blocks of `BLOCK_BYTES` of `AT_A_TIME` objects; an object that is opened lies in a
  temporary file.
"""

from __future__ import annotations

import hashlib
import tempfile
import time
import unicodedata
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, Protocol, TypeVar, cast

import polars as pl

from resources.sources.bucket_client import (
    TRIES,
    Address,
    BucketClient,
    ListedKey,
    ObjectChanged,
    ObjectGone,
    ObjectTrouble,
    address_of,
)
from resources.sources.declared import BucketPlace, BucketSource
from resources.sources.document_id import (
    DocumentIdError,
    DocumentIdTooLong,
    check_source_name,
    document_id,
    shortened_document_id,
)
from resources.sources.folding import COLLISION, exact_or_shortened, held_back
from resources.sources.listing import LISTED_ROWS, LISTED_SCHEMA, READ_SCHEMA, Listing
from resources.sources.port import EntryRefused, SourceEmpty, WalkReport
from resources.sources.seen import Seen
from resources.sources.spelling import Spelt, folded, likely_spellings, spelt, starts

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from resources.ledger.engine import Ledger

BLOCK_BYTES = 1024 * 1024
AT_A_TIME = 6
"""Objects that are read, or asked for, at the same time."""
READ_DOCUMENTS = 500
READ_SECONDS = 1.0
"""Checksums are handed on at the first of these, so that little is read twice after a kill."""
FIRST_ROWS = 1_000
"""Rows of the first frame: whoever only asks whether there is anything waits for one page."""
_IN_MEMORY_BYTES = 8 * 1024 * 1024
_ATTEMPTS = 2
_REMEMBERED = LISTED_ROWS
"""Keys in neither NFC nor NFD that are remembered, so that a list is not asked for each."""
_In = TypeVar("_In")
_Out = TypeVar("_Out")


def open_bucket(name: str, place: BucketSource | BucketPlace) -> BucketListing:
    """The bucket that a declaration names; nothing of it is looked at yet.

    Raises:
        SourceUnreadable: its endpoint cannot be used.
    """
    address = address_of(name, place.url, place.endpoint, place.region, anonymous=place.anonymous)
    return BucketListing(
        address,
        max_file_bytes=place.max_file_bytes,
        allow_empty=isinstance(place, BucketSource) and place.allow_empty,
    )


class BucketListing:
    """A bucket of documents.

    Args:
        address: where it is, and the name of the source.
        max_file_bytes: larger objects are excluded as `too_large` without being read.
        allow_empty: accept a bucket without a single document.

    Raises:
        DocumentIdError: the name cannot name a source.
    """

    kind = "bucket"
    holds: Literal["files", "rows"] = "files"

    def __init__(
        self,
        address: Address,
        *,
        max_file_bytes: int,
        allow_empty: bool = False,
    ) -> None:
        self.name = check_source_name(address.source)
        self.max_file_bytes = max_file_bytes
        self._address = address
        self._prefix = address.prefix.encode()
        self._allow_empty = allow_empty
        self._client = BucketClient(address, AT_A_TIME)
        self._spelt: dict[bytes, bytes] = {}

    @property
    def location(self) -> str:
        """Bucket, prefix and server; no credentials."""
        return self._address.location

    def fingerprint(self) -> str | None:
        """None: a bucket does not tell that nothing in it changed."""
        return None

    def listing(self) -> Listing:
        """Start a pass over all objects: ASCII keys in the server's order, then the others.

        Raises, with the first frame or a later one:
            SourceMissing: there is no such bucket.
            SourceUnreadable: its list, or the rest of it, cannot be had.
            SourceEmpty: it holds no document.
        """
        return Listing(self._frames())

    def read(self, wanted: pl.DataFrame) -> Iterator[pl.DataFrame]:
        """The checksums of listed objects, some at the same time, in their order.

        Raises:
            SourceMissing, SourceUnreadable: the bucket is not usable any more.
        """
        rows = wanted.select("document_id", "place", "size", "mtime_ns", "mark").iter_rows()
        part: list[tuple[object, ...]] = []
        due = time.monotonic() + READ_SECONDS
        for row in _side_by_side(self._read_one, rows):
            part.append(row)
            if len(part) >= READ_DOCUMENTS or time.monotonic() >= due:
                yield pl.DataFrame(part, schema=READ_SCHEMA, orient="row")
                part, due = [], time.monotonic() + READ_SECONDS
        if part:
            yield pl.DataFrame(part, schema=READ_SCHEMA, orient="row")

    def open(self, document_id: str) -> BinaryIO:
        """The bytes of one object, in a temporary file; the caller closes it.

        Raises:
            EntryRefused: it cannot be read, or is no longer there.
            SourceMissing, SourceUnreadable: the bucket is not usable.
        """
        name = _named(document_id)
        for raw in self._raw_paths(name):
            opened = self._opened(document_id, raw)
            if opened is not None:
                return opened
        raise EntryRefused(document_id, "unreadable", "no longer there")

    def texts(self, document_ids: pl.Series) -> Iterator[pl.DataFrame]:
        """Nothing: a bucket holds files."""
        del document_ids
        return iter(())

    def settle(self, connection: Connection, ledger: Ledger) -> None:
        """Nothing to do: a bucket is told nothing about what was taken from it."""

    def check(self) -> None:
        """Make sure that the bucket can be listed, and is not empty where it must not be.

        Raises:
            SourceMissing, SourceUnreadable, SourceEmpty: it is not so.
        """
        if not self._probe() and not self._allow_empty:
            raise self._nothing()

    def look_up(self, document_ids: Iterable[str]) -> Iterator[Seen]:
        """Look for single objects, some at the same time, in their order.

        A key is looked for as the id gives it (NFC), then in NFD, then among the keys that begin
        as it does.

        Raises:
            SourceMissing, SourceUnreadable: the bucket is not usable.
        """
        seen = list(_side_by_side(self._look_for, document_ids))
        gone = [each.document_id for each in seen if each.outcome == "gone"]
        if not gone:
            return iter(seen)
        self._probe()  # where the bucket is gone, nothing is known about its documents
        names = {identity: _named(identity) for identity in gone}
        paths = {identity: name.path for identity, name in names.items() if name.may_differ()}
        otherwise = self._look_among_neighbours(set(paths.values()))
        found = {identity: otherwise[path] for identity, path in paths.items() if path in otherwise}
        return (
            self._seen_as(each.document_id, found[each.document_id])
            if each.document_id in found
            else each
            for each in seen
        )

    def _frames(self) -> Generator[pl.DataFrame, None, WalkReport]:
        count = 0
        rows: list[tuple[object, ...]] = []
        limit = FIRST_ROWS
        with held_back() as others:
            for page in self._client.pages():
                for item in page:
                    if item.key == self._prefix or (item.key.endswith(b"/") and item.size == 0):
                        continue  # not below the prefix; how some tools show a folder
                    count += 1
                    row = self._row(item)
                    if item.key[len(self._prefix) :].isascii():
                        rows.append(row)
                    else:
                        others.add(self._beside_its_twin(item, row))
                if len(rows) >= limit:
                    yield _frame(rows)
                    rows, limit = [], LISTED_ROWS - FIRST_ROWS
            if rows:
                yield _frame(rows)
            yield from others.frames(self.name)
        if count == 0 and not self._allow_empty:
            raise self._nothing()
        return WalkReport(entries=count)

    def _nothing(self) -> SourceEmpty:
        return SourceEmpty(
            f"source {self.name}: {self.location} holds no object; expected documents. Check the "
            "bucket and the prefix; if it is meant to be empty, allow an empty source "
            "(allow_empty: true)"
        )

    def _row(self, item: ListedKey) -> tuple[object, ...]:
        path = item.key[len(self._prefix) :]
        verdict = self._judge(item.size)
        try:
            identity = document_id(self.name, path)
        except DocumentIdTooLong:
            identity = shortened_document_id(self.name, path)
            verdict = ("name_too_long", f"the key has {len(path)} bytes")
        reason, detail = verdict or (None, "")
        # In the order of LISTED_SCHEMA.
        return (
            identity, path, item.size, item.mtime_ns, "0", "0", item.etag, None, reason, detail,
        )  # fmt: skip

    def _beside_its_twin(self, item: ListedKey, row: tuple[object, ...]) -> tuple[object, ...]:
        """A few signs fold to ASCII (the Kelvin sign to K): is that other name there too?

        Names in ASCII are not held back, so the question goes to the bucket.
        """
        path = item.key[len(self._prefix) :]
        twin = unicodedata.normalize("NFC", path.decode("utf-8", "surrogateescape"))
        if not twin.isascii():
            return row
        key = self._prefix + twin.encode()
        page = next(self._client.pages(key.decode(), most=1), [])
        if not page or page[0].key != key:
            return row
        return (exact_or_shortened(self.name, path), *row[1:8], *COLLISION)

    def _judge(self, size: int) -> tuple[str, str] | None:
        if size == 0:
            return ("empty", "")
        if size > self.max_file_bytes:
            return ("too_large", f"{size} bytes, limit {self.max_file_bytes}")
        return None

    def _read_one(self, wanted: tuple[Any, ...]) -> tuple[object, ...]:
        identity, path, size, mtime_ns, mark = wanted
        key = self._prefix + path
        seen = ListedKey(key, size, mtime_ns, mark)
        for attempt in range(_ATTEMPTS):
            digest = _Digest()
            try:
                if attempt:
                    seen = self._client.head(key)
                seen = self._download(key, seen.etag, digest)
            except ObjectChanged:
                continue
            except ObjectGone:
                self._probe()  # a bucket that vanished is another matter
                return _read_row(identity, seen, None, "unreadable", "no longer there")
            except ObjectTrouble as trouble:
                self._probe()  # the bucket answers, so it is this object alone
                return _read_row(identity, seen, None, "unreadable", trouble.problem)
            except _Excluded as excluded:
                return _read_row(identity, seen, None, excluded.reason, excluded.detail)
            return _read_row(identity, seen, digest.hexdigest(), None, "")
        return _read_row(identity, seen, None, "unreadable", "changed while being read")

    def _raw_paths(self, name: Spelt) -> Iterator[bytes]:
        """Where an object may be, the likely places first; the last one takes a list."""
        yield from name.likely()
        if name.may_differ():
            remembered = self._spelt.get(name.path)
            if remembered is not None:
                yield remembered
            yield from self._look_among_neighbours({name.path}).values()

    def _opened(self, identity: str, path: bytes) -> BinaryIO | None:
        """An object in a temporary file; None if it is not there."""
        file = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY_BYTES)  # noqa: SIM115 - given away
        try:
            self._download(self._prefix + path, None, _Blocks(file))
        except ObjectGone:
            file.close()
            return None
        except ObjectChanged:
            file.close()
            raise EntryRefused(identity, "unreadable", "changed while being read") from None
        except ObjectTrouble as trouble:
            file.close()
            self._probe()  # the bucket answers, so it is this object alone
            raise EntryRefused(identity, "unreadable", trouble.problem) from trouble
        except _Excluded as excluded:
            file.close()
            raise EntryRefused(identity, excluded.reason, excluded.detail) from excluded
        except BaseException:
            file.close()
            raise
        file.seek(0)
        return cast(BinaryIO, file)

    def _download(self, key: bytes, etag: str | None, into: _Into) -> ListedKey:
        """Take the bytes of an object, and say what it was like; a broken line is tried again.

        Raises:
            _Excluded, ObjectChanged, ObjectGone, ObjectTrouble: nothing that was taken may be used.
            SourceMissing, SourceUnreadable: the bucket is not usable.
        """
        left = TRIES
        while True:
            left -= 1
            into.restart()
            try:
                return self._download_once(key, etag, into)
            except ObjectTrouble as trouble:
                # A request that was not answered at all was repeated by the client.
                if not trouble.passing or not into.length or left == 0:
                    raise

    def _download_once(self, key: bytes, etag: str | None, into: _Into) -> ListedKey:
        with self._client.opened(key, etag, BLOCK_BYTES) as (found, blocks):
            verdict = self._judge(found.size)
            if verdict is not None:
                raise _Excluded(*verdict)
            for block in blocks:
                into.take(block)
        # Without an etag nothing but a second look shows a change in the middle.
        if into.length != found.size or (found.etag is None and self._client.head(key) != found):
            raise ObjectChanged
        return found

    def _look_for(self, identity: str) -> Seen:
        try:
            name = _named(identity)
        except EntryRefused as refused:
            return Seen(identity, "failed", problem=refused.detail)
        seen = Seen(identity, "gone")
        for raw in name.likely():
            seen = self._seen_as(identity, raw)
            if seen.outcome != "gone":
                break
        return seen

    def _seen_as(self, identity: str, path: bytes) -> Seen:
        try:
            row = self._row(self._client.head(self._prefix + path))
        except ObjectGone:
            return Seen(identity, "gone")
        except ObjectTrouble as trouble:
            self._probe()  # the bucket answers, so it is this object alone
            return Seen(identity, "failed", problem=trouble.problem)
        return Seen(identity, "found", (identity, *row[1:]))

    def _look_among_neighbours(self, paths: set[bytes]) -> Mapping[bytes, bytes]:
        """The raw paths of keys that are spelt neither in NFC nor in NFD, by what they fold to.

        Keys that begin as a wanted one does are listed, all of them: a few where the name has a
        part in ASCII in front.
        """
        outermost = _outermost(start for path in paths for start in starts(path))
        found: dict[bytes, bytes] = {}
        for some in _side_by_side(lambda start: self._unlikely_below(start, paths), outermost):
            found |= some
        return found

    def _unlikely_below(self, start: str, paths: set[bytes]) -> dict[bytes, bytes]:
        found: dict[bytes, bytes] = {}
        for page in self._client.pages(self._address.prefix + start):
            for item in page:
                raw = item.key[len(self._prefix) :]
                path = raw if raw.isascii() else folded(raw)
                if raw in likely_spellings(path):
                    continue
                if path in paths:
                    found[path] = raw
                if len(self._spelt) < _REMEMBERED:
                    self._spelt[path] = raw
        return found

    def _probe(self) -> list[ListedKey]:
        """The first object, if there is one; an error where the bucket cannot be listed."""
        return next(self._client.pages(most=1), [])


class _Excluded(Exception):
    """The object is there and is not to be read."""

    def __init__(self, reason: str, detail: str) -> None:
        self.reason = reason
        self.detail = detail
        super().__init__(detail)


class _Into(Protocol):
    """What takes the blocks of an object, from the start again after `restart`."""

    length: int

    def restart(self) -> None: ...

    def take(self, block: bytes) -> None: ...


class _Digest:
    """The checksum of what is taken."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        self.length = 0
        self._sha256 = hashlib.sha256()

    def take(self, block: bytes) -> None:
        self.length += len(block)
        self._sha256.update(block)

    def hexdigest(self) -> str:
        return self._sha256.hexdigest()


class _Blocks:
    """A file that what is taken is written to."""

    def __init__(self, file: tempfile.SpooledTemporaryFile[bytes]) -> None:
        self.length = 0
        self._file = file

    def restart(self) -> None:
        self.length = 0
        self._file.seek(0)
        self._file.truncate()

    def take(self, block: bytes) -> None:
        self.length += len(block)
        self._file.write(block)


def _named(identity: str) -> Spelt:
    """What an id says about the key below the prefix.

    Raises:
        EntryRefused: it says nothing.
    """
    try:
        return spelt(identity)
    except DocumentIdError as error:
        detail = "no key can be told from its id"
        raise EntryRefused(identity, "name_too_long", detail) from error


def _outermost(found: Iterable[str]) -> list[str]:
    """The starts without those that another one covers."""
    outermost: list[str] = []
    for start in sorted(set(found)):
        if not outermost or not start.startswith(outermost[-1]):
            outermost.append(start)
    return outermost


def _side_by_side(work: Callable[[_In], _Out], items: Iterable[_In]) -> Iterator[_Out]:
    """The results in the items' order, `AT_A_TIME` of them in work."""
    waiting: deque[Future[_Out]] = deque()
    with ThreadPoolExecutor(AT_A_TIME, thread_name_prefix="bucket") as pool:
        try:
            for item in items:
                waiting.append(pool.submit(work, item))
                if len(waiting) >= 2 * AT_A_TIME:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def _frame(rows: list[tuple[object, ...]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=LISTED_SCHEMA, orient="row")


def _read_row(
    identity: str, seen: ListedKey, checksum: str | None, excluded: str | None, detail: str
) -> tuple[object, ...]:
    row = {
        "document_id": identity,
        "size": seen.size,
        "mtime_ns": seen.mtime_ns,
        "device": "0",
        "inode": "0",
        "mark": seen.etag,
        "checksum": checksum,
        "excluded": excluded,
        "detail": detail,
    }
    return tuple(row[name] for name in READ_SCHEMA)
