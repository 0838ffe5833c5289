"""Bedrock's clients over the real SDK against the emulator."""

from __future__ import annotations

import asyncio
import functools
import http.client
import json
import os
import sys
import threading
import zlib
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.providers.bedrock import batch as batch_module
from resources.providers.bedrock.batch import BedrockBatch, connect_batch, token_of
from resources.providers.bedrock.online import BedrockOnline, connect_online
from resources.providers.bedrock.wire import BedrockWire
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
    SdkMissing,
    Unavailable,
    Unreachable,
    split_lines,
)
from tests.provider_emulator.aws_chunked import BrokenChunks, ChunkDecoder
from tests.provider_emulator.environment import AWS_KEY_ID, PLANTED_KEYS, ROLE_ARN, S3_URI
from tests.provider_emulator.faults import Fault
from tests.support.asks import make_ask, page_prompt, reference
from tests.support.emulator import RunningEmulator

MODEL = "anthropic.claude-haiku-4-5-20251001-v1:0"
BATCH = "0123456789ab"
WIRE = BedrockWire()
OPTIONS = ProviderOptions(20.0, ROLE_ARN, S3_URI)
ROWS = 6
VALIDATING, RUNNING, CANCELLING = 20, 600, 30


def ask(number: int, padding: str = "", **changes: Any) -> Ask:
    return make_ask(MODEL, page_prompt(number, padding), **changes)


def body(number: int, **changes: Any) -> bytes:
    return msgspec.json.encode(WIRE.body(ask(number, **changes)))


def record_ids(rows: int = ROWS) -> list[str]:
    return [f"{BATCH}-{number:05d}-1" for number in range(rows)]


