"""OpenAI's clients, with the real SDK, against the emulator."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest
from openai import OpenAI

from resources.providers.openai.batch import OpenAIBatchClient, connect_batch
from resources.providers.openai.online import connect_online
from resources.providers.openai.wire import CHAT, RESPONSES, OpenAIWire
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
    ProviderError,
    ProviderOptions,
    Refused,
    RemoteFile,
    Reply,
    ResultLine,
    Unavailable,
    Unreachable,
    split_lines,
)
from tests.provider_emulator.environment import OPENAI_KEY
from tests.provider_emulator.faults import Fault
from tests.support.asks import make_ask, page_prompt, reference
from tests.support.emulator import RunningEmulator

MODEL = "gpt-5-mini"
BATCH = "0123456789ab"
OTHER = "f" * 12
"""Another batch's key: a later intent of the same batch would be taken for forgotten."""
OPTIONS = ProviderOptions(timeout_seconds=20.0)
ROWS = 6
VALIDATING, RUNNING, CANCELLING = 20, 600, 30
DAY = 86_400


def ask(number: int, **changes: Any) -> Ask:
    return make_ask(MODEL, page_prompt(number), **changes)


def keys(rows: int = ROWS) -> list[str]:
    return [f"{BATCH}-{number:05d}-1" for number in range(rows)]


class Bench:
    """What a test of jobs works with."""

    def __init__(self, emulated: RunningEmulator, folder: Path, endpoint: str) -> None:
        self.world = emulated.world
        self.folder = folder
        self.endpoint = endpoint
        self.wire = OpenAIWire(endpoint)
        self.client: OpenAIBatchClient = connect_batch(OPTIONS, endpoint)
        self.uploaded: list[str] = []

    def plant(self, op: str, kind: str, times: int | None = 1, after: int = 0, **args: Any) -> None:
        self.world.faults.add(Fault("openai", op, kind, times, after, args))

    def intent(self, number: int = 1, **changes: Any) -> Intent:
        intent = Intent(f"{BATCH}-{number}", BATCH, MODEL, ROWS, self.world.clock.now())
        return replace(intent, **changes)

    def body(self, number: int, **changes: Any) -> bytes:
        return msgspec.json.encode(self.wire.body(ask(number, **changes)))

    def write(self, lines: list[bytes], intent: Intent | None = None) -> NewJob:
        path = self.folder / "requests.jsonl"
        path.write_bytes(b"".join(line + b"\n" for line in lines))
        asked = intent or self.intent()
        return NewJob(asked, path, path.stat().st_size, 24, self.uploaded.append)

    def lines_of(self, bodies: list[bytes] | None = None) -> list[bytes]:
        bodies = [self.body(number) for number in range(ROWS)] if bodies is None else bodies
        names = keys(len(bodies))
        return [self.wire.encode_request(*pair) for pair in zip(names, bodies, strict=True)]

    def job(self, intent: Intent | None = None) -> NewJob:
        return self.write(self.lines_of(), intent)

    def create(self, **changes: Any) -> Job:
        return self.client.create(self.job(self.intent(**changes)))

    def later(self, job: Job, seconds: float = VALIDATING + RUNNING) -> Job:
        self.world.clock.advance(seconds)
        return self.client.retrieve(job.job_id)

    def data(self, job: Job, file: RemoteFile, offset: int = 0) -> bytes:
        with self.client.open_file(job.job_id, file, offset) as download:
            assert download.offset in (0, offset)
            return b"".join(download.blocks)

    def lines(self, job: Job, kind: str) -> list[ResultLine]:
        [file] = [file for file in job.files if file.kind == kind]
        path = self.folder / "results.jsonl"
        path.write_bytes(self.data(job, file))
        with path.open("rb") as stream:
            return [self.wire.read_line(line.data) for line in split_lines(stream)]

    def online(self, body: bytes) -> Reply:
        async def once() -> Reply:
            client = connect_online(OPTIONS, self.endpoint)
            try:
                return await client.answer("k1", MODEL, body)
            finally:
                await client.close()

        return asyncio.run(once())


@pytest.fixture
def emulated(emulator: RunningEmulator, monkeypatch: pytest.MonkeyPatch) -> RunningEmulator:
    emulator.use(monkeypatch)
    return emulator


@pytest.fixture
def bench(emulated: RunningEmulator, tmp_path: Path) -> Iterator[Bench]:
    made = Bench(emulated, tmp_path, RESPONSES)
    yield made
    made.client.close()


