"""What an operator does to a job: attach, discard, cancel, hold and release, and what follows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline_assets.provider_jobs.operate import (
    OPERATOR_CANCELLED,
    JobTaken,
    NotNow,
    UnknownJob,
    attach,
    cancel,
    discard,
    require_job,
)
from pipeline_assets.versions import open_version
from resources.ledger.alerts import open_alerts
from resources.ledger.intents import fingerprint, intents_of
from resources.ledger.jobs import JobRow
from resources.ledger.moves import move_version
from resources.ledger.reservations import pool_of, taken_of
from resources.providers.port import BatchClient, JobMissing
from resources.providers.registry import batch_client
from tests.provider_emulator.environment import OPENAI_KEY
from tests.support.emulator import RunningEmulator
from tests.support.provider_walk import ProviderWalk, provider_walk

DOCUMENTS = 3
KEY_VARIABLE = "OPENAI_API_KEY"
PAUSE_S = 700.0
"""Longer than any pause between two looks."""


@pytest.fixture
def walk(
    emulator: RunningEmulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ProviderWalk]:
    """Return three documents in a prepared batch, the canary passed."""
    with provider_walk(emulator, "openai", tmp_path, monkeypatch, DOCUMENTS) as opened:
        opened.pass_canary()
        yield opened


@pytest.fixture
def client(walk: ProviderWalk) -> Iterator[BatchClient]:
    """Return what an operator's command asks the provider with."""
    opened = batch_client(walk.context.settings, "openai", None)
    yield opened
    opened.close()


def the_batch(walk: ProviderWalk) -> JobRow:
    (job,) = walk.jobs()
    return job


def created(walk: ProviderWalk) -> list[str]:
    """Jobs that the provider ever had for the batch: those behind the canary's."""
    return walk.world.jobs_created["openai"][1:]


def states(walk: ProviderWalk) -> set[str]:
    return set(walk.states().values())


def reserved(walk: ProviderWalk, client: BatchClient) -> tuple[int, int]:
    """Tokens and jobs that count against the account's limits."""
    account = fingerprint(walk.context.ledger, client.account())
    taken = taken_of(walk.context.ledger, pool_of(the_batch(walk), account))
    return taken.tokens, taken.jobs


def put_in_doubt(
    walk: ProviderWalk, monkeypatch: pytest.MonkeyPatch, *, existing: bool = True
) -> None:
    """The answer to the submission is lost, and the key changed before anybody looked."""
    walk.plant("create", "drop_after" if existing else "drop_before")
    walk.step()
    assert the_batch(walk).state == "submitting"
    monkeypatch.setenv(KEY_VARIABLE, "another-account")
    walk.advance(PAUSE_S)
    walk.step()
    assert the_batch(walk).state == "quarantined"
    monkeypatch.setenv(KEY_VARIABLE, OPENAI_KEY)


