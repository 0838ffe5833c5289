"""Symptoms that people reported of batch jobs, planted one at a time after the canary has passed.

Each has the number that it has in the list of public symptoms; `docs/symptoms.md` says what is done
about it. Whatever the symptom: nothing wrong is published, nothing is run twice, the account adds
up, and a version with a rest is not done. Then what may be tried again is, and that has an end.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from pipeline_assets.canary.run import gate_of
from pipeline_assets.provider_jobs.adoption import GRACE
from pipeline_assets.provider_jobs.clients import LazyClient, job_client
from pipeline_assets.provider_jobs.operate import cancel
from pipeline_assets.recovery.holds import release
from pipeline_assets.versions import open_version
from resources.clock import from_text
from resources.ledger.schema import alerts
from resources.providers.admission import JobRefused
from tests.integration.stages.support import manual
from tests.support.emulator import RunningEmulator
from tests.support.provider_walk import ProviderWalk, another_worker, provider_walk
from tests.support.recovery_walk import (
    attempts_of,
    check_three_facts,
    freeze_due,
    paid,
    spec_like,
    try_again,
)

pytestmark = pytest.mark.slow

DOCUMENTS = 4
RECOVERING = "manuals-openai-batch-2"
"""A version that asks once more for what was cut or broken, each time by a changed request."""


@dataclass(frozen=True)
class Symptom:
    """A planted symptom and what must come of it.

    Attributes:
        plant: plants it.
        classes: failure class (`none` before any disposition) → documents not published.
        states: their states.
        executed: rows that the provider runs; None where the symptom is not about that.
        alerts: kinds that are open in the end.
        provider: whose job it is.
        steps: passes over the stages at most, for what never settles.
        settles: every planted fault strikes as often as it should.
        retried: records of each retry manifest that follows.
        left: states of documents that are still not published when nothing is tried again.
        again: rows that the provider runs for the retries.
        ends: it comes to an end by itself; else it waits for the provider, or for a person.
    """

    plant: Callable[[ProviderWalk], None]
    classes: dict[str, int] = field(default_factory=dict)
    states: dict[str, int] = field(default_factory=dict)
    executed: int | None = DOCUMENTS
    alerts: frozenset[str] = frozenset()
    provider: str = "openai"
    steps: int = 18
    settles: bool = True
    retried: tuple[int, ...] = ()
    left: dict[str, int] = field(default_factory=dict)
    again: int = 0
    ends: bool = True


def cut_at_the_deadline(walk: ProviderWalk) -> None:
    walk.set_operating("deadline_policy", "cancel_and_collect")
    walk.plant("job", "stuck")


SYMPTOMS: dict[str, Symptom] = {
    "1-cut-download": Symptom(lambda walk: walk.plant("download", "cut", times=2, bytes=700)),
    "2-cut-at-a-newline": Symptom(
        lambda walk: walk.plant("download", "truncate_at_newline", times=1)
    ),
    "3-token-limit": Symptom(
        lambda walk: walk.plant("job", "failed", code="token_limit_exceeded"),
        {"capacity": 4},
        {"retry_wait": 4},
        executed=0,
        retried=(4,),
        again=4,
    ),
    "4-status-zero": Symptom(
        lambda walk: walk.plant("row", "status_zero", match={"index": 1}),
        {"transport": 1},
        {"retry_wait": 1},
        executed=3,
        retried=(1,),
        again=1,
    ),
    "5-only-an-error-file": Symptom(
        lambda walk: walk.plant("job", "all_failed", status=400),
        {"invalid_request": 4},
        {"dead_letter": 4},
        executed=0,
        left={"dead_letter": 4},
    ),
    "6-expired-half-way": Symptom(
        lambda walk: walk.plant("job", "expired", done=0.5),
        {"expired": 2},
        {"retry_wait": 2},
        executed=2,
        retried=(2,),
        again=2,
    ),
    "6-cancelled-half-way": Symptom(
        lambda walk: walk.plant("job", "cancelled", done=0.5),
        {"cancelled": 2},
        {"retry_wait": 2},
        executed=2,
        retried=(2,),
        again=2,
    ),
    "7-pending-for-ever": Symptom(
        lambda walk: walk.plant("job", "stuck"),
        {"none": 4},
        {"submitted": 4},
        executed=0,
        alerts=frozenset({"deadline"}),
        provider="gemini",
        ends=False,
    ),
    "7-cancelled-at-the-deadline": Symptom(
        cut_at_the_deadline,
        {"cancelled": 4},
        {"retry_wait": 4},
        executed=0,
        retried=(4,),
        again=4,
    ),
    "9-swapped-bodies": Symptom(
        lambda walk: walk.plant("lines", "swap", a=0, b=1),
        {"misrouted": 2},
        {"retry_wait": 2},
        alerts=frozenset({"misrouted"}),
        provider="gemini",
        retried=(2,),
        again=2,
    ),
    "9-swapped-bodies-again": Symptom(
        lambda walk: walk.plant("lines", "swap", times=2, a=0, b=1),
        {"misrouted": 2},
        {"retry_wait": 2},
        alerts=frozenset({"misrouted"}),
        settles=False,
        retried=(2,),
        left={"dead_letter": 2},
        again=2,
    ),
    "10-shifted-answers": Symptom(
        lambda walk: walk.plant("lines", "shift"),
        {"misrouted": 4},
        {"retry_wait": 4},
        alerts=frozenset({"misrouted"}),
        retried=(4,),
        again=4,
    ),
    "11-not-collectable": Symptom(
        lambda walk: walk.plant("download", "status", times=None, status=400),
        {"none": 4},
        {"submitted": 4},
        alerts=frozenset({"not_collectable"}),
        steps=4,
        settles=False,
        ends=False,
    ),
    "14-repetition": Symptom(
        lambda walk: walk.plant("row", "repetition", times=4),
        {"truncated": 4},
        {"dead_letter": 4},
        provider="gemini",
        left={"dead_letter": 4},
    ),
    "15-no-finish-reason": Symptom(
        lambda walk: walk.plant("row", "no_finish", match={"index": 0}),
        {"truncated": 1},
        {"dead_letter": 1},
        provider="anthropic",
        left={"dead_letter": 1},
    ),
    "16-prose-among-json": Symptom(
        lambda walk: walk.plant("row", "prose", match={"index": 0}),
        {"malformed_json": 1},
        {"dead_letter": 1},
        left={"dead_letter": 1},
    ),
    "18-crlf": Symptom(lambda walk: walk.plant("lines", "crlf"), provider="anthropic"),
    "19-line-separator": Symptom(
        lambda walk: walk.plant("row", "raw_u2028", times=4), provider="anthropic"
    ),
    "20-same-row-twice": Symptom(lambda walk: walk.plant("lines", "duplicate", index=1)),
    "20-two-rows-that-differ": Symptom(
        lambda walk: walk.plant("lines", "duplicate_differs", index=1),
        {"duplicate_conflict": 1},
        {"dead_letter": 1},
        left={"dead_letter": 1},
    ),
    "21-502-on-polls": Symptom(
        lambda walk: walk.plant("retrieve", "status", times=3, status=502), provider="anthropic"
    ),
    "22-row-missing": Symptom(
        lambda walk: walk.plant("lines", "missing", index=2),
        {"missing_result": 1},
        {"retry_wait": 1},
        retried=(1,),
        again=1,
    ),
    "25-job-failed": Symptom(
        lambda walk: walk.plant("job", "failed", code="internal_error"),
        {"server_error": 4},
        {"retry_wait": 4},
        executed=0,
        provider="gemini",
        retried=(4,),
        again=4,
    ),
    "26-one-broken-line": Symptom(
        lambda walk: walk.plant("lines", "malformed", index=3),
        {"missing_result": 1},
        {"retry_wait": 1},
        retried=(1,),
        again=1,
    ),
    "27-404-for-a-while": Symptom(
        lambda walk: walk.plant("retrieve", "status", times=2, status=404), provider="anthropic"
    ),
    "28-inline-results": Symptom(lambda walk: walk.plant("job", "inline"), provider="gemini"),
    "unknown-status": Symptom(
        lambda walk: walk.plant("job", "unknown_status", status="hibernating"),
        {"none": 4},
        {"submitted": 4},
        executed=0,
        alerts=frozenset({"unknown_status"}),
        steps=4,
        ends=False,
    ),
}


SLOW = {
    *("1-cut-download", "7-pending-for-ever", "7-cancelled-at-the-deadline", "11-not-collectable"),
    *("10-shifted-answers", "14-repetition", "15-no-finish-reason", "18-crlf", "25-job-failed"),
    *("27-404-for-a-while", "6-cancelled-half-way", "26-one-broken-line"),
    *("9-swapped-bodies-again", "20-two-rows-that-differ"),
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in SYMPTOMS],
)
def test_symptom(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, emulator: RunningEmulator
) -> None:
    symptom = SYMPTOMS[name]
    with provider_walk(emulator, symptom.provider, tmp_path, monkeypatch, DOCUMENTS) as walk:
        walk.pass_canary()
        symptom.plant(walk)
        walk.settle(symptom.steps)
        assert (walk.world.faults.pending() == []) == symptom.settles
        walk.check_sound()
        assert Counter(walk.classes().values()) == symptom.classes
        assert not symptom.states or not_published(walk) == symptom.states
        assert symptom.executed is None or len(walk.executed()) == symptom.executed
        assert symptom.alerts <= walk.alerts()
        # Whatever comes later changes nothing of what was settled.
        digest = walk.report().content_digest
        if symptom.settles and symptom.ends:
            walk.step()
            assert walk.report().content_digest == digest
        made = try_again(walk) if symptom.ends else []
        assert tuple(report.records for report in made) == symptom.retried
        if not symptom.ends:
            return
        assert walk.world.faults.pending() == []
        assert not_published(walk) == symptom.left
        assert symptom.executed is None or len(paid(walk)) == symptom.executed + symptom.again
        check_three_facts(walk)


def not_published(walk: ProviderWalk) -> Counter[str]:
    return Counter(state for state in walk.states().values() if state != "published")


UNTRUSTED = {
    "8-every-job-expires": ("gemini", "job", "expired", 1),
    "12-refused-in-batch-only": ("openai", "row", "error", None),
    "13-shifted": ("gemini", "lines", "shift", 1),
    "13-all-null": ("openai", "row", "null_values", None),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", UNTRUSTED)
def test_canary_keeps_records_back(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, emulator: RunningEmulator
) -> None:
    provider, op, kind, times = UNTRUSTED[name]
    with provider_walk(emulator, provider, tmp_path, monkeypatch, DOCUMENTS) as walk:
        walk.plant(op, kind, times=times)
        with pytest.raises(AssertionError, match="the canary never passed"):
            walk.pass_canary()
        walk.step()
        version = open_version(walk.context, walk.key)
        assert gate_of(walk.context, version).gate == "closed"
        assert set(walk.states().values()) == {"prepared"}
        assert len(walk.world.jobs_created[provider]) == 1
        assert "canary_failed" in walk.alerts()
        assert not walk.status().done


@pytest.mark.parametrize("name", ["23-file-not-found-yet", "32-too-large"])
def test_refused_create(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, emulator: RunningEmulator
) -> None:
    with provider_walk(emulator, "openai", tmp_path, monkeypatch, DOCUMENTS) as walk:
        walk.pass_canary()
        if name == "32-too-large":
            walk.plant("upload", "status", status=413, code="file_too_large")
            walk.settle(3)
            # Sending the same bytes again would meet the same refusal: a person decides.
            assert walk.status().state == "held"
            assert set(walk.states().values()) == {"prepared"}
            assert walk.executed() == {}
        else:
            walk.plant("create", "status", times=2, status=404, message="Input file not found")
            walk.settle()
            assert walk.states() == dict.fromkeys(walk.titles, "published")
        walk.check_sound()


TAIL = "manuals-bedrock-tail-1"


def specs_with_tail(folder: Path, tail: str) -> Path:
    return spec_like("manuals-bedrock-batch-1", folder, TAIL, request={"tail": tail})


@pytest.mark.parametrize("tail", ["refuse", "merge"])
def test_29_fewer_records_than_the_smallest_batch(
    tail: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, emulator: RunningEmulator
) -> None:
    specs = specs_with_tail(tmp_path / "specs", tail)
    with (
        pytest.raises(JobRefused, match="min_records: found 4"),
        provider_walk(
            *(emulator, "bedrock", tmp_path, monkeypatch, DOCUMENTS),
            specs=specs,
            key=TAIL,
        ),
    ):
        raise AssertionError("a batch that the provider refuses was frozen")
    assert emulator.world.jobs_created["bedrock"] == []


def test_29_tail_goes_online(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, emulator: RunningEmulator
) -> None:
    specs = specs_with_tail(tmp_path / "specs", "online")
    with provider_walk(
        *(emulator, "bedrock", tmp_path, monkeypatch, DOCUMENTS),
        specs=specs,
        key=TAIL,
    ) as walk:
        walk.pass_canary()
        walk.settle()
        assert [job.mode for job in walk.jobs()] == ["online"]
        assert walk.states() == dict.fromkeys(walk.titles, "published")
        assert walk.status().done
        walk.check_sound()


@contextmanager
def ready(
    emulator: RunningEmulator,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    provider: str = "openai",
    **more: Any,
) -> Iterator[ProviderWalk]:
    with provider_walk(emulator, provider, folder, monkeypatch, DOCUMENTS, **more) as walk:
        walk.pass_canary()
        yield walk


@pytest.mark.slow
@pytest.mark.parametrize("provider", ["openai", "gemini"])
def test_8_every_job_expires_after_the_canary(
    provider: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, emulator: RunningEmulator
) -> None:
    """Free retries are counted: then the version is held, and not one record is given up.

    However long a window is: four of Gemini's are longer than a record is tried again.
    """
    with ready(emulator, tmp_path, monkeypatch, provider) as walk:
        before = len(walk.world.jobs_created[provider])
        walk.plant("job", "expired", times=None, done=0.0)
        assert [report.records for report in try_again(walk)] == [DOCUMENTS] * 3
        held = walk.status().held
        assert held is not None
        assert (walk.status().state, held.kind) == ("held", "free_retries")
        assert not_published(walk) == {"retry_wait": DOCUMENTS}
        assert len(walk.world.jobs_created[provider]) == before + 4
        assert attempts_of(walk)["counted"].to_list() == [0] * 4 * DOCUMENTS
        assert "held" in str(freeze_due(walk).waiting)
        walk.step()
        assert len(walk.world.jobs_created[provider]) == before + 4, "held is held"
        check_three_facts(walk)
        # The model is back, and an operator says so.
        walk.world.faults.clear()
        version = open_version(walk.context, walk.key)
        assert release(walk.context, version.version_no, None, "it is back", "a tester")
        assert [report.records for report in try_again(walk)] == [DOCUMENTS]
        assert not_published(walk) == {}
        check_three_facts(walk)


@pytest.mark.slow
def test_8_the_breaker_holds_a_model_whose_jobs_expire(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, emulator: RunningEmulator
) -> None:
    with ready(emulator, tmp_path, monkeypatch, "gemini") as walk:
        walk.set_operating("breaker_least", str(DOCUMENTS))
        walk.set_operating("breaker_minutes", "0")
        before = len(walk.world.jobs_created["gemini"])
        walk.plant("job", "expired", times=None)
        assert [report.records for report in try_again(walk)] == [DOCUMENTS]
        held = walk.status().held
        assert held is not None
        assert held.kind == "breaker"
        assert "breaker" in walk.alerts()
        assert len(walk.world.jobs_created["gemini"]) == before + 1, "the retry was not sent"
        assert not_published(walk) == {"prepared": DOCUMENTS}
        check_three_facts(walk)


@pytest.mark.slow
@pytest.mark.parametrize("breaker", ["trips", "is-off"])
def test_14_repetition_is_not_asked_for_without_end(
    breaker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, emulator: RunningEmulator
) -> None:
    """A longer answer is asked for once; where all answers repeat, the breaker comes first."""
    with ready(emulator, tmp_path, monkeypatch, key=RECOVERING) as walk:
        least = {"trips": "breaker_least", "is-off": "breaker_window"}[breaker]
        walk.set_operating(least, {"trips": str(DOCUMENTS), "is-off": "0"}[breaker])
        walk.set_operating("breaker_minutes", "0")
        walk.plant("row", "repetition", times=None)
        (again,) = try_again(walk)
        assert (again.records, again.paths) == (DOCUMENTS, {"larger_output": DOCUMENTS})
        held = walk.status().held
        if breaker == "trips":
            assert held is not None
            assert held.kind == "breaker"
            assert len(paid(walk)) == DOCUMENTS, "the longer answers were not asked for"
            assert not_published(walk) == {"prepared": DOCUMENTS}
        else:
            assert held is None
            assert len(paid(walk)) == 2 * DOCUMENTS
            assert not_published(walk) == {"dead_letter": DOCUMENTS}
        check_three_facts(walk)


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        pytest.param("repetition", "larger_output", id="14-cut-at-the-limit"),
        pytest.param("prose", "repair_prompt", id="16-prose", marks=pytest.mark.slow),
    ],
)
def test_recovery_path_asks_once_more(
    kind: str,
    path: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    emulator: RunningEmulator,
) -> None:
    with ready(emulator, tmp_path, monkeypatch, key=RECOVERING) as walk:
        walk.plant("row", kind, match={"index": 1})
        (again,) = try_again(walk)
        assert again.paths == {path: 1}
        assert not_published(walk) == {}
        assert len(paid(walk)) == DOCUMENTS + 1
        check_three_facts(walk)


@pytest.mark.parametrize("provider", [pytest.param("openai", marks=pytest.mark.slow), "anthropic"])
def test_17_custom_ids_have_the_form_that_every_provider_takes(
    provider: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, emulator: RunningEmulator
) -> None:
    """However long and strange a document's name is; the emulator refuses others as they do."""
    with provider_walk(emulator, provider, tmp_path, monkeypatch, DOCUMENTS) as walk:
        path = walk.context.settings.source_folder / f"a folder/{'long ' * 30}(v2) \u00fc@%:.txt"
        path.parent.mkdir()
        path.write_text(manual("Circulation Pump", "WP-200"), encoding="utf-8")
        walk.prepare()
        walk.pass_canary()
        assert try_again(walk) == []
        assert "Circulation Pump WP-200 User Manual" in walk.published().values()
        assert max(map(len, walk.published())) > 64
        ids = list(paid(walk))
        assert len(ids) == DOCUMENTS + 1
        assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", one) for one in ids)
        assert len(set(attempts_of(walk)["custom_id"])) == attempts_of(walk).height


