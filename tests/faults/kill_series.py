"""Kill -9 at random moments of batch runs, again and again, and count what it cost.

`make kill-test`, or `python -m tests.faults.kill_series --kills 500 --database sqlite`. A series is
one archive at one emulated provider. Moments are drawn over the length of an undisturbed run, and
each worker lives from one of them to the next; the last one is left alone, and then the provider's
record, the sources and the archive have to agree. Nine kills in ten hit a plain worker: a third
of them after a drawn time, a third right before or right after a drawn commit, a third while the
provider works on a drawn call. The tenth hits `tallybook run`, a process of its own. With
`--restarts` PostgreSQL is stopped under the workers as well.

The draws follow the seed; where a process was at that moment is the machine's own affair.
Does not belong here: the worker, the oracles (`tests/support`).
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from unittest.mock import patch

from starlette.requests import ClientDisconnect

from pipeline_assets.cli.run_lock import LOCK_NAME
from tests.provider_emulator.environment import environment
from tests.provider_emulator.faults import EVERY_PROVIDER, Fault
from tests.provider_emulator.server import build_app
from tests.provider_emulator.world import World
from tests.support.batch_shop import SCRUBBED_PREFIXES, BatchShop, make_shop, scrubbed
from tests.support.batch_worker import Ending, Workers, workers
from tests.support.command import COMMAND, REPOSITORY
from tests.support.emulator import serving
from tests.support.kill_oracles import violations_of
from tests.support.postgres import PostgresServer, fresh_database, postgres_server
from tests.support.postgres_restarts import RestartableServer, StopMode, restartable_server

Database = Literal["sqlite", "postgresql"]
SEED = 20_261_130
KILLS_A_SERIES, RESTARTS_A_SERIES = 10, 4
COMMAND_EVERY = 10
"""One kill in so many hits `tallybook run`."""
PROVIDERS = ("openai", "openai", "anthropic", "gemini")
COMMAND_LIMIT_S = 120.0
LIFE_SHARE_OF_A_COMMAND = 0.97
"""A command is killed within this share of an undisturbed one's length, since the end of a longer
life would mostly find it gone."""
CALLS = ("create", "create", "create", "upload", "download", "download", "retrieve", "delete")
"""Calls during which a worker is killed, the paid one most often."""
LONGEST_WAIT_FOR_A_CALL = 0.6
"""Share of an undisturbed run after which a worker is killed that does not make the drawn call."""
SLICE_S = 0.005
MOST_WORKERS_TO_THE_END = 3
"""A series whose workers keep ending with errors is given up, and counted as a violation."""
ACCEPTED_ENDINGS = frozenset({0, 3})
"""`tallybook run`: all is done; something waits."""
UNREACHABLE = "LedgerUnreachable"
UNREACHABLE_TEXT = "cannot be reached"


@dataclass(frozen=True)
class Weather:
    """Faults that a series has, so that something is under way when its workers die.

    Attributes:
        name: for people.
        faults: planted before the first worker. `after: 1` lets the canary's job pass.
        spoilt: answers are lost by it, so that records need another attempt.
    """

    name: str
    faults: tuple[Fault, ...] = ()
    spoilt: bool = False


def _fault(op: str, kind: str, *, after: int, times: int = 1, **args: Any) -> Fault:
    return Fault(EVERY_PROVIDER, op, kind, after=after, times=times, args=args)


WEATHERS = (
    Weather("fair"),
    Weather("fair"),
    Weather("missing rows", (_fault("lines", "missing", after=1, times=2, index=1),), True),
    Weather("expired half-way", (_fault("job", "expired", after=1, done=0.5),), True),
    Weather(
        "rate limited",
        (
            _fault("create", "status", after=1, times=3, status=429, retry_after=30),
            _fault("retrieve", "status", after=2, times=3, status=429),
        ),
    ),
    Weather("cut downloads", (_fault("download", "cut", after=1, times=4, bytes=200),)),
    Weather(
        "dropped answers",
        (
            _fault("create", "drop_after", after=1, times=2),
            _fault("retrieve", "drop_before", after=1, times=2),
        ),
    ),
)


@dataclass
class Tally:
    """What was done, and what it cost.

    Attributes:
        kills: processes that really died by SIGKILL.
        restarts: of PostgreSQL while a worker lived.
        series: archives that were worked to their end and looked into.
        violations: sentences, each with its series.
        by_kind: kills by kind, endings of workers by class.
    """

    kills: int = 0
    restarts: int = 0
    series: int = 0
    violations: list[str] = field(default_factory=list)
    by_kind: Counter[str] = field(default_factory=Counter)

    def summary(self) -> str:
        """The one line at the end."""
        return (
            f"kills={self.kills} restarts={self.restarts} series={self.series} "
            f"violations={len(self.violations)}"
        )


@dataclass(frozen=True)
class Yardstick:
    """How long an undisturbed run is.

    Attributes:
        started: seconds until a worker had opened the ledger.
        seconds: from there to the end of a plain worker.
        commits: transactions that it ended.
        command_seconds: of `tallybook run`, from its lock to its end.
    """

    started: float
    seconds: float
    commits: int
    command_seconds: float


@dataclass
class Series:
    """One archive, its provider and its workers.

    Attributes:
        shop: documents and settings.
        world: the provider's.
        workers: start and end workers.
        weather: its faults.
        tally: what is counted.
        cluster: the PostgreSQL to restart; None where it is not restarted.
    """

    shop: BatchShop
    world: World
    workers: Workers
    weather: Weather
    tally: Tally
    cluster: RestartableServer | None = None

    @property
    def name(self) -> str:
        """For messages."""
        return f"{self.shop.folder.name} ({self.shop.provider}, {self.weather.name})"

    def variables(self) -> dict[str, str]:
        """The environment of its workers."""
        return environment(self.world.base_url) | self.shop.variables()

    def violate(self, sentence: str) -> None:
        """Count something that must not be."""
        self.tally.violations.append(f"{self.name}: {sentence}")

    def start(self, **more: Any) -> int:
        """Start a plain worker."""
        return self.workers.start(self.shop.folder, self.variables(), **more)

    def live(self, seconds: float) -> bool:
        """Let a plain worker live for so long, then kill it; False if it had ended before."""
        pid = self.start()
        self._sleep(pid, seconds)
        os.kill(pid, 9)  # its parent keeps its number until it is waited for
        return self._killed(self.workers.wait(pid), "after a time")

    def live_to_commit(self, number: int, *, before: bool) -> bool:
        """Let a plain worker live to so many ends of transactions."""
        pid = self.start(die_at_commit=number, die_before=before)
        where = "before a commit" if before else "after a commit"
        return self._killed(self.workers.wait(pid), where)

    def live_to_call(self, op: str, seconds: float) -> bool:
        """Kill a plain worker while the provider works on its first such call, or after a time.

        The provider does what it was asked for; there is nobody any more to hear of it.
        """
        pids: list[int] = []
        log = self.world.log

        def log_and_kill(provider: str, asked: str, **facts: Any) -> None:
            log(provider, asked, **facts)
            if asked == op and pids:
                os.kill(pids.pop(), 9)

        with patch.object(self.world, "log", log_and_kill):
            pid = self.start()
            pids.append(pid)
            self._sleep(pid, seconds, until=lambda: not pids)
            where = f"during {op}" if not pids else "after a time"
            # Its parent keeps its number until it is waited for: killing it twice does no harm.
            os.kill(pid, 9)
        return self._killed(self.workers.wait(pid), where)

    def live_through_restart(self, seconds: float, mode: StopMode) -> bool:
        """Restart PostgreSQL under a worker; False if that had ended before."""
        assert self.cluster is not None
        pid = self.start()
        self._sleep(pid, seconds)
        lived = not self.workers.has_ended(pid)
        self.cluster.restart(mode)
        ending = self.workers.wait(pid)
        if lived:
            self.tally.restarts += 1
            self.tally.by_kind[f"restart {mode}: {ending.error or ending.ended}"] += 1
        if ending.error != UNREACHABLE:
            self._look_at(ending)
        return lived

    def live_as_command(self, seconds: float) -> bool:
        """Let `tallybook run` live for so long from its lock on, then kill it."""
        with self.command() as process:
            deadline = time.monotonic() + seconds
            while process.poll() is None and time.monotonic() < deadline:
                time.sleep(SLICE_S)
            process.kill()
            _, errors = process.communicate()
        if process.returncode == -9:
            self.tally.kills += 1
            self.tally.by_kind["tallybook run"] += 1
            return True
        self.look_at_command(process.returncode, errors)
        return False

    def restart_under_command(self, seconds: float, mode: StopMode) -> bool:
        """Restart PostgreSQL under `tallybook run`, which may fail with one clear line."""
        assert self.cluster is not None
        with self.command() as process:
            deadline = time.monotonic() + seconds
            while process.poll() is None and time.monotonic() < deadline:
                time.sleep(SLICE_S)
            lived = process.poll() is None
            self.cluster.restart(mode)
            _, errors = process.communicate(timeout=COMMAND_LIMIT_S)
        if lived:
            self.tally.restarts += 1
            self.tally.by_kind[f"restart {mode}: tallybook run {process.returncode}"] += 1
        if process.returncode != 1 or UNREACHABLE_TEXT not in errors:
            self.look_at_command(process.returncode, errors)
        return lived

    @contextmanager
    def new_command(self) -> Iterator[subprocess.Popen[str]]:
        """Start `tallybook run` for the length of a block."""
        process = subprocess.Popen(
            [*COMMAND, "run", "--json"],
            cwd=self.shop.folder,
            env=scrubbed(self.variables())
            | {"PYTHONPATH": str(REPOSITORY), "PYTHONWARNINGS": "ignore"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
                process.communicate()

    @contextmanager
    def command(self) -> Iterator[subprocess.Popen[str]]:
        """The same, and the block begins when it has taken the lock of the state folder."""
        lock = self.shop.state / LOCK_NAME
        with self.new_command() as process:
            while process.poll() is None and not _held_by(lock, process.pid):
                time.sleep(SLICE_S)
            yield process

    def finish(self) -> None:
        """Leave workers alone until one says that nothing is open, then look at everything."""
        self.tally.series += 1
        ending = Ending("error")
        for _ in range(MOST_WORKERS_TO_THE_END):
            ending = self.workers.wait(self.start())
            self._look_at(ending)
            if ending.ended != "error":
                break
        if ending.ended == "error":
            self.violate("no worker came to an end, so nothing was looked into")
            return
        for sentence in violations_of(self.shop, self.world, spoilt=self.weather.spoilt):
            self.violate(sentence)

    def look_at_command(self, status: int, errors: str) -> None:
        """A command that ended by itself ended well."""
        if status not in ACCEPTED_ENDINGS:
            self.violate(f"tallybook run ended with {status}: {errors.strip()[-600:]}")

    def _sleep(self, pid: int, seconds: float, until: Callable[[], bool] = lambda: False) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not self.workers.has_ended(pid) and not until():
            time.sleep(SLICE_S)

    def _killed(self, ending: Ending, where: str) -> bool:
        if ending.ended == "killed":
            self.tally.kills += 1
            self.tally.by_kind[where] += 1
            return True
        self._look_at(ending)
        return False

    def _look_at(self, ending: Ending) -> None:
        """Nobody else works here, so a worker that was not killed ends well."""
        if ending.ended != "done":
            self.violate(
                f"a worker ended as {ending.ended}: {ending.error} {ending.message} {ending.trace}"
            )


def _held_by(lock: Path, pid: int) -> bool:
    try:
        return lock.read_text(encoding="utf-8").startswith(f"{pid} ")
    except FileNotFoundError:
        return False


@dataclass(frozen=True)
class House:
    """What all series of a program share.

    Attributes:
        folder: a temporary one.
        workers: start and end workers.
        tally: what is counted.
        server: PostgreSQL; None for SQLite.
        cluster: the same where it may be restarted.
    """

    folder: Path
    workers: Workers
    tally: Tally
    server: PostgresServer | None
    cluster: RestartableServer | None

    @contextmanager
    def series(self, name: str, provider: str, weather: Weather) -> Iterator[Series]:
        """A fresh archive, ledger and provider for the length of a block."""
        with ExitStack() as stack:
            url = None
            if self.server is not None:
                database = stack.enter_context(fresh_database(self.server))
                url = database.render_as_string(hide_password=False)
            world = World()
            stack.callback(world.close)
            world.base_url = stack.enter_context(serving(build_app(world)))
            for fault in weather.faults:
                world.faults.add(fault)
            shop = make_shop(self.folder / name, provider, url)
            series = Series(shop, world, self.workers, weather, self.tally, self.cluster)
            yield series
            # A client that is killed while it sends is no mistake of the emulator.
            for error in world.errors:
                if not isinstance(error, ClientDisconnect):
                    series.violate(f"the emulator itself failed: {error!r}")
            shutil.rmtree(shop.folder)


@contextmanager
def house(database: Database, *, restarts: bool = False) -> Iterator[House]:
    """Open what all series share."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tallybook-kills-")))
        cluster = stack.enter_context(restartable_server()) if restarts else None
        server = None if cluster is None else cluster.server
        if database == "postgresql" and server is None:
            server = stack.enter_context(postgres_server())
        started = stack.enter_context(workers())
        yield House(folder, started, Tally(), server, cluster)