# --- a whole job --------------------------------------------------------------------------------


@pytest.mark.parametrize("endpoint", [RESPONSES, CHAT])
def test_a_job_from_upload_to_deletion(
    emulated: RunningEmulator, tmp_path: Path, endpoint: str
) -> None:
    bench = Bench(emulated, tmp_path, endpoint)
    bench.client.check_model(MODEL)
    job = bench.create()
    assert (job.raw_status, job.phase, job.outcome) == ("validating", "validating", None)
    assert job.remote == tuple(bench.uploaded)
    assert job.created_at is not None and job.expires_at is not None
    assert job.expires_at - job.created_at == timedelta(hours=24)

    job = bench.later(job, VALIDATING + RUNNING / 2)
    assert (job.phase, job.files, job.counts) == ("running", (), Counts(ROWS, 3, 0, 3))
    job = bench.later(job, RUNNING * 0.46)
    assert (job.raw_status, job.phase, job.files) == ("finalizing", "running", ())
    job = bench.later(job, RUNNING * 0.04)
    assert (job.phase, job.outcome, job.counts) == ("ended", "completed", Counts(ROWS, ROWS, 0, 0))
    assert [file.kind for file in job.files] == ["output"]

    lines = bench.lines(job, "output")
    assert [line.custom_id for line in lines] == keys()
    for number, line in enumerate(lines):
        assert (line.status_code, line.finish_reason, line.error_code) == (200, "stop", None)
        assert json.loads(line.text or "")["document"] == reference(number)
        assert line.model_revision == "gpt-5-mini-2025-08-07"
        assert (line.input_tokens or 0) > 20 and (line.output_tokens or 0) > 50
    assert bench.world.executed["openai"] == Counter(keys())

    bench.client.delete(job.job_id, job.remote)
    with pytest.raises(FileMissing), bench.client.open_file(job.job_id, job.files[0], 0):
        pass
    bench.client.delete(job.job_id, job.remote)  # gone already is no error
    bench.client.close()


def test_rows_out_of_order_keep_their_ids(bench: Bench) -> None:
    bench.plant("lines", "shuffle")
    lines = bench.lines(bench.later(bench.create()), "output")
    assert [line.custom_id for line in lines] != keys()
    for line in lines:
        number = keys().index(str(line.custom_id))
        assert json.loads(line.text or "")["document"] == reference(number)


def test_a_job_with_all_rows_failed_is_completed_without_an_output_file(bench: Bench) -> None:
    bench.plant("job", "all_failed")
    job = bench.later(bench.create())
    assert (job.outcome, job.counts) == ("completed", Counts(ROWS, 0, ROWS, 0))
    assert [file.kind for file in job.files] == ["error"]
    assert [line.status_code for line in bench.lines(job, "error")] == [400] * ROWS
    assert not bench.world.executed["openai"]


@pytest.mark.parametrize(
    ("kind", "args", "file", "expected"),
    [
        pytest.param("truncated", {}, "output", (200, "truncated", None), id="truncated"),
        pytest.param("filtered", {}, "output", (200, "filtered", None), id="filtered"),
        pytest.param("refused", {}, "output", (200, "refused", None), id="refused"),
        pytest.param("prose", {}, "output", (200, "stop", None), id="prose"),
        pytest.param("no_finish", {}, "output", (200, "unknown", None), id="no-finish"),
        pytest.param("status_zero", {}, "error", (0, None, None), id="status-zero"),
        pytest.param("not_executed", {}, "error", (0, None, "expired"), id="not-executed"),
        pytest.param(
            "error", {"status": 429}, "error", (429, None, "rate_limit_exceeded"), id="429"
        ),
        pytest.param("error", {"status": 500}, "error", (500, None, "server_error"), id="500"),
    ],
)
@pytest.mark.parametrize("endpoint", [RESPONSES, CHAT])
def test_a_row_that_went_wrong(
    emulated: RunningEmulator,
    tmp_path: Path,
    endpoint: str,
    kind: str,
    args: dict[str, Any],
    file: str,
    expected: tuple[Any, ...],
) -> None:
    bench = Bench(emulated, tmp_path, endpoint)
    bench.plant("row", kind, match={"custom_id": keys()[2]}, **args)
    [line] = [
        line
        for line in bench.lines(bench.later(bench.create()), file)
        if line.custom_id == keys()[2]
    ]
    assert (line.status_code, line.finish_reason, line.error_code) == expected
    bench.client.close()


