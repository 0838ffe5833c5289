"""Public batch clients that were not written for the emulator run against it unchanged.

They run in processes of their own, as a user would run them: with the emulator's variables, an
empty home, and nothing patched. What each needed stands in `tests/provider_emulator/README.md`.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.provider_emulator.faults import Fault
from tests.provider_emulator.world import Timing
from tests.support.emulator import RunningEmulator

pytestmark = pytest.mark.slow

SCRIPTS = Path(__file__).parent / "third_party"
LIMIT_S = 90
ROWS = 4
MODELS = {
    "openai": "gpt-4.1-mini",
    "anthropic": "claude-haiku-4-5",
    "gemini": "gemini-2.5-flash",
}


def page_prompt(number: int) -> str:
    reference = f"doc-{number:016x}"
    return (
        f"=== {reference} document begins ===\n=== {reference} page 1 ===\n"
        f"Owner's Manual\nHeat Pump Dryer\nVolume {number}\n\n"
        f"=== {reference} document ends ==="
    )


PROMPTS = {f"row-{number}": page_prompt(number) for number in range(ROWS)}


@pytest.fixture
def schema(repository: Path) -> dict[str, Any]:
    path = repository / "pipeline_assets/workloads/equipment_manuals/output_schema.json"
    return json.loads(path.read_text(encoding="utf-8"))


Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(emulator: RunningEmulator, tmp_path: Path) -> Run:
    """Run a command to its end as a user with an empty home would."""
    emulator.world.timing = Timing(
        validating_seconds=0.1, running_seconds=0.3, cancelling_seconds=0.1
    )
    home = tmp_path / "home"
    home.mkdir()
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "COLUMNS": "200",  # tables of the command line are not wrapped
        **emulator.environment(),
    }

    def run_command(*command: str | Path, job: Any = None) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [str(part) for part in command],
            input=None if job is None else json.dumps(job),
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done

    return run_command


def run_script(run: Run, name: str, job: dict[str, Any]) -> dict[str, Any]:
    done = run(sys.executable, SCRIPTS / name, job=job)
    return json.loads(done.stdout.strip().splitlines()[-1])


def steadybatch(run: Run, tmp_path: Path, provider: str, schema: dict[str, Any]) -> dict[str, Any]:
    job = {
        "provider": provider,
        "model": MODELS[provider],
        "schema": schema,
        "prompts": PROMPTS,
        "checkpoint": str(tmp_path / "job.sqlite"),
    }
    return run_script(run, "steadybatch_job.py", job)


def expected_data(emulator: RunningEmulator) -> dict[str, Any]:
    return {key: json.loads(emulator.world.answer(text)) for key, text in PROMPTS.items()}


@pytest.mark.parametrize("provider", list(MODELS))
def test_steadybatch(
    emulator: RunningEmulator, run: Run, tmp_path: Path, schema: dict[str, Any], provider: str
) -> None:
    report = steadybatch(run, tmp_path, provider, schema)
    assert report["data"] == expected_data(emulator)
    assert (report["ok"], report["batches"], report["errors"]) == (ROWS, 1, {})
    assert sorted(emulator.world.executed[provider].values()) == [1] * ROWS


@pytest.mark.parametrize("provider", list(MODELS))
def test_steadybatch_sends_a_missing_line_again(
    emulator: RunningEmulator, run: Run, tmp_path: Path, schema: dict[str, Any], provider: str
) -> None:
    emulator.world.faults.add(Fault(provider, "lines", "missing", args={"index": 2}))
    report = steadybatch(run, tmp_path, provider, schema)
    assert report["data"] == expected_data(emulator)
    assert (report["missing"], report["batches"]) == (1, 2)
    assert sorted(emulator.world.executed[provider].values()) == [1] * (ROWS - 1) + [2]


def test_steadybatch_halves_a_batch_that_is_over_capacity(
    emulator: RunningEmulator, run: Run, tmp_path: Path, schema: dict[str, Any]
) -> None:
    code = {"code": "token_limit_exceeded", "message": "Enqueued token limit reached."}
    emulator.world.faults.add(Fault("openai", "job", "failed", args=code))
    report = steadybatch(run, tmp_path, "openai", schema)
    assert report["data"] == expected_data(emulator)
    assert (report["refused_for_capacity"], report["batches"]) == (1, 3)
    assert sorted(emulator.world.executed["openai"].values()) == [1] * ROWS


@pytest.fixture
def input_file(tmp_path: Path) -> Path:
    path = tmp_path / "requests.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for key, text in PROMPTS.items():
            body = {"model": "gpt-4.1-mini", "messages": [{"role": "user", "content": text}]}
            line = {
                "custom_id": key,
                "method": "POST",
                "url": "/v1/chat/completions",
                "body": body,
            }
            file.write(json.dumps(line) + "\n")
    return path


def batchwizard(run: Run, *arguments: str | Path) -> str:
    return run(Path(sys.executable).with_name("batchwizard"), *arguments).stdout


def read_lines(path: Path) -> dict[str, Any]:
    with path.open(encoding="utf-8", newline="\n") as lines:
        return {line["custom_id"]: line for line in map(json.loads, lines)}


def test_batchwizard_from_submitting_to_files(
    emulator: RunningEmulator, run: Run, tmp_path: Path, input_file: Path
) -> None:
    bad_row = {"match": {"custom_id": "row-1"}, "status": 400, "code": "invalid_value"}
    emulator.world.faults.add(Fault("openai", "row", "error", args=bad_row))
    batchwizard(run, "submit", input_file)
    (job_id,) = emulator.world.jobs_created["openai"]
    assert job_id in batchwizard(run, "status")
    out = tmp_path / "out"
    batchwizard(run, "watch", "--check-interval", "1", "--output-directory", out)
    results, errors = (read_lines(out / f"{job_id}_{kind}.jsonl") for kind in ("results", "errors"))
    expected = expected_data(emulator)
    assert {
        key: json.loads(line["response"]["body"]["choices"][0]["message"]["content"])
        for key, line in results.items()
    } == {key: data for key, data in expected.items() if key != "row-1"}
    assert {key: line["response"]["status_code"] for key, line in errors.items()} == {"row-1": 400}
    assert "completed" in batchwizard(run, "status", "--all").lower()
    assert re.search(rf"{job_id}.*completed.*3.*1", batchwizard(run, "list-jobs"))


def test_batchwizard_cancels(emulator: RunningEmulator, run: Run, input_file: Path) -> None:
    emulator.world.timing.running_seconds = 3_600
    batchwizard(run, "submit", input_file)
    (job_id,) = emulator.world.jobs_created["openai"]
    assert "cancelled successfully" in batchwizard(run, "cancel", job_id)
    assert re.search(rf"{job_id}.*cancel", batchwizard(run, "list-jobs"))
    assert emulator.world.count_calls("openai", "cancel") == 1


def parallem(run: Run, tmp_path: Path, strategy: str) -> list[str | None]:
    job = {
        "directory": str(tmp_path / f"agents-{strategy}"),
        "strategy": strategy,
        "model": "gpt-5-mini",
        "prompts": list(PROMPTS.values()),
    }
    return run_script(run, "parallem_agents.py", job)["answers"]


def test_parallem_online(emulator: RunningEmulator, run: Run, tmp_path: Path) -> None:
    answers = parallem(run, tmp_path, "sync")
    assert answers == [emulator.world.answer(text) for text in PROMPTS.values()]
    assert emulator.world.count_calls("openai", "answer") == ROWS
    assert parallem(run, tmp_path, "sync") == answers
    assert emulator.world.count_calls("openai", "answer") == ROWS  # from its own store


def test_parallem_batch(emulator: RunningEmulator, run: Run, tmp_path: Path) -> None:
    parallem(run, tmp_path, "batch")
    time.sleep(0.5)
    assert parallem(run, tmp_path, "batch") == [
        emulator.world.answer(text) for text in PROMPTS.values()
    ]
    assert len(emulator.world.jobs_created["openai"]) == 1
    assert Counter(emulator.world.executed["openai"].values()) == {1: ROWS}
