"""Workers of a batch version, each a process of its own that may be killed at any moment.

Run as a program it imports everything once, then forks for each order that it reads (a JSON object
a line). Forked before any thread was started, a fork is as good as a new process, and takes a
fraction of its time. A worker does what a daemon's ticks and runs do: it looks at jobs that are
due and walks through every stage, again and again, until nothing is open.

Does not belong here: who is killed and when, and what must come of it.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
import traceback
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

REPOSITORY = Path(__file__).resolve().parents[2]
FIRST_STEP_S, LONGEST_STEP_S = 700.0, 6 * 3600.0
"""How far an idle worker moves the emulator's clock: longer than a job's phases, then ever more."""
LIMIT_S = 240.0
"""A worker that is not done after so long says so."""
IDLE_S = 0.03
CLOCK_REFRESH_S = 0.02
RETRIES_MODULE = "pipeline_assets.prepare.retries"
_RETRIES = importlib.util.find_spec(RETRIES_MODULE) is not None

OPEN_BATCHES = (
    *("prepared", "submitting", "submitted", "running", "results_available"),
    *("reconciling", "quarantined"),
)

Ended = Literal["done", "held", "error", "stuck", "killed"]


@dataclass(frozen=True)
class Ending:
    """How a worker ended.

    Attributes:
        ended: nothing was open any more; the version was held; an error; out of time; killed.
        error: class of the error, or why the version is held.
        message: what it said.
        trace: its traceback, for an error that is not written for people.
        seconds: how long it lived.
        started: seconds until it had opened the ledger.
        commits: transactions that it ended.
        met: how often another worker was in its way, by class.
    """

    ended: Ended
    error: str = ""
    message: str = ""
    trace: str = ""
    seconds: float = 0.0
    started: float = 0.0
    commits: int = 0
    met: dict[str, int] = field(default_factory=dict)


class Workers:
    """The program below, from the other side."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._files: dict[int, Path] = {}

    def start(
        self,
        folder: Path,
        variables: dict[str, str],
        *,
        moves_clock: bool = True,
        die_at_commit: int = 0,
        die_before: bool = False,
    ) -> int:
        """Start a worker; its process number.

        Args:
            folder: where it leaves how it ended.
            variables: its environment, on top of the program's.
            moves_clock: it moves the emulator's clock when it has nothing to do; else it waits.
            die_at_commit: it is killed at so many ends of transactions; 0 for never.
            die_before: right before that commit, not right after it.
        """
        pid = self._ask(
            {
                "do": "start",
                "folder": str(folder),
                "variables": variables,
                "moves_clock": moves_clock,
                "die_at_commit": die_at_commit,
                "die_before": die_before,
            }
        )
        self._files[pid] = folder / f"ended-{pid}.json"
        return pid

    def has_ended(self, pid: int) -> bool:
        """Has it said how it ended?"""
        return self._files[pid].exists()

    def idle(self, pid: int) -> tuple[int, tuple[int, int]] | None:
        """Passes in which it found nothing to do, and the ledger's mark at the last of them."""
        file = self._files[pid].with_name(f"idle-{pid}.json")
        if not file.exists():
            return None
        told = json.loads(file.read_text(encoding="utf-8"))
        first, second = told["mark"]
        return told["count"], (first, second)

    def wait(self, pid: int) -> Ending:
        """Wait for its end."""
        ended_by = self._ask({"do": "wait", "pid": pid})
        file = self._files.pop(pid)
        if ended_by == signal.SIGKILL:
            file.unlink(missing_ok=True)
            return Ending("killed")
        if not file.exists():
            return Ending("error", "Gone", f"it ended with {ended_by} and said nothing")
        told = json.loads(file.read_text(encoding="utf-8"))
        file.unlink()
        return Ending(**told)

    def _ask(self, order: dict[str, Any]) -> int:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


