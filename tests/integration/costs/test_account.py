"""What a version cost, against figures that were worked out on paper."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest

from pipeline_assets.accept.judge_batches import judge_batches
from pipeline_assets.collect.collect_batches import collect_batches
from pipeline_assets.costs import job_cost
from pipeline_assets.costs.account import CostAccount, cost_account
from pipeline_assets.costs.listing import attempt_costs, batch_costs, record_costs
from pipeline_assets.prepare.freeze import freeze_manifest
from pipeline_assets.publish.publish_accepted import publish_accepted
from pipeline_assets.submit.submit_batches import submit_batches
from resources.context import Context
from resources.ledger import schema
from resources.ledger.job_prices import CanaryUsage, add_canary_usage, prices_of, store_price
from resources.ledger.jobs import find_job
from resources.providers import prices
from resources.providers.prices import Rate
from tests.integration.stages.support import KEY as SHOP_KEY
from tests.integration.stages.support import Shop
from tests.support.charged_ledger import AT, DIGEST, KEY, ChargedLedger
from tests.support.clock import FrozenClock

STEP = Rate(Decimal("1.00"), ((200_000, Decimal("2.00")),))
CACHED = Rate(Decimal("0.10"), ((200_000, Decimal("0.20")),))
WRITTEN = Rate(Decimal("4.00"), ((200_000, Decimal("6.00")),))
"""US dollars a million tokens in a batch, half of what one call costs: the example of the guide."""


@pytest.fixture
def ledger(context: Context) -> ChargedLedger:
    return ChargedLedger(context).begin()


def example(ledger: ChargedLedger) -> None:
    """Four attempts at three records: one long, one partly cached, one failed and its retry."""
    ledger.batch(1, 3)
    ledger.attempt(1, "a.pdf", tokens=(10_000, 500, 0))
    ledger.attempt(1, "b.pdf", tokens=(250_000, 1_000, 50_000))
    ledger.attempt(1, "c.pdf", "retryable_failure", (8_000, 2_000, None), failure="truncated")
    ledger.batch(2, 1)
    ledger.attempt(2, "c.pdf", tokens=(8_000, 3_000, 8_000), path="larger_output")
    for batch in (1, 2):
        ledger.price(batch, STEP, CACHED, WRITTEN)


def amounts(context: Context) -> list[str]:
    return [format(row.usd.normalize(), "f") for row in attempt_costs(context, KEY)]


def check_sums(context: Context) -> CostAccount:
    """Every way to add up comes to the same."""
    account = cost_account(context, KEY)
    for parts in (account.by_purpose, account.by_outcome, account.by_class, account.by_slice):
        assert sum((part.usd for part in parts), Decimal(0)) == account.provider_usd
        assert sum(part.attempts for part in parts) == account.attempts
        assert sum(part.tokens.input for part in parts) == account.tokens.input
        unknown: dict[str, int] = {}
        for part in parts:
            for reason, count in part.unknown.items():
                unknown[reason] = unknown.get(reason, 0) + count
        assert unknown == account.unknown
    listed = list(attempt_costs(context, KEY))
    assert sum((row.usd for row in listed), Decimal(0)) == account.provider_usd
    of_records = [row for row in listed if row.record is not None]
    assert sum((row.usd for row in record_costs(context, KEY)), Decimal(0)) == sum(
        (row.usd for row in of_records), Decimal(0)
    )
    assert sum((row.usd for _, _, row in batch_costs(context, KEY)), Decimal(0)) == sum(
        (row.usd for row in of_records), Decimal(0)
    )
    return account


def test_the_example_of_the_guide(ledger: ChargedLedger) -> None:
    """docs/costs.md works these out line by line."""
    example(ledger)
    assert amounts(ledger.context) == ["0.012", "0.416", "0.016", "0.0128"]
    account = check_sums(ledger.context)
    assert account.provider_usd == Decimal("0.4568")
    assert (account.tokens.input, account.tokens.cached, account.tokens.output) == (
        276_000,
        58_000,
        6_500,
    )
    assert account.accepted == 3
    assert account.unknown == {}
    assert account.cost_per_accepted is not None
    assert account.cost_per_accepted.quantize(Decimal("0.000001")) == Decimal("0.152267")
    assert {part.name: part.usd for part in account.by_purpose} == {
        "first attempts": Decimal("0.444"),
        "recovery paths": Decimal("0.0128"),
    }
    assert {part.name: part.usd for part in account.by_class} == {
        "succeeded": Decimal("0.4408"),
        "truncated": Decimal("0.016"),
    }
    assert [price.frozen for price in account.prices] == [True]
    job = find_job(ledger.context.ledger, f"{KEY}-m1-b1")
    assert job is not None
    cost = job_cost(ledger.context, job)
    assert cost is not None
    assert (cost.amount, cost.rows, cost.rows_without_usage) == (Decimal("0.444"), 3, 0)


def test_a_newer_price_list_changes_no_kept_amount(
    ledger: ChargedLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    example(ledger)
    ledger.batch(3, 1)
    ledger.attempt(3, "d.pdf", tokens=(1_000, 0, 0))
    before = amounts(ledger.context)
    dear = prices.Rates("batch", "a list 2.0", "", Rate(Decimal(900)), None, Rate(Decimal(900)))
    monkeypatch.setattr("pipeline_assets.costs.rates.rates_of", lambda *_: dear)
    after = amounts(ledger.context)
    assert after[:4] == before[:4]
    assert (before[4], after[4]) == ("0.000125", "0.9"), "the fifth was never kept"
    found = {price.frozen: price.package for price in cost_account(ledger.context, KEY).prices}
    assert found == {True: "a list 1.0", False: "a list 2.0"}


UNKNOWN = {
    "answer-without-usage": (
        {"disposition": "succeeded"},
        "answer_without_usage",
    ),
    "half-of-the-usage": (
        {"disposition": "succeeded", "tokens": (10, None, None)},
        "answer_without_usage",
    ),
    "useless-answer-without-usage": (
        {"disposition": "permanent_failure", "failure": "malformed_json"},
        "answer_without_usage",
    ),
    "more-cached-than-read": (
        {"disposition": "succeeded", "tokens": (10, 5, 11)},
        "impossible_usage",
    ),
    "conflict": (
        {"disposition": "permanent_failure", "failure": "duplicate_conflict", "line": False},
        "conflicting_answers",
    ),
    "no-line": (
        {"disposition": "retryable_failure", "failure": "missing_result", "line": False},
        "no_answer",
    ),
}
NOTHING = {
    "error-line": {"disposition": "retryable_failure", "failure": "server_error"},
    "expired": {"disposition": "expired", "failure": "expired", "line": False},
    "cancelled": {"disposition": "cancelled", "failure": "cancelled", "line": False},
    "failed-job": {
        "disposition": "retryable_failure",
        "failure": "server_error",
        "line": False,
    },
}


@pytest.mark.parametrize("case", sorted(UNKNOWN))
def test_what_is_not_known_is_counted_apart(ledger: ChargedLedger, case: str) -> None:
    given, reason = UNKNOWN[case]
    ledger.batch(1, 2)
    ledger.attempt(1, "a.pdf", **given)  # pyright: ignore[reportArgumentType]
    ledger.attempt(1, "b.pdf", tokens=(1_000, 1_000, 0))
    ledger.price(1, STEP, None, WRITTEN)
    account = check_sums(ledger.context)
    assert account.unknown == {reason: 1}
    assert account.provider_usd == Decimal("0.005")
    assert account.cost_per_accepted is None
    assert account.at_least == Decimal("0.0025")


@pytest.mark.parametrize("case", sorted(NOTHING))
def test_what_was_never_run_is_known_and_nought(ledger: ChargedLedger, case: str) -> None:
    ledger.batch(1, 1)
    ledger.attempt(1, "a.pdf", **NOTHING[case])  # pyright: ignore[reportArgumentType]
    account = check_sums(ledger.context)
    assert (account.unknown, account.provider_usd) == ({}, Decimal(0))


@pytest.mark.parametrize(
    ("state", "discarded", "unknown"),
    [
        ("prepared", False, {}),
        ("submitting", False, {"not_settled": 1}),
        ("running", False, {"not_settled": 1}),
        ("incident", False, {"not_settled": 1}),
        ("cancelled", False, {}),
        ("cancelled", True, {"submission_given_up": 1}),
    ],
)
def test_a_batch_without_results(
    ledger: ChargedLedger, state: str, discarded: bool, unknown: dict[str, int]
) -> None:
    ledger.batch(1, 1, state=state)
    ledger.attempt(1, "a.pdf", None, state="prepared")
    if discarded:
        ledger.add(
            schema.intents,
            intent_id="i-1",
            machine="batch",
            subject_no=1,
            account_fingerprint="x",
            recorded_at=AT,
            outcome="discarded",
            detail="",
        )
    account = check_sums(ledger.context)
    assert account.unknown == unknown
    assert account.accepted == 0
    assert account.at_least is None


def test_embedded_answers_cost_nothing(ledger: ChargedLedger) -> None:
    ledger.batch(1, 1, provider="baseline", mode="embedded", model="rules")
    ledger.attempt(1, "a.pdf")
    account = check_sums(ledger.context)
    assert (account.unknown, account.cost_per_accepted) == ({}, Decimal(0))
    assert [price.basis for price in account.prices] == ["embedded (nobody is paid)"]


def test_a_model_without_a_price(ledger: ChargedLedger) -> None:
    ledger.batch(1, 1, model="nobody-sells-this")
    ledger.attempt(1, "a.pdf", tokens=(10, 10, 0))
    account = check_sums(ledger.context)
    assert account.unknown == {"price_unknown": 1}
    assert account.tokens.input == 10
    assert account.cost_per_accepted is None


def test_prices_are_those_of_jobs_that_were_handed_over(ledger: ChargedLedger) -> None:
    for number, state in enumerate(("completed", "prepared", "cancelled"), 1):
        ledger.batch(number, 1, state=state)
        ledger.attempt(number, f"{number}.pdf", "succeeded" if number == 1 else None, (10, 1, 0))
    assert [price.jobs for price in cost_account(ledger.context, KEY).prices] == [1]


def test_an_answer_of_another_document_is_of_that_class(ledger: ChargedLedger) -> None:
    """Acceptance found it out: the disposition is still a success."""
    ledger.batch(1, 1)
    number = ledger.attempt(1, "a.pdf", tokens=(1_000, 1_000, 0))
    ledger.add(
        schema.retry_decisions,
        attempt_no=number,
        record_no=1,
        decision="retry",
        recovery_path="repeat",
        counted=1,
        failure_class="misrouted",
        reason="after misrouted",
        decided_at=AT,
    )
    assert [part.name for part in check_sums(ledger.context).by_class] == ["misrouted"]
    assert [row.failure_class for row in attempt_costs(ledger.context, KEY)] == ["misrouted"]


class TestLateLines:
    def test_instead_of_a_missing_line(self, ledger: ChargedLedger) -> None:
        ledger.batch(1, 1)
        number = ledger.attempt(
            1, "a.pdf", "retryable_failure", failure="missing_result", line=False
        )
        ledger.late(number, "a.pdf", (1_000, 1_000, 0), 1)
        ledger.price(1, STEP, None, WRITTEN)
        account = check_sums(ledger.context)
        assert (account.unknown, account.provider_usd) == ({}, Decimal("0.005"))

    @pytest.mark.parametrize(
        ("second", "usd", "unknown"),
        [
            pytest.param(b'{"id":"two"}', "0.010", {}, id="another-answer-is-paid-twice"),
            pytest.param(b'{"id":"one"}', "0.005", {}, id="the-same-line-again-once"),
            pytest.param(b'{"id":"a longer one"}', "0.010", {}, id="another-length"),
            pytest.param(None, "0.005", {"perhaps_repeated": 1}, id="its-bytes-are-gone"),
        ],
    )
    def test_beside_an_answer(
        self, ledger: ChargedLedger, second: bytes | None, usd: str, unknown: dict[str, int]
    ) -> None:
        first = b'{"id":"one"}'
        ledger.batch(1, 1)
        number = ledger.attempt(
            1, "a.pdf", "retryable_failure", (1_000, 1_000, 0), failure="truncated"
        )
        ledger.late(number, "a.pdf", (1_000, 1_000, 0), 5)
        ledger.price(1, STEP, None, WRITTEN)
        store = ledger.context.artifacts
        ledger.stored_line(1, number, store.put("result", b"##" + first).digest, 2, len(first))
        stored = DIGEST if second is None else store.put("result", b"#" + second).digest
        ledger.stored_line(2, 5, stored, 1, len(second or first))
        account = check_sums(ledger.context)
        assert (account.unknown, account.provider_usd) == (unknown, Decimal(usd))

    def test_twice(self, ledger: ChargedLedger) -> None:
        """Both came late; the second is the first one again."""
        ledger.batch(1, 1)
        number = ledger.attempt(
            1, "a.pdf", "retryable_failure", failure="missing_result", line=False
        )
        stored = ledger.context.artifacts.put("result", b"{1}{1}{2}").digest
        for line in range(3):
            ledger.late(number, "a.pdf", (1_000, 1_000, 0), line)
            ledger.stored_line(2, line, stored, 3 * line, 3)
        ledger.price(1, STEP, None, WRITTEN)
        assert check_sums(ledger.context).provider_usd == Decimal("0.010")


def test_canaries_are_paid_by_their_version(ledger: ChargedLedger) -> None:
    for number, state in ((1, "passed"), (2, "running"), (3, "passed"), (4, "failed")):
        ledger.add(
            schema.canaries,
            canary_no=number,
            canary_id=f"canary-{number}",
            batch_key=f"{number:012x}",
            combination=DIGEST,
            version_no=1,
            provider="openai",
            mode="batch",
            sdk_version="1",
            model="gpt-5-mini",
            request_artifact=DIGEST,
            request_bytes=1,
            state=state,
            submitted_at=AT,
            polls=0,
            expected_records=4,
            prepared_at=AT,
            results='["x"]',
        )
    ledger.batch(1, 1)
    ledger.attempt(1, "a.pdf", tokens=(1_000, 1_000, 0))
    ledger.price(1, STEP, None, WRITTEN)
    with ledger.context.ledger.write() as connection:
        add_canary_usage(connection, 1, CanaryUsage(3, 1, 2_000, 1_000, 0, 900), AT)
        add_canary_usage(connection, 4, CanaryUsage(1, 0, 1_000, 0, 0, 1_000), AT)
        kept = prices_of(connection, "batch", 1, 1)[1]
        store_price(connection, "canary", 1, kept)
        store_price(connection, "canary", 4, kept)
    account = check_sums(ledger.context)
    (part,) = (part for part in account.by_purpose if part.name == "canaries")
    assert part.usd == Decimal("0.007"), "0.006 and 0.001"
    assert account.unknown == {
        "canary_usage_not_kept": 4,
        "canary_without_usage": 1,
        "not_settled": 4,
    }
    assert account.provider_usd == Decimal("0.012")


def test_online_calls_without_an_answer(ledger: ChargedLedger) -> None:
    ledger.batch(1, 1, mode="online")
    ledger.attempt(1, "a.pdf", tokens=(1_000, 1_000, 0))
    ledger.add(
        schema.online_groups,
        batch_no=1,
        group_no=0,
        first_index=0,
        records=1,
        starts=2,
        started_at=AT,
        finished_at=AT,
        calls=3,
        possibly_paid=2,
    )
    account = check_sums(ledger.context)
    assert account.unknown == {"call_without_answer": 2}
    assert account.provider_usd == Decimal("0.00225"), "the full price: no batch discount"


def _at(second: int) -> str:
    return f"2026-11-02T{8 + second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}.000000Z"


@pytest.mark.parametrize(
    ("usd_hour", "times", "minutes", "usd", "known"),
    [
        pytest.param(None, [], "0", Decimal(0), True, id="nothing-to-review"),
        pytest.param(None, [(0, 120)], "2", None, False, id="an-hour's-cost-is-not-known"),
        pytest.param("60", [(0, 120), (0, 30)], "2.5", Decimal("2.5"), True, id="timed"),
        pytest.param("60", [(0, 7200)], "15", Decimal(15), True, id="a-long-pause-is-capped"),
        pytest.param("60", [(0, 60), (None, 9)], "1", Decimal(1), False, id="one-without-a-time"),
    ],
)
def test_the_time_of_reviewers(
    ledger: ChargedLedger,
    usd_hour: str | None,
    times: list[tuple[int | None, int]],
    minutes: str,
    usd: Decimal | None,
    known: bool,
) -> None:
    ledger.batch(1, 1, provider="baseline", mode="embedded", model="rules")
    ledger.attempt(1, "a.pdf")
    if usd_hour is not None:
        ledger.add(
            schema.operating_settings,
            version_no=1,
            name="reviewer_usd_hour",
            value=usd_hour,
            reason="",
            actor="",
            set_at=AT,
        )
    for number, (taken, decided) in enumerate(times):
        at = [None if second is None else _at(second) for second in (taken, decided)]
        ledger.add(
            schema.reviews,
            review_no=number + 1,
            record_no=1,
            attempt_no=1,
            version_no=1,
            kind="findings",
            sample_no=number,
            slice="",
            priority=0,
            opened_at=AT,
            revision=0,
            taken_at=at[0],
            decision="accept",
            decided_at=at[1],
            values_digest=DIGEST,
        )
    account = cost_account(ledger.context, KEY)
    assert account.review.minutes == Decimal(minutes)
    assert account.review.usd == usd
    assert account.review.known == known
    assert (account.cost_per_accepted is not None) == known
    assert account.at_least == (usd or 0)


def test_time_of_a_run(shop: Shop, frozen_clock: FrozenClock) -> None:
    """Two documents answered here: all of their time is ours, and the parts are the whole."""
    shop.fill().ingest()
    freeze_manifest(shop.context, shop.version())
    frozen_clock.advance(timedelta(minutes=2))
    submit_batches(shop.context, shop.version())
    frozen_clock.advance(timedelta(minutes=3))
    collect_batches(shop.context, shop.version())
    judge_batches(shop.context, shop.version())
    frozen_clock.advance(timedelta(minutes=9))
    publish_accepted(shop.context, shop.version())
    account = cost_account(shop.context, SHOP_KEY)
    found = account.time
    assert found.records == account.accepted == 2
    assert found.whole.p50 == 300
    assert sum(part.total for part in found.parts.values()) == found.whole.total == 600
    assert (found.parts["queue"].p50, found.parts["local"].p50) == (120, 180)


def test_what_a_damaged_journal_took_is_not_known(shop: Shop) -> None:
    """A membership whose move is gone: the audit names it, and the account still stands."""
    shop.fill().walk()
    before = cost_account(shop.context, SHOP_KEY).time
    with shop.context.ledger.write() as connection:
        connection.exec_driver_sql("DELETE FROM moves WHERE to_state = 'accepted'")
    after = cost_account(shop.context, SHOP_KEY).time
    assert (before.records, after.records) == (2, 0)
