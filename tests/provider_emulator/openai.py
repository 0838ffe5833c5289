"""The emulated OpenAI API under `/openai/v1`: files, batches, responses, chat, models.

Belongs here: the calls. Jobs are in `openai_jobs.py`, the rules of a body in `openai_models.py`,
the form of answers in `openai_http.py`.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from tests.provider_emulator import answers
from tests.provider_emulator import openai_jobs as jobs
from tests.provider_emulator import openai_models as models
from tests.provider_emulator.faults import Fault
from tests.provider_emulator.http import save_upload, stream_bytes
from tests.provider_emulator.openai_http import (
    PROVIDER,
    ApiError,
    account_of,
    answer,
    error_answer,
    invalid,
    planted,
    planted_error,
    standard_headers,
)
from tests.provider_emulator.world import World

_V1 = "/openai/v1"
_ENDPOINTS = frozenset(
    """
    /v1/responses /v1/chat/completions /v1/embeddings /v1/completions /v1/moderations
    /v1/images/generations /v1/images/edits /v1/videos
    """.split()
)
MAX_FILE_BYTES = 200_000_000
"""Of a file for a batch."""
CREATIONS_PER_HOUR = 2_000
_METHODS = ["GET", "POST", "DELETE", "PUT", "PATCH"]

T = TypeVar("T")
Act = Callable[["Asked"], Awaitable[Response]]


@dataclass
class StoredFile:
    """A file of an account."""

    id: str
    account: str
    path: Path
    name: str
    purpose: str
    size: int
    created: datetime
    seconds: int
    number: int

    def show(self) -> dict[str, Any]:
        """Return the file as the API shows it."""
        created = int(self.created.timestamp())
        return {
            "id": self.id,
            "object": "file",
            "bytes": self.size,
            "created_at": created,
            "expires_at": created + self.seconds,
            "filename": self.name,
            "purpose": self.purpose,
            "status": "processed",
            "status_details": None,
        }


@dataclass(frozen=True)
class Asked:
    """A request that passed the checks which every call has; `fault` is not done yet."""

    request: Request
    account: str
    fault: Fault | None


class OpenAI:
    """The state of the emulated API, and its calls."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._files: dict[str, StoredFile] = {}
        self._jobs: dict[str, jobs.Job] = {}
        self._online_calls = 0
        world.state[PROVIDER] = self

    def endpoint(self, op: str, act: Act) -> Callable[[Request], Awaitable[Response]]:
        """Return a call with what every call has: log, faults, key, headers."""

        async def call(request: Request) -> Response:
            try:
                account = account_of(request)
                retry = request.headers.get("x-stainless-retry-count")
                dropped, fault = planted(
                    self._world, request, op, retry=retry, **request.path_params
                )
                if dropped is not None:
                    return dropped
                response = await act(Asked(request, account, fault))
            except ApiError as error:
                response = error_answer(error)
            response.headers.update(standard_headers(self._world))
            return response

        return call

    async def upload(self, asked: Asked) -> Response:
        """Take a file; what is in it is looked at when it is used."""
        # A form that is closed gives its temporary files back at once.
        async with asked.request.form() as form:
            return await self._take(asked, form)

    async def _take(self, asked: Asked, form: FormData) -> Response:
        upload, purpose = form.get("file"), form.get("purpose")
        if not isinstance(upload, UploadFile):
            raise invalid("'file' is a required property", "file", "missing_required_parameter")
        if not isinstance(purpose, str):
            raise invalid(
                "'purpose' is a required property", "purpose", "missing_required_parameter"
            )
        name = upload.filename or "upload"
        if purpose == "batch" and not name.endswith(".jsonl"):
            message = (
                "Invalid file format for Batch API. Must be .jsonl: see the guide for the format."
            )
            raise ApiError(400, message, beside={"detail": message})
        seconds = _whole(
            form.get("expires_after[seconds]", jobs.KEPT), "expires_after.seconds", 3_600, jobs.KEPT
        )
        path = self._world.folder / self._world.new_id("upload-")
        size = await save_upload(upload, path)
        if size > int(self._world.settings.get("openai.max_bytes", MAX_FILE_BYTES)):
            path.unlink()
            raise ApiError(413, "The file is larger than 200 MB.", code="file_too_large")
        with self._world.lock:
            return answer(self._keep(asked.account, path, name, purpose, size, seconds).show())

    async def files(self, asked: Asked) -> Response:
        """List files, newest first."""
        query = asked.request.query_params
        purpose = query.get("purpose")
        with self._world.lock:
            mine = [
                file
                for file in self._files.values()
                if file.account == asked.account
                and purpose in (None, file.purpose)
                and self._is_kept(file)
            ]
            mine.sort(key=lambda file: file.number, reverse=query.get("order", "desc") == "desc")
            limit = _whole(query.get("limit", 10_000), "limit", 1, 10_000)
            page, more = _page(mine, query.get("after"), limit)
        return answer(_list([file.show() for file in page], more))

    async def file(self, asked: Asked) -> Response:
        """Show a file."""
        with self._world.lock:
            return answer(self._find_file(asked).show())

    async def delete_file(self, asked: Asked) -> Response:
        """Delete a file."""
        with self._world.lock:
            file = self._find_file(asked)
            del self._files[file.id]
            # A running batch goes on with what it was given.
            if not any(
                job.input_path == file.path and job.finished is None for job in self._jobs.values()
            ):
                file.path.unlink()
        return answer({"id": file.id, "object": "file", "deleted": True})

    async def content(self, asked: Asked) -> Response:
        """Stream a file's bytes; a range is honoured unless `openai.ranges` is false."""
        with self._world.lock:
            file = self._find_file(asked)
        return await stream_bytes(
            asked.request,
            file.path,
            fault=asked.fault,
            media_type="application/octet-stream",
            allow_range=bool(self._world.settings.get("openai.ranges", True)),
        )

    async def create(self, asked: Asked) -> Response:
        """Create a batch: its parameters are checked now, its file later."""
        body = await _json(asked.request)
        world = self._world
        for name in ("input_file_id", "endpoint", "completion_window"):
            if not body.get(name):
                raise invalid(
                    f"Missing required parameter: '{name}'.", name, "missing_required_parameter"
                )
        _check_create(body)
        with world.lock:
            self._check_creations(asked.account)
            file = self._input_file(asked.account, body["input_file_id"])
            job_id = world.new_id("batch_")
            job = jobs.Job(
                id=job_id,
                account=asked.account,
                endpoint=body["endpoint"],
                input_file_id=file.id,
                input_path=file.path,
                metadata=body.get("metadata") or {},
                created=world.clock.now(),
                fault=None,
                number=len(self._jobs),
                output_seconds=_output_seconds(body),
            )
            refused = jobs.refused_at_once(world, job, list(self._jobs.values()))
            if refused is not None:
                raise ApiError(429, refused, kind="tokens", code="token_limit_exceeded")
            job.fault = fault = world.faults.take(PROVIDER, "job", job_id=job_id)
            if fault is not None and fault.kind == "not_found":
                job.not_found_left = int(fault.args.get("times", 1))
            self._jobs[job_id] = job
            world.jobs_created[PROVIDER].append(job_id)
            return answer(jobs.show(job))

    async def retrieve(self, asked: Asked) -> Response:
        """Show a batch; one may be unknown for a while although it exists."""
        with self._world.lock:
            job = self._find_job(asked)
            if job.not_found_left > 0:
                job.not_found_left -= 1
                raise _unknown(job.id)
            self._refresh(job)
            return answer(jobs.show(job))

    async def list(self, asked: Asked) -> Response:
        """List batches, newest first, or oldest first with `openai.list_order` `oldest`."""
        query = asked.request.query_params
        limit = _whole(query.get("limit", 20), "limit", 1, 100)
        with self._world.lock:
            mine = [
                job
                for job in self._jobs.values()
                if job.account == asked.account and jobs.is_listed(self._world, job)
            ]
            newest_first = self._world.settings.get("openai.list_order") != "oldest"
            mine.sort(key=lambda job: job.number, reverse=newest_first)
            page, more = _page(mine, query.get("after"), limit)
            for job in page:
                self._refresh(job)
            return answer(_list([jobs.show(job) for job in page], more))

    async def cancel(self, asked: Asked) -> Response:
        """Start to cancel a batch."""
        with self._world.lock:
            job = self._find_job(asked)
            self._refresh(job)
            if job.finished is not None:
                raise ApiError(
                    409, f"Cannot cancel a batch with status '{job.status}'.", code="invalid_state"
                )
            job.cancelled = job.cancelled or self._world.clock.now()
            job.validated, job.status = True, "cancelling"
            if not job.rows:
                with job.input_path.open("rb") as lines:
                    job.rows = sum(bool(line.strip()) for line in lines)
            return answer(jobs.show(job))

    def respond(self, place: str) -> Act:
        """Return the call that answers one body of an endpoint."""

        async def act(asked: Asked) -> Response:
            world = self._world
            body = models.check_body(place, await _json(asked.request))
            prompt = answers.read_prompt(models.user_text(place, body))
            with world.lock:
                row_id = world.new_id("call_") if prompt is None else prompt[0]
                fault = world.faults.take(
                    PROVIDER, "row", index=self._online_calls, custom_id=row_id
                )
                self._online_calls += 1
                if fault is not None and fault.kind in ("error", "status_zero", "not_executed"):
                    raise planted_error(fault)
                world.executed[PROVIDER][row_id] += 1
                response = answer(models.run(world, place, body, fault))
            response.headers.update(_rate_headers())
            return response

        return act

    async def model(self, asked: Asked) -> Response:
        """Show a model."""
        return answer(_model(models.require_model(asked.request.path_params["model"])))

    async def nowhere(self, asked: Asked) -> Response:
        """Answer a path that the API does not have."""
        request = asked.request
        path = request.url.path.removeprefix("/openai")
        raise ApiError(404, f"Invalid URL ({request.method} {path})")

    async def models(self, _asked: Asked) -> Response:
        """List the models."""
        return answer({"object": "list", "data": [_model(name) for name in models.MODELS]})

    def _refresh(self, job: jobs.Job) -> None:
        jobs.refresh(self._world, job, list(self._jobs.values()), self._store)

    def _store(self, job: jobs.Job, kind: str, lines: list[bytes]) -> str:
        path = self._world.folder / f"{job.id}-{kind}.jsonl"
        with path.open("wb") as file:
            size = sum(file.write(line + b"\n") for line in lines)
        name = f"{job.id}_{kind}.jsonl"
        return self._keep(job.account, path, name, "batch_output", size, job.output_seconds).id

    def _keep(
        self, account: str, path: Path, name: str, purpose: str, size: int, seconds: int
    ) -> StoredFile:
        file = StoredFile(
            id=self._world.new_id("file-"),
            account=account,
            path=path,
            name=name,
            purpose=purpose,
            size=size,
            created=self._world.clock.now(),
            seconds=seconds,
            number=len(self._files),
        )
        self._files[file.id] = file
        return file

    def _check_creations(self, account: str) -> None:
        hour_ago = self._world.clock.now() - timedelta(hours=1)
        recent = sum(
            job.account == account and job.created > hour_ago for job in self._jobs.values()
        )
        limit = int(self._world.settings.get("openai.creations_per_hour", CREATIONS_PER_HOUR))
        if recent >= limit:
            message = f"Rate limit reached for batch creations: {limit} per hour."
            raise ApiError(429, message, code="rate_limit_exceeded", headers={"retry-after": "60"})

    def _input_file(self, account: str, file_id: str) -> StoredFile:
        """Return a batch's input; it may not be known at once (`openai.file_ready_seconds`)."""
        file = self._files.get(file_id)
        ready = float(self._world.settings.get("openai.file_ready_seconds", 0))
        if file is None or file.account != account or not ready <= self._age(file) < file.seconds:
            message = f"Invalid 'input_file_id': file {file_id} was not found."
            raise ApiError(404, message, param="input_file_id", code="not_found")
        if file.purpose != "batch":
            message = f"Invalid file purpose: expected 'batch', got '{file.purpose}'."
            raise invalid(message, "input_file_id", "invalid_value")
        return file

    def _age(self, file: StoredFile) -> float:
        return (self._world.clock.now() - file.created).total_seconds()

    def _is_kept(self, file: StoredFile) -> bool:
        return self._age(file) < file.seconds

    def _find_file(self, asked: Asked) -> StoredFile:
        file_id = asked.request.path_params["file_id"]
        file = self._files.get(file_id)
        if file is None or file.account != asked.account or not self._is_kept(file):
            raise ApiError(404, f"No such File object: {file_id}", param="id")
        return file

    def _find_job(self, asked: Asked) -> jobs.Job:
        job_id = asked.request.path_params["job_id"]
        job = self._jobs.get(job_id)
        if job is None or job.account != asked.account:
            raise _unknown(job_id)
        return job


