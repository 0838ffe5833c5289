"""The emulated Gemini Developer API: `/gemini/v1` and `/gemini/v1beta`.

Belongs here: paths, keys, planted faults of calls, models, and single answers. Files, jobs and
rows have modules of their own.

Limits that a test may move in `world.settings`, with their defaults:
`gemini.file_bytes` 2 GB, `gemini.storage_bytes` 20 GB, `gemini.inline_bytes` 20 MB,
`gemini.answer_bytes` 20 MB, `gemini.file_seconds` and `gemini.results_seconds` 48 h,
`gemini.processing_seconds` 0 (until an upload is ACTIVE), `gemini.window_seconds` 48 h,
`gemini.concurrent_jobs` 100, `gemini.enqueued_tokens` 3,000,000, `gemini.context_tokens` 1,048,576,
`gemini.schema_depth` 32, `gemini.list_page_max` 100, `gemini.ranges` true (downloads can be
resumed), `gemini.cancel_keeps_rows` true, `gemini.swapped_order` false,
`gemini.results_delay_seconds` 0 (a job is SUCCEEDED so long before its results are named),
`gemini.state_prefix` `BATCH_STATE_`.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from tests.provider_emulator.faults import Fault
from tests.provider_emulator.gemini_files import PREFIX, Files
from tests.provider_emulator.gemini_http import (
    NAME,
    NAMES,
    ApiError,
    answer_json,
    not_found,
    planted_error,
)
from tests.provider_emulator.gemini_jobs import MODELS, Jobs, require_model
from tests.provider_emulator.gemini_rows import CONTEXT_TOKENS, online_id, run_request
from tests.provider_emulator.http import failed_transport
from tests.provider_emulator.world import World

VERSIONS = ("v1", "v1beta")
ANSWER_BYTES = 20 * 10**6
METHODS = ["generateContent", "countTokens", "createCachedContent", "batchGenerateContent"]
NO_KEY = (
    "Method doesn't allow unregistered callers (callers without established identity). Please use "
    "API Key or other form of API consumer identity to call this API."
)


@dataclass(frozen=True)
class Asked:
    """A call that may be answered: its key, its path's parts, and a fault that is still to do."""

    request: Request
    key: str
    fault: Fault | None

    def part(self, name: str) -> str:
        """Return a part of the path."""
        return self.request.path_params[name]

    async def json(self) -> Any:
        """Return the body.

        Raises:
            ApiError: it is no JSON.
        """
        try:
            return json.loads(await self.request.body() or b"{}")
        except ValueError:
            raise ApiError(400, "Invalid JSON payload received.") from None


Act = Callable[[Asked], Awaitable[Response]]


def routes(world: World) -> list[BaseRoute]:
    """Return the calls of the API."""
    api = Api(world)
    world.state[NAME] = api
    base, download = "/{version}", "/download/{version}"
    return [
        api.route("POST", "/upload/{version}/files", "upload", api.upload, keyless=True),
        api.route("GET", f"{base}/files/{{file}}:download", "download", api.download),
        api.route("GET", f"{download}/files/{{file}}:download", "download", api.download),
        api.route("GET", f"{base}/files/{{file}}", "file", api.file),
        api.route("DELETE", f"{base}/files/{{file}}", "delete", api.delete_file),
        api.route("GET", f"{base}/files", "file", api.files_list),
        api.route("POST", f"{base}/models/{{model}}:batchGenerateContent", "create", api.create),
        api.route("POST", f"{base}/models/{{model}}:generateContent", "answer", api.answer),
        api.route("GET", f"{base}/models/{{model}}", "models", api.model),
        api.route("GET", f"{base}/models", "models", api.models),
        api.route("POST", f"{base}/batches/{{job}}:cancel", "cancel", api.cancel),
        api.route("GET", f"{base}/batches/{{job}}", "retrieve", api.retrieve),
        api.route("DELETE", f"{base}/batches/{{job}}", "delete", api.delete_job),
        api.route("GET", f"{base}/batches", "list", api.list_jobs),
    ]


