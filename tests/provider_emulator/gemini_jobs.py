"""Emulated Gemini batches: their life by the virtual clock, and their results.

Belongs here: the state of jobs, the operations that show it, and the refusals at creation. Does
not belong here: HTTP (`gemini.py`), files (`gemini_files.py`), single requests (`gemini_rows.py`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from tests.provider_emulator.faults import Fault
from tests.provider_emulator.gemini_files import Files, rfc3339
from tests.provider_emulator.gemini_http import CODES, NAME, ApiError, exhausted, not_found
from tests.provider_emulator.gemini_rows import Outcome, run_request
from tests.provider_emulator.http import json_bytes
from tests.provider_emulator.rows import mangle_lines
from tests.provider_emulator.world import World

MODELS = ("gemini-2.5-flash",)
WINDOW_SECONDS = 48 * 3600.0
CONCURRENT_JOBS = 100
ENQUEUED_TOKENS = 3_000_000
INLINE_BYTES = 20 * 10**6
PAGE_SIZE = 50
LARGEST_PAGE = 100
TYPE = "type.googleapis.com/google.ai.generativelanguage.v1main."

Row = tuple[str, Any]
"""A request's key and the request."""


@dataclass
class Job:
    """One batch.

    `ended` is the state that it ended in, without the prefix; `problem` a fault of its input.
    """

    id: str
    number: int
    key: str
    model: str
    display_name: str
    file_name: str | None
    rows: list[Row]
    tokens: int
    created: datetime
    problem: str | None = None
    fault: Fault | None = None
    hidden_reads: int = 0
    cancelled: datetime | None = None
    ended: str | None = None
    ended_at: datetime | None = None
    counts: dict[str, int] = field(default_factory=dict)
    results_file: str | None = None
    inlined: list[Any] | None = None

    @property
    def name(self) -> str:
        """Return the resource name."""
        return f"batches/{self.id}"

    def has(self, kind: str) -> bool:
        """Return whether this is the job's planted fault."""
        return self.fault is not None and self.fault.kind == kind

    def arg(self, name: str, default: Any) -> Any:
        """Return an argument of the planted fault."""
        return default if self.fault is None else self.fault.args.get(name, default)


@dataclass(frozen=True)
class _End:
    """When a job ends, in which state, and which share of it is run and kept by then."""

    at: datetime
    state: str
    done: float = 0.0


