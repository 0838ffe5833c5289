"""When a job is looked at again, and what a look means."""

from __future__ import annotations

import random
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_assets.provider_jobs.polling import (
    LONGEST_DELAY,
    SHORTEST_DELAY,
    PollPolicy,
    decide_poll,
    internal_deadline,
    next_delay,
)
from resources.clock import to_text
from resources.ledger.jobs import JobRow
from resources.providers.port import Job

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
POLICY = PollPolicy("wait", timedelta(hours=2), counts_live=True)
EMPTY: dict[str, Any] = dict.fromkeys((field.name for field in fields(JobRow)), None)
ROW = JobRow(
    **{
        **EMPTY,
        "machine": "batch",
        "state": "submitted",
        "polls": 0,
        "raw_status": "in_progress",
        "last_counts": "{}",
        "changed_at": to_text(NOW - timedelta(hours=3)),
    }
)
JOB = Job("job", "in_progress", "running")


@given(st.integers(0, 10_000), st.integers())
def test_delays_are_bounded(looks: int, seed: int) -> None:
    delay = next_delay(looks, random.Random(seed))
    assert SHORTEST_DELAY <= delay <= LONGEST_DELAY


def test_delays_have_full_jitter() -> None:
    rng = random.Random(1)
    delays = [next_delay(9, rng) for _ in range(300)]
    assert min(delays) < LONGEST_DELAY * 0.1
    assert max(delays) > LONGEST_DELAY * 0.9


def test_a_job_that_has_ended_is_collected() -> None:
    ended = replace(JOB, raw_status="whatever", phase="ended", outcome="expired")
    assert decide_poll(ROW, ended, None, NOW, POLICY).state == "results_available"


@pytest.mark.parametrize(
    ("row", "job", "policy", "state", "alerts", "cancel"),
    [
        pytest.param(ROW, JOB, POLICY, "running", {"no_progress"}, False, id="stands-still"),
        pytest.param(
            ROW, JOB, replace(POLICY, counts_live=False), "running", set(), False, id="silent"
        ),
        pytest.param(
            replace(ROW, raw_status="validating"), JOB, POLICY, "running", set(), False, id="moves"
        ),
        pytest.param(
            replace(ROW, state="running", raw_status="x"), JOB, POLICY, None, set(), False, id="on"
        ),
        pytest.param(
            replace(ROW, raw_status="x"),
            replace(JOB, raw_status="sleeping", phase="unknown"),
            POLICY,
            None,
            {"unknown_status"},
            False,
            id="unknown-is-neither-success-nor-failure",
        ),
        pytest.param(
            replace(ROW, raw_status="x", internal_deadline_at=to_text(NOW)),
            JOB,
            POLICY,
            "running",
            {"deadline"},
            False,
            id="deadline-waits",
        ),
        pytest.param(
            replace(ROW, raw_status="x", internal_deadline_at=to_text(NOW)),
            JOB,
            replace(POLICY, deadline_policy="cancel_and_collect"),
            "running",
            {"deadline"},
            True,
            id="deadline-cancels",
        ),
        pytest.param(
            replace(
                ROW,
                raw_status="x",
                internal_deadline_at=to_text(NOW),
                cancel_requested_at=to_text(NOW),
            ),
            JOB,
            replace(POLICY, deadline_policy="cancel_and_collect"),
            "running",
            {"deadline"},
            False,
            id="cancels-once",
        ),
    ],
)
def test_a_look(
    row: JobRow, job: Job, policy: PollPolicy, state: str | None, alerts: set[str], cancel: bool
) -> None:
    decision = decide_poll(row, job, "{}", NOW, policy)
    assert (decision.state, set(decision.alerts), decision.cancel) == (state, alerts, cancel)


@pytest.mark.parametrize(
    ("hours", "lead", "expected"),
    [
        pytest.param(24, 1, 23, id="before-the-providers"),
        pytest.param(24, 30, 12, id="a-lead-beyond-the-window-is-half-of-it"),
    ],
)
def test_internal_deadline(hours: int, lead: int, expected: int) -> None:
    found = internal_deadline(NOW + timedelta(hours=hours), NOW, timedelta(hours=lead))
    assert found == NOW + timedelta(hours=expected)


def test_no_deadline_is_made_up() -> None:
    assert internal_deadline(None, NOW, timedelta(hours=1)) is None


@given(st.integers(1, 400 * 3600), st.integers(1, 400 * 3600))
def test_the_deadline_lies_inside_the_window(window: int, lead: int) -> None:
    """Never at once, and never so late that the provider ends the job first."""
    provider = NOW + timedelta(seconds=window)
    found = internal_deadline(provider, NOW, timedelta(seconds=lead))
    assert found is not None
    assert NOW < found < provider