@pytest.mark.parametrize("endpoint", [RESPONSES, CHAT])
def test_the_broken_body_fails_as_a_row_and_costs_nothing(
    emulated: RunningEmulator, tmp_path: Path, endpoint: str
) -> None:
    bench = Bench(emulated, tmp_path, endpoint)
    broken = msgspec.json.encode(bench.wire.broken_body(ask(1)))
    job = bench.later(bench.client.create(bench.write(bench.lines_of([bench.body(0), broken]))))
    assert (job.outcome, job.counts) == ("completed", Counts(2, 1, 1, 0))
    [line] = bench.lines(job, "error")
    assert (line.custom_id, line.status_code) == (keys()[1], 400)
    assert bench.world.executed["openai"] == Counter(keys(1))
    bench.client.close()


def test_a_schema_outside_the_strict_subset_fails_each_row_and_online_at_once(
    bench: Bench,
) -> None:
    body = json.loads(bench.body(0))
    body["text"]["format"]["schema"] = {"type": "object", "properties": {"a": {"type": "string"}}}
    bad = json.dumps(body).encode()
    job = bench.later(bench.client.create(bench.write(bench.lines_of([bad]))))
    [line] = bench.lines(job, "error")
    assert (line.status_code, line.error_code) == (400, "invalid_json_schema")
    reply = bench.online(bad)
    assert (reply.status, reply.failure, reply.ambiguous) == (400, "invalid_request", False)


# --- creating and finding -----------------------------------------------------------------------


def test_a_job_whose_creation_was_not_answered_is_found_by_its_intent(bench: Bench) -> None:
    bench.plant("create", "drop_after")
    intent = bench.intent()
    with pytest.raises(Ambiguous):
        bench.client.create(bench.job(intent))
    assert len(bench.world.jobs_created["openai"]) == 1
    found = bench.client.find(intent)
    assert found.complete and not found.maybe
    assert [job.job_id for job in found.jobs] == bench.world.jobs_created["openai"]


def test_a_creation_that_never_arrived_is_not_found(bench: Bench) -> None:
    bench.plant("create", "drop_before")
    intent = bench.intent()
    with pytest.raises(Ambiguous):
        bench.client.create(bench.job(intent))
    found = bench.client.find(intent)
    assert (found.jobs, found.maybe, found.complete) == ((), (), True)


@pytest.mark.parametrize("status", [500, 503])
def test_a_creation_is_sent_once(bench: Bench, status: int) -> None:
    bench.plant("create", "status", None, status=status)
    with pytest.raises(Ambiguous):
        bench.create()
    assert bench.world.count_calls("openai", "create") == 1


def test_an_input_that_was_uploaded_is_used_again(bench: Bench) -> None:
    bench.plant("create", "status", status=429, retry_after=7)
    with pytest.raises(Refused) as caught:
        bench.create()
    assert (caught.value.failure, caught.value.retry_after) == ("rate_limited", 7.0)
    job = bench.create(input_ref=bench.uploaded[0])
    assert bench.world.count_calls("openai", "upload") == 1
    assert job.remote == (bench.uploaded[0],)


def test_a_running_job_outlives_the_deletion_of_its_input(bench: Bench) -> None:
    job = bench.create()
    bench.client.delete(job.job_id, job.remote)
    assert len(bench.lines(bench.later(job), "output")) == ROWS


def test_a_result_file_is_no_input(bench: Bench) -> None:
    job = bench.later(bench.create())
    with pytest.raises(Refused) as caught:
        bench.create(input_ref=job.files[0].ref)
    assert caught.value.failure == "invalid_request"


def test_an_input_that_is_not_known_yet_is_a_passing_refusal(bench: Bench) -> None:
    with pytest.raises(Refused) as caught:
        bench.create(input_ref="file-unknown")
    assert (caught.value.failure, caught.value.code) == ("transport", "input_not_found")
    assert not bench.world.jobs_created["openai"]


@pytest.mark.parametrize(
    ("args", "failure"),
    [
        pytest.param({"status": 401}, "auth", id="auth"),
        pytest.param({"status": 429, "code": "insufficient_quota"}, "quota", id="quota"),
        pytest.param({"status": 429, "code": "token_limit_exceeded"}, "capacity", id="capacity"),
        pytest.param({"status": 400}, "invalid_request", id="invalid"),
    ],
)
def test_refusals_leave_no_job(bench: Bench, args: dict[str, Any], failure: str) -> None:
    bench.plant("create", "status", **args)
    with pytest.raises(Refused) as caught:
        bench.create()
    assert caught.value.failure == failure
    assert not bench.world.jobs_created["openai"]


