"""Bedrock's batch jobs: their states in virtual time, their rows, their output objects.

Belongs here: what a job is at a moment, and what it writes when it ends. Does not belong here:
HTTP (`bedrock.py`), objects (`bedrock_s3.py`), single answers (`bedrock_converse.py`).

    Submitted → Validating → Scheduled → InProgress → Completed
    Validating → Failed;  InProgress → PartiallyCompleted;  before it started → Expired
    any → Stopping → Stopped

A job's state follows from the clock whenever somebody looks; its rows are run, and its objects
written, when a look first finds it ended.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from tests.provider_emulator.bedrock_converse import (
    Outcome,
    base_model,
    planted_error,
    run_row,
)
from tests.provider_emulator.bedrock_http import PROVIDER, AwsError, Caller
from tests.provider_emulator.bedrock_s3 import ObjectStore, StoredObject
from tests.provider_emulator.faults import Fault
from tests.provider_emulator.http import json_bytes
from tests.provider_emulator.rows import mangle_lines
from tests.provider_emulator.world import World

LIMITS: dict[str, int] = {
    "bedrock.min_rows": 100,
    "bedrock.max_rows": 50_000,
    "bedrock.max_file_bytes": 1 << 30,
    "bedrock.max_job_bytes": 5 << 30,
    "bedrock.jobs_in_flight": 20,
}
"""Settings with their defaults (quotas of most models)."""

ENDED = frozenset({"Completed", "PartiallyCompleted", "Failed", "Stopped", "Expired"})
SCHEDULED_SHARE = 0.1
"""The part of the running time for which a job is still `Scheduled`."""

Row = tuple[str, dict[str, Any]]


class Unfit(Exception):
    """An input that makes the whole job `Failed`; the text is the job's message."""


@dataclass
class Ending:
    """How a job ended."""

    status: str
    at: datetime
    message: str | None = None
    counts: tuple[int, int, int, int] | None = None


@dataclass
class BatchJob:
    """A job as it was asked for, and what became of it.

    Attributes:
        account: access key id that made it.
        short_id: twelve characters, the last part of the ARN.
        request: the body of the creating call.
        fault: the planted fault of the job, if there is one.
        stop_at: when stopping was asked for.
        problem: what validation found; "" after a successful one, None before it.
        hidden: answers of 404 that are still to be given.
    """

    account: str
    arn: str
    short_id: str
    request: dict[str, Any]
    created: datetime
    fault: Fault | None = None
    stop_at: datetime | None = None
    problem: str | None = None
    ending: Ending | None = None
    hidden: int = 0
    rows: int | None = None
    modified: list[datetime] = field(default_factory=list)

    @property
    def kind(self) -> str:
        """The kind of the planted fault, or nothing."""
        return self.fault.kind if self.fault else ""

    def arg(self, name: str, default: Any) -> Any:
        """Return an argument of the planted fault."""
        return self.fault.args.get(name, default) if self.fault else default


