"""The emulated Anthropic API under `/anthropic`: message batches, messages, models.

Belongs here: the calls. Jobs are in `anthropic_jobs.py`, the rules of a body in
`anthropic_messages.py`, the form of answers in `anthropic_api.py`.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from tests.provider_emulator import answers
from tests.provider_emulator import anthropic_jobs as jobs
from tests.provider_emulator import anthropic_messages as messages
from tests.provider_emulator.anthropic_api import (
    NAME,
    Meter,
    Problem,
    account_of,
    planted_problem,
    read_body,
    read_json,
    refuse,
    setting,
    version_of,
)
from tests.provider_emulator.faults import Fault
from tests.provider_emulator.http import failed_transport, json_response, stream_bytes
from tests.provider_emulator.world import World

_CUSTOM_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_BATCHES = "/anthropic/v1/messages/batches"
_RELEASED = "2025-10-01T00:00:00Z"
_MAX_LIMIT = 1000

Act = Callable[["Asked"], Awaitable[Response]]


class _Create(msgspec.Struct, frozen=True):
    requests: list[msgspec.Raw]


class Asked:
    """A request that passed the checks which every call has.

    Attributes:
        request: as it came.
        account: whose it is.
        version: the API version that it asks for.
        fault: what is planted for this call and not done yet.
    """

    def __init__(self, request: Request, account: str, version: str, fault: Fault | None) -> None:
        self.request = request
        self.account = account
        self.version = version
        self.fault = fault


class Anthropic:
    """The state of the emulated API, and its calls."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._jobs: dict[str, jobs.Job] = {}
        self._meter = Meter()
        self._online_calls = 0
        world.state[NAME] = self

    def endpoint(self, op: str, act: Act, pool: str) -> Callable[[Request], Awaitable[Response]]:
        """Return a call with what every call has: log, faults, key, version, rate."""

        async def call(request: Request) -> Response:
            facts = dict(request.path_params)
            attempt = request.headers.get("x-stainless-retry-count")
            self._world.log(NAME, op, retry=attempt, **facts)
            fault = self._world.faults.take(NAME, op, **facts)
            broken = failed_transport(request, fault)
            if broken is not None:
                return broken
            try:
                asked = self._admit(request, fault)
                headers = self._charge(asked.account, pool)
                response = await act(asked)
            except Problem as problem:
                return refuse(self._world, problem)
            response.headers.update(headers)
            response.headers["request-id"] = self._world.new_id("req_")
            response.headers["anthropic-organization-id"] = "org-emulated"
            return response

        return call

    def _admit(self, request: Request, fault: Fault | None) -> Asked:
        account = account_of(request)
        if fault is not None and fault.kind == "status":
            raise planted_problem(fault)
        return Asked(request, account, version_of(request), fault)

    def _charge(self, account: str, pool: str) -> dict[str, str]:
        if not pool:
            return {}
        limit = int(setting(self._world, f"anthropic.{pool}_requests_per_minute"))
        return self._meter.charge(account, pool, limit, self._world.clock.now())

    async def create(self, asked: Asked) -> Response:
        """Create a batch: ids are checked now, params when they are run."""
        world = self._world
        limit = int(setting(world, "anthropic.max_bytes"))
        rows = _read_rows(
            await read_body(asked.request, limit), int(setting(world, "anthropic.max_rows"))
        )
        with world.lock:
            self._check_queue(asked.account, len(rows))
            job_id = world.new_id("msgbatch_")
            fault = world.faults.take(NAME, "job", job_id=job_id, rows=len(rows))
            job = jobs.Job(
                id=job_id,
                account=asked.account,
                version=asked.version,
                betas=asked.request.headers.get("anthropic-beta", ""),
                rows=rows,
                created=world.clock.now(),
                fault=fault,
                number=len(self._jobs),
            )
            if fault is not None and fault.kind == "not_found":
                job.not_found_left = int(fault.args.get("times", 1))
            self._jobs[job_id] = job
            world.jobs_created[NAME].append(job_id)
            return json_response(jobs.show(world, job))

    async def retrieve(self, asked: Asked) -> Response:
        """Show a batch; one may be unknown for a while although it exists."""
        with self._world.lock:
            job = self._find(asked)
            if job.not_found_left > 0:
                job.not_found_left -= 1
                raise _unknown(job.id)
            return json_response(jobs.show(self._world, job))

    async def list(self, asked: Asked) -> Response:
        """List batches, newest first."""
        query = asked.request.query_params
        with self._world.lock:
            mine = [
                job
                for job in self._jobs.values()
                if job.account == asked.account and jobs.is_listed(self._world, job)
            ]
            mine.sort(key=lambda job: job.number, reverse=True)
            page, more = _page(mine, query.get("after_id"), query.get("before_id"), _limit(query))
            data = [jobs.show(self._world, job) for job in page]
        return json_response(
            {
                "data": data,
                "has_more": more,
                "first_id": data[0]["id"] if data else None,
                "last_id": data[-1]["id"] if data else None,
            }
        )

    async def cancel(self, asked: Asked) -> Response:
        """Start to cancel a batch."""
        with self._world.lock:
            job = self._find(asked)
            jobs.refresh(self._world, job)
            if job.ended is not None:
                raise Problem(400, f"Batch {job.id} cannot be canceled because it has ended.")
            job.cancelled = job.cancelled or self._world.clock.now()
            return json_response(jobs.show(self._world, job))

    async def delete(self, asked: Asked) -> Response:
        """Delete a batch that has ended."""
        with self._world.lock:
            job = self._find(asked)
            jobs.refresh(self._world, job)
            if job.ended is None:
                raise Problem(400, f"Batch {job.id} cannot be deleted before it has ended.")
            del self._jobs[job.id]
            if job.results is not None:
                job.results.unlink()
        return json_response({"id": job.id, "type": "message_batch_deleted"})

    async def results(self, asked: Asked) -> Response:
        """Stream the results of an ended batch; a range is not honoured."""
        with self._world.lock:
            job = self._find(asked)
            jobs.refresh(self._world, job)
            if job.results is None or jobs.is_archived(self._world, job):
                raise Problem(404, f"Batch {job.id} has no available results.")
        return await stream_bytes(
            asked.request, job.results, fault=asked.fault, media_type="application/x-jsonl"
        )

    async def answer(self, asked: Asked) -> Response:
        """Answer one message."""
        world = self._world
        limit = int(setting(world, "anthropic.message_bytes"))
        body = read_json(await read_body(asked.request, limit))
        params = messages.check_body(world, body, version=asked.version, batch=False)
        prompt = answers.read_prompt(messages.user_text(params))
        with world.lock:
            row_id = world.new_id("msg_") if prompt is None else prompt[0]
            fault = world.faults.take(NAME, "row", index=self._online_calls, custom_id=row_id)
            self._online_calls += 1
            if fault is not None and fault.kind in ("error", "status_zero", "not_executed"):
                raise planted_problem(fault)
            world.executed[NAME][row_id] += 1
            return json_response(messages.run(world, params, "standard", fault))

    async def model(self, asked: Asked) -> Response:
        """Show a model."""
        name = asked.request.path_params["model"]
        if name not in messages.MODELS and name not in messages.MODELS.values():
            raise Problem(404, f"model: {name}")
        return json_response(_model(name))

    async def models(self, asked: Asked) -> Response:
        """List the models."""
        data = [_model(name) for name in messages.MODELS]
        page = {"data": data, "has_more": False}
        return json_response({**page, "first_id": data[0]["id"], "last_id": data[-1]["id"]})

    def _find(self, asked: Asked) -> jobs.Job:
        job_id = asked.request.path_params["job_id"]
        job = self._jobs.get(job_id)
        if job is None or job.account != asked.account:
            raise _unknown(job_id)
        return job

    def _check_queue(self, account: str, rows: int) -> None:
        limit = int(setting(self._world, "anthropic.queued_rows"))
        mine = [job for job in self._jobs.values() if job.account == account]
        queued = jobs.queued_rows(self._world, mine)
        if queued + rows > limit:
            raise Problem(
                429,
                f"This request would exceed your limit of {limit} batch requests in the "
                f"processing queue ({queued} are queued).",
                retry_after=60,
            )