def test_an_input_may_be_unknown_for_a_while(bench: Bench) -> None:
    bench.world.settings["openai.file_ready_seconds"] = 60
    with pytest.raises(Refused) as caught:
        bench.create()
    assert (caught.value.failure, caught.value.code) == ("transport", "input_not_found")
    bench.world.clock.advance(60)
    assert bench.create(input_ref=bench.uploaded[0]).phase == "validating"


def test_a_reached_limit_may_be_told_at_once(bench: Bench) -> None:
    bench.world.settings |= {"openai.enqueued_tokens": 10, "openai.enqueued_form": "create"}
    with pytest.raises(Refused) as caught:
        bench.create()
    assert (caught.value.failure, caught.value.code) == ("capacity", "token_limit_exceeded")
    assert not bench.world.jobs_created["openai"]


def test_creations_are_limited_by_the_hour(bench: Bench) -> None:
    bench.world.settings["openai.creations_per_hour"] = 1
    bench.create()
    with pytest.raises(Refused) as caught:
        bench.create(intent_id=f"{BATCH}-2")
    assert (caught.value.failure, caught.value.retry_after) == ("rate_limited", 60.0)
    bench.world.clock.advance(3_600)
    assert bench.create(intent_id=f"{BATCH}-3").phase == "validating"


def test_a_creation_that_is_answered_too_late_is_in_doubt(bench: Bench) -> None:
    bench.plant("create", "delay", seconds=1.0)
    client = connect_batch(ProviderOptions(timeout_seconds=0.3), RESPONSES)
    with pytest.raises(Ambiguous, match="ReadTimeout"):
        client.create(bench.job())
    client.close()


@pytest.mark.parametrize(
    ("op", "error"),
    [
        pytest.param("create", Ambiguous, id="create"),
        pytest.param("retrieve", Unavailable, id="retrieve"),
        pytest.param("list", Unavailable, id="list"),
        pytest.param("upload", Refused, id="upload"),
    ],
)
def test_a_success_that_is_not_of_the_api_is_no_success(
    bench: Bench, op: str, error: type[ProviderError]
) -> None:
    job = bench.create()
    # What a captive gateway gives: 200, and a body of another form.
    bench.plant(op, "status", status=200)
    calls = {
        "create": lambda: bench.create(intent_id=f"{BATCH}-2", input_ref=bench.uploaded[0]),
        "retrieve": lambda: bench.client.retrieve(job.job_id),
        "list": lambda: bench.client.find(bench.intent()),
        "upload": lambda: bench.create(intent_id=f"{BATCH}-2"),
    }
    with pytest.raises(error):
        calls[op]()


@pytest.mark.parametrize("kind", ["drop_before", "drop_after"])
def test_an_upload_that_breaks_off_leaves_no_job_and_no_doubt(bench: Bench, kind: str) -> None:
    bench.plant("upload", kind)
    with pytest.raises(Refused) as caught:
        bench.create()
    assert caught.value.failure == "transport"
    assert not bench.world.jobs_created["openai"] and not bench.uploaded


