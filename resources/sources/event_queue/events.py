"""What a message says: which documents somebody should look at.

Belongs here: reading a message's bytes, as pure functions. Does not belong here: receiving it
(`folder_drop.py`, `sqs.py`) and looking at documents (`source.py`).

An event is a hint and no fact: what the named document is like now decides. So it does not matter
whether an event says "made" or "removed", in which order events come, or how often.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_to_bytes

from resources.sources.document_id import DocumentIdTooLong, document_id

NOT_JSON = "the message is not JSON"
NO_DOCUMENT = "the message names no document"
OUTSIDE = "the named path is outside the source"
OTHER_BUCKET = "the message is about another bucket"
TOO_LONG = "the name is too long for a document id"

_KEY_LENGTH = 100
_DIGEST_LENGTH = 16


@dataclass(frozen=True)
class Naming:
    """How names in events become documents.

    Attributes:
        source: the source's name.
        bucket: the bucket that keys belong to; None for a folder, whose names are paths.
        prefix: what keys of the bucket start with, of notifications, which tell whole keys.
    """

    source: str
    bucket: str | None = None
    prefix: bytes = b""


@dataclass(frozen=True)
class Event:
    """One event.

    Attributes:
        key: tells it from all other events; the same again for the same event.
        document_id: the document to look at; None where there is nothing to look at.
        problem: why it can never be acted on, in closed wording; None for a sound event.
    """

    key: str
    document_id: str | None
    problem: str | None = None


class _Unusable(Exception):
    """The event can never be acted on."""

    def __init__(self, problem: str) -> None:
        self.problem = problem
        super().__init__(problem)


def events_of(message_key: str, body: bytes, naming: Naming) -> list[Event]:
    """The events of a message, at least one: what cannot be used is an event with a problem.

    Understood are `{"id": …, "document": "path/or/key"}` (`id` may be left out), a notification
    of S3 (`Records`), and a list of these.

    Args:
        message_key: what the transport calls the message; the key of events without an `id`.
        body: its bytes.
        naming: how names become documents.
    """
    try:
        told = list(_told(json.loads(body.decode())))
    except (ValueError, RecursionError):
        return [Event(_short(message_key), None, NOT_JSON)]
    if not told:
        return [Event(_short(message_key), None)]
    return [
        _event(item, f"{message_key}#{number}" if len(told) > 1 else message_key, naming)
        for number, item in enumerate(told)
    ]


def _told(content: Any) -> Iterator[Any]:
    """The single events of a message: members of lists, and of notifications."""
    for item in content if isinstance(content, list) else [content]:
        records = item.get("Records") if isinstance(item, dict) else None
        if isinstance(records, list):
            yield from ({"record": record} for record in records)
        else:
            yield item


def _event(item: Any, fallback: str, naming: Naming) -> Event:
    try:
        if not isinstance(item, dict):
            raise _Unusable(NO_DOCUMENT)
        if item.get("Event") == "s3:TestEvent":
            return Event(_short(fallback), None)
        sender_id, path = (
            _notification(item["record"], naming) if "record" in item else _plain(item, naming)
        )
        # A bucket's "folder"; listings pass over it too.
        identity = (
            None
            if naming.bucket is not None and path.endswith(b"/")
            else document_id(naming.source, path)
        )
    except _Unusable as unusable:
        return Event(_short(fallback), None, unusable.problem)
    except DocumentIdTooLong:
        return Event(_short(fallback), None, TOO_LONG)
    if not sender_id:
        return Event(_short(fallback), identity)
    # One name for events of two documents is the sender's mistake, and must hide neither.
    return Event(f"{_short(sender_id, _KEY_LENGTH)} {_digest(path.hex())}", identity)


def _plain(item: dict[str, Any], naming: Naming) -> tuple[str, bytes]:
    name, sender_id = item.get("document"), item.get("id")
    if not isinstance(name, str) or not name:
        raise _Unusable(NO_DOCUMENT)
    try:
        path = name.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        raise _Unusable(NO_DOCUMENT) from None
    if naming.bucket is None and not _is_inside(path):
        raise _Unusable(OUTSIDE)
    return sender_id if isinstance(sender_id, str) else "", path


def _notification(record: Any, naming: Naming) -> tuple[str, bytes]:
    try:
        told = record["s3"]
        raw, bucket = told["object"]["key"], told.get("bucket", {}).get("name")
        # As forms encode: a space comes as "+".
        key = unquote_to_bytes(raw.replace("+", " "))
    except (KeyError, TypeError, AttributeError):
        raise _Unusable(NO_DOCUMENT) from None
    if naming.bucket is not None and bucket not in (None, naming.bucket):
        raise _Unusable(OTHER_BUCKET)
    path = key.removeprefix(naming.prefix)
    inside = key.startswith(naming.prefix) and path
    if not inside or (naming.bucket is None and not _is_inside(path)):
        raise _Unusable(OUTSIDE)
    sequencer, time = told["object"].get("sequencer"), record.get("eventTime")
    return f"s3 {time} {sequencer}" if sequencer and time else "", path


def _is_inside(path: bytes) -> bool:
    return b"\0" not in path and all(step not in (b"", b".", b"..") for step in path.split(b"/"))


def _short(text: str, length: int = _KEY_LENGTH + _DIGEST_LENGTH) -> str:
    """A text that fits the ledger's column, the same for the same text."""
    if text.isascii() and text.isprintable() and len(text) <= length:
        return text
    return f"sha256 {hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_LENGTH]
