"""Keeps a few workers busy with one document each, and outlives whatever they do.

The parent's side: who parses what, deadlines, retries. It never parses. Single-threaded: one
selector waits for every worker, so that nothing is forked beside running threads. Use a pool
from one thread, one that stays alive: Linux ends the workers with the thread that started them.
"""

from __future__ import annotations

import os
import selectors
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Final

from pipeline_assets.ingest.parsing import deaths, protocol, sniff
from pipeline_assets.ingest.parsing.model import (
    SUPPORTED_MEDIA_TYPES,
    ParseFailure,
    ParseLimits,
    ParseOutcome,
    ParseReport,
    ParseTask,
    is_cacheable,
)
from pipeline_assets.ingest.parsing.opening import open_document
from pipeline_assets.ingest.parsing.process import Command, WorkerProcess, worker_command
from resources.parser_settings import PARSER_VERSION

START_SECONDS: Final = 60.0
"""A worker starts in half a second on a quiet machine."""
MAX_FAILED_STARTS: Final = 3
MAX_TRIES: Final = 3
GRACE_SECONDS: Final = 2.0
"""How long a worker that closed its socket may take to be gone before it is killed."""


class ParserUnavailable(RuntimeError):
    """No worker can be started, or it failed its self-test: no document may be judged."""


class PoolMisuse(RuntimeError):
    """The pool was used outside its `with` block, or by two callers at once."""


@dataclass(frozen=True)
class _Flight:
    """A task in a worker or waiting for one.

    Attributes:
        render_failure: Set once a worker died while it drew this document: text only, then.
        rendering: The text is read and pictures are being drawn.
    """

    task: ParseTask
    tries: int = 0
    render_failure: ParseFailure | None = None
    rendering: bool = False
    number: int = 0
    started: float = 0.0


@dataclass
class _Seat:
    """A worker's place in the pool. Free when `ready` and without a flight.

    `cpu_seconds` is what it used up to its last message, so that a death can be charged to the
    document in hand.
    """

    process: WorkerProcess
    deadline: float
    ready: bool = False
    cpu_seconds: float = 0.0
    flight: _Flight | None = None


