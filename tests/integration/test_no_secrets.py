"""No key is left anywhere by full runs: not in the ledger, artifacts, logs, Dagster or output."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.provider_emulator.environment import PLANTED_KEYS
from tests.provider_emulator.world import Timing
from tests.support.emulator import RunningEmulator

RUNS = 6
WAITS = 3


def text_manual(identifier: str) -> str:
    body = f"The {identifier} is a pump for small workshops. Keep children away from the machine.\n"
    return f"Circulation Pump {identifier}\nUser Manual\n\n" + body * 6


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    folder = tmp_path / "documents"
    folder.mkdir()
    for number in range(3):
        (folder / f"m{number}.txt").write_text(text_manual(f"WP-{100 + number}"), encoding="utf-8")
    return folder


def tallybook(
    emulator: RunningEmulator, tmp_path: Path, archive: Path, version: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            *(sys.executable, "-m", "pipeline_assets.cli.app", "run", "--version", version),
            *("--source", str(archive), "--state", str(tmp_path / "state"), "--json"),
        ],
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), **emulator.environment()},
        cwd=Path(__file__).resolve().parents[2],
        capture_output=True,
        text=True,
        timeout=120,
    )


def places_of(secret: bytes, folder: Path) -> list[str]:
    return [
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and secret in path.read_bytes()
    ]


@pytest.mark.slow
def test_planted_keys_are_nowhere(emulator: RunningEmulator, tmp_path: Path, archive: Path) -> None:
    emulator.world.timing = Timing(1, 2, 1)
    said = ""
    report: dict[str, Any] = {}
    for version in ("manuals-openai-batch-1", "manuals-anthropic-online-1"):
        for _ in range(RUNS):
            done = tallybook(emulator, tmp_path, archive, version)
            said += done.stdout + done.stderr
            assert done.returncode in (0, WAITS), done.stderr
            report = json.loads(done.stdout)
            if report["states"] == {"published": 3}:
                break
            request = urllib.request.Request(
                f"{emulator.base_url}/_control/advance", data=b'{"seconds": 900}'
            )
            urllib.request.urlopen(request, timeout=10).close()
        assert report["states"] == {"published": 3}, report
    assert len(PLANTED_KEYS) > 3
    for secret in PLANTED_KEYS:
        assert secret not in said
        assert places_of(secret.encode(), tmp_path / "state") == []
    # The search has looked at something, and would have found a key.
    assert places_of(b"WP-101", tmp_path / "state")
    (tmp_path / "state" / "leak.log").write_text(f"key={PLANTED_KEYS[0]}\n", encoding="utf-8")
    assert places_of(PLANTED_KEYS[0].encode(), tmp_path / "state") == ["leak.log"]
