"""HTTP below the providers' formats: dropped connections, late answers, cut and ranged bodies.

Belongs here: what strikes the connection and bytes whatever they mean. Does not belong here: an
error body or a header of any provider.
"""

from __future__ import annotations

import asyncio
import io
import json
import re
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tests.provider_emulator.faults import Fault

BLOCK_BYTES = 256 * 1024
TRANSPORT = "transport"
"""Key of the scope under which the server puts the connection's transport."""
_DROP = "emulator.drop_after"
_DELAY = "emulator.delay"
_RANGE = re.compile(r"bytes=(\d+)-(\d*)")


class Dropped(Response):
    """No answer at all: the connection is dropped instead."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Drop the connection of the request."""
        await _drop(scope, receive)


def failed_transport(request: Request, fault: Fault | None) -> Response | None:
    """Handle the kinds that need no provider's form; None where the request goes on.

    `drop_before` gives the response to return at once, without doing anything. `drop_after` and
    `delay` (args `seconds`, real ones) are marked on the request and strike when its response is
    sent: the operation is done by then. Every other kind is left to the caller.
    """
    if fault is None:
        return None
    if fault.kind == "drop_before":
        return Dropped()
    if fault.kind == "drop_after":
        request.scope[_DROP] = True
    if fault.kind == "delay":
        request.scope[_DELAY] = float(fault.args.get("seconds", 1.0))
    return None


def abort(request: Request) -> None:
    """Drop the TCP connection of a request now; what is unsent is lost."""
    request.scope[TRANSPORT].abort()


async def _drop(scope: Scope, receive: Receive) -> None:
    """Drop the connection and wait until the server has seen it go."""
    scope[TRANSPORT].abort()
    while (await receive())["type"] != "http.disconnect":
        pass


class MarkedFaults:
    """Middleware that carries out what `failed_transport` marked on a request."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the application; delay or drop when its response starts."""
        dropped = False

        async def marked_send(message: Message) -> None:
            nonlocal dropped
            if message["type"] == "http.response.start":
                if delay := scope.get(_DELAY):
                    await asyncio.sleep(delay)
                if scope.get(_DROP):
                    dropped = True
                    await _drop(scope, receive)
            if not dropped:
                await send(message)

        await self._app(scope, receive, marked_send)


async def save_upload(upload: UploadFile, path: Path) -> int:
    """Copy a file of a multipart form to a path, block by block; return its size in bytes."""
    size = 0
    with path.open("wb") as file:
        while block := await upload.read(BLOCK_BYTES):
            size += file.write(block)
    return size


async def save_body(request: Request, path: Path) -> int:
    """Copy the request's body to a path as it arrives; return its size in bytes."""
    size = 0
    with path.open("wb") as file:
        async for block in request.stream():
            size += file.write(block)
    return size


async def stream_bytes(
    request: Request,
    data: bytes | Path,
    *,
    fault: Fault | None = None,
    media_type: str = "application/octet-stream",
    allow_range: bool = False,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Return bytes, or a file straight from disk, as a response with `Content-Length`.

    Args:
        request: asked for them; its `Range` header is honoured with `allow_range` (206, or 416
            where nothing lies in the range).
        data: the bytes, or the file that holds them.
        fault: a download fault. `cut` (args `bytes`, default half of what was asked for) ends the
            connection after so many bytes although more were announced. `truncate_at_newline`
            does the same behind the last line feed before that place; args `announce`: `full`
            (default) the whole length, `none` no length, `short` the truncated length.
        media_type: goes into `Content-Type`.
        allow_range: whether downloads can be resumed.
        headers: more headers.
    """
    size = data.stat().st_size if isinstance(data, Path) else len(data)
    wanted = _wanted_range(request, size) if allow_range else None
    more = {"Accept-Ranges": "bytes", **(headers or {})} if allow_range else dict(headers or {})
    if wanted is not None and wanted[0] >= wanted[1]:
        return Response(status_code=416, headers={**more, "Content-Range": f"bytes */{size}"})
    if wanted is not None:
        more["Content-Range"] = f"bytes {wanted[0]}-{wanted[1] - 1}/{size}"
    first, end = wanted or (0, size)
    stop, announced = _stop_and_length(data, first, end, fault)
    return _Body(data, first, stop, announced, 206 if wanted else 200, media_type, more)


def _wanted_range(request: Request, size: int) -> tuple[int, int] | None:
    """Return the first byte and the one behind the last; a form unknown here means all."""
    found = _RANGE.fullmatch(request.headers.get("range", "").strip())
    if found is None:
        return None
    return int(found[1]), min(size, int(found[2]) + 1) if found[2] else size


def _stop_and_length(
    data: bytes | Path, first: int, end: int, fault: Fault | None
) -> tuple[int, int | None]:
    """Return where the body really stops and which length is announced for it."""
    if fault is None or fault.kind not in ("cut", "truncate_at_newline"):
        return end, end - first
    stop = min(end, first + int(fault.args.get("bytes", (end - first) // 2)))
    if fault.kind == "truncate_at_newline":
        stop = _behind_last_newline(data, first, stop)
    announce = fault.args.get("announce", "full")
    return stop, {"full": end - first, "none": None, "short": stop - first}[announce]


def _behind_last_newline(data: bytes | Path, first: int, stop: int) -> int:
    """Return the place behind the last line feed between two places, the first without one."""
    with _Source(data) as source:
        while stop > first:
            start = max(first, stop - BLOCK_BYTES)
            source.seek(start)
            at = source.read(stop - start).rfind(b"\n")
            if at >= 0:
                return start + at + 1
            stop = start
    return first


class _Source:
    """Bytes or a file, read in the same way."""

    def __init__(self, data: bytes | Path) -> None:
        self._data = data
        self._file: BinaryIO | None = None

    def __enter__(self) -> BinaryIO:
        data = self._data
        self._file = data.open("rb") if isinstance(data, Path) else io.BytesIO(data)
        return self._file

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()


class _Body(Response):
    """A streamed body that may stop before its announced length."""

    def __init__(
        self,
        data: bytes | Path,
        first: int,
        stop: int,
        announced: int | None,
        status: int,
        media_type: str,
        headers: Mapping[str, str],
    ) -> None:
        self._data, self._first, self._stop = data, first, stop
        self._announced = announced
        length = {} if announced is None else {"Content-Length": str(announced)}
        super().__init__(status_code=status, media_type=media_type, headers={**headers, **length})
        if announced is None:  # the base class announces the empty body that it was given
            del self.headers["content-length"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the body; where it stops early, end the connection instead of the response."""
        await send(
            {
                "type": "http.response.start",
                "status": self.status_code,
                "headers": self.raw_headers,
            }
        )
        async for block in self._blocks():
            await send({"type": "http.response.body", "body": block, "more_body": True})
        sent = self._stop - self._first
        if self._announced is not None and sent < self._announced and scope["method"] != "HEAD":
            # Closed, not aborted: what was sent arrives first.
            scope[TRANSPORT].close()
            while (await receive())["type"] != "http.disconnect":
                pass
            return
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _blocks(self) -> AsyncIterator[bytes]:
        with _Source(self._data) as source:
            source.seek(self._first)
            left = self._stop - self._first
            while left > 0 and (block := source.read(min(BLOCK_BYTES, left))):
                left -= len(block)
                yield block


def json_bytes(value: Any) -> bytes:
    """Return JSON with every character raw that JSON allows raw, as the providers write it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def json_response(
    value: Any, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Return a JSON response with non-ASCII characters raw."""
    return Response(json_bytes(value), status, headers, "application/json")
