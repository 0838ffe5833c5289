"""A pilot of versions that answer inside the run: what it takes, does, finds, and leaves alone."""

from __future__ import annotations

import json
import shutil
import stat
from decimal import Decimal
from pathlib import Path

import pytest
import yaml
from sqlalchemy import func, select, update

from partitions.processing_version import PACKAGED_SPECS
from pipeline_assets.ingest.parse_documents import parse_documents
from pipeline_assets.ingest.scan import scan_declared
from pipeline_assets.parser_settings import parser_settings
from pipeline_assets.pilot.errors import (
    DropReasonMissing,
    NothingToSample,
    NoVersions,
    OtherWorkloads,
    PilotDamaged,
    SampleTooSmall,
    UnknownPilot,
)
from pipeline_assets.pilot.page import page_of
from pipeline_assets.pilot.plan import drop_pilot, find_plan, pilot_ids
from pipeline_assets.pilot.run import look_at_outcome
from pipeline_assets.versions import open_version
from resources.context import Context, open_context
from resources.ledger.engine import Ledger
from resources.ledger.schema import findings, metadata
from resources.ledger.versions import all_operating, find, set_operating
from tests.integration.pilot.support import PilotPlace

pytestmark = pytest.mark.slow

FIRST, SECOND = "manuals-baseline-1", "manuals-baseline-2"


def rows_of(ledger: Ledger) -> dict[str, int]:
    """Table → rows."""
    with ledger.read() as connection:
        return {
            table.name: int(
                connection.execute(select(func.count()).select_from(table)).scalar_one()
            )
            for table in metadata.sorted_tables
        }


def prepare_main(context: Context) -> None:
    """Scan and parse in the archive, so that it knows what its documents are."""
    scan_declared(context)
    version = open_version(context, SECOND)
    parse_documents(context, parser_settings(version.spec), version.spec.workload)


def test_two_versions_side_by_side(place: PilotPlace) -> None:
    with open_context(place.settings, clock=place.step.clock) as main:
        prepare_main(main)
        before = rows_of(main.ledger)
        plan = place.plan(FIRST, SECOND, main=main)
        outcome = place.go_on(plan, main=main)
        assert rows_of(main.ledger) == before, "the archive is only read"
    assert place.step.ran == [
        ("scan", ""),
        ("parse", FIRST),
        ("process", FIRST),
        ("process", SECOND),
        ("publish", FIRST),
        ("publish", SECOND),
    ]
    assert outcome.published
    assert {stratum.name for stratum in plan.strata} == {"en/short/text", "malformed/unreadable"}
    assert stat.S_IMODE(place.folder(plan).stat().st_mode) == 0o700
    assert stat.S_IMODE(place.folder(plan).parent.stat().st_mode) == 0o700
    report = place.report(outcome, minutes=Decimal(3))
    assert (report.taken, report.documents, report.known) == (14, 14, 14)
    for version in report.versions:
        assert version.outcomes == {"awaiting_review": 1, "excluded": 1, "published": 12}
        assert version.excluded == {"unreadable": 1}
        assert version.accepted == 12
        # The whole archive was taken, so nothing is left to doubt.
        assert version.acceptance is not None
        assert version.acceptance.value == pytest.approx(12 / 14)
        assert version.acceptance.low == pytest.approx(version.acceptance.high)
        assert {"parse", "prepare", "submit", "collect", "accept", "publish"} <= set(version.stages)
        assert version.local_s > 0
        assert version.accepted_per_hour == pytest.approx(12 / (version.local_s / 3600))
        assert version.peak_rss_bytes > 2**20
        assert version.sizes is not None
        assert min(version.sizes.source, version.sizes.requests, version.sizes.results) > 0
        assert version.cost is not None
        assert version.cost.provider_usd == 0
        assert version.cost.per_accepted == 0
        assert version.cost.per_accepted_reviewed is None, "nobody said what an hour costs"
        assert version.projection is not None
        assert version.projection.accepted is not None
        assert version.projection.accepted.value == pytest.approx(12)
        assert version.projection.review_hours is not None
        assert version.projection.review_hours.value == pytest.approx(3 / 60)
        assert version.score is None
    (agreement,) = report.agreements
    assert (agreement.both, agreement.only_first, agreement.only_second) == (12, 0, 0)
    assert json.loads(json.dumps(report.as_json()))["pilot_id"] == plan.pilot_id
    page = page_of(report, "today")
    assert "default-src &#39;none&#39;" in page or "default-src 'none'" in page
    assert "<script" not in page
    assert FIRST in page


def test_a_sample_of_an_archive(place: PilotPlace) -> None:
    with open_context(place.settings, clock=place.step.clock) as main:
        prepare_main(main)
        plan = place.plan(SECOND, sample=5, main=main)
        outcome = place.go_on(plan, main=main)
        other = place.plan(SECOND, sample=5, seed=2, main=main)
    assert len(plan.taken) == 5
    assert [(one.name, one.documents, one.sampled) for one in plan.strata] == [
        ("en/short/text", 13, 4),
        ("malformed/unreadable", 1, 1),
    ]
    assert other.pilot_id != plan.pilot_id
    assert {one.document_id for one in other.taken} != {one.document_id for one in plan.taken}
    report = place.report(outcome)
    (version,) = report.versions
    assert sum(version.outcomes.values()) == 5
    assert version.projection is not None
    assert version.projection.accepted is not None
    assert version.projection.accepted.low < version.projection.accepted.high <= 14
    assert version.projection.disk_bytes is not None
    assert version.projection.disk_bytes.value > 0
    assert report.agreements == ()