def routes(world: World) -> list[BaseRoute]:
    """Return the calls of the emulated API."""
    api = OpenAI(world)

    def route(method: str, path: str, op: str, act: Act) -> Route:
        return Route(f"{_V1}{path}", api.endpoint(op, act), methods=[method])

    return [
        route("POST", "/files", "upload", api.upload),
        route("GET", "/files", "file", api.files),
        route("GET", "/files/{file_id}", "file", api.file),
        route("DELETE", "/files/{file_id}", "delete", api.delete_file),
        route("GET", "/files/{file_id}/content", "download", api.content),
        route("POST", "/batches", "create", api.create),
        route("GET", "/batches", "list", api.list),
        route("GET", "/batches/{job_id}", "retrieve", api.retrieve),
        route("POST", "/batches/{job_id}/cancel", "cancel", api.cancel),
        route("POST", "/responses", "answer", api.respond(models.RESPONSES)),
        route("POST", "/chat/completions", "answer", api.respond(models.CHAT)),
        route("GET", "/models", "models", api.models),
        route("GET", "/models/{model}", "models", api.model),
        Route("/openai/{path:path}", api.endpoint("nowhere", api.nowhere), methods=_METHODS),
    ]


async def _json(request: Request) -> dict[str, Any]:
    try:
        body = json.loads(await request.body())
    except ValueError:
        raise invalid("We could not parse the JSON body of your request.") from None
    if not isinstance(body, dict):
        raise invalid("The body is no object.")
    return body


