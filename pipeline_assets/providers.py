"""Which provider a version means.

Belongs here: choosing and making the provider. Stages ask here, so that a provider can be
swapped without touching one of them.
"""

from __future__ import annotations

from pipeline_assets.versions import OpenVersion
from resources.providers.baseline import BaselineProvider
from resources.providers.port import EmbeddedProvider


def embedded_provider(version: OpenVersion) -> EmbeddedProvider:
    """The provider of a version that answers inside the run."""
    return BaselineProvider(version.spec.model, version.workload.baseline)