def measure(at: House) -> Yardstick:
    """Run once undisturbed as a worker and once as a command; looked into like every series."""
    with at.series("undisturbed", "openai", WEATHERS[0]) as series:
        # The first one in a cold machine takes longer than all that follow.
        ending = series.workers.wait(series.start())
        series.finish()
    with at.series("command", "openai", WEATHERS[0]) as series:
        with series.command() as process:
            locked = time.monotonic()
            _, errors = process.communicate(timeout=COMMAND_LIMIT_S)
        command_seconds = time.monotonic() - locked
        series.look_at_command(process.returncode, errors)
        series.finish()
    return Yardstick(
        started=ending.started,
        seconds=ending.seconds - ending.started,
        commits=ending.commits,
        command_seconds=command_seconds,
    )


@dataclass(frozen=True)
class Plan:
    """How far a program goes.

    Attributes:
        kills: so many.
        restarts: of PostgreSQL, so many.
        seed: of the draws.
        seconds: no further series is begun after so long; None for no limit.
    """

    kills: int
    restarts: int = 0
    seed: int = SEED
    seconds: float | None = None


def run_series(at: House, plan: Plan, yard: Yardstick, *, tell: bool = False) -> Tally:
    """Begin one series after the other until there were enough kills and restarts."""
    tally = at.tally
    begun = time.monotonic()
    number = 0
    while tally.kills < plan.kills or tally.restarts < plan.restarts:
        if plan.seconds is not None and time.monotonic() - begun > plan.seconds:
            break
        told = len(tally.violations)
        rng = random.Random(f"{plan.seed}-{number}")
        weather, provider = rng.choice(WEATHERS), rng.choice(PROVIDERS)
        with at.series(f"series-{number}", provider, weather) as series:
            _disturb(series, plan, yard, rng)
            series.finish()
        number += 1
        if tell:
            for sentence in tally.violations[told:]:
                print(f"VIOLATION {sentence}", flush=True)
            seconds = time.monotonic() - begun
            print(f"{seconds:6.0f} s  {series.name}  {tally.summary()}", flush=True)
    return tally


