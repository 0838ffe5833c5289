"""Gemini's clients, the real SDK among them, against the emulator."""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, cast

import httpx2
import msgspec
import pytest

from resources.providers.gemini.account import account_of
from resources.providers.gemini.batch import GeminiBatch, connect_batch
from resources.providers.gemini.online import GeminiOnline, connect_online
from resources.providers.gemini.wire import GeminiWire
from resources.providers.port import (
    Ambiguous,
    Ask,
    Counts,
    CredentialsMissing,
    FileMissing,
    Intent,
    Job,
    JobMissing,
    ModelUnavailable,
    NewJob,
    ProviderOptions,
    Refused,
    RemoteFile,
    Reply,
    ResultLine,
    SdkMissing,
    Unavailable,
    Unreachable,
    split_lines,
)
from tests.provider_emulator.environment import GEMINI_KEY
from tests.provider_emulator.faults import Fault
from tests.support.asks import SCHEMA, make_ask, page_prompt, reference
from tests.support.emulator import RunningEmulator

MODEL = "gemini-2.5-flash"
BATCH = "0123456789ab"
WIRE = GeminiWire()
OPTIONS = ProviderOptions(timeout_seconds=20.0)
ROWS = 6
PENDING, RUNNING, CANCELLING = 20, 600, 30
DAY = 86_400


def ask(number: int, padding: str = "", **changes: Any) -> Ask:
    return make_ask(MODEL, page_prompt(number, padding), **changes)


def body(number: int, **changes: Any) -> bytes:
    return msgspec.json.encode(WIRE.body(ask(number, **changes)))


def keys(rows: int = ROWS) -> list[str]:
    return [f"{BATCH}-{number:05d}-1" for number in range(rows)]


@pytest.fixture
def emulated(emulator: RunningEmulator, monkeypatch: pytest.MonkeyPatch) -> RunningEmulator:
    emulator.use(monkeypatch)
    return emulator


@pytest.fixture
def client(emulated: RunningEmulator) -> Iterator[GeminiBatch]:
    made = connect_batch(OPTIONS)
    yield made
    made.close()


class Bench:
    """What a test of jobs works with."""

    def __init__(self, emulated: RunningEmulator, client: GeminiBatch, folder: Path) -> None:
        self.world = emulated.world
        self.client = client
        self.folder = folder
        self.uploaded: list[str] = []

    def plant(self, op: str, kind: str, times: int | None = 1, after: int = 0, **args: Any) -> None:
        self.world.faults.add(Fault("gemini", op, kind, times, after, args))

    def intent(self, number: int = 1, **changes: Any) -> Intent:
        intent = Intent(f"{BATCH}-{number}", BATCH, MODEL, ROWS, self.world.clock.now())
        return replace(intent, **changes)

    def job(
        self,
        bodies: list[bytes] | None = None,
        intent: Intent | None = None,
        on_uploaded: Callable[[str], None] | None = None,
    ) -> NewJob:
        bodies = [body(number) for number in range(ROWS)] if bodies is None else bodies
        names = keys(len(bodies))
        lines = [WIRE.encode_request(*pair) for pair in zip(names, bodies, strict=True)]
        path = self.folder / "requests.jsonl"
        path.write_bytes(b"".join(line + b"\n" for line in lines))
        noted = on_uploaded or self.uploaded.append
        return NewJob(intent or self.intent(), path, path.stat().st_size, 24, noted)

    def create(self, bodies: list[bytes] | None = None, **changes: Any) -> Job:
        return self.client.create(self.job(bodies, self.intent(**changes)))

    def later(self, job: Job, seconds: float = PENDING + RUNNING) -> Job:
        self.world.clock.advance(seconds)
        return self.client.retrieve(job.job_id)

    def data(self, job: Job, offset: int = 0) -> bytes:
        [file] = job.files
        with self.client.open_file(job.job_id, file, offset) as download:
            return b"".join(download.blocks)

    def lines(self, job: Job) -> list[ResultLine]:
        path = self.folder / "results.jsonl"
        path.write_bytes(self.data(job))
        with path.open("rb") as stream:
            return [WIRE.read_line(line.data) for line in split_lines(stream)]

    def result(self, bodies: list[bytes] | None = None) -> list[ResultLine]:
        return self.lines(self.later(self.create(bodies)))

    def calls(self, op: str) -> int:
        return self.world.count_calls("gemini", op)


@pytest.fixture
def bench(emulated: RunningEmulator, client: GeminiBatch, tmp_path: Path) -> Bench:
    return Bench(emulated, client, tmp_path)


# --- a whole job --------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["v1", "v1beta"])
def test_a_job_from_upload_to_deletion(
    emulated: RunningEmulator, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str
) -> None:
    monkeypatch.setenv("GOOGLE_GENAI_API_VERSION", version)
    client = connect_batch(OPTIONS)
    bench = Bench(emulated, client, tmp_path)
    client.check_model(MODEL)
    job = bench.create()
    assert (job.raw_status, job.phase) == ("BATCH_STATE_PENDING", "queued")
    assert job.counts == Counts(ROWS, 0, 0, ROWS)
    assert job.created_at is not None
    assert abs(job.created_at - bench.world.clock.now()) < timedelta(seconds=30)
    assert job.remote == (*bench.uploaded, job.job_id)

    job = bench.later(job, PENDING + RUNNING / 2)
    assert (job.phase, job.files, job.counts) == ("running", (), Counts(ROWS, 3, 0, 3))
    job = bench.later(job, RUNNING / 2)
    assert (job.phase, job.outcome) == ("ended", "completed")
    assert job.counts == Counts(ROWS, ROWS, 0, 0)

    lines = bench.lines(job)
    assert [line.custom_id for line in lines] == keys()
    for number, line in enumerate(lines):
        assert (line.status_code, line.finish_reason, line.error_code) == (200, "stop", None)
        assert json.loads(line.text or "")["document"] == reference(number)
        assert line.model_revision == MODEL
        assert (line.input_tokens or 0) > 100 and (line.output_tokens or 0) > 50
    assert bench.world.executed["gemini"] == Counter(keys())

    client.delete(job.job_id, job.remote)
    with pytest.raises(JobMissing):
        client.retrieve(job.job_id)
    with pytest.raises(FileMissing), client.open_file(job.job_id, job.files[0], 0):
        pass
    client.delete(job.job_id, job.remote)  # gone already is no error
    client.close()