@pytest.fixture(scope="module", autouse=True)
def sdk_data_read_once() -> Iterator[None]:
    """Read the SDK's descriptions of services once, not for each of some hundred clients."""
    from botocore.loaders import JSONFileLoader

    read = functools.cache(functools.partial(JSONFileLoader.load_file, JSONFileLoader()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(JSONFileLoader, "load_file", lambda _, path: read(path))
        yield


@pytest.fixture
def emulated(emulator: RunningEmulator, monkeypatch: pytest.MonkeyPatch) -> RunningEmulator:
    emulator.use(monkeypatch)
    emulator.world.settings["bedrock.min_rows"] = 1
    return emulator


@pytest.fixture
def client(emulated: RunningEmulator) -> Iterator[BedrockBatch]:
    connected = connect_batch(OPTIONS)
    yield connected
    connected.close()


@contextmanager
def other_account(monkeypatch: pytest.MonkeyPatch) -> Iterator[BedrockBatch]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAEMULATED00000002")
    connected = connect_batch(OPTIONS)
    yield connected
    connected.close()


def write_requests(folder: Path, rows: int = ROWS, padding: str = "") -> Path:
    path = folder / "requests.jsonl"
    lines = [
        WIRE.encode_request(record_id, body(number, padding=padding))
        for number, record_id in enumerate(record_ids(rows))
    ]
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return path


class Planned:
    """A job to create, and the references that were told on the way."""

    def __init__(
        self,
        emulated: RunningEmulator,
        path: Path,
        *,
        number: int = 1,
        rows: int = ROWS,
        model: str = MODEL,
        input_ref: str | None = None,
        window_hours: int = 24,
    ) -> None:
        self.uploaded: list[str] = []
        self.intent = Intent(
            f"{BATCH}-{number}", BATCH, model, rows, emulated.world.clock.now(), input_ref
        )
        self.job = NewJob(
            self.intent, path, path.stat().st_size, window_hours, self.uploaded.append
        )


def plant(emulated: RunningEmulator, op: str, kind: str, **more: Any) -> None:
    times = more.pop("times", 1)
    after = more.pop("after", 0)
    emulated.world.faults.add(Fault("bedrock", op, kind, times, after, more))


def ended(emulated: RunningEmulator, client: BedrockBatch, job: Job) -> Job:
    emulated.world.clock.advance(VALIDATING + RUNNING + 1)
    return client.retrieve(job.job_id)


def created(
    emulated: RunningEmulator, client: BedrockBatch, folder: Path, **more: Any
) -> tuple[Planned, Job]:
    rows = more.get("rows", ROWS)
    planned = Planned(emulated, write_requests(folder, rows), **more)
    return planned, client.create(planned.job)


def download(client: BedrockBatch, job: Job, file: RemoteFile, offset: int = 0) -> bytes:
    with client.open_file(job.job_id, file, offset) as opened:
        return b"".join(opened.blocks)


def results(client: BedrockBatch, job: Job, folder: Path) -> list[ResultLine]:
    lines = []
    for file in job.files:
        path = folder / "results.jsonl"
        path.write_bytes(download(client, job, file))
        with path.open("rb") as stream:
            lines += [WIRE.read_line(line.data) for line in split_lines(stream, 1000)]
    return lines


# The happy path


def test_batch_from_upload_to_deletion(
    emulated: RunningEmulator, client: BedrockBatch, tmp_path: Path
) -> None:
    world = emulated.world
    planned, job = created(emulated, client, tmp_path)
    input_uri = f"{S3_URI}/in/{BATCH}-1.jsonl"
    assert planned.uploaded == [input_uri]
    assert world.jobs_created["bedrock"] == [job.job_id]
    assert (job.raw_status, job.phase, job.files) == ("Submitted", "validating", ())

    seen = []
    for step in (0, 11, 10, 100, 500):
        world.clock.advance(step)
        job = client.retrieve(job.job_id)
        seen.append((job.raw_status, job.phase, job.outcome, len(job.files)))
    assert seen == [
        ("Submitted", "validating", None, 0),
        ("Validating", "validating", None, 0),
        ("Scheduled", "queued", None, 0),
        ("InProgress", "running", None, 0),
        ("Completed", "ended", "completed", 1),
    ]
    assert job.counts == Counts(ROWS, ROWS, 0, 0)
    assert job.created_at is not None
    assert job.expires_at == job.created_at + timedelta(hours=24)

    (file,) = job.files
    short_id = job.job_id.rpartition("/")[2]
    folder = f"{S3_URI}/out/{BATCH}-1/{short_id}"
    assert file.ref == f"{folder}/{BATCH}-1.jsonl.out"
    assert job.remote == (input_uri, file.ref, f"{folder}/manifest.json.out")
    data = download(client, job, file)
    assert file.size == len(data)

    lines = results(client, job, tmp_path)
    answers = {line.custom_id: line for line in lines}
    assert sorted(map(str, answers)) == record_ids()
    assert len(lines) == ROWS
    for number, record_id in enumerate(record_ids()):
        line = answers[record_id]
        assert (line.status_code, line.finish_reason) == (200, "stop")
        assert json.loads(line.text or "")["document"] == reference(number)
        assert line.input_tokens
        assert line.output_tokens
    assert dict(world.executed["bedrock"]) == dict.fromkeys(record_ids(), 1)

    client.delete(job.job_id, job.remote)
    client.delete(job.job_id, job.remote)
    assert client.retrieve(job.job_id).files == ()
    with pytest.raises(FileMissing, match="NoSuchKey"):
        download(client, job, file)


def test_job_is_created_as_asked(
    emulated: RunningEmulator, client: BedrockBatch, tmp_path: Path
) -> None:
    _, job = created(emulated, client, tmp_path, window_hours=72)
    request = emulated.world.state["bedrock"].find(AWS_KEY_ID, job.job_id).request
    assert request == {
        "jobName": f"tallybook-{BATCH}-1",
        "clientRequestToken": f"tallybook-{BATCH}-1",
        "roleArn": ROLE_ARN,
        "modelId": MODEL,
        "modelInvocationType": "Converse",
        "inputDataConfig": {
            "s3InputDataConfig": {
                "s3InputFormat": "JSONL",
                "s3Uri": f"{S3_URI}/in/{BATCH}-1.jsonl",
            }
        },
        "outputDataConfig": {"s3OutputDataConfig": {"s3Uri": f"{S3_URI}/out/{BATCH}-1/"}},
        "timeoutDurationInHours": 72,
    }


def test_output_is_in_another_order(
    emulated: RunningEmulator, client: BedrockBatch, tmp_path: Path
) -> None:
    _, job = created(emulated, client, tmp_path, rows=30)
    ids = [line.custom_id for line in results(client, ended(emulated, client, job), tmp_path)]
    assert sorted(map(str, ids)) == record_ids(30)
    assert ids != record_ids(30)


def test_every_page_of_an_output_listing_is_read(
    emulated: RunningEmulator, client: BedrockBatch, tmp_path: Path
) -> None:
    emulated.world.settings["s3.max_list_keys"] = 1
    _, job = created(emulated, client, tmp_path)
    job = ended(emulated, client, job)
    assert len(job.files) == 1
    assert len(job.remote) == 3


def test_large_input_goes_up_in_parts(
    emulated: RunningEmulator, client: BedrockBatch, tmp_path: Path
) -> None:
    path = write_requests(tmp_path, ROWS, padding="x" * 3_000_000)
    planned = Planned(emulated, path)
    job = client.create(planned.job)
    parts = [call.facts["part"] for call in emulated.world.calls if "part" in call.facts]
    assert sorted(parts) == [1, 2, 3]
    key = f"batches/in/{BATCH}-1.jsonl"
    stored = emulated.world.state["bedrock"].store.find(AWS_KEY_ID, "tallybook-emulated", key)
    assert stored.path.read_bytes() == path.read_bytes()
    assert ended(emulated, client, job).counts == Counts(ROWS, ROWS, 0, 0)


# Creating safely


def test_dropped_answer_of_create_is_found_and_repeated_without_a_second_job(
    emulated: RunningEmulator, client: BedrockBatch, tmp_path: Path
) -> None:
    world = emulated.world
    plant(emulated, "create", "drop_after")
    planned = Planned(emulated, write_requests(tmp_path))
    with pytest.raises(Ambiguous):
        client.create(planned.job)
    assert len(world.jobs_created["bedrock"]) == 1

    found = client.find(planned.intent)
    assert [job.job_id for job in found.jobs] == world.jobs_created["bedrock"]
    assert (found.maybe, found.complete) == ((), True)

    again = Planned(emulated, planned.job.request_file, input_ref=planned.uploaded[0])
    assert client.create(again.job).job_id == found.jobs[0].job_id
    assert again.uploaded == []
    assert world.count_calls("bedrock", "upload") == 1
    assert len(world.jobs_created["bedrock"]) == 1


def test_found_job_that_ended_has_its_files(
    emulated: RunningEmulator, client: BedrockBatch, tmp_path: Path
) -> None:
    planned, job = created(emulated, client, tmp_path)
    job = ended(emulated, client, job)
    assert client.find(planned.intent).jobs == (job,)


def test_dropped_call_of_create_leaves_no_job(
    emulated: RunningEmulator, client: BedrockBatch, tmp_path: Path
) -> None:
    plant(emulated, "create", "drop_before")
    planned = Planned(emulated, write_requests(tmp_path))
    with pytest.raises(Ambiguous):
        client.create(planned.job)
    found = client.find(planned.intent)
    assert (found.jobs, found.maybe, found.complete) == ((), (), True)


def test_late_answer_of_create_is_ambiguous(emulated: RunningEmulator, tmp_path: Path) -> None:
    client = connect_batch(ProviderOptions(0.3, ROLE_ARN, S3_URI))
    plant(emulated, "create", "delay", seconds=1.0)
    planned = Planned(emulated, write_requests(tmp_path))
    with pytest.raises(Ambiguous, match="ReadTimeoutError"):
        client.create(planned.job)
    client.close()
    assert emulated.world.count_calls("bedrock", "create") == 1


def test_token_with_other_parameters_is_ambiguous_since_there_is_a_job(
    emulated: RunningEmulator, client: BedrockBatch, tmp_path: Path
) -> None:
    planned, job = created(emulated, client, tmp_path)
    changed = Planned(
        emulated, planned.job.request_file, input_ref=planned.uploaded[0], window_hours=48
    )
    with pytest.raises(Ambiguous, match="ConflictException"):
        client.create(changed.job)
    assert [one.job_id for one in client.find(changed.intent).jobs] == [job.job_id]


def test_search_shows_an_unlisted_job_only_later(
    emulated: RunningEmulator, client: BedrockBatch, tmp_path: Path
) -> None:
    plant(emulated, "job", "unlisted", seconds=60)
    planned, _ = created(emulated, client, tmp_path)
    assert client.find(planned.intent).jobs == ()
    emulated.world.clock.advance(61)
    assert len(client.find(planned.intent).jobs) == 1


def test_search_reads_every_page_and_takes_no_other_batch(
    emulated: RunningEmulator,
    client: BedrockBatch,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(batch_module, "PAGE_SIZE", 2)
    planned, first = created(emulated, client, tmp_path, number=1)
    mine = [first.job_id]
    for number in range(2, 6):
        emulated.world.clock.advance(1)
        mine.append(created(emulated, client, tmp_path, number=number)[1].job_id)
    assert [job.job_id for job in client.find(planned.intent).jobs] == mine
    assert emulated.world.count_calls("bedrock", "list") == 3
    other = Intent("ba9876543210-1", "ba9876543210", MODEL, 1, planned.intent.recorded_at)
    assert client.find(other).jobs == ()
    later = Intent("x-1", BATCH, MODEL, 1, planned.intent.recorded_at + timedelta(minutes=16))
    assert client.find(later).jobs == ()


def test_search_that_loses_a_page_proves_nothing(
    emulated: RunningEmulator,
    client: BedrockBatch,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(batch_module, "PAGE_SIZE", 1)
    created(emulated, client, tmp_path, number=1)
    planned, _ = created(emulated, client, tmp_path, number=2)
    plant(emulated, "list", "status", after=1, status=503)
    with pytest.raises(Unavailable):
        client.find(planned.intent)


def test_another_account_sees_nothing(
    emulated: RunningEmulator,
    client: BedrockBatch,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    planned, job = created(emulated, client, tmp_path)
    with other_account(monkeypatch) as other:
        assert other.account() != client.account()
        assert other.find(planned.intent).jobs == ()
        with pytest.raises(JobMissing):
            other.retrieve(job.job_id)
        with pytest.raises(JobMissing):
            other.cancel(job.job_id)


def test_on_uploaded_that_raises_ends_the_call(
    emulated: RunningEmulator, client: BedrockBatch, tmp_path: Path
) -> None:
    def refuse(_: str) -> None:
        raise RuntimeError("the ledger is gone")

    planned = Planned(emulated, write_requests(tmp_path))
    job = NewJob(planned.intent, planned.job.request_file, 1, 24, refuse)
    with pytest.raises(RuntimeError, match="the ledger is gone"):
        client.create(job)
    assert emulated.world.count_calls("bedrock", "create") == 0


REFUSALS = [
    pytest.param("upload", {"kind": "drop_before"}, "transport", id="upload dropped"),
    pytest.param("upload", {"status": 503}, "overloaded", id="upload 503"),
    pytest.param("upload", {"status": 403}, "auth", id="upload forbidden"),
    pytest.param("create", {"status": 400}, "invalid_request", id="400"),
    pytest.param("create", {"status": 403}, "auth", id="403"),
    pytest.param("create", {"status": 429, "retry_after": 9}, "rate_limited", id="429"),
    pytest.param(
        "create",
        {"status": 400, "code": "ServiceQuotaExceededException"},
        "capacity",
        id="quota",
    ),
]


@pytest.mark.parametrize(("op", "fault", "failure"), REFUSALS)
def test_refused_creation_is_told_once(
    emulated: RunningEmulator,
    client: BedrockBatch,
    tmp_path: Path,
    op: str,
    fault: dict[str, Any],
    failure: str,
) -> None:
    plant(emulated, op, **{"kind": "status", "times": None, **fault})
    planned = Planned(emulated, write_requests(tmp_path))
    with pytest.raises(Refused) as caught:
        client.create(planned.job)
    assert caught.value.failure == failure
    assert caught.value.retry_after == fault.get("retry_after")
    assert emulated.world.count_calls("bedrock", op) == 1
    assert not emulated.world.jobs_created["bedrock"]
    assert not any(key in str(caught.value) for key in PLANTED_KEYS)


@pytest.mark.parametrize("status", [500, 502, 503])
def test_create_that_ends_in_5xx_is_ambiguous_and_not_repeated(
    emulated: RunningEmulator, client: BedrockBatch, tmp_path: Path, status: int
) -> None:
    plant(emulated, "create", "status", times=None, status=status)
    with pytest.raises(Ambiguous):
        client.create(Planned(emulated, write_requests(tmp_path)).job)
    assert emulated.world.count_calls("bedrock", "create") == 1


def test_no_connection_is_unreachable(
    emulated: RunningEmulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("BEDROCK", "S3"):
        monkeypatch.setenv(f"AWS_ENDPOINT_URL_{name}", "http://127.0.0.1:9")
    client = connect_batch(OPTIONS)
    planned = Planned(emulated, write_requests(tmp_path))
    uploaded = Planned(emulated, planned.job.request_file, input_ref=f"{S3_URI}/in/a.jsonl")
    for call in (
        lambda: client.create(planned.job),
        lambda: client.create(uploaded.job),
        lambda: client.find(planned.intent),
        lambda: client.retrieve("abcdefghijkl"),
        lambda: client.check_model(MODEL),
    ):
        with pytest.raises(Unreachable):
            call()
    client.close()


def test_part_of_a_large_upload_that_breaks_off_is_told(
    emulated: RunningEmulator, client: BedrockBatch, tmp_path: Path
) -> None:
    plant(emulated, "upload", "drop_before", match={"part": 2})
    planned = Planned(emulated, write_requests(tmp_path, 3, padding="x" * 5_000_000), rows=3)
    with pytest.raises(Refused, match="no job was created") as caught:
        client.create(planned.job)
    assert caught.value.failure == "transport"
    assert planned.uploaded == []
    assert not emulated.world.state["bedrock"].store.uploads  # the SDK gave its parts up


def test_missing_bucket_is_told(
    emulated: RunningEmulator, client: BedrockBatch, tmp_path: Path
) -> None:
    emulated.world.settings["s3.missing_buckets"] = ["tallybook-emulated"]
    with pytest.raises(Refused, match="bedrock_s3_uri"):
        client.create(Planned(emulated, write_requests(tmp_path)).job)


def test_too_many_jobs_are_a_matter_of_capacity(
    emulated: RunningEmulator, client: BedrockBatch, tmp_path: Path
) -> None:
    emulated.world.settings["bedrock.jobs_in_flight"] = 1
    _, job = created(emulated, client, tmp_path, number=1)
    with pytest.raises(Refused) as caught:
        created(emulated, client, tmp_path, number=2)
    assert caught.value.failure == "capacity"
    ended(emulated, client, job)
    created(emulated, client, tmp_path, number=2)


# Models


@pytest.mark.parametrize("model", [MODEL, f"us.{MODEL}", "amazon.nova-lite-v1:0"])
def test_known_models_pass(client: BedrockBatch, model: str) -> None:
    client.check_model(model)


def test_unknown_model(emulated: RunningEmulator, client: BedrockBatch, tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match=r"'acme\.unheard-of-v1'"):
        client.check_model("acme.unheard-of-v1")
    with pytest.raises(Refused) as caught:
        created(emulated, client, tmp_path, model="acme.unheard-of-v1")
    assert caught.value.failure == "unsupported"


def test_models_of_ones_own_are_not_asked_for(
    emulated: RunningEmulator, client: BedrockBatch
) -> None:
    client.check_model("arn:aws:bedrock:us-east-1:123456789012:custom-model/a.b/abcdefghijkl")
    assert emulated.world.count_calls("bedrock", "models") == 0


def test_no_permission_to_ask_for_a_model_proves_nothing(
    emulated: RunningEmulator, client: BedrockBatch
) -> None:
    plant(emulated, "models", "status", status=403)
    client.check_model("acme.unheard-of-v1")


def test_model_that_cannot_be_asked_for_now(
    emulated: RunningEmulator, client: BedrockBatch
) -> None:
    plant(emulated, "models", "status", status=500)
    with pytest.raises(Unavailable):
        client.check_model(MODEL)


# How jobs end


def test_cancelled_job_keeps_what_was_done(
    emulated: RunningEmulator, client: BedrockBatch, tmp_path: Path
) -> None:
    _, job = created(emulated, client, tmp_path)
    emulated.world.clock.advance(VALIDATING + RUNNING / 2)
    assert client.retrieve(job.job_id).phase == "running"
    client.cancel(job.job_id)
    client.cancel(job.job_id)
    assert client.retrieve(job.job_id).phase == "cancelling"
    emulated.world.clock.advance(CANCELLING)
    job = client.retrieve(job.job_id)
    assert (job.raw_status, job.phase, job.outcome) == ("Stopped", "ended", "cancelled")
    assert job.counts == Counts(ROWS, ROWS // 2, 0, ROWS // 2)
    assert len(results(client, job, tmp_path)) == ROWS // 2
    client.cancel(job.job_id)


def test_job_that_was_cancelled_before_it_was_read_has_no_files(
    emulated: RunningEmulator, client: BedrockBatch, tmp_path: Path
) -> None:
    _, job = created(emulated, client, tmp_path)
    client.cancel(job.job_id)
    emulated.world.clock.advance(CANCELLING)
    job = client.retrieve(job.job_id)
    assert (job.outcome, job.files) == ("cancelled", ())


def test_job_whose_window_ends_keeps_what_was_done(
    emulated: RunningEmulator, client: BedrockBatch, tmp_path: Path
) -> None:
    emulated.world.timing.running_seconds = 48 * 3600
    _, job = created(emulated, client, tmp_path)
    emulated.world.clock.advance(24 * 3600 + 1)
    job = client.retrieve(job.job_id)
    assert (job.raw_status, job.outcome) == ("PartiallyCompleted", "expired")
    assert len(results(client, job, tmp_path)) == ROWS // 2


@pytest.mark.parametrize(
    ("fault", "raw_status", "outcome", "rows"),
    [
        pytest.param(("expired", {"done": 0.5}), "PartiallyCompleted", "expired", 3, id="expired"),
        pytest.param(("expired", {"done": 0}), "Expired", "expired", 0, id="never started"),
        pytest.param(("cancelled", {"done": 1 / 3}), "Stopped", "cancelled", 2, id="cancelled"),
        pytest.param(("no_counts", {}), "Completed", "completed", 6, id="no counts"),
    ],
)
def test_early_ends(
    emulated: RunningEmulator,
    client: BedrockBatch,
    tmp_path: Path,
    fault: tuple[str, dict[str, Any]],
    raw_status: str,
    outcome: str,
    rows: int,
) -> None:
    plant(emulated, "job", fault[0], **fault[1])
    _, job = created(emulated, client, tmp_path)
    job = ended(emulated, client, job)
    assert (job.raw_status, job.phase, job.outcome) == (raw_status, "ended", outcome)
    assert len(results(client, job, tmp_path)) == rows
    assert (job.counts is None) == (fault[0] == "no_counts")
    assert sum(emulated.world.executed["bedrock"].values()) == rows


def test_too_few_rows_fail_the_whole_job(
    emulated: RunningEmulator, client: BedrockBatch, tmp_path: Path
) -> None:
    del emulated.world.settings["bedrock.min_rows"]
    _, job = created(emulated, client, tmp_path, rows=99)
    job = ended(emulated, client, job)
    assert (job.raw_status, job.phase, job.outcome) == ("Failed", "ended", "provider_failed")
    assert (job.error_class, job.files) == ("invalid_request", ())
    assert "99" in (job.error_note or "")
    assert not emulated.world.executed["bedrock"]


def test_as_many_rows_as_needed_pass(
    emulated: RunningEmulator, client: BedrockBatch, tmp_path: Path
) -> None:
    del emulated.world.settings["bedrock.min_rows"]
    _, job = created(emulated, client, tmp_path, rows=100)
    assert ended(emulated, client, job).counts == Counts(100, 100, 0, 0)


@pytest.mark.parametrize(
    ("setting", "value", "note"),
    [
        ("bedrock.max_rows", ROWS - 1, "more records"),
        ("bedrock.max_file_bytes", 100, "exceeds the maximum size"),
        ("bedrock.max_job_bytes", 100, "exceed the maximum size"),
    ],
)
def test_too_large_inputs_fail_the_whole_job(
    emulated: RunningEmulator,
    client: BedrockBatch,
    tmp_path: Path,
    setting: str,
    value: int,
    note: str,
) -> None:
    emulated.world.settings[setting] = value
    _, job = created(emulated, client, tmp_path)
    job = ended(emulated, client, job)
    assert job.outcome == "provider_failed"
    assert note in (job.error_note or "")


def test_broken_line_fails_the_whole_job(
    emulated: RunningEmulator, client: BedrockBatch, tmp_path: Path
) -> None:
    path = write_requests(tmp_path)
    path.write_bytes(path.read_bytes() + b'{"recordId":"cut')
    job = ended(emulated, client, client.create(Planned(emulated, path).job))
    assert (job.outcome, job.error_class) == ("provider_failed", "invalid_request")


@pytest.mark.parametrize(
    ("message", "error_class"),
    [
        ("An internal error happened. Try again.", "server_error"),
        ("The role lacks permission to read the input.", "auth"),
        ("Your account's quota for this model is used up.", "capacity"),
    ],
)
def test_failed_jobs_tell_why(
    emulated: RunningEmulator,
    client: BedrockBatch,
    tmp_path: Path,
    message: str,
    error_class: str,
) -> None:
    plant(emulated, "job", "failed", message=message)
    _, job = created(emulated, client, tmp_path)
    job = ended(emulated, client, job)
    assert (job.error_class, job.error_note) == (error_class, message)


def test_status_of_no_table_is_unknown(
    emulated: RunningEmulator, client: BedrockBatch, tmp_path: Path
) -> None:
    plant(emulated, "job", "unknown_status", status="Hibernating")
    _, job = created(emulated, client, tmp_path)
    job = ended(emulated, client, job)
    assert (job.raw_status, job.phase, job.outcome) == ("Hibernating", "unknown", None)
    assert job.files == ()


def test_stuck_job_never_moves_and_can_be_cancelled(
    emulated: RunningEmulator, client: BedrockBatch, tmp_path: Path
) -> None:
    plant(emulated, "job", "stuck")
    _, job = created(emulated, client, tmp_path)
    emulated.world.clock.advance(10 * 24 * 3600)
    assert client.retrieve(job.job_id).raw_status == "Submitted"
    client.cancel(job.job_id)
    emulated.world.clock.advance(CANCELLING)
    assert client.retrieve(job.job_id).outcome == "cancelled"


def test_job_that_is_not_found_for_a_while(
    emulated: RunningEmulator, client: BedrockBatch, tmp_path: Path
) -> None:
    plant(emulated, "job", "not_found", times=1)
    _, job = created(emulated, client, tmp_path)
    with pytest.raises(JobMissing):
        client.retrieve(job.job_id)
    assert client.retrieve(job.job_id).phase == "validating"


# Calls that fail


@pytest.mark.parametrize(
    ("fault", "error", "retry_after"),
    [
        pytest.param(("status", {"status": 429, "retry_after": 5}), Unavailable, 5, id="429"),
        pytest.param(("status", {"status": 500}), Unavailable, None, id="500"),
        pytest.param(("status", {"status": 503}), Unavailable, None, id="503"),
        pytest.param(("status", {"status": 403}), Refused, None, id="403"),
        pytest.param(("drop_before", {}), Unavailable, None, id="dropped"),
        pytest.param(("drop_after", {}), Unavailable, None, id="answer dropped"),
    ],
)
def test_failed_reads(
    emulated: RunningEmulator,
    client: BedrockBatch,
    tmp_path: Path,
    fault: tuple[str, dict[str, Any]],
    error: type[ProviderError],
    retry_after: float | None,
) -> None:
    planned, job = created(emulated, client, tmp_path)
    for op, call in (
        ("retrieve", lambda: client.retrieve(job.job_id)),
        ("list", lambda: client.find(planned.intent)),
        ("cancel", lambda: client.cancel(job.job_id)),
        ("delete", lambda: client.delete(job.job_id, (f"{S3_URI}/in/x.jsonl",))),
    ):
        before = emulated.world.count_calls("bedrock", op)
        plant(emulated, op, fault[0], **fault[1])
        with pytest.raises(error) as caught:
            call()
        assert getattr(caught.value, "retry_after", None) == retry_after
        assert emulated.world.count_calls("bedrock", op) == before + 1


def test_output_listing_that_fails_is_not_an_empty_output(
    emulated: RunningEmulator, client: BedrockBatch, tmp_path: Path
) -> None:
    _, job = created(emulated, client, tmp_path)
    plant(emulated, "file", "status", status=503)
    with pytest.raises(Unavailable):
        ended(emulated, client, job)
    assert len(client.retrieve(job.job_id).files) == 1


# Downloads


@pytest.fixture
def finished(emulated: RunningEmulator, client: BedrockBatch, tmp_path: Path) -> Job:
    _, job = created(emulated, client, tmp_path)
    return ended(emulated, client, job)


@pytest.mark.parametrize("kept", [0, 1, 5000])
def test_cut_download_is_noticed_and_resumed(
    emulated: RunningEmulator, client: BedrockBatch, finished: Job, kept: int
) -> None:
    (file,) = finished.files
    whole = download(client, finished, file)
    plant(emulated, "download", "cut", bytes=kept)
    got = b""
    with client.open_file(finished.job_id, file, 0) as opened:
        assert (opened.offset, opened.length) == (0, len(whole))
        with pytest.raises(Unavailable):
            for block in opened.blocks:
                got += block
    assert got == whole[: len(got)]
    assert len(got) <= kept
    with client.open_file(finished.job_id, file, len(got)) as opened:
        assert (opened.offset, opened.length) == (len(got), len(whole) - len(got))
        assert got + b"".join(opened.blocks) == whole


def test_download_without_length_shows_in_the_listed_size(
    emulated: RunningEmulator, client: BedrockBatch, finished: Job
) -> None:
    (file,) = finished.files
    plant(emulated, "download", "truncate_at_newline", announce="none")
    with client.open_file(finished.job_id, file, 0) as opened:
        assert opened.length is None
        assert len(b"".join(opened.blocks)) < (file.size or 0)


def test_offsets_at_and_behind_the_end(client: BedrockBatch, finished: Job) -> None:
    (file,) = finished.files
    size = file.size or 0
    with client.open_file(finished.job_id, file, size) as opened:
        assert (opened.offset, opened.length, b"".join(opened.blocks)) == (size, 0, b"")
    with client.open_file(finished.job_id, file, size + 1) as opened:
        assert (opened.offset, opened.length) == (0, size)
        assert len(b"".join(opened.blocks)) == size


@pytest.mark.parametrize(
    ("status", "error"), [(404, FileMissing), (403, Refused), (503, Unavailable)]
)
def test_refused_downloads(
    emulated: RunningEmulator,
    client: BedrockBatch,
    finished: Job,
    status: int,
    error: type[ProviderError],
) -> None:
    plant(emulated, "download", "status", status=status)
    with pytest.raises(error):
        download(client, finished, finished.files[0])


def test_block_that_is_late_is_unavailable(emulated: RunningEmulator, finished: Job) -> None:
    client = connect_batch(ProviderOptions(0.3, ROLE_ARN, S3_URI))
    plant(emulated, "download", "delay", seconds=1.0)
    with pytest.raises(Unavailable, match="ReadTimeoutError"):
        download(client, finished, finished.files[0])
    client.close()


def test_changed_upload_is_refused_by_its_checksum(emulated: RunningEmulator) -> None:
    assert put_chunked(emulated, b"some text", checksum_of=b"other text") == 400
    assert put_chunked(emulated, b"some text", checksum_of=b"some text") == 200


def put_chunked(emulated: RunningEmulator, data: bytes, checksum_of: bytes) -> int:
    checksum = b64encode(zlib.crc32(checksum_of).to_bytes(4, "big")).decode()
    half = len(data) // 2
    pieces = [f"{len(one):x}\r\n".encode() + one + b"\r\n" for one in (data[:half], data[half:])]
    coded = b"".join(pieces) + f"0\r\nx-amz-checksum-crc32:{checksum}\r\n\r\n".encode()
    connection = http.client.HTTPConnection(urlsplit(emulated.base_url).netloc, timeout=10)
    scope = "20261130/us-east-1/s3/aws4_request"
    headers = {
        "Authorization": f"AWS4-HMAC-SHA256 Credential={AWS_KEY_ID}/{scope}, Signature=0",
        "Content-Encoding": "aws-chunked",
        "x-amz-content-sha256": "STREAMING-UNSIGNED-PAYLOAD-TRAILER",
        "x-amz-trailer": "x-amz-checksum-crc32",
        "x-amz-decoded-content-length": str(len(data)),
    }
    connection.request("PUT", "/s3/bucket/key", coded, headers)
    status = connection.getresponse().status
    connection.close()
    stored = emulated.world.state["bedrock"].store.find(AWS_KEY_ID, "bucket", "key")
    assert stored is None or stored.path.read_bytes() == data
    return status


@given(
    chunks=st.lists(st.binary(min_size=1, max_size=40), max_size=5),
    cuts=st.lists(st.integers(1, 30), max_size=30),
    signed=st.booleans(),
)
def test_chunked_body_comes_apart_wherever_it_is_cut(
    chunks: list[bytes], cuts: list[int], signed: bool
) -> None:
    mark = b";chunk-signature=ab" if signed else b""
    coded = b"".join(b"%x%b\r\n%b\r\n" % (len(one), mark, one) for one in chunks)
    coded += b"0%b\r\nx-a:1\r\nx-b: 2\r\n\r\n" % mark
    decoder, payload = ChunkDecoder(), b""
    for cut in cuts:
        payload += decoder.feed(coded[:cut])
        coded = coded[cut:]
    payload += decoder.feed(coded)
    assert payload == b"".join(chunks)
    assert (decoder.finished, decoder.trailers) == (True, {"x-a": "1", "x-b": "2"})


@pytest.mark.parametrize("coded", [b"zz\r\nabc", b"1\r\nabc\r\n"])
def test_broken_chunks_are_refused(coded: bytes) -> None:
    with pytest.raises(BrokenChunks):
        ChunkDecoder().feed(coded)


# Rows


@pytest.mark.parametrize(
    ("kind", "args", "status", "finish", "json_ok"),
    [
        ("error", {"status": 400}, 400, None, False),
        ("error", {"status": 429}, 429, None, False),
        ("error", {"status": 503}, 503, None, False),
        ("status_zero", {}, 0, None, False),
        ("truncated", {}, 200, "truncated", False),
        ("repetition", {}, 200, "truncated", False),
        ("refused", {}, 200, "refused", False),
        ("filtered", {}, 200, "filtered", False),
        ("prose", {}, 200, "stop", False),
        ("null_values", {}, 200, "stop", True),
        ("no_finish", {}, 200, "unknown", True),
        ("raw_u2028", {}, 200, "stop", True),
    ],
)
def test_rows_that_go_wrong(
    emulated: RunningEmulator,
    client: BedrockBatch,
    tmp_path: Path,
    kind: str,
    args: dict[str, Any],
    status: int,
    finish: str | None,
    json_ok: bool,
) -> None:
    bad = record_ids()[2]
    plant(emulated, "row", kind, match={"custom_id": bad}, **args)
    _, job = created(emulated, client, tmp_path)
    lines = {
        line.custom_id: line for line in results(client, ended(emulated, client, job), tmp_path)
    }
    assert sorted(map(str, lines)) == record_ids()
    line = lines[bad]
    assert (line.status_code, line.finish_reason) == (status, finish)
    assert is_json(line.text) == json_ok
    assert sum(one.finish_reason == "stop" for one in lines.values()) >= ROWS - 1
    paid = emulated.world.executed["bedrock"][bad]
    assert paid == (1 if status == 200 else 0)


def is_json(text: str | None) -> bool:
    try:
        json.loads(text or "")
    except ValueError:
        return False
    return True


def test_row_that_is_not_run_is_missing(
    emulated: RunningEmulator, client: BedrockBatch, tmp_path: Path
) -> None:
    plant(emulated, "row", "not_executed", match={"index": 1})
    _, job = created(emulated, client, tmp_path)
    job = ended(emulated, client, job)
    ids = {line.custom_id for line in results(client, job, tmp_path)}
    assert set(record_ids()) - ids == {record_ids()[1]}
    assert job.outcome == "completed"


def test_all_rows_may_fail_in_a_completed_job(
    emulated: RunningEmulator, client: BedrockBatch, tmp_path: Path
) -> None:
    plant(emulated, "job", "all_failed", status=400, message="no")
    _, job = created(emulated, client, tmp_path)
    job = ended(emulated, client, job)
    assert (job.outcome, job.counts) == ("completed", Counts(ROWS, 0, ROWS, 0))
    lines = results(client, job, tmp_path)
    assert [(line.status_code, line.text) for line in lines] == [(400, None)] * ROWS


def row_of(tmp_path: Path, data: dict[str, Any]) -> Path:
    path = tmp_path / "requests.jsonl"
    path.write_bytes(WIRE.encode_request(record_ids()[0], msgspec.json.encode(data)) + b"\n")
    return path


def changed(**changes: Any) -> dict[str, Any]:
    return {**WIRE.body(ask(0)), **changes}


def with_schema(schema: dict[str, Any]) -> dict[str, Any]:
    text = {
        "type": "json_schema",
        "structure": {"jsonSchema": {"name": "a", "schema": json.dumps(schema)}},
    }
    return changed(outputConfig={"textFormat": text})


BAD_BODIES = [
    pytest.param(WIRE.broken_body(ask(0)), id="the canary's broken body"),
    pytest.param(changed(modelId=MODEL), id="modelId inside"),
    pytest.param(changed(inferenceConfig={"maxTokens": 0}), id="no tokens"),
    pytest.param(changed(inferenceConfig={"maxTokens": 100_000}), id="too many tokens"),
    pytest.param(changed(inferenceConfig={"temperature": 2}), id="temperature"),
    pytest.param(changed(messages=[{"role": "user", "content": [{"text": " "}]}]), id="blank"),
    pytest.param(
        changed(messages=[{"role": "assistant", "content": [{"text": "a"}]}]), id="wrong role"
    ),
    pytest.param(with_schema({"type": "object", "properties": {}}), id="open object"),
    pytest.param(
        with_schema({"type": "array", "items": {"type": "string", "maxLength": 3}}), id="keyword"
    ),
    pytest.param(
        with_schema({"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}]}}}),
        id="recursion",
    ),
    pytest.param(with_schema({"$ref": "#/$defs/a"}), id="lost reference"),
]


@pytest.mark.parametrize("data", BAD_BODIES)
def test_bad_bodies_fail_their_row_or_their_call(
    emulated: RunningEmulator, client: BedrockBatch, tmp_path: Path, data: dict[str, Any]
) -> None:
    job = client.create(Planned(emulated, row_of(tmp_path, data), rows=1).job)
    job = ended(emulated, client, job)
    assert job.counts == Counts(1, 0, 1, 0)
    (line,) = results(client, job, tmp_path)
    assert (line.status_code, line.error_code) == (400, "400")
    (reply,) = answers([(MODEL, msgspec.json.encode(data))])
    assert (reply.status, reply.failure) == (400, "invalid_request")
    assert not emulated.world.executed["bedrock"]


def test_tools_fail_rows_of_converse_jobs_only(
    emulated: RunningEmulator, client: BedrockBatch, tmp_path: Path
) -> None:
    data = changed(toolConfig={"tools": []})
    job = client.create(Planned(emulated, row_of(tmp_path, data), rows=1).job)
    (line,) = results(client, ended(emulated, client, job), tmp_path)
    assert line.status_code == 400
    (reply,) = answers([(MODEL, msgspec.json.encode(data))])
    assert reply.status == 200


@pytest.mark.parametrize(
    ("kind", "lines", "alien"),
    [
        ("missing", ROWS - 1, 0),
        ("duplicate", ROWS + 1, 0),
        ("duplicate_differs", ROWS + 1, 0),
        ("alien", ROWS + 1, 1),
        ("crlf", ROWS, 0),
        ("swap", ROWS, 0),
        ("shift", ROWS, 0),
    ],
)
def test_result_files_that_go_wrong(
    emulated: RunningEmulator,
    client: BedrockBatch,
    tmp_path: Path,
    kind: str,
    lines: int,
    alien: int,
) -> None:
    plant(emulated, "lines", kind)
    _, job = created(emulated, client, tmp_path)
    read = results(client, ended(emulated, client, job), tmp_path)
    assert len(read) == lines
    assert sum(line.custom_id not in record_ids() for line in read) == alien


# Online


def answers(calls: list[tuple[str, bytes]], seconds: float = 20.0) -> list[Reply]:
    async def ask_all() -> list[Reply]:
        online = connect_online(ProviderOptions(seconds))
        try:
            asked = [online.answer("r", model, sent) for model, sent in calls]
            return list(await asyncio.gather(*asked))
        finally:
            await online.close()

    return asyncio.run(ask_all())


def test_online_answers_many_at_once(emulated: RunningEmulator) -> None:
    replies = answers([(MODEL, body(number)) for number in range(20)])
    for number, reply in enumerate(replies):
        line = WIRE.read_line(WIRE.encode_reply(f"r{number}", reply))
        assert (reply.status, reply.failure, reply.ambiguous) == (200, None, False)
        assert reply.request_id
        assert (line.custom_id, line.finish_reason) == (f"r{number}", "stop")
        assert json.loads(line.text or "")["document"] == reference(number)
    executed = emulated.world.executed["bedrock"]
    assert dict(executed) == {reference(number): 1 for number in range(20)}


@pytest.mark.parametrize(
    ("fault", "status", "failure", "ambiguous"),
    [
        pytest.param(("status", {"status": 400}), 400, "invalid_request", False, id="400"),
        pytest.param(("status", {"status": 403}), 403, "auth", False, id="403"),
        pytest.param(
            ("status", {"status": 429, "retry_after": 3}), 429, "rate_limited", False, id="429"
        ),
        pytest.param(
            ("status", {"status": 429, "code": "ModelNotReadyException"}),
            429,
            "overloaded",
            False,
            id="not ready",
        ),
        pytest.param(("status", {"status": 408}), 408, "server_error", True, id="408"),
        pytest.param(("status", {"status": 424}), 424, "server_error", True, id="424"),
        pytest.param(("status", {"status": 500}), 500, "server_error", True, id="500"),
        pytest.param(("status", {"status": 503}), 503, "overloaded", False, id="503"),
        pytest.param(("drop_before", {}), 0, "transport", True, id="dropped"),
        pytest.param(("drop_after", {}), 0, "transport", True, id="answer dropped"),
        pytest.param(("delay", {"seconds": 1.5}), 0, "transport", True, id="late"),
    ],
)
def test_failed_calls_are_replies_and_not_repeated(
    emulated: RunningEmulator,
    fault: tuple[str, dict[str, Any]],
    status: int,
    failure: str,
    ambiguous: bool,
) -> None:
    plant(emulated, "answer", fault[0], times=None, **fault[1])
    (reply,) = answers([(MODEL, body(1))], seconds=0.7)
    assert (reply.status, reply.failure, reply.ambiguous) == (status, failure, ambiguous)
    assert reply.retry_after == fault[1].get("retry_after")
    assert emulated.world.count_calls("bedrock", "answer") == 1
    line = WIRE.read_line(WIRE.encode_reply("r", reply))
    assert (line.status_code, line.text) == (status, None)


def test_online_unknown_model(emulated: RunningEmulator) -> None:
    (reply,) = answers([("acme.unheard-of-v1", body(1))])
    assert (reply.status, reply.failure) == (400, "unsupported")


def test_online_without_a_connection(
    emulated: RunningEmulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "http://127.0.0.1:9")
    (reply,) = answers([(MODEL, body(1))])
    assert (reply.status, reply.failure, reply.ambiguous) == (0, "transport", False)


class Recorder(BaseHTTPRequestHandler):
    """A server that keeps what it gets, and answers with fixed bytes."""

    got: bytes = b""
    path_got: str = ""
    answer: bytes = b""
    announced: int | None = None

    def do_POST(self) -> None:
        kind = type(self)
        kind.path_got = self.path
        kind.got = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(kind.announced or len(kind.answer)))
        self.end_headers()
        self.wfile.write(kind.answer)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@contextmanager
def recording(answer: bytes, announced: int | None = None) -> Iterator[tuple[str, type[Recorder]]]:
    handler = type("OneRecorder", (Recorder,), {"answer": answer, "announced": announced})
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", handler
        server.shutdown()
        thread.join()


def test_bytes_go_and_come_unchanged(
    emulated: RunningEmulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = '{ "b" : 1.50 , "messages":[], "unheard_of": "é\u2028" }'.encode()
    came = '{"stopReason":"end_turn", "unheard_of":{"x": "é"},\n"usage":{}}'.encode()
    with recording(came) as (url, recorder):
        monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", url)
        (reply,) = answers([(MODEL, sent)])
    assert recorder.got == sent
    assert recorder.path_got == f"/model/{MODEL.replace(':', '%3A')}/converse"
    assert (reply.status, reply.body, reply.failure) == (200, came, None)


@pytest.mark.parametrize(
    ("came", "announced"), [(b"", None), (b'{"stopReason":', None), (b'{"usage":{}}', 500)]
)
def test_cut_or_empty_answer_is_transport_and_may_be_paid(
    emulated: RunningEmulator,
    monkeypatch: pytest.MonkeyPatch,
    came: bytes,
    announced: int | None,
) -> None:
    with recording(came, announced) as (url, _):
        monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", url)
        (reply,) = answers([(MODEL, body(1))])
    assert (reply.failure, reply.ambiguous) == ("transport", True)


# Connecting


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        (ProviderOptions(bedrock_s3_uri=S3_URI), "TALLYBOOK_BEDROCK_ROLE_ARN"),
        (ProviderOptions(bedrock_role_arn=ROLE_ARN), "TALLYBOOK_BEDROCK_S3_URI"),
    ],
)
def test_batch_needs_a_role_and_a_place(options: ProviderOptions, wanted: str) -> None:
    with pytest.raises(CredentialsMissing, match=wanted):
        connect_batch(options)


def without_machine_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)


def test_no_region(monkeypatch: pytest.MonkeyPatch) -> None:
    without_machine_settings(monkeypatch)
    with pytest.raises(CredentialsMissing, match="AWS_REGION"):
        connect_online(ProviderOptions())


@pytest.mark.parametrize("name", ["AWS_REGION", "AWS_DEFAULT_REGION"])
def test_no_keys(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    without_machine_settings(monkeypatch)
    monkeypatch.setenv(name, "eu-central-1")
    for connect in (lambda: connect_batch(OPTIONS), lambda: connect_online(OPTIONS)):
        with pytest.raises(CredentialsMissing, match="AWS_ACCESS_KEY_ID"):
            connect()


def test_no_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3.session", None)
    with pytest.raises(SdkMissing, match=r"tallybook\[bedrock\]"):
        connect_batch(OPTIONS)


def account_text() -> str:
    connected = connect_batch(OPTIONS)
    text = connected.account()
    connected.close()
    return text


def test_account_names_endpoint_region_and_account_and_no_key(client: BedrockBatch) -> None:
    text = client.account()
    assert client.base_url in text
    assert "us-east-1" in text
    assert "123456789012" in text
    assert not any(key in text for key in PLANTED_KEYS)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("AWS_ACCESS_KEY_ID", "AKIAEMULATED00000009"),
        ("AWS_REGION", "eu-central-1"),
        ("AWS_ENDPOINT_URL_BEDROCK", "http://127.0.0.1:9/bedrock"),
    ],
)
def test_account_differs(
    client: BedrockBatch, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    assert account_text() != client.account()


def test_account_stays_when_temporary_keys_are_renewed(
    emulated: RunningEmulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = set()
    for number in (1, 2):
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", f"ASIAEMULATED0000000{number}")
        monkeypatch.setenv("AWS_SESSION_TOKEN", f"token-{number}")
        texts.add(account_text())
    assert len(texts) == 1


def test_bearer_token_alone_is_enough_online_but_never_sent_in_the_clear(
    emulated: RunningEmulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", "emulated-bearer")
    (reply,) = answers([(MODEL, body(1))])
    assert (reply.status, reply.failure, reply.ambiguous) == (0, "invalid_request", False)
    assert emulated.world.count_calls("bedrock", "answer") == 0


def test_online_client_checks_models_and_names_its_account(emulated: RunningEmulator) -> None:
    async def check() -> BedrockOnline:
        online = connect_online(ProviderOptions())
        online.check_model(MODEL)
        with pytest.raises(ModelUnavailable):
            online.check_model("acme.unheard-of-v1")
        await online.close()
        return online

    online = asyncio.run(check())
    assert online.base_url in online.account()
    assert not any(key in online.account() for key in PLANTED_KEYS)


def test_token_fits_name_and_token_patterns() -> None:
    assert token_of("0123456789ab-12") == "tallybook-0123456789ab-12"
