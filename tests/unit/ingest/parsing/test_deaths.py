"""Why a worker ended, and who is to blame."""

from __future__ import annotations

import signal

import pytest

from pipeline_assets.ingest.parsing.deaths import Stopped, explain, signal_name
from pipeline_assets.ingest.parsing.model import MIB, ParseLimits

LIMITS = ParseLimits()
LOW, HIGH = 50 * MIB, 600 * MIB


@pytest.mark.parametrize(
    ("status", "stopped", "peak", "reason", "blameless"),
    [
        pytest.param(-signal.SIGABRT, None, LOW, "too_large", False, id="abort"),
        pytest.param(-signal.SIGXCPU, None, LOW, "too_slow", False, id="cpu limit"),
        pytest.param(-signal.SIGKILL, "wall", LOW, "too_slow", False, id="wall limit"),
        pytest.param(-signal.SIGKILL, "protocol", LOW, "unreadable", True, id="garbage"),
        pytest.param(-signal.SIGSEGV, None, LOW, "unreadable", False, id="crash"),
        pytest.param(-signal.SIGTRAP, None, HIGH, "too_large", False, id="allocator trap"),
        pytest.param(-signal.SIGTRAP, None, LOW, "unreadable", False, id="trap"),
        pytest.param(-signal.SIGKILL, None, LOW, "unreadable", True, id="killed from outside"),
        pytest.param(-signal.SIGTERM, None, LOW, "unreadable", True, id="terminated"),
        pytest.param(0, None, LOW, "unreadable", True, id="left"),
        pytest.param(1, None, LOW, "unreadable", False, id="status"),
    ],
)
def test_explain(
    status: int, stopped: Stopped | None, peak: int, reason: str, blameless: bool
) -> None:
    death = explain(status, stopped, peak, LIMITS)
    assert (death.failure.reason, death.blameless) == (reason, blameless)


def test_the_detail_names_the_signal() -> None:
    assert "SIGSEGV" in explain(-signal.SIGSEGV, None, LOW, LIMITS).failure.detail


def test_a_signal_without_a_name() -> None:
    assert signal_name(63) == "signal 63"
