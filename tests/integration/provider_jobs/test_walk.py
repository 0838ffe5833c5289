"""A small archive through every stage, each provider and mode, real SDKs against the emulator."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipeline_assets.accept.judge_batches import judge_batches
from pipeline_assets.account.export import export_entries
from pipeline_assets.account.job_facts import job_facts
from pipeline_assets.account.report import build_report
from pipeline_assets.account.status import status
from pipeline_assets.automation.pending import pending_versions, run_key
from pipeline_assets.collect.collect_batches import collect_batches
from pipeline_assets.ingest import parse_documents
from pipeline_assets.prepare.freeze import freeze_manifest
from pipeline_assets.provider_jobs.monitor import look_at_due_jobs
from pipeline_assets.publish.publish_accepted import publish_accepted
from pipeline_assets.recovery.holds import release
from pipeline_assets.submit.submit_batches import SubmitReport, submit_batches
from pipeline_assets.versions import open_version
from resources.context import Context, open_context
from resources.ledger.alerts import open_alerts
from resources.ledger.canaries import list_canaries
from resources.ledger.jobs import find_jobs
from resources.ledger.moves import move_version
from resources.ledger.versions import set_operating
from resources.providers.admission import JobRefused
from resources.settings import load_settings
from tests.integration.stages.support import InProcessPool, Shop, manual
from tests.provider_emulator.faults import Fault
from tests.support.emulator import RunningEmulator

PROVIDERS = ("openai", "anthropic", "gemini", "bedrock")
OPEN = ("prepared", "submitting", "submitted", "running", "results_available", "quarantined")
STEPS = 14


@pytest.fixture
def context(
    emulator: RunningEmulator, tmp_path: Path, ledger_url: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Context]:
    """Return a context whose time and providers are the emulator's."""
    emulator.use(monkeypatch)
    monkeypatch.setattr(parse_documents, "ParserPool", InProcessPool)
    (tmp_path / "documents").mkdir()
    settings = load_settings(
        state=tmp_path / "state",
        ledger_url=ledger_url,
        source=tmp_path / "documents",
        source_name="shop",
        parser_workers=1,
    )
    with open_context(settings, clock=emulator.world.clock.now, rng=random.Random(7)) as opened:
        yield opened


def fill(context: Context, documents: int = 5, long: bool = False) -> None:
    for number in range(documents):
        text = manual("Circulation Pump", f"WP-{100 + number}")
        if long:
            text += "\f".join(["", *["A line about the pump and its care.\n" * 400] * 12])
        path = context.settings.source_folder / f"pump-{number}.txt"
        path.write_text(text, encoding="utf-8")


def prepare(context: Context, key: str) -> None:
    class KeyedShop(Shop):
        def version(self) -> Any:
            return open_version(self.context, key)

    version = KeyedShop(context.settings.source_folder, context).ingest()
    freeze_manifest(context, version)


def step(context: Context, key: str) -> SubmitReport:
    look_at_due_jobs(context)
    report = submit_batches(context, open_version(context, key))
    version = open_version(context, key)
    collect_batches(context, version)
    judge_batches(context, version)
    publish_accepted(context, version)
    return report


def settle(context: Context, emulator: RunningEmulator, key: str) -> None:
    """Every stage again and again, with time passing in between, until nothing is open."""
    for _ in range(STEPS):
        step(context, key)
        if not find_jobs(context.ledger, OPEN):
            return
        emulator.world.clock.advance(400)
    raise AssertionError([(job.id, job.state) for job in find_jobs(context.ledger, OPEN)])


