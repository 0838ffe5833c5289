"""Replays: exactly what is selected, for a reason that stays, and nothing twice by accident."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from pipeline_assets.account.reasons import account_by_reason
from pipeline_assets.account.status import status
from pipeline_assets.prepare import freeze
from pipeline_assets.prepare.estimate import estimate
from pipeline_assets.replay.model import ReplayRefused
from pipeline_assets.replay.plan import RECORDED, REMOVED, UNDER_WAY, plan_replay
from pipeline_assets.replay.reasons import UnknownReplayReason
from pipeline_assets.versions import look_at_version
from resources.contracts import MANIFEST, read_frame
from resources.ledger.replays import find_replay, list_replays, selection_digest
from resources.ledger.versions import set_operating
from tests.integration.replay.support import FAN, ONE, PUMP, SAW, THREE, TWO, Works, request
from tests.integration.stages.support import manual

ONLY_PUMP = 'title like "*Pump*"'


@pytest.fixture
def done(works: Works) -> Works:
    """Three documents, published under ONE."""
    works.fill().run(ONE)
    assert set(works.shown().values()) == {ONE}
    return works


def test_only_what_is_selected_is_processed_under_the_other_version(done: Works) -> None:
    report = done.replay(where=ONLY_PUMP)
    assert report.records == 1
    assert report.plan is not None
    assert (report.plan.changes, report.plan.skipped) == (("new_model",), {})
    done.go_on(TWO)
    assert done.states(TWO) == {f"shop/{PUMP}": ("published", "new_model")}
    assert done.excluded(TWO) == {f"shop/{FAN}": "not_selected", f"shop/{SAW}": "not_selected"}
    assert done.shown() == {f"shop/{PUMP}": TWO, f"shop/{FAN}": ONE, f"shop/{SAW}": ONE}
    for key in (ONE, TWO):
        assert done.report(key).violations == ()
        assert status(done.context, key).done
    done.require_whole()


def test_the_replay_stays_with_its_selection_and_the_manifest_names_it(done: Works) -> None:
    made = done.replay(where=ONLY_PUMP, note="titles were cut").replay
    assert made is not None
    assert (made.from_version, made.to_version, made.reason) == (ONE, TWO, "new_model")
    assert (made.note, made.actor, made.expression) == ("titles were cut", "ada", ONLY_PUMP)
    assert (made.selected, made.manifest_id) == (1, f"{TWO}-m1")
    members = done.query(
        "SELECT m.document_no, m.record_no, d.document_id, r.checksum, r.record_id, m.slice "
        "FROM replay_members m JOIN documents d ON d.document_no = m.document_no "
        "JOIN records r ON r.record_no = m.record_no",
        {
            "document_no": pl.Int64,
            "record_no": pl.Int64,
            "document_id": pl.String,
            "checksum": pl.String,
            "record_id": pl.String,
            "slice": pl.String,
        },
    )
    assert members["document_id"].to_list() == [f"shop/{PUMP}"]
    assert "Pump" not in members["slice"].item(), "a slice holds no value of a document"
    assert selection_digest(members) == made.selection_digest
    artifact = done.query("SELECT artifact FROM manifests", {"artifact": pl.String})
    path = done.context.artifacts.path("manifest", artifact["artifact"][-1])
    assert read_frame(MANIFEST, path)["replay_reason"].to_list() == ["new_model"]


def test_the_same_replay_again_does_nothing(done: Works) -> None:
    first = done.replay(where=ONLY_PUMP)
    before = done.facts(), done.count("attempts"), done.count("manifests")
    again = done.replay(where=ONLY_PUMP)
    assert again.repeated
    assert again.replay == first.replay
    assert (done.facts(), done.count("attempts"), done.count("manifests")) == before


def test_a_name_that_another_replay_has_is_refused(done: Works) -> None:
    done.replay(where=ONLY_PUMP)
    tables = ("attempts", "manifests", "replays", "records")
    before = [done.count(table) for table in tables]
    other: dict[str, Any]
    for other in (
        {"where": "state = published"},
        {},
        {"where": ONLY_PUMP, "documents": (f"shop/{FAN}",)},
        {"where": ONLY_PUMP, "from_key": TWO},
        {"where": ONLY_PUMP, "to_key": THREE},
    ):
        with pytest.raises(ReplayRefused, match="carried out before with another selection"):
            done.replay(**other)
    assert [done.count(table) for table in tables] == before


def test_another_replay_of_the_same_records_says_that_they_are_there(done: Works) -> None:
    done.replay(where=ONLY_PUMP)
    again = done.replay(where=ONLY_PUMP, name="r-2")
    assert again.replay is None
    assert again.plan is not None
    assert again.plan.skipped == {RECORDED: 1}
    assert len(list_replays(done.context.ledger)) == 1
    more = done.replay(name="r-3")
    assert more.records == 2
    assert more.plan is not None
    assert more.plan.skipped == {RECORDED: 1}
    assert done.excluded(TWO) == {}


def test_a_usual_run_of_the_version_takes_only_what_replays_select(done: Works) -> None:
    done.replay(where=ONLY_PUMP)
    assert done.freeze(TWO).expected == 0
    assert done.setting(TWO, "scope") == [
        ("replays", "its first manifest is the replay r-1", "ada")
    ]
    number = done.version(TWO).version_no
    set_operating(
        done.context.ledger, number, "scope", "all", done.context.cause("all of them", "settings")
    )
    report = done.freeze(TWO)
    assert (report.expected, report.reasons) == (2, {"new_model": 2})
    assert done.excluded(TWO) == {}


def test_corrected_bytes_of_a_selected_document_are_in_scope(done: Works) -> None:
    done.replay(where=ONLY_PUMP)
    done.go_on(TWO)
    done.write(PUMP, manual("Circulation Pump", "WP-101"))
    done.write(FAN, manual("Ventilator", "VF-21"))
    done.run(TWO)
    assert done.states(TWO) == {f"shop/{PUMP}": ("published", "corrected_source")}
    assert done.excluded(TWO)[f"shop/{FAN}"] == "not_selected"
    done.run(ONE)
    assert done.states(ONE)[f"shop/{FAN}"] == ("published", "corrected_source")
    assert done.report(TWO).violations == ()


@pytest.mark.parametrize(
    ("key", "reason"),
    [pytest.param(TWO, "new_model", id="model"), pytest.param(THREE, "new_parser", id="parser")],
)
def test_a_version_that_is_simply_run_says_what_is_new_about_it(
    done: Works, key: str, reason: str
) -> None:
    done.run(key)
    assert {why for _, why in done.states(key).values()} == {reason}
    done.write("late.txt", manual("Belt Sander", "BS-4"))
    done.write(FAN, manual("Ventilator", "VF-21"))
    done.run(key)
    assert done.states(key)["shop/late.txt"][1] == "new_source"
    assert done.states(key)[f"shop/{FAN}"][1] == "corrected_source"


def test_a_listed_document_alone(done: Works) -> None:
    report = done.replay(documents=(f"shop/{FAN}",), reason="operator")
    assert report.records == 1
    assert done.states(TWO) == {f"shop/{FAN}": ("prepared", "operator")}
    assert report.replay is not None
    assert (report.replay.listed, report.replay.expression) == (1, None)


def test_another_attempt_under_the_same_version(done: Works) -> None:
    shown, entries = done.shown(), done.count("archive_entries")
    report = done.replay(ONE, ONE, where=ONLY_PUMP)
    assert report.records == 1
    assert report.replay is not None
    assert (report.replay.reason, report.replay.manifest_id) == ("operator", f"{ONE}-m2")
    assert done.states(ONE)[f"shop/{PUMP}"] == ("prepared", "new_source")
    # What was published stays while the other attempt is under way.
    assert done.shown() == shown
    assert done.report(ONE).violations == ()
    done.go_on(ONE)
    assert done.states(ONE)[f"shop/{PUMP}"][0] == "published"
    assert done.shown() == shown
    assert done.count("archive_entries") == entries, "the same answer is one business effect"
    assert done.count("attempts") == 4
    assert done.report(ONE).violations == ()
    done.require_whole()


def test_what_is_under_way_is_not_attempted_twice(works: Works) -> None:
    works.fill().accept(ONE)
    works.replay(ONE, ONE, where="state = accepted", documents=(f"shop/{PUMP}",))
    again = works.replay(ONE, ONE, name="r-2")
    assert again.plan is not None
    assert again.plan.skipped == {UNDER_WAY: 1}
    assert again.records == 2


def test_what_its_source_lost_is_left_out(done: Works) -> None:
    (done.folder / PUMP).unlink()
    done.accept(ONE)
    report = done.replay()
    assert report.plan is not None
    assert report.plan.skipped == {REMOVED: 1}
    assert report.records == 2


def test_nothing_selected_leaves_no_replay(done: Works) -> None:
    report = done.replay(where="state = dead_letter")
    assert (report.replay, report.records) == (None, 0)
    assert done.count("replays") == done.count("replay_members") == 0
    assert done.setting(TWO, "scope") == []


def test_a_replay_and_its_manifest_are_one_transaction(
    done: Works, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(Exception):
        pass

    def die(*_: Any, **__: Any) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(freeze, "replace_exclusions", die)
        with pytest.raises(Killed):
            done.replay(where=ONLY_PUMP)
    assert done.count("replays") == done.count("replay_members") == 0
    assert done.count("manifests") == 1
    assert done.setting(TWO, "scope") == []
    assert done.replay(where=ONLY_PUMP).records == 1


def test_every_record_and_attempt_has_its_reason(done: Works) -> None:
    done.replay(where=ONLY_PUMP)
    done.go_on(TWO)
    done.replay(ONE, ONE, documents=(f"shop/{FAN}",), name="r-2", note="a second look")
    done.go_on(ONE)
    first = account_by_reason(done.context, ONE)
    assert [(each.reason, each.records, each.attempts) for each in first.reasons] == [
        ("new_source", 3, 3),
        ("operator", 0, 1),
    ]
    (own,) = first.replays
    assert (own.replay_id, own.note, own.states) == ("r-2", "a second look", {"published": 1})
    second = account_by_reason(done.context, TWO)
    assert [(each.reason, each.states) for each in second.reasons] == [
        ("new_model", {"published": 1})
    ]
    assert first.adds_up
    assert second.adds_up
    assert (first.records, first.attempts) == (3, 4)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        pytest.param({"note": "  "}, ReplayRefused, "needs a reason", id="no note"),
        pytest.param(
            {"reason": "because"}, UnknownReplayReason, "is no replay reason", id="other reason"
        ),
    ],
)
def test_what_cannot_be_asked_for(
    done: Works, change: dict[str, str], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        plan_replay(done.context, done.version(TWO), replace(request(), **change))


def test_a_look_changes_nothing(done: Works) -> None:
    before = done.facts(), done.count("processing_versions")
    version = look_at_version(done.context, TWO)
    plan = plan_replay(done.context, version, request(where=ONLY_PUMP))
    cost = estimate(done.context, version, plan)
    assert (plan.members.height, cost.records, cost.amount) == (1, 1, None)
    assert cost.basis == "the built-in rules cost nothing"
    assert (done.facts(), done.count("processing_versions")) == before
    assert find_replay(done.context.ledger, "r-1") is None
