"""Finding a workload by name.

Belongs here: the lookup. A workload is a folder with a module `workload` that has a function
`load() -> Workload`; adding one changes nothing here.
"""

from __future__ import annotations

import importlib
import importlib.util
from functools import cache

from pipeline_assets.workloads.workload import Workload


class UnknownWorkload(LookupError):
    """A spec names a workload that is not installed."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"there is no workload {name!r}: expected a package pipeline_assets.workloads.{name} "
            "with a module `workload`. Correct the spec's field `workload`, or add the folder."
        )


@cache
def load_workload(name: str) -> Workload:
    """The workload of that name.

    Raises:
        UnknownWorkload: no such folder.
    """
    module = f"pipeline_assets.workloads.{name}.workload"
    try:
        found = importlib.util.find_spec(module)
    except ModuleNotFoundError:  # there is no such folder, or it is a plain module
        found = None
    if not name or found is None:
        raise UnknownWorkload(name)
    return importlib.import_module(module).load()