class Died(BaseException):
    """The process is gone: nothing in the code under test may catch this."""


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(Died, id="24-worker-dies-after-the-call"),
        pytest.param(KeyboardInterrupt, id="33-interrupted-after-the-call", marks=pytest.mark.slow),
    ],
)
def test_ended_between_the_call_and_the_write(
    end: type[BaseException],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    emulator: RunningEmulator,
) -> None:
    """The job is found again and its results are used; it is not paid for a second time."""
    real_get = LazyClient.get

    def get(lazy: LazyClient) -> Any:
        client = real_get(lazy)
        real_create: Callable[[Any], Any] = client.create

        def create(new: Any) -> None:
            real_create(new)
            raise end

        monkeypatch.setattr(client, "create", create)
        return client

    with ready(emulator, tmp_path, monkeypatch) as walk:
        before = len(walk.world.jobs_created["openai"])
        with monkeypatch.context() as patch, pytest.raises(end):
            patch.setattr(LazyClient, "get", get)
            walk.step()
        assert [job.state for job in walk.jobs()] == ["submitting"]
        walk.advance(GRACE.total_seconds() + 60)
        with another_worker(walk) as later:
            assert try_again(later) == []
            assert not_published(later) == {}
            assert len(later.world.jobs_created["openai"]) == before + 1
            assert sum(paid(later).values()) == DOCUMENTS
            check_three_facts(later)


