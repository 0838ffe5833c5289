"""A large result file, collected while the connection breaks: memory, and every byte.

`python -m tests.benchmarks.big_download --mib 1024`. The file is served by the emulator to the real
adapters: OpenAI's, which resumes by range, and Anthropic's, which has to start again. It is fetched
by `fetch_file` in a process of its own, whose highest resident memory is reported.
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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.provider_emulator.environment import environment
from tests.provider_emulator.faults import Fault
from tests.support.emulator import RunningEmulator, running_emulator

REPOSITORY = Path(__file__).resolve().parents[2]
CUTS = 3
LINE_BYTES = 4_000


@dataclass(frozen=True)
class Collected:
    """What came of a collection.

    Attributes:
        size: bytes of the artifact.
        peak_rss_mb: of the process that fetched it.
        identical: the artifact has the bytes that were served.
        lines: as counted while fetching.
        connections: how often the file was asked for.
    """

    size: int
    peak_rss_mb: float
    identical: bool
    lines: int
    connections: int


def write_lines(path: Path, mib: int) -> str:
    """Write so many MiB of result-like lines; the SHA-256 of the file."""
    digest = hashlib.sha256()
    rng = random.Random(mib)
    filling = "".join(rng.choices("abcdefghij \u2028ü", k=LINE_BYTES - 200))
    with path.open("wb") as file:
        number, size = 0, 0
        while size < mib << 20:
            block = b"".join(
                f'{{"custom_id":"a1b2c3d4e5f6-{number + at}","text":"{filling}"}}\n'.encode()
                for at in range(200)
            )
            number += 200
            digest.update(block)
            size += file.write(block)
    return digest.hexdigest()


def serve(emulator: RunningEmulator, provider: str, mib: int) -> tuple[str, str, str]:
    """Put a file behind a finished job of the emulator; job id, file reference, SHA-256."""
    world = emulator.world
    path = world.folder / "big.jsonl"
    digest = write_lines(path, mib)
    account = environment(emulator.base_url)[f"{provider.upper()}_API_KEY"]
    if provider == "openai":
        api: Any = world.state["openai"]
        file = api._keep(account, path, "big.jsonl", "batch_output", path.stat().st_size, 10**6)
        return "batch_big", file.id, digest
    from tests.provider_emulator.anthropic_jobs import Job

    now = world.clock.now()
    owner = f"{account}\n"  # a key and no workspace
    job = Job("msgbatch_big", owner, "2026-10-21", "", [], now, None, 0, ended=now, results=path)
    job.counts = dict.fromkeys(("succeeded", "errored", "canceled", "expired"), 0)
    api = world.state["anthropic"]
    api._jobs[job.id] = job
    return job.id, job.id, digest


def collect(provider: str, mib: int) -> Collected:
    """Serve a file, cut it three times, and fetch it in another process."""
    with running_emulator() as emulator, tempfile.TemporaryDirectory() as scratch:
        _touch(emulator, provider)
        job_id, ref, digest = serve(emulator, provider, mib)
        for share in (0.2, 0.35, 0.5):
            cut = {"bytes": int((mib << 20) * share / (1 if provider == "anthropic" else 2))}
            emulator.world.faults.add(Fault(provider, "download", "cut", args=cut))
        done = subprocess.run(
            [sys.executable, "-m", "tests.benchmarks.big_download"],
            input=json.dumps({"provider": provider, "job": job_id, "ref": ref, "store": scratch}),
            cwd=REPOSITORY,
            env={"PATH": "/usr/bin", "HOME": scratch, **emulator.environment()},
            capture_output=True,
            text=True,
            timeout=600,
        )
        if done.returncode != 0:
            raise RuntimeError(done.stderr[-2000:])
        found = json.loads(done.stdout)
        return Collected(
            size=found["size"],
            peak_rss_mb=found["peak_rss_mb"],
            identical=found["digest"] == digest,
            lines=found["lines"],
            connections=emulator.world.count_calls(provider, "download"),
        )


def _touch(emulator: RunningEmulator, provider: str) -> None:
    """A provider's part of the emulator is made at its first request."""
    import urllib.error
    import urllib.request

    try:
        urllib.request.urlopen(f"{emulator.base_url}/{provider}/v1/models", timeout=10).close()
    except urllib.error.HTTPError as refused:
        refused.close()  # without a key: it is made all the same


def fetch(order: dict[str, Any]) -> dict[str, Any]:
    """Fetch in this process, as the collect stage does."""
    from pipeline_assets.provider_jobs.fetch import fetch_file
    from resources.artifacts import ArtifactStore
    from resources.providers.port import ProviderOptions, RemoteFile

    options = ProviderOptions()
    if order["provider"] == "openai":
        from resources.providers.openai.batch import connect_batch as connect_openai

        client: Any = connect_openai(options, "/v1/responses")
    else:
        from resources.providers.anthropic.batch import connect_batch as connect_anthropic

        client = connect_anthropic(options)
    fetched = fetch_file(
        ArtifactStore(Path(order["store"])),
        client,
        "the big one",
        order["job"],
        RemoteFile("output", order["ref"]),
        rng=random.Random(1),
        sleep=lambda _: None,
    )
    client.close()
    return {
        "size": fetched.stored.size,
        "digest": fetched.stored.digest,
        "lines": fetched.lines,
        "peak_rss_mb": _peak_rss_kib() / 1024,
    }


def _peak_rss_kib() -> int:
    """Of this program alone: `ru_maxrss` of Linux counts whoever started it, from before exec."""
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text(encoding="utf-8").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main() -> int:
    """Measure, or fetch where an order comes in."""
    if len(sys.argv) == 1:
        print(json.dumps(fetch(json.load(sys.stdin))))
        return 0
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mib", type=int, default=1024)
    mib = parser.parse_args().mib
    for provider in ("openai", "anthropic"):
        found = collect(provider, mib)
        print(
            f"provider={provider} bytes={found.size} peak_rss_mb={found.peak_rss_mb:.0f} "
            f"cuts={CUTS} connections={found.connections} "
            f"identical={'yes' if found.identical else 'no'}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
