"""Emulated OpenAI batches: asynchronous validation, their life by the virtual clock, their files.

Belongs here: the state of jobs and the lines of their files. Does not belong here: HTTP
and files as such (`openai.py`), and what a model does with a body
(`openai_models.py`).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from tests.provider_emulator import openai_models as models
from tests.provider_emulator.faults import Fault
from tests.provider_emulator.http import json_bytes
from tests.provider_emulator.openai_http import PROVIDER, ApiError, planted_error
from tests.provider_emulator.rows import mangle_lines
from tests.provider_emulator.world import World

WINDOW = timedelta(hours=24)
MAX_ROWS = 50_000
KEPT = 2_592_000
"""Seconds that input and output files are kept."""
_FINALIZING = 0.95
"""From this share of the running time on the result files are being written."""
_FIELDS = ("custom_id", "method", "url", "body")


@dataclass
class Job:
    """One batch; `problems` are what its validation found."""

    id: str
    account: str
    endpoint: str
    input_file_id: str
    input_path: Path
    metadata: dict[str, str]
    created: datetime
    fault: Fault | None
    number: int
    output_seconds: int
    tokens: int = 0
    not_found_left: int = 0
    rows: int = 0
    model: str | None = None
    problems: list[dict[str, Any]] = field(default_factory=list)
    validated: bool = False
    cancelled: datetime | None = None
    status: str = "validating"
    finished: datetime | None = None
    started: datetime | None = None
    counts: dict[str, int] = field(default_factory=dict)
    usage: dict[str, Any] | None = None
    output_file_id: str | None = None
    error_file_id: str | None = None

    def has(self, kind: str) -> bool:
        """Is this the job's planted fault?"""
        return self.fault is not None and self.fault.kind == kind


StoreFile = Callable[[Job, str, list[bytes]], str]
"""(job, `output` or `error`, lines) → the id of the file that holds them."""


def refresh(world: World, job: Job, others: list[Job], store: StoreFile) -> None:
    """Bring a job up to the present moment; a job whose time has come is run."""
    if job.finished is not None or (job.has("stuck") and job.cancelled is None):
        return
    now = world.clock.now()
    validated_at = job.created + timedelta(seconds=world.timing.validating_seconds)
    if not job.validated and now >= validated_at:
        _validate(world, job, others, validated_at)
    if job.finished is None and job.validated:
        _advance(world, job, now, validated_at, store)


def is_listed(world: World, job: Job) -> bool:
    """Is a job in the list yet? A fresh one may not be."""
    if job.fault is None or not job.has("unlisted"):
        return True
    hidden = timedelta(seconds=float(job.fault.args.get("seconds", 60)))
    return world.clock.now() >= job.created + hidden


def show(job: Job) -> dict[str, Any]:
    """Return a job as the API shows it; fields that are not there yet are null."""
    status = job.status
    if job.fault is not None and job.has("unknown_status") and job.cancelled is None:
        status = str(job.fault.args.get("status", "hibernating"))
    moment = None if job.finished is None else int(job.finished.timestamp())
    shown: dict[str, Any] = {
        "id": job.id,
        "object": "batch",
        "endpoint": job.endpoint,
        "model": job.model,
        "errors": {"object": "list", "data": job.problems} if job.problems else None,
        "input_file_id": job.input_file_id,
        "completion_window": "24h",
        "status": status,
        "output_file_id": job.output_file_id,
        "error_file_id": job.error_file_id,
        "created_at": int(job.created.timestamp()),
        "in_progress_at": None if job.started is None else int(job.started.timestamp()),
        "expires_at": int((job.created + WINDOW).timestamp()),
        "finalizing_at": moment if status == "completed" else None,
        "completed_at": moment if status == "completed" else None,
        "failed_at": moment if status == "failed" else None,
        "expired_at": moment if status == "expired" else None,
        "cancelling_at": None if job.cancelled is None else int(job.cancelled.timestamp()),
        "cancelled_at": moment if status == "cancelled" else None,
        "request_counts": job.counts or {"total": 0, "completed": 0, "failed": 0},
        "usage": job.usage,
        "metadata": job.metadata or None,
    }
    if job.has("no_counts"):
        del shown["request_counts"]
    return shown


def _validate(world: World, job: Job, others: list[Job], at: datetime) -> None:
    job.validated = True
    job.problems = _planted(job) or _problems(world, job, others)
    if job.problems:
        job.status, job.finished = "failed", at
    else:
        job.started = at


