"""What a budget is held against, worked out on paper: nothing that may be paid counts as nought."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any, cast

import pytest
from sqlalchemy import update

from partitions.processing_version import find_spec
from pipeline_assets.costs.account import cost_account
from pipeline_assets.costs.gate import BudgetGate, budget_for_retries, open_gate
from pipeline_assets.costs.totals import so_far
from pipeline_assets.costs.worst_case import CALLS, WorstCase, worst_case
from pipeline_assets.operating import Operating, operating
from pipeline_assets.recovery.holds import hold_of
from pipeline_assets.versions import OpenVersion
from resources.context import Context, open_context
from resources.ledger import schema
from resources.ledger.job_prices import CanaryUsage, add_canary_usage, usage_of_canaries
from resources.ledger.jobs import JobRow, find_job
from resources.ledger.versions import FrozenVersion
from resources.providers.prices import Rates
from resources.settings import Settings
from tests.support.charged_ledger import AT, DIGEST, KEY, ChargedLedger

READ, WRITTEN = Decimal("0.125"), Decimal(1)
"""US dollars a million tokens of gpt-5-mini in a batch; one call costs twice as much."""
ANSWER, LARGER = 4_000, 12_000
"""Tokens of a first answer and of a later one, as the spec allows them."""
MILLION = 1_000_000


@pytest.fixture
def ledger(context: Context) -> ChargedLedger:
    return ChargedLedger(context).begin()


def version_of(context: Context, mode: str = "batch") -> OpenVersion:
    spec = find_spec("manuals-openai-batch-2", context.settings.spec_folders)
    assert spec.request is not None
    assert (spec.request.output_tokens, spec.request.document_tokens) == (ANSWER, 24_000)
    spec = spec.model_copy(update={"mode": mode})
    return OpenVersion(
        spec,
        cast(Any, None),
        FrozenVersion(1, KEY, "equipment_manuals", DIGEST, "active", ""),
    )


def worst(ledger: ChargedLedger) -> WorstCase:
    context = ledger.context
    with context.ledger.read() as connection:
        return worst_case(connection, context, version_of(context))


def under_way(ledger: ChargedLedger, found: WorstCase | None = None) -> Decimal | None:
    with ledger.context.ledger.read() as connection:
        return (found or worst(ledger)).under_way(connection)


def rendered(ledger: ChargedLedger, *tokens: int) -> None:
    """Documents of the newest attempts."""
    first = ledger.attempts - len(tokens) + 1
    for number, count in enumerate(tokens, first):
        ledger.add(
            schema.renderings,
            attempt_no=number,
            pages=1,
            pages_sent=1,
            tokens=count,
            redactions=0,
        )


def canary(ledger: ChargedLedger, number: int, state: str, **changes: Any) -> None:
    ledger.add(
        schema.canaries,
        **(
            {
                "canary_no": number,
                "canary_id": f"canary-{number}",
                "batch_key": f"{number:012x}",
                "combination": DIGEST,
                "version_no": 1,
                "provider": "openai",
                "mode": "batch",
                "sdk_version": "1",
                "model": "gpt-5-mini",
                "request_artifact": DIGEST,
                "request_bytes": 1,
                "state": state,
                "submitted_at": AT,
                "polls": 0,
                "expected_records": 4,
                "input_tokens": 8_000,
                "prepared_at": AT,
            }
            | changes
        ),
    )


CANARY = (8_000 * READ + 4 * ANSWER * WRITTEN) / MILLION
"""A whole canary at most."""


def group(ledger: ChargedLedger, number: int, records: int, **changes: Any) -> None:
    ledger.add(
        schema.online_groups,
        **(
            {
                "batch_no": 1,
                "group_no": number,
                "first_index": 2 * number,
                "records": records,
                "starts": 1,
                "started_at": AT,
                "calls": records,
                "possibly_paid": 0,
            }
            | changes
        ),
    )


def discarded(ledger: ChargedLedger, machine: str) -> None:
    ledger.add(
        schema.intents,
        intent_id=f"{machine}-1",
        machine=machine,
        subject_no=1,
        account_fingerprint="x",
        recorded_at=AT,
        outcome="discarded",
        detail="",
    )


LOST = {
    "no-line": {"disposition": "retryable_failure", "failure": "missing_result", "line": False},
    "conflict": {
        "disposition": "permanent_failure",
        "failure": "duplicate_conflict",
        "line": False,
    },
    "no-usage": {"disposition": "succeeded"},
    "half-a-usage": {"disposition": "succeeded", "tokens": (7, None, None)},
    "impossible": {"disposition": "succeeded", "tokens": (10, 5, 11)},
}


@pytest.mark.parametrize("case", sorted(LOST))
def test_an_attempt_of_unknown_tokens_counts_like_the_longest(
    ledger: ChargedLedger, case: str
) -> None:
    ledger.batch(1, 2, input_tokens=1_000)
    ledger.attempt(1, "a.pdf", **cast(Any, LOST[case]))
    ledger.attempt(1, "b.pdf", tokens=(300, 40, 0))
    rendered(ledger, 100, 500)
    found = worst(ledger)
    # Each prompt has (1,000 - 100 - 500) / 2 = 200 tokens beside its document.
    assert found.unsized == (700 * READ + LARGER * WRITTEN) / MILLION
    assert found.usd == (300 * READ + 40 * WRITTEN) / MILLION
    assert under_way(ledger) == 0


def test_a_submission_that_was_given_up(ledger: ChargedLedger) -> None:
    """An operator sends the batch again: the first job may be paid beside the second."""
    ledger.batch(1, 1, state="cancelled", input_tokens=1_000, submitted_at=None)
    ledger.attempt(1, "a.pdf", None)
    discarded(ledger, "batch")
    ledger.batch(2, 1, state="running", input_tokens=1_000)
    ledger.attempt(2, "a.pdf", None, path="replay")
    first = (1_000 * READ + LARGER * WRITTEN) / MILLION
    assert (worst(ledger).unsized, under_way(ledger)) == (first, first)


@pytest.mark.parametrize("state", ["completed", "running"])
def test_calls_without_an_answer_count_before_and_after(ledger: ChargedLedger, state: str) -> None:
    settled = state == "completed"
    ledger.batch(1, 2, mode="online", state=state, input_tokens=1_000)
    for name in ("a.pdf", "b.pdf"):
        ledger.attempt(1, name, "succeeded" if settled else None, (300, 40, 0))
    rendered(ledger, 100, 500)
    group(ledger, 0, 2, finished_at=AT, possibly_paid=3)
    lost = 3 * (700 * 2 * READ + LARGER * 2 * WRITTEN) / MILLION
    found = worst(ledger)
    if settled:
        assert (found.unsized, under_way(ledger)) == (lost, 0)
    else:
        first = 2 * (1_000 * READ + 2 * ANSWER * WRITTEN) / MILLION
        assert (found.unsized, under_way(ledger)) == (0, lost + first)


def test_online_calls_are_estimated_by_their_own_documents(ledger: ChargedLedger) -> None:
    """The first group has the long ones: the mean of the batch would be too little."""
    ledger.batch(1, 4, mode="online", state="running", input_tokens=21_200)
    for name in "abcd":
        ledger.attempt(1, name, None)
    rendered(ledger, 10_000, 10_000, 200, 200)
    group(ledger, 0, 2, finished_at=AT)
    # (21,200 - 20,400) / 4 = 200 tokens beside each document, at the full price.
    first = (20_400 * 2 * READ + 2 * ANSWER * 2 * WRITTEN) / MILLION
    assert under_way(ledger) == first
    job = job_of(ledger, 1)
    with ledger.context.ledger.read() as connection:
        second = worst(ledger).calls(connection, job, 2, 2)
    assert CALLS == 2
    assert second == 2 * (800 * 2 * READ + 2 * ANSWER * 2 * WRITTEN) / MILLION


def test_a_group_that_is_being_called_may_be_paid_twice(ledger: ChargedLedger) -> None:
    ledger.batch(1, 2, mode="online", state="running", input_tokens=1_000)
    for name in "ab":
        ledger.attempt(1, name, None)
    rendered(ledger, 300, 300)
    group(ledger, 0, 2)
    once = 2 * (1_000 * READ + 2 * ANSWER * WRITTEN) / MILLION
    again = 2 * (1_000 * READ + 2 * LARGER * WRITTEN) / MILLION
    assert under_way(ledger) == once + again
    with ledger.context.ledger.write() as connection:
        connection.execute(update(schema.online_groups).values(kept_at=AT))
    assert under_way(ledger) == once, "it ended in good order: nothing of it is open"


def test_later_attempts_have_more_room(ledger: ChargedLedger) -> None:
    ledger.batch(1, 3, state="prepared", input_tokens=3_000)
    ledger.attempt(1, "a.pdf", None)
    ledger.attempt(1, "b.pdf", None, path="repeat")
    ledger.attempt(1, "c.pdf", None, path="larger_output")
    assert under_way(ledger) == 0, "nothing was sent"
    with ledger.context.ledger.read() as connection:
        found = worst(ledger).job(connection, job_of(ledger, 1))
    assert found == (3_000 * READ + (ANSWER + 2 * LARGER) * WRITTEN) / MILLION


def test_prompts_that_nobody_counted_are_as_long_as_they_may_be(ledger: ChargedLedger) -> None:
    """A batch that an older release prepared."""
    ledger.batch(1, 2, state="running")
    for name in "ab":
        ledger.attempt(1, name, None)
    assert under_way(ledger) == (2 * 74_000 * READ + 2 * ANSWER * WRITTEN) / MILLION


def test_what_is_settled_meanwhile_does_not_fall_between(ledger: ChargedLedger) -> None:
    ledger.batch(1, 1, state="running", input_tokens=1_000)
    ledger.attempt(1, "a.pdf", None)
    canary(ledger, 1, "running")
    found = worst(ledger)
    before = (1_000 * READ + ANSWER * WRITTEN) / MILLION + CANARY
    assert under_way(ledger, found) == before
    with ledger.context.ledger.write() as connection:
        connection.execute(update(schema.batches).values(state="completed"))
        connection.execute(update(schema.canaries).values(state="passed", results='["x"]'))
        add_canary_usage(connection, 1, CanaryUsage(4, 0, 100, 10, 0, 25), AT)
    assert under_way(ledger, found) == before, "this one was opened before"
    assert under_way(ledger) == 0


CANARIES = {
    "judged-by-an-older-release": ("passed", {"results": '["x"]'}, None, 1),
    "dropped": ("expired", {"results": '["x"]'}, None, 1),
    "some-without-usage": ("failed", {"results": '["x"]'}, CanaryUsage(4, 1, 90, 9, 0, 40), 1),
    "called-again-and-again": ("passed", {"mode": "online"}, CanaryUsage(13, 9, 9, 9, 0, 9), 3),
    "all-known": ("passed", {"results": '["x"]'}, CanaryUsage(4, 0, 90, 9, 0, 40), 0),
    "failed-as-a-whole": ("failed", {"results": "[]"}, None, 0),
    "never-sent": ("cancelled", {"submitted_at": None}, None, 0),
}


@pytest.mark.parametrize("case", sorted(CANARIES))
def test_canaries_count_at_most_where_nobody_knows(ledger: ChargedLedger, case: str) -> None:
    state, changes, usage, times = CANARIES[case]
    canary(ledger, 1, state, **changes)
    if usage is not None:
        with ledger.context.ledger.write() as connection:
            add_canary_usage(connection, 1, usage, AT)
    rows = usage.unknown if usage else 4
    price = 2 if changes.get("mode") == "online" else 1
    at_most = price * (times * 8_000 * READ + rows * ANSWER * WRITTEN) / MILLION if times else 0
    assert worst(ledger).unsized == at_most
    assert under_way(ledger) == 0


def test_a_canary_that_was_given_up_in_doubt(ledger: ChargedLedger) -> None:
    canary(ledger, 1, "cancelled")
    discarded(ledger, "canary")
    assert cost_account(ledger.context, KEY).unknown == {"submission_given_up": 4}
    assert worst(ledger).unsized == CANARY


def test_all_of_unknown_amount_is_together(ledger: ChargedLedger) -> None:
    for number in (1, 2):
        ledger.batch(number, 1, input_tokens=1_000)
        ledger.attempt(number, f"{number}.pdf")
    canary(ledger, 1, "passed", results='["x"]')
    each = (1_000 * READ + LARGER * WRITTEN) / MILLION
    assert worst(ledger).unsized == 2 * each + CANARY


def test_what_has_no_price_is_not_left_out(ledger: ChargedLedger) -> None:
    for number, model in ((1, "gpt-5-mini"), (2, "nobody-sells-this")):
        ledger.batch(number, 1, model=model, state="running", input_tokens=1_000)
        ledger.attempt(number, f"{number}.pdf", None)
    assert under_way(ledger) is None
    for number, model in ((3, "gpt-5-mini"), (4, "nobody-sells-this")):
        ledger.batch(number, 1, model=model, input_tokens=1_000)
        ledger.attempt(number, f"{number}.pdf")
    assert worst(ledger).unsized is None


def test_usage_of_a_canary_adds_up(ledger: ChargedLedger) -> None:
    """Calls that broke off, and those that were made after them."""
    canary(ledger, 1, "running", mode="online")
    with ledger.context.ledger.write() as connection:
        add_canary_usage(connection, 1, CanaryUsage(4, 4, 0, 0, 0, 0), AT)
    assert cost_account(ledger.context, KEY).unknown == {"not_settled": 4}
    with ledger.context.ledger.write() as connection:
        add_canary_usage(connection, 1, CanaryUsage(3, -1, 900, 90, 9, 400), AT)
        add_canary_usage(connection, 1, CanaryUsage(1, 0, 100, 10, 0, 100), AT)
        connection.execute(update(schema.canaries).values(state="passed"))
        kept = usage_of_canaries(connection, 1, 1)
    assert kept == {1: CanaryUsage(8, 3, 1_000, 100, 9, 400)}
    account = cost_account(ledger.context, KEY)
    assert account.unknown == {"canary_without_usage": 3}
    assert (account.tokens.input, account.tokens.cached, account.tokens.output) == (1_000, 9, 100)


def job_of(ledger: ChargedLedger, batch: int) -> JobRow:
    job = find_job(ledger.context.ledger, f"{KEY}-m1-b{batch}")
    assert job is not None
    return job


def limited(context: Context, **limits: Any) -> Operating:
    return replace(operating(context.ledger, 1), **limits)


def gate_of(ledger: ChargedLedger, mode: str = "batch", **limits: Any) -> BudgetGate:
    context = ledger.context
    gate = open_gate(context, version_of(context, mode), limited(context, **limits))
    assert gate is not None
    return gate


def asked(ledger: ChargedLedger, gate: BudgetGate, batch: int) -> str | None:
    with ledger.context.ledger.write() as connection:
        return gate.hold_before(connection, job_of(ledger, batch))


class TestGate:
    def test_an_answer_without_tokens_does_not_hold_for_ever(self, ledger: ChargedLedger) -> None:
        ledger.batch(1, 1, input_tokens=1_000)
        ledger.attempt(1, "a.pdf")
        ledger.batch(2, 1, state="prepared", input_tokens=1_000)
        ledger.attempt(2, "b.pdf", None)
        lost = (1_000 * READ + LARGER * WRITTEN) / MILLION
        next_ = (1_000 * READ + ANSWER * WRITTEN) / MILLION
        assert asked(ledger, gate_of(ledger, budget_usd=lost + next_), 2) is None
        told = asked(ledger, gate_of(ledger, budget_usd=lost + next_ - Decimal("0.000001")), 2)
        assert told is not None
        assert "what is under way or not known may cost up to 0.012125" in told

    def test_without_a_price_a_larger_budget_is_no_remedy(
        self, ledger: ChargedLedger, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(
            "pipeline_assets.costs.rates.rates_of",
            lambda *_: Rates("unknown", "a list", "nobody sells it"),
        )
        ledger.batch(1, 1)
        ledger.attempt(1, "a.pdf", tokens=(10, 10, 0))
        told = gate_of(ledger, budget_usd=Decimal(1_000)).hold_used_up()
        assert told is not None
        assert "no price" in told
        assert "tallybook settings set budget_usd 0" in told
        with ledger.context.ledger.read() as connection:
            found = hold_of(connection, 1)
        assert found is not None
        assert (found.kind, found.reason) == ("budget", told)

    @pytest.mark.parametrize(("limit", "allowed"), [(3, True), (2, False)])
    def test_retries_that_were_decided_and_are_handed_over(
        self, ledger: ChargedLedger, limit: int, allowed: bool
    ) -> None:
        """Three were decided on; the budget was lowered before they are sent."""
        with ledger.context.ledger.write() as connection:
            connection.execute(update(schema.manifests).values(replay_reason="transient_retry"))
        ledger.batch(1, 3, state="prepared", input_tokens=1_000)
        for name in "abc":
            ledger.attempt(1, name, None, path="repeat")
        told = asked(ledger, gate_of(ledger, budget_attempts=limit), 1)
        assert (told is None) == allowed
        if told is not None:
            assert "3 more would be 3 of the version's 2 retries" in told
            assert "settings set budget_attempts)" in told

    def test_first_attempts_are_no_retries(self, ledger: ChargedLedger) -> None:
        ledger.batch(1, 3, state="prepared", input_tokens=1_000)
        ledger.attempt(1, "a.pdf", None)
        ledger.attempt(1, "b.pdf", None, path="requeue")
        ledger.attempt(1, "c.pdf", None, path="replay")
        assert asked(ledger, gate_of(ledger, budget_attempts=1), 1) is None

    def test_two_workers_at_once_under_one_budget(
        self, ledger: ChargedLedger, settings: Settings
    ) -> None:
        """Both opened their gates before either handed over: the second sees the first's."""
        for number in (1, 2):
            ledger.batch(number, 1, state="prepared", input_tokens=1_000)
            ledger.attempt(number, f"{number}.pdf", None)
        each = (1_000 * READ + ANSWER * WRITTEN) / MILLION
        told: dict[int, str | None] = {}
        ready = threading.Barrier(2)

        def work(number: int) -> None:
            with open_context(settings) as context:
                own = replace(ledger, context=context)
                gate = gate_of(own, budget_usd=2 * each - Decimal("0.000001"))
                ready.wait()
                with context.ledger.write() as connection:
                    told[number] = gate.hold_before(connection, job_of(own, number))
                    if told[number] is None:
                        time.sleep(0.5)  # long enough for the other to ask, if it can
                        connection.execute(
                            update(schema.batches)
                            .where(schema.batches.c.batch_no == number)
                            .values(state="submitting")
                        )

        workers = [threading.Thread(target=work, args=(number,)) for number in (1, 2)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert sorted(found is None for found in told.values()) == [False, True]

    def test_nothing_is_handed_over_after_the_hours(self, ledger: ChargedLedger) -> None:
        ledger.batch(1, 1, input_tokens=1_000)
        ledger.attempt(1, "a.pdf", tokens=(10, 10, 0))
        told = gate_of(ledger, budget_time=timedelta(seconds=1)).hold_used_up()
        assert told is not None
        assert "settings set budget_hours)" in told

    def test_what_costs_nothing_is_not_stopped_by_money(self, ledger: ChargedLedger) -> None:
        ledger.batch(1, 1, provider="baseline", mode="embedded", model="rules")
        ledger.attempt(1, "a.pdf")
        gate = gate_of(ledger, "embedded", budget_usd=Decimal("0.000001"))
        assert gate.hold_used_up() is None


class TestRetryBudget:
    def test_what_is_known_and_what_is_not(self, ledger: ChargedLedger) -> None:
        ledger.batch(1, 1, input_tokens=1_000)
        ledger.attempt(1, "a.pdf", tokens=(300, 40, 0))
        ledger.batch(2, 2, state="reconciling", input_tokens=1_000)
        for name in "bc":
            ledger.attempt(2, name, None)
        context = ledger.context
        with context.ledger.read() as connection:
            found = budget_for_retries(
                connection,
                context,
                version_of(context),
                limited(context, budget_usd=Decimal(1)),
                batch_no=2,
                usd=Decimal("0.5"),
                unsized=1,
            )
        assert found.spent == Decimal("0.5") + (300 * READ + 40 * WRITTEN) / MILLION
        assert found.unsized == (500 * READ + LARGER * WRITTEN) / MILLION

    def test_no_limit_no_look(self, ledger: ChargedLedger) -> None:
        context = ledger.context
        found = budget_for_retries(
            cast(Any, None), context, version_of(context), operating(context.ledger, 1)
        )
        assert (found.money, found.attempts, found.time) == (None, None, None)


def test_batches_before_the_first_open_one_are_not_read_again(ledger: ChargedLedger) -> None:
    ledger.batch(1, 1)
    ledger.attempt(1, "a.pdf", tokens=(10, 10, 0))
    for number, state in ((2, "running"), (3, "completed"), (4, "running")):
        ledger.batch(number, 1, state=state, input_tokens=1_000)
        found = "succeeded" if state == "completed" else None
        ledger.attempt(number, f"{number}.pdf", found, (1, 1, 0))
    with ledger.context.ledger.read() as connection:
        charged = so_far(connection, ledger.context, 1)
    assert (charged.first_open, charged.settled) == (2, frozenset({1, 3}))
    assert under_way(ledger) == 2 * (1_000 * READ + ANSWER * WRITTEN) / MILLION
