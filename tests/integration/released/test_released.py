"""Ledgers as each release left them: opened by today's code, with what was under way in them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import text

from pipeline_assets.account import health, integrity
from pipeline_assets.account.report import build_report
from pipeline_assets.account.representations import rebuild_search_entries
from pipeline_assets.prepare.retries import freeze_retries
from pipeline_assets.provider_jobs.clients import job_client
from pipeline_assets.versions import open_version
from resources.clock import Clock, from_text, system_clock
from resources.context import Context, open_context
from resources.ledger.engine import connect, newest_revision, open_ledger
from resources.ledger.errors import LedgerOutdated
from resources.ledger.intents import intents_of
from resources.ledger.jobs import JobRow, find_jobs
from resources.ledger.upgrade import look_at_schema, migrate
from resources.providers.port import Intent, NewJob
from resources.settings import Settings, load_settings
from tests.support.emulator import RunningEmulator
from tests.support.provider_walk import ProviderWalk
from tests.support.released import KEYS, RELEASES, load_released

pytestmark = pytest.mark.slow

STATES = {
    "0001": {"awaiting_review": 1, "published": 2},
    "0002": {"submitted": 4},
    "0003": {"dead_letter": 1, "published": 2, "retry_wait": 1},
    "0004": {"dead_letter": 1, "published": 2, "retry_wait": 1, "submitted": 1},
    "0005": {"dead_letter": 1, "retry_wait": 1, "submitted": 2, "withdrawn": 1},
}
"""Release → what its records were when it ended."""
OPEN_BATCHES = {
    "0001": {},
    "0002": {"submitted": 1},
    "0003": {"retry_required": 1},
    "0004": {"retry_required": 1, "submitted": 1},
    "0005": {"retry_required": 1, "submitted": 2},
}
"""Release → its batches that are not complete."""
FINISHED = {
    "0002": {"published": 4},
    "0003": {"dead_letter": 1, "published": 3},
    "0004": {"dead_letter": 1, "published": 4},
    "0005": {"dead_letter": 1, "published": 3, "withdrawn": 1},
}
"""Release → what they are when today's code has finished what was under way."""


@pytest.fixture
def settings(ledger_url: str, tmp_path: Path, request: pytest.FixtureRequest) -> Settings:
    """Return settings for a state folder with the ledger of a release."""
    release: str = request.getfixturevalue("release")
    state = tmp_path / "state"
    state.mkdir()
    url = ledger_url.replace(f"{tmp_path}/ledger.sqlite3", f"{state}/ledger.sqlite")
    load_released(release, state, url)
    return load_settings(
        state=state,
        ledger_url=url,
        source=tmp_path / "documents",
        source_name="shop",
        version=KEYS[release],
    )


@contextmanager
def opened(settings: Settings, clock: Clock = system_clock) -> Iterator[Context]:
    with open_context(settings, clock=clock, rng=random.Random(5)) as context:
        if context.ledger.dialect.name == "postgresql":
            # It was carried there, and the search is of each database.
            rebuild_search_entries(context)
        yield context


def states(context: Context) -> dict[str, int]:
    with context.ledger.read() as connection:
        rows = connection.execute(
            text("SELECT state, COUNT(*) FROM record_state GROUP BY state ORDER BY state")
        )
        return {str(state): int(count) for state, count in rows}


@pytest.mark.parametrize("release", RELEASES)
def test_it_is_opened_upgraded_and_adds_up(release: str, settings: Settings) -> None:
    with opened(settings) as context:
        assert states(context) == STATES[release]
        report = build_report(context, KEYS[release])
        assert report.violations == ()
        assert [found.what for found in integrity.diagnose(context) if found.broken] == []
        broken = [found.what for found in health.look(context) if found.broken]
        assert broken == []


@pytest.mark.parametrize("release", [RELEASES[0], RELEASES[-1]])
@pytest.mark.parametrize("profile", ["prod", "staging"])
def test_outside_of_dev_it_waits_for_the_command(
    profile: str, release: str, settings: Settings
) -> None:
    url = settings.ledger_place
    database = connect(url)
    with database.write() as connection:
        connection.execute(
            text("UPDATE ledger_info SET value = :profile WHERE name = 'profile'"),
            {"profile": profile},
        )
    database.engine.dispose()
    for _ in range(2):
        with pytest.raises(LedgerOutdated, match=f"schema {release}.*tallybook migrate"):
            open_ledger(url, profile=profile)
    migrate(url, profile, system_clock)
    open_ledger(url, profile=profile).close()


@pytest.mark.parametrize("release", RELEASES)
def test_a_look_says_what_an_upgrade_will_do_and_changes_nothing(
    release: str, settings: Settings
) -> None:
    url = settings.ledger_place
    found = look_at_schema(url, "dev")
    for _ in range(2):
        assert look_at_schema(url, "dev") == found
        assert (found.found, found.wanted) == (release, newest_revision())
        assert found.steps[0].revision == f"{int(release) + 1:04}"
        assert found.steps[-1].revision == newest_revision()
        assert all(step.what for step in found.steps)
        assert found.newest_backup is None
    assert found.open_batches == OPEN_BATCHES[release]
    migrate(url, "dev", system_clock)
    after = look_at_schema(url, "dev")
    assert (after.steps, after.open_batches) == ((), found.open_batches)
    open_ledger(url, upgrade=False).close()


@pytest.mark.parametrize("release", [RELEASES[-1]])
def test_of_two_upgrades_at_once_one_waits_for_the_other(release: str, settings: Settings) -> None:
    url = settings.ledger_place
    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(migrate, url, "dev", system_clock) for _ in range(2)]:
            done.result()
    assert look_at_schema(url, "dev").steps == ()
    with opened(settings) as context:
        assert states(context) == STATES[release]


def at_the_emulator(
    context: Context,
    emulator: RunningEmulator,
    job: JobRow,
    key: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Let the emulator have the job that the release submitted, under the name that it had."""
    real = emulator.world.new_id
    with monkeypatch.context() as patch:
        patch.setattr(
            emulator.world,
            "new_id",
            lambda prefix: job.provider_job_id if prefix == "batch_" else real(prefix),
        )
        newest = intents_of(context.ledger, job)[-1]
        intent = Intent(
            newest.intent_id,
            job.batch_key,
            job.model,
            job.expected_records,
            from_text(newest.recorded_at),
        )
        request = context.artifacts.require("request", job.request_artifact)
        with job_client(context, open_version(context, key)) as client:
            created = client.get().create(
                NewJob(intent, request, job.request_bytes, 24, on_uploaded=lambda _: None)
            )
    assert created.job_id == job.provider_job_id


@pytest.mark.parametrize("release", sorted(FINISHED))
def test_what_was_under_way_is_finished(
    release: str,
    settings: Settings,
    emulator: RunningEmulator,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    emulator.use(monkeypatch)
    world, key = emulator.world, KEYS[release]
    with opened(settings, world.clock.now) as context:
        out = find_jobs(context.ledger, ("submitted", "running"), machine="batch")
        assert bool(out) == ("submitted" in STATES[release])
        for job in out:
            at_the_emulator(context, emulator, job, key, monkeypatch)
        walk = ProviderWalk(world, "openai", key, context, {})
        walk.advance(4 * 3600)
        walk.step()
        freeze_retries(context, open_version(context, key))
        walk.pass_canary()
        walk.settle()
        assert states(context) == FINISHED[release]
        assert set(world.executed["openai"].values()) == {1}
        assert build_report(context, key).violations == ()