def test_no_connection_means_no_job(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/openai/v1")
    client = connect_batch(OPTIONS, RESPONSES)
    with pytest.raises(Unreachable):
        client.create(bench.job())
    client.close()


def test_a_fresh_job_may_not_be_listed_yet(bench: Bench) -> None:
    bench.plant("job", "unlisted", seconds=60)
    intent, job = bench.intent(), bench.create()
    assert bench.client.find(intent).jobs == ()
    bench.world.clock.advance(60)
    assert [one.job_id for one in bench.client.find(intent).jobs] == [job.job_id]


def test_every_page_of_the_list_is_looked_at_and_only_the_intents_job_counts(bench: Bench) -> None:
    intent = bench.intent()
    first = bench.create()
    for number in range(2, 105):
        bench.create(intent_id=f"{OTHER}-{number}", input_ref=bench.uploaded[0])
    found = bench.client.find(replace(intent, input_ref=bench.uploaded[0]))
    assert [job.job_id for job in found.jobs] == [first.job_id]
    assert bench.world.count_calls("openai", "list") == 2


def test_a_search_that_breaks_off_is_no_answer(bench: Bench) -> None:
    intent, _ = bench.intent(), bench.create()
    bench.plant("list", "status", status=503)
    with pytest.raises(Unavailable):
        bench.client.find(intent)


def test_a_list_in_another_order_is_read_to_its_end(bench: Bench) -> None:
    bench.world.settings["openai.list_order"] = "oldest"
    bench.create(intent_id=f"{OTHER}-9")
    for number in range(10, 111):
        bench.create(intent_id=f"{OTHER}-{number}", input_ref=bench.uploaded[0])
    bench.world.clock.advance(3_600)
    intent, job = bench.intent(), bench.create()
    assert [one.job_id for one in bench.client.find(intent).jobs] == [job.job_id]
    assert bench.world.count_calls("openai", "list") == 2


def test_a_list_newest_first_is_read_back_to_the_intent_only(bench: Bench) -> None:
    bench.create(intent_id=f"{OTHER}-9")
    for number in range(10, 210):
        bench.create(intent_id=f"{OTHER}-{number}", input_ref=bench.uploaded[0])
    bench.world.clock.advance(3_600)
    intent, job = bench.intent(), bench.create()
    found = bench.client.find(intent)
    assert [one.job_id for one in found.jobs] == [job.job_id] and found.complete
    assert bench.world.count_calls("openai", "list") == 1


def test_another_account_finds_nothing(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    intent, job = bench.intent(), bench.create()
    monkeypatch.setenv("OPENAI_API_KEY", "sk-another")
    other = connect_batch(OPTIONS, RESPONSES)
    assert other.find(intent).jobs == ()
    with pytest.raises(JobMissing):
        other.retrieve(job.job_id)
    assert other.account() != bench.client.account()
    assert OPENAI_KEY not in bench.client.account()
    other.close()


# --- ends ---------------------------------------------------------------------------------------


def test_cancelling_keeps_what_was_finished(bench: Bench) -> None:
    job = bench.later(bench.create(), VALIDATING + RUNNING / 2)
    bench.client.cancel(job.job_id)
    assert bench.client.retrieve(job.job_id).phase == "cancelling"
    bench.client.cancel(job.job_id)
    job = bench.later(job, CANCELLING)
    assert (job.phase, job.outcome) == ("ended", "cancelled")
    assert [line.custom_id for line in bench.lines(job, "output")] == keys()[:3]
    assert {line.error_code for line in bench.lines(job, "error")} == {"cancelled"}
    bench.client.cancel(job.job_id)  # what has ended stays as it is
    assert len(bench.world.executed["openai"]) == 3


def test_an_expired_job_keeps_what_was_finished(bench: Bench) -> None:
    bench.plant("job", "expired", done=0.5)
    job = bench.later(bench.create(), DAY)
    # What the provider says of an expired batch does not add up.
    assert (job.outcome, job.counts) == ("expired", Counts(ROWS, 3, 0, 3))
    assert len(bench.lines(job, "output")) == 3
    assert [(line.custom_id, line.error_code) for line in bench.lines(job, "error")] == [
        (name, "expired") for name in keys()[3:]
    ]


@pytest.mark.parametrize(
    ("args", "failure"),
    [
        pytest.param({"code": "token_limit_exceeded"}, "capacity", id="capacity"),
        pytest.param({"code": "invalid_request", "param": "file_id"}, "transport", id="race"),
        pytest.param({"code": "invalid_request"}, "invalid_request", id="invalid"),
    ],
)
def test_a_failed_job_says_why(bench: Bench, args: dict[str, Any], failure: str) -> None:
    bench.plant("job", "failed", **args)
    job = bench.later(bench.create())
    assert (job.outcome, job.files) == ("provider_failed", ())
    assert (job.error_class, job.error_code) == (failure, args["code"])


@pytest.mark.parametrize(
    ("change", "code", "failure"),
    [
        pytest.param(
            lambda lines: [*lines, b"{"], "invalid_json_line", "invalid_request", id="json"
        ),
        pytest.param(
            lambda lines: [*lines, lines[0]], "duplicate_custom_id", "invalid_request", id="twice"
        ),
        pytest.param(
            lambda lines: [line.replace(b"gpt-5-mini", b"gpt-none") for line in lines],
            "model_not_found",
            "unsupported",
            id="model",
        ),
        pytest.param(
            lambda lines: [lines[0], lines[1].replace(b"gpt-5-mini", b"gpt-4.1-mini")],
            "mismatched_model",
            "invalid_request",
            id="two-models",
        ),
        pytest.param(
            lambda lines: [lines[0].replace(b"/v1/responses", b"/v1/embeddings")],
            "invalid_url",
            "invalid_request",
            id="url",
        ),
        pytest.param(lambda _: [b""], "empty_file", "invalid_request", id="empty"),
        pytest.param(
            lambda lines: [lines[0].replace(b'"body"', b'"boby"')],
            "missing_required_parameter",
            "invalid_request",
            id="no-body",
        ),
        pytest.param(
            lambda lines: [lines[0].replace(b'"POST"', b'"GET"')],
            "invalid_method",
            "invalid_request",
            id="method",
        ),
    ],
)
def test_a_bad_file_is_taken_and_fails_the_job_later(
    bench: Bench, change: Any, code: str, failure: str
) -> None:
    job = bench.client.create(bench.write(change(bench.lines_of())))
    assert job.phase == "validating"
    job = bench.later(job)
    assert (job.outcome, job.error_code, job.error_class) == ("provider_failed", code, failure)
    assert not bench.world.executed["openai"]


def test_too_many_rows_fail_the_job(bench: Bench) -> None:
    bench.world.settings["openai.max_rows"] = ROWS - 1
    job = bench.later(bench.create())
    assert (job.error_code, job.error_class) == ("too_many_tasks", "invalid_request")


def test_a_file_that_is_too_large_is_refused(bench: Bench) -> None:
    bench.world.settings["openai.max_bytes"] = 1_000
    with pytest.raises(Refused) as caught:
        bench.create()
    assert (caught.value.failure, bench.uploaded) == ("invalid_request", [])


def test_an_upload_that_arrived_in_part_is_not_used(bench: Bench) -> None:
    with pytest.raises(Refused) as caught:
        bench.client.create(replace(bench.job(), size=5))
    assert (caught.value.code, bench.uploaded) == ("upload_incomplete", [])


def test_a_parameter_that_the_endpoint_does_not_have_fails_the_row(bench: Bench) -> None:
    body = bench.body(0, parameters={"temprature": 0})
    job = bench.later(bench.client.create(bench.write(bench.lines_of([body]))))
    [line] = bench.lines(job, "error")
    assert (line.status_code, line.error_code) == (400, "unknown_parameter")


def test_enqueued_tokens_are_limited_until_running_jobs_end(bench: Bench) -> None:
    first = bench.later(bench.create(), VALIDATING)
    bench.world.settings["openai.enqueued_tokens"] = 300
    second = bench.later(bench.create(intent_id=f"{BATCH}-2"), VALIDATING)
    assert (second.outcome, second.error_class) == ("provider_failed", "capacity")
    assert bench.later(first).outcome == "completed"


def test_an_unknown_status_is_never_an_end(bench: Bench) -> None:
    bench.plant("job", "unknown_status", status="hibernating")
    job = bench.later(bench.create())
    assert (job.raw_status, job.phase, job.outcome) == ("hibernating", "unknown", None)


def test_a_job_may_be_missing_for_a_while_and_without_counts(bench: Bench) -> None:
    bench.plant("job", "not_found", times=1)
    job = bench.create()
    with pytest.raises(JobMissing):
        bench.client.retrieve(job.job_id)
    bench.plant("job", "no_counts")
    assert bench.later(job).outcome == "completed"
    assert bench.later(bench.create(intent_id=f"{BATCH}-2")).counts is None


@pytest.mark.parametrize(
    ("args", "error"),
    [
        pytest.param({"status": 429, "retry_after": 3}, Unavailable, id="429"),
        pytest.param({"status": 500}, Unavailable, id="500"),
        pytest.param({"status": 401}, Refused, id="401"),
    ],
)
def test_a_question_that_fails(
    bench: Bench, args: dict[str, Any], error: type[ProviderError]
) -> None:
    job = bench.create()
    bench.plant("retrieve", "status", **args)
    with pytest.raises(error) as caught:
        bench.client.retrieve(job.job_id)
    assert getattr(caught.value, "retry_after", None) == args.get("retry_after")
    assert bench.client.retrieve(job.job_id).job_id == job.job_id


@pytest.mark.parametrize("kind", ["stuck", "unknown_status"])
def test_a_job_that_does_not_move_can_be_cancelled(bench: Bench, kind: str) -> None:
    bench.plant("job", kind)
    job = bench.later(bench.create(), 2 * DAY)
    assert job.outcome is None
    bench.client.cancel(job.job_id)
    assert bench.later(job, CANCELLING).outcome == "cancelled"
    assert kind == "unknown_status" or not bench.world.executed["openai"]


def test_a_job_without_a_file_says_so_with_an_empty_text(bench: Bench) -> None:
    bench.world.settings["openai.empty_file_id"] = ""
    job = bench.later(bench.create())
    assert [file.kind for file in job.files] == ["output"]
    assert "" not in job.remote


# --- downloads ----------------------------------------------------------------------------------


def test_a_cut_download_is_resumed(bench: Bench) -> None:
    job = bench.later(bench.create())
    [file] = job.files
    whole = bench.data(job, file)
    bench.plant("download", "cut", bytes=500)
    got = b""
    with (
        pytest.raises(Unavailable),
        bench.client.open_file(job.job_id, file, 0) as download,
    ):
        assert download.length == len(whole)
        for block in download.blocks:
            got += block
    assert got == whole[: len(got)] and len(got) < len(whole)
    with bench.client.open_file(job.job_id, file, len(got)) as download:
        assert (download.offset, download.length) == (len(got), len(whole) - len(got))
        assert got + b"".join(download.blocks) == whole
    assert bench.data(job, file, len(whole)) == b""


def test_a_download_starts_again_where_ranges_are_not_honoured(bench: Bench) -> None:
    job = bench.later(bench.create())
    [file] = job.files
    whole = bench.data(job, file)
    bench.world.settings["openai.ranges"] = False
    with bench.client.open_file(job.job_id, file, 500) as download:
        assert (download.offset, download.length) == (0, len(whole))
        assert b"".join(download.blocks) == whole


def test_an_offset_behind_the_end_starts_again(bench: Bench) -> None:
    job = bench.later(bench.create())
    [file] = job.files
    whole = bench.data(job, file)
    with bench.client.open_file(job.job_id, file, len(whole) + 1) as download:
        assert (download.offset, b"".join(download.blocks)) == (0, whole)


@pytest.mark.parametrize("announce", ["full", "none"])
def test_a_file_that_ends_early_at_a_line_is_never_taken_for_whole(
    bench: Bench, announce: str
) -> None:
    job = bench.later(bench.create())
    [file] = job.files
    size = len(bench.data(job, file))
    bench.plant("download", "truncate_at_newline", bytes=size - 1, announce=announce)
    with bench.client.open_file(job.job_id, file, 0) as download:
        if announce == "full":
            with pytest.raises(Unavailable):
                b"".join(download.blocks)
        else:
            assert download.length is None
            got = b"".join(download.blocks)
            assert got.endswith(b"\n") and len(got) < size


@pytest.mark.parametrize("op", ["retrieve", "download"])
def test_what_the_caller_raises_while_a_file_is_open_stays_its_own(bench: Bench, op: str) -> None:
    job = bench.later(bench.create())
    with (
        pytest.raises(KeyError, match=op),
        bench.client.open_file(job.job_id, job.files[0], 0),
    ):
        raise KeyError(op)


def behind(answer: Callable[[httpx2.Request], httpx2.Response]) -> OpenAIBatchClient:
    """Return a client whose every request a function answers."""
    transport = httpx2.Client(transport=httpx2.MockTransport(answer))
    sdk = OpenAI(api_key="sk-x", base_url="http://sdk.test/v1", http_client=transport)
    return OpenAIBatchClient(sdk, RESPONSES)


def test_compression_is_declined_and_makes_the_length_unknown() -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        assert request.headers["accept-encoding"] == "identity"
        body = gzip.compress(b"line\n" * 100)
        return httpx2.Response(200, content=body, headers={"content-encoding": "gzip"})

    client = behind(answer)
    with client.open_file("b", RemoteFile("output", "f"), 0) as download:
        assert download.length is None
        assert b"".join(download.blocks) == b"line\n" * 100
    client.close()


@pytest.mark.parametrize("given", ["bytes 3-9/10", "bytes */10", ""])
def test_a_part_that_was_not_asked_for_is_not_taken(given: str) -> None:
    client = behind(lambda _: httpx2.Response(206, content=b"x", headers={"content-range": given}))
    with pytest.raises(Unavailable), client.open_file("b", RemoteFile("output", "f"), 5):
        pass
    client.close()


def test_a_list_without_an_end_is_given_up(bench: Bench) -> None:
    page = b'{"data":[{"id":"b","status":"validating"}],"has_more":true}'
    client = behind(lambda _: httpx2.Response(200, content=page))
    with pytest.raises(Unavailable, match="does not end"):
        client.find(bench.intent())
    client.close()


def test_results_are_gone_after_their_retention(bench: Bench) -> None:
    job = bench.later(bench.create())
    bench.world.clock.advance(30 * DAY)
    with pytest.raises(FileMissing), bench.client.open_file(job.job_id, job.files[0], 0):
        pass


# --- online, models, keys -----------------------------------------------------------------------


@pytest.mark.parametrize("endpoint", [RESPONSES, CHAT])
def test_an_online_answer_reads_like_a_batch_line(
    emulated: RunningEmulator, tmp_path: Path, endpoint: str
) -> None:
    bench = Bench(emulated, tmp_path, endpoint)
    online = bench.online(bench.body(0))
    assert (online.status, online.failure, online.ambiguous) == (200, None, False)
    assert online.request_id
    line = bench.wire.read_line(bench.wire.encode_reply(keys()[0], online))
    assert line == bench.lines(bench.later(bench.create()), "output")[0]
    bench.client.close()


@pytest.mark.parametrize(
    ("kind", "args", "expected"),
    [
        pytest.param(
            "status", {"status": 429, "retry_after": 4}, (429, "rate_limited", 4.0, False), id="429"
        ),
        pytest.param(
            "status",
            {"status": 429, "code": "insufficient_quota"},
            (429, "quota", None, False),
            id="quota",
        ),
        pytest.param("status", {"status": 500}, (500, "server_error", None, False), id="500"),
        pytest.param("status", {"status": 504}, (504, "server_error", None, True), id="504"),
        pytest.param("status", {"status": 401}, (401, "auth", None, False), id="401"),
        pytest.param("drop_after", {}, (0, "transport", None, True), id="lost"),
    ],
)
def test_an_online_call_that_fails(
    bench: Bench, kind: str, args: dict[str, Any], expected: tuple[Any, ...]
) -> None:
    bench.plant("answer", kind, **args)
    reply = bench.online(bench.body(0))
    assert (reply.status, reply.failure, reply.retry_after, reply.ambiguous) == expected
    assert bench.world.count_calls("openai", "answer") == 1


def test_an_online_call_without_a_server(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/openai/v1")
    reply = bench.online(bench.body(0))
    assert (reply.status, reply.failure, reply.ambiguous) == (0, "transport", False)


def test_a_model_that_is_not_offered(bench: Bench) -> None:
    with pytest.raises(ModelUnavailable, match="gpt-none"):
        bench.client.check_model("gpt-none")
    reply = bench.online(bench.body(0, model="gpt-none"))
    assert (reply.status, reply.failure) == (404, "unsupported")


def test_a_wrong_base_url_is_no_missing_model(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", f"{bench.world.base_url}/openai/v2")
    client = connect_batch(OPTIONS, RESPONSES)
    with pytest.raises(Refused, match="Invalid URL"):
        client.check_model(MODEL)
    client.close()


def test_an_online_answer_that_comes_too_late_may_have_been_paid(bench: Bench) -> None:
    bench.plant("answer", "delay", seconds=1.0)

    async def once() -> Reply:
        client = connect_online(ProviderOptions(timeout_seconds=0.3), RESPONSES)
        try:
            return await client.answer("k1", MODEL, bench.body(0))
        finally:
            await client.close()

    reply = asyncio.run(once())
    assert (reply.status, reply.failure, reply.ambiguous) == (0, "transport", True)


@pytest.mark.parametrize("key", ["sk-a b", "sk-a\n", "sk-ä"])
def test_a_key_that_cannot_be_sent_is_told_without_showing_it(
    emulated: RunningEmulator, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(CredentialsMissing) as caught:
        connect_online(OPTIONS, CHAT)
    assert key not in str(caught.value)


def test_a_missing_key_is_told(emulated: RunningEmulator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(CredentialsMissing, match="OPENAI_API_KEY"):
        connect_batch(OPTIONS, RESPONSES)


def test_no_key_stands_in_an_error(bench: Bench) -> None:
    bench.plant("create", "status", status=401, message=f"Incorrect API key: {OPENAI_KEY}")
    with pytest.raises(Refused) as caught:
        bench.create()
    assert OPENAI_KEY not in str(caught.value)
