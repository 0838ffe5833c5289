"""Kill -9 between a provider's acceptance and our write: one job a batch, whatever happens.

Fifty times each provider, at a point drawn for each; then with the key rotated to another account
in between, where nothing may be sent again by itself.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline_assets.collect.collect_batches import collect_batches
from pipeline_assets.ingest import parse_documents
from pipeline_assets.ingest.scan import scan_declared
from pipeline_assets.parser_settings import parser_settings
from pipeline_assets.prepare.freeze import freeze_manifest
from pipeline_assets.provider_jobs.monitor import look_at_due_jobs
from pipeline_assets.submit.submit_batches import submit_batches
from pipeline_assets.versions import open_version
from resources import clock
from resources.context import Context, open_context
from resources.ledger.intents import intents_of
from resources.ledger.jobs import JobRow, find_job
from resources.settings import Settings, load_settings
from tests.e2e.providers import emulator as emulator_process
from tests.integration.stages.support import InProcessPool, manual
from tests.provider_emulator.environment import environment
from tests.support.dying_forks import DyingForks, dying_forks
from tests.support.killed_submission import POINTS

PROVIDERS = ("openai", "anthropic", "gemini", "bedrock")
KEYS = {
    "openai": "OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "gemini": "GEMINI_API_KEY",
    "bedrock": "AWS_ACCESS_KEY_ID",
}
KILLS_VARIABLE = "TALLYBOOK_TEST_KILLS"
REPETITIONS = int(os.environ.get(KILLS_VARIABLE, "50"))
"""Kills a provider; a machine that checks every change may set fewer."""
ROTATIONS = max(2, REPETITIONS // 5)
STEP_SECONDS = 400
"""Beyond a lease, and beyond the time in which a new job may stay unlisted."""
LOOKS = 8

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Return the address of an emulator in a process of its own."""
    with emulator_process() as address:
        yield address


@pytest.fixture(scope="module")
def killer() -> Iterator[DyingForks]:
    """Return what submits and dies."""
    with dying_forks("tests.support.killed_submission") as started:
        yield started


def control(url: str, path: str, content: Any = None) -> Any:
    data = None if content is None else json.dumps(content).encode()
    with urllib.request.urlopen(
        urllib.request.Request(f"{url}/_control/{path}", data=data), timeout=30
    ) as answer:
        return json.loads(answer.read() or b"null")


def jobs_of(url: str, provider: str) -> list[str]:
    return list(control(url, "jobs").get(provider, []))


def settings_of(folder: Path) -> Settings:
    return load_settings(
        state=folder / "state", source=folder / "documents", source_name="shop", parser_workers=1
    )


