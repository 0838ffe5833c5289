"""Budgets stop work before they are passed: nothing is sent that could cost too much."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import select

from pipeline_assets.canary.gate import GateDecision
from pipeline_assets.canary.run import pass_canary
from pipeline_assets.costs.account import cost_account
from pipeline_assets.costs.gate import open_gate
from pipeline_assets.costs.listing import attempt_costs
from pipeline_assets.online_calls.online import answer_batch
from pipeline_assets.operating import operating
from pipeline_assets.provider_jobs.clients import job_client
from pipeline_assets.provider_jobs.operate import discard
from pipeline_assets.recovery.holds import Hold, hold_of, release
from pipeline_assets.versions import open_version
from resources.ledger.jobs import JobRow, find_jobs
from resources.ledger.schema import retry_decisions
from resources.providers.prices import Rates
from tests.support.emulator import RunningEmulator
from tests.support.provider_walk import MOVING, ProviderWalk, provider_walk
from tests.support.recovery_walk import freeze_due, spec_like

ANSWER = 4_000
"""Tokens that the packaged spec allows an answer."""
READ, WRITTEN = Decimal("0.125"), Decimal("1")
"""US dollars a million tokens of gpt-5-mini in a batch."""
MILLIONTH = Decimal("0.000001")


@contextmanager
def walk_of(
    emulator: RunningEmulator, folder: Path, monkeypatch: pytest.MonkeyPatch, batch_records: int
) -> Iterator[ProviderWalk]:
    specs = spec_like(
        "manuals-openai-batch-1", folder / "specs", "dear-openai-1", batch_records=batch_records
    )
    with provider_walk(
        emulator, "openai", folder, monkeypatch, 4, specs=specs, key="dear-openai-1"
    ) as walk:
        yield walk


def held(walk: ProviderWalk) -> Hold | None:
    with walk.context.ledger.read() as connection:
        return hold_of(connection, number(walk))


def number(walk: ProviderWalk) -> int:
    return open_version(walk.context, walk.key).version_no


def cost(walk: ProviderWalk) -> Decimal:
    return cost_account(walk.context, walk.key).provider_usd


def at_most(walk: ProviderWalk, batches: int = 1) -> Decimal:
    """What the next batches may cost, worked out from their rows alone."""
    jobs = walk.jobs("prepared")[:batches]
    assert len(jobs) == batches
    read = sum(job.input_tokens or 0 for job in jobs)
    written = sum(job.expected_records for job in jobs) * ANSWER
    return (read * READ + written * WRITTEN) / 1_000_000


def up(amount: Decimal) -> Decimal:
    """Rounded up to what a setting can say."""
    return amount.quantize(MILLIONTH, rounding="ROUND_CEILING")


def test_a_budget_that_is_just_enough(
    emulator: RunningEmulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with walk_of(emulator, tmp_path, monkeypatch, 4) as walk:
        walk.pass_canary()
        limit = up(cost(walk) + at_most(walk))
        walk.set_operating("budget_usd", format(limit - MILLIONTH, "f"))
        report = walk.step().submit
        assert report.batches == 0
        assert walk.jobs("prepared"), "nothing was sent"
        assert walk.executed() == {}
        found = held(walk)
        assert found is not None
        assert found.kind == "budget"
        assert "tallybook settings set budget_usd" in found.reason
        assert "tallybook release" in found.reason
        assert "budget" in walk.alerts()
        release(walk.context, number(walk), None, "once more")
        walk.step()
        assert held(walk) is not None, "a release alone allows nothing"
        walk.set_operating("budget_usd", format(limit, "f"))
        release(walk.context, number(walk), None, "the budget was raised")
        assert "budget" not in walk.alerts()
        walk.settle()
        assert walk.published() == walk.titles
        assert cost(walk) <= limit
        walk.check_sound()


def test_batches_in_flight_count_as_dear_as_they_may_be(
    emulator: RunningEmulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with walk_of(emulator, tmp_path, monkeypatch, 2) as walk:
        walk.pass_canary()
        limit = up(cost(walk) + at_most(walk, 2)) - 2 * MILLIONTH
        walk.set_operating("budget_usd", format(limit, "f"))
        assert walk.step().submit.batches == 1
        assert len(walk.jobs("prepared")) == 1
        found = held(walk)
        assert found is not None
        assert "what is under way or not known may cost up to" in found.reason
        walk.settle()
        assert len(walk.jobs("prepared")) == 1, "what is under way goes on, nothing else"
        release(walk.context, number(walk), None, "the first batch is back, and was cheap")
        walk.settle()
        assert walk.published() == walk.titles
        assert cost(walk) <= limit


def test_a_canary_is_of_the_budget_too(
    emulator: RunningEmulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with walk_of(emulator, tmp_path, monkeypatch, 4) as walk:
        walk.set_operating("budget_usd", "0.0001")
        report = walk.step().submit
        assert report.batches == 0
        assert not walk.world.executed["openai"]
        found = held(walk)
        assert found is not None
        assert found.kind == "budget"
        walk.set_operating("budget_usd", "5")
        release(walk.context, number(walk), None, "raised")
        walk.pass_canary()
        walk.settle()
        assert walk.published() == walk.titles


def test_an_unknown_price_is_not_nought(
    emulator: RunningEmulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with walk_of(emulator, tmp_path, monkeypatch, 4) as walk:
        walk.pass_canary()
        walk.set_operating("budget_usd", "1000")
        with monkeypatch.context() as patched:
            patched.setattr(
                "pipeline_assets.costs.rates.rates_of",
                lambda *_: Rates("unknown", "a list", "nobody sells it"),
            )
            assert walk.step().submit.batches == 0
            found = held(walk)
        assert found is not None
        assert "not known" in found.reason
        assert walk.jobs("prepared")


def test_without_a_budget_nothing_is_added_up(
    emulator: RunningEmulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def must_not(*_: object) -> None:
        raise AssertionError("asked what was spent")

    with walk_of(emulator, tmp_path, monkeypatch, 4) as walk:
        walk.pass_canary()
        monkeypatch.setattr("pipeline_assets.costs.worst_case.so_far", must_not)
        monkeypatch.setattr("pipeline_assets.costs.worst_case.jobs_of_version", must_not)
        monkeypatch.setattr("pipeline_assets.costs.gate.elapsed_of", must_not)
        assert walk.step().submit.batches == 1


def test_the_budget_of_hours(
    emulator: RunningEmulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with walk_of(emulator, tmp_path, monkeypatch, 4) as walk:
        walk.pass_canary()
        walk.set_operating("budget_hours", "2")
        walk.plant("row", "status_zero")
        walk.settle()
        walk.advance(3 * 3600)
        freeze_due(walk)
        assert walk.step().submit.batches == 0
        found = held(walk)
        assert found is not None
        assert "hours ago" in found.reason
        walk.set_operating("budget_hours", "500")
        release(walk.context, number(walk), None, "raised")
        walk.settle()
        assert walk.published() == walk.titles


def test_online_calls_stop_before_the_group_that_could_pass_it(
    emulator: RunningEmulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Groups of two: the first fits, the second could pass the budget and is not called."""
    with online_walk(emulator, tmp_path, monkeypatch) as walk:
        in_groups_of(monkeypatch, 2)
        answer_canary(walk)
        # A group may cost up to 0.017 and is called twice at most; one that is done was not.
        walk.set_operating("budget_usd", format(up(cost(walk) + Decimal("0.04")), "f"))
        walk.step()
        (job,) = walk.jobs()
        assert job.state == "running"
        found = held(walk)
        assert found is not None
        assert found.kind == "budget"
        ran = len(walk.executed())
        account = cost_account(walk.context, walk.key)
        assert account.unknown["not_settled"] == 4
        walk.set_operating("budget_usd", "5")
        release(walk.context, number(walk), None, "raised")
        walk.advance(120)
        walk.settle()
        assert walk.published() == walk.titles
        assert ran < len(walk.executed())
        assert set(walk.executed().values()) == {1}, "what was answered is kept"
        assert cost(walk) == sum(row.usd for row in attempt_costs(walk.context, walk.key))


