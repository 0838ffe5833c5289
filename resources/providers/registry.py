"""Finding a provider by name: its formats, its clients, the version of its SDK.

Belongs here: the lookup, and what of the settings a client is made with. Does not belong here:
anything of any one provider. SDKs are imported when a client is made, since they take a second
each and two of them are optional.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from resources.clock import is_loopback
from resources.providers.port import (
    BatchClient,
    OnlineClient,
    ProviderError,
    ProviderOptions,
    SdkMissing,
    Wire,
)
from resources.settings import Settings


class NotAProvider(ProviderError):
    """A provider, or an endpoint of one, that is not built in."""

    def __init__(self, provider: str, endpoint: str | None, known: tuple[str, ...]) -> None:
        what = f"endpoint {endpoint!r} of {provider!r}" if endpoint else f"provider {provider!r}"
        super().__init__(f"there is no {what}; expected one of {', '.join(known)}")


class VirtualTimeRefused(ProviderError):
    """A clock for tests was set while a provider is a real one."""

    def __init__(self, provider: str) -> None:
        super().__init__(
            f"TALLYBOOK_CLOCK_URL is set, and {provider} is not on this machine: deadlines of a "
            "real provider are never counted by a test's clock. Take the setting away."
        )


@dataclass(frozen=True)
class _Entry:
    package: str
    endpoints: tuple[str, ...]
    extra: str | None


_PROVIDERS: Mapping[str, _Entry] = MappingProxyType(
    {
        "openai": _Entry("openai", ("/v1/responses", "/v1/chat/completions"), None),
        "anthropic": _Entry("anthropic", ("/v1/messages",), None),
        "gemini": _Entry("google-genai", ("generateContent",), "gemini"),
        "bedrock": _Entry("boto3", ("converse",), "bedrock"),
    }
)


CALL_SECONDS = 120.0
"""How long one call of a batch client may take. With the time that a provider may take to list a
new job it is no longer than a lease, so that a worker that takes a batch over finds what its
predecessor made (`pipeline_assets/provider_jobs/hand_over.py`)."""


def endpoint_of(provider: str, endpoint: str | None) -> str:
    """The endpoint that a spec means: its own, or the provider's usual one.

    Raises:
        NotAProvider: there is no such provider or endpoint.
    """
    entry = _PROVIDERS.get(provider)
    if entry is None:
        raise NotAProvider(provider, None, tuple(_PROVIDERS))
    if endpoint is None:
        return entry.endpoints[0]
    if endpoint not in entry.endpoints:
        raise NotAProvider(provider, endpoint, entry.endpoints)
    return endpoint


def wire(provider: str, endpoint: str | None = None) -> Wire:
    """The formats of a provider's endpoint.

    Raises:
        NotAProvider: there is no such provider or endpoint.
    """
    place = endpoint_of(provider, endpoint)
    if provider == "openai":
        from resources.providers.openai.wire import OpenAIWire

        return OpenAIWire(place)
    if provider == "anthropic":
        from resources.providers.anthropic.wire import AnthropicWire

        return AnthropicWire()
    if provider == "gemini":
        from resources.providers.gemini.wire import GeminiWire

        return GeminiWire()
    from resources.providers.bedrock.wire import BedrockWire

    return BedrockWire()


def sdk_version(provider: str) -> str:
    """`<package> <version>` of the SDK that a provider is called with.

    Raises:
        SdkMissing: it is not installed.
        NotAProvider: there is no such provider.
    """
    endpoint_of(provider, None)
    entry = _PROVIDERS[provider]
    try:
        return f"{entry.package} {importlib.metadata.version(entry.package)}"
    except importlib.metadata.PackageNotFoundError:
        raise SdkMissing(provider, entry.extra or "") from None


def batch_client(
    settings: Settings,
    provider: str,
    endpoint: str | None,
    *,
    timeout_seconds: float = CALL_SECONDS,
) -> BatchClient:
    """A client for jobs, with the credentials of the environment.

    Raises:
        CredentialsMissing, SdkMissing: it cannot be made.
        VirtualTimeRefused: a test's clock is set and the provider is real.
    """
    place = endpoint_of(provider, endpoint)
    client = _connect(provider, "batch", place, _options(settings, timeout_seconds))
    _require_real_time(settings, provider, client)
    return client


def online_client(
    settings: Settings, provider: str, endpoint: str | None, *, timeout_seconds: float = 300.0
) -> OnlineClient:
    """A client for single calls, with the credentials of the environment.

    Raises:
        CredentialsMissing, SdkMissing: it cannot be made.
        VirtualTimeRefused: a test's clock is set and the provider is real.
    """
    place = endpoint_of(provider, endpoint)
    client = _connect(provider, "online", place, _options(settings, timeout_seconds))
    _require_real_time(settings, provider, client)
    return client


def _connect(provider: str, mode: str, endpoint: str, options: ProviderOptions) -> Any:
    module = importlib.import_module(f"resources.providers.{provider}.{mode}")
    connect: Callable[..., Any] = getattr(module, f"connect_{mode}")
    return connect(options, endpoint) if provider == "openai" else connect(options)


def _options(settings: Settings, timeout_seconds: float) -> ProviderOptions:
    return ProviderOptions(
        timeout_seconds=timeout_seconds,
        bedrock_role_arn=settings.bedrock_role_arn,
        bedrock_s3_uri=settings.bedrock_s3_uri,
    )


def _require_real_time(settings: Settings, provider: str, client: Any) -> None:
    if settings.clock_url is not None and not is_loopback(str(client.base_url)):
        raise VirtualTimeRefused(provider)
