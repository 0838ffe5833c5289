"""Removed documents leave the archive by the policy of their source, and come back for nothing."""

from __future__ import annotations

import signal
from datetime import timedelta
from typing import Any

import polars as pl
import pytest
from pydantic import SecretStr
from sqlalchemy import func, insert, select, text

from pipeline_assets.account.export import export_entries
from pipeline_assets.account.published import NotPublished, published_entry
from pipeline_assets.outlets.deliver import send_changes
from pipeline_assets.outlets.http import WebhookOutlet
from pipeline_assets.publish.withdraw import WithdrawReport, withdraw_removed
from pipeline_assets.review.decisions import asked_of, decide
from resources.clock import to_text
from resources.ledger.leases import LEASE_SECONDS, Lease, acquire
from resources.ledger.schema import attempts, dead_letters, erasures, retry_decisions, reviews
from resources.ledger.versions import journal_operating
from tests.integration.publish.killing import Executioner, Killed, watched
from tests.integration.publish.market import Market
from tests.integration.publish.support import ONE, TWO
from tests.integration.stages.support import manual
from tests.support.dying_forks import dying_forks
from tests.support.outlet_receiver import outlet_receiver

PUMP, FAN = "pump.txt", "fan.txt"
PUMP_ID, FAN_ID = f"shop/{PUMP}", f"shop/{FAN}"
PUMP_TEXT = manual("Circulation Pump", "WP-100")
OTHER_PUMP = manual("Circulation Pump", "WP-200")
LEAST_STATEMENTS = 15
"""Below what a withdrawal sends."""


def test_a_removed_document_leaves_the_archive(market: Market) -> None:
    market.settle()
    before = market.clock()
    market.remove(PUMP)
    report = market.settle()
    assert report == WithdrawReport(withdrawn=1, ended=1)
    assert market.states() == {FAN_ID: ["published"], PUMP_ID: ["withdrawn"]}
    assert market.shown() == {FAN_ID: ONE}
    assert [entry["document_id"] for entry in export_entries(market.context)] == [FAN_ID]
    assert market.found("circulation") == 0
    assert market.found("ventilator") == 1
    with pytest.raises(NotPublished):
        published_entry(market.context, PUMP_ID)
    assert published_entry(market.context, PUMP_ID, as_of=before)["document_id"] == PUMP_ID
    assert market.changes()[-1] == ("removal", 0, 1)
    market.require_sound()
    assert market.settle() == WithdrawReport()


def test_outlets_are_told(market: Market) -> None:
    with outlet_receiver() as receiver:
        outlet = WebhookOutlet(SecretStr(receiver.url))

        def heard() -> list[tuple[str, str, str]]:
            known = len(receiver.holder.effects)
            send_changes(market.context, outlet=outlet, at_once=True)
            fresh = list(receiver.holder.effects.values())[known:]
            return sorted((row["document_id"], row["effect"], row["change"]) for row in fresh)

        market.settle()
        assert heard() == [(FAN_ID, "put", "publish"), (PUMP_ID, "put", "publish")]
        market.remove(PUMP)
        market.settle()
        assert heard() == [(PUMP_ID, "remove", "removal")]
        market.write(PUMP, PUMP_TEXT)
        market.settle()
        assert heard() == [(PUMP_ID, "put", "restore")]


def test_a_policy_of_keeping_keeps_it(market: Market) -> None:
    market.declare("keep")
    market.settle()
    market.remove(PUMP)
    assert market.settle() == WithdrawReport()
    assert market.shown() == {FAN_ID: ONE, PUMP_ID: ONE}
    assert market.states()[PUMP_ID] == ["published"]


def test_a_source_that_is_not_declared_any_more_keeps_its_documents(market: Market) -> None:
    market.settle()
    market.remove(PUMP)
    market.scan()
    file = market.context.settings.sources_file
    file.write_text(file.read_text().replace("  shop:", "  other:"))
    assert market.withdraw() == WithdrawReport()
    assert market.shown() == {FAN_ID: ONE, PUMP_ID: ONE}


def test_a_document_that_is_excluded_now_is_still_held(market: Market) -> None:
    market.settle()
    market.write(PUMP, "")
    assert market.settle() == WithdrawReport()
    assert market.shown() == {FAN_ID: ONE, PUMP_ID: ONE}


def test_the_last_document_of_a_source_leaves_too(market: Market) -> None:
    market.settle()
    market.remove(PUMP)
    market.remove(FAN)
    market.scan()
    assert market.withdraw() == WithdrawReport(withdrawn=2, ended=2)
    assert market.shown() == {}
    market.require_sound()


