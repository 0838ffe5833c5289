"""The Messages endpoint, one body at a time, over the SDK.

Belongs here: the call and what came of it. Does not belong here: repeating, pacing and how many
run at once (`pipeline_assets/submit`).
"""

from __future__ import annotations

from collections.abc import Mapping

import anthropic
import httpx2

from resources.providers.anthropic.batch import check_model
from resources.providers.anthropic.errors import NAME, TRANSPORT, is_unsent, read_answer
from resources.providers.anthropic.sdk import account_text, async_client, sync_client
from resources.providers.port import ProviderOptions, Reply

_PATH = "/v1/messages"
# A gateway that gave up waiting does not say what the model did.
_MAY_HAVE_RUN = frozenset({408, 502, 504})


def connect_online(options: ProviderOptions) -> AnthropicOnline:
    """A client with the credentials and the base URL of the environment.

    Raises:
        CredentialsMissing: neither a key nor a token is set.
    """
    return AnthropicOnline(async_client(options), sync_client(options))


class AnthropicOnline:
    """Single calls of one Anthropic workspace.

    Args:
        client: makes the calls.
        blocking: asks for models, before any loop runs.
    """

    name = NAME

    def __init__(self, client: anthropic.AsyncAnthropic, blocking: anthropic.Anthropic) -> None:
        self._client = client
        self._blocking = blocking
        self.base_url = str(client.base_url)

    def account(self) -> str:
        """Base URL, digest of the key, workspace."""
        return account_text(self._blocking)

    def check_model(self, model: str) -> None:
        """Ask whether the model can be used.

        Raises:
            ModelUnavailable: the provider does not know it, or has retired it.
        """
        check_model(self._blocking, model)

    async def answer(self, custom_id: str, model: str, body: bytes) -> Reply:
        """Send one body, exactly as it is, once; the model stands in the body."""
        try:
            response = await self._client.post(_PATH, cast_to=httpx2.Response, content=body)
        except anthropic.APIStatusError as error:
            response = error.response
            return _failed(response.status_code, response.headers, response.content)
        except TRANSPORT as error:
            return Reply(0, failure="transport", ambiguous=not is_unsent(error))
        request_id = response.headers.get("request-id")
        if not response.content:
            return Reply(
                response.status_code, request_id=request_id, failure="transport", ambiguous=True
            )
        return Reply(response.status_code, response.content, request_id)

    async def close(self) -> None:
        """Give connections back."""
        await self._client.close()
        self._blocking.close()


def _failed(status: int, headers: Mapping[str, str], body: bytes) -> Reply:
    answer = read_answer(status, headers, body)
    return Reply(
        status=status,
        body=body,
        request_id=headers.get("request-id"),
        retry_after=answer.retry_after,
        failure=answer.failure,
        ambiguous=status in _MAY_HAVE_RUN,
    )
