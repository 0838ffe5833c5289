"""`make bench-pipeline`: from frozen manifest to archive, against a floor in the same run.

Belongs here: running the phases, each in a process of its own so that its memory is its own,
and printing figures. Does not belong here: the input (`synthetic.py`), the floor (`floor.py`).

Absolute times on a shared machine are noise; the ratio to the floor and the growth from the
small run to the large one are what to read. The last line is of the SQLite run.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
from sqlalchemy import make_url

from pipeline_assets.accept.judge_batches import judge_batches
from pipeline_assets.collect.collect_batches import collect_batches
from pipeline_assets.prepare.freeze import freeze_manifest
from pipeline_assets.publish.publish_accepted import publish_accepted
from pipeline_assets.submit import answer_embedded
from pipeline_assets.submit.submit_batches import submit_batches
from pipeline_assets.versions import open_version
from resources.context import Context, open_context
from resources.ledger.batches import find_batches
from resources.providers.baseline import BaselineProvider, Request, RequestBody
from resources.providers.port import split_lines
from resources.settings import load_settings
from tests.benchmarks.floor import write_floor
from tests.benchmarks.synthetic import Document, load_documents

SEED = 20261130
VERSION = "manuals-baseline-2"
"""Its rules are those that are measured; `--version` names another."""
SMALL = 10_000
"""Records of the first run, which the growth is read from."""
FLOOR_SHARD = 25_000


@dataclass(frozen=True)
class Figures:
    """What one run gave.

    Attributes:
        stages: seconds a stage.
        floor_seconds: seconds of the floor.
        peak_rss_mb: of the process that ran the stages.
        published: records in the archive at the end.
    """

    records: int
    stages: dict[str, float]
    floor_seconds: float
    peak_rss_mb: float
    published: int

    @property
    def seconds(self) -> float:
        return sum(self.stages.values())

    @property
    def rate(self) -> float:
        return self.records / self.seconds

    @property
    def ratio(self) -> float:
        return self.seconds / self.floor_seconds


class CannedProvider(BaselineProvider):
    """A provider whose answers were made before the clock was started."""

    def __init__(self, lines: Iterator[bytes]) -> None:
        super().__init__("canned", lambda _document, _pages: b"")
        self._lines = lines

    def answer_line(self, request: bytes) -> bytes:
        return next(self._lines)


def prepare(context: Context, folder: Path, records: int, key: str) -> dict[str, float]:
    """Documents, the frozen manifest, and the canned answers beside them."""
    version = open_version(context, key)
    started = time.perf_counter()
    load_documents(context, version, records, SEED)
    loaded = time.perf_counter()
    report = freeze_manifest(context, version)
    frozen = time.perf_counter()
    assert report.expected == records, report
    requests = msgspec.json.Decoder(Request)
    bodies = msgspec.json.Decoder(RequestBody)
    with (folder / "canned.jsonl").open("wb") as canned:
        for batch in find_batches(context.ledger, version.version_no, ("prepared",)):
            with context.artifacts.open("request", batch.request_artifact) as stream:
                for line in split_lines(stream):
                    request = requests.decode(line.data)
                    body = bodies.decode(request.body)
                    canned.write(_canned(request.custom_id, body) + b"\n")
    return {"load": loaded - started, "freeze": frozen - loaded}


def _canned(custom_id: str, body: RequestBody) -> bytes:
    found = re.search(r"XT-(\d+)", body.pages[0].text)
    assert found is not None
    text = Document(int(found[1]) - 1000, SEED).answer(body.document).decode()
    return msgspec.json.encode(
        {
            "custom_id": custom_id,
            "status_code": 200,
            "body": {"model": "canned", "text": text, "finish_reason": "stop"},
        }
    )


def run(context: Context, folder: Path, key: str) -> dict[str, object]:
    """The stages from the frozen manifest on, timed one by one."""
    version = open_version(context, key)
    with (folder / "canned.jsonl").open("rb") as canned:
        provider = CannedProvider(line.data for line in split_lines(canned))
        answer_embedded.embedded_provider = lambda _version: provider
        stages: dict[str, float] = {}
        for name, stage in (
            ("submit", submit_batches),
            ("collect", collect_batches),
            ("accept", judge_batches),
            ("publish", publish_accepted),
        ):
            started = time.perf_counter()
            report = stage(context, version)
            stages[name] = time.perf_counter() - started
            sys.stderr.write(f"{report}\n")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    with context.ledger.read() as connection:
        published = connection.exec_driver_sql("SELECT COUNT(*) FROM archive_heads").scalar_one()
    return {"stages": stages, "peak_rss_mb": peak, "published": published}


def measure(records: int, url: str | None, floor_url: str | None, key: str = VERSION) -> Figures:
    """One whole measurement in a folder of its own; phases are processes of their own."""
    with tempfile.TemporaryDirectory(prefix="tallybook-bench-") as name:
        folder = Path(name)
        _phase("prepare", folder, records, key, url)
        ran = _phase("run", folder, records, key, url)
        floor = _phase("floor", folder, records, key, url, floor_url)
    return Figures(
        records=records,
        stages=ran["stages"],
        floor_seconds=floor["seconds"],
        peak_rss_mb=ran["peak_rss_mb"],
        published=ran["published"],
    )


def _phase(
    phase: str,
    folder: Path,
    records: int,
    key: str,
    url: str | None,
    floor_url: str | None = None,
) -> dict:
    command = [sys.executable, "-m", "tests.benchmarks.pipeline", "--phase", phase]
    command += ["--folder", str(folder), "--records", str(records), "--version", key]
    if url:
        command += ["--ledger-url", url]
    if floor_url:
        command += ["--floor-url", floor_url]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def _run_phase(arguments: argparse.Namespace) -> None:
    folder = Path(arguments.folder)
    settings = load_settings(state=folder / "state", ledger_url=arguments.ledger_url)
    with open_context(settings) as context:
        if arguments.phase == "prepare":
            print(json.dumps(prepare(context, folder, arguments.records, arguments.version)))
        elif arguments.phase == "run":
            print(json.dumps(run(context, folder, arguments.version)))
        else:
            other = load_settings(state=folder / "floor", ledger_url=arguments.floor_url)
            with open_context(other) as target:
                seconds, rows = write_floor(context, target, FLOOR_SHARD)
            print(json.dumps({"seconds": seconds, "rows": rows}))


@contextmanager
def databases(kind: str) -> Iterator[tuple[str | None, str | None]]:
    """Ledger URLs for the pipeline and the floor: files for SQLite, a server's for PostgreSQL."""
    if kind == "sqlite":
        yield None, None
        return
    from tests.support.postgres import fresh_database, postgres_server

    with (
        postgres_server() as server,
        fresh_database(server) as first,
        fresh_database(server) as second,
    ):
        yield _with_password(first), _with_password(second)