def test_33_what_is_under_way_ends_by_an_explicit_wish(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, emulator: RunningEmulator
) -> None:
    """A run that is over leaves its batch in the ledger; ending it is a command with a reason."""
    with ready(emulator, tmp_path, monkeypatch) as walk:
        walk.step()
        assert walk.status().batches == {"submitted": 1}
        assert not walk.status().done, "a billable batch is never forgotten"
        (job,) = walk.jobs("submitted")
        with job_client(walk.context, open_version(walk.context, walk.key)) as client:
            cancel(walk.context, job, client.get(), "not wanted any more", "a tester")
        assert walk.world.count_calls("openai", "cancel") == 1
        assert try_again(walk) == []
        assert (not_published(walk), paid(walk)) == ({"cancelled": DOCUMENTS}, {})
        check_three_facts(walk)


REFUSED_COMBINATIONS = {
    "30-tools-in-a-batch": (
        "manuals-bedrock-batch-1",
        {"toolConfig": {"tools": []}},
        r"tools: found the parameter 'toolConfig'.*bedrock .* converse batch.*2026-11",
    ),
    "33-grounding-beside-a-schema": (
        "manuals-gemini-batch-1",
        {"tools": [{"googleSearch": {}}]},
        r"found the parameter 'tools'.*gemini .* batch.*2026-11",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", REFUSED_COMBINATIONS)
def test_refused_combination(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, emulator: RunningEmulator
) -> None:
    """Refused before it is sent, by a row of the table that has a source and a date."""
    packaged, parameters, says = REFUSED_COMBINATIONS[name]
    key = packaged.replace("-batch-", "-tools-")
    specs = spec_like(packaged, tmp_path / "specs", key, parameters=parameters)
    provider = packaged.split("-")[1]
    count = 100 if provider == "bedrock" else DOCUMENTS
    with (
        pytest.raises(JobRefused, match=re.compile(says, re.DOTALL)),
        provider_walk(*(emulator, provider, tmp_path, monkeypatch, count), specs=specs, key=key),
    ):
        raise AssertionError("a batch that the provider refuses was frozen")
    assert emulator.world.jobs_created[provider] == []


@pytest.mark.slow
def test_30_what_the_documents_disagree_on_is_tried_by_the_canary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, emulator: RunningEmulator
) -> None:
    emulator.world.settings["bedrock.batch_structured_output"] = False
    with provider_walk(emulator, "bedrock", tmp_path, monkeypatch, 100) as walk:
        with pytest.raises(AssertionError, match="the canary never passed"):
            walk.pass_canary()
        assert set(walk.states().values()) == {"prepared"}
        assert len(walk.world.jobs_created["bedrock"]) == 1
        assert "canary_failed" in walk.alerts()


def request_lines(walk: ProviderWalk) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for job in walk.jobs()
        for line in walk.context.artifacts.path("request", job.request_artifact)
        .read_bytes()
        .splitlines()
    ]