def test_the_same_bytes_come_back_without_a_question(market: Market) -> None:
    market.settle()
    asked = market.attempts()
    market.remove(PUMP)
    market.settle()
    market.write(PUMP, PUMP_TEXT)
    assert market.settle() == WithdrawReport(returned=1, shown=1)
    assert market.attempts() == asked
    assert market.states()[PUMP_ID] == ["published"]
    assert market.shown() == {FAN_ID: ONE, PUMP_ID: ONE}
    assert market.sequence(PUMP_ID) == [(ONE, 1, "publish"), (ONE, 2, "restore")]
    assert market.found("circulation") == 1
    market.require_sound()
    assert market.settle() == WithdrawReport()
    market.remove(PUMP)
    assert market.settle() == WithdrawReport(withdrawn=1, ended=1)
    market.write(PUMP, PUMP_TEXT)
    assert market.settle() == WithdrawReport(returned=1, shown=1)
    market.require_sound()


def test_a_document_comes_back_before_anybody_looked(market: Market) -> None:
    market.settle()
    market.remove(PUMP)
    market.scan()
    market.write(PUMP, PUMP_TEXT)
    assert market.settle() == WithdrawReport()
    assert market.sequence(PUMP_ID) == [(ONE, 1, "publish")]


@pytest.mark.slow
def test_other_bytes_are_a_new_record_and_the_old_ones_come_back_later(market: Market) -> None:
    market.settle()
    market.remove(PUMP)
    market.settle()
    market.write(PUMP, OTHER_PUMP)
    assert market.settle() == WithdrawReport()
    assert market.states()[PUMP_ID] == ["withdrawn", "published"]
    assert _shown_record(market, PUMP_ID) == _records(market, PUMP_ID)[1]
    market.require_sound()
    asked = market.attempts()
    market.write(PUMP, PUMP_TEXT)
    assert market.settle() == WithdrawReport(returned=1, shown=1)
    assert market.states()[PUMP_ID] == ["published", "published"]
    assert market.attempts() == asked
    assert _shown_record(market, PUMP_ID) == _records(market, PUMP_ID)[0]
    market.require_sound()
    market.write(PUMP, OTHER_PUMP)
    market.settle()
    assert _shown_record(market, PUMP_ID) == _records(market, PUMP_ID)[1]
    assert market.attempts() == asked
    market.require_sound()


def test_it_comes_back_with_the_bytes_that_were_corrected(market: Market) -> None:
    market.settle()
    market.write(PUMP, OTHER_PUMP)
    market.settle()
    market.remove(PUMP)
    assert market.settle() == WithdrawReport(withdrawn=2, ended=1)
    market.write(PUMP, PUMP_TEXT)
    asked = market.attempts()
    assert market.settle() == WithdrawReport(returned=1, shown=1)
    assert market.states()[PUMP_ID] == ["published", "withdrawn"]
    assert _shown_record(market, PUMP_ID) == _records(market, PUMP_ID)[0]
    assert market.attempts() == asked
    market.require_sound()


def test_a_correction_of_the_source_is_no_removal(market: Market) -> None:
    market.settle()
    market.write(PUMP, OTHER_PUMP)
    market.scan()
    assert market.withdraw() == WithdrawReport()
    assert _shown_record(market, PUMP_ID) == _records(market, PUMP_ID)[0]


def test_no_version_shows_it_any_more(market: Market) -> None:
    market.settle(ONE)
    market.settle(TWO)
    assert market.shown()[PUMP_ID] == TWO
    market.remove(PUMP)
    assert market.settle(TWO) == WithdrawReport(withdrawn=2, ended=1)
    assert market.shown() == {FAN_ID: TWO}
    assert market.states(ONE)[PUMP_ID] == market.states(TWO)[PUMP_ID] == ["withdrawn"]
    market.require_sound(TWO)
    market.write(PUMP, PUMP_TEXT)
    assert market.settle(ONE) == WithdrawReport(returned=2, shown=1)
    assert market.shown() == {FAN_ID: TWO, PUMP_ID: TWO}
    market.require_sound(TWO)


def test_what_a_rollback_took_away_stays_away(market: Market) -> None:
    market.settle(ONE)
    market.settle(TWO)
    market.rollback_document(PUMP_ID)
    assert market.shown()[PUMP_ID] == ONE
    market.remove(PUMP)
    market.settle(TWO)
    market.write(PUMP, PUMP_TEXT)
    market.settle(TWO)
    assert market.shown() == {FAN_ID: TWO, PUMP_ID: ONE}
    assert market.states(TWO)[PUMP_ID] == ["published"]
    market.require_sound(TWO)


