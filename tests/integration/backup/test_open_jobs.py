"""A backup with jobs at a provider is restored, and they are finished; none is paid twice."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pipeline_assets.backup.make import make_backup
from pipeline_assets.backup.restore import Restored
from pipeline_assets.recovery.holds import hold_of, release
from pipeline_assets.versions import open_version
from resources.context import open_context
from resources.settings import Settings
from tests.integration.backup.conftest import ACROSS
from tests.integration.backup.support import restore_into
from tests.provider_emulator.faults import Fault
from tests.support.emulator import RunningEmulator
from tests.support.provider_walk import ProviderWalk, provider_walk

pytestmark = pytest.mark.slow

NewUrl = Callable[[str, str], str]
DOCUMENTS = 4
PROVIDERS = ("anthropic", "bedrock", "gemini", "openai")


def elsewhere(settings: Settings, state: Path, url: str) -> Settings:
    return settings.model_copy(update={"state": state, "ledger_url": url})


@contextmanager
def restored_walk(
    walk: ProviderWalk, folder: Path, state: Path, url: str
) -> Iterator[tuple[Restored, ProviderWalk]]:
    """The backup restored into a new place, as the walk of whoever works there."""
    settings = elsewhere(walk.context.settings, state, url)
    restored = restore_into(settings, folder, walk.world.clock.now)
    with open_context(settings, clock=walk.world.clock.now, rng=random.Random(2)) as context:
        yield (
            restored,
            ProviderWalk(
                walk.world,
                walk.provider,
                walk.key,
                context,
                walk.titles,
                canary_rows=walk.canary_rows,
            ),
        )


def let_go(walk: ProviderWalk) -> None:
    """An operator says that the earlier ledger works no more."""
    version = open_version(walk.context, walk.key)
    assert release(walk.context, version.version_no, None, "the old machine is off", "Ada")


def require_published_once(walk: ProviderWalk, documents: int = DOCUMENTS) -> None:
    walk.check_sound()
    assert set(walk.states().values()) == {"published"}
    assert len(walk.published()) == documents
    assert set(walk.executed().values()) == {1}
    assert len(walk.executed()) == documents


@pytest.mark.parametrize("across", ACROSS)
def test_an_open_job_is_finished_in_the_new_place(
    across: tuple[str, str],
    new_url: NewUrl,
    emulator: RunningEmulator,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    origin, target = across
    (tmp_path / "old").mkdir()
    monkeypatch.setenv("TALLYBOOK_LEDGER_URL", new_url(origin, "old"))
    with provider_walk(emulator, "openai", tmp_path, monkeypatch, DOCUMENTS) as walk:
        walk.pass_canary()
        walk.step()
        assert {job.state for job in walk.jobs()} == {"submitted"}
        report = make_backup(walk.context, tmp_path / "backup", "Ada")
        assert report.contents.database == origin
        assert report.contents.lost == []
    state = tmp_path / "new"
    with restored_walk(walk, tmp_path / "backup", state, new_url(target, "new")) as (found, new):
        assert found.held == (walk.key,)
        assert new.context.ledger.dialect.name == target
        assert new.context.ledger.ledger_id == walk.context.ledger.ledger_id
        # What is under way is collected while the version is held.
        new.settle()
        require_published_once(new)


@pytest.mark.parametrize(
    "provider",
    [pytest.param(name, marks=() if name == "openai" else pytest.mark.slow) for name in PROVIDERS],
)
def test_what_was_submitted_after_the_backup_is_found_and_not_paid_again(
    provider: str,
    new_url: NewUrl,
    emulator: RunningEmulator,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Bedrock takes no smaller job.
    documents = 100 if provider == "bedrock" else DOCUMENTS
    with provider_walk(emulator, provider, tmp_path, monkeypatch, documents) as walk:
        walk.pass_canary()
        assert {job.state for job in walk.jobs()} == {"prepared"}
        make_backup(walk.context, tmp_path / "backup", "Ada")
        walk.advance(60)
        walk.step()
        (lost,) = walk.jobs()
        assert lost.state == "submitted"
    walk.advance(3600)
    url = new_url("sqlite", "new")
    with restored_walk(walk, tmp_path / "backup", tmp_path / "new", url) as (found, new):
        assert found.doubts.looked_for == (lost.id,)
        assert {job.state for job in new.jobs()} == {"submitting"}
        let_go(new)
        new.settle()
        (job,) = new.jobs()
        assert job.provider_job_id == lost.provider_job_id
        assert job.intent_id == lost.intent_id
        require_published_once(new, documents)


def test_what_was_never_submitted_is_submitted_once_when_it_was_looked_for(
    new_url: NewUrl, emulator: RunningEmulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with provider_walk(emulator, "openai", tmp_path, monkeypatch, DOCUMENTS) as walk:
        walk.pass_canary()
        make_backup(walk.context, tmp_path / "backup", "Ada")
    walk.advance(3600)
    url = new_url("sqlite", "new")
    with restored_walk(walk, tmp_path / "backup", tmp_path / "new", url) as (_, new):
        new.step()
        # Too early to say: the old machine's call may have been a moment before the restore.
        assert {job.state for job in new.jobs()} == {"submitting"}
        new.advance(600)
        new.step()
        (job,) = new.jobs()
        assert job.state == "prepared"
        new.step()
        assert {job.state for job in new.jobs()} == {"prepared"}, "its version is held"
        let_go(new)
        new.settle()
        require_published_once(new)


def test_a_submission_without_an_answer_is_settled_in_the_new_place(
    new_url: NewUrl, emulator: RunningEmulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with provider_walk(emulator, "openai", tmp_path, monkeypatch, DOCUMENTS) as walk:
        walk.pass_canary()
        walk.world.faults.add(Fault("openai", "create", "drop_after", times=1))
        walk.step()
        assert {job.state for job in walk.jobs()} == {"submitting"}
        make_backup(walk.context, tmp_path / "backup", "Ada")
    walk.advance(3600)
    url = new_url("sqlite", "new")
    with restored_walk(walk, tmp_path / "backup", tmp_path / "new", url) as (found, new):
        assert len(found.doubts.looked_for) == 1
        let_go(new)
        new.settle()
        require_published_once(new)


def test_nothing_is_submitted_before_somebody_releases_the_version(
    new_url: NewUrl, emulator: RunningEmulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two ledgers with one identity, both at work: only one of them may submit."""
    with provider_walk(emulator, "openai", tmp_path, monkeypatch, DOCUMENTS) as walk:
        walk.pass_canary()
        report = make_backup(walk.context, tmp_path / "backup", "Ada")
        url = new_url("sqlite", "new")
        with restored_walk(walk, tmp_path / "backup", tmp_path / "new", url) as (_, new):
            version = open_version(new.context, new.key)
            with new.context.ledger.read() as connection:
                held = hold_of(connection, version.version_no)
            assert held is not None
            assert held.kind == "operator"
            assert report.contents.made_at in held.reason
            for _ in range(4):
                new.step()
                new.advance(700)
            assert new.executed() == {}
            walk.settle()
            require_published_once(walk)