def test_the_uploaded_bytes_are_the_request_file(bench: Bench) -> None:
    asked = [body(number) for number in range(3)]
    job = bench.job(asked)
    bench.client.create(job)
    [stored] = [path for path in bench.world.folder.iterdir() if path.name.startswith("upload-")]
    assert stored.read_bytes() == job.request_file.read_bytes()


def test_an_upload_of_several_blocks_arrives_whole(bench: Bench) -> None:
    bench.world.settings["gemini.enqueued_tokens"] = 10**8
    job = bench.job([body(0, padding="ä" * 4_500_000), body(1, padding="x" * 9_000_000)])
    bench.client.create(job)
    [stored] = [path for path in bench.world.folder.iterdir() if path.name.startswith("upload-")]
    assert job.size > 2 * 8 * 2**20
    assert stored.read_bytes() == job.request_file.read_bytes()
    assert bench.calls("upload") == 1 + 3


def test_both_spellings_of_states_are_read(bench: Bench) -> None:
    bench.world.settings["gemini.state_prefix"] = "JOB_STATE_"
    job = bench.later(bench.create())
    assert (job.raw_status, job.outcome) == ("JOB_STATE_SUCCEEDED", "completed")


def test_results_in_another_order_keep_their_keys(bench: Bench) -> None:
    bench.world.settings["gemini.swapped_order"] = True
    bench.plant("lines", "shuffle")
    lines = bench.result()
    assert [line.custom_id for line in lines] != keys()
    assert sorted(str(line.custom_id) for line in lines) == keys()
    for line in lines:
        number = keys().index(str(line.custom_id))
        assert json.loads(line.text or "")["document"] == reference(number)


def test_every_row_may_have_failed_in_a_job_that_succeeded(bench: Bench) -> None:
    bench.plant("job", "all_failed")
    job = bench.later(bench.create())
    assert (job.outcome, job.counts) == ("completed", Counts(ROWS, 0, ROWS, 0))
    assert [(one.status_code, one.error_code) for one in bench.lines(job)] == [
        (400, "INVALID_ARGUMENT")
    ] * ROWS
    assert not bench.world.executed["gemini"]


def test_inline_results_are_read_like_a_file(bench: Bench) -> None:
    bench.plant("job", "inline")
    bench.plant("row", "raw_u2028", match={"index": 1})
    bench.plant("row", "error", match={"index": 2}, status=503, code="UNAVAILABLE")
    job = bench.later(bench.create())
    [file] = job.files
    assert file == RemoteFile("output", f"inline:{job.job_id}")
    assert not any(ref.startswith("inline:") for ref in job.remote)
    lines = bench.lines(job)
    assert [line.custom_id for line in lines] == keys()
    assert [line.status_code for line in lines] == [200, 200, 503, 200, 200, 200]
    assert "\u2028" in (lines[1].text or "")
    whole = bench.data(job)
    assert bench.data(job, 100) == whole[100:]
    assert bench.data(job, len(whole)) == b""


def test_inline_results_that_are_gone_are_missing(bench: Bench) -> None:
    job = bench.later(bench.create())
    with (
        pytest.raises(FileMissing, match="no inline results"),
        bench.client.open_file(job.job_id, RemoteFile("output", f"inline:{job.job_id}"), 0),
    ):
        pass


def test_a_job_is_running_until_its_results_are_named(bench: Bench) -> None:
    bench.world.settings["gemini.results_delay_seconds"] = 100
    job = bench.later(bench.create())
    assert (job.raw_status, job.phase, job.outcome) == ("BATCH_STATE_SUCCEEDED", "running", None)
    job = bench.later(job, 100)
    assert (job.phase, len(bench.lines(job))) == ("ended", ROWS)


def test_a_job_without_counts(bench: Bench) -> None:
    bench.plant("job", "no_counts")
    assert bench.later(bench.create()).counts is None


@pytest.mark.parametrize(
    ("kind", "args", "expected"),
    [
        pytest.param("truncated", {}, (200, "truncated", None), id="truncated"),
        pytest.param("repetition", {}, (200, "truncated", None), id="repetition"),
        pytest.param("filtered", {}, (200, "filtered", None), id="filtered"),
        pytest.param("filtered", {"prompt": True}, (200, "filtered", None), id="blocked-prompt"),
        pytest.param("refused", {}, (200, "stop", None), id="refused-in-words"),
        pytest.param("prose", {}, (200, "stop", None), id="prose"),
        pytest.param("no_finish", {}, (200, "unknown", None), id="no-finish"),
        pytest.param("status_zero", {}, (0, None, None), id="no-outcome"),
        pytest.param("error", {"status": 400}, (400, None, "INVALID_ARGUMENT"), id="400"),
        pytest.param("error", {"status": 429}, (429, None, "RESOURCE_EXHAUSTED"), id="429"),
        pytest.param("error", {"status": 500}, (500, None, "INTERNAL"), id="500"),
        pytest.param("error", {"code": "CANCELLED"}, (0, None, "cancelled"), id="cancelled"),
    ],
)
def test_rows_that_went_wrong(
    bench: Bench, kind: str, args: dict[str, Any], expected: tuple[Any, ...]
) -> None:
    bench.plant("row", kind, match={"custom_id": keys()[2]}, **args)
    lines = bench.result()
    found = lines[2]
    assert (found.status_code, found.finish_reason, found.error_code) == expected
    assert all(line.finish_reason == "stop" for line in lines[:2] + lines[3:])


def test_a_row_may_be_missing(bench: Bench) -> None:
    bench.plant("row", "not_executed", match={"index": 3})
    assert [line.custom_id for line in bench.result()] == keys()[:3] + keys()[4:]
    assert keys()[3] not in bench.world.executed["gemini"]


def test_an_answer_longer_than_the_limit_is_cut(bench: Bench) -> None:
    line = bench.result([body(0, output_tokens=5)])[0]
    assert (line.finish_reason, len(line.text or "")) == ("truncated", 20)


@pytest.mark.parametrize("dialect", ["responseSchema", "responseJsonSchema"])
def test_both_dialects_are_taken(bench: Bench, dialect: str) -> None:
    lines = bench.result([body(0, parameters={"schema_dialect": dialect, "temperature": 0})])
    assert lines[0].finish_reason == "stop"


