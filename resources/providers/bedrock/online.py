"""Bedrock's Converse call behind the port's `OnlineClient`.

Belongs here: one call, its exact bytes there and back. Does not belong here: how many calls run at
once, and repeating (the pipeline).

boto3 blocks, so calls run in threads. It would also parse a body and write it anew, and drop what
its service model does not know from an answer: its events put the frozen bytes into the request
and take the answer's bytes before they are parsed.
"""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec

from resources.providers.bedrock.errors import PROVIDER, Trouble, read_trouble, seconds_of
from resources.providers.bedrock.session import Connection, check_model
from resources.providers.port import ProviderOptions, Reply

CALLS_AT_ONCE = 64
"""Threads, and connections kept: more calls than these wait for a thread."""

_RAW_BODY = "TallybookRawBody"
_CONVERSE = "bedrock-runtime.Converse"


def connect_online(options: ProviderOptions) -> BedrockOnline:
    """Return a client from the environment's credentials, region and endpoints.

    Raises:
        SdkMissing: boto3 is not installed.
        CredentialsMissing: credentials or region are not set.
    """
    connection = Connection(options, CALLS_AT_ONCE)
    connection.need_any_keys()
    return BedrockOnline(connection)


class BedrockOnline:
    """The port's `OnlineClient` for Bedrock.

    Args:
        connection: credentials and clients.
    """

    name = PROVIDER

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._bedrock = connection.client("bedrock")
        self._runtime = connection.client("bedrock-runtime")
        self.base_url: str = self._runtime.meta.endpoint_url
        self._body = threading.local()
        events = self._runtime.meta.events
        events.register(f"before-call.{_CONVERSE}", self._put_body)
        events.register(f"before-parse.{_CONVERSE}", _take_body)
        self._threads = ThreadPoolExecutor(CALLS_AT_ONCE, thread_name_prefix="bedrock-converse")

    def account(self) -> str:
        """Return what the credentials identify; secrets only as digests."""
        return self._connection.account(self.base_url)

    def check_model(self, model: str) -> None:
        """Ask whether the model can be used.

        Raises:
            ModelUnavailable: the service does not know it.
        """
        check_model(self._bedrock, model)

    async def answer(self, custom_id: str, model: str, body: bytes) -> Reply:
        """Send one body, exactly as it is, once."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self._converse, model, body)

    async def close(self) -> None:
        """Give threads and connections back; calls under way are waited for."""
        await asyncio.to_thread(self._threads.shutdown, wait=True, cancel_futures=True)
        self._runtime.close()
        self._bedrock.close()

    def _converse(self, model: str, body: bytes) -> Reply:
        from botocore.exceptions import BotoCoreError, ClientError
        from botocore.parsers import ResponseParserError

        self._body.value = body
        try:
            answer = self._runtime.converse(modelId=model)
        except ClientError as error:
            return _refused(read_trouble(error), error.response)
        except (BotoCoreError, ResponseParserError) as error:
            return _broken(read_trouble(error))
        return _answered(answer)

    def _put_body(self, params: dict[str, Any], **_: Any) -> None:
        params["body"] = self._body.value
        params["headers"]["Content-Type"] = "application/json"


def _take_body(
    response_dict: dict[str, Any], customized_response_dict: dict[str, Any], **_: Any
) -> None:
    customized_response_dict[_RAW_BODY] = response_dict["body"]


def _answered(answer: dict[str, Any]) -> Reply:
    meta = answer["ResponseMetadata"]
    body: bytes = answer[_RAW_BODY]
    length = meta["HTTPHeaders"].get("content-length", "")
    # The SDK does not compare the length, and an empty body is no answer.
    cut = not body or (length.isdecimal() and int(length) != len(body)) or not _is_json(body)
    return Reply(
        status=meta["HTTPStatusCode"],
        body=body,
        request_id=meta.get("RequestId"),
        failure="transport" if cut else None,
        ambiguous=cut,
    )


def _refused(trouble: Trouble, response: Any) -> Reply:
    meta = response.get("ResponseMetadata", {})
    return Reply(
        status=trouble.status,
        body=response.get(_RAW_BODY, b""),
        request_id=meta.get("RequestId"),
        retry_after=seconds_of(meta.get("HTTPHeaders", {}).get("retry-after")),
        failure=trouble.failure,
        # The model may have run: it answered too late, or its answer was lost on the way.
        ambiguous=trouble.status in {408, 424, 500, 502, 504},
    )


def _broken(trouble: Trouble) -> Reply:
    return Reply(status=0, failure=trouble.failure, ambiguous=trouble.kind == "broken")


def _is_json(body: bytes) -> bool:
    try:
        msgspec.json.decode(body, type=msgspec.Raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    return True
