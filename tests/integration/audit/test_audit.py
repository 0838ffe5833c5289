"""The audit over a real state: clean where nothing was touched, and naming what was."""

from __future__ import annotations

import polars as pl
import pytest
from sqlalchemy import Connection, text

from pipeline_assets.account.reconciliation.kept import keep_report
from pipeline_assets.audit import redelivery, run
from pipeline_assets.audit.look import Look
from pipeline_assets.audit.run import NoSuchDigest, SampleRefused, audit
from pipeline_assets.audit.three_facts import CHECKS, prove_three_facts
from pipeline_assets.known_version import VersionNeverUsed
from pipeline_assets.publish.publish_accepted import Delivery
from resources.context import Context
from resources.ledger.audits import newest_audit
from resources.ledger.schema import metadata
from tests.faults.tampering.plants import PLANTS, Hands, Plant
from tests.faults.tampering.states import State
from tests.support.small_archive import KEY

pytestmark = pytest.mark.slow

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


def test_what_an_earlier_audit_saw_is_held_against_by_the_digest_that_it_printed(
    state: State,
) -> None:
    with state.opened() as context:
        digest = audit(context).journal_digest
        keep_report(context, KEY)
        audit(context)
        assert audit(context, since=f" {digest.upper()}\n").clean


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        pytest.param("DELETE FROM audits", "no such audit on record", id="its row is gone"),
        pytest.param(
            "UPDATE audits SET scope = REPLACE(scope, '\"version:1\":[1,', '\"version:1\":[0,')",
            "heads that do not have this digest now",
            id="its row says that it saw less",
        ),
        pytest.param(
            "UPDATE archive_entries SET valid_from = '2001-01-01T00:00:00.000000Z' "
            "WHERE entry_no = 1",
            "heads that do not have this digest now",
            id="a row that it saw was changed",
        ),
    ],
)
def test_a_digest_that_somebody_kept_tells_what_the_ledger_hides(
    state: State, statement: str, found: str
) -> None:
    with state.opened() as context:
        digest = audit(context).journal_digest
        with context.ledger.write() as connection:
            assert connection.execute(text(statement)).rowcount
        told = [each.found for each in audit(context, since=digest).findings]
    assert found in told


@pytest.mark.parametrize("since", ["", "abc", "g" * 64])
def test_what_is_no_digest_is_refused(state: State, since: str) -> None:
    with state.opened() as context, pytest.raises(NoSuchDigest):
        audit(context, since=since)


def test_nobody_waits_while_published_records_are_delivered_again(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, written = redelivery.entries_again, []

    def beside_a_writer(connection: Connection, context: Context, plan: Delivery) -> pl.Series:
        # The plan stages tables before and after this.
        with context.ledger.write() as writing:
            written.append(
                writing.execute(text("UPDATE record_state SET version = version")).rowcount
            )
        return real(connection, context, plan)

    monkeypatch.setattr(redelivery, "entries_again", beside_a_writer)
    with state.opened() as context:
        assert audit(context).clean
    assert written
    assert all(written)


def test_nothing_that_a_plan_writes_is_kept(state: State) -> None:
    before = counts(state)
    with state.opened() as context:
        with context.ledger.plan() as connection:
            connection.execute(text("DELETE FROM deliveries"))
        with context.ledger.write() as connection:
            connection.execute(text("UPDATE records SET record_no = record_no"))
    assert counts(state) == before


@pytest.mark.parametrize("removed", [True, False])
def test_what_a_removal_did_meanwhile_is_no_finding(
    state: State, monkeypatch: pytest.MonkeyPatch, *, removed: bool
) -> None:
    real, looks = run.check_requests, []

    def beside_a_removal(look: Look) -> None:
        looks.append(look)
        if len(looks) == 1:
            look.findings.add("request.bytes", "attempt 1", "nothing", "a request")
            if removed:
                with context.ledger.write() as connection:
                    connection.execute(
                        text(
                            "INSERT INTO prunes (prune_no, policy, reason, actor, pruned_at, "
                            "removed) VALUES (1, '{}', 'old', 'ada', '2026', '{}')"
                        )
                    )
        real(look)

    monkeypatch.setattr(run, "check_requests", beside_a_removal)
    with state.opened() as context:
        assert audit(context).clean is removed
    assert len(looks) == 1 + removed


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
