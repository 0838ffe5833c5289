"""`make bench`, through a provider's files: from documents to an audited archive.

Belongs here: the emulator in a process of its own with answers that cost it nothing, the passes
over the stages until nothing is open, the report and the audit, each timed. Does not belong here:
the input (`synthetic.py`) and the built-in provider's figures (`pipeline.py`).

Requests are uploaded, jobs run, result files are downloaded, all over HTTP on loopback by the real
SDK. The time that the emulator takes to run its jobs is left out, as a provider's would be.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from pipeline_assets.accept.judge_batches import judge_batches
from pipeline_assets.canary.run import gate_of
from pipeline_assets.collect.collect_batches import collect_batches
from pipeline_assets.prepare.freeze import freeze_manifest
from pipeline_assets.prepare.retries import freeze_retries
from pipeline_assets.provider_jobs.monitor import look_at_due_jobs
from pipeline_assets.publish.publish_accepted import publish_accepted
from pipeline_assets.submit.submit_batches import submit_batches
from pipeline_assets.versions import OpenVersion, open_version
from resources.context import Context, open_context
from resources.ledger.jobs import find_jobs
from resources.ledger.versions import set_operating
from resources.settings import load_settings
from tests.benchmarks.pipeline import SEED
from tests.benchmarks.synthetic import Document, load_documents
from tests.provider_emulator import answers
from tests.provider_emulator.__main__ import serve
from tests.provider_emulator.environment import OPENAI_KEY, environment
from tests.provider_emulator.server import listen
from tests.provider_emulator.world import World
from tests.support.emulator_process import emulator_process

VERSION = "manuals-openai-batch-4"
STEP_SECONDS = 1_000
"""Longer than a job's phases, and than the pause between two looks at it."""
ROUNDS = 40
CLOCK_SECONDS = 0.6
OPEN = ("prepared", "submitting", "submitted", "running", "results_available", "reconciling")
_IDENTIFIER = re.compile(r"XT-(\d+)")


@dataclass(frozen=True)
class Figures:
    """What one run gave.

    Attributes:
        seconds: of every step; `provider` is the emulator's own and in no sum.
        peak_rss_mb: of the process after every step.
        counts: state → records, at the end.
        findings: of the audit.
    """

    records: int
    seconds: dict[str, float]
    peak_rss_mb: dict[str, float]
    counts: dict[str, int]
    findings: int
    holds: bool

    @property
    def pipeline(self) -> float:
        """Seconds from the frozen manifest to the archive."""
        return sum(self.seconds[name] for name in ("submit", "collect", "accept", "publish"))

    @property
    def all(self) -> float:
        """Seconds of everything of ours."""
        return sum(value for name, value in self.seconds.items() if name != "provider")


class SyntheticWorld(World):
    """An emulator whose answers about synthetic documents are looked up, not thought of."""

    def answer(self, user_text: str) -> str:
        found = _IDENTIFIER.search(user_text)
        prompt = answers.read_prompt(user_text)
        if found is None or prompt is None:
            return super().answer(user_text)  # of a canary
        return Document(int(found[1]) - 1000, SEED).answer(prompt[0]).decode()


class Emulator:
    """The emulator's control, for whoever moves its clock."""

    def __init__(self, url: str) -> None:
        self.url = url

    def advance(self, seconds: float) -> float:
        """Move its clock on and let it run what is due; the seconds that this took it."""
        started = time.perf_counter()
        _ask(f"{self.url}/_control/advance", json.dumps({"seconds": seconds}).encode())
        # A look at the list runs every job whose time has come; ours would give up waiting.
        _ask(f"{self.url}/openai/v1/batches?limit=100")
        # Our clock asks the emulator's again after half a second: no lease may span the leap.
        time.sleep(CLOCK_SECONDS)
        return time.perf_counter() - started


def _ask(url: str, data: bytes | None = None) -> bytes:
    headers = {"Authorization": f"Bearer {OPENAI_KEY}"}
    request = urllib.request.Request(url, data=data, headers=headers)
    with urllib.request.urlopen(request, timeout=3_600) as answer:
        return answer.read()


