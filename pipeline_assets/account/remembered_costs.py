"""Costs for a reader that comes every few seconds: read anew as often as reading them is worth.

Belongs here: how long an account of costs is given out again. Does not belong here: the account
(`pipeline_assets/costs`) and everything else that is scraped, which is read anew each time.

An account of costs looks at every attempt and at every record's way. Of a small ledger that is
done in no time and it is read for each scrape; of a large one it would be all that the machine
does. So reading takes a tenth of the time at most, and the account says of which moment it is.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from pipeline_assets.account.machine_facts import CostReader, Costs, costs_now
from pipeline_assets.costs.account import CostAccount
from resources.context import Context

PAUSE = 10
"""An account is given out again for so many times as long as reading it took."""


@dataclass(frozen=True)
class _Kept:
    costs: Costs
    until: float


class CostsReadOnce:
    """A reader for two readers of one step: the second is given what the first one read."""

    def __init__(self, read: CostReader = costs_now) -> None:
        self._read = read
        self._kept: dict[str, Costs] = {}

    def __call__(self, context: Context, key: str) -> Costs:
        """The costs of a version as they were when they were first asked for."""
        if key not in self._kept:
            self._kept[key] = self._read(context, key)
        return self._kept[key]

    def account(self, context: Context, key: str) -> CostAccount:
        """The same without the moment that it is of."""
        return self(context, key).account


class RememberedCosts:
    """A reader of costs that remembers; for one ledger, and one thread at a time.

    Args:
        read: reads the costs of a version as they are now.
        monotonic: seconds that only grow.
    """

    def __init__(
        self, read: CostReader = costs_now, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._read, self._monotonic = read, monotonic
        self._kept: dict[str, _Kept] = {}

    def __call__(self, context: Context, key: str) -> Costs:
        """The costs of a version: as they are now, or as they were not long ago."""
        kept, begun = self._kept.get(key), self._monotonic()
        if kept is not None and begun < kept.until:
            return kept.costs
        costs = self._read(context, key)
        ended = self._monotonic()
        self._kept[key] = _Kept(costs, ended + PAUSE * (ended - begun))
        return costs