def routes(world: World) -> list[BaseRoute]:
    """Return the calls of the emulated API."""
    api = Anthropic(world)

    def route(method: str, path: str, op: str, act: Act, pool: str = "") -> Route:
        return Route(path, api.endpoint(op, act, pool), methods=[method])

    one = f"{_BATCHES}/{{job_id}}"
    return [
        route("POST", _BATCHES, "create", api.create, "batch"),
        route("GET", _BATCHES, "list", api.list, "batch"),
        route("GET", one, "retrieve", api.retrieve, "batch"),
        route("DELETE", one, "delete", api.delete, "batch"),
        route("POST", f"{one}/cancel", "cancel", api.cancel, "batch"),
        route("GET", f"{one}/results", "download", api.results, "batch"),
        route("POST", "/anthropic/v1/messages", "answer", api.answer, "online"),
        route("GET", "/anthropic/v1/models", "models", api.models),
        route("GET", "/anthropic/v1/models/{model}", "models", api.model),
    ]


def _read_rows(body: bytes, most: int) -> list[jobs.Row]:
    """Return the rows of a create call, after the checks that are done at once."""
    try:
        raw = msgspec.json.decode(body, type=_Create).requests
    except msgspec.ValidationError:
        raise Problem(400, "requests: Field required") from None
    except (msgspec.DecodeError, RecursionError):
        raise Problem(400, "The request body is not valid JSON") from None
    if not raw:
        raise Problem(400, "requests: List should have at least 1 item after validation, not 0")
    if len(raw) > most:
        raise Problem(413, f"requests: a batch has at most {most} requests, not {len(raw)}")
    rows: list[jobs.Row] = []
    seen: set[str] = set()
    for number, data in enumerate(raw):
        row = _read_row(number, bytes(data))
        if row.custom_id in seen:
            raise Problem(400, f"requests.{number}.custom_id: must be unique in the batch")
        seen.add(row.custom_id)
        rows.append(row)
    return rows


