"""Several workers on one ledger at once: nothing is done twice, and nobody ends with an error.

Belongs here: crowds of plain workers (each does what a daemon's ticks and runs do), two commands
`tallybook run` among them, and two real sensors. Does not belong here: kills (`kill_series.py`) and
the oracles (`tests/support/kill_oracles.py`).

The provider's clock is moved on only when everybody waits: were it to jump while a worker is in the
middle of a call, that call would last longer than a lease and than the time in which a new job may
stay unlisted, which no call does.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from unittest.mock import patch

from pipeline_assets.accept.judge_batches import judge_batches
from pipeline_assets.collect.collect_batches import collect_batches
from pipeline_assets.ingest.parse_documents import parse_documents
from pipeline_assets.ingest.scan import scan_declared
from pipeline_assets.parser_settings import parser_settings
from pipeline_assets.prepare.freeze import freeze_manifest
from pipeline_assets.publish.publish_accepted import publish_accepted
from pipeline_assets.submit.submit_batches import submit_batches
from pipeline_assets.versions import open_version
from resources.context import Context, open_context
from resources.ledger.jobs import find_jobs
from tests.faults.kill_series import ACCEPTED_ENDINGS, COMMAND_LIMIT_S, Series
from tests.provider_emulator.environment import environment
from tests.support.batch_worker import LIMIT_S, OPEN_BATCHES, Ending
from tests.support.kill_oracles import violations_of
from tests.support.sensor_ticks import ticker

BEAT_S = 0.02
FIRST_STEP_S, LONGEST_STEP_S = 120.0, 6 * 3600.0
COMMAND_BEAT_S, COMMAND_STEP_S = 0.5, 60.0
"""While a command lives, which does not say what it is at: a minute each half second."""

IN_USE = "another run is using"
AT_IT = ("is being worked on by", "to another worker; its commit", "so its commit was refused")
"""What a command says that met another worker."""
ROUNDS = 40
LATER_S = 400.0


@dataclass
class CrowdReport:
    """How a crowd ended.

    Attributes:
        endings: of the plain workers.
        commands: exit status and last line of each command.
        met: how often a worker met another one, by class.
        violations: sentences.
    """

    endings: list[Ending] = field(default_factory=list)
    commands: list[tuple[int, str]] = field(default_factory=list)
    met: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)


@dataclass
class Clock:
    """Moves the provider's clock on whenever each plain worker says that nothing is to be done.

    All of them must have seen the same state of the ledger, so that none is in the middle of
    something: to a worker at work no time passes but the real one.
    """

    series: Series
    pids: list[int]
    processes: list[subprocess.Popen[str]]
    step: float = FIRST_STEP_S
    counts: dict[int, int] = field(default_factory=dict)
    mark: tuple[int, int] | None = None
    moved_at: float = field(default_factory=time.monotonic)

    def look(self) -> None:
        """Move it on, if everybody waits."""
        told = {
            pid: self.series.workers.idle(pid)
            for pid in self.pids
            if not self.series.workers.has_ended(pid)
        }
        idle = {pid: one for pid, one in told.items() if one is not None}
        marks = {mark for _, mark in idle.values()}
        fresh = all(count > self.counts.get(pid, 0) for pid, (count, _) in idle.items())
        if not told or len(idle) < len(told) or len(marks) != 1 or not fresh:
            return
        (mark,) = marks
        if any(process.poll() is None for process in self.processes):
            if time.monotonic() - self.moved_at < COMMAND_BEAT_S:
                return
            step = COMMAND_STEP_S
        else:
            self.step = FIRST_STEP_S if mark != self.mark else min(2 * self.step, LONGEST_STEP_S)
            step = self.step
        self.series.world.clock.advance(step)
        self.mark, self.moved_at = mark, time.monotonic()
        # A pass that was under way at the jump says nothing of the time after it.
        self.counts = {pid: count + 1 for pid, (count, _) in idle.items()}


def run_crowd(series: Series, *, plain: int, commands: int) -> CrowdReport:
    """Let plain workers and commands work on one state folder until each has ended.

    Args:
        series: a fresh one.
        plain: so many workers.
        commands: so many `tallybook run`, started at the same moment.
    """
    report = CrowdReport()
    with ExitStack() as stack:
        pids = [series.start(moves_clock=False) for _ in range(plain)]
        processes = [stack.enter_context(series.new_command()) for _ in range(commands)]
        clock = Clock(series, pids, processes)
        deadline = time.monotonic() + LIMIT_S
        # A worker that is not done by then says so itself.
        while time.monotonic() < deadline and not all(map(series.workers.has_ended, pids)):
            clock.look()
            time.sleep(BEAT_S)
        report.commands = [_end_of(process) for process in processes]
        report.endings = [series.workers.wait(pid) for pid in pids]
    for ending in report.endings:
        report.met.update(ending.met)
    report.violations = [
        *(sentence for ending in report.endings if (sentence := _wrong_worker(ending))),
        *(sentence for command in report.commands if (sentence := _wrong_command(*command))),
        *violations_of(series.shop, series.world, spoilt=series.weather.spoilt),
    ]
    return report


def _end_of(process: subprocess.Popen[str]) -> tuple[int, str]:
    _, errors = process.communicate(timeout=COMMAND_LIMIT_S)
    return process.returncode, errors.strip()[-600:]


def _wrong_worker(ending: Ending) -> str | None:
    if ending.ended == "done":
        return None
    return f"a worker ended as {ending.ended}: {ending.error} {ending.message} {ending.trace}"


def _wrong_command(status: int, said: str) -> str | None:
    if status in ACCEPTED_ENDINGS or any(words in said for words in (IN_USE, *AT_IT)):
        return None
    return f"tallybook run ended with {status}: {said}"


@dataclass
class SensorReport:
    """What two sensors came to.

    Attributes:
        rounds: moments at which both ticked.
        both: rounds in which both asked for a run.
        runs: keys of all runs that were asked for.
        violations: sentences.
    """

    rounds: int = 0
    both: int = 0
    runs: set[str] = field(default_factory=set)
    violations: list[str] = field(default_factory=list)


def run_sensors(series: Series) -> SensorReport:
    """Two real sensors tick at the same moments; a run follows whenever one asks for one."""
    report = SensorReport()
    shop, world = series.shop, series.world
    variables = environment(world.base_url)
    with (
        patch.dict(os.environ, variables),  # this process submits and collects
        open_context(shop.settings(), clock=world.clock.now) as context,
    ):
        scan_declared(context)
        version = open_version(context, shop.key)
        parse_documents(context, parser_settings(version.spec), version.spec.workload)
        freeze_manifest(context, version)
        with ticker(shop, variables) as one, ticker(shop, variables) as two:
            for _ in range(ROUNDS):
                one.go()
                two.go()
                asked = [one.told()["runs"], two.told()["runs"]]
                report.rounds += 1
                report.both += all(asked)
                report.runs.update(*asked)
                if any(asked):
                    _advance_version(context)
                elif _nothing_is_open(context):
                    break
                else:
                    world.clock.advance(LATER_S)
    report.violations = violations_of(shop, world, spoilt=False)
    return report


def _advance_version(context: Context) -> None:
    """What the run does that the sensors ask for."""
    version = open_version(context, context.settings.version)
    submit_batches(context, version)
    collect_batches(context, version)
    judge_batches(context, version)
    publish_accepted(context, version)


def _nothing_is_open(context: Context) -> bool:
    return not find_jobs(context.ledger, OPEN_BATCHES)
