"""The SDK's clients for Anthropic, and the account that they act for.

Belongs here: how clients are made from the environment. Does not belong here: any call.
"""

from __future__ import annotations

import hashlib

import anthropic
import httpx2

from resources.providers.anthropic.errors import NAME
from resources.providers.port import CredentialsMissing, ProviderOptions

_CONNECT_SECONDS = 10.0


def sync_client(options: ProviderOptions) -> anthropic.Anthropic:
    """A blocking client that repeats nothing by itself.

    Raises:
        CredentialsMissing: neither a key nor a token is set.
    """
    try:
        client = anthropic.Anthropic(max_retries=0, timeout=_timeout(options))
    except anthropic.AnthropicError as error:  # a profile on disk that cannot be read
        raise _missing() from error
    _require_key(client)
    return client


def async_client(options: ProviderOptions) -> anthropic.AsyncAnthropic:
    """An asynchronous client that repeats nothing by itself.

    Raises:
        CredentialsMissing: neither a key nor a token is set.
    """
    try:
        client = anthropic.AsyncAnthropic(max_retries=0, timeout=_timeout(options))
    except anthropic.AnthropicError as error:
        raise _missing() from error
    _require_key(client)
    return client


def account_text(client: anthropic.Anthropic) -> str:
    """Base URL, digest of the key and workspace, as the client's requests carry them."""
    headers = httpx2.Headers(
        {name: value for name, value in client.default_headers.items() if isinstance(value, str)}
    )
    key = headers.get("authorization", "").removeprefix("Bearer ") or headers.get("x-api-key", "")
    digest = hashlib.sha256(key.encode()).hexdigest()
    workspace = headers.get("anthropic-workspace-id", "")
    return f"{str(client.base_url).rstrip('/')}\nkey {digest}\nworkspace {workspace}"


def _timeout(options: ProviderOptions) -> httpx2.Timeout:
    # Explicit, or the SDK refuses long answers that are not streamed.
    connect = min(_CONNECT_SECONDS, options.timeout_seconds)
    return httpx2.Timeout(options.timeout_seconds, connect=connect)


def _require_key(client: anthropic.Anthropic | anthropic.AsyncAnthropic) -> None:
    """Refuse the SDK's profiles too: a token that changes by the hour cannot name an account."""
    if not (client.api_key or client.auth_token):
        raise _missing()


def _missing() -> CredentialsMissing:
    return CredentialsMissing(NAME, "ANTHROPIC_API_KEY (or ANTHROPIC_AUTH_TOKEN)")
