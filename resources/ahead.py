"""Doing the next piece of reading while this one is worked on.

Belongs here: only that, with one thread and one piece ahead, so that memory holds two pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Piece = TypeVar("Piece")


def one_ahead(pieces: Sequence[Callable[[], Piece]]) -> Generator[Piece, None, None]:
    """The results of the calls in order; the next call runs while a result is in use.

    An exception of a call is raised when its result is due. Worth it where the calls leave
    Python alone most of the time (Parquet, decoding in Polars).
    """
    if not pieces:
        return
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="ahead") as worker:
        coming = worker.submit(pieces[0])
        for call in pieces[1:]:
            ready = coming.result()
            coming = worker.submit(call)
            yield ready
        yield coming.result()