@pytest.mark.parametrize(
    ("op", "kind", "left", "decision"),
    [
        pytest.param("row", "status_zero", "0.0001", "hold", id="its-own-lines-count"),
        pytest.param("row", "status_zero", "0.005", "retry", id="and-nothing-else"),
        # One of unknown cost may have been answered at length: 12,000 tokens for 0.012.
        pytest.param("lines", "missing", "0.005", "hold", id="what-has-no-line-counts-at-most"),
        pytest.param("lines", "missing", "0.05", "retry", id="and-no-more"),
    ],
)
def test_a_retry_is_decided_by_what_the_batch_itself_cost(
    emulator: RunningEmulator,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    op: str,
    kind: str,
    left: str,
    decision: str,
) -> None:
    """The budget is lowered while the batch is out, to a little more than was spent by then."""
    with provider_walk(
        emulator, "openai", tmp_path, monkeypatch, 4, key="manuals-openai-batch-2"
    ) as walk:
        walk.pass_canary()
        walk.plant(op, kind)
        walk.step()
        walk.set_operating("budget_usd", format(up(cost(walk) + Decimal(left)), "f"))
        walk.settle()
        with walk.context.ledger.read() as connection:
            decisions = connection.execute(select(retry_decisions.c.decision)).scalars().all()
        assert decisions == [decision]