def test_what_a_rollback_took_out_of_the_archive_stays_out(market: Market) -> None:
    market.settle()
    market.rollback_document(PUMP_ID)
    assert market.shown() == {FAN_ID: ONE}
    market.remove(PUMP)
    assert market.settle() == WithdrawReport(withdrawn=1)
    market.write(PUMP, PUMP_TEXT)
    assert market.settle() == WithdrawReport(returned=1)
    assert market.shown() == {FAN_ID: ONE}
    assert market.states()[PUMP_ID] == ["published"]


@pytest.mark.parametrize("by", ["promotion", "policy"])
def test_a_version_that_publishes_by_command_waits_for_it(market: Market, by: str) -> None:
    market.settle()
    _promote_policy(market, "manual")
    market.remove(PUMP)
    market.settle()
    assert market.shown() == {FAN_ID: ONE}
    market.write(PUMP, PUMP_TEXT)
    assert market.settle() == WithdrawReport(returned=1, waiting=1)
    assert market.states()[PUMP_ID] == ["accepted"]
    assert market.shown() == {FAN_ID: ONE}
    if by == "promotion":
        market.promote()
    else:
        _promote_policy(market, "auto")
        market.settle()
    assert market.shown() == {FAN_ID: ONE, PUMP_ID: ONE}
    assert market.states()[PUMP_ID] == ["published"]
    market.require_sound()


def test_an_accepted_record_is_never_published_after_its_document_went(market: Market) -> None:
    market.accept()
    market.remove(PUMP)
    market.scan()
    assert market.withdraw() == WithdrawReport(withdrawn=1)
    market.publish()
    assert market.shown() == {FAN_ID: ONE}
    market.write(PUMP, PUMP_TEXT)
    asked = market.attempts()
    assert market.settle() == WithdrawReport(returned=1)
    assert market.shown() == {FAN_ID: ONE, PUMP_ID: ONE}
    assert market.attempts() == asked
    market.require_sound()


def test_an_open_review_is_closed_and_opened_again(market: Market) -> None:
    market.accept()
    record = market.record_of(PUMP_ID)
    market.doubt(record)
    market.decide(record, None, kind="findings")
    market.move(record, "accepted", "awaiting_review")
    market.remove(PUMP)
    market.scan()
    assert market.withdraw() == WithdrawReport(withdrawn=1)
    assert _reviews(market) == [("overtaken", 2)]
    assert _acts(market) == ["withdrawn"]
    market.write(PUMP, PUMP_TEXT)
    market.scan()
    assert market.withdraw() == WithdrawReport(returned=1)
    assert market.states()[PUMP_ID] == ["awaiting_review"]
    assert _reviews(market) == [(None, 3)]
    assert _acts(market) == ["withdrawn", "reopened"]
    decide(market.context, asked_of([(1, 3)]), "accept", reviewer="ann", reason="it is right")
    market.publish()
    assert market.shown() == {FAN_ID: ONE, PUMP_ID: ONE}
    market.require_sound()


def test_a_review_that_was_overtaken_before_stays_so(market: Market) -> None:
    market.settle()
    record = market.record_of(PUMP_ID)
    market.decide(record, "overtaken", kind="quality_sample")
    market.remove(PUMP)
    market.settle()
    market.write(PUMP, PUMP_TEXT)
    market.settle()
    assert _reviews(market) == [("overtaken", 1)]


def test_a_correction_is_shown_again(market: Market) -> None:
    market.settle()
    market.decide(
        market.record_of(PUMP_ID), "correct", title="The right title", kind="quality_sample"
    )
    market.publish()
    assert market.titles()[PUMP_ID] == "The right title"
    market.remove(PUMP)
    market.settle()
    market.write(PUMP, PUMP_TEXT)
    market.settle()
    assert market.titles()[PUMP_ID] == "The right title"
    market.require_sound()