def make_template(folder: Path, url: str, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ledger with a canary that passed and one batch that is prepared."""
    monkeypatch.setattr(parse_documents, "ParserPool", InProcessPool)
    (folder / "documents").mkdir(parents=True)
    for number in range(100 if "bedrock" in key else 3):
        text = manual("Circulation Pump", f"WP-{100 + number}")
        (folder / "documents" / f"pump-{number}.txt").write_text(text, encoding="utf-8")
    with open_context(settings_of(folder)) as context:
        scan_declared(context)
        version = open_version(context, key)
        parse_documents.parse_documents(
            context, parser_settings(version.spec), version.spec.workload
        )
        freeze_manifest(context, version)
        submit_batches(context, version)
        for _ in range(4):
            control(url, "advance", {"seconds": STEP_SECONDS})
            look_at_due_jobs(context)
            outcomes = collect_batches(context, version).canaries
            if outcomes:
                assert set(outcomes.values()) == {"passed"}
                return
    raise AssertionError("the canary did not come back")


@pytest.fixture
def template(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Path:
    """Return a folder to copy for each repetition."""
    for name, value in environment(url).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("TALLYBOOK_CLOCK_URL", f"{url}/_control/clock")
    # The clock's offset is asked for again at once: this test moves it all the time.
    monkeypatch.setattr(clock.virtual_clock, "__defaults__", (0.0,))
    provider = request.node.callspec.params["provider"]
    folder = tmp_path / "template"
    make_template(folder, url, f"manuals-{provider}-batch-1", monkeypatch)
    return folder


def copied(template: Path, name: str) -> Path:
    folder = template.parent / name
    shutil.copytree(template / "state", folder / "state")
    (folder / "documents").symlink_to(template / "documents")
    return folder


def batch_in(context: Context, key: str) -> JobRow:
    job = find_job(context.ledger, f"{key}-m1-b1")
    assert job is not None
    return job


def look(folder: Path, url: str, key: str) -> JobRow:
    """A new worker comes, long afterwards."""
    control(url, "advance", {"seconds": STEP_SECONDS})
    with open_context(settings_of(folder)) as context:
        look_at_due_jobs(context)
        submit_batches(context, open_version(context, key))
        return batch_in(context, key)


def look_until_settled(folder: Path, url: str, key: str) -> JobRow:
    """Workers come until one finds the batch with its provider."""
    job = look(folder, url, key)
    for _ in range(LOOKS):
        if job.state not in ("submitting", "quarantined", "prepared"):
            break
        job = look(folder, url, key)
    return job


def use_account(provider: str, account: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    names = {KEYS[provider]: account}
    if provider == "gemini":
        names["GOOGLE_API_KEY"] = account
    for name, value in names.items():
        if name != "GOOGLE_API_KEY" or name in os.environ:
            monkeypatch.setenv(name, value)
    return {name: os.environ[name] for name in os.environ if name in names}


def kill(killer: DyingForks, folder: Path, key: str, point: str, account: dict[str, str]) -> None:
    ended_by = killer.die(
        state=str(folder / "state"),
        source=str(folder / "documents"),
        key=key,
        point=point,
        environment={
            **{n: v for n, v in os.environ.items() if n.startswith(("TALLYBOOK_", "AWS_"))},
            **{n: v for n, v in os.environ.items() if n.endswith(("_BASE_URL", "_API_KEY"))},
            **account,
        },
    )
    assert ended_by == signal.SIGKILL, "it died where it was told to"


@pytest.mark.parametrize("provider", PROVIDERS)
def test_one_job_a_batch(
    url: str, killer: DyingForks, template: Path, provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = f"manuals-{provider}-batch-1"
    rng = random.Random(provider)
    seen = dict.fromkeys(POINTS, 0)
    for number in range(REPETITIONS):
        account = use_account(provider, f"account{number:04}", monkeypatch)
        folder = copied(template, f"kill-{number}")
        point = rng.choices(POINTS, (1, 1, 3))[0]
        if provider == "anthropic" and point == "uploaded":
            point = "after"  # nothing is uploaded apart
        seen[point] += 1
        before = jobs_of(url, provider)
        kill(killer, folder, key, point, account)
        job = look_until_settled(folder, url, key)
        created = [name for name in jobs_of(url, provider) if name not in before]
        assert len(created) == 1, f"{point}: {created}, {job.state}"
        assert created[0] in str(job.provider_job_id), "the batch has the job that was made"
        assert job.state in ("submitted", "running", "results_available"), (point, job.state)
        shutil.rmtree(folder)
    print(f"{provider}: {REPETITIONS} kills {seen}, one job each")


@pytest.mark.parametrize("provider", PROVIDERS)
def test_another_account_proves_nothing(
    url: str, killer: DyingForks, template: Path, provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = f"manuals-{provider}-batch-1"
    for number in range(ROTATIONS):
        mine = f"mine{number:04}"
        account = use_account(provider, mine, monkeypatch)
        folder = copied(template, f"rotate-{number}")
        before = jobs_of(url, provider)
        point = ("after", "before")[number % 2]
        kill(killer, folder, key, point, account)
        at_kill = [name for name in jobs_of(url, provider) if name not in before]
        use_account(provider, f"other{number:04}", monkeypatch)
        job = [look(folder, url, key) for _ in range(3)][-1]
        assert job.state == "quarantined"
        with open_context(settings_of(folder)) as context:
            assert "account" in intents_of(context.ledger, job)[-1].detail
        now = [name for name in jobs_of(url, provider) if name not in before]
        assert now == at_kill, "nothing is sent under another account by itself"
        use_account(provider, mine, monkeypatch)
        job = look_until_settled(folder, url, key)
        created = [name for name in jobs_of(url, provider) if name not in before]
        assert len(created) == 1, (point, created)
        assert job.state in ("submitted", "running", "results_available")
        shutil.rmtree(folder)
