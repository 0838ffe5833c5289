"""The whole life of a batch, twelve ways for it to go wrong, and three facts at the end of each.

At the end, from stored evidence: every id of every manifest has one disposition, every accepted
output is of the output schema, and reconciling and delivering once more writes nothing.
"""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from sqlalchemy import delete, func, update

from pipeline_assets.audit.journal import PATH
from pipeline_assets.audit.run import audit
from pipeline_assets.canary import run as canary_run
from pipeline_assets.costs import job_cost
from pipeline_assets.prepare import plan as planning
from pipeline_assets.prepare.retries import freeze_retries
from pipeline_assets.provider_jobs.clients import job_client
from pipeline_assets.provider_jobs.operate import cancel
from pipeline_assets.publish import publish_accepted as publishing
from pipeline_assets.publish.publish_accepted import publish_accepted
from pipeline_assets.versions import open_version
from resources.ledger.leases import LEASE_SECONDS
from resources.ledger.schema import (
    archive_entries,
    deliveries,
    dispositions,
    record_state,
    results,
)
from resources.providers.admission import JobRefused
from resources.providers.capabilities import Capability, Fact
from tests.integration.stages.support import manual
from tests.provider_emulator.faults import Fault
from tests.support.emulator import RunningEmulator
from tests.support.provider_walk import ProviderWalk, another_worker, provider_walk
from tests.support.recovery_walk import (
    attempts_of,
    check_facts_alone,
    check_three_facts,
    freeze_due,
    paid,
    shop_of,
    try_again,
)

DOCUMENTS = 4
BUSINESS_TABLES = ("archive_entries", "archive_heads", "deliveries", "search")
Start = Callable[..., ProviderWalk]
SLOW = pytest.mark.slow
"""For further cases of a kind, so that each kind has one that is always run."""

pytestmark = pytest.mark.parametrize(
    "ledger_url",
    [
        "sqlite",
        pytest.param("postgresql", marks=[pytest.mark.postgres, pytest.mark.slow]),
    ],
    indirect=True,
)


@pytest.fixture
def start(
    emulator: RunningEmulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ledger_url: str
) -> Iterator[Start]:
    """Return a function that opens a walk whose canary has passed; faults are planted after it."""
    monkeypatch.setenv("TALLYBOOK_LEDGER_URL", ledger_url)
    with ExitStack() as stack:

        def begin(provider: str = "openai", **more: Any) -> ProviderWalk:
            walk = stack.enter_context(
                provider_walk(emulator, provider, tmp_path, monkeypatch, DOCUMENTS, **more)
            )
            walk.pass_canary()
            return walk

        yield begin


def all_published(walk: ProviderWalk) -> bool:
    return walk.states() == dict.fromkeys(walk.titles, "published") and walk.status().done


def left_behind(walk: ProviderWalk) -> Counter[str]:
    return Counter(state for state in walk.states().values() if state != "published")


class Crash(BaseException):
    """The process is gone: nothing in the code under test may catch this."""


def test_outputs_arrive_in_another_order(start: Start) -> None:
    walk = start()
    walk.plant("lines", "shuffle")
    walk.settle()
    came = [row["attempt_no"] for row in shop_of(walk).rows(results)]
    assert sorted(came) != came, "the order of the file was another one"
    assert walk.published() == walk.titles
    assert all_published(walk)
    check_three_facts(walk)


@pytest.mark.parametrize(
    ("kind", "lost"),
    [
        pytest.param("duplicate", {}, id="equal", marks=SLOW),
        pytest.param("duplicate_differs", {"duplicate_conflict": 1}, id="different"),
    ],
)
def test_one_output_id_is_duplicated(start: Start, kind: str, lost: dict[str, int]) -> None:
    """Equal lines count once. Of different ones none is trusted, and none is paid for again."""
    walk = start()
    walk.plant("lines", kind, index=1)
    assert try_again(walk) == []
    assert Counter(walk.classes().values()) == lost
    assert left_behind(walk) == ({"dead_letter": 1} if lost else {})
    assert len(shop_of(walk).rows(results)) == DOCUMENTS + 1, "both lines are kept"
    assert len(paid(walk)) == DOCUMENTS
    check_three_facts(walk)


def test_one_expected_id_is_missing(start: Start) -> None:
    walk = start()
    walk.plant("lines", "missing", index=2)
    walk.settle()
    assert left_behind(walk) == {"retry_wait": 1}
    assert walk.classes() == {"shop/d2.txt": "missing_result"}
    assert not walk.status().done
    (again,) = try_again(walk)
    assert (again.records, again.paths) == (1, {"repeat": 1}), "that record, and no other"
    first, second = (
        attempts_of(walk).filter(pl.col("document_id") == "shop/d2.txt").rows(named=True)
    )
    assert second["parent_attempt_no"] == first["attempt_no"]
    assert (second["ordinal"], second["replay_reason"]) == (2, "transient_retry")
    assert (first["counted"], first["custom_id"] != second["custom_id"]) == (1, True)
    assert Counter(job.state for job in walk.jobs()) == {"completed": 2}
    assert all_published(walk)
    check_three_facts(walk)


