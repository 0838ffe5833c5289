"""Anthropic's clients, with the real SDK, against the emulator."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import msgspec
import pytest

from resources.providers.anthropic.batch import AnthropicBatch, connect_batch
from resources.providers.anthropic.online import connect_online
from resources.providers.anthropic.wire import AnthropicWire
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
from tests.provider_emulator.anthropic_api import NEW_VERSION, OLD_VERSION
from tests.provider_emulator.environment import ANTHROPIC_KEY
from tests.provider_emulator.faults import Fault
from tests.support.asks import make_ask, page_prompt, reference
from tests.support.emulator import RunningEmulator

MODEL = "claude-haiku-4-5"
RESOLVED = "claude-haiku-4-5-20251001"
BATCH = "0123456789ab"
OTHER_BATCH = "ffffffffffff"
OPTIONS = ProviderOptions(timeout_seconds=20.0)
ROWS = 6
RUNNING, CANCELLING, DAY = 600, 30, 86_400
WIRE = AnthropicWire()


def ask(number: int, **changes: Any) -> Ask:
    return make_ask(MODEL, page_prompt(number), **changes)


def body(number: int, **changes: Any) -> bytes:
    return msgspec.json.encode(WIRE.body(ask(number, **changes)))


def keys(rows: int = ROWS, batch: str = BATCH) -> list[str]:
    return [f"{batch}-{number}" for number in range(rows)]


class Bench:
    """What a test of jobs works with."""

    def __init__(self, emulated: RunningEmulator, folder: Path) -> None:
        self.world = emulated.world
        self.folder = folder
        self.client: AnthropicBatch = connect_batch(OPTIONS)

    def plant(self, op: str, kind: str, times: int | None = 1, after: int = 0, **args: Any) -> None:
        self.world.faults.add(Fault("anthropic", op, kind, times, after, args))

    def intent(self, **changes: Any) -> Intent:
        intent = Intent(f"{BATCH}-1", BATCH, MODEL, ROWS, self.world.clock.now())
        return replace(intent, **changes)

    def job(
        self,
        intent: Intent | None = None,
        bodies: list[bytes] | None = None,
        ids: list[str] | None = None,
    ) -> NewJob:
        asked = intent or self.intent()
        bodies = [body(number) for number in range(ROWS)] if bodies is None else bodies
        ids = keys(len(bodies), asked.batch_key) if ids is None else ids
        path = self.folder / "requests.jsonl"
        lines = [WIRE.encode_request(*pair) for pair in zip(ids, bodies, strict=True)]
        path.write_bytes(b"".join(line + b"\n" for line in lines))
        return NewJob(asked, path, path.stat().st_size, 24, self.no_upload)

    def no_upload(self, ref: str) -> None:
        raise AssertionError(f"there is no upload here, and yet {ref!r}")

    def create(self, bodies: list[bytes] | None = None, **changes: Any) -> Job:
        return self.client.create(self.job(self.intent(**changes), bodies))

    def later(self, job: Job, seconds: float = RUNNING) -> Job:
        self.world.clock.advance(seconds)
        return self.client.retrieve(job.job_id)

    def data(self, job: Job, offset: int = 0) -> bytes:
        with self.client.open_file(job.job_id, job.files[0], offset) as download:
            return b"".join(download.blocks)

    def lines(self, job: Job) -> list[ResultLine]:
        path = self.folder / "results.jsonl"
        path.write_bytes(self.data(job))
        with path.open("rb") as file:
            return [WIRE.read_line(line.data) for line in split_lines(file)]

    def results(self, job: Job) -> dict[str | None, ResultLine]:
        lines = self.lines(job)
        assert len({line.custom_id for line in lines}) == len(lines)
        return {line.custom_id: line for line in lines}

    def run(self, bodies: list[bytes] | None = None) -> list[ResultLine]:
        """Create a job, let it end, read its lines."""
        return self.lines(self.later(self.create(bodies)))

    def executed(self) -> dict[str, int]:
        return dict(self.world.executed["anthropic"])

    def calls(self, op: str) -> int:
        return self.world.count_calls("anthropic", op)


@pytest.fixture
def bench(
    emulator: RunningEmulator, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Bench]:
    emulator.use(monkeypatch)
    bench = Bench(emulator, tmp_path)
    yield bench
    bench.client.close()


def answer_of(line: ResultLine) -> dict[str, Any]:
    assert line.text is not None
    return json.loads(line.text)


class TestHappyBatch:
    def test_a_job_from_create_to_delete(self, bench: Bench) -> None:
        bench.client.check_model(MODEL)
        created = bench.create()
        assert (created.phase, created.outcome, created.files) == ("running", None, ())
        assert created.counts == Counts(total=ROWS, pending=ROWS)
        assert created.created_at is not None
        assert created.expires_at == created.created_at + timedelta(days=1)

        half = bench.later(created, RUNNING / 2)
        assert (half.phase, half.counts) == ("running", Counts(total=ROWS, pending=ROWS))

        ended = bench.later(created)
        assert (ended.raw_status, ended.phase, ended.outcome) == ("ended", "ended", "completed")
        assert ended.counts == Counts(total=ROWS, succeeded=ROWS, failed=0, pending=0)
        results = bench.results(ended)
        assert list(results) == keys()
        for number, key in enumerate(keys()):
            line = results[key]
            assert (line.status_code, line.finish_reason) == (200, "stop")
            assert line.model_revision == RESOLVED
            assert answer_of(line)["document"] == reference(number)
            assert (line.input_tokens or 0) > 10
            assert (line.output_tokens or 0) > 10
        assert bench.executed() == dict.fromkeys(keys(), 1)

        bench.client.delete(ended.job_id, ended.remote)
        with pytest.raises(JobMissing):
            bench.client.retrieve(ended.job_id)
        bench.client.delete(ended.job_id, ended.remote)
        assert bench.calls("create") == 1

    def test_the_length_is_told_and_the_file_comes_whole(self, bench: Bench) -> None:
        ended = bench.later(bench.create())
        with bench.client.open_file(ended.job_id, ended.files[0], 0) as download:
            data = b"".join(download.blocks)
            assert (download.offset, download.length) == (0, len(data))
        assert data.count(b"\n") == ROWS

    def test_a_large_file_is_streamed_into_one_list(self, bench: Bench) -> None:
        long = "\n".join("Some prose about a pump, written out at length." for _ in range(4000))
        bodies = [body(number, user=f"{number} {long}") for number in range(40)]
        assert sum(map(len, bodies)) > 4 << 20
        created = bench.create(bodies)
        assert created.counts == Counts(total=40, pending=40)
        assert len(bench.results(bench.later(created))) == 40

    def test_cached_tokens_are_part_of_the_input(self, bench: Bench) -> None:
        plain = bench.run()[0]
        bench.world.settings["anthropic.cached_tokens"] = 20
        cached = bench.run()[0]
        assert (plain.cached_tokens, cached.cached_tokens) == (0, 20)
        assert cached.input_tokens == plain.input_tokens

    def test_results_come_in_any_order(self, bench: Bench) -> None:
        bench.plant("lines", "shuffle")
        ids = [line.custom_id for line in bench.run()]
        assert ids != keys()
        assert sorted(map(str, ids)) == keys()


class TestFind:
    def test_a_running_job_may_be_it_and_an_ended_one_is(self, bench: Bench) -> None:
        intent = bench.intent()
        job = bench.client.create(bench.job(intent))
        found = bench.client.find(intent)
        assert (found.jobs, [one.job_id for one in found.maybe]) == ((), [job.job_id])
        assert found.complete
        bench.world.clock.advance(RUNNING)
        found = bench.client.find(intent)
        assert ([one.job_id for one in found.jobs], found.maybe) == ([job.job_id], ())
        assert found.complete

    def test_nothing_is_there(self, bench: Bench) -> None:
        found = bench.client.find(bench.intent())
        assert (found.jobs, found.maybe, found.complete) == ((), (), True)

    @pytest.mark.parametrize("kind", ["drop_after", "drop_before"])
    def test_after_a_lost_answer(self, bench: Bench, kind: str) -> None:
        intent = bench.intent()
        bench.plant("create", kind)
        with pytest.raises(Ambiguous):
            bench.client.create(bench.job(intent))
        assert bench.calls("create") == 1
        created = bench.world.jobs_created["anthropic"]
        assert len(created) == (1 if kind == "drop_after" else 0)
        bench.world.clock.advance(RUNNING)
        found = bench.client.find(intent)
        assert [job.job_id for job in found.jobs] == created
        assert (found.maybe, found.complete) == ((), True)

    def test_a_fresh_job_may_not_be_listed_yet(self, bench: Bench) -> None:
        intent = bench.intent()
        bench.plant("job", "unlisted", seconds=90)
        bench.client.create(bench.job(intent))
        found = bench.client.find(intent)
        assert (found.jobs, found.maybe) == ((), ())
        bench.world.clock.advance(90)
        assert len(bench.client.find(intent).maybe) == 1

    @pytest.mark.parametrize(
        "variable",
        [
            pytest.param(("ANTHROPIC_API_KEY", "sk-ant-of-another-account"), id="key"),
            pytest.param(
                ("ANTHROPIC_CUSTOM_HEADERS", "anthropic-workspace-id: wrkspc_2"), id="workspace"
            ),
        ],
    )
    def test_another_account_has_nothing(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch, variable: tuple[str, str]
    ) -> None:
        intent = bench.intent()
        job = bench.client.create(bench.job(intent))
        monkeypatch.setenv(*variable)
        other = connect_batch(OPTIONS)
        found = other.find(intent)
        assert (found.jobs, found.maybe, found.complete) == ((), (), True)
        with pytest.raises(JobMissing):
            other.retrieve(job.job_id)
        assert other.account() != bench.client.account()
        other.close()

    def test_others_jobs_are_told_apart(self, bench: Bench) -> None:
        bench.create([body(0)] * 3, batch_key=OTHER_BATCH)  # another total
        ended = bench.create(batch_key=OTHER_BATCH)  # ends, and then names its batch
        bench.world.clock.advance(RUNNING)
        intent = bench.intent()
        ours = bench.client.create(bench.job(intent))
        bench.create(batch_key=OTHER_BATCH, recorded_at=intent.recorded_at)
        found = bench.client.find(intent)
        assert found.jobs == ()
        assert ours.job_id in [job.job_id for job in found.maybe]
        assert len(found.maybe) == 2  # the same size and time: it cannot be told yet
        bench.world.clock.advance(RUNNING)
        found = bench.client.find(intent)
        assert [job.job_id for job in found.jobs] == [ours.job_id]
        assert ended.job_id not in [job.job_id for job in (*found.jobs, *found.maybe)]
        assert found.maybe == ()

    def test_every_page_back_to_the_intent_is_read(self, bench: Bench) -> None:
        bench.create(batch_key=OTHER_BATCH)
        bench.world.clock.advance(3600)
        intent = bench.intent()
        ours = bench.client.create(bench.job(intent))
        for _ in range(120):
            bench.create([body(0)], batch_key=OTHER_BATCH)
        found = bench.client.find(intent)
        assert [job.job_id for job in found.maybe] == [ours.job_id]
        assert found.complete
        assert bench.calls("list") == 2

    def test_two_jobs_of_one_batch_come_oldest_first(self, bench: Bench) -> None:
        intent = bench.intent()
        first = bench.client.create(bench.job(intent))
        second = bench.client.create(bench.job(intent))
        bench.world.clock.advance(RUNNING)
        found = bench.client.find(intent)
        assert [job.job_id for job in found.jobs] == [first.job_id, second.job_id]

    def test_a_job_whose_results_are_archived_cannot_be_told(self, bench: Bench) -> None:
        intent = bench.intent()
        job = bench.client.create(bench.job(intent))
        bench.world.clock.advance(30 * DAY)
        found = bench.client.find(intent)
        assert (found.jobs, [one.job_id for one in found.maybe]) == ((), [job.job_id])

    @pytest.mark.parametrize("op", ["list", "download"])
    def test_what_cannot_be_read_is_not_nothing(self, bench: Bench, op: str) -> None:
        intent = bench.intent()
        bench.client.create(bench.job(intent))
        bench.world.clock.advance(RUNNING)
        bench.plant(op, "status", status=529)
        with pytest.raises(Unavailable):
            bench.client.find(intent)
        assert len(bench.client.find(intent).jobs) == 1


class TestEnds:
    def test_cancel_keeps_what_was_run(self, bench: Bench) -> None:
        created = bench.create()
        bench.world.clock.advance(RUNNING / 2)
        bench.client.cancel(created.job_id)
        bench.client.cancel(created.job_id)
        assert bench.client.retrieve(created.job_id).phase == "cancelling"
        ended = bench.later(created, CANCELLING)
        assert (ended.phase, ended.outcome) == ("ended", "cancelled")
        assert ended.counts == Counts(total=6, succeeded=3, failed=3, pending=0)
        results = bench.results(ended)
        assert [results[key].status_code for key in keys()] == [200] * 3 + [0] * 3
        assert {results[key].error_code for key in keys()[3:]} == {"cancelled"}
        assert bench.executed() == dict.fromkeys(keys(3), 1)

    def test_cancel_of_an_ended_job_is_no_error(self, bench: Bench) -> None:
        created = bench.create()
        bench.world.clock.advance(RUNNING)
        bench.client.cancel(created.job_id)
        assert bench.client.retrieve(created.job_id).outcome == "completed"

    def test_cancel_of_an_unknown_job(self, bench: Bench) -> None:
        with pytest.raises(JobMissing, match="msgbatch_0"):
            bench.client.cancel("msgbatch_0")

    def test_an_expired_job_keeps_finished_rows(self, bench: Bench) -> None:
        bench.plant("job", "expired", done=0.5)
        created = bench.create()
        assert bench.later(created, DAY - 60).phase == "running"
        ended = bench.later(created, 60)
        assert (ended.phase, ended.outcome) == ("ended", "expired")
        results = bench.results(ended)
        assert [results[key].error_code for key in keys()] == [None] * 3 + ["expired"] * 3
        assert bench.executed() == dict.fromkeys(keys(3), 1)

    def test_a_slow_job_expires_by_itself(self, bench: Bench) -> None:
        bench.world.timing.running_seconds = 2 * DAY
        ended = bench.later(bench.create(), DAY)
        assert (ended.outcome, ended.counts) == ("expired", Counts(6, 3, 3, 0))

    def test_a_job_cancelled_by_another_hand(self, bench: Bench) -> None:
        bench.plant("job", "cancelled", done=0.0)
        ended = bench.later(bench.create())
        assert ended.outcome == "cancelled"
        assert {line.error_code for line in bench.lines(ended)} == {"cancelled"}
        assert bench.executed() == {}

    @pytest.mark.parametrize(
        ("kind", "args", "status", "code"),
        [
            pytest.param("failed", {}, 500, "api_error", id="the-providers-fault"),
            pytest.param(
                "failed", {"code": "overloaded_error"}, 529, "overloaded_error", id="overloaded"
            ),
            pytest.param("all_failed", {}, 400, "invalid_request_error", id="all-invalid"),
        ],
    )
    def test_every_row_failed(
        self, bench: Bench, kind: str, args: dict[str, Any], status: int, code: str
    ) -> None:
        bench.plant("job", kind, **args)
        ended = bench.later(bench.create())
        assert (ended.outcome, ended.counts) == ("completed", Counts(6, 0, 6, 0))
        assert {(line.status_code, line.error_code) for line in bench.lines(ended)} == {
            (status, code)
        }
        assert bench.executed() == {}

    def test_an_unknown_status_is_never_an_end(self, bench: Bench) -> None:
        bench.plant("job", "unknown_status", status="hibernating")
        job = bench.later(bench.create(), 2 * DAY)
        assert (job.raw_status, job.phase, job.outcome) == ("hibernating", "unknown", None)
        assert job.files == ()

    def test_a_stuck_job_stays(self, bench: Bench) -> None:
        bench.plant("job", "stuck")
        assert bench.later(bench.create(), 2 * DAY).phase == "running"

    def test_counts_may_be_absent(self, bench: Bench) -> None:
        bench.plant("job", "no_counts")
        intent = bench.intent()
        created = bench.client.create(bench.job(intent))
        assert created.counts is None
        assert len(bench.client.find(intent).maybe) == 1
        ended = bench.later(created)
        assert (ended.counts, ended.outcome) == (None, "completed")
        assert len(bench.client.find(intent).jobs) == 1

    def test_a_job_may_be_unknown_for_a_while(self, bench: Bench) -> None:
        bench.world.faults.add(Fault("anthropic", "job", "not_found", args={"times": 2}))
        created = bench.create()
        for _ in range(2):
            with pytest.raises(JobMissing, match=created.job_id):
                bench.client.retrieve(created.job_id)
        assert bench.client.retrieve(created.job_id).phase == "running"


class TestDownloads:
    def test_a_file_that_is_not_there_yet(self, bench: Bench) -> None:
        created = bench.create()
        with (
            pytest.raises(FileMissing, match="not ready yet"),
            bench.client.open_file(created.job_id, RemoteFile("output", created.job_id), 0),
        ):
            pass

    def test_archived_results_are_missing_and_the_job_is_not(self, bench: Bench) -> None:
        created = bench.create()
        assert len(bench.lines(bench.later(created, 29 * DAY - 60))) == ROWS
        ended = bench.later(created, 60)
        assert (ended.phase, ended.outcome, len(ended.files)) == ("ended", "completed", 1)
        with pytest.raises(FileMissing, match="archived"):
            bench.data(ended)

    def test_a_cut_download_says_so_and_starts_again(self, bench: Bench) -> None:
        ended = bench.later(bench.create())
        whole = bench.data(ended)
        bench.plant("download", "cut", bytes=700)
        got = bytearray()
        with (
            pytest.raises(Unavailable, match="broke off"),
            bench.client.open_file(ended.job_id, ended.files[0], 0) as download,
        ):
            assert download.length == len(whole)
            for block in download.blocks:
                got += block
        assert whole.startswith(bytes(got))
        assert len(got) <= 700
        # The server does not resume, and the answer says that it starts at the beginning.
        with bench.client.open_file(ended.job_id, ended.files[0], len(got)) as download:
            assert (download.offset, b"".join(download.blocks)) == (0, whole)

    @pytest.mark.parametrize("announce", ["short", "none"])
    def test_a_body_that_ends_early_without_a_word(self, bench: Bench, announce: str) -> None:
        ended = bench.later(bench.create())
        whole = bench.data(ended)
        bench.plant("download", "truncate_at_newline", announce=announce)
        with bench.client.open_file(ended.job_id, ended.files[0], 0) as download:
            data = b"".join(download.blocks)
        assert data.endswith(b"\n")
        assert len(data) < len(whole)
        assert download.length == (len(data) if announce == "short" else None)

    @pytest.mark.parametrize(
        ("kind", "args", "raised"),
        [
            pytest.param("drop_before", {}, Unavailable, id="dropped"),
            pytest.param("status", {"status": 500}, Unavailable, id="500"),
            pytest.param("status", {"status": 404}, FileMissing, id="404"),
            pytest.param("status", {"status": 403}, Refused, id="403"),
            pytest.param("status", {"status": 416}, Refused, id="416-at-the-start"),
        ],
    )
    def test_failed_downloads(
        self, bench: Bench, kind: str, args: dict[str, Any], raised: type[Exception]
    ) -> None:
        ended = bench.later(bench.create())
        bench.plant("download", kind, **args)
        with pytest.raises(raised):
            bench.data(ended)
        assert bench.calls("download") == 1
        assert len(bench.lines(ended)) == ROWS

    def test_where_nothing_lies_at_the_offset_the_start_is_read(self, bench: Bench) -> None:
        ended = bench.later(bench.create())
        whole = bench.data(ended)
        bench.plant("download", "status", status=416)
        with bench.client.open_file(ended.job_id, ended.files[0], len(whole)) as download:
            assert (download.offset, b"".join(download.blocks)) == (0, whole)

    def test_a_reader_may_stop_in_the_middle(self, bench: Bench) -> None:
        ended = bench.later(bench.create())
        with bench.client.open_file(ended.job_id, ended.files[0], 0) as download:
            next(download.blocks)
        assert len(bench.lines(ended)) == ROWS


RESULTS = b"0123456789"
Serve = Callable[[httpx2.Request], httpx2.Response]


def served_by(serve: Serve) -> AnthropicBatch:
    """Return a client whose calls a function answers."""
    client = anthropic.Anthropic(
        api_key="k",
        base_url="https://x.test",
        max_retries=0,
        http_client=httpx2.Client(transport=httpx2.MockTransport(serve)),
    )
    return AnthropicBatch(client)


def scripted(results: Serve) -> AnthropicBatch:
    """Return a client whose job has ended, and whose results answer as the script says."""

    def serve(request: httpx2.Request) -> httpx2.Response:
        if request.url.path.endswith("/results"):
            return results(request)
        shown = {
            "id": "msgbatch_1",
            "processing_status": "ended",
            "results_url": "https://x.test/v1/messages/batches/msgbatch_1/results",
        }
        return httpx2.Response(200, json=shown)

    return served_by(serve)


class TestRanges:
    """What the emulator does not do, since the provider is not known to."""

    def test_a_part_is_taken_where_it_is_given(self) -> None:
        def results(request: httpx2.Request) -> httpx2.Response:
            assert request.headers["range"] == "bytes=4-"
            assert request.headers["accept-encoding"] == "identity"
            headers = {"content-range": "bytes 4-9/10"}
            return httpx2.Response(206, content=RESULTS[4:], headers=headers)

        client = scripted(results)
        with client.open_file("msgbatch_1", RemoteFile("output", "msgbatch_1"), 4) as download:
            assert (download.offset, download.length) == (4, 6)
            assert b"".join(download.blocks) == b"456789"
        client.close()

    @pytest.mark.parametrize("content_range", ["bytes 5-9/10", "", "pages 4-9/10"])
    def test_a_part_that_was_not_asked_for(self, content_range: str) -> None:
        headers = {"content-range": content_range}
        client = scripted(lambda _: httpx2.Response(206, content=b"x", headers=headers))
        with (
            pytest.raises(Unavailable, match="not asked for"),
            client.open_file("msgbatch_1", RemoteFile("output", "msgbatch_1"), 4),
        ):
            pass
        client.close()


CREATE_FAILURES = [
    pytest.param("status", {"status": 500}, Ambiguous, None, id="500"),
    pytest.param("status", {"status": 529}, Ambiguous, None, id="529"),
    pytest.param("status", {"status": 504}, Ambiguous, None, id="504"),
    pytest.param("status", {"status": 408}, Ambiguous, None, id="408"),
    pytest.param("drop_before", {}, Ambiguous, None, id="dropped"),
    pytest.param("status", {"status": 400}, Refused, "invalid_request", id="400"),
    pytest.param("status", {"status": 401}, Refused, "auth", id="401"),
    pytest.param("status", {"status": 402}, Refused, "quota", id="402"),
    pytest.param("status", {"status": 403}, Refused, "auth", id="403"),
    pytest.param("status", {"status": 409}, Refused, "server_error", id="409"),
    pytest.param("status", {"status": 413}, Refused, "invalid_request", id="413"),
    pytest.param("status", {"status": 429, "retry_after": 17}, Refused, "rate_limited", id="429"),
    pytest.param(
        "status",
        {"status": 429, "code": "enforced_spend_limit_reached"},
        Refused,
        "quota",
        id="spend-limit",
    ),
    pytest.param(
        "status",
        {"status": 429, "code": "ramp_limit_exceeded", "retry_after": 17},
        Refused,
        "rate_limited",
        id="ramp",
    ),
]


class TestFailures:
    @pytest.mark.parametrize(("kind", "args", "raised", "failure"), CREATE_FAILURES)
    def test_create(
        self,
        bench: Bench,
        kind: str,
        args: dict[str, Any],
        raised: type[ProviderError],
        failure: str | None,
    ) -> None:
        bench.plant("create", kind, **args)
        with pytest.raises(raised) as told:
            bench.create()
        assert bench.calls("create") == 1  # nothing is repeated inside
        assert bench.world.jobs_created["anthropic"] == []
        assert ANTHROPIC_KEY not in str(told.value)
        if isinstance(told.value, Refused):
            assert told.value.failure == failure
            assert told.value.retry_after == args.get("retry_after")
            assert told.value.code == args.get("code", told.value.code)

    def test_create_where_nobody_listens(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9/anthropic")
        client = connect_batch(OPTIONS)
        with pytest.raises(Unreachable, match="ConnectError"):
            client.create(bench.job())
        with pytest.raises(Unavailable, match="ConnectError"):
            client.retrieve("msgbatch_1")
        client.close()

    def test_create_that_is_not_answered_in_time(self, bench: Bench) -> None:
        bench.plant("create", "delay", seconds=1.0)
        client = connect_batch(ProviderOptions(timeout_seconds=0.3))
        with pytest.raises(Ambiguous, match="ReadTimeout"):
            client.create(bench.job())
        client.close()

    @pytest.mark.parametrize(
        ("status", "raised"),
        [
            (429, Unavailable),
            (500, Unavailable),
            (529, Unavailable),
            (409, Unavailable),
            (404, JobMissing),
            (401, Refused),
            (403, Refused),
            (400, Refused),
        ],
    )
    def test_retrieve(self, bench: Bench, status: int, raised: type[ProviderError]) -> None:
        created = bench.create()
        bench.plant("retrieve", "status", status=status, retry_after=9)
        with pytest.raises(raised) as told:
            bench.client.retrieve(created.job_id)
        assert bench.calls("retrieve") == 1
        if isinstance(told.value, Unavailable | Refused):
            assert told.value.retry_after == 9
        assert bench.client.retrieve(created.job_id).phase == "running"

    @pytest.mark.parametrize("op", ["retrieve", "list", "cancel", "delete", "models"])
    def test_a_dropped_connection_is_tried_again_by_the_caller(self, bench: Bench, op: str) -> None:
        created = bench.create()
        if op == "delete":
            bench.world.clock.advance(RUNNING)
        calls: dict[str, Callable[[], object]] = {
            "retrieve": lambda: bench.client.retrieve(created.job_id),
            "list": lambda: bench.client.find(bench.intent()),
            "cancel": lambda: bench.client.cancel(created.job_id),
            "delete": lambda: bench.client.delete(created.job_id, (created.job_id,)),
            "models": lambda: bench.client.check_model(MODEL),
        }
        bench.plant(op, "drop_before")
        with pytest.raises(Unavailable):
            calls[op]()
        calls[op]()
        assert bench.calls(op) == 2

    def test_an_answer_that_is_no_job(self) -> None:
        def serve(_: httpx2.Request) -> httpx2.Response:
            return httpx2.Response(200, text="<html>a page of a proxy</html>")

        client = served_by(serve)
        with pytest.raises(Unavailable, match="no job"):
            client.retrieve("msgbatch_1")
        with pytest.raises(Unavailable, match="no model"):
            client.check_model(MODEL)
        client.close()

    def test_a_redirected_create_made_no_job(self, tmp_path: Path) -> None:
        asked: list[str] = []

        def serve(request: httpx2.Request) -> httpx2.Response:
            asked.append(request.url.host)
            return httpx2.Response(307, headers={"location": "https://elsewhere.test/"})

        client = served_by(serve)
        path = tmp_path / "requests.jsonl"
        path.write_bytes(b"{}\n")
        intent = Intent(f"{BATCH}-1", BATCH, MODEL, 1, datetime.now(UTC))
        with pytest.raises(Refused):
            client.create(NewJob(intent, path, 3, 24, lambda _: None))
        assert asked == ["x.test"]
        client.close()

    def test_delete_before_the_end_is_refused(self, bench: Bench) -> None:
        created = bench.create()
        with pytest.raises(Refused, match="before it has ended"):
            bench.client.delete(created.job_id, (created.job_id,))
        assert created.remote == ()


class TestRefusedAtOnce:
    @pytest.mark.parametrize(
        ("ids", "words"),
        [
            pytest.param(["a", "b/c"], r"requests\.1\.custom_id", id="a-slash"),
            pytest.param(["x" * 65], r"requests\.0\.custom_id", id="65-characters"),
            pytest.param(["a", "b", "a"], r"requests\.2\.custom_id: must be unique", id="twice"),
            pytest.param([], "at least 1 item", id="no-request"),
        ],
    )
    def test_ids(self, bench: Bench, ids: list[str], words: str) -> None:
        bodies = [body(number) for number in range(len(ids))]
        with pytest.raises(Refused, match=words) as told:
            bench.client.create(bench.job(None, bodies, ids))
        assert told.value.failure == "invalid_request"

    @pytest.mark.parametrize("setting", ["anthropic.max_rows", "anthropic.max_bytes"])
    def test_too_large(self, bench: Bench, setting: str) -> None:
        bench.world.settings[setting] = 5
        with pytest.raises(Refused) as told:
            bench.create()
        assert (told.value.failure, told.value.code) == ("invalid_request", "request_too_large")

    def test_too_many_rows_in_the_queue(self, bench: Bench) -> None:
        bench.world.settings["anthropic.queued_rows"] = ROWS + 1
        first = bench.create()
        with pytest.raises(Refused, match="processing queue") as told:
            bench.create()
        assert (told.value.failure, told.value.retry_after) == ("capacity", 60)
        bench.later(first)
        assert bench.create().phase == "running"

    def test_too_many_calls_in_a_minute(self, bench: Bench) -> None:
        bench.world.settings["anthropic.batch_requests_per_minute"] = 2
        created = bench.create()
        bench.client.retrieve(created.job_id)
        with pytest.raises(Unavailable) as told:
            bench.client.retrieve(created.job_id)
        assert told.value.retry_after is not None
        assert 0 < told.value.retry_after <= 60
        bench.world.clock.advance(told.value.retry_after + 1)
        bench.client.retrieve(created.job_id)

    @pytest.mark.parametrize("version", ["", "2024-01-01"], ids=["none", "unknown"])
    def test_versions(self, emulator: RunningEmulator, version: str) -> None:
        headers = {"x-api-key": "k", "anthropic-version": version}
        url = f"{emulator.base_url}/anthropic/v1/messages/batches"
        answer = httpx2.get(url, headers=headers)
        assert (answer.status_code, answer.json()["error"]["type"]) == (
            400,
            "invalid_request_error",
        )
        assert answer.json()["request_id"] == answer.headers["request-id"]

    @pytest.mark.parametrize(
        ("headers", "status"),
        [
            pytest.param({"x-api-key": "k"}, 200, id="x-api-key"),
            pytest.param({"authorization": "Bearer k"}, 200, id="bearer"),
            pytest.param({"authorization": "Basic k"}, 401, id="another-scheme"),
            pytest.param({}, 401, id="none"),
        ],
    )
    @pytest.mark.parametrize("version", [OLD_VERSION, NEW_VERSION])
    def test_keys(
        self, emulator: RunningEmulator, headers: dict[str, str], status: int, version: str
    ) -> None:
        url = f"{emulator.base_url}/anthropic/v1/messages/batches"
        answer = httpx2.get(url, headers={**headers, "anthropic-version": version})
        assert answer.status_code == status


OPEN_OBJECT = {"type": "object", "properties": {}}
RECURSIVE = {
    "type": "object",
    "additionalProperties": False,
    "properties": {"a": {"$ref": "#/$defs/n"}},
    "required": ["a"],
    "$defs": {"n": {"type": "array", "items": {"$ref": "#/$defs/n"}}},
}
PARAMS_FAULTS = [
    pytest.param({"temperature": 1.0}, "temperature", id="sampling-under-the-new-version"),
    pytest.param({"top_p": 0.5}, "top_p", id="top-p"),
    pytest.param({"max_tokens": 0}, "max_tokens", id="max-tokens-0"),
    pytest.param({"max_tokens": 64_001}, "max_tokens", id="max-tokens-too-many"),
    pytest.param({"stream": True}, "stream", id="stream"),
    pytest.param({"speed": "fast"}, "speed", id="speed"),
    pytest.param({"betas": ["x"]}, "betas", id="betas-belong-on-the-call"),
    pytest.param({"messages": []}, "at least one message", id="no-message"),
    pytest.param({"output_config": {"effort": "utmost"}}, "effort", id="effort"),
    pytest.param(
        {"output_config": {"format": {"type": "json_schema", "schema": OPEN_OBJECT}}},
        "additionalProperties",
        id="schema-open-object",
    ),
    pytest.param(
        {"output_config": {"format": {"type": "json_schema", "schema": RECURSIVE}}},
        "Circular",
        id="schema-recursion",
    ),
]


class TestRefusedPerRow:
    @pytest.mark.parametrize(("change", "words"), PARAMS_FAULTS)
    def test_params_are_judged_when_they_are_run(
        self, bench: Bench, change: dict[str, Any], words: str
    ) -> None:
        bad = msgspec.json.encode({**WIRE.body(ask(1)), **change})
        ended = bench.later(bench.create([body(0), bad]))
        good, refused = bench.lines(ended)
        assert (good.status_code, good.finish_reason) == (200, "stop")
        assert (refused.status_code, refused.error_code) == (400, "invalid_request_error")
        assert words.encode() in bench.data(ended).splitlines()[1]
        assert bench.executed() == {keys()[0]: 1}

    def test_the_broken_body_of_a_probe(self, bench: Bench) -> None:
        bad = msgspec.json.encode(WIRE.broken_body(ask(0)))
        [refused] = bench.run([bad])
        assert (refused.status_code, refused.error_code) == (400, "invalid_request_error")

    def test_an_unknown_model(self, bench: Bench) -> None:
        with pytest.raises(ModelUnavailable, match="claude-none"):
            bench.client.check_model("claude-none")
        [refused] = bench.run([body(0, model="claude-none")])
        assert (refused.status_code, refused.error_code) == (404, "not_found_error")

    def test_sampling_is_taken_under_the_old_version(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", f"anthropic-version: {OLD_VERSION}")
        bench.client.close()
        bench.client = connect_batch(OPTIONS)
        haiku = {**WIRE.body(ask(0)), "temperature": 0.0}
        opus = {**haiku, "model": "claude-opus-5"}
        taken, refused = bench.run([msgspec.json.encode(one) for one in (haiku, opus)])
        assert (taken.status_code, refused.status_code) == (200, 400)


ROW_FAULTS = [
    pytest.param("error", {"status": 500}, (500, None, "api_error"), id="500"),
    pytest.param("error", {"status": 529}, (529, None, "overloaded_error"), id="529"),
    pytest.param("error", {"code": "timeout_error"}, (504, None, "timeout_error"), id="504"),
    pytest.param("error", {"status": 429}, (429, None, "rate_limit_error"), id="429"),
    pytest.param(
        "error",
        {"status": 429, "code": "enforced_spend_limit_reached"},
        (429, None, "enforced_spend_limit_reached"),
        id="spend-limit",
    ),
    pytest.param("not_executed", {}, (0, None, "expired"), id="not-executed"),
    pytest.param("truncated", {}, (200, "truncated", None), id="truncated"),
    pytest.param("repetition", {}, (200, "truncated", None), id="repetition"),
    pytest.param("refused", {}, (200, "refused", None), id="refused"),
    pytest.param("no_finish", {}, (200, "unknown", None), id="no-finish"),
    pytest.param("prose", {}, (200, "stop", None), id="prose"),
    pytest.param("null_values", {}, (200, "stop", None), id="null-values"),
    pytest.param("raw_u2028", {}, (200, "stop", None), id="raw-u2028"),
]


class TestRows:
    @pytest.mark.parametrize(("kind", "args", "told"), ROW_FAULTS)
    def test_one_row_is_struck_and_the_others_are_not(
        self, bench: Bench, kind: str, args: dict[str, Any], told: tuple[Any, ...]
    ) -> None:
        bench.plant("row", kind, **args, match={"index": 2})
        lines = bench.run()
        struck = lines[2]
        assert (struck.status_code, struck.finish_reason, struck.error_code) == told
        others = [line for line in lines if line is not struck]
        assert {(line.status_code, line.finish_reason) for line in others} == {(200, "stop")}
        billed = set(bench.executed())
        assert (keys()[2] in billed) is (told[0] == 200)

    def test_a_line_separator_stays_inside_its_line(self, bench: Bench) -> None:
        bench.plant("row", "raw_u2028", match={"index": 0})
        ended = bench.later(bench.create())
        assert "\u2028".encode() in bench.data(ended)
        assert len(bench.lines(ended)) == ROWS

    def test_an_answer_over_the_limit_is_cut(self, bench: Bench) -> None:
        [line] = bench.run([body(0, output_tokens=20)])
        assert (line.finish_reason, line.output_tokens) == ("truncated", 20)

    @pytest.mark.parametrize(
        ("kind", "args", "ids"),
        [
            pytest.param("missing", {"index": 1}, [0, 2, 3, 4, 5], id="missing"),
            pytest.param("duplicate", {"index": 1}, [0, 1, 2, 3, 4, 5, 1], id="duplicate"),
            pytest.param(
                "duplicate_differs", {"index": 1}, [0, 1, 2, 3, 4, 5, 1], id="duplicate-differs"
            ),
            pytest.param("crlf", {}, [0, 1, 2, 3, 4, 5], id="crlf"),
        ],
    )
    def test_faults_of_the_file(
        self, bench: Bench, kind: str, args: dict[str, Any], ids: list[int]
    ) -> None:
        bench.plant("lines", kind, **args)
        lines = bench.run()
        assert [line.custom_id for line in lines] == [keys()[number] for number in ids]
        if kind == "duplicate_differs":
            assert lines[1].text != lines[6].text

    def test_an_alien_line(self, bench: Bench) -> None:
        bench.plant("lines", "alien", custom_id="alien-1")
        lines = bench.run()
        assert (len(lines), lines[-1].custom_id) == (ROWS + 1, "alien-1")

    def test_answers_under_each_others_ids(self, bench: Bench) -> None:
        bench.plant("lines", "swap", a=0, b=3)
        lines = bench.run()
        assert [line.custom_id for line in lines] == keys()
        assert answer_of(lines[0])["document"] == reference(3)
        assert answer_of(lines[3])["document"] == reference(0)


def say(bodies: list[bytes], options: ProviderOptions = OPTIONS) -> list[Reply]:
    """Return what came of calls, made at once."""

    async def all_at_once() -> list[Reply]:
        client = connect_online(options)
        try:
            calls = [client.answer(f"k-{n}", MODEL, data) for n, data in enumerate(bodies)]
            return list(await asyncio.gather(*calls))
        finally:
            await client.close()

    return asyncio.run(all_at_once())


def read(reply: Reply) -> ResultLine:
    return WIRE.read_line(WIRE.encode_reply("k-0", reply))


class TestOnline:
    def test_answers_at_once(self, bench: Bench) -> None:
        replies = say([body(number) for number in range(8)])
        assert {(reply.status, reply.failure) for reply in replies} == {(200, None)}
        assert len({reply.request_id for reply in replies}) == 8
        for number, reply in enumerate(replies):
            line = read(reply)
            assert (line.status_code, line.finish_reason) == (200, "stop")
            assert answer_of(line)["document"] == reference(number)
            assert json.loads(reply.body)["usage"]["service_tier"] == "standard"
        assert bench.executed() == {reference(number): 1 for number in range(8)}

    def test_online_and_batch_answer_alike(self, bench: Bench) -> None:
        [batched] = bench.run([body(0)])
        online = read(say([body(0)])[0])
        assert online == msgspec.structs.replace(batched, custom_id="k-0")

    @pytest.mark.parametrize(
        ("kind", "args", "failure", "ambiguous"),
        [
            pytest.param("status", {"status": 400}, "invalid_request", False, id="400"),
            pytest.param("status", {"status": 401}, "auth", False, id="401"),
            pytest.param("status", {"status": 402}, "quota", False, id="402"),
            pytest.param("status", {"status": 413}, "invalid_request", False, id="413"),
            pytest.param(
                "status", {"status": 429, "retry_after": 3}, "rate_limited", False, id="429"
            ),
            pytest.param(
                "status",
                {"status": 429, "code": "enforced_spend_limit_reached"},
                "quota",
                False,
                id="spend-limit",
            ),
            pytest.param("status", {"status": 500}, "server_error", False, id="500"),
            pytest.param("status", {"status": 504}, "server_error", True, id="504"),
            pytest.param(
                "status", {"status": 529, "retry_after": 2.5}, "overloaded", False, id="529"
            ),
            pytest.param("drop_before", {}, "transport", True, id="dropped"),
            pytest.param("drop_after", {}, "transport", True, id="answer-lost"),
        ],
    )
    def test_failed_calls_never_raise(
        self, bench: Bench, kind: str, args: dict[str, Any], failure: str, ambiguous: bool
    ) -> None:
        bench.plant("answer", kind, **args)
        [reply] = say([body(0)])
        assert (reply.failure, reply.ambiguous) == (failure, ambiguous)
        assert reply.status == args.get("status", 0)
        assert reply.retry_after == args.get("retry_after")
        assert bench.calls("answer") == 1
        assert bench.executed() == ({reference(0): 1} if kind == "drop_after" else {})
        assert read(reply).status_code == reply.status

    def test_nobody_listens(self, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9/anthropic")
        assert say([body(0)]) == [Reply(0, failure="transport")]

    def test_no_answer_in_time(self, bench: Bench) -> None:
        bench.plant("answer", "delay", seconds=1.0)
        [reply] = say([body(0)], ProviderOptions(timeout_seconds=0.3))
        assert reply == Reply(0, failure="transport", ambiguous=True)

    def test_a_bad_schema_and_an_unknown_model(self, bench: Bench) -> None:
        config = {"format": {"type": "json_schema", "schema": OPEN_OBJECT}}
        bad = msgspec.json.encode({**WIRE.body(ask(0)), "output_config": config})
        schema, model = say([bad, body(1, model="claude-none")])
        assert (schema.status, schema.failure) == (400, "invalid_request")
        assert b"additionalProperties" in schema.body
        assert (model.status, model.failure) == (404, "invalid_request")
        assert read(model).error_code == "not_found_error"

    def test_a_row_fault_strikes_online_too(self, bench: Bench) -> None:
        bench.plant("row", "refused", match={"custom_id": reference(0)})
        line = read(say([body(0)])[0])
        assert (line.finish_reason, line.text) == ("refused", "")

    def test_the_model_and_the_account_are_the_same(self, bench: Bench) -> None:
        client = connect_online(OPTIONS)
        client.check_model(MODEL)
        with pytest.raises(ModelUnavailable):
            client.check_model("claude-none")
        assert client.account() == bench.client.account()
        assert client.base_url == bench.client.base_url
        asyncio.run(client.close())


class TestCredentials:
    @pytest.mark.parametrize("connect", [connect_batch, connect_online])
    @pytest.mark.parametrize("key", [None, ""], ids=["unset", "empty"])
    def test_no_key(
        self,
        emulator: RunningEmulator,
        monkeypatch: pytest.MonkeyPatch,
        tmp_path: Path,
        connect: Callable[[ProviderOptions], object],
        key: str | None,
    ) -> None:
        emulator.use(monkeypatch)
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.delenv("ANTHROPIC_API_KEY")
        if key is not None:
            monkeypatch.setenv("ANTHROPIC_API_KEY", key)
        with pytest.raises(CredentialsMissing, match="ANTHROPIC_API_KEY"):
            connect(OPTIONS)

    def test_a_profile_that_cannot_be_read(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setenv("ANTHROPIC_CONFIG_DIR", str(tmp_path))
        monkeypatch.setenv("ANTHROPIC_PROFILE", "none-of-these")
        with pytest.raises(CredentialsMissing):
            connect_batch(OPTIONS)

    def test_the_account_hides_the_key(self, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
        account = bench.client.account()
        assert ANTHROPIC_KEY not in account
        assert bench.world.base_url in account
        monkeypatch.delenv("ANTHROPIC_API_KEY")
        monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", ANTHROPIC_KEY)
        by_token = connect_batch(OPTIONS)
        assert by_token.account() == account  # the same bearer on the wire
        by_token.close()