class Stopwatch:
    """Adds up what steps take, and how much memory the process had after them."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.peaks: dict[str, float] = {}

    def time(self, name: str, step: Callable[[], Any]) -> Any:
        """Run a step; what it returns."""
        started = time.perf_counter()
        found = step()
        self.add(name, time.perf_counter() - started)
        return found

    def add(self, name: str, seconds: float) -> None:
        """Count seconds, and look at the process's peak."""
        self.seconds[name] = self.seconds.get(name, 0.0) + seconds
        self.peaks[name] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def load(context: Context, records: int) -> dict[str, Any]:
    """Documents as ingest leaves them: the input, which no figure counts."""
    load_documents(context, open_version(context, VERSION), records, SEED)
    return {"seconds": {}, "peaks": {}}


def prepare(context: Context, records: int) -> dict[str, Any]:
    """The frozen manifest with its request files."""
    watch = Stopwatch()
    version = open_version(context, VERSION)
    # Nobody reviews here, so the queue would hold the version before its retries; and an answer
    # that is no good is as bad the second time, so the breaker would hold it during them.
    cause = context.cause("a benchmark has no reviewers and no luck with retries", "bench")
    for setting in ("backlog_review", "breaker_window"):
        set_operating(context.ledger, version.version_no, setting, "0", cause)
    report = watch.time("freeze", lambda: freeze_manifest(context, version))
    assert report.expected == records, report
    return {"seconds": watch.seconds, "peaks": watch.peaks}


def run(context: Context, emulator: Emulator) -> dict[str, Any]:
    """Every stage, round by round, until no batch is open and no record waits for a retry."""
    watch = Stopwatch()
    version = open_version(context, VERSION)
    _pass_canary(context, version, emulator, watch)
    for _ in range(ROUNDS):
        submitted = watch.time("submit", lambda: submit_batches(context, version))
        assert submitted.held is None, submitted
        watch.add("provider", emulator.advance(STEP_SECONDS))
        watch.time("poll", lambda: look_at_due_jobs(context))
        watch.time("collect", lambda: collect_batches(context, version))
        watch.time("accept", lambda: judge_batches(context, version))
        watch.time("publish", lambda: publish_accepted(context, version))
        _tell(watch)
        if _is_open(context, version):
            continue
        again = watch.time("freeze again", lambda: freeze_retries(context, version))
        if not again.records:
            if not _waits(context, version):
                break
            watch.add("provider", emulator.advance(6 * 3600))
    return {"seconds": watch.seconds, "peaks": watch.peaks}


def _pass_canary(
    context: Context, version: OpenVersion, emulator: Emulator, watch: Stopwatch
) -> None:
    for _ in range(ROUNDS):
        if gate_of(context, version).gate == "open":
            return
        look_at_due_jobs(context)
        collect_batches(context, version)
        if gate_of(context, version).gate != "open":
            submit_batches(context, version)
        watch.add("provider", emulator.advance(STEP_SECONDS))
    raise AssertionError(f"the canary never passed: {gate_of(context, version)}")


def _tell(watch: Stopwatch) -> None:
    told = ", ".join(f"{name} {value:.1f}" for name, value in watch.seconds.items())
    sys.stderr.write(f"  so far: {told}\n")


def _is_open(context: Context, version: OpenVersion) -> bool:
    return bool(find_jobs(context.ledger, OPEN, version_no=version.version_no, machine="batch"))


def _waits(context: Context, version: OpenVersion) -> bool:
    return bool(_states(context, version).get("retry_wait"))


def _states(context: Context, version: OpenVersion) -> dict[str, int]:
    with context.ledger.read() as connection:
        rows = context.ledger.dialect.fetch(
            connection,
            "SELECT s.state, COUNT(*) FROM records r "
            "JOIN record_state s ON s.record_no = r.record_no WHERE r.version_no = ? "
            "GROUP BY s.state",
            {"state": pl.String, "n": pl.Int64},
            (version.version_no,),
        )
    return dict(rows.sort("state").iter_rows())