@contextmanager
def online_walk(
    emulator: RunningEmulator, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ProviderWalk]:
    with provider_walk(
        emulator, "openai", folder, monkeypatch, 4, key="manuals-openai-online-1"
    ) as walk:
        yield walk


def answer_canary(walk: ProviderWalk, key: str | None = None) -> GateDecision:
    """The canary alone; records would follow it in the same step."""
    version = open_version(walk.context, key or walk.key)
    settings = operating(walk.context.ledger, version.version_no)
    with job_client(walk.context, version) as client:
        gate = open_gate(walk.context, version, settings)
        found = pass_canary(walk.context, version, client, gate)
    walk.canary_rows = set(walk.world.executed["openai"])
    return found


def in_groups_of(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    """Online calls in groups of so many rows."""
    monkeypatch.setattr(
        "pipeline_assets.submit.answer_online.answer_batch",
        partial(answer_batch, group_rows=rows),
    )


def unknown(walk: ProviderWalk) -> dict[str, int]:
    return cost_account(walk.context, walk.key).unknown


def the_canary(walk: ProviderWalk) -> JobRow:
    (job,) = find_jobs(walk.context.ledger, (*MOVING, "passed", "failed"), machine="canary")
    return job


class TestCanariesThatNobodyKnowsAllOf:
    def test_a_call_that_broke_off(
        self, emulator: RunningEmulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The provider ran it, the answer was lost, and it was made again: both are paid."""
        with online_walk(emulator, tmp_path, monkeypatch) as walk:
            walk.plant("answer", "drop_after")
            assert answer_canary(walk).gate == "open"
            assert unknown(walk) == {"canary_without_usage": 1}
            assert cost_account(walk.context, walk.key).provider_usd > 0

    def test_a_worker_that_died_between_its_calls(
        self, emulator: RunningEmulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def killed(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        with online_walk(emulator, tmp_path, monkeypatch) as walk:
            with monkeypatch.context() as patched:
                patched.setattr("pipeline_assets.canary.run.answer_group", killed)
                with pytest.raises(KeyboardInterrupt):
                    answer_canary(walk)
            records = the_canary(walk).expected_records
            assert unknown(walk) == {"not_settled": records}
            assert answer_canary(walk).gate == "open"
            assert unknown(walk) == {"canary_without_usage": records}
            walk.set_operating("budget_usd", "5")
            walk.settle()
            assert walk.published() == walk.titles, "what is not known counts at most, no more"

    def test_calls_that_were_refused(
        self, emulator: RunningEmulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with online_walk(emulator, tmp_path, monkeypatch) as walk:
            walk.plant("answer", "status", times=None, status=401)
            assert answer_canary(walk).gate == "waiting"
            assert unknown(walk) == {}, "nobody ran them"

    def test_a_job_that_was_given_up(
        self, emulator: RunningEmulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The provider has it, and what it does with it is not known."""
        with walk_of(emulator, tmp_path, monkeypatch, 4) as walk:
            walk.step()
            job = the_canary(walk)
            assert unknown(walk) == {"not_settled": job.expected_records}
            discard(walk.context, job, "lost", "Ada")
            walk.step()
            assert the_canary(walk).state == "failed"
            assert unknown(walk) == {"canary_without_usage": job.expected_records}


def test_a_version_that_its_budget_holds_pays_for_nobodys_canary(
    emulator: RunningEmulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another version of the same combination makes one of its own, and is charged for it."""
    with walk_of(emulator, tmp_path, monkeypatch, 4) as walk:
        walk.set_operating("budget_usd", "0.0001")
        walk.step()
        found = held(walk)
        assert found is not None
        assert found.kind == "budget"
        first = the_canary(walk)
        assert first.state == "prepared"
        other = "manuals-openai-batch-1"
        answer_canary(walk, other)
        second = the_canary(walk)
        assert (second.state, second.version_no) == (
            "submitted",
            open_version(walk.context, other).version_no,
        )
        assert unknown(walk) == {}
        assert cost(walk) == 0
