"""Cutting a stream into groups.

Belongs here: only that; `itertools.batched` comes with Python 3.12.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

Item = TypeVar("Item")


def batched(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Lists of at most `size` items, in order; none is empty."""
    stream = iter(items)
    while group := list(islice(stream, size)):
        yield group
