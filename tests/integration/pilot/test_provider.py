"""A pilot of versions that a provider answers, on the emulator's clock."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
import yaml

from partitions.processing_version import PACKAGED_SPECS
from pipeline_assets.ingest import parse_documents
from pipeline_assets.pilot.errors import JobsStillOut
from pipeline_assets.pilot.plan import Plan, drop_pilot, inside
from pipeline_assets.pilot.run import shares_of, specs_of
from resources.clock import Clock
from resources.context import open_context
from resources.ledger.versions import all_operating, find, set_operating
from resources.settings import load_settings
from tests.integration.pilot.support import InProcess, PilotPlace
from tests.integration.stages.support import InProcessPool, manual
from tests.support.emulator import RunningEmulator

pytestmark = pytest.mark.slow

BASELINE = "manuals-baseline-2"
BATCH, ONLINE = "pilot-openai-batch-1", "pilot-openai-online-1"
DOCUMENTS = 6
A_DAY_S = 24 * 3600.0


@pytest.fixture
def place(tmp_path: Path, emulator: RunningEmulator, monkeypatch: pytest.MonkeyPatch) -> PilotPlace:
    """Return a place with a few manuals and specs of small batches."""
    emulator.use(monkeypatch)
    monkeypatch.setattr(parse_documents, "ParserPool", InProcessPool)
    source, specs = tmp_path / "documents", tmp_path / "specs"
    source.mkdir()
    specs.mkdir()
    for number in range(DOCUMENTS):
        text = manual("Circulation Pump", f"WP-{100 + number}")
        (source / f"d{number}.txt").write_text(text)
    for key, packaged in ((BATCH, "manuals-openai-batch-1"), (ONLINE, "manuals-openai-online-1")):
        spec = yaml.safe_load((PACKAGED_SPECS / f"{packaged}.yaml").read_text(encoding="utf-8"))
        (specs / f"{key}.yaml").write_text(yaml.safe_dump(spec | {"key": key, "batch_records": 3}))
    settings = load_settings(
        state=tmp_path / "state",
        source=source,
        source_name="shop",
        specs=specs,
        parser_workers=1,
    )
    return PilotPlace(settings, InProcess(emulator.world.clock.now))


def asked(emulator: RunningEmulator) -> dict[str, int]:
    """Row → how often the provider ran it, canaries included."""
    return dict(emulator.world.executed["openai"])


def test_a_batch_goes_on_when_called_again_and_is_paid_once(
    place: PilotPlace, emulator: RunningEmulator
) -> None:
    plan = place.plan(BATCH, BASELINE)
    outcome = place.go_on(plan)
    assert (outcome.under_way, outcome.published) == (True, False)
    first = place.report(outcome)
    assert first.versions[0].moving == DOCUMENTS
    assert first.versions[0].projection is None, "nothing is projected from half of it"
    assert first.versions[0].cost is not None
    assert first.versions[0].cost.per_accepted is None
    assert first.versions[1].outcomes == {"accepted": DOCUMENTS}, "published last, not now"
    for _ in range(12):
        emulator.world.clock.advance(2 * 3600.0)
        outcome = place.go_on(place.plan(BATCH, BASELINE))
        if not outcome.under_way:
            break
    assert outcome.published
    assert set(asked(emulator).values()) == {1}
    ran = asked(emulator)
    emulator.world.clock.advance(A_DAY_S)
    assert place.go_on(plan).published
    assert asked(emulator) == ran, "nothing is paid again"
    report = place.report(outcome)
    batch, baseline = report.versions
    assert batch.outcomes == {"published": DOCUMENTS}
    assert baseline.outcomes == {"published": DOCUMENTS}
    assert batch.cost is not None
    assert batch.cost.provider_usd > 0
    assert batch.cost.unknown == {}
    assert batch.cost.per_accepted == batch.cost.provider_usd / DOCUMENTS
    assert batch.projection is not None
    assert batch.projection.usd is not None
    assert batch.projection.usd.value == pytest.approx(float(batch.cost.provider_usd))
    assert batch.projection.provider_hours is None, "a queue is not told from a small job"
    assert batch.jobs is not None
    assert batch.jobs.count == 2
    assert batch.provider_s is not None
    assert batch.accepted_per_hour_with_provider is not None
    assert batch.accepted_per_hour is not None
    assert batch.accepted_per_hour_with_provider < batch.accepted_per_hour
    assert batch.batch is not None
    assert batch.batch.value == 3
    assert report.agreements[0].both == DOCUMENTS


def test_waiting_follows_the_ledgers_own_times(
    place: PilotPlace, emulator: RunningEmulator
) -> None:
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        # Somebody else's clock: as much later as a job needs.
        emulator.world.clock.advance(1800.0)

    outcome = place.go_on(place.plan(BATCH), wait=True, sleep=sleep)
    assert outcome.published
    assert slept
    assert all(2.0 <= seconds <= 60.0 for seconds in slept)


def test_online_calls_are_measured(place: PilotPlace) -> None:
    outcome = place.go_on(place.plan(ONLINE))
    assert outcome.published
    (version,) = place.report(outcome).versions
    assert version.outcomes == {"published": DOCUMENTS}
    assert version.calls is not None
    assert version.calls.value is not None
    assert version.projection is not None
    assert version.projection.provider_hours is not None
    assert version.cost is not None
    assert version.cost.provider_usd > 0


def test_a_budget_holds_the_pilot(place: PilotPlace, emulator: RunningEmulator) -> None:
    plan = place.plan(BATCH, ONLINE)
    outcome = place.go_on(plan, budget=Decimal("0.000002"))
    for _ in range(2):
        emulator.world.clock.advance(A_DAY_S)
        outcome = place.go_on(plan, budget=Decimal("0.000002"))
    assert not outcome.published
    assert not outcome.under_way, "nobody waits for what only a person can release"
    assert all("budget" in (one.waits or "") for one in outcome.standings)
    report = place.report(outcome)
    assert [version.moving for version in report.versions] == [DOCUMENTS, DOCUMENTS]


@pytest.mark.parametrize(
    ("budget", "each"),
    [
        pytest.param("5", "2.500000", id="equal-shares"),
        pytest.param("0.0000001", "0.000001", id="never-nought-which-is-no-limit"),
    ],
)
def test_a_budget_is_shared_out(place: PilotPlace, budget: str, each: str) -> None:
    specs = specs_of(place.settings, (BATCH, BASELINE, ONLINE))
    assert shares_of(Decimal(budget), specs) == {BATCH: each, ONLINE: each}
    assert shares_of(Decimal(budget), specs[1:2]) == {}
    assert shares_of(None, specs) == {}


def test_a_budget_stays_until_another_one_is_given(
    place: PilotPlace, emulator: RunningEmulator
) -> None:
    clock = emulator.world.clock.now
    with open_context(place.settings, clock=clock) as main:
        set_operating(main.ledger, None, "budget_usd", "500", main.cause("the archive's", "test"))
        plan = place.plan(BATCH, main=main)
        budgets = []
        for budget in (Decimal(3), None, Decimal(4), None):
            place.go_on(plan, main=main, budget=budget)
            budgets.append(setting_of(place, plan, clock, "budget_usd"))
    assert budgets == ["3.000000", "3.000000", "4.000000", "4.000000"], "never the archive's 500"


def test_what_a_person_sets_in_a_pilot_stays(place: PilotPlace, emulator: RunningEmulator) -> None:
    clock = emulator.world.clock.now
    with open_context(place.settings, clock=clock) as main:
        set_operating(main.ledger, None, "sample_least", "9", main.cause("the archive's", "test"))
        plan = place.plan(BATCH, main=main)
        place.go_on(plan, main=main)
        assert setting_of(place, plan, clock, "sample_least") == "9"
        with open_context(inside(place.settings, plan.pilot_id), clock=clock) as pilot:
            version = find(pilot.ledger, BATCH)
            assert version is not None
            cause = pilot.cause("as I like it", "test")
            set_operating(pilot.ledger, version.version_no, "sample_least", "2", cause)
        place.go_on(plan, main=main)
    assert setting_of(place, plan, clock, "sample_least") == "2"


def setting_of(place: PilotPlace, plan: Plan, clock: Clock, name: str) -> str | None:
    """What holds in the pilot for the batch version."""
    with open_context(inside(place.settings, plan.pilot_id), clock=clock) as pilot:
        version = find(pilot.ledger, BATCH)
        assert version is not None
        return all_operating(pilot.ledger, version.version_no).get(name)


def test_one_version_that_cannot_be_asked_keeps_none_from_it(
    place: PilotPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    outcome = place.go_on(place.plan(BATCH, BASELINE))
    assert set(outcome.problems) == {BATCH}
    assert not outcome.published
    batch, baseline = place.report(outcome).versions
    assert "OPENAI_API_KEY" in (batch.problem or "")
    assert baseline.outcomes == {"accepted": DOCUMENTS}


def test_a_pilot_with_open_jobs_is_not_dropped_by_the_way(
    place: PilotPlace, emulator: RunningEmulator
) -> None:
    plan = place.plan(BATCH)
    place.go_on(plan)
    emulator.world.clock.advance(2000.0)
    place.go_on(plan)
    with open_context(
        inside(place.settings, plan.pilot_id), clock=emulator.world.clock.now
    ) as pilot:
        with pytest.raises(JobsStillOut, match="--force"):
            drop_pilot(place.settings, pilot, plan.pilot_id, "no use", force=False)
        drop_pilot(place.settings, pilot, plan.pilot_id, "no use", force=True)
    assert not place.folder(plan).exists()
