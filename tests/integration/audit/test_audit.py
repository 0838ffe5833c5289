"""The audit over a real state: clean where nothing was touched, and naming what was."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from pipeline_assets.audit.run import SampleRefused, audit
from pipeline_assets.audit.three_facts import CHECKS, prove_three_facts
from pipeline_assets.known_version import VersionNeverUsed
from resources.ledger.audits import newest_audit
from resources.ledger.schema import metadata
from tests.faults.tampering.plants import PLANTS, Hands, Plant
from tests.faults.tampering.states import State
from tests.support.small_archive import KEY

QUICK = (
    "delete a member of a move",
    "cut the newest moves off a chain and put the states back",
    "write a whole chain anew",
    "add a move that no table allows, with digests that fit",
    "change the tokens of an answer",
    "change published content with every digest of it",
    "deliver twice",
    "edit who decided a review, in the review and its act",
    "put another report in the place of a closed one",
)
"""Planted in the fast tests; all of them are in the slow ones."""


def counts(state: State) -> dict[str, int]:
    with state.opened() as context, context.ledger.read() as connection:
        return {
            table.name: connection.execute(text(f"SELECT COUNT(*) FROM {table.name}")).scalar_one()
            for table in metadata.sorted_tables
        }


def test_an_untouched_state_is_clean_and_nothing_is_written(state: State) -> None:
    before = counts(state)
    files = sorted(path for path in (state.folder / "state" / "artifacts").rglob("*"))
    with state.opened() as context:
        report = audit(context)
    assert report.findings == ()
    assert report.clean
    assert (report.open, report.left_out) == ((), ())
    assert all(fact.holds and fact.checked for fact in report.facts)
    assert report.checked["deliver.again"] > 0
    after = counts(state)
    assert after.pop("audits") == before.pop("audits") + 1
    assert after == before
    assert files == sorted(path for path in (state.folder / "state" / "artifacts").rglob("*"))


def test_an_audit_is_kept_with_what_it_saw(state: State) -> None:
    with state.opened() as context:
        report = audit(context, KEY, sample=0)
        with context.ledger.read() as connection:
            kept = newest_audit(connection)
    assert kept is not None
    assert (kept.audit_no, kept.findings, kept.scope.version) == (report.audit_no, 0, KEY)
    assert len(kept.scope.heads) == report.chains
    assert kept.scope.sample == 0


def test_the_three_facts_of_a_version(state: State) -> None:
    before = counts(state)
    with state.opened() as context:
        facts = prove_three_facts(context, KEY)
    assert facts.holds
    assert [fact.name for fact in facts.facts] == list(CHECKS)
    assert counts(state) == before


@pytest.mark.parametrize(
    ("statement", "fact"),
    [
        pytest.param("DELETE FROM dispositions WHERE attempt_no = 1", 0, id="a disposition less"),
        pytest.param(
            "UPDATE archive_entries SET content = '{}' WHERE entry_no = 1", 1, id="no content"
        ),
        pytest.param(
            "UPDATE dispositions SET input_tokens = 5 WHERE attempt_no = 1", 2, id="other tokens"
        ),
        pytest.param(
            "DELETE FROM deliveries WHERE entry_no = (SELECT MAX(entry_no) FROM deliveries)",
            2,
            id="a delivery less",
        ),
    ],
)
def test_what_speaks_against_a_fact(state: State, statement: str, fact: int) -> None:
    with state.opened() as context:
        with context.ledger.write() as connection:
            connection.execute(text(statement))
        facts = prove_three_facts(context, KEY)
    assert not facts.holds
    assert facts.facts[fact].findings


@pytest.mark.parametrize(
    "plant", [pytest.param(each, id=each.name) for each in PLANTS if each.name in QUICK]
)
def test_tampering_is_named(state: State, plant: Plant) -> None:
    with state.opened() as context:
        wanted = plant.act(Hands(context))
        report = audit(context)
    assert any(wanted in f"{finding.subject} " for finding in report.findings), report.findings


def test_the_quick_ones_are_all_there() -> None:
    assert set(QUICK) <= {plant.name for plant in PLANTS}
    assert len({plant.name for plant in PLANTS}) == len(PLANTS) >= 40


def test_a_chain_that_was_cut_is_told_again_by_the_next_audit(state: State) -> None:
    cut = next(plant for plant in PLANTS if plant.name.startswith("cut the newest"))
    with state.opened() as context:
        wanted = cut.act(Hands(context))
        told = [
            [
                finding.subject
                for finding in audit(context).findings
                if finding.check.endswith("heads")
            ]
            for _ in range(2)
        ]
    # By the audit before, and by each report that was kept.
    assert [set(subjects) for subjects in told] == [{wanted}, {wanted}]


def test_a_batch_that_is_not_complete_is_open_and_no_finding(state: State) -> None:
    with state.opened() as context:
        with context.ledger.write() as connection:
            connection.execute(text("DELETE FROM dispositions"))
            connection.execute(text("UPDATE batches SET state = 'running'"))
        facts = prove_three_facts(context, KEY)
    assert facts.facts[0].open
    assert not facts.facts[0].holds


@pytest.mark.parametrize("sample", [-1.0, 101.0, float("nan")])
def test_a_share_that_is_none_is_refused(state: State, sample: float) -> None:
    with state.opened() as context, pytest.raises(SampleRefused):
        audit(context, sample=sample)


def test_a_version_that_was_never_used_is_refused(state: State) -> None:
    with state.opened() as context, pytest.raises(VersionNeverUsed):
        audit(context, "manuals-never-1")


@pytest.mark.parametrize(
    ("statement", "subject"),
    [
        pytest.param("UPDATE batches SET batch_id = 'x' || batch_no", "batch x1", id="names"),
        pytest.param("UPDATE batches SET mode = 'batch', provider = 'us'", "batch", id="provider"),
        pytest.param("UPDATE audits SET scope = 'nonsense'", "the audit before", id="scope"),
        pytest.param("UPDATE archive_entries SET content = 'nonsense'", "archive", id="content"),
        pytest.param(
            "UPDATE deliveries SET accepted_digest = request_digest", "delivery", id="keys"
        ),
        pytest.param("UPDATE attempts SET request_offset = -5", "attempt 1 ", id="places"),
        pytest.param("UPDATE attempts SET record_no = 1", "record", id="one record for all"),
        pytest.param("UPDATE results SET line_offset = 99999999", "line", id="lines"),
        pytest.param("DELETE FROM moves", "move", id="no journal"),
        pytest.param("DELETE FROM attempts", "record", id="no attempts"),
        pytest.param("DELETE FROM records", "record", id="no records"),
    ],
)
def test_rows_that_make_no_sense_are_findings_and_no_failure(
    state: State, statement: str, subject: str
) -> None:
    with state.opened() as context:
        with context.ledger.write() as connection:
            connection.execute(text(statement))
        report = audit(context)
    assert any(finding.subject.startswith(subject) for finding in report.findings)