def test_an_attached_job_is_the_batchs_and_is_collected(
    walk: ProviderWalk, client: BatchClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_in_doubt(walk, monkeypatch)
    assert walk.alerts() == {"quarantined"}
    (job_id,) = created(walk)
    attach(walk.context, the_batch(walk), job_id, client, "seen in the console", "kim")
    job = the_batch(walk)
    assert (job.state, job.provider_job_id) == ("submitted", job_id)
    assert walk.alerts() == set()
    (intent,) = intents_of(walk.context.ledger, job)
    assert (intent.outcome, intent.provider_job_id) == ("accepted", job_id)
    assert "kim" in intent.detail and "seen in the console" in intent.detail
    walk.settle()
    assert created(walk) == [job_id]
    assert states(walk) == {"published"}
    walk.check_sound()


def test_only_a_free_job_that_the_provider_knows_is_attached(
    walk: ProviderWalk, client: BatchClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_in_doubt(walk, monkeypatch)
    canarys = walk.world.jobs_created["openai"][0]
    with pytest.raises(JobTaken, match=canarys):
        attach(walk.context, the_batch(walk), canarys, client, "a guess", "kim")
    with pytest.raises(JobMissing, match="batch_unheard_of"):
        attach(walk.context, the_batch(walk), "batch_unheard_of", client, "a slip", "kim")
    assert the_batch(walk).state == "quarantined"


def test_a_batch_in_doubt_is_discarded_with_its_records(
    walk: ProviderWalk, client: BatchClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_in_doubt(walk, monkeypatch)
    assert reserved(walk, client)[1] == 1
    assert discard(walk.context, the_batch(walk), "not worth it", "kim") == "cancelled"
    assert states(walk) == {"cancelled"}
    assert walk.alerts() == set()
    assert reserved(walk, client) == (0, 0)
    assert [intent.outcome for intent in intents_of(walk.context.ledger, the_batch(walk))] == [
        "discarded"
    ]
    before = created(walk)
    walk.advance(PAUSE_S)
    walk.step()
    assert created(walk) == before, "nothing is sent for it again"
    assert the_batch(walk).state == "cancelled"
    assert walk.report().violations == ()


def test_a_prepared_batch_is_discarded_and_never_sent(walk: ProviderWalk) -> None:
    assert discard(walk.context, the_batch(walk), "the wrong folder", "kim") == "cancelled"
    walk.step()
    assert created(walk) == []
    assert states(walk) == {"cancelled"}
    assert walk.report().violations == ()


def test_a_lost_job_counts_as_collected_with_nothing(
    walk: ProviderWalk, client: BatchClient
) -> None:
    walk.step()
    assert the_batch(walk).state == "submitted"
    outcome = discard(walk.context, the_batch(walk), "the provider forgot it", "kim")
    assert outcome == "results_available"
    assert reserved(walk, client) == (0, 0)
    walk.step()
    assert the_batch(walk).state == "retry_required"
    assert states(walk) == {"retry_wait"}, "every record is missing, and none of them is buried"
    assert set(walk.classes().values()) == {"missing_result"}
    walk.check_sound()


def test_a_cancelled_job_keeps_what_was_finished(walk: ProviderWalk, client: BatchClient) -> None:
    walk.step()
    walk.advance(20 + 300)  # validated, and half of it is run
    walk.step()
    assert the_batch(walk).state == "running"
    cancel(walk.context, the_batch(walk), client, "too dear", "kim")
    job = the_batch(walk)
    assert (job.error_class, job.cancel_requested_at is not None) == (OPERATOR_CANCELLED, True)
    walk.settle()
    job = the_batch(walk)
    assert (job.state, job.provider_outcome) == ("completed_with_errors", "cancelled")
    run = len(walk.executed())
    assert 0 < run < DOCUMENTS, "it was ended in its middle"
    found = sorted(walk.states().values())
    assert found == ["cancelled"] * (DOCUMENTS - run) + ["published"] * run
    assert len(created(walk)) == 1, "what an operator ended is not sent again by itself"
    assert walk.report().violations == ()


def test_a_cancelled_job_that_was_done_already_is_simply_collected(
    walk: ProviderWalk, client: BatchClient
) -> None:
    walk.step()
    walk.advance(PAUSE_S)
    cancel(walk.context, the_batch(walk), client, "too late", "kim")
    walk.settle()
    assert states(walk) == {"published"}
    walk.check_sound()


def test_wishes_that_do_not_fit_are_refused(walk: ProviderWalk, client: BatchClient) -> None:
    prepared = the_batch(walk)
    with pytest.raises(NotNow, match=r"prepared and cannot be cancelled"):
        cancel(walk.context, prepared, client, "why not", "kim")
    with pytest.raises(NotNow, match=r"prepared and cannot be attached"):
        attach(walk.context, prepared, "batch_1", client, "why not", "kim")
    walk.settle()
    done = the_batch(walk)
    for wish in (
        lambda: cancel(walk.context, done, client, "why not", "kim"),
        lambda: discard(walk.context, done, "why not", "kim"),
    ):
        with pytest.raises(NotNow, match="is completed and cannot be"):
            wish()
    assert states(walk) == {"published"}


def test_a_job_is_found_by_each_of_its_names_and_by_no_other(walk: ProviderWalk) -> None:
    walk.step()
    job = the_batch(walk)
    (job_id,) = created(walk)
    assert require_job(walk.context, job.id) == require_job(walk.context, job_id) == job
    for name in ("nothing", "", f"{job_id}0"):
        with pytest.raises(UnknownJob, match="tallybook batch list"):
            require_job(walk.context, name)


def move(walk: ProviderWalk, from_state: str, to_state: str) -> None:
    version = open_version(walk.context, walk.key)
    with walk.context.ledger.write() as connection:
        cause = walk.context.cause("the budget is being talked about", "test")
        move_version(
            connection,
            walk.context.ledger.dialect,
            version.version_no,
            from_state,
            to_state,
            cause,
        )


def test_a_held_version_sends_nothing_until_it_is_released(walk: ProviderWalk) -> None:
    move(walk, "active", "held")
    report = walk.step().submit
    assert report.waiting == {
        "every batch": "the version is held: the budget is being talked about"
    }
    assert (created(walk), the_batch(walk).state) == ([], "prepared")
    move(walk, "held", "active")
    walk.settle()
    assert states(walk) == {"published"}
    assert len(created(walk)) == 1
    walk.check_sound()


def test_what_is_under_way_goes_on_while_the_version_is_held(walk: ProviderWalk) -> None:
    walk.step()
    move(walk, "active", "held")
    walk.settle()
    assert states(walk) == {"published"}
    assert open_alerts(walk.context.ledger) == []


def test_an_open_submission_is_settled_while_the_version_is_held(walk: ProviderWalk) -> None:
    walk.plant("create", "drop_after")
    walk.step()
    move(walk, "active", "held")
    walk.settle()
    assert states(walk) == {"published"}
    assert len(created(walk)) == 1


def test_an_input_of_an_earlier_account_is_uploaded_again(
    walk: ProviderWalk, monkeypatch: pytest.MonkeyPatch
) -> None:
    walk.plant("create", "status", status=400, code="invalid_value")
    walk.step()
    refused = the_batch(walk)
    assert (refused.state, refused.input_ref is not None) == ("prepared", True)
    monkeypatch.setenv(KEY_VARIABLE, "another-account")
    move(walk, "held", "active")
    walk.settle()
    assert states(walk) == {"published"}
    assert len(created(walk)) == 1


def test_an_input_that_is_gone_is_uploaded_again(walk: ProviderWalk, client: BatchClient) -> None:
    walk.plant("create", "status", status=429, code="rate_limit_exceeded")
    walk.step()
    ref = the_batch(walk).input_ref
    assert ref is not None
    client.delete("", (ref,))
    walk.settle()
    assert states(walk) == {"published"}
    outcomes = [intent.outcome for intent in intents_of(walk.context.ledger, the_batch(walk))]
    assert outcomes == ["refused", "refused", "accepted"]
