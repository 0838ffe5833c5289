"""Results that come in for an attempt that was given up: the first valid one wins, all are paid."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from pipeline_assets.accept.judge_batches import judge_batches
from pipeline_assets.cli.app import main
from pipeline_assets.collect.collect_batches import collect_batches
from pipeline_assets.collect.reconcile_again import reconcile_again
from pipeline_assets.costs import job_cost
from pipeline_assets.costs.account import cost_account
from pipeline_assets.prepare.retries import freeze_retries
from pipeline_assets.provider_jobs.clients import job_client
from pipeline_assets.provider_jobs.operate import NotNow, discard
from pipeline_assets.publish.publish_accepted import publish_accepted
from pipeline_assets.submit.submit_batches import submit_batches
from pipeline_assets.versions import open_version
from resources.ledger.batches import COMPLETE
from resources.ledger.jobs import find_job
from resources.ledger.leases import LeaseHeld, acquire
from resources.ledger.results import store_result_file
from resources.ledger.schema import (
    batches,
    dead_letters,
    dispositions,
    judgements,
    late_answers,
    late_results,
    moves,
    result_files,
    results,
)
from resources.ledger.transitions import BATCH
from tests.integration.recovery.support import LONG, TOKENS, Retries
from tests.integration.stages.support import ON_ONE_DATABASE, Shop
from tests.support.clock import FrozenClock
from tests.support.emulator import RunningEmulator
from tests.support.provider_walk import ProviderWalk, provider_walk


@pytest.fixture
def retries(shop: Shop, frozen_clock: FrozenClock, monkeypatch: pytest.MonkeyPatch) -> Retries:
    return Retries(shop, frozen_clock, monkeypatch)


def test_a_late_result_beside_a_valid_one_is_recorded_and_not_used(retries: Retries) -> None:
    retries.walk(["missing", "good + late"], ["good"])
    assert retries.states() == ["published", "published"]
    assert retries.late() == [(1, "succeeded", 0)]
    (late,) = retries.shop.rows(late_results)
    assert {name: late[name] for name in TOKENS} == TOKENS
    assert (late["batch_no"], late["record_no"]) == (retries.batch_nos()[1], 1)
    assert retries.published_from()[1] == 3, "the attempt's own result was first"
    assert (retries.collected[-2].late, retries.collected[-2].late_used) == (1, 0)
    anomalies = [row["anomaly"] for row in retries.shop.rows(results)]
    assert anomalies.count("late_result") == 1
    assert retries.shop.rows(late_answers) == []
    first = retries.shop.rows(dispositions)[0]
    assert (first["disposition"], first["failure_class"]) == (
        "retryable_failure",
        "missing_result",
    ), "what was decided stays"
    retries.check()


def test_a_late_result_is_used_where_its_successor_failed(retries: Retries) -> None:
    retries.walk(["missing", "busy + late"], ["good"])
    assert retries.states() == ["published", "published"]
    assert retries.late() == [(1, "succeeded", 1)]
    assert retries.published_from()[1] == 1, "the earlier attempt's"
    (answers,) = retries.shop.rows(late_answers)
    assert (answers["batch_no"], answers["records"]) == (retries.batch_nos()[1], 1)
    assert answers["staging_artifact"] is not None
    assert [row["attempt_no"] for row in retries.shop.rows(judgements)] == [1, 2]
    assert retries.decisions() == [("missing_result", "retry", "repeat")], "nothing more to decide"
    assert set(retries.batch_states()) == {"completed", "completed_with_errors"}
    assert retries.batch_states()[0] == "completed"
    retries.check()
    before = retries.shop.counts()
    retries.step()
    assert retries.shop.counts() == before


@ON_ONE_DATABASE
@pytest.mark.parametrize(
    ("second", "state", "late"),
    [
        pytest.param("refused + late", "published", [(1, "succeeded", 1)], id="it-was-refused"),
        pytest.param("expired + late", "published", [(1, "succeeded", 1)], id="it-expired"),
        pytest.param("conflict + late", "published", [(1, "succeeded", 1)], id="two-answers"),
        pytest.param("doubtful + late", "awaiting_review", [(1, "succeeded", 0)], id="in-doubt"),
        pytest.param(
            "refused + late failure",
            "dead_letter",
            [(1, "retryable_failure", 0)],
            id="both-failed",
        ),
    ],
)
def test_whether_a_late_result_is_used(
    retries: Retries, second: str, state: str, late: list[tuple[int, str, int]]
) -> None:
    retries.walk(["missing", second])
    assert retries.states() == [state]
    assert retries.late() == late
    assert [closing for *_, closing in retries.letters()] == [None] * (state == "dead_letter")
    retries.check()


@ON_ONE_DATABASE
def test_of_several_late_results_the_earliest_attempt_is_used(retries: Retries) -> None:
    retries.walk(["missing", "missing", "missing + late"])
    assert retries.states() == ["published"]
    assert retries.late() == [(1, "succeeded", 1), (2, "succeeded", 0)]
    assert retries.published_from() == {1: 1}
    retries.check()


@ON_ONE_DATABASE
def test_a_late_result_that_a_person_must_see(
    retries: Retries, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A late answer is judged like any other."""
    support = __import__("tests.integration.recovery.support", fromlist=["_own"])
    real = support.answer_as

    def doubtful(kind: str, line: dict[str, Any], earlier: list[str]) -> list[dict[str, Any]]:
        found = real(kind, line, earlier)
        if not kind.endswith("late"):
            return found
        (shaky,) = support._own("doubtful", line)
        return [shaky | {"custom_id": e["custom_id"]} if "body" in e else e for e in found]

    monkeypatch.setattr(support, "answer_as", doubtful)
    retries.walk(["missing", "busy + late"])
    assert retries.states() == ["awaiting_review"]
    assert retries.late() == [(1, "succeeded", 1)]
    assert retries.shop.archive() == []
    retries.check()


