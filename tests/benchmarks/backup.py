"""Time, size and memory of backups: `python -m tests.benchmarks.backup --records 100000`.

Belongs here: an archive of synthetic records with a file for each document, and backing it up,
again, checking and restoring it, each in a process of its own. Does not belong here: making the
archive (`synthetic.py`, `pipeline.py`).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from pipeline_assets.backup.make import make_backup
from pipeline_assets.backup.restore import restore
from pipeline_assets.backup.verify import verify_backup
from resources.context import SilentProgress, open_context
from resources.settings import Settings, load_settings
from tests.benchmarks.pipeline import SEED

PHASES = ("backup", "again", "verify", "restore")


def keep_sources(settings: Settings, records: int) -> None:
    """A file for each document, as ingest keeps them: what makes a backup slow is their number."""
    with open_context(settings) as context:
        for number in range(records):
            data = f"{SEED}:{number}".encode()
            place = context.artifacts.path("source", hashlib.sha256(data).hexdigest())
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            place.write_bytes(data)


def run(phase: str, folder: Path, records: int) -> dict[str, float]:
    """One phase; seconds, bytes and the memory of this process."""
    settings = load_settings(state=folder / "state")
    if phase == "sources":
        keep_sources(settings, records)
        return {}
    started = time.perf_counter()
    size = 0
    if phase == "verify":
        verdict = verify_backup(folder / "backup", SilentProgress())
        assert verdict.faults == ()
        size = verdict.contents.bytes
    elif phase == "restore":
        new = settings.model_copy(update={"state": folder / "new"})
        restored = restore(
            new,
            folder / "backup",
            clock=new.clock,
            rng=random.Random(1),
            progress=SilentProgress(),
        )
        size = restored.contents.bytes
    else:
        with open_context(settings) as context:
            report = make_backup(context, folder / "backup", "bench")
        assert report.contents.lost_count == 0
        assert (report.new == 0) == (phase == "again")
        size = report.contents.bytes
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": seconds, "bytes": size, "peak_rss_mb": peak}


def measure(folder: Path, records: int) -> None:
    """The archive, then every phase on it."""
    for phase in ("prepare", "run"):
        start("tests.benchmarks.pipeline", phase, folder, records)
    start("tests.benchmarks.backup", "sources", folder, records)
    for phase in PHASES:
        found = start("tests.benchmarks.backup", phase, folder, records)
        print(
            f"{phase:8s} {found['seconds']:8.1f} s {found['bytes'] / 1e6:10.1f} MB "
            f"peak RSS {found['peak_rss_mb']:.0f} MB"
        )


def start(module: str, phase: str, folder: Path, records: int) -> dict[str, float]:
    """Run a phase in a process of its own."""
    command = [sys.executable, "-m", module, "--phase", phase]
    command += ["--folder", str(folder), "--records", str(records)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    """Measure, or run one phase."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--phase", choices=("sources", *PHASES))
    parser.add_argument("--folder")
    arguments = parser.parse_args()
    if arguments.phase:
        print(json.dumps(run(arguments.phase, Path(arguments.folder), arguments.records)))
        return
    with tempfile.TemporaryDirectory(prefix="tallybook-bench-") as name:
        measure(Path(name), arguments.records)


if __name__ == "__main__":
    main()