def test_without_an_archive_strata_are_guessed(place: PilotPlace) -> None:
    plan = place.plan(SECOND, sample=3)
    assert plan.known == 0
    assert {stratum.name for stratum in plan.strata} == {"unparsed/short/text"}
    assert not (place.settings.state_folder / "ledger.sqlite").exists()


def test_the_same_arguments_are_the_same_pilot(place: PilotPlace) -> None:
    plan = place.plan(FIRST, SECOND)
    assert place.plan(SECOND, FIRST) == plan, "the order of versions is no other pilot"
    place.go_on(plan)
    ran = len(place.step.ran)
    again = place.go_on(place.plan(FIRST, SECOND))
    assert again.published
    assert len(place.step.ran) == ran, "nothing was left to do"
    assert pilot_ids(place.settings) == [plan.pilot_id]


def test_a_version_that_was_changed_since_is_another_pilot(
    place: PilotPlace, tmp_path: Path
) -> None:
    specs = tmp_path / "specs"
    specs.mkdir()
    spec = yaml.safe_load((PACKAGED_SPECS / f"{SECOND}.yaml").read_text(encoding="utf-8"))
    file = specs / "mine-1.yaml"
    file.write_text(yaml.safe_dump(spec | {"key": "mine-1"}))
    place.settings = place.settings.model_copy(update={"specs": specs})
    plan = place.plan("mine-1")
    outcome = place.go_on(plan)
    assert not place.report(outcome).versions[0].spec_changed
    file.write_text(yaml.safe_dump(spec | {"key": "mine-1", "batch_records": 7}))
    assert place.plan("mine-1").pilot_id != plan.pilot_id, "its figures would be another's"
    (found,) = place.report(outcome).versions
    assert found.spec_changed
    assert "say something else by now" in page_of(place.report(outcome), "now")