@pytest.mark.parametrize("mode", ["batch", "online"])
@pytest.mark.parametrize("provider", PROVIDERS)
def test_every_provider_and_mode(
    context: Context, emulator: RunningEmulator, provider: str, mode: str
) -> None:
    key = f"manuals-{provider}-{mode}-1"
    # Bedrock takes no job of fewer.
    count = 100 if (provider, mode) == ("bedrock", "batch") else 5
    fill(context, count)
    prepare(context, key)
    settle(context, emulator, key)
    report = build_report(context, key)
    assert report.states == {"published": count}
    assert report.invariant_holds, report.violations
    assert [canary.state for canary in list_canaries(context.ledger)] == ["passed"]
    assert set(emulator.world.executed[provider].values()) == {1}, "nothing is paid twice"
    assert pending_versions(context) == ([], {})
    assert open_alerts(context.ledger) == []
    identifiers = {entry["product_identifiers"][0]["value"] for entry in export_entries(context)}
    assert identifiers == {f"WP-{100 + number}" for number in range(count)}
    (job,) = find_jobs(context.ledger, ("completed",), machine="batch")
    facts = job_facts(context, job)
    assert facts["cost_usd"] == "unknown" or float(facts["cost_usd"]) > 0
    if mode == "batch":
        assert job.remote_deleted_at is not None
        assert [entry["outcome"] for entry in facts["intents"]] == ["accepted"]
    else:
        assert (facts["online_possibly_paid"], facts["online_unfinished"]) == (0, 0)


KEY = "manuals-openai-batch-1"
ON_SQLITE = pytest.mark.parametrize("ledger_url", ["sqlite"], indirect=True)


@ON_SQLITE
def test_records_wait_for_the_canary(context: Context, emulator: RunningEmulator) -> None:
    fill(context)
    prepare(context, KEY)
    assert pending_versions(context)[0][0].why == ("submit",)
    report = step(context, KEY)
    assert report.batches == 0
    assert "canary" in report.waiting["every batch"]
    assert len(emulator.world.jobs_created["openai"]) == 1, "only the canary"
    assert pending_versions(context) == ([], {}), "no run is asked for while it is under way"
    emulator.world.clock.advance(1_000)
    look_at_due_jobs(context)
    (work,), _ = pending_versions(context)
    assert work.why == ("collect",)
    now = context.clock()
    assert run_key(work, now) == run_key(work, now), "the same work has the same run"


@ON_SQLITE
@pytest.mark.parametrize("kind", ["null_values", "prose", "truncated", "refused"])
def test_no_record_is_sent_after_a_canary_that_failed(
    context: Context, emulator: RunningEmulator, kind: str
) -> None:
    emulator.world.faults.add(Fault("openai", "row", kind, times=1))
    fill(context)
    prepare(context, KEY)
    for _ in range(3):
        step(context, KEY)
        emulator.world.clock.advance(700)
    report = step(context, KEY)
    assert "failed" in report.waiting["every batch"]
    assert len(emulator.world.jobs_created["openai"]) == 1
    (canary,) = list_canaries(context.ledger)
    assert canary.state == "failed"
    assert [alert.kind for alert in open_alerts(context.ledger)] == ["canary_failed"]
    assert build_report(context, KEY).states == {"prepared": 5}


@ON_SQLITE
def test_a_broken_request_that_is_taken_fails_the_canary(
    context: Context, emulator: RunningEmulator
) -> None:
    """Whoever answers a request that is wrong cannot be trusted to report a wrong row."""
    emulator.world.faults.add(Fault("openai", "lines", "alien", args={"custom_id": "made-up-1"}))
    fill(context)
    prepare(context, KEY)
    for _ in range(4):
        step(context, KEY)
        emulator.world.clock.advance(700)
    assert [canary.state for canary in list_canaries(context.ledger)] == ["failed"]


@ON_SQLITE
def test_an_old_canary_does_not_vouch(context: Context, emulator: RunningEmulator) -> None:
    fill(context)
    prepare(context, KEY)
    settle(context, emulator, KEY)
    emulator.world.clock.advance(8 * 86_400)
    fill(context, documents=7)
    prepare(context, KEY)
    settle(context, emulator, KEY)
    assert [canary.state for canary in list_canaries(context.ledger)] == ["passed", "expired"]
    assert build_report(context, KEY).states == {"published": 7}


@ON_SQLITE
def test_a_held_version_submits_nothing_and_still_collects(
    context: Context, emulator: RunningEmulator
) -> None:
    fill(context)
    prepare(context, KEY)
    step(context, KEY)
    version = open_version(context, KEY)
    with context.ledger.write() as connection:
        move_version(
            connection,
            context.ledger.dialect,
            version.version_no,
            "active",
            "held",
            context.cause("told by the test", "test"),
        )
    emulator.world.clock.advance(1_000)
    step(context, KEY)
    report = step(context, KEY)
    assert report.waiting == {"every batch": "the version is held: told by the test"}
    assert [canary.state for canary in list_canaries(context.ledger)] == ["passed"]
    assert build_report(context, KEY).states == {"prepared": 5}