def test_go_on_holds_no_version(
    new_url: NewUrl, emulator: RunningEmulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with provider_walk(emulator, "openai", tmp_path, monkeypatch, DOCUMENTS) as walk:
        make_backup(walk.context, tmp_path / "backup", "Ada")
    settings = elsewhere(walk.context.settings, tmp_path / "new", new_url("sqlite", "new"))
    restored = restore_into(settings, tmp_path / "backup", walk.world.clock.now, go_on=True)
    assert restored.held == ()
    # No job of the provider was ever submitted: nothing tells in which account to look.
    assert len(restored.doubts.unlooked) == 1
    with open_context(settings, clock=walk.world.clock.now, rng=random.Random(2)) as context:
        new = ProviderWalk(walk.world, walk.provider, walk.key, context, walk.titles)
        new.pass_canary()
        new.settle()
        require_published_once(new)


def test_a_backup_is_of_one_moment_while_a_worker_goes_on(
    new_url: NewUrl, emulator: RunningEmulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker submits between two tables: the dump knows nothing of it, in none of them."""
    from pipeline_assets.backup import make

    real, passed = make.dump_table, []
    with provider_walk(emulator, "openai", tmp_path, monkeypatch, DOCUMENTS) as walk:
        walk.pass_canary()

        def dump_table(connection, dialect, table, place, on_rows):  # noqa: ANN001, ANN202
            rows = real(connection, dialect, table, place, on_rows)
            if not passed and table.name == "processing_versions":
                walk.step()
                passed.append({job.state for job in walk.jobs()})
            return rows

        monkeypatch.setattr(make, "dump_table", dump_table)
        make_backup(walk.context, tmp_path / "backup", "Ada")
        assert passed == [{"submitted"}]
    walk.advance(3600)
    url = new_url("sqlite", "new")
    with restored_walk(walk, tmp_path / "backup", tmp_path / "new", url) as (_, new):
        assert {job.state for job in new.jobs()} == {"submitting"}
        assert new.report().violations == ()
        assert set(new.states().values()) == {"prepared"}
        let_go(new)
        new.settle()
        require_published_once(new)