def _with_password(url: object) -> str:
    return make_url(str(url) if isinstance(url, str) else url).render_as_string(  # pyright: ignore
        hide_password=False
    )


def show(kind: str, figures: Figures) -> None:
    """One run's lines."""
    print(f"{kind}: {figures.records} records, {figures.published} published")
    for name, seconds in figures.stages.items():
        print(f"  {name:8s} {seconds:8.2f} s {figures.records / seconds:10.0f} records/s")
    print(f"  {'all':8s} {figures.seconds:8.2f} s {figures.rate:10.0f} records/s")
    print(f"  floor    {figures.floor_seconds:8.2f} s, ratio {figures.ratio:.2f}")
    print(f"  peak RSS {figures.peak_rss_mb:.0f} MB")


def main() -> None:
    """Run the benchmark, or one phase of it."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--databases", default="postgresql,sqlite")
    parser.add_argument("--version", default=VERSION)
    parser.add_argument("--phase", choices=("prepare", "run", "floor"))
    parser.add_argument("--folder")
    parser.add_argument("--ledger-url")
    parser.add_argument("--floor-url")
    arguments = parser.parse_args()
    if arguments.phase:
        _run_phase(arguments)
        return
    figures = None
    for kind in arguments.databases.split(","):
        with databases(kind) as (url, floor_url):
            small = measure(min(SMALL, arguments.records), url, floor_url, arguments.version)
        show(kind, small)
        with databases(kind) as (url, floor_url):
            figures = measure(arguments.records, url, floor_url, arguments.version)
        show(kind, figures)
        growth = (figures.seconds / figures.records) / (small.seconds / small.records)
        print(f"  time a record, {figures.records} against {small.records}: {growth:.2f}")
    assert figures is not None
    print(
        f"records_per_s={figures.rate:.0f} ratio_to_floor={figures.ratio:.2f} "
        f"peak_rss_mb={figures.peak_rss_mb:.0f}"
    )


if __name__ == "__main__":
    main()