@ON_SQLITE
def test_bad_credentials_hold_the_version(context: Context, emulator: RunningEmulator) -> None:
    fill(context)
    prepare(context, KEY)
    emulator.world.faults.add(Fault("openai", "create", "status", times=1, args={"status": 401}))
    step(context, KEY)
    held = status(context, KEY).held
    assert held is not None and held.kind == "auth"
    assert [alert.kind for alert in open_alerts(context.ledger)] == ["auth"]
    assert build_report(context, KEY).states == {"prepared": 5}, "nothing is buried"
    assert emulator.world.jobs_created["openai"] == []


@ON_SQLITE
def test_bad_credentials_of_an_online_canary_hold_the_version(
    context: Context, emulator: RunningEmulator
) -> None:
    """They say nothing of the combination: after a release the canary is answered anew."""
    key = "manuals-openai-online-1"
    fill(context)
    prepare(context, key)
    emulator.world.faults.add(Fault("openai", "answer", "status", args={"status": 401}))
    step(context, key)
    version = open_version(context, key)
    assert version.held is not None and "auth" in version.held
    assert [canary.state for canary in list_canaries(context.ledger)] == ["running"]
    assert build_report(context, key).states == {"prepared": 5}, "nothing is buried"
    emulator.world.faults.clear()
    assert release(context, version.version_no, None, "the key is right now")
    settle(context, emulator, key)
    assert [canary.state for canary in list_canaries(context.ledger)] == ["passed"]
    assert build_report(context, key).states == {"published": 5}


@ON_SQLITE
def test_shared_limits_hold_batches_back(context: Context, emulator: RunningEmulator) -> None:
    fill(context, documents=6)
    version = open_version(context, KEY)
    cause = context.cause("a small account", "test")
    set_operating(context.ledger, version.version_no, "enqueued_tokens", "2500", cause)
    prepare(context, KEY)
    batches = find_jobs(context.ledger, ("prepared",), machine="batch")
    assert len(batches) > 1, "split so that each fits the limit"
    assert all((job.input_tokens or 0) <= 2500 for job in batches)
    most = 0
    for _ in range(40):
        step(context, KEY)
        open_now = find_jobs(context.ledger, ("submitted", "running"), machine="batch")
        most = max(most, sum(job.input_tokens or 0 for job in open_now))
        if not find_jobs(context.ledger, OPEN):
            break
        emulator.world.clock.advance(400)
    assert build_report(context, KEY).states == {"published": 6}
    assert 0 < most <= 2500


@ON_SQLITE
def test_a_cut_is_recorded_and_whole_pages_are_sent(
    context: Context, emulator: RunningEmulator
) -> None:
    fill(context, documents=2, long=True)
    prepare(context, KEY)
    settle(context, emulator, KEY)
    with context.ledger.read() as connection:
        cuts = context.ledger.dialect.fetch(
            connection,
            "SELECT pages, pages_sent, tokens FROM renderings",
            {"pages": pl.Int64, "pages_sent": pl.Int64, "tokens": pl.Int64},
        )
    assert cuts["pages"].to_list() == [13, 13]
    assert all(0 < sent < 13 for sent in cuts["pages_sent"])
    assert all(tokens <= 24_000 for tokens in cuts["tokens"])
    assert build_report(context, KEY).states == {"published": 2}


@ON_SQLITE
def test_too_few_records_for_bedrock_are_refused_before_anything_is_sent(
    context: Context, emulator: RunningEmulator
) -> None:
    fill(context)
    with pytest.raises(JobRefused, match=r"min_records: found 5.*allowed.*100.*B-Q"):
        prepare(context, "manuals-bedrock-batch-1")
    assert emulator.world.jobs_created["bedrock"] == []
    assert find_jobs(context.ledger, ("prepared",)) == []
