"""A large batch with one record in a hundred for each anomaly: exactly those, and quickly."""

from __future__ import annotations

import io

import pytest

from pipeline_assets.collect.observe import observe
from pipeline_assets.collect.reconcile import Reconciliation, reconcile
from pipeline_assets.workloads.equipment_manuals.columns import check_answer, echoed
from resources.providers.openai.wire import OpenAIWire
from tests.benchmarks.reconciliation import (
    FIRST_ATTEMPT,
    KEY,
    LIMIT_SECONDS,
    Planted,
    is_exact,
    measure,
    plant,
)


def test_exactly_the_planted_anomalies_in_time() -> None:
    found = measure(100_000)
    assert found.planted == {
        "duplicate_conflict": 2_000,  # two lines of an attempt each
        "duplicate_identical": 1_000,
        "late_result": 1_000,
        "malformed_line": 1_000,
        "misrouted": 1_000,
        "missing_result": 1_000,
        "unknown_id": 1_000,
    }
    assert found.reported == found.planted
    assert found.exact
    assert found.observe_seconds + found.reconcile_seconds < LIMIT_SECONDS


def decided(planted: Planted, data: bytes, *, trust: bool = True) -> Reconciliation:
    reader = OpenAIWire("/v1/chat/completions")
    observed = observe(reader, check_answer, 1, io.BytesIO(data), echoed=echoed)
    return reconcile(
        planted.expected,
        observed,
        KEY,
        FIRST_ATTEMPT,
        earlier=planted.earlier,
        count_identical_once=trust,
    )


@pytest.fixture(scope="module")
def planted() -> Planted:
    return plant(1_000)


def test_the_comparison_sees_a_line_too_few(planted: Planted) -> None:
    assert is_exact(planted, decided(planted, planted.data))
    assert not is_exact(planted, decided(planted, planted.data[planted.data.index(b"\n") + 1 :]))


def test_the_comparison_sees_another_verdict(planted: Planted) -> None:
    assert not is_exact(planted, decided(planted, planted.data, trust=False))