def _read_row(number: int, data: bytes) -> jobs.Row:
    try:
        row = msgspec.json.decode(data, type=jobs.Row)
    except msgspec.ValidationError as error:
        raise Problem(400, f"requests.{number}: {error}") from None
    if not _CUSTOM_ID.fullmatch(row.custom_id):
        raise Problem(
            400,
            f"requests.{number}.custom_id: String should match pattern '^[a-zA-Z0-9_-]{{1,64}}$'",
        )
    return row


def _limit(query: Any) -> int:
    text = query.get("limit", "20")
    if not text.isdecimal() or not 1 <= int(text) <= _MAX_LIMIT:
        raise Problem(400, f"limit: Input should be between 1 and {_MAX_LIMIT}")
    return int(text)


def _page(
    newest_first: list[jobs.Job], after: str | None, before: str | None, limit: int
) -> tuple[list[jobs.Job], bool]:
    """Return a page, and whether there is more in its direction."""
    if after is not None and before is not None:
        raise Problem(400, "after_id: cannot be combined with before_id")
    places = {job.id: place for place, job in enumerate(newest_first)}
    cursor = after or before
    if cursor is not None and cursor not in places:
        raise Problem(400, f"after_id: {cursor} is not a batch of this workspace")
    if before is not None:
        earlier = newest_first[: places[before]]
        return earlier[-limit:], len(earlier) > limit
    rest = newest_first[places[after] + 1 :] if after is not None else newest_first
    return rest[:limit], len(rest) > limit


def _model(name: str) -> dict[str, Any]:
    return {
        "id": messages.MODELS.get(name, name),
        "type": "model",
        "display_name": name,
        "created_at": _RELEASED,
        "lifecycle": "active",
    }


def _unknown(job_id: str) -> Problem:
    return Problem(404, f"No batch was found with the id {job_id}.")
