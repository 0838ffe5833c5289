"""A worker's loop: receive a descriptor, parse, reply. One document at a time.

Runs inside the limited process of `worker`. Deaths are the parent's to explain; here only what
Python can still catch becomes a failure.
"""

from __future__ import annotations

import hashlib
import os
import resource
import socket
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from pipeline_assets.ingest.parsing import protocol
from pipeline_assets.ingest.parsing.document import parse_document
from pipeline_assets.ingest.parsing.model import (
    ParsedDocument,
    ParseFailure,
    ParseLimits,
    ParseOutcome,
)
from pipeline_assets.ingest.parsing.ocr import OcrBroken, OcrEngine
from pipeline_assets.ingest.parsing.reading import ReadContext
from pipeline_assets.ingest.parsing.selftest import SelfTestError, run_self_test
from resources.parser_settings import PARSER_VERSION

OCR_TIME_SHARE: Final = 0.85
"""Of both time limits, from the start of the document; the rest is for language and reply."""
RETIRE_SHARE: Final = 0.7
"""Of the memory limit: a worker that kept more than this would cost the next document its room."""
_CHUNK: Final = 2**20


def serve(socket_descriptor: int, limits_json: str) -> int:
    """Answers requests until the parent closes the socket; the process's exit status."""
    limits = msgspec.json.decode(limits_json, type=ParseLimits)
    with socket.socket(fileno=socket_descriptor) as channel:
        try:
            engine = run_self_test(limits)
        except (SelfTestError, MemoryError) as error:
            detail = str(error) or "the self-test needs more memory than the limit allows"
            channel.sendall(protocol.encode(protocol.SelfTestFailed(detail)))
            return 1
        channel.sendall(
            protocol.encode(protocol.Hello(PARSER_VERSION, engine is not None, _cpu_used()))
        )
        while (received := _receive(channel)) is not None:
            request, descriptor = received
            reply = _answer(request, descriptor, limits, engine, channel)
            channel.sendall(protocol.encode(reply))
    return 0


@dataclass(frozen=True)
class _Meter:
    """What a document used since the meter was made."""

    wall: float
    cpu: float

    @classmethod
    def start(cls) -> _Meter:
        _reset_peak()
        return cls(time.monotonic(), _cpu_used())

    def ocr_seconds_left(self, limits: ParseLimits) -> float:
        """Wall time that remains for OCR, which only a wall clock can stop.

        What remains of the CPU share lasts as much longer as the machine was shared so far.
        """
        wall_used = time.monotonic() - self.wall
        cpu_used = _cpu_used() - self.cpu
        shared = max(1.0, wall_used / max(cpu_used, 0.01))
        wall = OCR_TIME_SHARE * limits.wall_seconds - wall_used
        cpu = OCR_TIME_SHARE * limits.cpu_seconds - cpu_used
        return min(wall, cpu * shared)


def _receive(channel: socket.socket) -> tuple[protocol.Request, int] | None:
    """The next request and its descriptor; None when the parent is done."""
    prefix, descriptors, _, _ = socket.recv_fds(channel, protocol.PREFIX.size, 1)
    if not prefix:
        return None
    prefix += _receive_exactly(channel, protocol.PREFIX.size - len(prefix))
    (length,) = protocol.PREFIX.unpack(prefix)
    body = _receive_exactly(channel, length)
    return protocol.decode_request(body), descriptors[0]


def _receive_exactly(channel: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        piece = channel.recv(count - len(data))
        if not piece:
            raise EOFError("the parent closed the socket inside a request")
        data += piece
    return data


def _answer(
    request: protocol.Request,
    descriptor: int,
    limits: ParseLimits,
    engine: OcrEngine | None,
    channel: socket.socket,
) -> protocol.Reply:
    meter = _Meter.start()
    _allow_cpu(meter.cpu + limits.cpu_seconds)

    def before_render() -> None:
        channel.sendall(protocol.encode(protocol.Rendering(request.number)))

    context = ReadContext(
        limits=limits,
        render=request.render,
        before_render=before_render,
        ocr=engine,
        ocr_seconds_left=lambda: meter.ocr_seconds_left(limits),
    )
    checksum: str | None = None
    try:
        data = _read_all(descriptor, limits.max_input_bytes)
        checksum = hashlib.sha256(data).hexdigest()
        outcome = _parse(data, request, context)
    except MemoryError:
        outcome = ParseFailure("too_large", "parsing needs more memory than the limit allows")
    except OSError:
        outcome = ParseFailure("unreadable", "the file could not be read to its end")
    return protocol.Reply(
        number=request.number,
        document=outcome if isinstance(outcome, ParsedDocument) else None,
        failure=outcome if isinstance(outcome, ParseFailure) else None,
        sha256=checksum,
        cpu_seconds=_cpu_used() - meter.cpu,
        peak_rss_bytes=_status_bytes("VmHWM") or _peak_of_process(),
        retire=_status_bytes("VmSize") > RETIRE_SHARE * limits.memory_bytes,
    )


def _parse(data: bytes, request: protocol.Request, context: ReadContext) -> ParseOutcome:
    if len(data) > context.limits.max_input_bytes:
        return ParseFailure("too_large", "the file grew beyond the size limit while it was read")
    try:
        return parse_document(data, context, claimed=request.claimed, bare_name=request.bare_name)
    except RecursionError:
        return ParseFailure("unreadable", "the file nests deeper than its reader goes")
    except OcrBroken:
        # The self-test passed, so this is the document's memory, not the installation.
        return ParseFailure("too_large", "no memory was left for OCR")
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - one document must not cost the worker
        # The boundary between one document and the run: a reader's own fault costs this document
        # and is reported by its type, never by its message, which may quote the document.
        return ParseFailure("unreadable", f"the reader failed with {type(error).__name__}")


def _read_all(descriptor: int, limit: int) -> bytes:
    """The file's bytes, one more than the limit at most; the descriptor is closed."""
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        pieces: list[bytes] = []
        total = 0
        while total <= limit and (piece := file.read(min(_CHUNK, limit + 1 - total))):
            pieces.append(piece)
            total += len(piece)
    return b"".join(pieces)


def _cpu_used() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _allow_cpu(until: float) -> None:
    """Moves the soft limit; the kernel counts whole seconds of the process's life."""
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (int(until) + 1, hard))


def _reset_peak() -> None:
    """Starts the kernel's peak of resident memory anew, where the kernel can do so."""
    path = Path("/proc/self/clear_refs")
    if path.exists():
        # A write to a proc file is no growth of a file, so the file size limit allows it.
        path.write_text("5", encoding="ascii")


def _status_bytes(name: str) -> int:
    """A memory figure of this process in bytes; 0 where there is no such figure."""
    path = Path("/proc/self/status")
    if not path.exists():
        return 0
    for line in path.read_text(encoding="ascii", errors="replace").splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    return 0


def _peak_of_process() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