@contextmanager
def workers() -> Iterator[Workers]:
    """Start the program for the length of a block."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.batch_worker"],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield Workers(process)
    finally:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.close()
        process.wait(LIMIT_S)
        process.stdout.close()


def retries_exist() -> bool:
    """Can records that wait for another try be frozen again in this tree?"""
    return _RETRIES


@dataclass
class _Tally:
    """What a worker counts, and the commit that it dies at."""

    die_at: int = 0
    die_before: bool = False
    commits: int = 0
    idle: int = 0
    met: dict[str, int] = field(default_factory=dict)

    def install(self) -> None:
        """Count the end of every transaction of this process, and die at the one that is meant."""
        from sqlalchemy.engine.default import DefaultDialect

        real = DefaultDialect.do_commit

        def do_commit(dialect: Any, connection: Any) -> None:
            self.commits += 1
            if self.commits == self.die_at and self.die_before:
                os.kill(os.getpid(), signal.SIGKILL)
            real(dialect, connection)
            if self.commits == self.die_at:
                os.kill(os.getpid(), signal.SIGKILL)

        DefaultDialect.do_commit = do_commit  # type: ignore[method-assign]

    def tell_idle(self, folder: Path, mark: tuple[int, int]) -> None:
        """Say that a whole pass changed nothing, and what the ledger's mark was then."""
        self.idle += 1
        _write(folder / f"idle-{os.getpid()}.json", {"count": self.idle, "mark": mark})

    def patiently(self, act: Callable[[], object]) -> None:
        """Do something; that another worker is at it is counted and no error."""
        from resources.ledger.leases import LeaseHeld, LeaseLost

        try:
            act()
        except (LeaseHeld, LeaseLost) as error:
            name = type(error).__name__
            self.met[name] = self.met.get(name, 0) + 1


def _work(order: dict[str, Any], tally: _Tally, begun: float) -> Ending:
    """Open the state folder and work until nothing is open."""
    from pipeline_assets.account.integrity import release_dead_leases
    from pipeline_assets.account.status import work_mark
    from resources import clock
    from resources.context import open_context
    from resources.settings import load_settings

    settings = load_settings()
    assert settings.clock_url is not None
    look = clock.virtual_clock(settings.clock_url, CLOCK_REFRESH_S)
    alone = bool(order["moves_clock"])
    with open_context(settings, clock=look) as context:
        started = time.monotonic() - begun
        release_dead_leases(context)
        step = FIRST_STEP_S
        mark = None
        while time.monotonic() - begun < LIMIT_S:
            _pass(context, tally, alone)
            stand = _stand(context)
            if stand is not None:
                ended, why = stand
                return Ending(ended, error=why, started=started)
            before, mark = mark, work_mark(context)
            if mark != before:
                step = FIRST_STEP_S
            elif alone:
                _advance(settings.clock_url, step)
                step = min(step * 2, LONGEST_STEP_S)
            else:
                tally.tell_idle(Path(order["folder"]), mark)
                time.sleep(IDLE_S)
    return Ending("stuck", error=f"not done after {LIMIT_S:.0f} s", started=started)


def _pass(context: Any, tally: _Tally, alone: bool) -> None:
    """Look at jobs, then every stage once, as a tick and a run do."""
    from pipeline_assets.accept.judge_batches import judge_batches
    from pipeline_assets.account.reconciliation.kept import keep_report
    from pipeline_assets.automation.pending import pending_versions
    from pipeline_assets.collect.collect_batches import collect_batches
    from pipeline_assets.ingest.parse_documents import parse_documents
    from pipeline_assets.ingest.scan import scan_declared
    from pipeline_assets.parser_settings import parser_settings
    from pipeline_assets.prepare.freeze import freeze_manifest
    from pipeline_assets.provider_jobs.monitor import look_at_due_jobs
    from pipeline_assets.publish.publish_accepted import publish_accepted
    from pipeline_assets.submit.submit_batches import submit_batches
    from pipeline_assets.versions import open_version

    key = context.settings.version
    stages: list[Callable[[], object]] = [
        lambda: look_at_due_jobs(context),
        lambda: pending_versions(context),
        lambda: scan_declared(context),
        lambda: parse_documents(
            context,
            parser_settings(open_version(context, key).spec),
            open_version(context, key).spec.workload,
        ),
        lambda: freeze_manifest(context, open_version(context, key)),
        lambda: submit_batches(context, open_version(context, key)),
        lambda: collect_batches(context, open_version(context, key)),
        lambda: judge_batches(context, open_version(context, key)),
        lambda: publish_accepted(context, open_version(context, key)),
        lambda: keep_report(context, key),
    ]
    if retries_exist():
        freeze_retries = importlib.import_module(RETRIES_MODULE).freeze_retries
        stages.insert(5, lambda: freeze_retries(context, open_version(context, key)))
    for stage in stages:
        if alone:
            stage()
        else:
            tally.patiently(stage)


