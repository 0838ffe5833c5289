"""Batches that one statement groups together: consecutive ones of the same price steps."""

from __future__ import annotations

import pytest

from pipeline_assets.costs.charges import SHARD_ATTEMPTS, ChargedJob, shards

HALF = SHARD_ATTEMPTS // 2


def job(number: int, size: int) -> ChargedJob:
    return ChargedJob(number, f"b{number}", "p", "m", "batch", "completed", None, size, 1, 1, 1)


@pytest.mark.parametrize(
    ("sizes", "steps", "expected"),
    [
        pytest.param([], [], [], id="none"),
        pytest.param([HALF, HALF, 1], [(), (), ()], [[1, 2], [3]], id="as-many-as-fit"),
        pytest.param([HALF, HALF + 1, 1], [(), (), ()], [[1], [2, 3]], id="one-too-many"),
        pytest.param([3 * HALF, 1], [(), ()], [[1], [2]], id="a-large-one-alone"),
        pytest.param([1, 1, 1], [(), (9,), (9,)], [[1], [2, 3]], id="other-steps"),
        pytest.param([HALF, HALF, HALF, HALF], [(), (), (), ()], [[1, 2], [3, 4]], id="each-anew"),
    ],
)
def test_shards(sizes: list[int], steps: list[tuple[int, ...]], expected: list[list[int]]) -> None:
    jobs = [job(number, size) for number, size in enumerate(sizes, 1)]
    found = list(shards(jobs, dict(enumerate(steps, 1))))
    assert [[one.no for one in part] for part, _ in found] == expected
    assert [kept for _, kept in found] == [steps[part[0] - 1] for part in expected]