def test_a_dead_letter_is_closed_and_opened_again(market: Market) -> None:
    market.accept()
    record = market.record_of(PUMP_ID)
    market.put_in_state(record, "dead_letter")
    newest = _newest_attempt(market, record)
    opened_at = market.context.ledger.now()
    with market.context.ledger.write() as connection:
        connection.execute(
            insert(dead_letters).values(
                attempt_no=newest,
                record_no=record,
                version_no=1,
                failure_class="server_error",
                reason="for the test",
                owner="ann",
                opened_at=opened_at,
            )
        )
    market.remove(PUMP)
    market.scan()
    assert market.withdraw() == WithdrawReport(withdrawn=1)
    assert _episode(market)["closing"] == "withdrawn"
    market.write(PUMP, PUMP_TEXT)
    market.scan()
    assert market.withdraw() == WithdrawReport(returned=1)
    found = _episode(market)
    assert (found["closing"], found["owner"], found["opened_at"]) == (None, "ann", opened_at)
    assert market.states()[PUMP_ID] == ["dead_letter"]


@pytest.mark.parametrize(
    ("after", "wait"), [(3_600, True), (-3_600, False)], ids=["not yet due", "due"]
)
def test_a_retry_is_due_when_it_was_but_never_before_now(
    market: Market, after: int, wait: bool
) -> None:
    market.accept()
    record = market.record_of(PUMP_ID)
    market.put_in_state(record, "retry_wait")
    until = _later(market, after)
    with market.context.ledger.write() as connection:
        connection.execute(
            insert(retry_decisions).values(
                attempt_no=_newest_attempt(market, record),
                record_no=record,
                decision="retry",
                recovery_path="repeat",
                counted=1,
                failure_class="server_error",
                reason="for the test",
                not_before=until,
                decided_at=market.context.ledger.now(),
            )
        )
    market.remove(PUMP)
    market.scan()
    market.withdraw()
    market.write(PUMP, PUMP_TEXT)
    market.scan()
    assert market.withdraw() == WithdrawReport(returned=1)
    due = market.query(
        f"SELECT not_before FROM record_state WHERE record_no = {record}",
        {"not_before": pl.String},
    ).item()
    assert due == (until if wait else market.context.ledger.now())
    assert market.states()[PUMP_ID] == ["retry_wait"]


@pytest.mark.parametrize("state", ["rejected", "queued"])
def test_other_states_come_back_as_they_were(market: Market, state: str) -> None:
    market.accept()
    record = market.record_of(PUMP_ID)
    market.put_in_state(record, state)
    market.remove(PUMP)
    market.scan()
    assert market.withdraw() == WithdrawReport(withdrawn=1)
    market.write(PUMP, PUMP_TEXT)
    market.scan()
    assert market.withdraw() == WithdrawReport(returned=1)
    assert market.states()[PUMP_ID] == [state]


@pytest.mark.parametrize("state", ["prepared", "submitted", "collected"])
def test_an_attempt_under_way_ends_first(market: Market, state: str) -> None:
    market.settle()
    record = market.record_of(PUMP_ID)
    market.put_in_state(record, state)
    market.remove(PUMP)
    market.scan()
    assert market.withdraw() == WithdrawReport(ended=1, later=1)
    assert market.states()[PUMP_ID] == [state]
    assert market.shown() == {FAN_ID: ONE}
    market.put_in_state(record, "accepted")
    assert market.withdraw() == WithdrawReport(withdrawn=1)
    market.write(PUMP, PUMP_TEXT)
    market.settle()
    assert market.shown() == {FAN_ID: ONE, PUMP_ID: ONE}


@pytest.mark.parametrize("state", ["discarded", "cancelled", "superseded"])
def test_settled_records_stay_as_they_are(market: Market, state: str) -> None:
    market.accept()
    market.put_in_state(market.record_of(PUMP_ID), state)
    market.remove(PUMP)
    market.scan()
    assert market.withdraw() == WithdrawReport()
    assert market.states()[PUMP_ID] == [state]


def test_an_erased_document_never_comes_back(market: Market) -> None:
    market.settle()
    market.remove(PUMP)
    market.settle()
    with market.context.ledger.write() as connection:
        connection.execute(
            insert(erasures).values(
                document_no=market.document_no(PUMP_ID),
                reason="for the test",
                actor="ann",
                begun_at=market.context.ledger.now(),
                purged="{}",
            )
        )
    market.write(PUMP, PUMP_TEXT)
    market.scan()
    assert market.withdraw() == WithdrawReport()
    assert market.states()[PUMP_ID] == ["withdrawn"]


def test_another_worker_at_it_is_told(market: Market) -> None:
    market.settle()
    market.remove(PUMP)
    market.scan()
    lease: Lease = acquire(market.context.ledger, "withdraw:equipment_manuals", "other", 600)
    assert market.withdraw() == WithdrawReport(busy=True)
    assert market.shown() == {FAN_ID: ONE, PUMP_ID: ONE}
    assert lease.owner == "other"
    market.clock.advance(601)
    assert market.withdraw() == WithdrawReport(withdrawn=1, ended=1)