def _disturb(series: Series, plan: Plan, yard: Yardstick, rng: random.Random) -> None:
    """The lives of a series' workers, each ended by a kill or met by a restart."""
    tally = series.tally
    kills = min(KILLS_A_SERIES, max(0, plan.kills - tally.kills))
    restarts = min(RESTARTS_A_SERIES, max(0, plan.restarts - tally.restarts))
    lives = ["kill"] * kills + ["restart"] * restarts
    rng.shuffle(lives)
    moments = sorted(rng.random() for _ in lives)
    gaps = [moment - before for before, moment in zip([0.0, *moments], moments, strict=False)]
    for life, gap in zip(lives, gaps, strict=True):
        if life == "restart":
            _restart(series, yard, rng, gap)
        else:
            _kill(series, yard, rng, gap)


def _restart(series: Series, yard: Yardstick, rng: random.Random, gap: float) -> None:
    mode: StopMode = rng.choice(("fast", "immediate"))
    if rng.randrange(COMMAND_EVERY) == 0:
        series.restart_under_command(rng.random() * yard.command_seconds, mode)
    else:
        series.live_through_restart(yard.started + gap * yard.seconds, mode)


def _kill(series: Series, yard: Yardstick, rng: random.Random, gap: float) -> None:
    # Counted, not drawn: exactly one in ten.
    if series.tally.kills % COMMAND_EVERY == COMMAND_EVERY - 1:
        share = rng.random() * LIFE_SHARE_OF_A_COMMAND
        series.live_as_command(share * yard.command_seconds)
        return
    kind = rng.choice(("time", "commit", "call"))
    if kind == "time":
        series.live(yard.started + gap * yard.seconds)
    elif kind == "commit":
        number = 1 + int(gap * yard.commits)
        series.live_to_commit(number, before=rng.random() < 0.5)
    else:
        longest = LONGEST_WAIT_FOR_A_CALL * yard.seconds
        series.live_to_call(rng.choice(CALLS), yard.started + longest)