class Api:
    """The calls of one emulator."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.files = Files(world)
        self.jobs = Jobs(world, self.files)
        self._answers = 0

    def route(
        self, method: str, path: str, op: str, act: Act, *, keyless: bool = False
    ) -> BaseRoute:
        """Return a route that does planted faults, asks for the key, and renders refusals."""

        async def endpoint(request: Request) -> Response:
            facts = {k: v for k, v in request.path_params.items() if k != "version"}
            self._world.log(NAME, op, **facts)
            fault = self._world.faults.take(NAME, op, **facts)
            dropped = failed_transport(request, fault)
            if dropped is not None:
                return dropped
            try:
                if request.path_params["version"] not in VERSIONS:
                    raise not_found()
                if fault is not None and fault.kind == "status":
                    raise planted_error(fault)
                key = _key(request)
                if not key and not keyless:
                    raise ApiError(403, NO_KEY)
                return await act(Asked(request, key, fault))
            except ApiError as refused:
                return refused.response()

        return Route(PREFIX + path, endpoint, methods=[method])

    async def upload(self, asked: Asked) -> Response:
        """Begin an upload, or take its bytes: those come without a key, under the upload's id."""
        if "upload_id" in asked.request.query_params:
            return await self.files.receive(asked.request)
        if not asked.key:
            raise ApiError(403, NO_KEY)
        return await self.files.start(asked.request, asked.key, asked.part("version"))

    async def download(self, asked: Asked) -> Response:
        """Send a generated file."""
        if asked.request.query_params.get("alt") != "media":
            raise ApiError(400, "Downloads are asked for with alt=media.")
        name = f"files/{asked.part('file')}"
        return await self.files.download(asked.request, name, asked.key, asked.fault)

    async def file(self, asked: Asked) -> Response:
        """Tell the facts of a file."""
        return self.files.get(f"files/{asked.part('file')}", asked.key)

    async def files_list(self, asked: Asked) -> Response:
        """Tell the facts of all files."""
        return self.files.list(asked.key)

    async def delete_file(self, asked: Asked) -> Response:
        """Delete a file."""
        return self.files.delete(f"files/{asked.part('file')}", asked.key)

    async def create(self, asked: Asked) -> Response:
        """Create a batch."""
        body = await asked.json()
        with self._world.lock:
            return answer_json(self.jobs.create(asked.key, asked.part("model"), body))

    async def retrieve(self, asked: Asked) -> Response:
        """Show a batch."""
        with self._world.lock:
            return answer_json(self.jobs.get(asked.key, asked.part("job")))

    async def list_jobs(self, asked: Asked) -> Response:
        """Show a page of batches. The Developer API has no filter."""
        query = asked.request.query_params
        if "filter" in query:
            raise ApiError(400, "Filtering is not supported.")
        with self._world.lock:
            return answer_json(
                self.jobs.list(asked.key, query.get("pageSize"), query.get("pageToken"))
            )

    async def cancel(self, asked: Asked) -> Response:
        """Ask a batch to end."""
        with self._world.lock:
            return answer_json(self.jobs.cancel(asked.key, asked.part("job")))

    async def delete_job(self, asked: Asked) -> Response:
        """Delete a batch."""
        with self._world.lock:
            return answer_json(self.jobs.delete(asked.key, asked.part("job")))

    async def model(self, asked: Asked) -> Response:
        """Show a model."""
        require_model(asked.part("model"), "generateContent")
        return answer_json(_model(asked.part("model")))

    async def models(self, asked: Asked) -> Response:
        """Show all models."""
        return answer_json({"models": [_model(name) for name in MODELS]})

    async def answer(self, asked: Asked) -> Response:
        """Answer one request."""
        model = asked.part("model")
        require_model(model, "generateContent")
        world = self._world
        if len(await asked.request.body()) > int(
            world.settings.get("gemini.answer_bytes", ANSWER_BYTES)
        ):
            raise ApiError(400, "Request payload size exceeds the limit: 20971520 bytes.")
        request = await asked.json()
        with world.lock:
            row_id = online_id(request)
            fault = world.faults.take(NAME, "row", index=self._answers, custom_id=row_id)
            self._answers += 1
            outcome = run_request(world, model, request, fault)
            if outcome.executed:
                world.executed[NAME][row_id] += 1
        if outcome.response is not None:
            return answer_json(outcome.response)
        if outcome.error is None:
            raise ApiError(503, "The model is overloaded. Please try again later.")
        raise ApiError(outcome.status, str(outcome.error["message"]), NAMES.get(outcome.status))


def _key(request: Request) -> str:
    return request.headers.get("x-goog-api-key", "") or request.query_params.get("key", "")


def _model(name: str) -> dict[str, Any]:
    return {
        "name": f"models/{name}",
        "version": "001",
        "displayName": name,
        "inputTokenLimit": CONTEXT_TOKENS,
        "outputTokenLimit": 65_536,
        "supportedGenerationMethods": METHODS,
    }