def broken_schema(number: int) -> bytes:
    made = WIRE.body(ask(number))
    made["generationConfig"]["responseSchema"] = SCHEMA
    return msgspec.json.encode(made)


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(msgspec.json.encode(WIRE.broken_body(ask(1))), id="the-broken-body"),
        pytest.param(broken_schema(1), id="schema-outside-the-subset"),
        pytest.param(b'{"config":{"temperature":0},"contents":"x"}', id="the-sdks-flat-form"),
        pytest.param(body(1, parameters={"temperature": 7}), id="temperature"),
    ],
)
def test_bodies_are_checked_row_by_row_and_online_at_once(bench: Bench, bad: bytes) -> None:
    lines = bench.result([body(0), bad])
    assert [line.status_code for line in lines] == [200, 400]
    assert lines[1].error_code == "INVALID_ARGUMENT"
    reply = answer(bad)
    assert (reply.status, reply.failure) == (400, "invalid_request")
    assert not bench.world.executed["gemini"][keys()[1]]


# --- creating -----------------------------------------------------------------------------------


def test_what_the_callback_raises_ends_the_call(bench: Bench) -> None:
    def stop(ref: str) -> None:
        raise KeyboardInterrupt(ref)

    with pytest.raises(KeyboardInterrupt):
        bench.client.create(bench.job(on_uploaded=stop))
    assert bench.calls("create") == 0


def test_an_input_that_was_uploaded_is_used_again(bench: Bench) -> None:
    bench.plant("create", "status", status=429)
    with pytest.raises(Refused):
        bench.create()
    [ref] = bench.uploaded
    job = bench.create(input_ref=ref)
    assert (bench.uploaded, job.remote[0]) == ([ref], ref)
    assert len(bench.lines(bench.later(job))) == ROWS


@pytest.mark.parametrize("why", ["expired", "of-another-size", "another-account"])
def test_an_input_that_cannot_be_used_is_uploaded_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    if why == "another-account":
        monkeypatch.setenv("GEMINI_API_KEY", "AIza-other")
        other = connect_batch(OPTIONS)
        other.create(bench.job())
        other.close()
    else:
        bench.create([body(0)] if why == "of-another-size" else None)
    [old] = bench.uploaded
    bench.world.clock.advance(2 * DAY + 1 if why == "expired" else 0)
    job = bench.create(input_ref=old)
    assert [old, job.remote[0]] == bench.uploaded
    assert bench.lines(bench.later(job))[0].status_code == 200


def test_an_input_that_is_still_taken_in_is_waited_for(bench: Bench) -> None:
    bench.world.settings["gemini.processing_seconds"] = 60
    for ref in (None, "again"):
        with pytest.raises(Refused) as caught:
            bench.create(input_ref=ref and bench.uploaded[0])
        assert (caught.value.failure, caught.value.code) == ("transport", "input_not_ready")
    bench.world.clock.advance(60)
    bench.create(input_ref=bench.uploaded[0])
    assert (len(bench.uploaded), len(bench.world.jobs_created["gemini"])) == (1, 1)


@pytest.mark.parametrize(
    ("args", "failure", "retry_after"),
    [
        pytest.param({"status": 429, "retry_after": 34}, "capacity", 34.0, id="capacity"),
        pytest.param(
            {"status": 429, "quota_id": "GenerateTokensPerDayPerProject"}, "quota", None, id="day"
        ),
        pytest.param({"status": 400}, "invalid_request", None, id="400"),
        pytest.param({"status": 400, "reason": "API_KEY_INVALID"}, "auth", None, id="bad-key"),
        pytest.param({"status": 401}, "auth", None, id="401"),
        pytest.param({"status": 403}, "auth", None, id="403"),
        pytest.param({"status": 400, "code": "FAILED_PRECONDITION"}, "quota", None, id="billing"),
    ],
)
@pytest.mark.parametrize("op", ["upload", "create"])
def test_refusals_leave_no_job(
    bench: Bench, op: str, args: dict[str, Any], failure: str, retry_after: float | None
) -> None:
    bench.plant(op, "status", **args)
    with pytest.raises(Refused) as caught:
        bench.create()
    assert (caught.value.failure, caught.value.retry_after) == (failure, retry_after)
    assert bench.world.jobs_created["gemini"] == []
    assert len(bench.uploaded) == (1 if op == "create" else 0)


@pytest.mark.parametrize(
    ("kind", "args"),
    [
        pytest.param("drop_before", {}, id="dropped"),
        pytest.param("drop_after", {}, id="dropped-after"),
        pytest.param("status", {"status": 503}, id="503"),
        pytest.param("status", {"status": 500}, id="500"),
    ],
)
def test_an_upload_that_breaks_off_leaves_no_job_and_no_doubt(
    bench: Bench, kind: str, args: dict[str, Any]
) -> None:
    bench.plant("upload", kind, **args)
    with pytest.raises(Refused) as caught:
        bench.create()
    assert caught.value.failure in ("transport", "overloaded", "server_error")
    assert (bench.uploaded, bench.calls("create")) == ([], 0)


def test_an_upload_that_breaks_off_while_bytes_are_sent(bench: Bench) -> None:
    bench.plant("upload", "drop_before", after=1)
    with pytest.raises(Refused) as caught:
        bench.create()
    assert (caught.value.failure, bench.calls("create")) == ("transport", 0)


@pytest.mark.parametrize(
    ("kind", "args", "jobs"),
    [
        pytest.param("drop_before", {}, 0, id="dropped-before"),
        pytest.param("drop_after", {}, 1, id="dropped-after"),
        pytest.param("status", {"status": 500}, 0, id="500"),
        pytest.param("status", {"status": 503}, 0, id="503"),
        pytest.param("status", {"status": 504}, 0, id="504"),
    ],
)
def test_an_unknown_outcome_is_found_out_by_the_list(
    bench: Bench, kind: str, args: dict[str, Any], jobs: int
) -> None:
    bench.plant("create", kind, **args)
    intent = bench.intent()
    with pytest.raises(Ambiguous):
        bench.client.create(bench.job(intent=intent))
    assert bench.calls("create") == 1
    found = bench.client.find(intent)
    assert (len(found.jobs), found.maybe, found.complete) == (jobs, (), True)
    assert [job.job_id for job in found.jobs] == bench.world.jobs_created["gemini"]


