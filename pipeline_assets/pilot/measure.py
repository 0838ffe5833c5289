"""What a pilot's steps took: time, processor time and memory, a line each in a file.

Belongs here: measuring one stage of a process, writing it down, and adding up. Does not belong
here: the stages.

A step writes a line when it begins and one for each stage that it has done. A step that was killed
leaves the line of its beginning without that of its end: its times are then known to be short. One
that failed leaves a line of that, and its stages count: they took their time.
"""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import msgspec

FILE = "measured.jsonl"
BEGUN, ENDED, FAILED = "begun", "ended", "failed"
"""Marks of a step, where a stage would stand."""
_MARKS = (BEGUN, ENDED, FAILED)
_STATUS = Path("/proc/self/status")


class Measured(msgspec.Struct, frozen=True):
    """One stage of one step.

    Attributes:
        step: `scan`, `parse`, `process` or `publish`.
        subject: the version's key; of `parse` the parser key, of `scan` nothing.
        stage: its name, or `begun`, `ended` or `failed` for the step as a whole.
        wall_s: seconds by the clock on the wall.
        cpu_s: seconds of processor time of the step's own process.
        children_cpu_s: the same of the processes that it started and that ended.
        peak_rss_bytes: highest resident memory of the process so far.
    """

    step: str
    subject: str
    stage: str
    wall_s: float = 0.0
    cpu_s: float = 0.0
    children_cpu_s: float = 0.0
    peak_rss_bytes: int = 0


@dataclass(frozen=True)
class Effort:
    """What stages took together.

    Attributes:
        wall_s: as in `Measured`, added up.
        cpu_s: likewise, child processes included.
        peak_rss_bytes: the highest.
        times: how often.
    """

    wall_s: float = 0.0
    cpu_s: float = 0.0
    peak_rss_bytes: int = 0
    times: int = 0


@dataclass
class Stopwatch:
    """Measures the stages of a step in this process; a block of it is the step.

    Attributes:
        file: where lines go.
        step: its name.
        subject: what it is about.
    """

    file: Path
    step: str
    subject: str
    _began: tuple[float, float, float] = field(init=False)

    def __enter__(self) -> Self:
        """Note that the step begins."""
        self._began = _now()
        self._write(Measured(self.step, self.subject, BEGUN))
        return self

    def __exit__(self, kind: type[BaseException] | None, *_error: object) -> None:
        """Note that the step is over, or that it failed."""
        self._write(self._since(self._began, ENDED if kind is None else FAILED))

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Measure a block; one that ends in an error counts too, since it took its time."""
        before = _now()
        try:
            yield
        finally:
            self._write(self._since(before, name))

    def _since(self, before: tuple[float, float, float], name: str) -> Measured:
        wall, own, children = (now - then for now, then in zip(_now(), before, strict=True))
        return Measured(self.step, self.subject, name, wall, own, children, peak_rss_bytes())

    def _write(self, line: Measured) -> None:
        with self.file.open("ab") as stream:
            # After a line that was cut, this one would else be a part of it.
            stream.write(b"\n" + msgspec.json.encode(line) + b"\n")


def peak_rss_bytes() -> int:
    """The highest resident memory of this process so far.

    Linux counts in `ru_maxrss` what the process was before it became this program, which is as
    large as the one that started it; the kernel's own status of the address space does not.
    """
    if _STATUS.is_file():
        for line in _STATUS.read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def read_measured(folder: Path) -> list[Measured]:
    """Every line that was written; one that was cut, by a full disk or a kill, is left out."""
    file = folder / FILE
    if not file.is_file():
        return []
    found = []
    for line in file.read_bytes().split(b"\n"):
        try:
            found.append(msgspec.json.decode(line, type=Measured))
        except msgspec.DecodeError:
            continue
    return found


def stages_of(lines: Sequence[Measured], step: str, subject: str) -> dict[str, Effort]:
    """Stage → what it took in all runs of a step, in the order of the first."""
    efforts: dict[str, Effort] = {}
    for line in lines:
        if (line.step, line.subject) != (step, subject) or line.stage in _MARKS:
            continue
        before = efforts.get(line.stage, Effort())
        efforts[line.stage] = Effort(
            before.wall_s + line.wall_s,
            before.cpu_s + line.cpu_s + line.children_cpu_s,
            max(before.peak_rss_bytes, line.peak_rss_bytes),
            before.times + 1,
        )
    return efforts


def was_cut(lines: Sequence[Measured], step: str, subject: str) -> bool:
    """Was a run of the step killed, so that the time of its last stage is not known?"""
    own = [line.stage for line in lines if (line.step, line.subject) == (step, subject)]
    return own.count(BEGUN) != own.count(ENDED) + own.count(FAILED)


def ended(lines: Sequence[Measured], step: str, subject: str) -> bool:
    """Was a step done to its end at least once?"""
    return any((line.step, line.subject, line.stage) == (step, subject, ENDED) for line in lines)


def _now() -> tuple[float, float, float]:
    times = os.times()
    return (
        time.monotonic(),
        times.user + times.system,
        times.children_user + times.children_system,
    )