def _planted(job: Job) -> list[dict[str, Any]]:
    if job.fault is None or not job.has("failed"):
        return []
    given = job.fault.args
    return [
        _problem(
            str(given.get("code", "invalid_request")),
            str(given.get("message", "a planted failure")),
            param=given.get("param"),
        )
    ]


def _problem(
    code: str, message: str, *, line: int | None = None, param: str | None = None
) -> dict[str, Any]:
    return {"code": code, "message": message, "param": param, "line": line}


def _problems(world: World, job: Job, others: list[Job]) -> list[dict[str, Any]]:
    """Validate the file line by line, as the service does before it runs anything."""
    found: list[dict[str, Any]] = []
    seen: set[str] = set()
    model = None
    with job.input_path.open("rb") as lines:
        for number, data in enumerate(lines, start=1):
            if not data.strip():
                continue
            job.rows += 1
            problem, row = _row_problem(job, number, data, seen)
            if problem is None and row is not None:
                name = row["body"].get("model")
                model = model or name
                problem = _model_problem(number, name, model)
                job.tokens += models.prompt_tokens(job.endpoint, row["body"])
            if problem is not None and len(found) < 100:
                found.append(problem)
    if not job.rows:
        return [_problem("empty_file", "The input file has no requests.")]
    if job.rows > int(world.settings.get("openai.max_rows", MAX_ROWS)):
        return [_problem("too_many_tasks", f"The file has {job.rows} requests.")]
    job.model = model
    return found or _over_limit(world, job, others)


def _row_problem(
    job: Job, number: int, data: bytes, seen: set[str]
) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    try:
        row = json.loads(data)
    except ValueError:
        return _problem("invalid_json_line", "This line is not valid JSON.", line=number), None
    for name in _FIELDS:
        if not isinstance(row, dict) or not row.get(name):
            message = f"Missing required parameter: '{name}'."
            code = "missing_required_parameter"
            return _problem(code, message, line=number, param=name), None
    if row["method"] != "POST":
        message = "The method must be POST."
        return _problem("invalid_method", message, line=number, param="method"), None
    if row["url"] != job.endpoint:
        message = "The URL provided does not match the batch endpoint."
        return _problem("invalid_url", message, line=number, param="url"), None
    if row["custom_id"] in seen:
        message = f"The custom_id {row['custom_id']!r} is used twice."
        return _problem("duplicate_custom_id", message, line=number, param="custom_id"), None
    seen.add(row["custom_id"])
    if not isinstance(row["body"], dict):
        return _problem("invalid_request", "'body' is no object.", line=number, param="body"), None
    return None, row


def _model_problem(number: int, name: Any, first: Any) -> dict[str, Any] | None:
    if name != first:
        message = f"The model {name!r} is not that of the other lines."
        return _problem("mismatched_model", message, line=number, param="body.model")
    try:
        models.require_model(name)
    except ApiError as error:
        return _problem("model_not_found", error.message, line=number, param="body.model")
    return None


def _over_limit(world: World, job: Job, others: list[Job]) -> list[dict[str, Any]]:
    limit = world.settings.get("openai.enqueued_tokens")
    if limit is None:
        return []
    waiting = sum(
        other.tokens
        for other in others
        if other is not job
        and other.account == job.account
        and other.finished is None
        and other.validated
    )
    if waiting + job.tokens <= int(limit):
        return []
    return [
        _problem(
            "token_limit_exceeded",
            f"Enqueued token limit reached for {job.model} in organization org-emulated. Limit: "
            f"{limit} enqueued tokens. Please try again once some in_progress batches have been "
            "completed.",
        )
    ]


def _advance(
    world: World, job: Job, now: datetime, validated_at: datetime, store: StoreFile
) -> None:
    running = timedelta(seconds=world.timing.running_seconds)
    natural, expiry = validated_at + running, job.created + WINDOW
    share = float(job.fault.args.get("done", 0.5)) if job.fault is not None else 1.0
    job.status = "in_progress"
    if job.cancelled is not None:
        done = min(1.0, (job.cancelled - validated_at) / running) if running else 1.0
        if job.has("stuck"):
            done = 0.0  # it never came to running
        job.status = "cancelling"
        ends = job.cancelled + timedelta(seconds=world.timing.cancelling_seconds)
        outcome = "cancelled"
    elif job.has("unknown_status"):
        return
    elif job.has("expired"):
        ends, outcome, done = expiry, "expired", share
    elif job.has("cancelled"):
        ends, outcome, done = natural, "cancelled", share
    elif natural > expiry:
        ends, outcome, done = expiry, "expired", (expiry - validated_at) / running
    else:
        ends, outcome, done = natural, "completed", 1.0
    passed = 1.0 if not running else min(1.0, max(0.0, (now - validated_at) / running))
    if passed >= _FINALIZING and job.status == "in_progress":
        job.status = "finalizing"
    job.counts = {"total": job.rows, "completed": int(job.rows * min(passed, done)), "failed": 0}
    if now >= ends:
        _run(world, job, ends, outcome, max(0.0, done), store)