def test_31_one_document_a_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, emulator: RunningEmulator
) -> None:
    """Nothing is packed together, so no part of an answer can be missing unseen."""
    with ready(emulator, tmp_path, monkeypatch) as walk:
        walk.settle()
        named = [
            set(re.findall(r"=== (doc-[0-9a-f]{16}) document begins ===", json.dumps(line)))
            for line in request_lines(walk)
        ]
        assert [len(names) for names in named] == [1] * DOCUMENTS
        assert len(set.union(*named)) == DOCUMENTS
        assert len(paid(walk)) == DOCUMENTS
        assert not_published(walk) == {}


@pytest.mark.slow
def test_34_the_age_is_told_long_before_the_window_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, emulator: RunningEmulator
) -> None:
    """Twenty-three hours of nothing, then an expired job: told in time, and tried again free."""
    with ready(emulator, tmp_path, monkeypatch) as walk:
        walk.plant("job", "expired", done=0.0)
        for hours in (0.0, 3.0, 3.0, 17.2):
            walk.advance(timedelta(hours=hours).total_seconds())
            walk.step()
        (job,) = walk.jobs("running")
        assert walk.alerts() >= {"deadline"}
        age = walk.status().oldest_open_seconds
        assert age is not None
        assert age > timedelta(hours=23).total_seconds()
        with walk.context.ledger.read() as connection:
            told = connection.execute(select(alerts.c.kind, alerts.c.first_at)).all()
        assert job.provider_deadline_at is not None
        end = from_text(job.provider_deadline_at)
        first = {kind: from_text(at) for kind, at in told}
        assert end - first["deadline"] >= timedelta(minutes=30)
        assert walk.world.clock.now() < end
        (again,) = try_again(walk)
        assert again.records == DOCUMENTS
        assert set(attempts_of(walk)["failure_class"]) == {"expired", None}
        assert not_published(walk) == {}
        check_three_facts(walk)


@pytest.mark.slow
@pytest.mark.parametrize("mixed", [False, True], ids=["as-it-is", "another-url-in-a-row"])
def test_35_the_url_of_a_row_is_that_of_its_job(
    mixed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, emulator: RunningEmulator
) -> None:
    """The adapter alone knows it. Were they to differ, the job would fail as a whole."""
    with ready(emulator, tmp_path, monkeypatch) as walk:
        urls = {line["url"] for line in request_lines(walk)}
        assert urls == {"/v1/responses"}
        if mixed:
            walk.plant("job", "failed", code="invalid_url", message="not that of the batch")
        walk.settle()
        assert {job.endpoint for job in walk.jobs()} == {"/v1/responses"}
        if mixed:
            assert try_again(walk) == [], "the same bytes would be refused again"
            assert not_published(walk) == {"dead_letter": DOCUMENTS}
            assert "job_failed" in walk.alerts()
            assert paid(walk) == {}
        else:
            assert not_published(walk) == {}
        check_three_facts(walk)