def result_file(retries: Retries, batch: int, *kept: int) -> None:
    """Another result file of a batch (by place from 1), as its provider may have one later.

    It holds good answers to the requests at these places; whoever fetches finds it.
    """
    context = retries.shop.context
    provider = retries.provider
    assert provider is not None
    artifact = retries.shop.rows(batches)[batch - 1]["request_artifact"]
    lines = context.artifacts.path("request", artifact).read_bytes().splitlines()
    answers = [super(type(provider), provider).answer_line(lines[place]) for place in kept]
    stored = context.artifacts.write("result", lambda w: w.write(b"\n".join(answers) + b"\n"))
    with context.ledger.write() as connection:
        store_result_file(
            connection,
            retries.batch_nos()[batch - 1],
            "output",
            stored.digest,
            stored.size,
            len(answers),
            context.ledger.now(),
        )


def look_again(retries: Retries, batch: int) -> str:
    context, version = retries.shop.context, retries.shop.version()
    job = find_job(context.ledger, retries.shop.rows(batches)[batch - 1]["batch_id"])
    assert job is not None
    with job_client(context, version) as client:
        return reconcile_again(context, version, job, client, "it may have come", "Ada")


def publish(retries: Retries) -> None:
    judge_batches(retries.shop.context, retries.shop.version())
    publish_accepted(retries.shop.context, retries.shop.version())


NOTHING = "nothing came back that was not known; nothing was changed"
NOBODY = "a batch that is answered embedded has nothing at its provider; nothing was changed"


@ON_ONE_DATABASE
def test_looking_again_where_nothing_came(retries: Retries) -> None:
    retries.walk(["good"], ["refused"])
    before = retries.shop.counts()
    assert look_again(retries, 1) == NOBODY
    assert retries.shop.counts() == before


def test_what_came_later_answers_a_record_that_waits(retries: Retries) -> None:
    retries.start(["missing"], ["missing"], ["good"])
    retries.step()
    result_file(retries, 1, 0)
    assert look_again(retries, 1) == "1 late results, 1 of them used"
    assert retries.states() == ["collected", "retry_wait", "published"]
    publish(retries)
    assert retries.states() == ["published", "retry_wait", "published"]
    before = retries.shop.counts()
    assert look_again(retries, 1) == NOBODY
    assert retries.shop.counts() == before, "again changes nothing"
    assert retries.again().records == 1, "only the other one is tried again"
    assert retries.states() == ["published"] * 3
    assert retries.published_from()[1] == 1
    assert retries.batch_states() == ["completed", "completed"]
    retries.check()


@ON_ONE_DATABASE
def test_what_came_later_of_an_expired_job(retries: Retries) -> None:
    """It ended early, and the rows it had run were not in its file yet."""
    retries.start(["missing"], ["good"])
    submit_batches(retries.shop.context, retries.shop.version())
    retries.patch(batches, provider_outcome="expired")
    retries.step()
    assert retries.decisions() == [("expired", "retry", "repeat")]
    result_file(retries, 1, 0)
    assert look_again(retries, 1) == "1 late results, 1 of them used"
    publish(retries)
    assert retries.states() == ["published", "published"]
    assert retries.batch_states() == ["completed"]
    retries.check()