def _check_create(body: dict[str, Any]) -> None:
    if body["endpoint"] not in _ENDPOINTS:
        raise invalid("Invalid value for 'endpoint'.", "endpoint", "invalid_value")
    if body["completion_window"] != "24h":
        raise invalid(
            "Invalid value for 'completion_window': only '24h' is supported.",
            "completion_window",
            "invalid_value",
        )
    metadata = body.get("metadata") or {}
    if (
        not isinstance(metadata, dict)
        or len(metadata) > 16
        or any(
            not isinstance(value, str) or len(key) > 64 or len(value) > 512
            for key, value in metadata.items()
        )
    ):
        raise invalid("Invalid 'metadata'.", "metadata", "invalid_value")


def _whole(value: Any, name: str, least: int, most: int) -> int:
    """Return a whole number of a query, a form or a body, within its bounds."""
    try:
        number = int(str(value))
    except ValueError:
        number = least - 1
    if not least <= number <= most:
        raise invalid(f"Invalid '{name}': expected {least} to {most}.", name, "invalid_value")
    return number


def _output_seconds(body: dict[str, Any]) -> int:
    expires = body.get("output_expires_after")
    if expires is None:
        return jobs.KEPT
    if not isinstance(expires, dict) or expires.get("anchor") != "created_at":
        raise invalid(
            "Invalid 'output_expires_after': the anchor is 'created_at'.",
            "output_expires_after",
            "invalid_value",
        )
    return _whole(expires.get("seconds"), "output_expires_after.seconds", 3_600, jobs.KEPT)


def _page(items: list[T], after: str | None, limit: int) -> tuple[list[T], bool]:
    start = 0
    if after is not None:
        places = {str(getattr(item, "id", "")): place for place, item in enumerate(items)}
        if after not in places:
            raise invalid(f"Invalid 'after': {after} was not found.", "after")
        start = places[after] + 1
    return items[start : start + limit], len(items) > start + limit


def _list(data: list[dict[str, Any]], more: bool) -> dict[str, Any]:
    return {
        "object": "list",
        "data": data,
        "first_id": data[0]["id"] if data else None,
        "last_id": data[-1]["id"] if data else None,
        "has_more": more,
    }


def _unknown(job_id: str) -> ApiError:
    return ApiError(404, f"No batch found with id '{job_id}'.")


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 1_754_425_777, "owned_by": "system"}


def _rate_headers() -> dict[str, str]:
    return {
        "x-ratelimit-limit-requests": "5000",
        "x-ratelimit-limit-tokens": "2000000",
        "x-ratelimit-remaining-requests": "4999",
        "x-ratelimit-remaining-tokens": "1999000",
        "x-ratelimit-reset-requests": "12ms",
        "x-ratelimit-reset-tokens": "1s",
    }
