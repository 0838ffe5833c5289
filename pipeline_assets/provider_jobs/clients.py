"""Clients of a version's provider, made when they are first needed.

Belongs here: when a client is made and closed. Does not belong here: how (`registry.py`).

A run that finds nothing to do at a provider needs neither its SDK nor a key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pipeline_assets.versions import OpenVersion
from resources.context import Context
from resources.providers.port import BatchClient
from resources.providers.registry import batch_client


class LazyClient:
    """A batch client that is made at the first `get`."""

    def __init__(self, make: Callable[[], BatchClient]) -> None:
        self._make = make
        self._client: BatchClient | None = None

    def get(self) -> BatchClient:
        """The client.

        Raises:
            CredentialsMissing, SdkMissing: it cannot be made.
        """
        if self._client is None:
            self._client = self._make()
        return self._client

    def close(self) -> None:
        """Close it, if it was made."""
        if self._client is not None:
            self._client.close()


@contextmanager
def job_client(context: Context, version: OpenVersion) -> Iterator[LazyClient]:
    """The batch client of a version's provider, for the length of a block."""
    spec = version.spec
    lazy = LazyClient(lambda: batch_client(context.settings, spec.provider, spec.endpoint))
    try:
        yield lazy
    finally:
        lazy.close()