def test_a_creation_that_takes_too_long_is_ambiguous(
    emulated: RunningEmulator, tmp_path: Path
) -> None:
    client = connect_batch(ProviderOptions(timeout_seconds=0.3))
    bench = Bench(emulated, client, tmp_path)
    bench.plant("create", "delay", seconds=1.0)
    with pytest.raises(Ambiguous, match="ReadTimeout"):
        bench.create()
    client.close()


def test_no_connection_means_no_job(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, unused_port: int
) -> None:
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", f"http://127.0.0.1:{unused_port}/gemini")
    client = connect_batch(OPTIONS)
    for call in (
        lambda: client.create(bench.job()),
        lambda: client.create(bench.job(intent=bench.intent(input_ref="files/x"))),
        lambda: client.retrieve("batches/x"),
        lambda: client.find(bench.intent()),
        lambda: client.check_model(MODEL),
    ):
        with pytest.raises(Unreachable):
            call()
    client.close()


@pytest.fixture
def unused_port() -> int:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


@pytest.mark.parametrize(
    ("setting", "value", "failure"),
    [
        pytest.param("gemini.concurrent_jobs", 0, "capacity", id="jobs"),
        pytest.param("gemini.enqueued_tokens", 100, "capacity", id="tokens"),
        pytest.param("gemini.storage_bytes", 100, "capacity", id="storage"),
        pytest.param("gemini.file_bytes", 100, "invalid_request", id="file-size"),
    ],
)
def test_limits_of_the_account(bench: Bench, setting: str, value: int, failure: str) -> None:
    bench.world.settings[setting] = value
    with pytest.raises(Refused) as caught:
        bench.create()
    assert caught.value.failure == failure
    assert caught.value.retry_after == (34.0 if failure == "capacity" else None)
    assert bench.world.jobs_created["gemini"] == []


def test_enqueued_tokens_are_given_back_when_a_job_ends(bench: Bench) -> None:
    bench.world.settings["gemini.enqueued_tokens"] = 6000
    job = bench.create()
    with pytest.raises(Refused, match="RESOURCE_EXHAUSTED"):
        bench.create(number=2)
    bench.later(job)
    bench.create(number=2)


def test_a_model_that_is_not_offered(bench: Bench, online: GeminiOnline) -> None:
    for check in (bench.client.check_model, online.check_model):
        with pytest.raises(ModelUnavailable, match="gemini-9"):
            check("gemini-9")
        check(MODEL)
    with pytest.raises(Refused) as caught:
        bench.create(model="gemini-9")
    assert caught.value.failure == "unsupported"
    assert answer(body(0), "gemini-9").failure == "unsupported"


# --- finding ------------------------------------------------------------------------------------


def test_a_fresh_job_may_not_be_listed_yet(bench: Bench) -> None:
    bench.plant("job", "unlisted", seconds=60)
    intent = bench.intent()
    job = bench.client.create(bench.job(intent=intent))
    assert bench.client.find(intent).jobs == ()
    bench.world.clock.advance(60)
    assert [one.job_id for one in bench.client.find(intent).jobs] == [job.job_id]