def _run(world: World, job: Job, at: datetime, outcome: str, done: float, store: StoreFile) -> None:
    """Run the rows of a job and write its files."""
    good: list[tuple[str, bytes]] = []
    bad: list[tuple[str, bytes]] = []
    index = 0
    left = int(job.rows * done)
    with job.input_path.open("rb") as lines:
        for data in lines:
            row = _read_row(data)
            if row is None:
                continue
            ok, line = _result(world, job, index, row, executed=index < left, outcome=outcome)
            (good if ok else bad).append((row["custom_id"], line))
            index += 1
    output = mangle_lines(world, PROVIDER, job.id, good, lambda name: _alien(world, job, name))
    # An empty text was seen in the place of null (PROVIDERS.md 1.1).
    nothing = world.settings.get("openai.empty_file_id")
    job.output_file_id = store(job, "output", output) if output else nothing
    job.error_file_id = store(job, "error", [one for _, one in bad]) if bad else nothing
    job.status, job.finished = outcome, at
    job.counts = {"total": job.rows, "completed": len(good), "failed": len(bad)}
    if outcome == "expired":
        # What was seen of expired batches: the three do not add up.
        job.counts["failed"] = 0


def _result(
    world: World, job: Job, index: int, row: dict[str, Any], *, executed: bool, outcome: str
) -> tuple[bool, bytes]:
    name = row["custom_id"]
    if not executed:
        code = "batch_cancelled" if outcome == "cancelled" else "batch_expired"
        return False, _not_run(world, name, code)
    fault = world.faults.take(PROVIDER, "row", index=index, custom_id=name, job_id=job.id)
    kind = "" if fault is None else fault.kind
    if kind == "not_executed":
        return False, _not_run(world, name, "batch_expired")
    if kind == "status_zero":
        return False, _line(world, name, 0, {}, request_id="")
    try:
        if job.fault is not None and job.has("all_failed"):
            raise planted_error(job.fault, 400)
        if fault is not None and kind == "error":
            raise planted_error(fault)
        body = models.check_body(job.endpoint, row["body"])
    except ApiError as error:
        return False, _line(world, name, error.status, error.body())
    world.executed[PROVIDER][name] += 1
    response = models.run(world, job.endpoint, body, fault)
    job.usage = models.add_usage(job.usage, response["usage"])
    return True, _line(world, name, 200, response)


def _read_row(data: bytes) -> dict[str, Any] | None:
    """Return a row; None for what is none, which only a job cancelled before its validation has."""
    try:
        row = json.loads(data)
    except ValueError:
        return None
    return row if isinstance(row, dict) and all(row.get(name) for name in _FIELDS) else None


def refused_at_once(world: World, job: Job, others: list[Job]) -> str | None:
    """Return why a job is refused when it is created, None where it is not.

    Some accounts are told of a reached limit then, and not by a batch that fails
    (PROVIDERS.md 1.4): the setting `openai.enqueued_form` is `create`.
    """
    if world.settings.get("openai.enqueued_form") != "create":
        return None
    problems = _problems(world, replace(job), others)
    limited = [one for one in problems if one["code"] == "token_limit_exceeded"]
    return limited[0]["message"] if limited else None


def _line(world: World, name: str, status: int, body: Any, request_id: str | None = None) -> bytes:
    return json_bytes(
        {
            "id": world.new_id("batch_req_"),
            "custom_id": name,
            "response": {
                "status_code": status,
                "request_id": world.new_id("req_") if request_id is None else request_id,
                "body": body,
            },
            "error": None,
        }
    )


def _not_run(world: World, name: str, code: str) -> bytes:
    message = "This request could not be executed before the completion window expired."
    return json_bytes(
        {
            "id": world.new_id("batch_req_"),
            "custom_id": name,
            "response": None,
            "error": {"code": code, "message": message},
        }
    )


def _alien(world: World, job: Job, name: str) -> bytes:
    question = "A question that nobody asked."
    asked = (
        {"model": "gpt-5-mini", "input": question}
        if job.endpoint == models.RESPONSES
        else {"model": "gpt-5-mini", "messages": [{"role": "user", "content": question}]}
    )
    return _line(world, name, 200, models.run(world, job.endpoint, asked, None))