def _stand(context: Any) -> tuple[Ended, str] | None:
    """How the version ended; None while something is open."""
    from pipeline_assets.account.status import OPEN_STATES, status
    from pipeline_assets.known_version import VersionNeverUsed

    try:
        found = status(context, context.settings.version)
    except VersionNeverUsed:
        return None
    if found.state != "active":
        return "held", found.state_reason
    moving = set(OPEN_STATES) - (set() if retries_exist() else {"retry_wait"})
    if any(state in moving for state in found.states):
        return None
    if any(state in OPEN_BATCHES for state in found.batches):
        return None
    return ("done", "") if found.states else None


def _advance(clock_url: str, seconds: float) -> None:
    url = clock_url.rpartition("/")[0] + "/advance"
    body = json.dumps({"seconds": seconds}).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data=body), timeout=30) as answer:
        answer.read()
    time.sleep(CLOCK_REFRESH_S)


def _child(order: dict[str, Any]) -> None:
    """One worker's life; whatever it ends with is told in a file."""
    begun = time.monotonic()
    from pipeline_assets.expected_errors import EXPECTED_ERRORS
    from pipeline_assets.ingest import parse_documents
    from tests.integration.stages.support import InProcessPool

    os.environ.update(order["variables"])
    parse_documents.ParserPool = InProcessPool  # type: ignore[misc,assignment]
    tally = _Tally(order["die_at_commit"], order["die_before"])
    tally.install()
    try:
        ending = _work(order, tally, begun)
    except EXPECTED_ERRORS as error:
        ending = Ending("error", type(error).__name__, str(error), "")
    except Exception as error:  # noqa: BLE001 - told to the parent, which fails on it
        ending = Ending("error", type(error).__name__, str(error), traceback.format_exc())
    told = {
        **vars(ending),
        "seconds": time.monotonic() - begun,
        "commits": tally.commits,
        "met": tally.met,
    }
    _write(Path(order["folder"]) / f"ended-{os.getpid()}.json", told)


def _write(file: Path, content: object) -> None:
    draft = file.with_suffix(".new")
    draft.write_text(json.dumps(content), encoding="utf-8")
    draft.rename(file)


def _import_everything() -> None:
    for provider in ("openai", "anthropic", "gemini"):
        importlib.import_module(f"resources.providers.{provider}.batch")
    for name in (
        *("anthropic", "openai", "google.genai", "psycopg", "alembic.command"),
        *("pipeline_assets.account.report", "pipeline_assets.account.integrity"),
        *("pipeline_assets.automation.pending", "pipeline_assets.collect.collect_batches"),
        *("pipeline_assets.accept.judge_batches", "pipeline_assets.ingest.scan"),
        *("pipeline_assets.ingest.parse_documents", "pipeline_assets.prepare.freeze"),
        *("pipeline_assets.publish.publish_accepted", "pipeline_assets.submit.submit_batches"),
        *("pipeline_assets.provider_jobs.monitor", "tests.integration.stages.support"),
        *("resources.ledger.postgres", "resources.ledger.sqlite"),
    ):
        importlib.import_module(name)
    if retries_exist():
        importlib.import_module(RETRIES_MODULE)


def main() -> None:
    """Fork for each order, or wait for one of the forks."""
    _import_everything()
    for line in sys.stdin:
        order = json.loads(line)
        if order["do"] == "wait":
            _, status = os.waitpid(order["pid"], 0)
            answer = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        else:
            answer = os.fork()
            if answer == 0:
                os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
                os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
                _child(order)
                os._exit(0)
        print(answer, flush=True)


if __name__ == "__main__":
    main()