def _ready(market: Market, step: str) -> dict[str, Any]:
    """Everything that the step needs, with something of each kind to do; the facts before it."""
    market.settle(ONE)
    market.settle(TWO)
    market.decide(market.record_of(PUMP_ID, TWO), None, kind="quality_sample")
    market.remove(PUMP)
    market.scan()
    if step == "return":
        market.withdraw(TWO)
        market.write(PUMP, PUMP_TEXT)
        market.scan()
    return _facts(market)


@pytest.mark.slow
@pytest.mark.parametrize("step", ["withdrawal", "return"])
def test_dying_at_every_statement(market: Market, step: str) -> None:
    before = _ready(market, step)
    version, die_at = market.version(TWO), 0
    while True:
        die_at += 1
        try:
            with watched(market.context, Executioner(die_at)):
                withdraw_removed(market.context, version)
        except Killed:
            assert _facts(market) == before or _is_done(market, step)
            market.require_sound(TWO)
            market.clock.advance(LEASE_SECONDS + 1)
        else:
            break
    assert die_at > LEAST_STATEMENTS
    assert _is_done(market, step)
    market.require_sound(TWO)


@pytest.mark.slow
@pytest.mark.parametrize("step", ["withdrawal", "return"])
def test_a_process_that_is_killed(market: Market, step: str) -> None:
    before = _ready(market, step)
    settings = market.context.settings
    with dying_forks("tests.integration.publish.killed_withdrawal") as killer:
        for die_at in range(1, LEAST_STATEMENTS, 4):
            market.clock.advance(LEASE_SECONDS + 1)
            ended = killer.die(
                die_at=die_at,
                now=market.clock().isoformat(),
                state=str(settings.state_folder),
                specs=str(settings.specs),
                sources=str(settings.sources),
                ledger_url=settings.ledger_url,
            )
            assert ended == signal.SIGKILL
            assert _facts(market) == before
    market.clock.advance(LEASE_SECONDS + 1)
    withdraw_removed(market.context, market.version(TWO))
    assert _is_done(market, step)
    market.require_sound(TWO)


def _facts(market: Market) -> dict[str, Any]:
    return market.facts() | {"reviews": _reviews(market)}


def _is_done(market: Market, step: str) -> bool:
    away = step == "withdrawal"
    return (
        (PUMP_ID not in market.shown()) == away
        and market.states(TWO)[PUMP_ID] == ["withdrawn" if away else "published"]
        and _reviews(market) == [("overtaken", 2) if away else (None, 3)]
    )


def _records(market: Market, document: str) -> list[int]:
    return market.query(
        "SELECT record_no FROM records "
        f"WHERE document_no = {market.document_no(document)} ORDER BY record_no",
        {"record_no": pl.Int64},
    )["record_no"].to_list()


def _shown_record(market: Market, document: str) -> int:
    return market.query(
        "SELECT e.record_no FROM archive_heads h JOIN archive_entries e "
        f"ON e.entry_no = h.entry_no WHERE h.document_no = {market.document_no(document)}",
        {"record_no": pl.Int64},
    ).item()


def _reviews(market: Market) -> list[tuple[str | None, int]]:
    with market.context.ledger.read() as connection:
        return [
            tuple(row)
            for row in connection.execute(
                select(reviews.c.decision, reviews.c.revision).order_by(reviews.c.review_no)
            )
        ]


def _acts(market: Market) -> list[str]:
    with market.context.ledger.read() as connection:
        return list(
            connection.execute(text("SELECT act FROM review_acts ORDER BY revision")).scalars()
        )


def _episode(market: Market) -> dict[str, Any]:
    with market.context.ledger.read() as connection:
        return dict(connection.execute(select(dead_letters)).one()._mapping)


def _newest_attempt(market: Market, record: int) -> int:
    with market.context.ledger.read() as connection:
        return connection.execute(
            select(func.max(attempts.c.attempt_no)).where(attempts.c.record_no == record)
        ).scalar_one()


def _later(market: Market, seconds: int) -> str:
    return to_text(market.clock() + timedelta(seconds=seconds))


def _promote_policy(market: Market, policy: str) -> None:
    with market.context.ledger.write() as connection:
        number = market.version(ONE).version_no
        journal_operating(
            connection, number, "promote", policy, market.context.cause("for the test", "test")
        )