class ParserPool:
    """Parses documents in at most `workers` processes, each under `limits`.

    Use as a context manager; leaving it ends every worker.
    """

    def __init__(
        self,
        workers: int,
        limits: ParseLimits,
        *,
        clock: Callable[[], float] = time.monotonic,
        command: Command = worker_command,
    ) -> None:
        if workers < 1:
            raise ValueError(f"a pool needs at least one worker, got {workers}")
        self._size = workers
        self._limits = limits
        self._clock = clock
        self._command = command
        self._seats: list[_Seat] = []
        self._selector: selectors.BaseSelector | None = None
        self._in_use = False
        self._failed_starts = 0
        self._last_number = 0
        self._ocr: bool | None = None

    def __enter__(self) -> ParserPool:
        self._selector = selectors.DefaultSelector()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for seat in list(self._seats):
            self._dismiss(seat)
        if self._selector is not None:
            self._selector.close()
            self._selector = None

    @property
    def ocr_available(self) -> bool:
        """Whether workers can read pictures; starts one to find out."""
        if self._ocr is None:
            self.check()
        return bool(self._ocr)

    def check(self) -> None:
        """Starts a worker, which proves itself on a known PDF and a known picture.

        Raises:
            ParserUnavailable: It did not start, or does not read what it must.
        """
        with self._used_alone():
            while not any(seat.ready for seat in self._seats):
                if not self._seats:
                    self._seat_worker()
                self._advance(deque())

    def parse_many(self, tasks: Iterable[ParseTask]) -> Iterator[ParseReport]:
        """One report for every task, as each is done.

        Tasks are taken one at a time as workers become free. Time that the caller spends on
        tasks and reports counts against no document.

        Raises:
            ParserUnavailable: No worker can be started.
        """
        with self._used_alone():
            source = iter(tasks)
            waiting: deque[_Flight] = deque()
            exhausted = False
            try:
                while True:
                    while not exhausted and len(waiting) + self._busy() < self._size:
                        with self._excused():
                            task = next(source, None)
                        exhausted = task is None
                        if task is not None:
                            waiting.append(_Flight(task))
                    reports = self._dispatch(waiting)
                    if not reports:
                        if exhausted and not waiting and not self._busy():
                            return
                        reports = self._advance(waiting)
                    for report in reports:
                        with self._excused():
                            yield report
            finally:
                # A caller that stopped early has no use for what is still in flight.
                for seat in [seat for seat in self._seats if seat.flight]:
                    self._dismiss(seat)

    @contextmanager
    def _used_alone(self) -> Iterator[None]:
        self._open_selector()
        if self._in_use:
            raise PoolMisuse("the pool is already in use; finish the other iteration first")
        self._in_use = True
        try:
            yield
        finally:
            self._in_use = False

    @contextmanager
    def _excused(self) -> Iterator[None]:
        """Time in which the parent does other things moves every deadline."""
        before = self._clock()
        try:
            yield
        finally:
            away = self._clock() - before
            for seat in self._seats:
                seat.deadline += away
                if seat.flight:
                    seat.flight = replace(seat.flight, started=seat.flight.started + away)

    def _open_selector(self) -> selectors.BaseSelector:
        if self._selector is None:
            raise PoolMisuse("the pool is not open; use it inside `with ParserPool(...) as pool:`")
        return self._selector

    def _busy(self) -> int:
        return sum(1 for seat in self._seats if seat.flight)

    def _dispatch(self, waiting: deque[_Flight]) -> list[ParseReport]:
        """Gives waiting tasks to free workers and starts workers for the rest.

        Returns:
            Reports of tasks whose file cannot be handed over.
        """
        reports: list[ParseReport] = []
        for seat in [seat for seat in self._seats if seat.ready and not seat.flight]:
            if not waiting:
                break
            report = self._hand_over(seat, waiting.popleft(), waiting)
            if report is not None:
                reports.append(report)
        starting = sum(1 for seat in self._seats if not seat.ready)
        while len(waiting) > starting and len(self._seats) < self._size:
            self._seat_worker()
            starting += 1
        return reports

    def _hand_over(
        self, seat: _Seat, flight: _Flight, waiting: deque[_Flight]
    ) -> ParseReport | None:
        opened = open_document(flight.task.path, self._limits.max_input_bytes)
        if isinstance(opened, ParseFailure):
            return _report(flight, opened, cacheable=opened.reason != "unreadable")
        self._last_number += 1
        request = protocol.Request(
            number=self._last_number,
            claimed=_claimed(flight.task),
            bare_name=sniff.is_bare(_name(flight.task)),
            render=flight.render_failure is None,
        )
        try:
            seat.process.send(request, opened)
        except OSError:
            # It died while it was free, which is no document's fault: the next one takes this.
            self._dismiss(seat)
            waiting.appendleft(flight)
            return None
        finally:
            os.close(opened)
        now = self._clock()
        seat.flight = replace(flight, tries=flight.tries + 1, number=request.number, started=now)
        seat.deadline = now + self._limits.wall_seconds
        return None

    def _advance(self, waiting: deque[_Flight]) -> list[ParseReport]:
        """Waits for the next message or deadline and acts on it."""
        held = [seat.deadline for seat in self._seats if seat.flight or not seat.ready]
        timeout = max(0.0, min(held) - self._clock()) if held else None
        reports: list[ParseReport] = []
        for key, _ in self._open_selector().select(timeout):
            reports.extend(self._hear(key.data, waiting))
        now = self._clock()
        for seat in list(self._seats):
            if now >= seat.deadline and (seat.flight or not seat.ready):
                reports.extend(self._bury(seat, waiting, "wall"))
        return reports

    def _hear(self, seat: _Seat, waiting: deque[_Flight]) -> list[ParseReport]:
        """Acts on what one worker sent; what it said before a lie still counts."""
        reports: list[ParseReport] = []
        try:
            messages = seat.process.receive()
            if messages is None:
                return self._bury(seat, waiting, None)
            for message in messages:
                report = self._act(seat, message)
                if report is not None:
                    reports.append(report)
        except protocol.ProtocolError:
            reports.extend(self._bury(seat, waiting, "protocol"))
        return reports

    def _act(self, seat: _Seat, message: protocol.FromWorker) -> ParseReport | None:
        if isinstance(message, protocol.SelfTestFailed):
            self._dismiss(seat)
            raise ParserUnavailable(f"the parser's self-test failed: {message.detail}")
        if isinstance(message, protocol.Hello):
            return self._welcome(seat, message)
        flight = seat.flight
        if flight is None or message.number != flight.number:
            raise protocol.ProtocolError("the worker answered what it was not asked")
        if isinstance(message, protocol.Rendering):
            seat.flight = replace(flight, rendering=True)
            return None
        seat.flight = None
        seat.cpu_seconds += message.cpu_seconds
        if message.retire:
            self._dismiss(seat)
        outcome = protocol.outcome_of(message)
        if flight.render_failure and _has_no_text(outcome):
            # Its pages are pictures, and those are what it cannot be read for.
            outcome = flight.render_failure
        return ParseReport(
            key=flight.task.key,
            outcome=outcome,
            sha256=message.sha256,
            wall_seconds=self._clock() - flight.started,
            cpu_seconds=message.cpu_seconds,
            peak_rss_bytes=message.peak_rss_bytes,
            cacheable=is_cacheable(outcome),
        )

    def _welcome(self, seat: _Seat, hello: protocol.Hello) -> None:
        if seat.ready:
            raise protocol.ProtocolError("the worker said hello twice")
        if hello.parser_version != PARSER_VERSION:
            self._dismiss(seat)
            raise ParserUnavailable(
                f"workers run parser version {hello.parser_version}, this process has "
                f"{PARSER_VERSION}: the package changed underneath; start again"
            )
        seat.ready = True
        seat.cpu_seconds = hello.cpu_seconds
        self._failed_starts = 0
        self._ocr = hello.ocr

    def _bury(
        self, seat: _Seat, waiting: deque[_Flight], stopped: deaths.Stopped | None
    ) -> list[ParseReport]:
        """Ends a worker that failed, and reports its document or tries that again."""
        flight = seat.flight
        self._remove(seat)
        ended = seat.process.end(grace_seconds=0.0 if stopped else GRACE_SECONDS)
        if stopped is None and ended.killed:
            stopped = "protocol"
        if not seat.ready:
            self._count_failed_start(ended.status, stopped)
            return []
        if flight is None:
            return []
        death = deaths.explain(ended.status, stopped, ended.peak_rss_bytes, self._limits)
        again = flight.tries < MAX_TRIES
        if again and flight.rendering and not flight.render_failure and not death.blameless:
            waiting.appendleft(replace(flight, render_failure=death.failure, rendering=False))
            return []
        if again and death.blameless:
            waiting.appendleft(replace(flight, rendering=False))
            return []
        return [
            ParseReport(
                key=flight.task.key,
                outcome=death.failure,
                sha256=None,
                wall_seconds=self._clock() - flight.started,
                cpu_seconds=max(0.0, ended.cpu_seconds - seat.cpu_seconds),
                peak_rss_bytes=ended.peak_rss_bytes,
                cacheable=not death.blameless and is_cacheable(death.failure),
            )
        ]

    def _count_failed_start(self, status: int, stopped: deaths.Stopped | None) -> None:
        self._failed_starts += 1
        if self._failed_starts >= MAX_FAILED_STARTS:
            how = (
                f"did not start within {START_SECONDS:g} s"
                if stopped == "wall"
                else f"ended at start ({_ending(status)})"
            )
            raise ParserUnavailable(
                f"parser workers {how}, {self._failed_starts} times in a row; check memory_bytes "
                f"({self._limits.memory_bytes}) and that the package is importable"
            )

    def _seat_worker(self) -> None:
        try:
            process = WorkerProcess(self._limits, self._command)
        except OSError as error:
            raise ParserUnavailable(
                f"no parser worker can be started ({error.strerror}); free processes, memory or "
                "descriptors and run again"
            ) from error
        seat = _Seat(process, deadline=self._clock() + START_SECONDS)
        self._seats.append(seat)
        self._open_selector().register(process.channel, selectors.EVENT_READ, seat)

    def _remove(self, seat: _Seat) -> None:
        if seat in self._seats:
            self._seats.remove(seat)
            self._open_selector().unregister(seat.process.channel)

    def _dismiss(self, seat: _Seat) -> None:
        self._remove(seat)
        seat.process.end()


def _report(flight: _Flight, outcome: ParseOutcome, *, cacheable: bool) -> ParseReport:
    return ParseReport(flight.task.key, outcome, None, 0.0, 0.0, 0, cacheable)


def _has_no_text(outcome: ParseOutcome) -> bool:
    return isinstance(outcome, ParseFailure) and outcome.reason == "no_text"


def _name(task: ParseTask) -> str:
    return task.name if task.name is not None else task.path.name


def _claimed(task: ParseTask) -> str | None:
    """A source's hint decides where it names a supported type, else the name's extension."""
    if task.media_type_hint in SUPPORTED_MEDIA_TYPES:
        return task.media_type_hint
    return sniff.claimed_media_type(_name(task))


def _ending(status: int) -> str:
    return f"status {status}" if status >= 0 else deaths.signal_name(-status)