class Jobs:
    """All batches of an emulator."""

    def __init__(self, world: World, files: Files) -> None:
        self._world = world
        self._files = files
        self._jobs: dict[str, Job] = {}

    # --- calls --------------------------------------------------------------------------------

    def create(self, key: str, model: str, body: Any) -> dict[str, Any]:
        """Take a batch and return its operation; nothing is looked for by display name."""
        require_model(model, "batchGenerateContent")
        batch = body.get("batch") if isinstance(body, dict) else None
        if not isinstance(batch, dict) or not batch.get("displayName"):
            raise ApiError(
                400,
                "* BatchGenerateContentRequest.batch.display_name: must be specified\n",
            )
        file_name, rows, problem = self._input(key, batch.get("inputConfig"))
        tokens = sum(len(json_bytes(request)) // 4 for _, request in rows)
        self._check_limits(key, model, tokens)
        job_id = self._world.new_id("") + self._world.new_id("")[:12]
        job = Job(
            id=job_id,
            number=len(self._world.jobs_created[NAME]),
            key=key,
            model=model,
            display_name=str(batch["displayName"]),
            file_name=file_name,
            rows=rows,
            tokens=tokens,
            created=self._world.clock.now(),
            problem=problem,
            fault=self._world.faults.take(NAME, "job", job_id=job_id, rows=len(rows)),
        )
        if job.has("not_found"):
            job.hidden_reads = int(job.arg("times", 1))
        self._jobs[job_id] = job
        self._world.jobs_created[NAME].append(job.name)
        return self._shown(job, with_results=True)

    def get(self, key: str, job_id: str) -> dict[str, Any]:
        """Return the operation of a batch, results and all."""
        job = self._find(key, job_id)
        if job.hidden_reads > 0:
            job.hidden_reads -= 1
            raise not_found()
        return self._shown(job, with_results=True)

    def list(self, key: str, page_size: str | None, page_token: str | None) -> dict[str, Any]:
        """Return a page of an account's operations, newest first, without results."""
        most = int(self._world.settings.get("gemini.list_page_max", LARGEST_PAGE))
        size = min(most, int(page_size or PAGE_SIZE))
        before = int(page_token) if page_token else len(self._world.jobs_created[NAME])
        own = [
            job
            for job in sorted(self._jobs.values(), key=lambda one: -one.number)
            if job.key == key and job.number < before and self._is_listed(job)
        ]
        page: dict[str, Any] = {}
        if own:
            page["operations"] = [self._shown(job, with_results=False) for job in own[:size]]
        if len(own) > size:
            page["nextPageToken"] = str(own[size - 1].number)
        return page

    def cancel(self, key: str, job_id: str) -> dict[str, Any]:
        """Note the wish to end a batch; one that has ended stays as it is."""
        job = self._find(key, job_id)
        self._refresh(job)
        if job.ended is None and job.cancelled is None:
            job.cancelled = self._world.clock.now()
        return {}

    def delete(self, key: str, job_id: str) -> dict[str, Any]:
        """Forget a batch and its results. One that is not done is run, and paid, all the same."""
        job = self._find(key, job_id)
        self._refresh(job)
        if job.ended is None:
            self._run(job, _End(self._world.clock.now(), "SUCCEEDED", 1.0))
        if job.results_file is not None:
            self._files.drop(job.results_file)
        del self._jobs[job.id]
        return {}

    # --- creation -----------------------------------------------------------------------------

    def _input(self, key: str, config: Any) -> tuple[str | None, list[Row], str | None]:
        """Return (file, rows, problem that fails the job later)."""
        if not isinstance(config, dict):
            raise ApiError(
                400, "* BatchGenerateContentRequest.batch.input_config: must be specified\n"
            )
        if "fileName" in config:
            file = self._files.usable(str(config["fileName"]), key)
            rows, problem = read_rows(file.path.read_bytes())
            return file.name, rows, problem
        given = (config.get("requests") or {}).get("requests")
        if not isinstance(given, list) or not given:
            raise ApiError(
                400, "* BatchGenerateContentRequest.batch.input_config: source must be set\n"
            )
        limit = int(self._world.settings.get("gemini.inline_bytes", INLINE_BYTES))
        if len(json_bytes(given)) > limit:
            raise ApiError(400, f"Request payload size exceeds the limit: {limit} bytes.")
        rows = [
            (str((one.get("metadata") or {}).get("key", index)), one.get("request"))
            for index, one in enumerate(given)
        ]
        return None, rows, None

    def _check_limits(self, key: str, model: str, tokens: int) -> None:
        own = [job for job in self._jobs.values() if job.key == key]
        for job in own:
            self._refresh(job)
        active = [job for job in own if job.ended is None]
        settings = self._world.settings
        if len(active) >= int(settings.get("gemini.concurrent_jobs", CONCURRENT_JOBS)):
            raise exhausted("ConcurrentBatchJobsPerProject")
        queued = sum(job.tokens for job in active if job.model == model)
        if queued + tokens > int(settings.get("gemini.enqueued_tokens", ENQUEUED_TOKENS)):
            raise exhausted("BatchEnqueuedTokensPerModelPerProject")

    # --- life ---------------------------------------------------------------------------------

    def _find(self, key: str, job_id: str) -> Job:
        job = self._jobs.get(job_id)
        if job is None or job.key != key:
            raise not_found()
        return job

    def _is_listed(self, job: Job) -> bool:
        hidden = timedelta(seconds=float(job.arg("seconds", 60))) * job.has("unlisted")
        return self._world.clock.now() >= job.created + hidden

    def _refresh(self, job: Job) -> None:
        if job.ended is not None:
            return
        end = self._end(job)
        if end is not None and self._world.clock.now() >= end.at:
            self._run(job, end)

    def _starts(self, job: Job) -> datetime:
        return job.created + timedelta(seconds=self._world.timing.validating_seconds)

    def _end(self, job: Job) -> _End | None:
        """Return how a job ends as things stand, None where it never does."""
        timing = self._world.timing
        running = timedelta(seconds=timing.running_seconds)
        start = self._starts(job)
        window = float(self._world.settings.get("gemini.window_seconds", WINDOW_SECONDS))
        expired = _End(job.created + timedelta(seconds=window), "EXPIRED")
        if job.cancelled is not None:
            done = max(0.0, min(1.0, (job.cancelled - start) / running)) if running else 1.0
            at = job.cancelled + timedelta(seconds=timing.cancelling_seconds)
            return min(_End(at, "CANCELLED", done), expired, key=lambda one: one.at)
        if job.has("stuck") or job.has("unknown_status"):
            return None
        if job.has("failed") or job.problem is not None:
            return _End(start, "FAILED")
        if job.has("expired"):
            return expired
        if job.has("cancelled"):
            return _End(start + running, "CANCELLED", float(job.arg("done", 0.5)))
        return min(_End(start + running, "SUCCEEDED", 1.0), expired, key=lambda one: one.at)

    def _run(self, job: Job, end: _End) -> None:
        """Run the share of rows that is done, keep their results, and end the job."""
        job.ended, job.ended_at = end.state, end.at
        keeps = self._world.settings.get("gemini.cancel_keeps_rows", True)
        if end.state in ("FAILED", "EXPIRED"):
            return
        done = int(len(job.rows) * end.done)
        lines: list[tuple[str, bytes]] = []
        for index, (row_id, request) in enumerate(job.rows[:done]):
            outcome, line = self._row(job, index, row_id, request)
            if line is not None:
                lines.append((row_id, line))
                ok = outcome.response is not None
                count = "successfulRequestCount" if ok else "failedRequestCount"
                job.counts[count] = job.counts.get(count, 0) + 1
        job.counts["pendingRequestCount"] = len(job.rows) - done
        if end.state == "SUCCEEDED" or (keeps and lines):
            self._keep(job, lines, end.at)

    def _row(self, job: Job, index: int, row_id: str, request: Any) -> tuple[Outcome, bytes | None]:
        if job.has("all_failed"):
            message = str(job.arg("message", "Request contains an invalid argument."))
            failed = Outcome(error={"code": int(job.arg("code", 3)), "message": message})
            return failed, _line(row_id, failed)
        fault = self._world.faults.take(NAME, "row", index=index, custom_id=row_id, job_id=job.id)
        outcome = run_request(self._world, job.model, request, fault)
        if outcome.executed:
            self._world.executed[NAME][row_id] += 1
        if fault is not None and fault.kind == "not_executed":
            return outcome, None
        return outcome, _line(row_id, outcome)

    def _keep(self, job: Job, lines: list[tuple[str, bytes]], at: datetime) -> None:
        """Write the results: a file for a file, and inline for inline or with that fault."""
        if self._world.settings.get("gemini.swapped_order", False):
            lines = [one for pair in zip(lines[1::2], lines[::2], strict=False) for one in pair] + (
                lines[-1:] if len(lines) % 2 else []
            )
        written = mangle_lines(self._world, NAME, job.id, lines, self._alien(job))
        if job.file_name is None or job.has("inline"):
            job.inlined = list(_inline_entries(written))
            return
        path = self._world.folder / f"gemini-{job.id}.jsonl"
        path.write_bytes(b"".join(line + b"\n" for line in written))
        job.results_file = f"files/batch-{job.id}"
        self._files.add_generated(job.results_file, job.key, path, at)

    def _alien(self, job: Job) -> Any:
        request = {"contents": [{"parts": [{"text": "A question that nobody asked."}]}]}

        def alien(row_id: str) -> bytes:
            return _line(row_id, run_request(self._world, job.model, request, None))

        return alien

    # --- what is shown ------------------------------------------------------------------------

    def _shown(self, job: Job, *, with_results: bool) -> dict[str, Any]:
        self._refresh(job)
        state = self._state(job)
        prefix = str(self._world.settings.get("gemini.state_prefix", "BATCH_STATE_"))
        metadata: dict[str, Any] = {
            "@type": TYPE + "GenerateContentBatch",
            "model": f"models/{job.model}",
            "displayName": job.display_name,
            "inputConfig": {"fileName": job.file_name} if job.file_name else {},
            "createTime": rfc3339(job.created),
            "updateTime": rfc3339(job.ended_at or self._world.clock.now()),
            "state": job.arg("status", "BATCH_STATE_REVIEWING") if not state else prefix + state,
            "name": job.name,
        }
        if not job.has("no_counts"):
            metadata["batchStats"] = self._stats(job)
        if job.ended_at is not None:
            metadata["endTime"] = rfc3339(job.ended_at)
        operation: dict[str, Any] = {"name": job.name, "metadata": metadata}
        if job.ended is not None:
            operation["done"] = True
        if job.ended == "FAILED":
            operation["error"] = self._failure(job)
        output = self._output(job) if with_results else None
        if output is not None:
            # Told twice, as the service does it.
            metadata["output"] = output
            operation["response"] = {"@type": TYPE + "GenerateContentBatchOutput", **output}
        return operation

    def _state(self, job: Job) -> str:
        """Return the state without its prefix; empty where the fault names a strange one."""
        if job.ended is not None:
            return job.ended
        if job.has("stuck") or self._world.clock.now() < self._starts(job):
            return "PENDING"
        return "" if job.has("unknown_status") else "RUNNING"

    def _stats(self, job: Job) -> dict[str, str]:
        """Return the counts: strings, zeros left out."""
        total = len(job.rows)
        counts = job.counts
        if job.ended is None:
            running = self._world.timing.running_seconds or 1.0
            since = (self._world.clock.now() - self._starts(job)).total_seconds()
            done = int(total * max(0.0, min(0.99, since / running)))
            counts = {"successfulRequestCount": done, "pendingRequestCount": total - done}
        elif not counts:
            counts = {"pendingRequestCount": total}
        found = {"requestCount": total, **counts}
        return {name: str(count) for name, count in found.items() if count}

    def _output(self, job: Job) -> dict[str, Any] | None:
        delay = float(self._world.settings.get("gemini.results_delay_seconds", 0.0))
        if job.ended_at is None or self._world.clock.now() < job.ended_at + timedelta(
            seconds=delay
        ):
            return None
        if job.results_file is not None:
            return {"responsesFile": job.results_file}
        if job.inlined is not None:
            return {"inlinedResponses": {"inlinedResponses": job.inlined}}
        return None

    def _failure(self, job: Job) -> dict[str, Any]:
        if job.problem is not None and not job.has("failed"):
            return {"code": 3, "message": job.problem}
        code = job.arg("code", 13)
        number = code if isinstance(code, int) else CODES.get(str(code), 13)
        return {"code": number, "message": str(job.arg("message", "Emulated failure of the job."))}


def require_model(model: str, method: str) -> None:
    """Refuse a model that is not there, as the service does at the call.

    Raises:
        ApiError: 404.
    """
    if model not in MODELS:
        raise ApiError(
            404,
            f"models/{model} is not found for API version v1, or is not supported for {method}. "
            "Call ListModels to see the list of available models and their supported methods.",
        )


def read_rows(data: bytes) -> tuple[list[Row], str | None]:
    """Return the rows of an input file, and what fails the whole job if one has no such form."""
    rows: list[Row] = []
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            rows.append((str(row["key"]), row["request"]))
        except (ValueError, KeyError, TypeError):
            return rows, f"Failed to parse line {number} of the input file as a batch request."
    return rows, None if rows else "The input file has no requests."


def _line(row_id: str, outcome: Outcome) -> bytes:
    line: dict[str, Any] = {"key": row_id}
    if outcome.response is not None:
        line["response"] = outcome.response
    if outcome.error is not None:
        line["error"] = outcome.error
    return json_bytes(line)


def _inline_entries(lines: list[bytes]) -> Iterator[dict[str, Any]]:
    """Return result lines as inline entries; a damaged line cannot stand there and is left out."""
    for line in lines:
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        yield {"metadata": {"key": entry.pop("key")}, **entry}