def test_another_folder_is_another_pilot(place: PilotPlace, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere" / "documents"
    shutil.copytree(tmp_path / "documents", other)
    plan = place.plan(SECOND)
    moved = PilotPlace(place.settings.model_copy(update={"source": other}), place.step)
    assert [one.document_id for one in moved.plan(SECOND).taken] == [
        one.document_id for one in plan.taken
    ]
    assert moved.plan(SECOND).pilot_id != plan.pilot_id


def test_a_doubt_that_holds_nothing_up_is_none(place: PilotPlace) -> None:
    plan = place.plan(SECOND)
    outcome = place.go_on(plan)
    before = place.report(outcome).versions[0].findings
    assert before
    own = place.settings.model_copy(update={"state": place.folder(plan)})
    with open_context(own, clock=place.step.clock) as pilot, pilot.ledger.write() as connection:
        rule = sorted(before)[0]
        connection.execute(update(findings).where(findings.c.rule == rule).values(severity="note"))
    after = place.report(outcome).versions[0].findings
    assert after == {name: count for name, count in before.items() if name != rule}


def test_a_killed_pilot_goes_on(place: PilotPlace) -> None:
    """Ended before each step in turn, it does in the end what an undisturbed one does."""
    for dies_at in range(6):
        step = place.step
        begun = len(step.ran)

        def die(_step: str, _key: str, at: int = begun + dies_at) -> None:
            if len(place.step.ran) >= at:
                raise KeyboardInterrupt

        step.before = die
        plan = place.plan(FIRST, SECOND, seed=dies_at)
        with pytest.raises(KeyboardInterrupt):
            place.go_on(plan)
        step.before = lambda _step, _key: None
        outcome = place.go_on(plan)
        assert outcome.published
        (first, second) = place.report(outcome).versions
        assert first.outcomes == second.outcomes
        assert first.outcomes["published"] == 12
        assert step.ran[begun:].count(("scan", "")) == 1


def test_what_changed_or_went_since_is_told(place: PilotPlace) -> None:
    source = place.settings.source_folder
    with open_context(place.settings, clock=place.step.clock) as main:
        prepare_main(main)
        plan = place.plan(SECOND, main=main)
        (source / "d0.txt").write_text((source / "d0.txt").read_text() + "One more line.\n")
        (source / "d1.txt").unlink()
        outcome = place.go_on(plan, main=main)
    report = place.report(outcome)
    assert report.changed == ("shop/d0.txt",)
    assert report.gone == ("shop/d1.txt",)
    assert report.versions[0].outcomes["gone"] == 1
    # What changes after the scan is not asked about again: the pilot keeps what it read.
    (source / "d2.txt").write_text("something else altogether")
    ran = len(place.step.ran)
    assert place.go_on(plan).published
    assert len(place.step.ran) == ran


def test_settings_of_the_archive_hold_in_the_pilot(place: PilotPlace) -> None:
    with open_context(place.settings, clock=place.step.clock) as main:
        version = open_version(main, SECOND)
        cause = main.cause("the test says so", "test")
        for number, name, value in (
            (version.version_no, "scope", "replays"),
            (version.version_no, "promote", "manual"),
            (version.version_no, "reviewer_usd_hour", "60"),
            (None, "sample_least", "9"),
        ):
            set_operating(main.ledger, number, name, value, cause)
        plan = place.plan(SECOND, main=main)
        outcome = place.go_on(plan, main=main)
    assert outcome.published, "the sample is processed whatever the scope is"
    with open_context(
        place.settings.model_copy(update={"state": place.folder(plan)}), clock=place.step.clock
    ) as pilot:
        frozen = find(pilot.ledger, SECOND)
        assert frozen is not None
        known = all_operating(pilot.ledger, frozen.version_no)
    assert known == {
        "sample_least": "9",
        "reviewer_usd_hour": "60",
        "scope": "all",
        "promote": "auto",
    }
    (found,) = place.report(outcome, minutes=Decimal(2)).versions
    assert found.cost is not None
    assert found.cost.review_usd == Decimal(2), "one review of two minutes at 60 dollars an hour"
    assert found.cost.per_accepted_reviewed == Decimal(2) / 12


def test_known_values(place: PilotPlace) -> None:
    plan = place.plan(SECOND)
    outcome = place.go_on(plan)
    truth = {
        "shop/d0.txt": {"title": ("Circulation Pump WP-100 User Manual",), "language": ("en",)},
        "shop/d1.txt": {"title": ("CIRCULATION PUMP WP-101 USER MANUAL",)},
        "shop/d2.txt": {"product_identifiers": ("WP-999",)},
        "shop/doubtful.txt": {"title": ("Drum",)},
    }
    (version,) = place.report(outcome, truth).versions
    assert version.score is not None
    assert (version.score.documents, version.score.unanswered) == (3, 1)
    scores = {one.field: one for one in version.score.fields}
    title, language, parts = (scores[name] for name in ("title", "language", "product_identifiers"))
    assert (title.known, title.exact, title.form) == (2, 1, 1)
    assert (language.known, language.exact) == (1, 1)
    assert (parts.known, parts.wrong) == (1, 1)


def test_an_erased_or_excluded_document_is_not_taken(place: PilotPlace) -> None:
    (place.settings.source_folder / "nothing.txt").touch()
    plan = place.plan(SECOND)
    assert plan.left_out == {"empty": 1}
    assert "shop/nothing.txt" not in {one.document_id for one in plan.taken}


def test_drop(place: PilotPlace) -> None:
    plan = place.plan(SECOND)
    place.go_on(plan)
    own = place.settings.model_copy(update={"state": place.folder(plan)})
    with open_context(own, clock=place.step.clock) as pilot:
        assert look_at_outcome(pilot, plan).published
        with pytest.raises(DropReasonMissing):
            drop_pilot(place.settings, pilot, plan.pilot_id, " ", force=False)
        assert drop_pilot(place.settings, pilot, plan.pilot_id, "seen enough", force=False) > 10_000
    assert pilot_ids(place.settings) == []
    assert not place.folder(plan).exists()
    noted = json.loads((place.folder(plan).parent / "dropped.jsonl").read_text())
    assert (noted["pilot_id"], noted["reason"]) == (plan.pilot_id, "seen enough")
    with pytest.raises(UnknownPilot, match="there are: none"):
        find_plan(place.settings, plan.pilot_id)


@pytest.mark.parametrize(
    ("versions", "error"),
    [
        pytest.param((), NoVersions, id="none"),
        pytest.param((FIRST, FIRST), NoVersions, id="twice"),
        pytest.param((FIRST, "tickets-baseline-1"), OtherWorkloads, id="two-workloads"),
    ],
)
def test_versions_that_are_refused(
    place: PilotPlace, versions: tuple[str, ...], error: type[Exception]
) -> None:
    with pytest.raises(error):
        place.plan(*versions)
    assert not place.settings.state_folder.exists()


def test_samples_that_are_refused(place: PilotPlace) -> None:
    with open_context(place.settings, clock=place.step.clock) as main:
        prepare_main(main)
        with pytest.raises(SampleTooSmall, match="at least 2"):
            place.plan(SECOND, sample=1, main=main)
    for file in place.settings.source_folder.iterdir():
        file.write_bytes(b"")
    with pytest.raises(NothingToSample):
        place.plan(SECOND)


def test_a_damaged_plan_is_told(place: PilotPlace) -> None:
    plan = place.plan(SECOND)
    (place.folder(plan) / "plan.json").write_text("{")
    with pytest.raises(PilotDamaged, match="pilot drop"):
        find_plan(place.settings, plan.pilot_id)
    assert drop_pilot(place.settings, None, plan.pilot_id, "damaged", force=False) == 1
    assert pilot_ids(place.settings) == []