@ON_ONE_DATABASE
def test_what_came_later_completes_the_batch(retries: Retries) -> None:
    retries.start(["missing"], ["good"])
    retries.step()
    assert retries.batch_states() == ["retry_required"]
    result_file(retries, 1, 0)
    look_again(retries, 1)
    assert retries.batch_states() == ["completed"]


def test_what_came_later_answers_a_dead_letter(retries: Retries) -> None:
    retries.walk(["missing"] * 3)
    assert retries.states() == ["dead_letter"]
    result_file(retries, 2, 0)
    assert look_again(retries, 2) == "1 late results, 1 of them used"
    publish(retries)
    assert retries.states() == ["published"]
    (letter,) = retries.shop.rows(dead_letters)
    assert (letter["closing"], letter["closing_reason"]) == (
        "answered",
        "a late result of an earlier attempt was valid",
    )
    assert retries.published_from() == {1: 2}
    retries.check()


def test_what_comes_for_a_prepared_record_is_only_recorded(retries: Retries) -> None:
    retries.start(["missing"])
    retries.step()
    retries.clock.advance(LONG)
    retries.freeze()
    assert retries.states() == ["prepared"]
    result_file(retries, 1, 0)
    assert look_again(retries, 1) == "1 late results, 0 of them used"
    assert retries.late() == [(1, "succeeded", 0)]
    retries.step()
    assert retries.states() == ["published"]
    assert retries.published_from() == {1: 2}
    retries.check()


def test_what_comes_for_an_answered_record_is_only_recorded(retries: Retries) -> None:
    retries.walk(["missing", "good"])
    result_file(retries, 1, 0)
    assert look_again(retries, 1) == "1 late results, 0 of them used"
    publish(retries)
    assert len(retries.shop.archive()) == 1
    retries.check()


def test_a_retrys_own_result_after_a_late_one_is_not_published_twice(retries: Retries) -> None:
    """The late result comes in while the next attempt is under way."""
    retries.start(["missing", "good"], ["missing", "busy"])
    retries.step()
    retries.clock.advance(LONG)
    retries.freeze()
    submit_batches(retries.shop.context, retries.shop.version())
    assert retries.states() == ["submitted", "submitted"]
    result_file(retries, 1, 0, 1)
    assert look_again(retries, 1) == "2 late results, 2 of them used"
    publish(retries)
    assert retries.states() == ["published", "published"]
    archive = retries.shop.archive()
    retries.step()
    assert retries.shop.archive() == archive
    assert retries.published_from() == {1: 1, 2: 2}
    found = [row["disposition"] for row in retries.shop.rows(dispositions)]
    assert found[2:] == ["succeeded", "retryable_failure"], "and it is on record"
    assert len(retries.decisions()) == 2, "nothing was left to decide"
    assert retries.batch_states()[0] == "completed"
    retries.check()


def under_way(retries: Retries) -> None:
    """The second attempt was answered, not collected; the first one's answer may be fetched."""
    retries.start(["missing", "good"], ["missing", "missing"])
    retries.step()
    retries.clock.advance(LONG)
    retries.freeze()
    submit_batches(retries.shop.context, retries.shop.version())
    result_file(retries, 1, 0, 1)