def test_another_account_finds_nothing(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    job = bench.create()
    monkeypatch.setenv("GOOGLE_API_KEY", "AIza-other")
    other = connect_batch(OPTIONS)
    found = other.find(bench.intent())
    assert (found.jobs, found.maybe, found.complete) == ((), (), True)
    assert other.account() != bench.client.account()
    with pytest.raises(JobMissing):
        other.retrieve(job.job_id)
    with pytest.raises(JobMissing):
        other.cancel(job.job_id)
    other.close()


def test_every_page_of_the_list_is_looked_at(bench: Bench) -> None:
    bench.world.settings["gemini.list_page_max"] = 2
    intent = bench.intent()
    wanted = [bench.create([body(0)]).job_id for _ in range(2)]
    for number in range(5):
        other = f"{number:012x}"
        bench.create([body(0)], intent_id=f"{other}-1", batch_key=other)
    found = bench.client.find(intent)
    assert [job.job_id for job in found.jobs] == wanted
    assert bench.calls("list") == 4


@pytest.mark.parametrize(
    ("minutes", "found"), [(0, True), (14, True), (16, False)], ids=["now", "within", "older"]
)
def test_a_job_of_another_number_counts_unless_it_is_older(
    bench: Bench, minutes: int, found: bool
) -> None:
    job = bench.create(number=1)
    bench.world.clock.advance(60 * minutes)
    jobs = bench.client.find(bench.intent(number=2)).jobs
    assert [one.job_id for one in jobs] == ([job.job_id] if found else [])


def test_the_intents_own_job_is_found_however_old_it_is(bench: Bench) -> None:
    intent = bench.intent()
    job = bench.client.create(bench.job(intent=intent))
    late = replace(intent, recorded_at=bench.world.clock.now() + timedelta(days=3))
    assert [one.job_id for one in bench.client.find(late).jobs] == [job.job_id]


def test_a_found_job_that_has_ended_has_its_results(bench: Bench) -> None:
    intent = bench.intent()
    job = bench.later(bench.client.create(bench.job(intent=intent)))
    assert bench.client.find(intent).jobs == (job,)


@pytest.mark.parametrize(
    ("kind", "args"),
    [
        pytest.param("status", {"status": 500}, id="500"),
        pytest.param("status", {"status": 429, "retry_after": 9}, id="429"),
        pytest.param("drop_before", {}, id="dropped"),
    ],
)
def test_a_search_that_breaks_off_is_no_answer(
    bench: Bench, kind: str, args: dict[str, Any]
) -> None:
    bench.world.settings["gemini.list_page_max"] = 1
    bench.create([body(0)])
    bench.create([body(0)])
    bench.plant("list", kind, after=1, **args)
    with pytest.raises(Unavailable) as caught:
        bench.client.find(bench.intent())
    assert caught.value.retry_after == args.get("retry_after")


Handler = Callable[[httpx2.Request], httpx2.Response]


def scripted(handler: Handler) -> GeminiBatch:
    """A client whose server is a function: for answers that the emulator has no reason to give."""
    account = account_of({"GEMINI_API_KEY": "k", "GOOGLE_GEMINI_BASE_URL": "http://scripted"})
    http = httpx2.Client(transport=httpx2.MockTransport(handler))
    return GeminiBatch(account, http, cast("Any", None))


def listed(name: str, **metadata: Any) -> dict[str, Any]:
    return {"name": f"batches/{name}", "metadata": {"state": "BATCH_STATE_RUNNING", **metadata}}


def page(*operations: Any, token: str = "") -> httpx2.Response:
    return httpx2.Response(200, json={"operations": list(operations), "nextPageToken": token})


RECORDED = datetime.fromisoformat("2026-11-30T12:00:00+00:00")
INTENT = Intent(f"{BATCH}-1", BATCH, MODEL, ROWS, RECORDED)
NEW, OLD = "2026-11-30T12:00:05.123456789Z", "2026-11-30T11:00:00Z"


@pytest.mark.parametrize(
    ("operation", "sure", "maybe"),
    [
        pytest.param(listed("a", displayName=f"tallybook-{BATCH}-1"), 1, 0, id="own-name"),
        pytest.param(
            listed("a", displayName=f"tallybook-{BATCH}-2", createTime=NEW), 1, 0, id="other-number"
        ),
        pytest.param(
            listed("a", displayName=f"tallybook-{BATCH}-2"), 0, 1, id="other-number-no-time"
        ),
        pytest.param(
            listed("a", displayName=f"tallybook-{BATCH}-2", createTime=OLD), 0, 0, id="older"
        ),
        pytest.param(listed("a", createTime=NEW), 0, 1, id="no-name"),
        pytest.param(listed("a"), 0, 1, id="neither"),
        pytest.param(listed("a", createTime=OLD), 0, 0, id="no-name-but-older"),
        pytest.param(listed("a", displayName="tallybook-ffffffffffff-1"), 0, 0, id="other-batch"),
        pytest.param(listed("a", displayName="mine", createTime=NEW), 0, 0, id="somebody-elses"),
        pytest.param(
            listed("a", displayName=f"x-tallybook-{BATCH}-1", createTime=NEW), 0, 0, id="no-prefix"
        ),
    ],
)
def test_what_a_listed_job_is_to_an_intent(
    operation: dict[str, Any], sure: int, maybe: int
) -> None:
    found = scripted(lambda _: page(operation)).find(INTENT)
    assert (len(found.jobs), len(found.maybe), found.complete) == (sure, maybe, True)


@pytest.mark.parametrize(
    "response",
    [
        pytest.param(lambda: page(token="again"), id="a-list-in-circles"),
        pytest.param(lambda: page({"name": 5}), id="an-entry-of-another-form"),
    ],
)
def test_a_list_that_cannot_be_read_to_its_end_proves_nothing(
    response: Callable[[], httpx2.Response],
) -> None:
    found = scripted(lambda _: response()).find(INTENT)
    assert (found.jobs, found.complete) == ((), False)


def test_jobs_are_told_oldest_first() -> None:
    name = f"tallybook-{BATCH}-1"
    both = [listed("b", displayName=name, createTime=NEW), listed("a", displayName=name)]
    both[1]["metadata"]["createTime"] = "2026-11-30T12:00:01Z"
    found = scripted(lambda _: page(*both)).find(INTENT)
    assert [job.job_id for job in found.jobs] == ["batches/a", "batches/b"]


def test_a_listed_job_that_is_gone_again_is_told_as_it_was_listed() -> None:
    ended = listed("a", displayName=f"tallybook-{BATCH}-1", state="BATCH_STATE_CANCELLED")

    def serve(request: httpx2.Request) -> httpx2.Response:
        return page(ended) if request.url.path.endswith("/batches") else httpx2.Response(404)

    [job] = scripted(serve).find(INTENT).jobs
    assert (job.job_id, job.outcome, job.files) == ("batches/a", "cancelled", ())


@pytest.mark.parametrize("content", [b"<html>", b"{}", b""], ids=["html", "no-name", "empty"])
def test_answers_of_another_form(content: bytes, bench: Bench) -> None:
    client = scripted(lambda _: httpx2.Response(200, content=content))
    with pytest.raises(Unavailable):
        client.retrieve("batches/x")
    if content != b"{}":  # an empty page is one
        with pytest.raises(Unavailable):
            client.find(INTENT)


def test_a_creation_whose_answer_names_no_job_is_ambiguous(bench: Bench) -> None:
    job = bench.job()

    def serve(request: httpx2.Request) -> httpx2.Response:
        if request.method == "GET":
            return httpx2.Response(200, json={"state": "ACTIVE", "sizeBytes": str(job.size)})
        return httpx2.Response(200, content=b'{"metadata":{}}')

    with pytest.raises(Ambiguous):
        scripted(serve).create(replace(job, intent=bench.intent(input_ref="files/x")))


# --- ends ---------------------------------------------------------------------------------------


def test_cancelling_keeps_what_was_finished(bench: Bench) -> None:
    job = bench.later(bench.create(), PENDING + RUNNING / 2)
    bench.client.cancel(job.job_id)
    bench.client.cancel(job.job_id)  # a second wish changes nothing
    assert bench.client.retrieve(job.job_id).phase == "running"
    job = bench.later(job, CANCELLING)
    assert (job.phase, job.outcome) == ("ended", "cancelled")
    assert [line.custom_id for line in bench.lines(job)] == keys()[:3]
    assert bench.world.executed["gemini"] == Counter(keys()[:3])


def test_cancelling_may_keep_nothing(bench: Bench) -> None:
    bench.world.settings["gemini.cancel_keeps_rows"] = False
    job = bench.later(bench.create(), PENDING + RUNNING / 2)
    bench.client.cancel(job.job_id)
    job = bench.later(job, CANCELLING)
    assert (job.phase, job.outcome, job.files) == ("ended", "cancelled", ())


def test_a_job_that_has_ended_is_not_cancelled(bench: Bench) -> None:
    job = bench.later(bench.create())
    bench.client.cancel(job.job_id)
    bench.plant("cancel", "status", status=400, code="FAILED_PRECONDITION")
    bench.client.cancel(job.job_id)
    assert bench.later(job, CANCELLING).outcome == "completed"


def test_a_provider_may_cancel_by_itself(bench: Bench) -> None:
    bench.plant("job", "cancelled", done=0.5)
    job = bench.later(bench.create())
    assert (job.outcome, len(bench.lines(job))) == ("cancelled", 3)


@pytest.mark.parametrize("why", ["fault", "too-slow"])
def test_an_expired_job_has_no_results(bench: Bench, why: str) -> None:
    if why == "fault":
        bench.plant("job", "expired", done=0.5)
    else:
        bench.world.timing.running_seconds = 5 * DAY
    job = bench.create()
    assert bench.later(job, 2 * DAY - 60).phase == "running"
    job = bench.later(job, 60)
    assert (job.raw_status, job.outcome, job.files) == ("BATCH_STATE_EXPIRED", "expired", ())
    assert not bench.world.executed["gemini"]


@pytest.mark.parametrize(
    ("code", "failure"),
    [("RESOURCE_EXHAUSTED", "capacity"), (3, "invalid_request"), (13, "server_error")],
)
def test_a_failed_job_says_why(bench: Bench, code: str | int, failure: str) -> None:
    bench.plant("job", "failed", code=code, message="Because.")
    job = bench.later(bench.create(), PENDING)
    assert (job.phase, job.outcome, job.files) == ("ended", "provider_failed", ())
    assert (job.error_class, job.error_note) == (failure, "Because.")


@pytest.mark.parametrize("data", [b"not json\n", b'{"key":"a"}\n', b"\n"])
def test_an_input_that_is_no_input_fails_the_job(bench: Bench, data: bytes) -> None:
    job = bench.job()
    job.request_file.write_bytes(data)
    found = bench.later(bench.client.create(replace(job, size=len(data))), PENDING)
    assert (found.outcome, found.error_class) == ("provider_failed", "invalid_request")


def test_an_unknown_status_is_unknown(bench: Bench) -> None:
    bench.plant("job", "unknown_status", status="BATCH_STATE_ARCHIVING")
    job = bench.later(bench.create())
    assert (job.raw_status, job.phase, job.outcome) == ("BATCH_STATE_ARCHIVING", "unknown", None)


def test_a_job_may_wait_for_ever(bench: Bench) -> None:
    bench.plant("job", "stuck")
    assert bench.later(bench.create(), 9 * DAY).phase == "queued"


def test_a_job_may_be_missing_for_a_while(bench: Bench) -> None:
    bench.world.faults.add(Fault("gemini", "job", "not_found", args={"times": 2}))
    job = bench.create()
    for _ in range(2):
        with pytest.raises(JobMissing):
            bench.client.retrieve(job.job_id)
    assert bench.client.retrieve(job.job_id).job_id == job.job_id


@pytest.mark.parametrize(
    ("kind", "args", "error"),
    [
        pytest.param("status", {"status": 429, "retry_after": 12.5}, Unavailable, id="429"),
        pytest.param("status", {"status": 500}, Unavailable, id="500"),
        pytest.param("status", {"status": 503, "retry_after": 12.5}, Unavailable, id="503"),
        pytest.param("drop_before", {}, Unavailable, id="dropped"),
        pytest.param("drop_after", {}, Unavailable, id="dropped-after"),
        pytest.param("status", {"status": 401}, Refused, id="401"),
        pytest.param("status", {"status": 403}, Refused, id="403"),
    ],
)
@pytest.mark.parametrize("op", ["retrieve", "cancel", "download", "delete", "models"])
def test_calls_that_may_be_repeated(
    bench: Bench, op: str, kind: str, args: dict[str, Any], error: type[Exception]
) -> None:
    job = bench.later(bench.create())

    def call() -> object:
        if op == "download":
            return bench.data(job)
        if op == "delete":
            return bench.client.delete(job.job_id, (job.job_id,))
        if op == "models":
            return bench.client.check_model(MODEL)
        return getattr(bench.client, op)(job.job_id)

    bench.plant(op, kind, **args)
    with pytest.raises(error) as caught:
        call()
    assert type(caught.value) is error
    if isinstance(caught.value, Unavailable):
        assert caught.value.retry_after == args.get("retry_after")
        if (op, kind) == ("delete", "drop_after"):
            assert bench.calls("delete") == 1
    call()


# --- downloads ----------------------------------------------------------------------------------


def download(bench: Bench, job: Job, offset: int = 0) -> tuple[bytes, int, int | None, bool]:
    """(bytes that came, offset, length, whether they broke off)."""
    got = b""
    with bench.client.open_file(job.job_id, job.files[0], offset) as found:
        try:
            for block in found.blocks:
                got += block
        except Unavailable:
            return got, found.offset, found.length, True
    return got, found.offset, found.length, False


def test_a_cut_download_is_resumed(bench: Bench) -> None:
    job = bench.later(bench.create())
    whole = bench.data(job)
    bench.plant("download", "cut", bytes=1000)
    got, offset, length, broken = download(bench, job)
    assert (got, offset, length, broken) == (whole[:1000], 0, len(whole), True)
    got, offset, length, broken = download(bench, job, 1000)
    assert (got, offset, length, broken) == (whole[1000:], 1000, len(whole) - 1000, False)
    assert download(bench, job, len(whole)) == (b"", len(whole), 0, False)


def test_a_download_starts_again_where_ranges_are_ignored(bench: Bench) -> None:
    bench.world.settings["gemini.ranges"] = False
    job = bench.later(bench.create())
    whole = bench.data(job)
    assert download(bench, job, 1000) == (whole, 0, len(whole), False)


@pytest.mark.parametrize("announce", ["full", "none", "short"])
def test_a_download_that_ends_at_a_line(bench: Bench, announce: str) -> None:
    job = bench.later(bench.create())
    whole = bench.data(job)
    bench.plant("download", "truncate_at_newline", announce=announce)
    got, _, length, broken = download(bench, job)
    assert whole.startswith(got) and got.endswith(b"\n") and len(got) < len(whole)
    expected = {"full": len(whole), "none": None, "short": len(got)}
    assert (length, broken) == (expected[announce], announce == "full")


def test_a_download_from_behind_the_end(bench: Bench) -> None:
    job = bench.later(bench.create())
    size = len(bench.data(job))
    with pytest.raises(Unavailable, match="does not reach"):
        download(bench, job, size + 1)


def test_a_download_of_another_range_is_refused() -> None:
    answer = httpx2.Response(206, headers={"content-range": "bytes 0-9/10"}, content=b"0123456789")
    client = scripted(lambda _: answer)
    with (
        pytest.raises(Unavailable, match="another range"),
        client.open_file("batches/x", RemoteFile("output", "files/x"), 5),
    ):
        pass


def test_the_length_of_a_compressed_body_is_not_the_files() -> None:
    import gzip

    packed = gzip.compress(b"line\n" * 100)
    headers = {"content-encoding": "gzip"}
    client = scripted(lambda _: httpx2.Response(200, headers=headers, content=packed))
    with client.open_file("batches/x", RemoteFile("output", "files/x"), 0) as found:
        assert (b"".join(found.blocks), found.length) == (b"line\n" * 100, None)


def test_what_the_reader_raises_is_not_taken_for_a_broken_download(bench: Bench) -> None:
    job = bench.later(bench.create())
    with (
        pytest.raises(httpx2.ReadError),
        bench.client.open_file(job.job_id, job.files[0], 0) as found,
    ):
        next(found.blocks)
        raise httpx2.ReadError("the caller's own")
    assert len(bench.data(job)) > 0


@pytest.mark.parametrize(
    "args",
    [
        pytest.param(
            {"status": 400, "message": "File ID cannot be more than 40 characters."}, id="long-id"
        ),
        pytest.param({"status": 404}, id="404"),
        pytest.param(
            {
                "status": 403,
                "message": "You do not have permission to access it or it may not exist",
            },
            id="403-gone",
        ),
    ],
)
def test_results_that_cannot_be_had(bench: Bench, args: dict[str, Any]) -> None:
    job = bench.later(bench.create())
    bench.plant("download", "status", **args)
    with pytest.raises(FileMissing):
        bench.data(job)
    assert len(bench.lines(job)) == ROWS


def test_results_are_gone_after_their_retention(bench: Bench) -> None:
    job = bench.later(bench.create())
    bench.later(job, 2 * DAY + 60)
    with pytest.raises(FileMissing):
        bench.data(job)


def test_the_input_cannot_be_downloaded(bench: Bench) -> None:
    job = bench.create()
    with (
        pytest.raises(FileMissing, match="Only generated files"),
        bench.client.open_file(job.job_id, RemoteFile("output", bench.uploaded[0]), 0),
    ):
        pass


# --- deleting -----------------------------------------------------------------------------------


def test_every_reference_is_tried_before_an_error_is_raised(bench: Bench) -> None:
    job = bench.later(bench.create())
    bench.plant("delete", "status", status=503)
    with pytest.raises(Unavailable):
        bench.client.delete(job.job_id, job.remote)
    assert bench.calls("delete") == 3
    with pytest.raises(JobMissing):
        bench.client.retrieve(job.job_id)
    bench.client.delete(job.job_id, job.remote[:1])
    bench.plant("file", "delay", seconds=0)
    job = bench.create(input_ref=job.remote[0])
    assert len(bench.uploaded) == 2  # the input was gone


# --- online -------------------------------------------------------------------------------------


@pytest.fixture
def online(emulated: RunningEmulator) -> Iterator[GeminiOnline]:
    made = connect_online(OPTIONS)
    yield made
    asyncio.run(made.close())


def answer(data: bytes, model: str = MODEL) -> Reply:
    async def once() -> Reply:
        client = connect_online(OPTIONS)
        try:
            return await client.answer("k1", model, data)
        finally:
            await client.close()

    return asyncio.run(once())


def answer_of(handler: Handler, data: bytes) -> Reply:
    async def once() -> Reply:
        account = account_of({"GEMINI_API_KEY": "k"})
        async with httpx2.AsyncClient(transport=httpx2.MockTransport(handler)) as http:
            return await GeminiOnline(account, http, 5.0).answer("k1", MODEL, data)

    return asyncio.run(once())


def test_an_online_answer_reads_like_a_batch_line(bench: Bench) -> None:
    reply = answer(body(4))
    assert (reply.status, reply.failure, reply.ambiguous) == (200, None, False)
    assert (reply.request_id or "").startswith("resp")
    line = WIRE.read_line(WIRE.encode_reply("k1", reply))
    [batch_line] = bench.result([body(4)])
    assert line == msgspec.structs.replace(batch_line, custom_id="k1")
    assert bench.world.executed["gemini"] == Counter({reference(4): 1, keys()[0]: 1})


def test_many_answers_at_once_in_one_loop(emulated: RunningEmulator) -> None:
    async def run() -> list[Reply]:
        client = connect_online(OPTIONS)
        try:
            calls = (client.answer(f"k{n}", MODEL, body(n)) for n in range(30))
            return await asyncio.gather(*calls)
        finally:
            await client.close()

    texts = [WIRE.read_line(WIRE.encode_reply("k", reply)).text for reply in asyncio.run(run())]
    assert [json.loads(text or "")["document"] for text in texts] == [
        reference(n) for n in range(30)
    ]


def test_the_exact_bytes_are_sent() -> None:
    seen: list[bytes] = []

    def serve(request: httpx2.Request) -> httpx2.Response:
        seen.append(request.content)
        return httpx2.Response(200, json={"responseId": "r"})

    odd = b'{ "b":1.50,"a" :"\xe2\x80\xa8" }'
    answer_of(serve, odd)
    assert seen == [odd]


@pytest.mark.parametrize(
    ("kind", "args", "failure", "ambiguous"),
    [
        pytest.param("status", {"status": 429, "retry_after": 3}, "rate_limited", False, id="429"),
        pytest.param(
            "status", {"status": 429, "quota_id": "RequestsPerDay"}, "quota", False, id="429-day"
        ),
        pytest.param("status", {"status": 500}, "server_error", False, id="500"),
        pytest.param("status", {"status": 503}, "overloaded", False, id="503"),
        pytest.param("status", {"status": 504}, "server_error", True, id="504"),
        pytest.param("status", {"status": 401}, "auth", False, id="401"),
        pytest.param("status", {"status": 403}, "auth", False, id="403"),
        pytest.param(
            "status", {"status": 400, "reason": "API_KEY_INVALID"}, "auth", False, id="bad-key"
        ),
        pytest.param("status", {"status": 400}, "invalid_request", False, id="400"),
        pytest.param("drop_before", {}, "transport", True, id="dropped"),
        pytest.param("drop_after", {}, "transport", True, id="dropped-after"),
    ],
)
def test_online_calls_that_fail(
    bench: Bench,
    kind: str,
    args: dict[str, Any],
    failure: str,
    ambiguous: bool,
) -> None:
    bench.plant("answer", kind, **args)
    reply = answer(body(0))
    assert (reply.failure, reply.ambiguous) == (failure, ambiguous)
    assert reply.status == args.get("status", 0)
    assert reply.retry_after == args.get("retry_after")
    assert bench.calls("answer") == 1  # nothing is repeated inside
    line = WIRE.read_line(WIRE.encode_reply("k1", reply))
    assert (line.custom_id, line.status_code, line.text) == ("k1", reply.status, None)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        pytest.param("filtered", (200, "filtered"), id="filtered"),
        pytest.param("truncated", (200, "truncated"), id="truncated"),
        pytest.param("no_finish", (200, "unknown"), id="no-finish"),
        pytest.param("not_executed", (503, None), id="not-executed"),
        pytest.param("error", (500, None), id="error"),
    ],
)
def test_row_faults_online(bench: Bench, kind: str, expected: tuple[int, str | None]) -> None:
    bench.plant("row", kind)
    line = WIRE.read_line(WIRE.encode_reply("k1", answer(body(0))))
    assert (line.status_code, line.finish_reason) == expected


