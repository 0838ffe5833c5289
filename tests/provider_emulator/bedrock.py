"""Amazon Bedrock, emulated: the control plane of batch jobs, Converse, and the S3 under them.

Belongs here: paths, checks of a call's form, and error bodies. Does not belong here: jobs
(`bedrock_jobs.py`), bodies and answers (`bedrock_converse.py`), objects (`bedrock_s3.py`).

Signatures are read for their access key id and region, and never verified.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from tests.provider_emulator import bedrock_s3
from tests.provider_emulator.bedrock_converse import (
    Outcome,
    base_model,
    is_profile,
    row_id_online,
    run_row,
)
from tests.provider_emulator.bedrock_http import (
    PROVIDER,
    AwsError,
    Caller,
    caller_of,
    error_response,
    planted,
)
from tests.provider_emulator.bedrock_jobs import BatchJob, Jobs
from tests.provider_emulator.bedrock_s3 import ObjectStore
from tests.provider_emulator.http import json_response
from tests.provider_emulator.world import World

_REQUIRED = ("jobName", "roleArn", "modelId", "inputDataConfig", "outputDataConfig")
_S3_URI = r"s3://[a-z0-9][-.a-z0-9]{1,61}[a-z0-9](?:/[-!_*'().a-z0-9A-Z]+)*/?"
# Member → (pattern, longest), as the service model has them.
_PATTERNS = {
    "jobName": (r"[a-zA-Z0-9]{1,63}(-*[a-zA-Z0-9\+\-\.]){0,63}", 63),
    "clientRequestToken": (r"[a-zA-Z0-9]{1,256}(-*[a-zA-Z0-9]){0,256}", 256),
    "roleArn": (r"arn:aws(-[^:]+)?:iam::([0-9]{12})?:role/.+", 2048),
}
_STATUSES = frozenset(
    "Submitted InProgress Completed Failed Stopping Stopped PartiallyCompleted Expired Validating "
    "Scheduled".split()
)
_UNKNOWN_MODEL = "The provided model identifier is invalid."
_STATUS_OF_CODE = {
    400: "ValidationException",
    429: "ThrottlingException",
    500: "InternalServerException",
    503: "ServiceUnavailableException",
}
MAX_CONVERSE_BYTES = 25 << 20


def routes(world: World) -> list[BaseRoute]:
    """Return the routes under `/bedrock` and `/s3`.

    The server asks once for either prefix; both share one state.
    """
    if PROVIDER not in world.state:
        world.state[PROVIDER] = Jobs(world, ObjectStore(world))
    jobs: Jobs = world.state[PROVIDER]
    handler = _Handler(world, jobs)
    table: list[tuple[str, str, _Operation]] = [
        ("POST", "/model-invocation-job", handler.create),
        ("POST", "/model-invocation-job/{job_id:path}/stop", handler.stop),
        ("GET", "/model-invocation-job/{job_id:path}", handler.retrieve),
        ("GET", "/model-invocation-jobs", handler.list_jobs),
        ("GET", "/foundation-models/{model_id:path}", handler.foundation_model),
        ("GET", "/inference-profiles/{model_id:path}", handler.inference_profile),
        ("POST", "/model/{model_id:path}/converse", handler.converse),
    ]
    return [
        *(
            Route(f"/bedrock{path}", handler.endpoint(operation), methods=[method])
            for method, path, operation in table
        ),
        *bedrock_s3.routes(world, jobs.store, jobs.look_at_all),
    ]


_Operation = Callable[[Request, Caller], Awaitable[Response]]


class _Handler:
    def __init__(self, world: World, jobs: Jobs) -> None:
        self._world = world
        self._jobs = jobs

    def endpoint(self, operation: _Operation) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            try:
                response = await operation(request, caller_of(request))
            except AwsError as error:
                return error_response(self._world, error)
            except ClientDisconnect:
                return Response(status_code=400)
            response.headers.setdefault("x-amzn-requestid", self._world.new_id("req-"))
            return response

        return endpoint

    async def create(self, request: Request, caller: Caller) -> Response:
        body = await request.body()
        dropped, _ = planted(self._world, request, "create")
        if dropped is not None:
            return dropped
        asked = _json_object(body)
        _check_creation(asked)
        job = await run_in_threadpool(self._jobs.create, caller, asked)
        return json_response({"jobArn": job.arn})

    async def retrieve(self, request: Request, caller: Caller) -> Response:
        job_id = request.path_params["job_id"]
        dropped, _ = planted(self._world, request, "retrieve", job_id=job_id)
        if dropped is not None:
            return dropped
        job = await run_in_threadpool(self._jobs.find, caller.account, job_id)
        return json_response(self._jobs.describe(job))

    async def stop(self, request: Request, caller: Caller) -> Response:
        job_id = request.path_params["job_id"]
        dropped, _ = planted(self._world, request, "cancel", job_id=job_id)
        if dropped is not None:
            return dropped
        job = await run_in_threadpool(self._jobs.find, caller.account, job_id)
        self._jobs.stop(job)
        return json_response({})

    async def list_jobs(self, request: Request, caller: Caller) -> Response:
        dropped, _ = planted(self._world, request, "list")
        if dropped is not None:
            return dropped
        found = await run_in_threadpool(self._jobs.listed, caller.account)
        shown = [self._jobs.describe(job) for job in found if self._matches(request, job)]
        order = request.query_params.get("sortOrder", "Descending")
        if order == "Descending":
            shown.reverse()
        first = _token_place(shown, request.query_params.get("nextToken"))
        size = _whole(request, "maxResults", 100, 1000)
        page = shown[first : first + size]
        answer: dict[str, Any] = {"invocationJobSummaries": page}
        if first + size < len(shown):
            answer["nextToken"] = base64.urlsafe_b64encode(page[-1]["jobArn"].encode()).decode()
        return json_response(answer)

    def _matches(self, request: Request, job: BatchJob) -> bool:
        query = request.query_params
        wanted = query.get("statusEquals")
        if wanted is not None and wanted not in _STATUSES:
            raise AwsError(400, "ValidationException", "statusEquals is not a known status")
        after, before = (
            _moment(query.get("submitTimeAfter")),
            _moment(query.get("submitTimeBefore")),
        )
        return (
            (wanted is None or self._jobs.status(job) == wanted)
            and query.get("nameContains", "") in job.request["jobName"]
            and (after is None or job.created > after)
            and (before is None or job.created < before)
        )

    async def foundation_model(self, request: Request, caller: Caller) -> Response:
        model_id = request.path_params["model_id"]
        dropped, _ = planted(self._world, request, "models", model=model_id)
        if dropped is not None:
            return dropped
        model = base_model(model_id)
        if model is None or is_profile(model_id):
            raise AwsError(400, "ValidationException", _UNKNOWN_MODEL)
        arn = f"arn:aws:bedrock:{caller.region}::foundation-model/{model}"
        return json_response({"modelDetails": {"modelArn": arn, "modelId": model}})

    async def inference_profile(self, request: Request, caller: Caller) -> Response:
        profile_id = request.path_params["model_id"]
        dropped, _ = planted(self._world, request, "models", model=profile_id)
        if dropped is not None:
            return dropped
        if not is_profile(profile_id):
            message = f"The requested inference profile {profile_id} was not found."
            raise AwsError(404, "ResourceNotFoundException", message)
        name = profile_id.rpartition("/")[2]
        where = f"arn:aws:bedrock:{caller.region}"
        return json_response(
            {
                "inferenceProfileArn": f"{where}:123456789012:inference-profile/{name}",
                "inferenceProfileId": name,
                "inferenceProfileName": name,
                "models": [{"modelArn": f"{where}::foundation-model/{base_model(profile_id)}"}],
                "status": "ACTIVE",
                "type": "SYSTEM_DEFINED",
            }
        )

    async def converse(self, request: Request, caller: Caller) -> Response:
        body = await request.body()
        dropped, _ = planted(self._world, request, "answer", model=request.path_params["model_id"])
        if dropped is not None:
            return dropped
        if len(body) > MAX_CONVERSE_BYTES:
            raise AwsError(400, "ValidationException", "Input is too long for requested model.")
        model = base_model(request.path_params["model_id"])
        if model is None:
            raise AwsError(400, "ValidationException", _UNKNOWN_MODEL)
        outcome = await run_in_threadpool(self._converse, model, _json_object(body))
        if outcome.answer is None:
            status = outcome.status if outcome.status >= 400 else 500
            code = outcome.code or _STATUS_OF_CODE.get(status, "ModelErrorException")
            raise AwsError(status, code, outcome.message)
        return json_response(outcome.answer)

    def _converse(self, model: str, body: dict[str, Any]) -> Outcome:
        with self._world.lock:
            count = self._world.count_calls(PROVIDER, "answer") - 1
            clean = run_row(self._world, body, model, None, batch=False)
            if clean.answer is None:
                return clean
            row_id = row_id_online(body)
            fault = self._world.faults.take(PROVIDER, "row", index=count, custom_id=row_id)
            outcome = run_row(self._world, body, model, fault, batch=False) if fault else clean
            if outcome.was_run:
                self._world.executed[PROVIDER][row_id] += 1
            return outcome


def _json_object(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise AwsError(400, "SerializationException", "The request body is no JSON object.")
    return found


def _check_creation(asked: dict[str, Any]) -> None:
    """Refuse what the control plane refuses at once.

    Raises:
        AwsError: a member is missing, of a wrong form, or names no model.
    """
    missing = [name for name in _REQUIRED if not asked.get(name)]
    if missing:
        raise _invalid(missing[0], "failed to satisfy constraint: Member must not be null")
    for name, (pattern, longest) in _PATTERNS.items():
        value = asked.get(name)
        if value is not None and (len(value) > longest or not re.fullmatch(pattern, value)):
            raise _invalid(name, f"failed to satisfy regular expression pattern: {pattern}")
    _check_places(asked)
    hours = asked.get("timeoutDurationInHours", 24)
    if not isinstance(hours, int) or not 24 <= hours <= 168:
        raise _invalid("timeoutDurationInHours", "must be between 24 and 168")
    if asked.get("modelInvocationType", "InvokeModel") not in ("InvokeModel", "Converse"):
        raise _invalid("modelInvocationType", "must satisfy enum value set")
    if base_model(asked["modelId"]) is None:
        raise AwsError(400, "ValidationException", _UNKNOWN_MODEL)


def _check_places(asked: dict[str, Any]) -> None:
    source = asked["inputDataConfig"].get("s3InputDataConfig", {})
    target = asked["outputDataConfig"].get("s3OutputDataConfig", {})
    for name, place in (("inputDataConfig", source), ("outputDataConfig", target)):
        if not re.fullmatch(_S3_URI, place.get("s3Uri", "")):
            raise _invalid(f"{name}.s3Uri", f"failed to satisfy pattern: {_S3_URI}")
    if source.get("s3InputFormat", "JSONL") != "JSONL":
        raise _invalid("inputDataConfig.s3InputFormat", "must satisfy enum value set: [JSONL]")


def _invalid(member: str, problem: str) -> AwsError:
    text = f"1 validation error detected: Value at '{member}' {problem}"
    return AwsError(400, "ValidationException", text)


def _moment(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise AwsError(400, "ValidationException", "a time filter is no ISO time") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _whole(request: Request, name: str, default: int, highest: int) -> int:
    text = request.query_params.get(name, str(default))
    if not text.isdecimal() or not 1 <= int(text) <= highest:
        raise AwsError(400, "ValidationException", f"{name} must be between 1 and {highest}")
    return int(text)


def _token_place(shown: list[dict[str, Any]], token: str | None) -> int:
    """Return where the page of a token begins: behind the job that it names."""
    if token is None:
        return 0
    try:
        arn = base64.urlsafe_b64decode(token.encode()).decode()
    except ValueError:
        arn = ""
    places = [place for place, one in enumerate(shown) if one["jobArn"] == arn]
    if not places:
        raise AwsError(400, "ValidationException", "The nextToken is invalid.")
    return places[0] + 1
