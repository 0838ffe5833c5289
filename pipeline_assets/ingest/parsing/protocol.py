"""The frames between the parent and a worker: length-prefixed JSON over one socket pair.

Encoding, decoding and the checks on what an untrusted worker claims; no process here. A document
travels as an open descriptor beside its request, never as a path.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import msgspec

from pipeline_assets.ingest.parsing.model import (
    MIB,
    SUPPORTED_MEDIA_TYPES,
    ParsedDocument,
    ParseFailure,
    ParseLimits,
    ParseOutcome,
)

PREFIX: Final = struct.Struct(">I")
MAX_REQUEST_BYTES: Final = 64 * 1024
MAX_REPLY_BYTES: Final = 192 * MIB
"""JSON of the default 20 million characters, escapes and a thumbnail fit; a longer announcement
is not believed."""


class ProtocolError(RuntimeError):
    """A worker sent what no sound worker sends; the worker is ended."""


class Request(msgspec.Struct, frozen=True, tag="request"):
    """Parse the file whose descriptor comes with this frame."""

    number: int
    claimed: str | None
    bare_name: bool
    render: bool


class Hello(msgspec.Struct, frozen=True, tag="hello"):
    """The worker passed its self-test. `ocr` tells whether the extra is installed."""

    parser_version: str
    ocr: bool
    cpu_seconds: float


class SelfTestFailed(msgspec.Struct, frozen=True, tag="self_test_failed"):
    """The worker cannot judge any document; `detail` names the part and the remedy."""

    detail: str


class Rendering(msgspec.Struct, frozen=True, tag="rendering"):
    """The text of request `number` is read; what follows draws pictures."""

    number: int


class Reply(msgspec.Struct, frozen=True, tag="reply"):
    """The outcome of request `number`: exactly one of `document` and `failure`."""

    number: int
    document: ParsedDocument | None
    failure: ParseFailure | None
    sha256: str | None
    cpu_seconds: float
    peak_rss_bytes: int
    retire: bool


FromWorker: TypeAlias = Hello | SelfTestFailed | Rendering | Reply

_from_worker: Final = msgspec.json.Decoder(FromWorker)
_request: Final = msgspec.json.Decoder(Request)


def encode(message: FromWorker | Request) -> bytes:
    """One frame: a four-byte length, then JSON."""
    body = msgspec.json.encode(message)
    return PREFIX.pack(len(body)) + body


def decode_request(body: bytes) -> Request:
    """A request's JSON; the parent is trusted."""
    return _request.decode(body)


def decode_reply(body: bytes) -> FromWorker:
    """A worker's JSON, typed.

    Raises:
        ProtocolError: Not a known message, or one whose parts contradict one another.
    """
    try:
        message = _from_worker.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ProtocolError("the worker sent no known message") from error
    if isinstance(message, Reply):
        _check(message)
    return message


def outcome_of(reply: Reply) -> ParseOutcome:
    """The document or the failure of a checked reply."""
    if reply.document is not None:
        return reply.document
    if reply.failure is None:
        raise ProtocolError("the worker sent neither a document nor a failure")
    return reply.failure


def _check(reply: Reply) -> None:
    if (reply.document is None) == (reply.failure is None):
        raise ProtocolError("the worker sent neither or both of a document and a failure")
    document = reply.document
    if document is None:
        return
    if document.media_type not in SUPPORTED_MEDIA_TYPES:
        raise ProtocolError("the worker named an unsupported media type")
    offset = 0
    for number, page in enumerate(document.pages, start=1):
        if (page.number, page.offset) != (number, offset):
            raise ProtocolError("the worker's pages do not follow one another")
        offset += len(page.text) + 1


@dataclass
class FrameBuffer:
    """Cuts a stream of bytes into frames."""

    limit: int = MAX_REPLY_BYTES
    _data: bytearray = field(default_factory=bytearray)

    def feed(self, data: bytes) -> list[bytes]:
        """Adds bytes and returns the bodies of the frames that are now whole.

        Raises:
            ProtocolError: A frame is announced longer than the limit.
        """
        self._data += data
        bodies: list[bytes] = []
        while len(self._data) >= PREFIX.size:
            (length,) = PREFIX.unpack_from(self._data)
            if length > self.limit:
                raise ProtocolError(f"the worker announced a frame of {length} bytes")
            end = PREFIX.size + length
            if len(self._data) < end:
                break
            bodies.append(bytes(self._data[PREFIX.size : end]))
            del self._data[:end]
        return bodies


def limits_to_argument(limits: ParseLimits) -> str:
    """Limits as a command-line argument of the worker."""
    return msgspec.json.encode(limits).decode()