def main(arguments: list[str] | None = None) -> int:
    """Run it; 1 where something was lost, paid twice or published twice."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.kill_series", description=__doc__)
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--database", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--restarts", type=int, default=0, help="of PostgreSQL, under the workers")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--minutes", type=float, help="begin no further series after so long")
    chosen = parser.parse_args(arguments)
    if chosen.restarts and chosen.database != "postgresql":
        parser.error("--restarts needs --database postgresql")
    for name in list(os.environ):
        # Nothing of one's own settings and keys; which PostgreSQL the tests use may be said.
        if name.startswith(SCRUBBED_PREFIXES) and not name.startswith("TALLYBOOK_TEST_"):
            del os.environ[name]
    seconds = None if chosen.minutes is None else chosen.minutes * 60
    plan = Plan(chosen.kills, chosen.restarts, chosen.seed, seconds)
    with house(chosen.database, restarts=bool(chosen.restarts)) as at:
        yard = measure(at)
        for sentence in at.tally.violations:
            print(f"VIOLATION {sentence}")
        print(f"undisturbed: {yard}", flush=True)
        tally = run_series(at, plan, yard, tell=True)
    for kind, count in sorted(tally.by_kind.items()):
        print(f"{count:6}  {kind}")
    print(tally.summary())
    return 1 if tally.violations else 0


if __name__ == "__main__":
    sys.exit(main())