def account(context: Context) -> dict[str, Any]:
    """The report with its page and outcomes, and the audit of everything."""
    from pipeline_assets.account.reconciliation.kept import keep_report
    from pipeline_assets.audit.run import audit

    watch = Stopwatch()
    version = open_version(context, VERSION)
    kept = watch.time("report", lambda: keep_report(context, VERSION))
    gc.collect()
    found = watch.time("audit", lambda: audit(context, VERSION))
    for finding in found.findings[:10]:
        sys.stderr.write(f"  {finding}\n")
    return {
        "seconds": watch.seconds,
        "peaks": watch.peaks,
        "counts": _states(context, version),
        "findings": len(found.findings),
        "holds": kept.report.account.invariant_holds,
    }


def serving() -> AbstractContextManager[str]:
    """The emulator, in a process of its own; its address."""
    return emulator_process("tests.benchmarks.emulated", "--phase", "serve")


def measure(records: int) -> Figures:
    """One whole measurement in a folder of its own; phases are processes of their own."""
    seconds: dict[str, float] = {}
    peaks: dict[str, float] = {}
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="tallybook-bench-") as name, serving() as url:
        for phase in ("load", "prepare", "run", "account"):
            found = _phase(phase, Path(name), records, url)
            seconds |= found["seconds"]
            peaks |= found["peaks"]
    return Figures(
        records=records,
        seconds=seconds,
        peak_rss_mb=peaks,
        counts=found["counts"],
        findings=found["findings"],
        holds=found["holds"],
    )


def _phase(phase: str, folder: Path, records: int, url: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.benchmarks.emulated", "--phase", phase]
    command += ["--folder", str(folder), "--records", str(records), "--url", url]
    variables = environment(url) | {"TALLYBOOK_CLOCK_URL": f"{url}/_control/clock"}
    done = subprocess.run(
        command, stdout=subprocess.PIPE, check=True, env={**os.environ, **variables}
    )
    return json.loads(done.stdout.splitlines()[-1])


def _run_phase(arguments: argparse.Namespace) -> None:
    if arguments.phase == "serve":
        world = SyntheticWorld()
        # What is left out of the figures need not be slow either.
        world.settings["openai.creations_per_hour"] = 10**6
        serve(world, listen(0))
        return
    settings = load_settings(state=Path(arguments.folder) / "state", version=VERSION)
    with open_context(settings) as context:
        if arguments.phase == "load":
            told = load(context, arguments.records)
        elif arguments.phase == "prepare":
            told = prepare(context, arguments.records)
        elif arguments.phase == "run":
            told = run(context, Emulator(arguments.url))
        else:
            told = account(context)
    print(json.dumps(told))


def show(figures: Figures) -> None:
    """One run's lines."""
    states = ", ".join(f"{count} {state}" for state, count in figures.counts.items())
    print(f"through the emulator's files: {figures.records} records: {states}")
    for name, seconds in figures.seconds.items():
        apart = "  (the emulator's own time)" if name == "provider" else ""
        print(
            f"  {name:12s} {seconds:8.2f} s {figures.records / max(seconds, 0.01):10.0f} records/s"
            f"   peak RSS {figures.peak_rss_mb[name]:5.0f} MB{apart}"
        )
    print(f"  the account adds up: {figures.holds}; findings of the audit: {figures.findings}")


def main() -> int:
    """Run the benchmark, or one phase of it; 1 where something is wrong with what it made."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--phase", choices=("serve", "load", "prepare", "run", "account"))
    parser.add_argument("--folder")
    parser.add_argument("--url")
    arguments = parser.parse_args()
    if arguments.phase:
        _run_phase(arguments)
        return 0
    small = measure(max(1, arguments.records // 10))
    show(small)
    figures = measure(arguments.records)
    show(figures)
    growth = (figures.all / figures.records) / (small.all / small.records)
    print(
        f"records={figures.records} seconds={figures.all:.0f} "
        f"pipeline_records_per_s={figures.records / figures.pipeline:.0f} "
        f"growth={growth:.2f} peak_rss_mb={max(figures.peak_rss_mb.values()):.0f} "
        f"findings={figures.findings}"
    )
    return 0 if figures.holds and not figures.findings else 1


if __name__ == "__main__":
    raise SystemExit(main())