def test_one_unknown_id_appears(start: Start) -> None:
    walk = start()
    walk.plant("lines", "alien")
    assert try_again(walk) == []
    kept = Counter(row["anomaly"] for row in shop_of(walk).rows(results))
    assert kept == {None: DOCUMENTS, "unknown_id": 1}
    assert all_published(walk)
    check_three_facts(walk)


def test_the_job_completes_with_individual_failures(start: Start) -> None:
    """One is never mended, one is by another attempt, one only by a request of another form."""
    walk = start()
    walk.plant("row", "error", match={"index": 0}, status=400)
    walk.plant("row", "error", match={"index": 1}, status=503)
    walk.plant("row", "prose", match={"index": 2})
    walk.settle()
    assert left_behind(walk) == {"dead_letter": 2, "retry_wait": 1}
    (again,) = try_again(walk)
    assert again.records == 1
    assert walk.classes() == {"shop/d0.txt": "invalid_request", "shop/d2.txt": "malformed_json"}
    assert left_behind(walk) == {"dead_letter": 2}
    assert {job.state for job in walk.jobs()} == {"completed", "completed_with_errors"}
    assert not walk.status().done
    check_three_facts(walk)


def test_the_job_expires_with_partial_output(start: Start) -> None:
    """What came is used; the rest is asked again, and no attempt is spent on it."""
    walk = start()
    walk.plant("job", "expired", done=0.5)
    walk.settle()
    assert left_behind(walk) == {"retry_wait": 2}
    assert len(paid(walk)) == 2
    (again,) = try_again(walk)
    assert (again.records, again.paths) == (2, {"repeat": 2})
    expired = attempts_of(walk).filter(pl.col("disposition") == "expired")
    assert expired["counted"].to_list() == [0, 0]
    assert sum(paid(walk).values()) == DOCUMENTS, "nothing was paid for twice"
    assert all_published(walk)
    check_three_facts(walk)


@pytest.mark.parametrize("by", ["provider", pytest.param("operator", marks=SLOW)])
def test_cancellation_returns_some_successful_results(start: Start, by: str) -> None:
    """The results are used. The rest is tried again, unless it was our own wish to end it."""
    walk = start()
    if by == "provider":
        walk.plant("job", "cancelled", done=0.5)
    else:
        walk.step()
        walk.advance(walk.world.timing.validating_seconds + walk.world.timing.running_seconds / 2)
        walk.step()
        (job,) = walk.jobs("submitted", "running")
        with job_client(walk.context, open_version(walk.context, walk.key)) as client:
            cancel(walk.context, job, client.get(), "not wanted any more", "a tester")
    walk.settle()
    kept = len(walk.published())
    assert 0 < kept < DOCUMENTS
    assert len(paid(walk)) == kept, "every result that was paid for is used"
    made = try_again(walk)
    if by == "provider":
        assert [report.records for report in made] == [DOCUMENTS - kept]
        assert all_published(walk)
    else:
        assert made == []
        assert left_behind(walk) == {"cancelled": DOCUMENTS - kept}
    assert sum(paid(walk).values()) == len(walk.published())
    check_three_facts(walk)


@pytest.mark.parametrize(
    ("kind", "args"),
    [
        pytest.param("cut", {"bytes": 900}, id="within-a-line", marks=SLOW),
        pytest.param("truncate_at_newline", {}, id="between-two-lines"),
    ],
)
def test_the_result_download_stops_midway(start: Start, kind: str, args: dict[str, int]) -> None:
    walk = start()
    before = walk.world.count_calls("openai", "download")
    walk.plant("download", kind, times=2, **args)
    assert try_again(walk) == [], "a short body is no file with fewer rows"
    assert walk.world.faults.pending() == []
    assert walk.world.count_calls("openai", "download") == before + 3
    assert walk.anomalies() == {}
    assert len(paid(walk)) == DOCUMENTS
    assert all_published(walk)
    check_three_facts(walk)


RECONCILER_STEPS = [
    pytest.param("collect_batches", "_start", id="result-files-stored", marks=SLOW),
    pytest.param("collect_batches", "reconcile_batch", id="reconciled-in-memory", marks=SLOW),
    pytest.param("settle", "store_results", id="results-in-an-open-transaction", marks=SLOW),
    pytest.param("settle", "move_batch", id="at-the-end-of-the-transaction", marks=SLOW),
    pytest.param("collect_batches", "settle", id="dispositions-stored"),
]