class Jobs:
    """All jobs of all accounts."""

    def __init__(self, world: World, store: ObjectStore) -> None:
        self._world = world
        self.store = store
        self._jobs: list[BatchJob] = []
        self._by_token: dict[tuple[str, str], BatchJob] = {}

    def limit(self, name: str) -> int:
        """Return a limit: as set, else its default."""
        return int(self._world.settings.get(name, LIMITS[name]))

    def create(self, caller: Caller, request: dict[str, Any]) -> BatchJob:
        """Return a new job, or the one of the same token.

        Raises:
            AwsError: the token was used with other parameters, or too many jobs are under way.
        """
        with self._world.lock:
            token = request.get("clientRequestToken") or self._world.new_id("")
            known = self._by_token.get((caller.account, token))
            if known is not None:
                if known.request != request:
                    raise AwsError(
                        400,
                        "ConflictException",
                        "The client request token was used with other parameters.",
                    )
                return known
            self._check_room(caller, request)
            job = self._new(caller, request)
            self._by_token[caller.account, token] = job
            return job

    def _check_room(self, caller: Caller, request: dict[str, Any]) -> None:
        model = base_model(request["modelId"])
        under_way = sum(
            self.look(one).account == caller.account
            and one.ending is None
            and base_model(one.request["modelId"]) == model
            for one in self._jobs
        )
        limit = self.limit("bedrock.jobs_in_flight")
        if under_way >= limit:
            raise AwsError(
                400,
                "ServiceQuotaExceededException",
                f"Account has {under_way} batch inference jobs in progress and submitted for the "
                f"model; the quota is {limit}.",
            )

    def _new(self, caller: Caller, request: dict[str, Any]) -> BatchJob:
        account_id = request["roleArn"].split(":")[4] or "123456789012"
        short_id = self._world.new_id("")[:12]
        arn = f"arn:aws:bedrock:{caller.region}:{account_id}:model-invocation-job/{short_id}"
        fault = self._world.faults.take(PROVIDER, "job", job_id=arn)
        job = BatchJob(caller.account, arn, short_id, request, self._world.clock.now(), fault=fault)
        if job.kind == "not_found":
            job.hidden = int(job.arg("times", 1))
        self._jobs.append(job)
        self._world.jobs_created[PROVIDER].append(arn)
        return job

    def find(self, account: str, job_id: str) -> BatchJob:
        """Return a job of an account by ARN or short id, as it is now.

        Raises:
            AwsError: there is none.
        """
        with self._world.lock:
            for job in self._jobs:
                if job.account == account and job_id in (job.arn, job.short_id):
                    if job.hidden:
                        job.hidden -= 1
                        break
                    return self.look(job)
        raise AwsError(
            404, "ResourceNotFoundException", "The provided batch job identifier was not found."
        )

    def listed(self, account: str) -> list[BatchJob]:
        """Return the jobs that a list shows to an account, oldest first, as they are now."""
        with self._world.lock:
            now = self._world.clock.now()
            return [
                self.look(job)
                for job in self._jobs
                if job.account == account
                and not (
                    job.kind == "unlisted"
                    and now < job.created + timedelta(seconds=float(job.arg("seconds", 60)))
                )
            ]

    def stop(self, job: BatchJob) -> None:
        """Ask a job to stop.

        Raises:
            AwsError: it has ended, or is stopping already.
        """
        with self._world.lock:
            if self.look(job).ending is not None or job.stop_at is not None:
                raise AwsError(
                    400,
                    "ConflictException",
                    f"The job cannot be stopped: its status is {self.status(job)}.",
                )
            job.stop_at = self._world.clock.now()

    def look_at_all(self) -> None:
        """Bring every job up to now."""
        with self._world.lock:
            for job in self._jobs:
                self.look(job)

    def status(self, job: BatchJob) -> str:
        """Return a looked-at job's status."""
        if job.kind == "unknown_status" and job.stop_at is None:
            return str(job.arg("status", "Paused"))
        if job.ending is not None:
            return job.ending.status
        now = self._world.clock.now()
        if job.stop_at is not None:
            return "Stopping"
        age = (now - job.created).total_seconds()
        timing = self._world.timing
        if job.kind == "stuck" or age < timing.validating_seconds / 2:
            return "Submitted"
        if age < timing.validating_seconds:
            return "Validating"
        running = age - timing.validating_seconds
        return "Scheduled" if running < timing.running_seconds * SCHEDULED_SHARE else "InProgress"

    def look(self, job: BatchJob) -> BatchJob:
        """Bring a job up to now and return it."""
        if job.ending is not None:
            return job
        now = self._world.clock.now()
        validated = job.created + timedelta(seconds=self._world.timing.validating_seconds)
        if job.problem is None and now >= validated and job.kind != "stuck" and not job.stop_at:
            job.problem = self._validate(job)
        end = self._end_of(job, validated)
        if end is not None and now >= end[0]:
            self._finish(job, *end)
        return job

    def _end_of(self, job: BatchJob, validated: datetime) -> tuple[datetime, str, float] | None:
        """Return when a job ends by itself or by a stop, how, and which part of its rows is run."""
        timing = self._world.timing
        running = timedelta(seconds=timing.running_seconds)
        if job.stop_at is not None:
            share = _share(job.stop_at, validated, running) if job.problem == "" else 0.0
            return job.stop_at + timedelta(seconds=timing.cancelling_seconds), "Stopped", share
        if job.kind == "stuck":
            return None
        if job.problem:
            return validated, "Failed", 0.0
        window = timedelta(hours=float(job.request.get("timeoutDurationInHours") or 24))
        limit = job.created + window
        end = validated + running
        if job.kind == "cancelled":
            return end, "Stopped", float(job.arg("done", 0.5))
        if job.kind == "expired":
            share = float(job.arg("done", 0.5))
            return min(end, limit), "PartiallyCompleted" if share else "Expired", share
        if end > limit:
            share = _share(limit, validated, running)
            return limit, "PartiallyCompleted" if share else "Expired", share
        return end, "Completed", 1.0

    # What a job reads

    def _validate(self, job: BatchJob) -> str:
        """Return why the job fails, or nothing; bodies of rows are not looked at."""
        if job.kind == "failed":
            return str(job.arg("message", job.arg("code", "The job failed.")))
        try:
            job.rows = sum(len(self._rows(job, key)) for key in self._inputs(job))
        except Unfit as unfit:
            return str(unfit)
        low, high = self.limit("bedrock.min_rows"), self.limit("bedrock.max_rows")
        if job.rows < low:
            return (
                f"Batch job contains less records ({job.rows}) than the required minimum of: {low}"
            )
        if job.rows > high:
            return f"Batch job contains more records ({job.rows}) than the maximum of: {high}"
        return ""

    def _inputs(self, job: BatchJob) -> dict[str, StoredObject]:
        """Return the input objects by key: the one that is named, or all under the prefix."""
        bucket, key = split_uri(job.request["inputDataConfig"]["s3InputDataConfig"]["s3Uri"])
        keys = [key] if self.store.find(job.account, bucket, key) else []
        if not keys:
            prefix = f"{key.rstrip('/')}/"
            keys = [one for one in self.store.keys(job.account, bucket, prefix)]
            keys = [one for one in keys if one.endswith(".jsonl")]
        if not keys or not all(one.endswith(".jsonl") for one in keys):
            raise Unfit(f"The provided S3 location holds no .jsonl file: s3://{bucket}/{key}")
        found = {one: self.store.find(job.account, bucket, one) for one in keys}
        inputs = {one: stored for one, stored in found.items() if stored is not None}
        sizes = [stored.size for stored in inputs.values()]
        if max(sizes) > self.limit("bedrock.max_file_bytes"):
            raise Unfit("An input file exceeds the maximum size.")
        if sum(sizes) > self.limit("bedrock.max_job_bytes"):
            raise Unfit("The input files together exceed the maximum size.")
        return inputs

    def _rows(self, job: BatchJob, key: str) -> list[Row]:
        """Return an input object's rows: record id (made up where there is none) and line."""
        bucket, _ = split_uri(job.request["inputDataConfig"]["s3InputDataConfig"]["s3Uri"])
        stored = self.store.find(job.account, bucket, key)
        return [] if stored is None else list(_read_rows(stored, job.short_id))

    # What a job writes

    def _finish(self, job: BatchJob, at: datetime, status: str, share: float) -> None:
        if status == "Failed":
            job.ending = Ending(status, at, job.problem)
            return
        if job.problem != "" or not share:
            job.ending = Ending(status, at, counts=(job.rows or 0, 0, 0, 0))
            return
        succeeded = failed = 0
        left = round(share * (job.rows or 0))
        bucket, prefix = split_uri(job.request["outputDataConfig"]["s3OutputDataConfig"]["s3Uri"])
        folder = f"{prefix.rstrip('/')}/{job.short_id}".lstrip("/")
        for key in self._inputs(job):
            rows = self._rows(job, key)[:left]
            left -= len(rows)
            lines, good = self._run(job, rows)
            succeeded += good
            failed += len(lines) - good
            name = f"{folder}/{key.rpartition('/')[2]}.out"
            written = mangle_lines(self._world, PROVIDER, job.arn, lines, _alien_line)
            if self._world.settings.get("bedrock.shuffle", True):
                self._world.rng.shuffle(written)
            self.store.put_bytes(job.account, bucket, name, [line + b"\n" for line in written])
        total = job.rows or 0
        counts = (total, succeeded + failed, succeeded, failed)
        self.store.put_bytes(
            job.account, bucket, f"{folder}/manifest.json.out", [json_bytes(_counters(counts))]
        )
        job.ending = Ending(status, at, counts=counts)

    def _run(self, job: BatchJob, rows: list[Row]) -> tuple[list[tuple[str, bytes]], int]:
        """Return the output lines of rows that are run now, and how many hold an answer."""
        lines: list[tuple[str, bytes]] = []
        good = 0
        for index, (record_id, line) in enumerate(rows):
            outcome = self._outcome(job, index, record_id, line)
            if outcome.answer is None and outcome.code is None and outcome.status == 200:
                continue
            if outcome.was_run:
                self._world.executed[PROVIDER][record_id] += 1
                good += 1
            lines.append((record_id, render_line(record_id, line.get("modelInput"), outcome)))
        return lines, good

    def _outcome(self, job: BatchJob, index: int, record_id: str, line: dict[str, Any]) -> Outcome:
        if job.fault is not None and job.kind == "all_failed":
            return planted_error(job.fault)
        fault = self._world.faults.take(PROVIDER, "row", index=index, custom_id=record_id)
        body = line["modelInput"]
        if job.request.get("modelInvocationType") != "Converse":
            message = "Only jobs of the type Converse are emulated."
            return Outcome(status=400, message=message, code="ValidationException")
        model = base_model(job.request["modelId"]) or ""
        return run_row(self._world, body, model, fault, batch=True)

    # What a job says of itself

    def describe(self, job: BatchJob) -> dict[str, Any]:
        """Return a looked-at job as the control plane shows it."""
        end = job.ending
        hours = float(job.request.get("timeoutDurationInHours") or 24)
        shown: dict[str, Any] = {
            "jobArn": job.arn,
            **{name: job.request[name] for name in _SHOWN if name in job.request},
            "status": self.status(job),
            "submitTime": iso(job.created),
            "lastModifiedTime": iso(end.at if end else self._world.clock.now()),
            "jobExpirationTime": iso(job.created + timedelta(hours=hours)),
        }
        if end is not None:
            shown["endTime"] = iso(end.at)
            if end.message:
                shown["message"] = end.message
        if job.kind != "no_counts" and job.rows is not None:
            counts = end.counts if end and end.counts else (job.rows, 0, 0, 0)
            shown |= _counters(counts)
        return shown


