"""One piece is read ahead, in order, and an error comes where its piece was due."""

from __future__ import annotations

import threading
from functools import partial

import pytest

from resources.ahead import one_ahead


def _fail() -> int:
    raise ValueError("unreadable")


@pytest.mark.parametrize("count", [0, 1, 2, 7])
def test_in_order(count: int) -> None:
    assert list(one_ahead([partial(int, n) for n in range(count)])) == list(range(count))


def test_the_next_call_runs_while_a_result_is_in_use() -> None:
    second_began = threading.Event()
    results = one_ahead([lambda: 1, lambda: second_began.set() or 2])
    assert next(results) == 1
    assert second_began.wait(timeout=10)
    assert list(results) == [2]


def test_never_more_than_one_ahead() -> None:
    begun: list[int] = []
    results = one_ahead([partial(lambda n: begun.append(n) or n, n) for n in range(5)])
    next(results)
    next(results)
    assert len(begun) <= 3
    results.close()


def test_an_error_comes_in_its_turn() -> None:
    results = one_ahead([lambda: 1, _fail, lambda: 3])
    assert next(results) == 1
    with pytest.raises(ValueError, match="unreadable"):
        next(results)
