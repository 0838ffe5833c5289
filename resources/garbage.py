"""Keeping Python's cyclic garbage collector out of hot loops.

Belongs here: only that.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_garbage_collector() -> Iterator[None]:
    """Keep the cyclic collector out of a loop that makes no cycles: 2.4 times the lines a second.

    Source: DESIGN section 10 (40 k to 98 k lines/s).
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