_SHOWN = (
    "jobName",
    "modelId",
    "clientRequestToken",
    "roleArn",
    "inputDataConfig",
    "outputDataConfig",
    "vpcConfig",
    "timeoutDurationInHours",
    "modelInvocationType",
)


def iso(moment: datetime) -> str:
    """Return a moment as the control plane writes it."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


def split_uri(uri: str) -> tuple[str, str]:
    """Return bucket and key, or prefix, of an `s3://` address."""
    bucket, _, key = uri.removeprefix("s3://").partition("/")
    return bucket, key


def render_line(record_id: str, model_input: Any, outcome: Outcome) -> bytes:
    """Return a line of an output object, without its line feed."""
    line: dict[str, Any] = {"recordId": record_id, "modelInput": model_input}
    if outcome.answer is not None:
        line["modelOutput"] = outcome.answer
    else:
        line["error"] = {"errorCode": outcome.status, "errorMessage": outcome.message}
    return json_bytes(line)


def _alien_line(record_id: str) -> bytes:
    message = {"content": [{"text": "{}"}], "role": "assistant"}
    usage = {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}
    answer = {"output": {"message": message}, "stopReason": "end_turn", "usage": usage}
    return render_line(record_id, {}, Outcome(answer=answer))


def _counters(counts: tuple[int, int, int, int]) -> dict[str, int]:
    names = ("totalRecordCount", "processedRecordCount", "successRecordCount", "errorRecordCount")
    return dict(zip(names, counts, strict=True))


def _share(moment: datetime, started: datetime, running: timedelta) -> float:
    if moment <= started:
        return 0.0
    return min(1.0, (moment - started) / running) if running else 1.0


def _read_rows(stored: StoredObject, job_id: str) -> Iterator[Row]:
    with stored.path.open("rb") as file:
        for number, data in enumerate(file):
            if not data.strip():
                continue
            try:
                line = json.loads(data)
                good = isinstance(line["modelInput"], dict)
            except (ValueError, KeyError, TypeError):
                good = False
                line = {}
            if not good:
                raise Unfit(f"The input file has a line that is no valid record: line {number + 1}")
            yield str(line.get("recordId") or f"{job_id}{number:06d}"), line