def dying_after(real: Callable[..., Any]) -> Callable[..., Any]:
    def step(*given: Any, **named: Any) -> Any:
        real(*given, **named)
        raise Crash

    return step


@pytest.mark.parametrize(("module", "name"), RECONCILER_STEPS)
def test_the_reconciler_crashes_after_persisting_a_result(
    start: Start, monkeypatch: pytest.MonkeyPatch, module: str, name: str
) -> None:
    walk = start()
    walk.plant("lines", "missing", index=3)
    home = importlib.import_module(f"pipeline_assets.collect.{module}")
    with monkeypatch.context() as patch, pytest.raises(Crash):
        patch.setattr(home, name, dying_after(getattr(home, name)))
        walk.settle()
    jobs = len(walk.world.jobs_created["openai"])
    downloads = walk.world.count_calls("openai", "download")
    walk.advance(LEASE_SECONDS + 1)
    with another_worker(walk) as later:
        later.settle()
        assert len(walk.world.jobs_created["openai"]) == jobs, "nothing is asked for again"
        assert walk.world.count_calls("openai", "download") == downloads
        assert left_behind(later) == {"retry_wait": 1}, "a crash is no failed attempt"
        assert [report.records for report in try_again(later)] == [1]
        assert all_published(later)
        check_three_facts(later)


def losing_the_answer(real: Callable[..., Any]) -> Callable[..., Any]:
    @contextmanager
    def fenced(*given: Any) -> Iterator[Any]:
        with real(*given) as connection:
            yield connection
        raise Crash

    return fenced


@pytest.mark.parametrize(
    "lost", ["answer-of-the-commit", pytest.param("state-of-the-records", marks=SLOW)]
)
def test_the_business_write_succeeds_but_its_acknowledgement_is_lost(
    start: Start, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    walk = start()
    with monkeypatch.context() as patch, pytest.raises(Crash):
        patch.setattr(publishing, "fenced", losing_the_answer(publishing.fenced))
        walk.settle()
    before = {name: shop_of(walk).counts()[name] for name in BUSINESS_TABLES}
    assert set(before.values()) == {DOCUMENTS}
    if lost == "state-of-the-records":
        # The harder case of a store that is not in one transaction with the ledger.
        with walk.context.ledger.write() as connection:
            connection.execute(update(record_state).values(state="accepted"))
    walk.advance(LEASE_SECONDS + 1)
    with another_worker(walk) as later:
        report = publish_accepted(later.context, open_version(later.context, later.key))
        assert report.published == 0
        assert report.already == (DOCUMENTS if lost == "state-of-the-records" else 0)
        assert {name: shop_of(later).counts()[name] for name in BUSINESS_TABLES} == before
        assert len(later.executed()) == DOCUMENTS, "a local failure costs no model call"
        assert all_published(later)
        if lost == "answer-of-the-commit":
            check_three_facts(later)
        else:
            check_facts_alone(later)
            found = {finding.check for finding in audit(later.context).findings}
            assert found == {PATH}, "no move says that they were accepted again"


@pytest.mark.parametrize("own", [pytest.param("answered", marks=SLOW), "failed"])
def test_a_retry_batch_receives_a_late_result_from_the_original_job(start: Start, own: str) -> None:
    """The first valid result wins; the other is kept with what it cost."""
    walk = start()
    walk.plant("lines", "missing", index=1)
    walk.settle()
    assert left_behind(walk) == {"retry_wait": 1}
    walk.plant("lines", "late")
    if own == "failed":
        walk.plant("row", "error", status=503)
    assert freeze_due(walk).records == 1
    assert try_again(walk) == []
    shop = shop_of(walk)
    (late,) = shop.query(
        "SELECT attempt_no, used, output_tokens FROM late_results",
        {"attempt_no": pl.Int64, "used": pl.Int64, "output_tokens": pl.Int64},
    ).rows(named=True)
    original, retried = (
        attempts_of(walk).filter(pl.col("document_id") == "shop/d1.txt").rows(named=True)
    )
    assert late["attempt_no"] == original["attempt_no"]
    assert late["used"] == (own == "failed")
    assert original["failure_class"] == "missing_result", "a disposition is written once"
    assert (retried["disposition"] == "succeeded") == (own == "answered")
    judged = shop.query("SELECT attempt_no FROM judgements", {"attempt_no": pl.Int64})["attempt_no"]
    assert (original["attempt_no"] in judged, retried["attempt_no"] in judged) == (
        own == "failed",
        own == "answered",
    )
    first = walk.jobs()[0]
    cost = job_cost(walk.context, first)
    assert cost is not None
    assert cost.rows == DOCUMENTS, "the late line was paid like the others"
    assert late["output_tokens"] > 0
    assert all_published(walk)
    check_three_facts(walk)


def add_document(walk: ProviderWalk, number: int) -> None:
    """One more, scanned, parsed and frozen."""
    identifier = f"WP-{100 + number}"
    path = walk.context.settings.source_folder / f"d{number}.txt"
    path.write_text(manual("Circulation Pump", identifier), encoding="utf-8")
    walk.titles[f"shop/d{number}.txt"] = f"Circulation Pump {identifier} User Manual"
    walk.prepare()


def no_structured_output(row: Capability) -> Capability:
    return replace(row, structured_output=Fact(False, "a newer page", "2027-01"))


def shorter_answers(row: Capability) -> Capability:
    return replace(row, output_tokens_max=Fact(100, "a newer page", "2027-01"))


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        pytest.param(no_structured_output, "structured_output", id="schema"),
        pytest.param(shorter_answers, "output_tokens_max", id="model", marks=SLOW),
    ],
)
def test_a_model_or_schema_capability_changes_between_deployments(
    start: Start,
    monkeypatch: pytest.MonkeyPatch,
    changed: Callable[[Capability], Capability],
    says: str,
) -> None:
    """Nothing is trimmed to pass: what was published stays, what waits goes on waiting."""
    walk = start()
    walk.plant("lines", "missing", index=0)
    walk.settle()
    real = planning.find_capability
    jobs = list(walk.world.jobs_created["openai"])
    with monkeypatch.context() as patch:
        patch.setattr(planning, "find_capability", lambda *given: changed(real(*given)))
        walk.advance(3 * 3600)
        version = open_version(walk.context, walk.key)
        with pytest.raises(JobRefused, match=f"{says}.*a newer page"):
            freeze_retries(walk.context, version)
        with pytest.raises(JobRefused, match=says):
            add_document(walk, 4)
        walk.step()
        assert walk.world.jobs_created["openai"] == jobs, "nothing was sent"
        assert walk.states()["shop/d0.txt"] == "retry_wait"
        assert len(walk.published()) == DOCUMENTS - 1
    # The deployment is taken back, and everything goes on.
    walk.prepare()
    assert [report.records for report in try_again(walk)] == [1]
    assert all_published(walk)
    check_three_facts(walk)