def test_an_online_call_without_a_server(
    emulated: RunningEmulator, monkeypatch: pytest.MonkeyPatch, unused_port: int
) -> None:
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", f"http://127.0.0.1:{unused_port}")
    reply = answer(body(0))
    assert (reply.status, reply.failure, reply.ambiguous) == (0, "transport", False)


def test_an_online_success_that_cannot_be_read_was_paid() -> None:
    for content in (b"", b'{"candidates":[{', b"<html>"):
        response = httpx2.Response(200, content=content)
        reply = answer_of(lambda _, told=response: told, b"{}")
        assert (reply.status, reply.failure, reply.ambiguous) == (200, "transport", True)


# --- accounts and keys --------------------------------------------------------------------------


def test_the_account_does_not_depend_on_the_mode(
    emulated: RunningEmulator, client: GeminiBatch, online: GeminiOnline
) -> None:
    assert client.account() == online.account()
    assert client.base_url == online.base_url == f"{emulated.base_url}/gemini"
    assert GEMINI_KEY not in client.account()


def test_a_missing_key_is_told(emulated: RunningEmulator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GEMINI_API_KEY")
    for connect in (connect_batch, connect_online):
        with pytest.raises(CredentialsMissing, match="GEMINI_API_KEY"):
            connect(OPTIONS)


def test_a_missing_sdk_is_told(emulated: RunningEmulator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "google.genai", None)
    with pytest.raises(SdkMissing, match=r"tallybook\[gemini\]"):
        connect_batch(OPTIONS)


def test_a_call_without_a_key_is_refused_as_the_service_does_it(emulator: RunningEmulator) -> None:
    answer = httpx2.get(f"{emulator.base_url}/gemini/v1/batches")
    assert (answer.status_code, answer.json()["error"]["status"]) == (403, "PERMISSION_DENIED")


def test_no_key_stands_in_logs_or_errors(
    bench: Bench, online: GeminiOnline, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    told: list[str] = []
    for op in ("upload", "create"):
        message = f"Consumer 'api_key:{GEMINI_KEY}' has been suspended."
        bench.plant(op, "status", status=403, message=message)
        with pytest.raises(Refused) as caught:
            bench.create()
        told.append(str(caught.value))
    bench.plant("create", "drop_after")
    with pytest.raises(Ambiguous) as ambiguous:
        bench.create()
    told += [str(ambiguous.value), repr(online), repr(bench.client), caplog.text]
    assert not [text for text in told if GEMINI_KEY in text]
    assert "[key]" in told[0]


# --- the emulator through the SDK's own eyes ----------------------------------------------------


def test_the_sdk_reads_the_emulators_jobs_and_files(bench: Bench) -> None:
    from google import genai
    from google.genai import types

    job = bench.later(bench.create())
    options = types.HttpOptions(base_url=f"{bench.world.base_url}/gemini")
    with genai.Client(api_key=GEMINI_KEY, http_options=options) as sdk:
        found = sdk.batches.get(name=job.job_id)
        assert (found.state, found.display_name) == (
            types.JobState.JOB_STATE_SUCCEEDED,
            f"tallybook-{BATCH}-1",
        )
        assert found.dest is not None and found.dest.file_name == job.files[0].ref
        assert sdk.files.download(file=job.files[0].ref) == bench.data(job)
        assert [one.name for one in sdk.batches.list()] == [job.job_id]
        file = sdk.files.get(name=bench.uploaded[0])
        assert (file.state, file.mime_type) == (types.FileState.ACTIVE, "application/jsonl")
        told = sdk.models.generate_content(model=MODEL, contents="What is this?")
        assert "Emulated answer" in (told.text or "")


def test_the_sdk_reads_inline_jobs_of_the_emulator(bench: Bench) -> None:
    from google import genai
    from google.genai import types

    options = types.HttpOptions(base_url=f"{bench.world.base_url}/gemini", api_version="v1beta")
    with genai.Client(api_key=GEMINI_KEY, http_options=options) as sdk:
        request = types.InlinedRequest(
            contents=[types.Content(role="user", parts=[types.Part(text="hello")])],
            metadata={"key": "k7"},
        )
        made = sdk.batches.create(model=MODEL, src=[request], config={"display_name": "mine"})
        bench.world.clock.advance(PENDING + RUNNING)
        found = sdk.batches.get(name=str(made.name))
        assert found.dest is not None and found.dest.inlined_responses is not None
        [response] = found.dest.inlined_responses
        assert response.response is not None and "Emulated" in (response.response.text or "")
    job = bench.client.retrieve(str(made.name))
    assert [line.custom_id for line in bench.lines(job)] == ["k7"]


def test_long_file_ids_are_refused_by_the_files_api_alone(bench: Bench) -> None:
    job = bench.later(bench.create())
    ref = job.files[0].ref
    assert len(ref.removeprefix("files/")) == 42
    headers = {"x-goog-api-key": GEMINI_KEY}
    answer = httpx2.get(f"{bench.world.base_url}/gemini/v1/{ref}", headers=headers)
    assert (answer.status_code, "40 characters" in answer.text) == (400, True)
    other_path = f"{bench.world.base_url}/gemini/download/v1beta/{ref}:download?alt=media"
    assert httpx2.get(other_path, headers=headers).content == bench.data(job)
