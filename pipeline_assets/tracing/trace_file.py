"""Spans in a file of the state folder: JSON lines, readable by their owner alone, bounded.

Belongs here: writing, changing to the next file, dropping the oldest, and reading one trace again.
Does not belong here: the form of a line (`otlp_json.py`).
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pipeline_assets.tracing.exporter import ExportFailed
from pipeline_assets.tracing.otlp_json import LineUnreadable, decode_line, encode_line
from pipeline_assets.tracing.spans import Span, Value

FOLDER = "traces"
CURRENT = "spans.jsonl"
LARGEST_FILE = 16 * 2**20
LARGEST_TOTAL = 256 * 2**20
_OLDER = "spans-*.jsonl"


class TraceFile:
    """An exporter to `<state>/traces`."""

    name = "file"

    def __init__(
        self,
        state: Path,
        resource: Mapping[str, Value],
        *,
        largest_file: int = LARGEST_FILE,
        largest_total: int = LARGEST_TOTAL,
    ) -> None:
        self._folder = state / FOLDER
        self._resource = resource
        self._largest_file = largest_file
        self._largest_total = largest_total

    def export(self, traces: Iterable[list[Span]]) -> int:
        """Append a line a trace. Of what could not be written whole, no broken line is left.

        Raises:
            ExportFailed: the folder cannot be written, or the disk is full.
        """
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            with self._alone():
                return sum(self._append(spans) for spans in traces)
        except OSError as error:
            raise ExportFailed(
                f"the folder of traces cannot be written ({type(error).__name__}); look at its "
                "permissions and at the room on the disk"
            ) from error

    def _append(self, spans: list[Span]) -> int:
        line = encode_line(spans, self._resource) + b"\n"
        current = self._folder / CURRENT
        size = current.stat().st_size if current.exists() else 0
        if size and size + len(line) > self._largest_file:
            self._turn(current)
            size = 0
        descriptor = os.open(current, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            written = os.write(descriptor, line)
            if written != len(line):
                os.ftruncate(descriptor, size)
                raise OSError("the disk took a part of a line")
        finally:
            os.close(descriptor)
        return len(spans)

    def _turn(self, current: Path) -> None:
        """Begin another file, and drop the oldest ones that are too many."""
        older = _older(self._folder)
        last = int(older[-1].stem.removeprefix("spans-")) if older else 0
        current.rename(self._folder / f"spans-{last + 1:06d}.jsonl")
        kept = self._largest_file
        for file in reversed(_older(self._folder)):
            kept += file.stat().st_size
            if kept > self._largest_total:
                file.unlink()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One process at a time; the lock ends with the process, however that ends."""
        descriptor = os.open(self._folder / "lock", os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def read_trace(state: Path, trace_id: str) -> list[Span]:
    """The spans of one trace, each once, in the order in which they were written.

    A line that is no trace is left out: another program may have written it, and the ledger has
    everything anyhow.
    """
    folder = state / FOLDER
    wanted = trace_id.encode()
    found: dict[str, Span] = {}
    for file in [*_older(folder), folder / CURRENT]:
        if not file.is_file():
            continue
        with file.open("rb") as stream:
            for line in stream:
                if wanted in line:
                    found |= _spans_in(line, trace_id)
    return list(found.values())


def _spans_in(line: bytes, trace_id: str) -> dict[str, Span]:
    try:
        spans = decode_line(line)
    except LineUnreadable:
        return {}
    return {span.span_id: span for span in spans if span.trace_id == trace_id}


def _older(folder: Path) -> list[Path]:
    return sorted(folder.glob(_OLDER), key=lambda file: (len(file.name), file.name))
