"""Gemini's `generateContent`, one request at a time.

Belongs here: one call and what came of it. Does not belong here: repeating, pacing (the caller)
and formats (`wire.py`).

The calls go past the SDK: it builds each body again out of its own objects, while here the exact
bytes whose digest was recorded must be sent, and its asynchronous transport repeats a request
once by itself after a broken connection, which can be paid twice. Base URL, version and key are
found by the SDK's rules (`account.py`).
"""

from __future__ import annotations

import os

import httpx2
import msgspec

from resources.providers.gemini.account import Account, account_of, model_name
from resources.providers.gemini.calls import Calls
from resources.providers.gemini.errors import NOT_SENT, failure_of, read_problem
from resources.providers.gemini.models import require_model
from resources.providers.gemini.statuses import PROVIDER
from resources.providers.port import ProviderOptions, Reply

METHOD = "generateContent"

UNANSWERED = frozenset({408, 502, 504})
"""Statuses that a gateway gives for a request whose end it did not see."""

KEPT_CONNECTIONS = 100


def connect_online(options: ProviderOptions) -> GeminiOnline:
    """A client from the environment's key and base URL.

    Raises:
        CredentialsMissing: no usable key, or a base URL that is none.
    """
    account = account_of(os.environ)
    # How many calls run at once is the caller's window, not a second one down here.
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=KEPT_CONNECTIONS)
    http = httpx2.AsyncClient(timeout=options.timeout_seconds, limits=limits)
    return GeminiOnline(account, http, options.timeout_seconds)


class _Answer(msgspec.Struct, frozen=True, rename="camel"):
    response_id: str | None = None


class GeminiOnline:
    """The port's `OnlineClient` for Gemini.

    Args:
        account: place and key.
        http: for answers; it carries no key by itself.
        timeout_seconds: for the look at a model.
    """

    name = PROVIDER

    def __init__(self, account: Account, http: httpx2.AsyncClient, timeout_seconds: float) -> None:
        self._account = account
        self._http = http
        self._timeout = timeout_seconds
        self.base_url: str = account.base_url

    def account(self) -> str:
        """What the key identifies; the key only as a digest."""
        return self._account.text()

    def check_model(self, model: str) -> None:
        """Ask whether the model can be used online.

        Raises:
            ModelUnavailable: the provider does not know it, or not for this method.
        """
        with httpx2.Client(timeout=self._timeout) as http:
            require_model(Calls(self._account, http), model, METHOD)

    async def answer(self, custom_id: str, model: str, body: bytes) -> Reply:
        """Send one body, exactly as it is, once."""
        headers = {**self._account.headers, "content-type": "application/json"}
        try:
            response = await self._http.post(
                self._account.url(model_name(model), METHOD), content=body, headers=headers
            )
        except httpx2.HTTPError as error:
            return Reply(0, failure="transport", ambiguous=not isinstance(error, NOT_SENT))
        return _reply(response)

    async def close(self) -> None:
        """Give connections back."""
        await self._http.aclose()


def _reply(response: httpx2.Response) -> Reply:
    status, body = response.status_code, response.content
    if not response.is_success:
        problem = read_problem(status, response.headers, body)
        return Reply(
            status,
            body,
            retry_after=problem.retry_after,
            failure=failure_of(problem),
            ambiguous=status in UNANSWERED,
        )
    try:
        request_id = msgspec.json.decode(body, type=_Answer).response_id
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        # A success that cannot be read was run and is paid.
        return Reply(status, body, failure="transport", ambiguous=True)
    return Reply(status, body, request_id=request_id)
