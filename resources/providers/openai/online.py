"""Single calls to OpenAI: the port's online client over the SDK.

Belongs here: sending a body as it is, and what came of it. Does not belong here: how many calls
at once, waiting and repeating (the pipeline), reading answers (`results.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from resources.providers.openai.connection import (
    ask_for_model,
    describe_account,
    require_key,
    timeout_of,
)
from resources.providers.openai.errors import (
    NAME,
    failure_of,
    retry_after_of,
    trouble_in,
    trouble_of,
)
from resources.providers.openai.wire import OpenAIWire
from resources.providers.port import ProviderOptions, Reply

if TYPE_CHECKING:
    import httpx2
    from openai import AsyncOpenAI, OpenAI

CLIENT_ID_HEADER = "X-Client-Request-Id"
"""Header by which the provider finds a call again in its logs (its API reference, "Debugging
requests"); the custom id goes there, since a body has no place for it."""

# A gateway gave up waiting, or lost the answer: the model behind it may have answered, and been
# paid. 520 and 524 are those of the provider's content network.
_LOST_ANSWERS = frozenset({502, 504, 520, 524})


class OpenAIOnlineClient:
    """The port's `OnlineClient` for one endpoint.

    Args:
        client: the SDK's asynchronous client, without retries.
        blocking: the SDK's blocking client for the same account, without retries.
        endpoint: where bodies are sent.
    """

    name = NAME

    def __init__(self, client: AsyncOpenAI, blocking: OpenAI, endpoint: str) -> None:
        self._client = client
        self._blocking = blocking
        # The base URL ends in the version that the endpoint's name begins with.
        self._path = endpoint.removeprefix("/v1")
        self.base_url = str(client.base_url)

    def account(self) -> str:
        """Return what the credentials in use identify; digested before it is kept."""
        return describe_account(self._blocking)

    def check_model(self, model: str) -> None:
        """Ask whether the model can be used.

        Raises:
            ModelUnavailable: the provider does not know it, or not for this account.
            Refused, Unavailable, Unreachable: the question was not answered.
        """
        ask_for_model(self._blocking, model)

    async def answer(self, custom_id: str, model: str, body: bytes) -> Reply:
        """Send one body, exactly as it is, once. The model is the one that the body names."""
        del model
        import httpx2
        from openai import APIError, APIStatusError

        try:
            response = await self._client.post(
                self._path,
                cast_to=httpx2.Response,
                content=body,
                options={"headers": {CLIENT_ID_HEADER: custom_id}},
            )
        except APIStatusError as error:
            return _refused(error.response)
        except APIError as error:
            trouble = trouble_of(error)
            return Reply(0, failure="transport", ambiguous=trouble.sent)
        return _answered(response)

    async def close(self) -> None:
        """Give connections back."""
        await self._client.close()
        self._blocking.close()


def connect_online(options: ProviderOptions, endpoint: str) -> OpenAIOnlineClient:
    """Return a client for single calls, with the credentials and base URL of the environment.

    Raises:
        CredentialsMissing: there is no usable key.
        ValueError: the endpoint is not served.
    """
    place = OpenAIWire(endpoint).endpoint
    key = require_key()
    from openai import AsyncOpenAI, OpenAI

    timeout = timeout_of(options.timeout_seconds)
    return OpenAIOnlineClient(
        AsyncOpenAI(api_key=key, max_retries=0, timeout=timeout),
        OpenAI(api_key=key, max_retries=0, timeout=timeout),
        place,
    )


def _answered(response: httpx2.Response) -> Reply:
    # A success without a body may have been run: there is only nothing to show for it.
    body = response.content
    return Reply(
        response.status_code,
        body,
        request_id=response.headers.get("x-request-id"),
        failure=None if body.strip() else "transport",
        ambiguous=not body.strip(),
    )


def _refused(response: httpx2.Response) -> Reply:
    trouble = trouble_in(response.status_code, response.headers, response.content)
    return Reply(
        trouble.status,
        response.content,
        request_id=response.headers.get("x-request-id"),
        retry_after=retry_after_of(trouble.status, response.headers),
        failure=failure_of(trouble),
        ambiguous=trouble.status in _LOST_ANSWERS,
    )
