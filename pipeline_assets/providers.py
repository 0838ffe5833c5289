"""The provider that a processing version names.

Belongs here: the choice. Does not belong here: any provider (`resources/providers`).
"""

from __future__ import annotations

from pipeline_assets.versions import OpenVersion
from resources.providers.baseline import BaselineProvider
from resources.providers.port import EmbeddedProvider, ResultReader, Wire
from resources.providers.registry import endpoint_of, wire


def embedded_provider(version: OpenVersion) -> EmbeddedProvider:
    """The provider of a version that answers inside the run."""
    return BaselineProvider(version.spec.model, version.workload.baseline)


def wire_of(version: OpenVersion) -> Wire:
    """The formats of the provider that a version asks.

    Raises:
        NotAProvider: its endpoint is none of the provider's.
    """
    return wire(version.spec.provider, version.spec.endpoint)


def endpoint_of_version(version: OpenVersion) -> str:
    """The endpoint that a version's records are asked at.

    Raises:
        NotAProvider: its endpoint is none of the provider's.
    """
    return endpoint_of(version.spec.provider, version.spec.endpoint)


def result_reader(version: OpenVersion) -> ResultReader:
    """Reads the result lines of a version's provider."""
    return embedded_provider(version) if version.spec.mode == "embedded" else wire_of(version)
