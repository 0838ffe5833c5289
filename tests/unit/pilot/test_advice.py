"""Recommended workers, calls and batches."""

from __future__ import annotations

import pytest

from pipeline_assets.pilot.advice import Machine, batch_records, online_calls, parser_workers
from resources.providers.capabilities import Capability, Fact

MIB = 2**20


def fact(value: int) -> Fact[int]:
    return Fact(value, "test", "2026-11")


@pytest.mark.parametrize(
    ("machine", "wall", "cpu", "worker", "main", "expected"),
    [
        pytest.param(Machine(4, 64_000 * MIB), 10.0, 10.0, 100, 0, 4, id="always-computing"),
        pytest.param(Machine(4, 64_000 * MIB), 10.0, 8.0, 100, 0, 5, id="waits-a-fifth"),
        pytest.param(Machine(4, 64_000 * MIB), 10.0, 1.0, 100, 0, 8, id="two-a-core-at-most"),
        pytest.param(Machine(8, 1000 * MIB), 1.0, 1.0, 200 * MIB, 100 * MIB, 3, id="memory"),
        pytest.param(Machine(8, 100 * MIB), 1.0, 1.0, 200 * MIB, 0, 1, id="one-at-least"),
        pytest.param(Machine(2, None), 1.0, 1.0, 10**12, 0, 2, id="memory-not-known"),
        pytest.param(Machine(500, None), 1.0, 1.0, 1, 0, 64, id="the-setting-takes-no-more"),
        pytest.param(Machine(2, None), 0.0, 0.0, 0, 0, None, id="nothing-was-parsed"),
    ],
)
def test_parser_workers(
    machine: Machine, wall: float, cpu: float, worker: int, main: int, expected: int | None
) -> None:
    assert parser_workers(machine, wall, cpu, worker, main).value == expected


@pytest.mark.parametrize(
    ("latency", "pushed", "calls", "overhead", "expected"),
    [
        pytest.param(2.0, 0, 100, 0.01, 16, id="never-pushed-back"),
        pytest.param(2.0, 1, 100, 0.01, 8, id="once-in-a-while"),
        pytest.param(2.0, 3, 100, 0.01, 4, id="too-often"),
        pytest.param(0.05, 0, 100, 0.01, 5, id="this-machine-is-the-limit"),
        pytest.param(0.001, 0, 100, 0.01, 1, id="one-at-least"),
        pytest.param(None, 0, 0, 0.0, None, id="none-was-made"),
    ],
)
def test_online_calls(
    latency: float | None, pushed: int, calls: int, overhead: float, expected: int | None
) -> None:
    assert online_calls(8, latency, pushed, calls, overhead).value == expected


ROW = Capability(
    "openai",
    "*",
    "/v1/responses",
    "batch",
    max_records=fact(50_000),
    max_bytes=fact(1_000_000),
    enqueued_tokens=fact(200_000),
)


@pytest.mark.parametrize(
    ("row", "declared", "line", "tokens", "expected", "why"),
    [
        pytest.param(None, 25_000, 900.0, 10.0, 25_000, "batch_records", id="no-provider"),
        pytest.param(ROW, 100, 1.0, 1.0, 100, "batch_records", id="as-declared"),
        pytest.param(ROW, 25_000, 1000.0, None, 900, "bytes", id="bytes"),
        pytest.param(ROW, 25_000, 10.0, 600.0, 300, "waiting tokens", id="tokens"),
        pytest.param(ROW, 60_000, None, None, 50_000, "records a job", id="records"),
    ],
)
def test_batch_records(
    row: Capability | None,
    declared: int,
    line: float | None,
    tokens: float | None,
    expected: int,
    why: str,
) -> None:
    found = batch_records(row, declared, line, tokens)
    assert found.value == expected
    assert why in found.why


def test_a_batch_is_not_below_the_smallest_job() -> None:
    row = Capability("bedrock", "*", "e", "batch", min_records=fact(100))
    assert batch_records(row, 10, None, None).value == 100