def test_a_record_that_is_answered_late_while_its_retry_is_settled(
    retries: Retries, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another worker is faster between the look and the transaction: it is looked at again."""
    under_way(retries)
    home = importlib.import_module("pipeline_assets.collect.settle")
    real = home._look
    looks: list[str] = []

    def look(*given: Any) -> Any:
        known = real(*given)
        looks.append("")
        if len(looks) == 1:
            looks[0] = look_again(retries, 1)
        return known

    monkeypatch.setattr(home, "_look", look)
    retries.step()
    assert looks == ["2 late results, 2 of them used", ""]
    assert retries.states() == ["published", "published"]
    assert retries.published_from() == {1: 1, 2: 2}
    assert len(retries.decisions()) == 2, "the second failure decided nothing"
    retries.check()


def test_a_retry_that_is_settled_while_late_results_are_looked_for(
    retries: Retries, monkeypatch: pytest.MonkeyPatch
) -> None:
    under_way(retries)
    other = replace(retries.shop.context, worker="other@elsewhere:2")
    home = importlib.import_module("pipeline_assets.collect.reconcile_again")
    real = home.choose_late
    chosen: list[int] = []

    def choose(*given: Any) -> Any:
        found = real(*given)
        chosen.append(found.filter("used").height)
        if len(chosen) == 1:
            collect_batches(other, retries.shop.version())
        return found

    monkeypatch.setattr(home, "choose_late", choose)
    assert look_again(retries, 1) == "2 late results, 1 of them used"
    assert chosen == [2, 1], "one of them was answered in between"
    publish(retries)
    assert retries.states() == ["published", "published"]
    assert retries.published_from() == {1: 3, 2: 2}
    retries.check()


@ON_ONE_DATABASE
def test_a_second_file_of_late_answers(retries: Retries) -> None:
    retries.start(["missing"], ["missing"], ["missing"])
    retries.step()
    for place in (0, 1, 2):
        result_file(retries, 1, place)
        look_again(retries, 1)
        if place:
            publish(retries)
    assert retries.states() == ["published"] * 3
    assert retries.late() == [(number, "succeeded", 1) for number in (1, 2, 3)]
    assert len(retries.shop.rows(late_answers)) == 3
    retries.check()


@ON_ONE_DATABASE
def test_a_whole_file_again_with_more_in_it(retries: Retries) -> None:
    """The lines that were known are repeats; only what is new counts."""
    retries.start(["good"], ["missing"])
    retries.step()
    result_file(retries, 1, 0, 1)
    assert look_again(retries, 1) == "1 late results, 1 of them used"
    publish(retries)
    assert retries.states() == ["published", "published"]
    with retries.shop.context.ledger.read() as connection:
        lines = connection.execute(select(results.c.anomaly)).scalars().all()
    assert len(lines) == 3
    retries.check()


def damaged(retries: Retries) -> tuple[Path, bytes]:
    """An incident: a result file that was changed; the file, and what was in it."""
    retries.start(["good"], ["busy"], ["good"])
    submit_batches(retries.shop.context, retries.shop.version())
    artifact = retries.shop.rows(result_files)[0]["artifact"]
    path = retries.shop.context.artifacts.path("result", artifact)
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"BG-000", b"BG-999"))
    retries.step()
    assert retries.batch_states() == ["incident"]
    assert "incident" in retries.alerts()
    return path, whole


def test_an_incident_whose_cause_is_repaired_completes(retries: Retries) -> None:
    path, whole = damaged(retries)
    said = look_again(retries, 1)
    assert said.startswith("it is still an incident: ")
    assert "was changed" in said
    assert retries.batch_states() == ["incident"]
    assert retries.shop.rows(dispositions) == []
    assert "incident" in retries.alerts()
    path.write_bytes(whole)
    assert look_again(retries, 1) == "it is reconciled: 1 retryable_failure, 2 succeeded"
    assert retries.batch_states() == ["retry_required"]
    assert "incident" not in retries.alerts()
    publish(retries)
    assert retries.states() == ["published", "retry_wait", "published"]
    causes = [row["reason"] for row in retries.shop.rows(moves) if row["to_state"] == "reconciling"]
    assert causes[1:] == ["reconciled again: it may have come"] * 2
    retries.again()
    assert retries.states() == ["published"] * 3
    retries.check()


@ON_ONE_DATABASE
def test_an_incident_that_died_on_the_way_is_gone_on_with(
    retries: Retries, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The move was committed, the rest was not: the next command, or collect, does it."""
    path, whole = damaged(retries)
    path.write_bytes(whole)
    home = importlib.import_module("pipeline_assets.collect.reconcile_again")

    class Crash(BaseException):
        pass

    def die(*_: Any) -> None:
        raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(home, "reconcile_and_settle", die)
        with pytest.raises(Crash):
            look_again(retries, 1)
    assert retries.batch_states() == ["reconciling"]
    assert look_again(retries, 1) == "it is reconciled: 1 retryable_failure, 2 succeeded"


@ON_ONE_DATABASE
def test_what_the_command_says(
    retries: Retries, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path, whole = damaged(retries)
    settings = retries.shop.context.settings
    monkeypatch.setenv("TALLYBOOK_LEDGER_URL", str(settings.ledger_url))
    name = retries.shop.rows(batches)[0]["batch_id"]

    def command(*words: str) -> tuple[int, str]:
        status = main(["batch", "reconcile", *words, "--state", str(settings.state)])
        printed = capsys.readouterr()
        return status, " ".join((printed.out + printed.err).split())

    assert command(name)[0] == 2, "a reason is asked for"
    status, said = command(name, "--reason", "restored")
    assert status == 0
    assert f"{name}: it is still an incident: " in said
    path.write_bytes(whole)
    assert command(name, "--reason", "restored") == (
        0,
        f"{name}: it is reconciled: 1 retryable_failure, 2 succeeded.",
    )
    assert command(name, "--reason", "once more") == (0, f"{name}: {NOBODY}.")
    status, said = command("nobody", "--reason", "x")
    assert (status, "there is no batch" in said) == (1, True)


@ON_ONE_DATABASE
@pytest.mark.parametrize("state", sorted(set(BATCH) - {"", "incident", "reconciling", *COMPLETE}))
def test_in_which_states_nothing_is_reconciled_again(retries: Retries, state: str) -> None:
    retries.start(["good"])
    retries.patch(batches, state=state)
    before = retries.shop.counts()
    with pytest.raises(
        NotNow, match=f"is {state} and cannot be reconciled again: expected a batch"
    ):
        look_again(retries, 1)
    assert retries.shop.counts() == before


@ON_ONE_DATABASE
def test_a_batch_that_another_worker_is_at(retries: Retries) -> None:
    retries.start(["missing"])
    retries.step()
    result_file(retries, 1, 0)
    acquire(retries.shop.context.ledger, "batch:manuals-baseline-2-m1-b1", "someone@elsewhere:1")
    with pytest.raises(LeaseHeld):
        look_again(retries, 1)
    assert retries.late() == []


@contextmanager
def emulated(
    emulator: RunningEmulator, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ProviderWalk]:
    with provider_walk(
        emulator, "openai", folder, monkeypatch, 3, key="manuals-openai-batch-2"
    ) as walk:
        walk.pass_canary()
        yield walk


def test_a_lost_batch_whose_provider_was_only_late(
    emulator: RunningEmulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An operator gives a job up; it ends after all, and its answers are fetched and paid."""
    with emulated(emulator, tmp_path, monkeypatch) as walk:
        version = open_version(walk.context, walk.key)
        canary = cost_account(walk.context, walk.key).provider_usd
        walk.step()
        (job,) = walk.jobs("submitted", "running")
        discard(walk.context, job, "it never ends", "Ada")
        walk.step()
        assert set(walk.states().values()) == {"retry_wait"}
        assert walk.classes() == dict.fromkeys(walk.titles, "missing_result")
        assert cost_account(walk.context, walk.key).provider_usd == canary > 0
        walk.advance(2_000)
        lost = find_job(walk.context.ledger, job.id)
        assert lost is not None
        with job_client(walk.context, version) as client:
            said = reconcile_again(walk.context, version, lost, client, "it ended", "Ada")
            assert said == "3 late results, 3 of them used"
            assert reconcile_again(walk.context, version, lost, client, "again", "Ada") == NOTHING
        walk.step()
        assert walk.published() == walk.titles
        assert freeze_retries(walk.context, version).manifest_id is None
        cost = job_cost(walk.context, lost)
        assert cost is not None and cost.amount is not None
        assert (cost.rows, cost.rows_without_usage) == (3, 0)
        assert cost.input_tokens > 0
        assert cost_account(walk.context, walk.key).provider_usd == canary + cost.amount > canary
        walk.check_sound()
        assert walk.report().invariant_holds


def test_a_lost_batch_that_is_late_after_its_retry(
    emulator: RunningEmulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both were paid, and the account says so; one is published."""
    with emulated(emulator, tmp_path, monkeypatch) as walk:
        walk.step()
        (job,) = walk.jobs("submitted", "running")
        discard(walk.context, job, "it never ends", "Ada")
        walk.step()
        walk.advance(LONG.total_seconds())
        version = open_version(walk.context, walk.key)
        assert freeze_retries(walk.context, version).records == 3
        walk.settle()
        assert walk.published() == walk.titles
        once = cost_account(walk.context, walk.key).provider_usd
        lost = find_job(walk.context.ledger, job.id)
        assert lost is not None
        with job_client(walk.context, version) as client:
            said = reconcile_again(walk.context, version, lost, client, "it ended", "Ada")
        assert said == "3 late results, 0 of them used"
        twice = cost_account(walk.context, walk.key).provider_usd
        assert twice > once > 0
        assert sum(walk.executed().values()) == 6
        walk.check_sound()