@pytest.mark.slow
@pytest.mark.parametrize("accepted", [True, False], ids=["taken", "refused"])
def test_a_new_sdk_and_what_the_provider_makes_of_its_requests(
    start: Start, monkeypatch: pytest.MonkeyPatch, accepted: bool
) -> None:
    """The same case, where no table knows of it: a canary goes first, in the mode of records."""
    walk = start()
    walk.settle()
    assert all_published(walk)
    monkeypatch.setattr(canary_run, "sdk_version", lambda _: "of the next deployment")
    if not accepted:
        walk.world.faults.add(Fault("openai", "row", "error", times=None, args={"status": 400}))
    add_document(walk, 4)
    jobs = len(walk.world.jobs_created["openai"])
    walk.settle(6)
    if accepted:
        assert len(walk.world.jobs_created["openai"]) == jobs + 2, "the canary first"
        assert all_published(walk)
    else:
        assert walk.states()["shop/d4.txt"] == "prepared", "no record was risked"
        assert len(walk.world.jobs_created["openai"]) == jobs + 1, "the canary alone"
        assert "canary_failed" in walk.alerts()
        assert not walk.status().done
    check_three_facts(walk)


def loses_a_disposition(walk: ProviderWalk) -> None:
    first = attempts_of(walk)["attempt_no"][0]
    with walk.context.ledger.write() as connection:
        connection.execute(delete(dispositions).where(dispositions.c.attempt_no == first))


def has_another_disposition(walk: ProviderWalk) -> None:
    with walk.context.ledger.write() as connection:
        connection.execute(update(dispositions).values(failure_class="refused"))


def publishes_another_shape(walk: ProviderWalk) -> None:
    with walk.context.ledger.write() as connection:
        shape = func.replace(archive_entries.c.content, '"status":"found"', '"status":"sure"')
        connection.execute(update(archive_entries).values(content=shape))


def publishes_another_title(walk: ProviderWalk) -> None:
    walk.titles |= {"shop/d0.txt": walk.titles["shop/d1.txt"]}


def is_published_again(walk: ProviderWalk) -> None:
    with walk.context.ledger.write() as connection:
        connection.execute(update(record_state).values(state="accepted"))
        connection.execute(delete(deliveries))


@pytest.mark.slow
@pytest.mark.parametrize(
    "damage",
    [
        loses_a_disposition,
        has_another_disposition,
        publishes_another_shape,
        publishes_another_title,
        is_published_again,
    ],
)
def test_the_three_facts_can_fail(start: Start, damage: Callable[[ProviderWalk], None]) -> None:
    """Whatever these checks let pass proves nothing, so they are checked themselves."""
    walk = start()
    walk.settle()
    check_three_facts(walk)
    damage(walk)
    with pytest.raises(AssertionError):
        check_three_facts(walk)
