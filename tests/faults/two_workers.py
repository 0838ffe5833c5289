"""Several workers on one ledger at once: nothing is done twice, and nobody ends with an error.

Belongs here: crowds of plain workers (each does what a daemon's ticks and runs do), two commands
`tallybook run` among them, and two real sensors. Does not belong here: kills (`kill_series.py`) and
the oracles (`tests/support/kill_oracles.py`).

The provider's clock runs ahead of real time while a crowd works, and never so fast that a call at
the provider outlives a lease or the time in which a new job may stay unlisted: a provider's own
clock does neither.
"""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from unittest.mock import patch

from pipeline_assets.accept.judge_batches import judge_batches
from pipeline_assets.collect.collect_batches import collect_batches
from pipeline_assets.ingest.parse_documents import parse_documents
from pipeline_assets.ingest.scan import scan_folder
from pipeline_assets.parser_settings import parser_settings
from pipeline_assets.prepare.freeze import freeze_manifest
from pipeline_assets.publish.publish_accepted import publish_accepted
from pipeline_assets.submit.submit_batches import submit_batches
from pipeline_assets.versions import open_version
from resources.context import Context, open_context
from resources.ledger.jobs import find_jobs
from tests.faults.kill_series import ACCEPTED_ENDINGS, COMMAND_LIMIT_S, Series
from tests.provider_emulator.environment import environment
from tests.provider_emulator.world import World
from tests.support.batch_worker import OPEN_BATCHES, Ending
from tests.support.kill_oracles import violations_of
from tests.support.sensor_ticks import ticker

BEAT_S = 0.1
STEP_S = 6.0
"""Virtual seconds a beat while calls are made: a lease of 300 s lasts 5 real ones."""
QUIET_S, QUIET_STEP_S = 0.4, 90.0
"""When no call came for so long everybody waits, and time goes on in larger steps: shorter ones
than the three minutes in which a new job may stay unlisted."""
VALIDATING_S, RUNNING_S = 3.0, 40.0

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


def hasten(world: World) -> None:
    """Make the provider's phases short, so that a slower clock is enough."""
    world.timing.validating_seconds = VALIDATING_S
    world.timing.running_seconds = RUNNING_S


@contextmanager
def time_flies(world: World) -> Iterator[None]:
    """Move the provider's clock on while the block runs."""
    over = threading.Event()

    def fly() -> None:
        seen, since = len(world.calls), time.monotonic()
        while not over.wait(BEAT_S):
            now = len(world.calls)
            if now != seen:
                seen, since = now, time.monotonic()
            quiet = time.monotonic() - since >= QUIET_S
            world.clock.advance(QUIET_STEP_S if quiet else STEP_S)
            if quiet:
                since = time.monotonic()

    thread = threading.Thread(target=fly, name="clock")
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def run_crowd(series: Series, *, plain: int, commands: int) -> CrowdReport:
    """Let plain workers and commands work on one state folder until each has ended.

    Args:
        series: a fresh one.
        plain: so many workers.
        commands: so many `tallybook run`, started at the same moment.
    """
    hasten(series.world)
    report = CrowdReport()
    with time_flies(series.world), ExitStack() as stack:
        pids = [series.start(moves_clock=False) for _ in range(plain)]
        processes = [stack.enter_context(series.new_command()) for _ in range(commands)]
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
    """Two real sensors tick at the same moments; a run follows whenever one of them asks for one."""
    report = SensorReport()
    shop, world = series.shop, series.world
    variables = environment(world.base_url)
    with (
        patch.dict(os.environ, variables),  # this process submits and collects
        open_context(shop.settings(), clock=world.clock.now) as context,
    ):
        scan_folder(context)
        version = open_version(context, shop.key)
        parse_documents(context, parser_settings(version.spec))
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
