"""The control calls over HTTP, the dispatch by prefix, and the fixture's own alarm."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.provider_emulator.__main__ import BadArgument, read_faults, read_timing
from tests.provider_emulator.environment import PLANTED_KEYS
from tests.provider_emulator.faults import Fault
from tests.provider_emulator.world import Timing
from tests.support.emulator import EmulatorBroken, RunningEmulator, running_emulator


@pytest.fixture
def control(emulator: RunningEmulator) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=f"{emulator.base_url}/_control", timeout=10) as client:
        yield client


def test_clock_is_read_and_moved(emulator: RunningEmulator, control: httpx2.Client) -> None:
    assert control.get("/clock").json()["offset_seconds"] == 0
    assert control.post("/advance", json={"seconds": 90_000}).json()["offset_seconds"] == 90_000
    assert emulator.world.clock.offset_seconds == 90_000


def test_faults_are_planted_and_cleared(emulator: RunningEmulator, control: httpx2.Client) -> None:
    fault = {"provider": "openai", "op": "create", "kind": "status", "args": {"status": 500}}
    assert control.post("/faults", json=[fault]).json() == {"pending": 1}
    assert emulator.world.faults.take("openai", "create") == Fault(**fault)
    assert control.get("/faults").json() == []
    control.post("/faults", json=[fault])
    assert control.delete("/faults").json() == {"pending": 0}


def test_what_happened_is_read(emulator: RunningEmulator, control: httpx2.Client) -> None:
    world = emulator.world
    world.log("openai", "create", job_id="batch_1")
    world.executed["openai"]["row-1"] += 2
    world.jobs_created["openai"].append("batch_1")
    (call,) = control.get("/calls").json()
    assert (call["provider"], call["op"], call["facts"]) == (
        "openai",
        "create",
        {"job_id": "batch_1"},
    )
    assert control.get("/executed").json() == {"openai": {"row-1": 2}}
    assert control.get("/jobs").json() == {"openai": ["batch_1"]}


def test_timing_and_settings_are_set(emulator: RunningEmulator, control: httpx2.Client) -> None:
    control.post("/timing", json={"running_seconds": 0})
    control.post("/settings", json={"bedrock.min_rows": 1})
    assert emulator.world.timing == Timing(running_seconds=0)
    assert control.get("/timing").json()["running_seconds"] == 0
    assert control.get("/settings").json() == {"bedrock.min_rows": 1}


@pytest.mark.parametrize(
    ("path", "body", "complaint"),
    [
        pytest.param("/advance", {"seconds": -1}, "seconds", id="back"),
        pytest.param("/advance", {"seconds": "9"}, "seconds", id="text"),
        pytest.param("/advance", [1], "object", id="list"),
        pytest.param("/faults", {"provider": "openai"}, "list of faults", id="no-list"),
        pytest.param("/faults", ["status"], "mapping", id="no-fault"),
        pytest.param("/timing", {"sleeping_seconds": 1}, "sleeping_seconds", id="phase"),
        pytest.param("/timing", {"running_seconds": True}, "running_seconds", id="boolean"),
        pytest.param("/settings", [1], "object", id="settings"),
    ],
)
def test_refused(control: httpx2.Client, path: str, body: Any, complaint: str) -> None:
    response = control.post(path, json=body)
    assert response.status_code == 400
    assert complaint in response.json()["error"]
    assert control.post(path, content=b"{").status_code == 400


def test_an_unknown_prefix_is_404(emulator: RunningEmulator) -> None:
    response = httpx2.get(f"{emulator.base_url}/nothing/here")
    assert response.status_code == 404
    assert "/openai" in response.json()["error"]


def test_an_error_inside_the_emulator_fails_the_test() -> None:
    with pytest.raises(EmulatorBroken, match="RuntimeError"), running_emulator() as running:
        running.world.errors.append(RuntimeError("a bug"))


def test_environment_names_this_emulator_and_every_key(
    emulator: RunningEmulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    emulator.use(monkeypatch)
    assert os.environ["OPENAI_BASE_URL"] == f"{emulator.base_url}/openai/v1"
    assert set(PLANTED_KEYS) <= set(emulator.environment().values())


def test_timing_argument() -> None:
    assert read_timing("validating=1, running=5") == Timing(1, 5)
    assert read_timing("") == Timing()
    for wrong in ("running", "running=soon", "sleeping=1", "running=-1", "running=nan"):
        with pytest.raises(BadArgument, match="--timing"):
            read_timing(wrong)


@pytest.mark.parametrize("content", [b"{a: 1}", b"[", b"\xff", None])
def test_faults_argument(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "faults.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(BadArgument, match="--faults"):
        read_faults(path)


def test_it_runs_by_itself(repository: Path, tmp_path: Path) -> None:
    faults = tmp_path / "faults.yaml"
    faults.write_text("- {provider: openai, op: create, kind: status}\n", encoding="utf-8")
    command = [sys.executable, "-m", "tests.provider_emulator", "--port", "0"]
    process = subprocess.Popen(
        [*command, "--faults", str(faults), "--timing", "running=1"],
        cwd=repository,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        first = process.stdout.readline()
        exported = process.stdout.readline()
        url = first.split()[6]
        assert exported == f"export OPENAI_BASE_URL={url}/openai/v1\n"
        assert len(httpx2.get(f"{url}/_control/faults").json()) == 1
        assert httpx2.get(f"{url}/_control/timing").json()["running_seconds"] == 1
    finally:
        process.terminate()
        _, errors = process.communicate(timeout=20)
    assert "Traceback" not in errors


@pytest.mark.parametrize(
    "arguments", [["--port", "x"], ["--port", "99999"], ["--timing", "x"], ["--faults", "/none"]]
)
def test_bad_arguments_are_told(repository: Path, arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.provider_emulator", *arguments],
        cwd=repository,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    assert "error:" in done.stderr
    assert "Traceback" not in done.stderr
