"""The one dynamic partitions definition: a partition is a processing version.

Belongs here: the definition, and registering keys with a Dagster instance. Keys are never
deleted: a deleted key kills runs in flight and leaves every list; a version that is no longer
used is retired in the ledger.
"""

from __future__ import annotations

from collections.abc import Iterable

import dagster as dg

from partitions.processing_version import check_key

PROCESSING_VERSIONS = dg.DynamicPartitionsDefinition(name="processing_version")


def register(instance: dg.DagsterInstance, keys: Iterable[str]) -> list[str]:
    """Add keys that the instance does not have yet; those that were new are returned.

    Raises:
        MalformedVersionKey: a key cannot be one; none is added then.
    """
    wanted = [check_key(key) for key in keys]
    name = PROCESSING_VERSIONS.name
    assert name is not None  # noqa: S101 - given above
    known = set(instance.get_dynamic_partitions(name))
    added = [key for key in dict.fromkeys(wanted) if key not in known]
    if added:
        instance.add_dynamic_partitions(name, added)
    return added
